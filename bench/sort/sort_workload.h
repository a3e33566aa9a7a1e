// SPDX-License-Identifier: Apache-2.0
// The input of a sort that a bench runs.
#ifndef QUERN_BENCH_SORT_SORT_WORKLOAD_H_
#define QUERN_BENCH_SORT_SORT_WORKLOAD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/rows/batch_view.h"
#include "runtime/rows/output_batch.h"
#include "runtime/spec/spec.h"

namespace quern::bench {

enum class SortKey : uint8_t {
  kI64,           // 64 random bits
  kI32,           // 32 random bits
  kF64,           // random numbers from -1e6 to 1e6
  kCategory,      // i32, one of 100
  kText16,        // utf8, 16 random characters of 64
  kWord,          // utf8, one of 20,000 words of 4 to 12 letters
  kFewU64,        // one of 1,000 sparse numbers
  kFewI64,        // one of 10 sparse numbers
  kManufacturer,  // utf8, p_mfgr of TPC-H: one of 5, which differ only in the last byte
  kPartName,      // utf8, p_name of TPC-H: five of 92 colours
};

enum class RowOrder : uint8_t {
  kRandom,
  kSorted,
  kReversed,
  kOnePercentMoved,  // sorted, except that one row in a hundred has a random value
  kTenPairs,         // sorted, then ten pairs of rows are exchanged
  kOneValue,
  kThousandValues,  // in random order
};

struct SortWorkloadSpec {
  std::vector<SortKey> keys;
  uint64_t num_rows = 0;
  RowOrder order = RowOrder::kRandom;  // for kPartName only kRandom

  bool operator==(const SortWorkloadSpec&) const = default;
};

bool IsText(SortKey key);
// The bytes of a value that is not a text.
size_t BytesOf(SortKey key);

// "i64:out,utf8(utf8mb4_bin):out": the keys as a kernel spec writes them. collation: that of the texts; empty: the
// default.
std::string KeyList(const std::vector<SortKey>& keys, const std::string& collation = "");

// *Threads*: any number may read it.
class SortWorkload {
 public:
  explicit SortWorkload(const SortWorkloadSpec& spec);

  const SortWorkloadSpec& spec() const { return spec_; }
  // Rows [first, first + rows), with that many payload columns of row ids.
  BatchView View(uint64_t first, uint64_t rows, size_t num_rowids) const;
  // The values of a key of kind kI64.
  const int64_t* Integers(size_t key) const;
  // For each key the sum of the hashes of its values: equal if a result has the same values in any order.
  std::vector<uint64_t> Checksums() const;

 private:
  struct Key {
    std::vector<uint8_t> values;
    std::vector<int32_t> offsets;  // texts
  };
  void MakeKey(SortKey kind, const std::vector<uint64_t>& points, Key* key) const;

  SortWorkloadSpec spec_;
  std::vector<Key> keys_;
};

// A row of a batch or of a result whose columns have these keys; for a text, `bytes` are those of the whole column.
struct SortValue {
  SortKey key;
  const void* values;
  const void* offsets;
  const uint8_t* bytes;
  CollationRule rule = 0;  // for a text
};
SortValue ValueOf(SortKey key, const QuernOutColumn& column, CollationRule rule = 0);
// Negative, 0 or positive, in the order of a sort.
int CompareRows(const SortValue& a, uint64_t row_a, const SortValue& b, uint64_t row_b);
uint64_t HashRow(const SortValue& column, uint64_t row);

}  // namespace quern::bench

#endif  // QUERN_BENCH_SORT_SORT_WORKLOAD_H_
