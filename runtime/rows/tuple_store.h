// SPDX-License-Identifier: Apache-2.0
// The tuples of one appender until the table is built: in order of arrival while they are few (*flat*), then
// radix-partitioned by the top bits of their hashes. Each *partition* becomes a contiguous range of the table, which
// one thread builds in its cache.
#ifndef QUERN_RUNTIME_ROWS_TUPLE_STORE_H_
#define QUERN_RUNTIME_ROWS_TUPLE_STORE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/abi/kernel_abi.h"
#include "runtime/base/memory.h"

namespace quern {

// Tuples that lie next to each other in memory.
struct TupleSpan {
  uint8_t* tuples = nullptr;
  uint64_t* hashes = nullptr;  // one per tuple; nullptr: packed keys, whose hash is computed from the word
  uint64_t num_tuples = 0;
  uint64_t capacity = 0;
};
using TupleList = std::vector<TupleSpan>;

// Makes room for one element more, so that a push_back after other things that may fail cannot. *Errors*: throws
// std::bad_alloc, and changes nothing.
template <class T>
void ReserveOne(std::vector<T>* elements) {
  if (elements->size() == elements->capacity()) elements->reserve(2 * elements->size() + 1);
}

struct TupleFormat {
  uint32_t tuple_bytes = 0;
  uint32_t packed_bytes = 0;  // 0: hashes are stored in an array of their own
  bool zero_hashes = false;
  uint32_t prefetch_bytes = 0;               // prefetch distance behind each partition's last tuple; 0: none
  uint64_t span_bytes = uint64_t{32} << 10;  // by which a partition grows (a guess: 64 of eight pages each are 2 MB)
  // Neighbouring partitions are divided into up to so many groups, each of which has pages of its own: a table that
  // takes the tuples then takes whole large pages. A power of two.
  uint32_t part_groups = 1;
};

// Hashes of n words; all 0 where `zero`. *Cost*: about 1 ns a word.
void HashPackedKeys(const uint64_t* words, uint32_t n, bool zero, uint64_t* hashes);
// Loads the words of n neighbouring tuples.
void LoadPackedKeys(const uint8_t* tuples, uint32_t n, const TupleFormat& format, uint64_t* words);
// Loads or computes the hashes of n tuples of a span, starting with tuple number `first`.
void LoadHashes(const TupleSpan& span, uint64_t first, uint32_t n, const TupleFormat& format, uint64_t* hashes);

// Writes the addresses of tuples begin .. end-1 of a list whose spans begin at `positions`; returns their number.
// *Cost*: a search, then 1 ns a tuple. *Threads*: any number at once.
uint32_t ScanSpans(const TupleList& spans, const std::vector<uint64_t>& positions, uint64_t tuple_bytes, uint64_t begin,
                   uint64_t end, uint8_t** tuples);

class TupleStore {
 public:
  TupleStore(const TupleFormat& format, std::shared_ptr<MemoryBudget> budget, bool huge_pages);

  // Returns the last span of the flat list, with room for at least one tuple; `rows` is the number still to come. The
  // caller writes the tuples and raises num_tuples.
  absl::StatusOr<TupleSpan*> FlatSpan(uint64_t rows);
  // Removes the last n tuples of the flat list. Their memory stays for the next ones.
  void ForgetFlat(uint64_t n);

  // Moves the flat tuples into 2^bits partitions. *Cost*: one pass. *Errors*: ResourceExhausted, which leaves them
  // flat.
  absl::Status Partition(uint32_t bits);
  bool is_partitioned() const { return !parts_.empty(); }
  // Adds tuples to their partitions. *Cost*: one copy per tuple, into as many streams as there are partitions.
  // *Errors*: ResourceExhausted, which leaves the partitions as they were.
  absl::Status Partition(const uint8_t* tuples, const uint64_t* hashes, uint32_t n);
  // The same for tuples at arbitrary addresses.
  absl::Status Partition(uint8_t* const* tuples, const uint64_t* hashes, uint32_t n);
  // Removes n tuples with these hashes, which were the last to be added to their partitions.
  void Forget(const uint64_t* hashes, uint32_t n);

  // Exchanges the tuples of the partitions from number `first` on with another store of as many partitions, both with
  // one group. Their memory stays where it is: each store must live as long as the other one.
  void SwapParts(uint64_t first, TupleStore* other);

  // Lets the bytes of all partitions stay reserved for a table that takes their tuples. Returns them.
  uint64_t DisownParts();
  // The tuples of a partition are in `elsewhere` now, which may be empty. Frees the memory of a group with its last
  // partition; where there is one group, gives the small pages of each partition back to the system. *Threads*: any,
  // each with another partition.
  void ReplacePart(uint64_t part, const TupleSpan& elsewhere);
  uint64_t part_bytes() const;
  uint64_t num_groups() const { return groups_.size(); }
  uint64_t GroupOf(uint64_t part) const { return part >> group_shift_; }
  uint64_t largest_group_bytes() const;

  const TupleList& flat() const { return flat_; }
  const std::vector<TupleList>& parts() const { return parts_; }
  TupleList* mutable_part(uint64_t part) { return &parts_[part]; }
  uint64_t num_tuples() const;
  void Clear();

 private:
  uint64_t TupleBytesOf(uint64_t rows) const;
  uint64_t BytesOf(uint64_t rows) const;
  absl::Status Extend(TupleList* list, Arena* arena, uint64_t rows);
  absl::Status PartitionFlat();
  template <class TupleAt>
  absl::Status PartitionAll(TupleAt tuple_at, const uint64_t* hashes, uint32_t n);

  TupleFormat format_;
  // The partitions of a group. left: those that have not been replaced.
  struct PartGroup {
    PartGroup(Arena memory, uint64_t num_parts) : arena(std::move(memory)), left(num_parts) {}
    Arena arena;
    std::atomic<uint64_t> left;
  };
  void ClearParts();

  std::shared_ptr<MemoryBudget> budget_;
  bool huge_pages_;
  Arena flat_arena_;
  std::vector<std::unique_ptr<PartGroup>> groups_;  // while there are partitions
  TupleList flat_;
  size_t open_span_ = 0;  // the span of flat_ that is being filled; those behind it are empty
  uint32_t part_shift_ = 0;
  uint32_t group_shift_ = 0;
  std::vector<TupleList> parts_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_ROWS_TUPLE_STORE_H_
