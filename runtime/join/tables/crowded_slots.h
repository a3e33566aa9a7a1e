// SPDX-License-Identifier: Apache-2.0
// Slots of an unchained table in which so many different keys meet that a probe must not compare them all
// (thresholds.def): somebody has made these keys. Such tuples are grouped by hash, and found by it.
#ifndef QUERN_RUNTIME_JOIN_TABLES_CROWDED_SLOTS_H_
#define QUERN_RUNTIME_JOIN_TABLES_CROWDED_SLOTS_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/abi/join_abi.h"
#include "runtime/base/hash_secret.h"
#include "runtime/base/memory.h"
#include "runtime/join/tables/unchained_table.h"

namespace quern {

// The tuples of one hash in a crowded slot, in bytes from the table's first tuple. They lie next to each other.
struct HashRun {
  uint64_t hash = 0;
  uint64_t begin = 0;
  uint64_t end = 0;  // 0: none
};
// The runs of some crowded slots.
struct HashRuns {
  std::vector<HashRun> runs;
  std::vector<uint64_t> slots;  // where the tuples of each slot begin, in bytes
};

// Groups the tuples of the slots build.crowded by hash, within their slots, after ScatterTuples, and appends their
// runs. spans: all tuples of the slots' range. *Cost*: the slots are read; the tuples that do not have a
// slot's most frequent hash are sorted. *Errors*: ResourceExhausted.
absl::Status GroupCrowded(const UnchainedBuild& build, const TupleList& spans,
                          const std::shared_ptr<MemoryBudget>& budget, HashRuns* runs);

// Finds runs by hash: an open-addressing table under a secret of its own. *Threads*: any number of readers.
class CrowdedSlots {
 public:
  // *Errors*: ResourceExhausted.
  static absl::StatusOr<std::unique_ptr<CrowdedSlots>> Make(const std::vector<HashRuns>& runs, uint32_t tuple_bytes,
                                                            const std::shared_ptr<MemoryBudget>& budget);

  // Replaces the tuples of a crowded slot by those of the row's hash, and removes rows whose hash has none. Returns the
  // number of candidates left. hashes: of the hash batch. *Cost*: 1 ns a candidate; for each in a slot of many tuples,
  // a binary search among the crowded slots and a random line.
  uint32_t Narrow(const uint64_t* hashes, uint32_t n, QuernCandidate* candidates) const;

 private:
  CrowdedSlots() = default;
  const HashRun* slots() const { return reinterpret_cast<const HashRun*>(memory_.data()); }
  uint64_t SlotOf(uint64_t hash) const { return secret_.Remix(hash) >> shift_; }
  const HashRun& Find(uint64_t hash) const;

  bool IsCrowded(uint64_t begin) const { return std::binary_search(crowded_.begin(), crowded_.end(), begin); }

  HugeBuffer memory_;
  std::vector<uint64_t> crowded_;  // where the tuples of each crowded slot begin, in bytes; ascending
  TableSecret secret_;
  uint64_t mask_ = 0;
  uint32_t shift_ = 0;
  uint64_t most_bytes_ = 0;  // of a slot that is certainly not crowded
};

}  // namespace quern

#endif  // QUERN_RUNTIME_JOIN_TABLES_CROWDED_SLOTS_H_
