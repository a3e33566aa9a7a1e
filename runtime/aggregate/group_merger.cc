// SPDX-License-Identifier: Apache-2.0
// Merges the tables of several threads into one result, in one of three ways:
//
//     one thread, not partitioned   its table is the result
//     few groups in all             one thread adds the others' groups to the first table: 65,536 groups take about a
//                                   millisecond
//     many                          the groups of each thread are radix-partitioned by hash, a thread's groups a task;
//                                   then each partition is merged, one a task, into a table of its own: no two threads
//                                   ever meet
//
// Where memory is refused on the way and the job spills, all groups are written, those that were merged and those that
// were not: a refused merge leaves each state in one of the two.
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

}  // namespace

GroupMerger::GroupMerger(const GroupContext& context, std::vector<LocalGroups*> locals, SpilledGroups* spilled,
                         bool spills)
    : context_(context),
      local_states_(std::move(locals)),
      spilled_(spilled),
      spills_(spills),
      has_blocks_(std::any_of(local_states_.begin(), local_states_.end(),
                              [](const LocalGroups* local) { return local->uses_blocks(); })),
      num_parts_(has_blocks_ ? spilled->spill()->num_partitions() : uint64_t{1} << context.options.partition_bits),
      work_([this] { return Next(); }) {}

GroupMerger::NextPhase GroupMerger::Next() {
  if (has_blocks_ && spilled_->is_used()) spills_ = true;  // some were written when they were partitioned
  if (spills_) return NextToSpill();
  if (++num_phases_ == 1) return FirstPhase();
  if (num_phases_ == 2 && by_parts_) return SecondPhase();
  return std::optional<SharedWork::Phase>();
}

GroupMerger::NextPhase GroupMerger::FirstPhase() {
  uint64_t num_groups = 0;
  bool any_dealt = false;
  for (LocalGroups* local : local_states_) {
    num_groups += local->table()->num_groups();
    any_dealt |= local->is_partitioned();
  }
  if (local_states_.size() == 1 && !any_dealt) {
    tables_.push_back(local_states_[0]->TakeTable());
    return std::optional<SharedWork::Phase>();
  }
  const bool has_keys = context_.descriptor->group()->num_keys != 0;
  by_parts_ = any_dealt || (has_keys && num_groups > kFewGroups && context_.options.partition_bits != 0);
  SharedWork::Phase phase;
  phase.num_tasks = by_parts_ ? local_states_.size() : 1;
  phase.run = [this](uint64_t task) { return Merge(task); };
  return std::optional<SharedWork::Phase>(std::move(phase));
}

GroupMerger::NextPhase GroupMerger::SecondPhase() {
  uint64_t num_rows = 0;
  for (const LocalGroups* local : local_states_) {
    num_rows += local->num_rows();
    expected_groups_ = std::max(expected_groups_, local->expected_groups());
  }
  expected_groups_ = GroupsMet(num_rows, expected_groups_);
  SharedWork::Phase phase;
  phase.num_tasks = num_parts_;
  tables_.resize(phase.num_tasks);
  memories_.resize(phase.num_tasks);
  phase.run = [this](uint64_t task) { return Merge(task); };
  return std::optional<SharedWork::Phase>(std::move(phase));
}

// Merged groups first: their states may lie in memory of the threads that they come from.
GroupMerger::NextPhase GroupMerger::NextToSpill() {
  using Phase = SharedWork::Phase;
  switch (++num_spill_phases_) {
    case 1: return std::optional(Phase{tables_.size(), [this](uint64_t table) { return SpillMerged(table); }});
    case 2: return std::optional(Phase{local_states_.size(), [this](uint64_t i) { return local_states_[i]->Spill(); }});
    case 3: return std::optional(Phase{1, [this](uint64_t) { return KeepBlocks(); }});
    default: tables_.clear(); return std::optional<Phase>();
  }
}

// A task of merging. Once one was refused memory, the others do nothing.
absl::Status GroupMerger::Merge(uint64_t task) {
  if (spills_) return absl::OkStatus();
  absl::Status status = WithoutBadAlloc([&] {
    if (!by_parts_) return MergeIntoFirst();
    if (num_phases_ != 1) return MergePartition(task);
    if (has_blocks_) local_states_[task]->UseBlocks();
    return local_states_[task]->PartitionRows();
  });
  if (spilled_ == nullptr || !absl::IsResourceExhausted(status) || IsBroken(task)) return status;
  spills_ = true;
  return absl::OkStatus();
}

bool GroupMerger::IsBroken(uint64_t task) const {
  if (!by_parts_) return (!tables_.empty() && tables_[0]->is_broken()) || local_states_[0]->memory()->is_broken();
  if (num_phases_ == 1 || tables_[task] == nullptr) return false;
  return tables_[task]->is_broken() || (memories_[task] != nullptr && memories_[task]->is_broken());
}

absl::Status GroupMerger::SpillMerged(uint64_t number) {
  const std::unique_ptr<GroupTable> table = std::move(tables_[number]);
  return table == nullptr ? absl::OkStatus() : local_states_[0]->SpillMerged(table.get());
}

absl::Status GroupMerger::KeepBlocks() {
  return WithoutBadAlloc([this]() -> absl::Status {
    for (LocalGroups* local : local_states_)
      if (local->uses_blocks()) QUERN_RETURN_IF_ERROR(spilled_->Keep(local->TakeBlocks(), local->expected_groups()));
    return spilled_->Finish(local_states_.size(), context_.options, *context_.budget);
  });
}

absl::Status GroupMerger::MergeIntoFirst() {
  std::sort(local_states_.begin(), local_states_.end(),
            [](LocalGroups* a, LocalGroups* b) { return a->table()->bytes() > b->table()->bytes(); });
  tables_.reserve(1);
  tables_.push_back(local_states_[0]->TakeTable());
  GroupTable* const into = tables_[0].get();
  uint8_t *from[kScanRows], *found[kScanRows];
  uint64_t hashes[kScanRows];
  for (size_t s = 1; s < local_states_.size(); ++s) {
    GroupTable* const table = local_states_[s]->table();
    for (uint64_t begin = 0; begin < table->num_positions(); begin += kScanRows) {
      local_states_[s]->SetMerged(begin);
      const uint32_t n = table->Scan(begin, std::min<uint64_t>(begin + kScanRows, table->num_positions()), from);
      if (n == 0) continue;
      table->HashesOf(begin, from, n, hashes);
      QUERN_RETURN_IF_ERROR(into->FindTuples({from, hashes, n}, found));
      QUERN_RETURN_IF_ERROR(MergeStates(*context_.descriptor, found, from, n, local_states_[0]->memory()));
    }
    local_states_[s]->SetMerged(table->num_positions());
  }
  return absl::OkStatus();
}

absl::Status GroupMerger::MergePartition(uint64_t part) {
  uint64_t num_tuples = 0;
  for (LocalGroups* local : local_states_) num_tuples += local->num_tuples_of(part);
  GroupContext context = context_;
  context.common_bits = has_blocks_ ? 0 : context_.options.partition_bits;
  // A partition's groups are scattered over the whole range of keys: an array does not pay.
  if (context.options.layout != GroupLayout::kDirectory) context.options.layout = GroupLayout::kOpen;
  // Not one group for each tuple, because a group may have many tuples: the table would exceed the cache and be mostly
  // empty.
  tables_[part] = MakeGroupTable(context, std::min(num_tuples, expected_groups_ / num_parts_ + 1));
  memories_[part] = std::make_unique<AccumulatorMemory>(context_.budget, context_.options.host);
  for (LocalGroups* local : local_states_) {
    QUERN_RETURN_IF_ERROR(MergePart(context, local->mutable_part(part), tables_[part].get(), memories_[part].get()));
    local->FreePart(part);
  }
  return absl::OkStatus();
}

}  // namespace quern
