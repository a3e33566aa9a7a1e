// SPDX-License-Identifier: Apache-2.0
// Groups of packed keys that arrive in order: nothing is hashed or looked up.
#ifndef QUERN_RUNTIME_AGGREGATE_TABLES_SORTED_GROUPS_H_
#define QUERN_RUNTIME_AGGREGATE_TABLES_SORTED_GROUPS_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/abi/kernel_abi.h"
#include "runtime/base/memory.h"
#include "runtime/rows/tuple_store.h"

namespace quern {

// *Threads*: one; any number may Scan at once.
class SortedGroups {
 public:
  // Takes no memory yet.
  void Begin(const QuernRowLayout& group, bool huge_pages, std::shared_ptr<MemoryBudget> budget);

  // Whether the words are in order and none of them precedes the largest word so far.
  bool IsInOrder(const uint64_t* words, uint32_t n) const;
  // Sets tuples[i] to word i's group. The words must be in order. *Cost*: half a nanosecond a word; new tuples are
  // written sequentially.
  // *Errors*: ResourceExhausted, in which case no group is made.
  absl::Status Find(const uint64_t* words, uint32_t n, uint8_t** tuples);
  // Copies groups that lie elsewhere, in any order, into an empty table. *Errors*: as Find, after which some groups
  // have been copied.
  absl::Status Copy(uint8_t* const* from, const uint64_t* words, uint32_t n);

  uint64_t num_groups() const { return num_groups_; }
  uint32_t Scan(uint64_t begin, uint64_t end, uint8_t** tuples) const {
    return ScanSpans(spans_, span_positions_, bytes_, begin, end, tuples);
  }
  uint64_t bytes() const { return arena_ == nullptr ? 0 : arena_->bytes(); }
  void Free();

 private:
  uint64_t OrderOf(uint64_t word) const { return word ^ sign_bit_; }
  absl::Status MakeRoom(uint32_t n);

  std::unique_ptr<Arena> arena_;
  TupleList spans_;
  std::vector<uint64_t> span_positions_;  // of each span's first tuple
  uint64_t num_groups_ = 0;
  uint64_t last_word_ = 0;  // the largest
  uint8_t* last_tuple_ = nullptr;
  uint64_t sign_bit_ = 0;  // inverted, so that unsigned order is the order of the keys
  uint32_t bytes_ = 0;     // of a tuple
  uint32_t packed_bytes_ = 0;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_AGGREGATE_TABLES_SORTED_GROUPS_H_
