// SPDX-License-Identifier: Apache-2.0
// The state of one aggregation: append batches, finalise, read groups. This class owns the memory and determines the
// order of the work; the loops belong to a kernel (generic or compiled), called through QuernAggregateEntryPoints, and
// to the tables (group_table.h).
//
//     HashAggregate aggregate(descriptor, entry points, code, budget, options);
//     aggregate.Append(...)*  ->  aggregate.Finalise()  ->  GroupReader: Next(...)*
//
// Two-phase aggregation, with a host's shuffle in between: the GroupReader of the first aggregation reads states
// instead of results, and AppendStates adds those batches to another aggregation of the same spec.
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
  uint32_t prefetch_distance = 0;  // at Finalise, in rows; the batch's rows where all of them are prefetched at once
  const char* prefetch_class =
      "";  // at Finalise: "l2", "l3" or "dram" by the last table's bytes; "off" where the plan does not prefetch
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

  // Adds a batch: keys in the order of the spec, and the columns of AggregateInputTypes(spec) as payload. Nothing
  // refers to the batch afterwards. *Cost*: one or two random cache lines a row, prefetched. *Threads*: one at a time;
  // use AggregateAppender for more.
  // *Errors*: FailedPrecondition after Finalise and InvalidArgument for a batch without the spec's columns, both of
  // which leave the aggregation unchanged; ResourceExhausted and OutOfRange for a checked sum that does not fit, after
  // which the aggregation rejects further calls.
  absl::Status Append(const BatchView& batch);
  // Adds states that another aggregation of the same spec gave out: keys, and a binary column for each aggregate as
  // payload.
  // *Errors*: also InvalidArgument for damaged states.
  absl::Status AppendStates(const BatchView& batch);

  // Replaces the prefetch setting for tables of any size, from the next Append on and for later appenders; used to
  // measure settings. No effect where the plan does not prefetch. *Threads*: no other call may be in progress.
  void SetPrefetch(PrefetchLoop loop, const PrefetchSetting& setting);

  // Merges the threads' tables. *Errors*: ResourceExhausted, OutOfRange.
  absl::Status Finalise();
  // Does the same with any number of threads at once: each runs tasks and returns when all work is done, or immediately
  // if it is done already.
  absl::Status FinaliseShared();

  // The bytes of the table that Append fills. *Threads*: no other call may be in progress.
  uint64_t table_bytes() const;
  // Its groups so far. *Threads*: as above.
  uint64_t num_groups_so_far() const;

  // Sets an observer for the rest of the aggregation's life. Call it before Append.
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
  // The first of the next n positions that no reader of the partition has taken yet.
  uint64_t TakePositions(uint32_t partition, uint32_t num_partitions, uint64_t n);

  std::shared_ptr<const AggregateDescriptor> descriptor_;
  AggregateEntrySource entry_points_;
  std::shared_ptr<CounterSet> counters_;
  std::shared_ptr<const void> code_;
  std::shared_ptr<MemoryBudget> budget_;
  AggregateOptions options_;
  AggregateStats stats_;
  std::shared_ptr<KeyDictionaries> dictionaries_;  // values of dictionary keys, shared by all thread-local groups
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
      next_positions_;  // by partition and number of partitions: the next position for its readers
  std::atomic<bool> finalised_{false};
  std::unique_ptr<JobObserver> observer_;  // mostly null
};

// Adds batches from one thread while other threads use appenders of their own.
class AggregateAppender {
 public:
  explicit AggregateAppender(std::shared_ptr<HashAggregate> aggregate);
  ~AggregateAppender();

  absl::Status Append(const BatchView& batch);
  absl::Status AppendStates(const BatchView& batch);
  // As HashAggregate::SetPrefetch, for the batches of this appender.
  void SetPrefetch(PrefetchLoop loop, const PrefetchSetting& setting);
  // Hands over the groups. Without this call, the rows are lost when the appender is destroyed. *Errors*:
  // FailedPrecondition after Finalise.
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

// Reads the groups of a finalised aggregation, in no particular order. *Threads*: a reader belongs to one thread;
// readers share the groups, and each group comes out of exactly one of them.
class GroupReader {
 public:
  // partition, num_partitions: read only the groups of one partition by the hash of the key. A key belongs to the same
  // partition in every aggregation of the same spec, in any process of this version.
  explicit GroupReader(std::shared_ptr<HashAggregate> aggregate, GroupColumns columns = GroupColumns::kResults,
                       uint32_t partition = 0, uint32_t num_partitions = 1);
  ~GroupReader();

  // Empties `out` and fills it with up to out->capacity() groups. Returns whether there may be more. Without output
  // columns it only counts.
  // *Errors*: FailedPrecondition before Finalise; InvalidArgument for an output batch with other columns or without
  // rows; OutOfRange for a sum or average that does not fit; ResourceExhausted.
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
