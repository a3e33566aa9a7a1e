// SPDX-License-Identifier: Apache-2.0
// Open addressing over words. A slot is a group's tuple, so that key and states are found by one cache line; an empty
// one is zero, so that fresh pages are an empty table.
#ifndef QUERN_RUNTIME_AGGREGATE_TABLES_OPEN_GROUPS_H_
#define QUERN_RUNTIME_AGGREGATE_TABLES_OPEN_GROUPS_H_

#include <memory>

#include "absl/status/status.h"
#include "runtime/abi/aggregate_abi.h"
#include "runtime/base/memory.h"
#include "runtime/rows/prefetch.h"

namespace quern {

class OpenGroups {
 public:
  // Makes an empty table of 2^bits slots. common_bits: top bits of the hash that tell nothing here.
  // *Errors*: ResourceExhausted, which leaves the table as it was.
  absl::Status Begin(const QuernJoinDescriptor& group, uint32_t bits, uint32_t common_bits, bool huge_pages,
                     const std::shared_ptr<MemoryBudget>& budget);
  // Makes it 2^more_bits times as large. *Cost*: one sequential pass over both, since slots are in the order of hashes.
  // *Errors*: ResourceExhausted, which leaves the table as it was.
  absl::Status Grow(uint32_t more_bits, bool huge_pages, const std::shared_ptr<MemoryBudget>& budget);

  // What finding words took: those that were there already, and slots that were looked at after a word's first.
  struct Steps {
    uint64_t hits, further;
  };

  // There must be room for n more. packed_keys_ahead: words further on that are asked for, where they are a column that
  // is read for the first time. *Cost*: one random line a word, asked for as the setting says.
  Steps Find(const uint64_t* words, uint32_t n, const PrefetchSetting& setting, uint8_t** tuples,
             uint32_t packed_keys_ahead = 0);

  uint64_t num_groups() const { return num_groups_ + (has_zero_ ? 1 : 0); }
  uint64_t num_slots() const { return num_slots_; }
  uint64_t num_positions() const { return num_slots_ + 1; }  // the last one is the word 0's
  // ahead_bytes: prefetch distance, 0: none.
  uint32_t Scan(uint64_t begin, uint64_t end, uint64_t ahead_bytes, uint8_t** tuples) const;
  uint64_t bytes() const { return memory_.bytes() + growing_.bytes(); }
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
  template <class Word, uint32_t kBytes>
  void SpreadOut(uint64_t old_num_slots);
  template <class Word, uint32_t kBytes>
  bool PutFrom(const uint8_t* tuple, uint64_t hash, uint64_t first_free);
  void Hash(const uint64_t* words, uint32_t n, uint64_t* hashes) const;
  void SetPairs();
  // Of a hash that Hash has made: where a word is looked for first.
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
  uint64_t num_groups_ = 0;  // without the word 0's
  bool has_zero_ = false;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_AGGREGATE_TABLES_OPEN_GROUPS_H_
