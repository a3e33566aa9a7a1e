// SPDX-License-Identifier: Apache-2.0
// The input of an aggregation that a bench runs: rows whose group numbers are known.
#ifndef QUERN_BENCH_AGGREGATE_AGG_WORKLOAD_H_
#define QUERN_BENCH_AGGREGATE_AGG_WORKLOAD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/rows/batch_view.h"
#include "runtime/spec/spec.h"

namespace quern::bench {

enum class GroupKey : uint8_t {
  kDenseI64,   // the group's number
  kSparseI64,  // 63 random bits
  kI32,        // 31 random bits
  kText,       // utf8, 8 to 23 bytes
};

struct AggWorkloadSpec {
  std::vector<GroupKey> keys;
  uint64_t num_groups = 0;  // groups that rows choose from, uniformly
  uint64_t num_rows = 0;
  bool is_sorted = false;  // rows of a group are neighbours

  bool operator==(const AggWorkloadSpec&) const = default;
};

// "i64,utf8": the keys as a kernel spec writes them.
std::string KeyTypes(const std::vector<GroupKey>& keys);

// *Threads*: any number may read it.
class AggWorkload {
 public:
  explicit AggWorkload(const AggWorkloadSpec& spec);

  const AggWorkloadSpec& spec() const { return spec_; }
  uint64_t num_groups_met() const { return num_groups_met_; }
  // Rows [first, first + rows), with a column of values for each of `arguments` (i64 or f64).
  BatchView View(uint64_t first, uint64_t rows, const std::vector<ColumnType>& arguments) const;

 private:
  struct Key {
    std::vector<uint8_t> values;
    std::vector<int32_t> offsets;  // text
  };
  void MakeKey(GroupKey kind, const std::vector<uint64_t>& groups, Key* key) const;

  AggWorkloadSpec spec_;
  uint64_t num_groups_met_ = 0;
  std::vector<Key> keys_;
  std::vector<int64_t> integers_;
  std::vector<double> numbers_;
};

}  // namespace quern::bench

#endif  // QUERN_BENCH_AGGREGATE_AGG_WORKLOAD_H_
