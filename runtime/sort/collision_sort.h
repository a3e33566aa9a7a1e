// SPDX-License-Identifier: Apache-2.0
// Sorts rows whose sort-key prefixes are equal although their keys may differ (prefix collisions).
#ifndef QUERN_RUNTIME_SORT_COLLISION_SORT_H_
#define QUERN_RUNTIME_SORT_COLLISION_SORT_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "runtime/rows/prefetch.h"
#include "runtime/sort/prefix_sort.h"
#include "runtime/sort/sort_chunk.h"
#include "runtime/sort/sort_prefixes.h"

namespace quern {

// *Threads*: one.
class CollisionSorter {
 public:
  // by_row_id: rows that are equal by all comparison keys are sorted by row id. setting: how to prefetch what
  // comparison keys read. Its first stage prefetches a word, a row id or a string's field, at twice the distance; its
  // second stage prefetches a string's bytes.
  CollisionSorter(const QuernSortDescriptor* descriptor, const PrefixLayout* layout, const SortChunks* chunks,
                  bool by_row_id, const PrefetchSetting& setting, std::shared_ptr<MemoryBudget> budget);

  // Sorts the collided rows among n sorted prefixes.
  // *Cost*: a random line or two for each collided row, prefetched, and sorting pairs of words.
  // *Errors*: ResourceExhausted.
  absl::Status Sort(uint64_t* entries, uint64_t n);
  uint64_t num_collided() const { return num_collided_; }

 private:
  // Eight more bytes of a row's key, and the row's number.
  struct Pair {
    uint64_t word;
    uint64_t row;
  };
  // Pairs that are equal by all comparison keys before `step` and, where that one is a tail, in the bytes before
  // from_byte.
  struct Group {
    uint64_t begin;
    uint64_t n;
    uint32_t step;
    uint32_t from_byte;
    uint64_t prefetch_rows = 0;  // n if the group prefetches its own rows
  };
  struct Cursor;
  absl::Status FindCollisions(const uint64_t* entries, uint64_t n);
  template <class Prefetch>
  void PrefetchFar(const Group& group, uint64_t i) const;
  template <class Prefetch>
  void PrefetchNear(const Group& group, uint64_t i) const;
  template <class Prefetch>
  void PrefetchInside(const Group& group, uint64_t i) const;
  uint64_t RowsToPrefetchInside(const Group& group) const;
  template <class Prefetch>
  void PrefetchAhead(uint64_t done, Cursor* far, Cursor* near) const;
  template <class Prefetch>
  absl::Status TakeRound();
  template <class Prefetch>
  absl::Status TakeStep(const Group& group);
  template <class Prefetch>
  absl::Status TakeTailStep(const Group& group, const QuernSortKey& key);
  template <class Prefetch>
  absl::Status TakeWeighedStep(const Group& group, const QuernSortKey& key);
  struct WeighedWords {
    bool are_equal;
    bool go_on;  // some key has more bytes
  };
  static constexpr uint32_t kAllBytes = 0xffffffffu;
  template <class Prefetch>
  WeighedWords ReadKeys(const Group& group, const QuernSortKey& key, uint32_t from);
  uint32_t CommonKeyBytes(const Group& group, const QuernSortKey& key, uint32_t from);
  absl::Status Split(const Group& group, uint32_t next_step, uint32_t from_byte);

  const QuernSortDescriptor* descriptor_;
  const PrefixLayout* layout_;
  const SortChunks* chunks_;
  const bool by_row_id_;
  const PrefetchSetting setting_;
  PrefixSorter sorter_;
  std::shared_ptr<MemoryBudget> budget_;
  HugeBuffer memory_;  // holds the pairs
  Pair* pairs_ = nullptr;
  std::vector<uint64_t> runs_;  // where collided runs of prefixes begin
  std::vector<Group> groups_;   // of this round
  std::vector<Group> next_groups_;
  uint64_t num_collided_ = 0;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_SORT_COLLISION_SORT_H_
