// SPDX-License-Identifier: Apache-2.0
// Merges the thread-local groups of an aggregation.
#ifndef QUERN_RUNTIME_AGGREGATE_GROUP_MERGER_H_
#define QUERN_RUNTIME_AGGREGATE_GROUP_MERGER_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "runtime/aggregate/local_groups.h"
#include "runtime/aggregate/tables/group_table.h"
#include "runtime/base/shared_work.h"

namespace quern {

class GroupMerger {
 public:
  GroupMerger(const GroupContext& context, std::vector<LocalGroups*> locals);

  // The work after which the tables are complete. *Errors*: ResourceExhausted, OutOfRange.
  SharedWork* work() { return &work_; }

  // The groups, each in one table. Call it when the work is done.
  std::vector<std::unique_ptr<GroupTable>> TakeTables() { return std::move(tables_); }

 private:
  absl::StatusOr<std::optional<SharedWork::Phase>> NextPhase();
  absl::StatusOr<std::optional<SharedWork::Phase>> FirstPhase();
  absl::Status MergeIntoFirst();
  absl::Status MergePartition(uint64_t part);

  GroupContext context_;
  std::vector<LocalGroups*> local_states_;
  uint32_t num_phases_ = 0;
  bool by_parts_ = false;
  uint64_t expected_groups_ = 0;  // of all rows
  std::vector<std::unique_ptr<GroupTable>> tables_;
  std::vector<std::unique_ptr<AccumulatorMemory>> memories_;  // of states that merging created
  SharedWork work_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_AGGREGATE_GROUP_MERGER_H_
