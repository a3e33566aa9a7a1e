// SPDX-License-Identifier: Apache-2.0
// Merges the thread-local groups of an aggregation.
#ifndef QUERN_RUNTIME_AGGREGATE_GROUP_MERGER_H_
#define QUERN_RUNTIME_AGGREGATE_GROUP_MERGER_H_

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "runtime/aggregate/local_groups.h"
#include "runtime/aggregate/spilled_groups.h"
#include "runtime/aggregate/tables/group_table.h"
#include "runtime/base/shared_work.h"

namespace quern {

class GroupMerger {
 public:
  // spilled: where groups go if memory for merging them is refused, all of them; null: that is an error. spills: they
  // go there at once.
  GroupMerger(const GroupContext& context, std::vector<LocalGroups*> locals, SpilledGroups* spilled, bool spills);

  // The work after which the tables, or the spilled partitions, are complete. *Errors*: ResourceExhausted, OutOfRange;
  // those of the store.
  SharedWork* work() { return &work_; }

  // Whether all groups were spilled. Call it when the work is done, as the next.
  bool has_spilled() const { return spills_; }
  // The groups, each in one table; none where they were spilled.
  std::vector<std::unique_ptr<GroupTable>> TakeTables() { return std::move(tables_); }

 private:
  using NextPhase = absl::StatusOr<std::optional<SharedWork::Phase>>;
  NextPhase Next();
  NextPhase FirstPhase();
  NextPhase SecondPhase();
  NextPhase NextToSpill();
  absl::Status Merge(uint64_t task);
  absl::Status MergeIntoFirst();
  absl::Status MergePartition(uint64_t part);
  bool IsBroken(uint64_t task) const;
  absl::Status SpillMerged(uint64_t number);
  absl::Status KeepBlocks();

  GroupContext context_;
  std::vector<LocalGroups*> local_states_;
  SpilledGroups* const spilled_;
  std::atomic<bool> spills_;
  uint32_t num_phases_ = 0, num_spill_phases_ = 0;
  bool by_parts_ = false;
  const bool has_blocks_;  // the partitions of some threads, and then of all, lie in blocks
  const uint64_t num_parts_;
  uint64_t expected_groups_ = 0;  // of all rows
  std::vector<std::unique_ptr<GroupTable>> tables_;
  std::vector<std::unique_ptr<AccumulatorMemory>> memories_;  // of states that merging created
  SharedWork work_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_AGGREGATE_GROUP_MERGER_H_
