// SPDX-License-Identifier: Apache-2.0
// The two sides of a join that a bench runs: keys are made from numbers, so that the result is known in advance.
#ifndef QUERN_BENCH_JOIN_JOIN_WORKLOAD_H_
#define QUERN_BENCH_JOIN_JOIN_WORKLOAD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/join/hash_join.h"
#include "runtime/spec/spec.h"

namespace quern::bench {

enum class KeyKind : uint8_t {
  kSequentialI32,  // 0, 1, 2, .. on both sides
  kDenseI32,       // the same numbers in random order
  kSparseI64,      // 64 random bits
  kText,           // utf8, all of one length
};

struct WorkloadSpec {
  KeyKind keys = KeyKind::kSparseI64;
  uint32_t text_bytes = 0;  // kText; a multiple of 8
  uint64_t build_rows = 0;
  uint64_t probe_rows = 0;
  uint32_t rows_per_key = 1;    // on the build side
  uint32_t hits_percent = 100;  // percentage of probe rows whose key the build side has
  double zipf = 0;              // exponent, above 1, of the distribution of probe keys; 0: uniform
  uint32_t payload_columns = 0;

  bool operator==(const WorkloadSpec&) const = default;
};

// "i64", "utf8": the type of the key in a kernel spec.
std::string KeyType(KeyKind keys);

// *Cost*: 1 to 20 ns a row and 1 ns a byte of text. *Threads*: any number may read it.
class JoinWorkload {
 public:
  explicit JoinWorkload(const WorkloadSpec& spec);

  const WorkloadSpec& spec() const { return spec_; }
  // Rows [first, first + rows) of a side, with its first `payload_columns` payload columns (i64, the same for both
  // sides).
  BatchView Build(uint64_t first, uint64_t rows, size_t payload_columns) const {
    return View(build_, first, rows, payload_columns);
  }
  BatchView Probe(uint64_t first, uint64_t rows, size_t payload_columns) const {
    return View(probe_, first, rows, payload_columns);
  }
  // The number of rows that a join of this kind returns for all probe rows.
  uint64_t ResultRows(JoinKind kind) const;

 private:
  struct Keys {
    uint32_t width_bytes = 0;  // 0: text
    std::vector<uint8_t> values;
    std::vector<int32_t> offsets;  // text
  };
  void MakeBuild();
  void MakeProbe();
  void Reserve(Keys* keys, uint64_t rows) const;
  void PutKey(Keys* keys, uint64_t row, uint64_t number) const;
  BatchView View(const Keys& keys, uint64_t first, uint64_t rows, size_t payload_columns) const;

  WorkloadSpec spec_;
  uint64_t num_keys_;  // distinct keys of the build side
  uint64_t num_hits_ = 0;
  uint64_t num_keys_hit_ = 0;
  Keys build_, probe_;
  std::vector<std::vector<uint64_t>> payload_;
};

}  // namespace quern::bench

#endif  // QUERN_BENCH_JOIN_JOIN_WORKLOAD_H_
