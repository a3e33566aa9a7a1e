// SPDX-License-Identifier: Apache-2.0
// The groups of an aggregation that its memory has no room for, with their states, divided into partitions by the
// public hash of their keys, each of which is aggregated later on its own. (Graefe, Query Evaluation Techniques for
// Large Databases, ACM Computing Surveys 1993, section 4.)
#ifndef QUERN_RUNTIME_AGGREGATE_SPILLED_GROUPS_H_
#define QUERN_RUNTIME_AGGREGATE_SPILLED_GROUPS_H_

#include <algorithm>
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
#include "runtime/aggregate/aggregate_options.h"
#include "runtime/aggregate/key_dictionaries.h"
#include "runtime/aggregate/tables/group_table.h"
#include "runtime/rows/output_batch.h"
#include "runtime/spill/loose_tuples.h"
#include "runtime/spill/memory_holders.h"
#include "runtime/spill/spill_context.h"
#include "runtime/spill/spilled_rows.h"
#include "runtime/spill/tuple_blocks.h"

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

// Writes groups as rows. A group with a state of very many values becomes several rows, with some of them each; the
// first one has its other states, too. *Threads*: one.
class GroupSpiller {
 public:
  // budget: that its rows count in.
  GroupSpiller(std::shared_ptr<const AggregateDescriptor> descriptor, const std::shared_ptr<SpillContext>& spill,
               std::shared_ptr<MemoryBudget> budget);

  // Adds n groups to the rows, which go to `into` when they are many, and by Flush. dictionaries: those that the groups
  // have numbers of, only during the call. *Errors*: those of PartitionedWriter::Append.
  absl::Status Write(const KeyDictionaries& dictionaries, uint8_t* const* tuples, uint32_t n, SpilledGroups* into);
  absl::Status Flush(SpilledGroups* into);

 private:
  absl::Status Open();
  absl::Status WriteSome(uint8_t* const* tuples, uint32_t n, SpilledGroups* into);
  absl::Status WriteColumns(uint8_t* const* tuples, uint32_t n, uint64_t at);
  bool IsLarge(const uint8_t* tuple) const;
  absl::Status WriteInParts(uint8_t* tuple, SpilledGroups* into);
  absl::StatusOr<bool> WritePart(uint8_t* tuple, uint8_t* others, uint64_t* next);
  void AddRows(uint8_t* const* tuples, uint32_t n, const SpilledGroups& into);
  absl::Status FlushIfFull(SpilledGroups* into);

  std::shared_ptr<const AggregateDescriptor> descriptor_;
  const KeyDictionaries* dictionaries_ = nullptr;  // of Write
  const std::shared_ptr<SpillContext> spill_;
  const std::shared_ptr<MemoryBudget> budget_;
  const uint64_t most_bytes_;          // of strings and states in rows_
  const uint64_t most_state_bytes_;    // of a state that is not divided into parts
  std::unique_ptr<OutputBatch> rows_;  // null until there are any, and after very long ones
  bool is_open_ = false;
  std::vector<uint32_t> partitions_;
};

// Tuples of whole groups need not be written: those that memory has room for are kept (tuple_blocks.h), and come out
// with the others of their partition.
// *Threads*: any.
class SpilledGroups final : public BlockSink, public MemoryHolder {
 public:
  // The groups of `of`, divided once more. budget: that memory of writing counts in; for parts, WriterBytes of it are
  // in reserve.
  SpilledGroups(std::shared_ptr<const AggregateDescriptor> descriptor, std::shared_ptr<SpillContext> spill,
                const GroupPart& of, std::shared_ptr<MemoryBudget> budget);

  // Whether groups of such a partition can be written: there are no more than 2^31 partitions. A group without keys is
  // written once, if one of its states can be saved in parts.
  static bool CanWrite(const AggregateDescriptor& descriptor, const SpillContext& spill, const GroupPart& of);

  const std::shared_ptr<SpillContext>& spill() const { return spill_; }
  // What is left beside the table of each reader, to divide its rows once more, and to read them.
  uint64_t WriterBytes() const;
  // What the table of a reader has at least, unless there is no other reader.
  uint64_t LeastBytes() const { return std::max(WriterBytes(), std::min(table_bytes_, spill_->io_bytes() / 2)); }
  // From now on all groups are to be written. *Threads*: any.
  void BeginWriting();
  // Whether groups were written, or are to be.
  bool is_used() const { return is_used_.load(std::memory_order_acquire); }
  // An upper bound: a group counts as often as it was written, or kept.
  uint64_t num_groups() const { return num_groups_; }
  // The number of a hash among the partitions of the writer.
  uint32_t PartOf(uint64_t hash) const;
  absl::Status Append(const BatchView& rows, const uint32_t* parts);
  absl::Status WritePart(uint32_t part, const BlockPieces& block, uint64_t num_tuples) override;
  absl::Status WriteTuples(uint8_t* const* tuples, uint32_t n) override;
  bool CallBehind(const std::function<void()>& write) override;
  // Blocks for a thread, of descriptors that have whole tuples. prefetch_bytes: behind the end of each.
  std::unique_ptr<TupleBlocks> NewBlocks(uint64_t prefetch_bytes, std::shared_ptr<MemoryBudget> budget);
  // A spiller for one thread at a time; waits while others write with all there are, since each has memory of its own.
  std::unique_ptr<GroupSpiller> TakeSpiller();
  void GiveSpiller(std::unique_ptr<GroupSpiller> spiller);
  // The threads' groups.
  MemoryHolders* holders() { return &holders_; }

  // Keeps blocks of a thread, which appends no more. expected_groups: an estimate of all groups, 0: none.
  absl::Status Keep(std::unique_ptr<TupleBlocks> blocks, uint64_t expected_groups);
  // Completes what was written; nothing is appended or kept any more. Leaves so many readers room in the budget, for a
  // table each.
  absl::Status Finish(uint64_t num_readers, const AggregateOptions& options, const MemoryBudget& budget);
  // Of the blocks that are kept now, and that no reader has taken.
  uint64_t kept_bytes() const { return kept_.bytes(); }
  // Writes kept blocks until so many bytes are free, or there are no more.
  absl::Status FreeKept(uint64_t bytes);
  // The same for a partition that finds no memory while it is aggregated.
  absl::Status SpillOrAsk(bool* is_at_work) override;

  // A partition that is to be aggregated, or none.
  struct Taken {
    GroupPart part;
    std::shared_ptr<PartBlocks> kept;  // null: none
    std::unique_ptr<RowReader> rows;   // null: none; of groups that have parts, it can be rewound
    bool is_shared = false;            // other readers have the kept ones, too
    uint64_t expected_groups = 0;      // 0: unknown
  };
  // The next one that no reader of groups has taken that share `partition` of num_partitions (key_partitions.h); none:
  // both are null. budget: that memory of reading counts in.
  Taken Take(uint32_t partition, uint32_t num_partitions, const std::shared_ptr<MemoryBudget>& budget);
  // What a reader takes for the table of the largest partition, roughly.
  uint64_t table_bytes() const { return table_bytes_; }

 private:
  uint32_t MostSpillers() const;
  absl::Status FreeKeptLocked(uint64_t bytes);
  uint64_t NumTuplesOf(size_t part) const;
  uint64_t ExpectedGroupsOf(uint64_t num_tuples) const;
  const std::shared_ptr<const AggregateDescriptor> descriptor_;
  const std::shared_ptr<SpillContext> spill_;
  const std::shared_ptr<MemoryBudget> budget_;
  const std::vector<ColumnType> types_;
  const GroupPart of_;
  const KeyDictionaries no_dictionaries_;  // whole tuples have no numbers of values
  const uint64_t num_parts_;               // at the next level
  std::mutex mutex_;                       // guards the making of writer_, next_, and spillers
  std::condition_variable spiller_given_;
  MemoryHolders holders_;
  std::vector<std::unique_ptr<GroupSpiller>> spillers_;  // that no thread has
  uint32_t num_spillers_ = 0;
  std::unique_ptr<PartitionedWriter> writer_;
  std::shared_ptr<BlockBuffers> buffers_;  // of blocks that are written when all have come
  std::atomic<bool> is_used_{false};
  std::atomic<uint64_t> num_groups_{0};
  std::vector<std::shared_ptr<SpilledRows>> parts_;  // null: taken for good, or without rows
  KeptBlocks kept_;
  LooseTuples loose_;
  uint64_t expected_groups_ = 0, table_bytes_ = 0;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> next_;  // of parts_, by partition and number of partitions
};

}  // namespace quern

#endif  // QUERN_RUNTIME_AGGREGATE_SPILLED_GROUPS_H_
