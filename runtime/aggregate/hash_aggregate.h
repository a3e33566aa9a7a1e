// SPDX-License-Identifier: Apache-2.0
// The state of one aggregation: batches in, finalise, groups out. It owns the memory and the order of the steps; the
// loops are a kernel's (generic or compiled), reached through QuernAggregateEntryPoints, and the tables'
// (group_table.h).
//
//     HashAggregate aggregate(descriptor, entry points, code, budget, options);
//     aggregate.Append(...)*  ->  aggregate.Finalise()  ->  GroupReader: Next(...)*
//
// In two phases, with a host's shuffle between them: the first aggregation's GroupReader reads states instead of
// results, and those batches go into another aggregation of the same spec by AppendStates.
#ifndef QUERN_RUNTIME_AGGREGATE_HASH_AGGREGATE_H_
#define QUERN_RUNTIME_AGGREGATE_HASH_AGGREGATE_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/abi/kernel_abi.h"
#include "runtime/aggregate/aggregate_descriptor.h"
#include "runtime/aggregate/aggregate_options.h"
#include "runtime/base/counters.h"
#include "runtime/base/memory.h"
#include "runtime/rows/batch_view.h"
#include "runtime/rows/entry_slot.h"

namespace quern {

struct AggregateStats {
  uint64_t input_rows = 0;
  uint64_t num_groups = 0;         // after Finalise
  uint64_t table_bytes = 0;        // of all tables at Finalise
  uint64_t num_growths = 0;        // of tables
  uint32_t prefetch_distance = 0;  // at Finalise; rows, those of a batch where all of them are asked for
  const char* prefetch_class =
      "";  // at Finalise: "l2", "l3", "dram" by the last table's bytes; "off" where the plan does not prefetch
  const char* layout = "";  // of the table at Finalise: "single", "dense", "open", "sorted", "directory"
};

struct GroupContext;
class GroupMerger;
class LocalGroups;
class GroupTable;
class JobObserver;
class KeyDictionaries;

class HashAggregate {
 public:
  // *Ownership*: `code` keeps the kernel's machine code alive. *Errors*: none; memory is taken later.
  HashAggregate(std::shared_ptr<const AggregateDescriptor> descriptor, AggregateEntrySource entry_points,
                std::shared_ptr<const void> code, std::shared_ptr<MemoryBudget> budget,
                const AggregateOptions& options);
  ~HashAggregate();

  // Adds a batch: keys as the spec lists them, and as payload the columns of AggregateInputTypes(spec). Nothing points
  // into the batch afterwards. *Cost*: one or two random cache lines a row, prefetched. *Threads*: one at a time;
  // AggregateAppender for more.
  // *Errors*: FailedPrecondition after Finalise, InvalidArgument for a batch without the spec's columns, which leave
  // the aggregation as it was; ResourceExhausted, OutOfRange for a checked sum that does not fit, after which it
  // refuses to go on.
  absl::Status Append(const BatchView& batch);
  // Adds states that another aggregation of the same spec gave out: keys, and as payload a binary column for each
  // aggregate.
  // *Errors*: also InvalidArgument for states that are damaged.
  absl::Status AppendStates(const BatchView& batch);

  // Another setting for tables of any size, from the next batch of Append on and for appenders to come: for who
  // measures settings. Nothing changes where the plan does not prefetch. *Threads*: none while another call is under
  // way.
  void SetPrefetch(PrefetchLoop loop, const PrefetchSetting& setting);

  // Brings the threads' tables together. *Errors*: ResourceExhausted, OutOfRange.
  absl::Status Finalise();
  // The same by any number of threads at once, each of which takes part and comes back when all is done (at once, where
  // it is).
  absl::Status FinaliseShared();

  // Of the table that Append fills. *Threads*: none while another call is under way.
  uint64_t table_bytes() const;
  // Its groups so far. *Threads*: likewise.
  uint64_t num_groups_so_far() const;

  // Who looks on from now on, until the aggregation is gone; to be called before Append.
  void Observe(std::unique_ptr<JobObserver> observer);

  const AggregateStats& stats() const { return stats_; }
  // *Threads*: any, at any time.
  Counters counters() const { return counters_->Sum(); }
  const AggregateDescriptor& descriptor() const { return *descriptor_; }

 private:
  friend class AggregateAppender;
  friend class GroupReader;
  GroupContext Context() const;
  absl::Status CheckOpen(const char* call) const;
  absl::Status AppendTo(LocalGroups* local, const BatchView& batch, bool states);
  std::unique_ptr<LocalGroups> NewLocalState();
  absl::Status AddLocalState(std::unique_ptr<LocalGroups> local);
  absl::Status BeginMerge();
  absl::Status Merge();
  void Take();
  // The first of the next n positions that readers of a partition have not taken yet.
  uint64_t TakePositions(uint32_t partition, uint32_t num_partitions, uint64_t n);

  std::shared_ptr<const AggregateDescriptor> descriptor_;
  AggregateEntrySource entry_points_;
  std::shared_ptr<CounterSet> counters_;
  std::shared_ptr<const void> code_;
  std::shared_ptr<MemoryBudget> budget_;
  AggregateOptions options_;
  AggregateStats stats_;
  std::shared_ptr<KeyDictionaries> dictionaries_;  // values of dictionary keys, shared by all sides
  std::mutex mutex_;
  std::unique_ptr<LocalGroups> own_local_state_;
  std::vector<std::unique_ptr<LocalGroups>> local_states_;
  std::atomic<uint32_t> num_appenders_{0};
  std::atomic<uint64_t> next_row_id_{0};
  std::atomic<bool> lost_rows_{false};  // an append or a merge failed
  std::atomic<bool> merges_{false};
  std::unique_ptr<GroupMerger> merger_;
  struct Result;
  std::unique_ptr<Result> result_;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t>
      next_positions_;  // by partition and their number: how far its readers have come
  std::atomic<bool> finalised_{false};
  std::unique_ptr<JobObserver> observer_;  // mostly null
};

// Adds batches from one thread while others do the same from theirs.
class AggregateAppender {
 public:
  explicit AggregateAppender(std::shared_ptr<HashAggregate> aggregate);
  ~AggregateAppender();

  absl::Status Append(const BatchView& batch);
  absl::Status AppendStates(const BatchView& batch);
  // As the aggregation's, for the batches of this appender.
  void SetPrefetch(PrefetchLoop loop, const PrefetchSetting& setting);
  // Hands the groups over. An appender that goes without it takes its rows with it. *Errors*: FailedPrecondition after
  // Finalise.
  absl::Status Finish();

 private:
  std::shared_ptr<HashAggregate> aggregate_;
  std::unique_ptr<LocalGroups> local_state_;
};

enum class GroupColumns : uint8_t {
  kResults,  // AggregateOutputTypes(spec)
  kStates,   // AggregateStateTypes(spec)
};

// Keys as in the results, then a `binary` column for each aggregate.
std::vector<ColumnType> AggregateStateTypes(const KernelSpec& spec);

// Gives out the groups of a finalised aggregation, in no order. *Threads*: each reader belongs to one thread; any
// number of them share the groups: each comes out of one of them, once.
class GroupReader {
 public:
  // partition, num_partitions: only the groups of one of so many shares by the hash of the key, the same share for the
  // same key in every aggregation of the same spec, in any process of this version.
  explicit GroupReader(std::shared_ptr<HashAggregate> aggregate, GroupColumns columns = GroupColumns::kResults,
                       uint32_t partition = 0, uint32_t num_partitions = 1);
  ~GroupReader();

  // Fills `out` (emptied first) with up to out->capacity() groups. Answers whether there may be more. Without output
  // columns it counts.
  // *Errors*: FailedPrecondition before Finalise; InvalidArgument for an output batch of other columns or of no rows;
  // OutOfRange for a sum or average that does not fit; ResourceExhausted.
  absl::StatusOr<bool> Next(OutputBatch* out);

 private:
  struct State;
  bool NextMorsel();
  bool FindGroups();
  uint32_t KeepPartition(const GroupTable& table, uint64_t begin, uint32_t n, uint8_t** groups) const;
  absl::StatusOr<uint32_t> WriteStates(size_t aggregate, uint8_t* const* tuples, uint32_t n, QuernOutColumn* out,
                                       uint64_t out_row);
  absl::StatusOr<uint32_t> WriteGroups(uint8_t* const* tuples, uint32_t n, OutputBatch* out, uint64_t out_row);
  absl::StatusOr<uint32_t> WriteFitting(uint8_t* const* tuples, uint32_t n, OutputBatch* out, uint64_t out_row);
  absl::StatusOr<bool> WriteBatch(OutputBatch* out);

  std::shared_ptr<HashAggregate> aggregate_;
  std::unique_ptr<State> state_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_AGGREGATE_HASH_AGGREGATE_H_
