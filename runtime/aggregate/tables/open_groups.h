// SPDX-License-Identifier: Apache-2.0
// Open addressing over packed keys. A slot is a group's tuple, so one cache line holds key and states; an empty slot is
// zero, so fresh pages are an empty table.
#ifndef QUERN_RUNTIME_AGGREGATE_TABLES_OPEN_GROUPS_H_
#define QUERN_RUNTIME_AGGREGATE_TABLES_OPEN_GROUPS_H_

#include <memory>

#include "absl/status/status.h"
#include "runtime/abi/aggregate_abi.h"
#include "runtime/base/hash_secret.h"
#include "runtime/base/memory.h"
#include "runtime/rows/prefetch.h"

namespace quern {

class OpenGroups {
 public:
  // Makes an empty table of 2^bits slots. common_bits: top bits of the hash that are the same for all keys of this
  // table.
  // *Errors*: ResourceExhausted, which leaves the table unchanged.
  absl::Status Begin(const QuernRowLayout& group, uint32_t bits, uint32_t common_bits, bool huge_pages,
                     const std::shared_ptr<MemoryBudget>& budget);
  // Makes the table 2^more_bits times as large. *Cost*: one sequential pass over both, because slots are in the order
  // of hashes.
  // *Errors*: ResourceExhausted, which leaves the table unchanged.
  absl::Status Grow(uint32_t more_bits, bool huge_pages, const std::shared_ptr<MemoryBudget>& budget);
  // Hashes all words anew with a secret of the table's own. *Cost*: a random line a group; memory for a second table.
  // *Errors*: ResourceExhausted, which leaves the table unchanged.
  absl::Status Rehash(bool huge_pages, const std::shared_ptr<MemoryBudget>& budget);

  // What a lookup took: words that were there already, and slots that were examined after a word's first. too_far: a
  // walk was longer than words that are spread have; some words have no tuple yet. The caller then calls Rehash, and
  // Find again.
  struct Steps {
    uint64_t hits, further;
    bool too_far = false;
  };

  // There must be room for n more. packed_keys_ahead: prefetch distance in words, where they are a column that is read
  // for the first time. *Cost*: one random line a word, prefetched as the setting says.
  Steps Find(const uint64_t* words, uint32_t n, const PrefetchSetting& setting, uint8_t** tuples,
             uint32_t packed_keys_ahead = 0);

  uint64_t num_groups() const { return num_groups_ + (has_zero_ ? 1 : 0); }
  uint64_t num_slots() const { return num_slots_; }
  uint64_t num_positions() const { return num_slots_ + 1; }  // the last one is for the word 0
  // ahead_bytes: prefetch distance, 0: none.
  uint32_t Scan(uint64_t begin, uint64_t end, uint64_t ahead_bytes, uint8_t** tuples) const;
  uint64_t bytes() const { return memory_.bytes() + growing_.bytes(); }
  // Whether Grow was refused memory when it had begun to move groups, which takes tens of tuples that hash to the
  // table's end.
  bool is_broken() const { return is_broken_; }
  void Free() {
    memory_.Free();
    growing_.Free();
  }

 private:
  template <class Word, uint32_t kBytes>
  Steps FindAs(const uint64_t* words, uint32_t n, uint32_t packed_keys_ahead, const PrefetchSetting& setting,
               uint8_t** tuples);
  absl::Status Allocate(uint64_t bytes, bool huge_pages, const std::shared_ptr<MemoryBudget>& budget);
  template <class F>
  void WithWordAndBytes(F&& f) const;
  template <class Word, uint32_t kBytes>
  void CopyTo(OpenGroups* larger) const;
  // Tuples that SpreadOut has taken out.
  struct Moving {
    std::vector<uint8_t> waiting, block;
  };
  template <class Word, uint32_t kBytes>
  void SpreadOut(uint64_t old_num_slots, Moving* moving);
  template <class Word, uint32_t kBytes>
  bool PutFrom(const uint8_t* tuple, uint64_t hash, uint64_t first_free);
  void Hash(const uint64_t* words, uint32_t n, uint64_t* hashes) const;
  absl::Status MoveTo(OpenGroups* other, uint32_t bits, bool huge_pages, const std::shared_ptr<MemoryBudget>& budget);
  void SetPairs();
  // The slot at which the search for a word begins; hash: a result of Hash.
  uint64_t FirstSlot(uint64_t hash) const { return (hash >> shift_) & first_slot_mask_; }

  HugeBuffer memory_;      // of a small table
  GrowingBuffer growing_;  // of a large one
  uint8_t* slots_ = nullptr;
  uint64_t num_slots_ = 0;
  uint32_t shift_ = 64;  // slot of hash h: ((h << common_bits_) >> shift_) & first_slot_mask_
  uint32_t common_bits_ = 0;
  uint64_t first_slot_mask_ = ~uint64_t{0};
  uint32_t slot_bytes_ = 0;
  uint32_t packed_bytes_ = 0;
  bool zero_hashes_ = false;
  bool has_secret_ = false;  // hashes are made with secret_, not with that of the process
  TableSecret secret_;
  uint64_t num_groups_ = 0;  // without the word 0's
  bool has_zero_ = false;
  bool is_broken_ = false;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_AGGREGATE_TABLES_OPEN_GROUPS_H_
