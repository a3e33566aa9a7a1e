// SPDX-License-Identifier: Apache-2.0
// Caches the groups of short keys that fit one machine word together, of which there are often few.
#ifndef QUERN_RUNTIME_AGGREGATE_TABLES_GROUP_CACHE_H_
#define QUERN_RUNTIME_AGGREGATE_TABLES_GROUP_CACHE_H_

#include <cstdint>
#include <vector>

#include "runtime/aggregate/tables/group_table.h"
#include "runtime/base/adaptive_gate.h"

namespace quern {

// *Ownership*: none; addresses that it has learnt are returned until Forget. *Threads*: one.
class GroupCache {
 public:
  // Where a test makes the key's hash constant in order to test collisions, all rows are looked up elsewhere.
  explicit GroupCache(const QuernRowLayout& group, bool adapts = true);

  // Returns whether the rows were looked up. If so, tuples[i] is the group of row i except for the rows listed in
  // `others` (room for rows.n), whose groups the caller passes to Learn. *Cost*: 1 ns a string and 1 ns a row; where it
  // does not pay, only for a few batches.
  bool Look(const KeyRows& rows, uint8_t** tuples, uint32_t* others, uint32_t* num_others);
  // found[o] is the group of row others[o] of the last Look.
  void Learn(const uint32_t* others, uint32_t num_others, uint8_t* const* found);
  void Forget();

  // For tests: use no instructions that only some processors have.
  void UseNoVectors() { uses_vectors_ = false; }

 private:
  struct Entry {
    uint64_t word;  // 0: nothing
    uint8_t* tuple;
  };
  bool PackKeys(const KeyRows& rows);
  bool Fits(const std::vector<uint32_t>& bytes);
  uint32_t LookUp(uint32_t n, uint8_t** tuples, uint32_t* others) const;
  uint32_t LookAmongFew(uint32_t n, uint8_t** tuples, uint32_t* others) const;
  Entry* EntryOf(uint64_t word) { return &entries_[word * kMultiplier >> (64 - kNumEntriesLog2)]; }

  static constexpr uint32_t kNumEntriesLog2 = 10;  // 16 KiB, half of an L1 cache
  static constexpr uint32_t kRegisterCache = 8;
  static constexpr uint64_t kMultiplier = 0x9e3779b97f4a7c15u;

  const QuernRowLayout& group_;
  bool serves_;  // whether this descriptor's keys qualify
  AdaptiveGate gate_;
  std::vector<uint32_t> bytes_;  // of the word, by key; for a string one more than its bytes
  uint32_t refusals_ = 0;        // consecutive batches whose keys did not fit
  std::vector<uint64_t> words_;
  std::vector<Entry> entries_;
  Entry few_[kRegisterCache] = {};  // the words that were learnt first
  uint32_t num_words_known_ = 0;
  bool uses_vectors_ = true;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_AGGREGATE_TABLES_GROUP_CACHE_H_
