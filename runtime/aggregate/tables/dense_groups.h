// SPDX-License-Identifier: Apache-2.0
// Groups in an array: each key is a digit, counted from the smallest value of that key, and the digits together form
// the number of the group's cell.
#ifndef QUERN_RUNTIME_AGGREGATE_TABLES_DENSE_GROUPS_H_
#define QUERN_RUNTIME_AGGREGATE_TABLES_DENSE_GROUPS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "runtime/abi/aggregate_abi.h"
#include "runtime/base/memory.h"
#include "runtime/rows/prefetch.h"

namespace quern {

// One key's bits in the packed keys, and the range of values seen, as unsigned numbers in the order of the keys.
struct PackedKeyDigit {
  uint32_t shift = 0;
  uint64_t mask = 0;       // of the value's bits
  uint64_t sign_bit = 0;   // inverted, so that unsigned order is the order of the keys
  uint32_t null_bit = 64;  // of the packed keys; 64: the key is never null
  uint64_t min = UINT64_MAX;
  uint64_t max = 0;

  bool is_empty() const { return min > max; }
  // The number of digits that the key needs: its range, and one for null.
  uint64_t num_values() const;
};

// The ranges of all keys. UINT64_MAX stands for a product that exceeds 64 bits.
struct PackedKeyRanges {
  std::vector<PackedKeyDigit> digits;

  explicit PackedKeyRanges(const QuernRowLayout& group);
  PackedKeyRanges() = default;
  void Add(const uint64_t* words, uint32_t n);
  void Add(size_t key, uint64_t min, uint64_t max);
  uint64_t num_cells() const;
};

class DenseGroups {
 public:
  // Makes an empty array for the ranges. *Errors*: ResourceExhausted, which leaves the array as it was.
  absl::Status Begin(const QuernRowLayout& group, const PackedKeyRanges& ranges, bool huge_pages,
                     const std::shared_ptr<MemoryBudget>& budget);

  // Returns whether all words lie within the ranges; if not, `tuples` is undefined and no group is made.
  // packed_keys_ahead: prefetch distance in words, where they are a column that is read for the first time. *Cost*: one
  // line a word, prefetched as the setting says.
  bool Find(const uint64_t* words, uint32_t n, const PrefetchSetting& setting, uint8_t** tuples,
            uint32_t packed_keys_ahead = 0);

  const PackedKeyRanges& ranges() const { return ranges_; }
  uint64_t num_cells() const { return num_cells_; }
  uint64_t num_groups() const { return num_groups_ + (has_zero_ ? 1 : 0); }
  // *Threads*: any number at once.
  // ahead_bytes: prefetch distance, 0: none.
  uint32_t Scan(uint64_t begin, uint64_t end, uint64_t ahead_bytes, uint8_t** tuples) const;
  uint64_t bytes() const { return memory_.bytes(); }
  void Free() { memory_.Free(); }

 private:
  // A digit ready to be computed: (((word >> shift) & mask) ^ sign_bit) - min, plus first, times stride.
  struct Place {
    uint64_t shift, mask, sign_bit, min, size, stride, null_bit, first;
  };
  bool PlaceOf(const uint64_t* words, uint32_t n, uint64_t* cells) const;
  bool PlaceRows(const uint64_t* words, uint32_t n, uint32_t packed_keys_ahead, uint8_t** tuples) const;

  PackedKeyRanges ranges_;
  std::vector<Place> places_;
  HugeBuffer memory_;
  uint8_t* tuples_ = nullptr;
  uint64_t num_cells_ = 0;
  uint64_t num_groups_ = 0;  // without the word 0's
  uint64_t zero_cell_ = 0;   // num_cells_: the word 0 has none
  bool has_zero_ = false;
  uint32_t tuple_bytes_ = 0;
  uint32_t packed_bytes_ = 0;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_AGGREGATE_TABLES_DENSE_GROUPS_H_
