// SPDX-License-Identifier: Apache-2.0
// The groups of an aggregation that its memory has no room for, with their states, divided into partitions by the
// public hash of their keys, each of which is aggregated later on its own. (Graefe, Query Evaluation Techniques for
// Large Databases, ACM Computing Surveys 1993, section 4.)
#ifndef QUERN_RUNTIME_AGGREGATE_SPILLED_GROUPS_H_
#define QUERN_RUNTIME_AGGREGATE_SPILLED_GROUPS_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/aggregate/key_dictionaries.h"
#include "runtime/aggregate/tables/group_table.h"
#include "runtime/rows/output_batch.h"
#include "runtime/spill/memory_holders.h"
#include "runtime/spill/spill_context.h"
#include "runtime/spill/spilled_rows.h"

namespace quern {

// A partition of the groups of an aggregation: number `part` of as many as there are at its level. Level 0 has one, all
// groups; each level divides those of the one before.
struct GroupPart {
  uint32_t level = 0;
  uint32_t part = 0;
};

class SpilledGroups;

// The columns of groups that are written: their keys and states, or, where AggregateDescriptor::has_whole_tuples, their
// tuples as they are.
std::vector<ColumnType> SpilledGroupTypes(const AggregateDescriptor& descriptor);

// Writes groups as rows. *Threads*: one.
class GroupSpiller {
 public:
  GroupSpiller(std::shared_ptr<const AggregateDescriptor> descriptor, const KeyDictionaries* dictionaries,
               const std::shared_ptr<SpillContext>& spill);

  // Adds n groups to the rows, which go to `into` when they are many, and by Flush. *Errors*: those of
  // PartitionedWriter::Append.
  absl::Status Write(uint8_t* const* tuples, uint32_t n, SpilledGroups* into);
  absl::Status Flush(SpilledGroups* into);

 private:
  absl::Status Open();
  absl::Status WriteSome(uint8_t* const* tuples, uint32_t n, SpilledGroups* into);
  absl::Status WriteColumns(uint8_t* const* tuples, uint32_t n, uint64_t at);

  std::shared_ptr<const AggregateDescriptor> descriptor_;
  const KeyDictionaries* dictionaries_;
  const std::shared_ptr<SpillContext> spill_;
  const uint64_t most_bytes_;          // of strings and states in rows_
  std::unique_ptr<OutputBatch> rows_;  // null until there are any, and after very long ones
  bool is_open_ = false;
  std::vector<uint32_t> partitions_;
};

// *Threads*: any.
class SpilledGroups {
 public:
  // The groups of `of`, divided once more.
  SpilledGroups(std::shared_ptr<const AggregateDescriptor> descriptor, std::shared_ptr<SpillContext> spill,
                const GroupPart& of);

  // Whether groups of such a partition can be divided: not those of dictionary keys, whose numbers other threads may
  // just be adding to, nor one group without keys; and not further than 2^31 partitions.
  static bool CanDivide(const AggregateDescriptor& descriptor, const SpillContext& spill, const GroupPart& of);

  const std::shared_ptr<SpillContext>& spill() const { return spill_; }
  // Whether groups were written.
  bool is_used() const { return is_used_.load(std::memory_order_acquire); }
  // An upper bound: a group counts as often as it was written.
  uint64_t num_groups() const { return num_groups_; }
  // The number of a hash among the partitions of the writer.
  uint32_t PartOf(uint64_t hash) const;
  absl::Status Append(const BatchView& rows, const uint32_t* parts);
  // A spiller for one thread at a time; waits while others write with all there are, since each has memory of its own.
  std::unique_ptr<GroupSpiller> TakeSpiller(const KeyDictionaries* dictionaries);
  void GiveSpiller(std::unique_ptr<GroupSpiller> spiller);
  // The threads' groups.
  MemoryHolders* holders() { return &holders_; }
  // Completes what was written; nothing is appended any more.
  absl::Status Finish();

  // A partition that is to be aggregated, or none.
  struct Taken {
    GroupPart part;
    std::unique_ptr<RowReader> rows;  // null: there is none
  };
  // The next one that no reader of groups has taken that share `partition` of num_partitions (key_partitions.h).
  Taken Take(uint32_t partition, uint32_t num_partitions);

 private:
  uint32_t MostSpillers() const;
  const std::shared_ptr<const AggregateDescriptor> descriptor_;
  const std::shared_ptr<SpillContext> spill_;
  const std::vector<ColumnType> types_;
  const GroupPart of_;
  const uint64_t num_parts_;  // at the next level
  std::mutex mutex_;          // guards the making of writer_, next_, and spillers
  std::condition_variable spiller_given_;
  MemoryHolders holders_;
  std::vector<std::unique_ptr<GroupSpiller>> spillers_;  // that no thread has
  uint32_t num_spillers_ = 0;
  std::unique_ptr<PartitionedWriter> writer_;
  std::atomic<bool> is_used_{false};
  std::atomic<uint64_t> num_groups_{0};
  std::vector<std::shared_ptr<SpilledRows>> parts_;         // null: taken for good, or without rows
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> next_;  // of parts_, by partition and number of partitions
};

}  // namespace quern

#endif  // QUERN_RUNTIME_AGGREGATE_SPILLED_GROUPS_H_
