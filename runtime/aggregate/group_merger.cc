// SPDX-License-Identifier: Apache-2.0
// Merges the tables of several threads into one result, in one of three ways:
//
//     one thread, not partitioned   its table is the result
//     few groups in all             one thread adds the others' groups to the first table: 65,536 groups take about a
//                                   millisecond
//     many                          the groups of each thread are radix-partitioned by hash, a thread's groups a task;
//                                   then each partition is merged, one a task, into a table of its own: no two threads
//                                   ever meet
#include "runtime/aggregate/group_merger.h"

#include <algorithm>
#include <utility>

#include "runtime/aggregate/group_states.h"
#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"

namespace quern {
namespace {

constexpr uint64_t kFewGroups = thresholds::kSerialMergeGroups;
constexpr uint32_t kScanRows = 1024;

uint64_t NumTuples(const TupleList& list) {
  uint64_t n = 0;
  for (const TupleSpan& span : list) n += span.num_tuples;
  return n;
}

}  // namespace

GroupMerger::GroupMerger(const GroupContext& context, std::vector<LocalGroups*> locals)
    : context_(context), local_states_(std::move(locals)), work_([this] { return NextPhase(); }) {}

absl::StatusOr<std::optional<SharedWork::Phase>> GroupMerger::FirstPhase() {
  uint64_t num_groups = 0;
  bool any_dealt = false;
  for (LocalGroups* local : local_states_) {
    num_groups += local->table()->num_groups();
    any_dealt |= local->parts().is_partitioned();
  }
  if (local_states_.size() == 1 && !any_dealt) {
    tables_.push_back(local_states_[0]->TakeTable());
    return std::optional<SharedWork::Phase>();
  }
  const bool has_keys = context_.descriptor->group()->num_keys != 0;
  by_parts_ = any_dealt || (has_keys && num_groups > kFewGroups && context_.options.partition_bits != 0);
  SharedWork::Phase phase;
  phase.num_tasks = by_parts_ ? local_states_.size() : 1;
  phase.run = [this](uint64_t task) { return by_parts_ ? local_states_[task]->PartitionRows() : MergeIntoFirst(); };
  return std::optional<SharedWork::Phase>(std::move(phase));
}

absl::StatusOr<std::optional<SharedWork::Phase>> GroupMerger::NextPhase() {
  if (++num_phases_ == 1) return FirstPhase();
  if (num_phases_ > 2 || !by_parts_) return std::optional<SharedWork::Phase>();
  uint64_t num_rows = 0;
  for (const LocalGroups* local : local_states_) {
    num_rows += local->num_rows();
    expected_groups_ = std::max(expected_groups_, local->expected_groups());
  }
  expected_groups_ = GroupsMet(num_rows, expected_groups_);
  SharedWork::Phase phase;
  phase.num_tasks = uint64_t{1} << context_.options.partition_bits;
  tables_.resize(phase.num_tasks);
  memories_.resize(phase.num_tasks);
  phase.run = [this](uint64_t part) { return MergePartition(part); };
  return std::optional<SharedWork::Phase>(std::move(phase));
}

absl::Status GroupMerger::MergeIntoFirst() {
  std::sort(local_states_.begin(), local_states_.end(),
            [](LocalGroups* a, LocalGroups* b) { return a->table()->bytes() > b->table()->bytes(); });
  GroupTable* const into = local_states_[0]->table();
  uint8_t *from[kScanRows], *found[kScanRows];
  uint64_t hashes[kScanRows];
  for (size_t s = 1; s < local_states_.size(); ++s) {
    GroupTable* const table = local_states_[s]->table();
    for (uint64_t begin = 0; begin < table->num_positions(); begin += kScanRows) {
      const uint32_t n = table->Scan(begin, std::min<uint64_t>(begin + kScanRows, table->num_positions()), from);
      if (n == 0) continue;
      table->HashesOf(begin, from, n, hashes);
      QUERN_RETURN_IF_ERROR(into->FindTuples({from, hashes, n}, found));
      QUERN_RETURN_IF_ERROR(MergeStates(*context_.descriptor, found, from, n, local_states_[0]->memory()));
    }
  }
  tables_.push_back(local_states_[0]->TakeTable());
  return absl::OkStatus();
}

absl::Status GroupMerger::MergePartition(uint64_t part) {
  uint64_t num_tuples = 0;
  for (LocalGroups* local : local_states_) num_tuples += NumTuples(local->parts().parts()[part]);
  GroupContext context = context_;
  context.common_bits = context_.options.partition_bits;
  // A partition's groups are scattered over the whole range of keys: an array does not pay.
  if (context.options.layout != GroupLayout::kDirectory) context.options.layout = GroupLayout::kOpen;
  // Not one group for each tuple, because a group may have many tuples: the table would exceed the cache and be mostly
  // empty.
  tables_[part] =
      MakeGroupTable(context, std::min(num_tuples, (expected_groups_ >> context_.options.partition_bits) + 1));
  memories_[part] = std::make_unique<AccumulatorMemory>(context_.budget, context_.options.host);
  for (LocalGroups* local : local_states_)
    QUERN_RETURN_IF_ERROR(MergePart(context, local->parts().parts()[part], tables_[part].get(), memories_[part].get()));
  return absl::OkStatus();
}

}  // namespace quern
