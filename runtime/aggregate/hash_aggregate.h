// SPDX-License-Identifier: Apache-2.0
// The state of one aggregation: append batches, finalise, read groups. This class owns the memory and determines the
// order of the work; the loops belong to a kernel (generic or compiled), called through QuernAggregateEntryPoints, and
// to the tables (group_table.h).
//
//     HashAggregate aggregate(descriptor, entry points, code, budget, options);
//     aggregate.Append(...)*  ->  aggregate.Finalise()  ->  GroupReader: Next(...)*
//
// An aggregation is a sink (runtime/sink/sink.h). Two-phase aggregation, with a host's shuffle in between: the
// GroupReader of the first aggregation reads states instead of results, and those batches are added, as states, to
// another aggregation of the same spec.
#ifndef QUERN_RUNTIME_AGGREGATE_HASH_AGGREGATE_H_
#define QUERN_RUNTIME_AGGREGATE_HASH_AGGREGATE_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/abi/kernel_abi.h"
#include "runtime/aggregate/aggregate_descriptor.h"
#include "runtime/aggregate/aggregate_options.h"
#include "runtime/aggregate/spilled_groups.h"
#include "runtime/base/counters.h"
#include "runtime/base/memory.h"
#include "runtime/rows/batch_view.h"
#include "runtime/rows/entry_slot.h"
#include "runtime/sink/sink.h"

namespace quern {

struct AggregateStats {
  uint64_t input_rows = 0;
  uint64_t num_groups = 0;         // after Finalise; an upper bound where groups were spilled
  uint64_t table_bytes = 0;        // of all tables at Finalise
  uint64_t num_growths = 0;        // of tables
  uint32_t prefetch_distance = 0;  // at Finalise, in rows; the batch's rows where all of them are prefetched at once
  const char* prefetch_class =
      "";  // at Finalise: "l2", "l3" or "dram" by the last table's bytes; "off" where the plan does not prefetch
  const char* layout = "";  // of the table at Finalise: "single", "dense", "open", "sorted", "directory", "spilled"
};

struct GroupContext;
class GroupMerger;
class LocalGroups;
class GroupTable;
class DictionarySeries;

inline constexpr SinkTexts kAggregateTexts = {"groups", "the groups are complete", "rows are missing from the groups",
                                              "a new aggregation"};

enum class GroupColumns : uint8_t {
  kResults,  // AggregateOutputTypes(spec)
  kStates,   // AggregateStateTypes(spec)
  kKeys,     // the keys of kResults
};

class HashAggregate final : public Sink {
 public:
  // *Ownership*: `code` keeps the kernel's machine code alive. *Errors*: none; memory is taken later.
  HashAggregate(std::shared_ptr<const AggregateDescriptor> descriptor, AggregateEntrySource entry_points,
                std::shared_ptr<const void> code, std::shared_ptr<MemoryBudget> budget, const AggregateOptions& options,
                const SinkTexts& texts = kAggregateTexts);
  ~HashAggregate() override;

  // A batch has keys in the order of the spec, and the columns of AggregateInputTypes(spec) as payload; one of states
  // has keys, and a binary column for each aggregate as payload. Nothing refers to a batch once it is added. *Cost* of
  // Append: one or two random cache lines a row, prefetched. *Errors* of Append, besides those of a sink: OutOfRange
  // for a checked sum that does not fit; InvalidArgument for damaged states.

  // Replaces the prefetch setting for tables of any size, from the next Append on and for later appenders; used to
  // measure settings. No effect where the plan does not prefetch. *Threads*: no other call may be in progress.
  void SetPrefetch(PrefetchLoop loop, const PrefetchSetting& setting);

  // The groups are those of a partition, which was spilled. whole: has the others, and frees memory for it; not owned.
  // io_budget: has in reserve what it takes to divide them once more.
  void SetPart(const GroupPart& part, MemoryHolder* whole, std::shared_ptr<MemoryBudget> io_budget) {
    part_ = part;
    whole_ = whole;
    io_budget_ = std::move(io_budget);
  }

  // Sets the pointer that functions of the host receive (host_aggregates.h). Call it before Append.
  void SetHost(void* host) { options_.host = host; }

  // The bytes of the table that Append fills. *Threads*: no other call may be in progress.
  uint64_t table_bytes() const;
  // Its groups so far. *Threads*: as above.
  uint64_t num_groups_so_far() const;

  const AggregateStats& stats() const { return stats_; }
  const AggregateDescriptor& descriptor() const { return *descriptor_; }

 private:
  friend class GroupReader;
  std::unique_ptr<LocalState> NewLocalState() override;
  absl::Status CheckInput(const BatchView& batch, RowKind kind) const override;
  absl::StatusOr<SharedWork*> BeginFinalise() override;
  void EndFinalise() override;
  uint64_t ExpectedWithinLimit() const;
  GroupContext Context() const;
  LocalGroups* own_groups() const;
  bool FitsMerged() const;
  // Of readers that share groups: the partition of theirs, and the number of partitions.
  using ReaderShare = std::pair<uint32_t, uint32_t>;
  class PartShare;
  absl::StatusOr<std::unique_ptr<PartShare>> NextShare(const ReaderShare& key);
  static absl::Status AppendKept(const SpilledGroups::Taken& taken, HashAggregate* part);
  absl::StatusOr<std::shared_ptr<HashAggregate>> NextPart(const ReaderShare& key, GroupColumns columns,
                                                          std::unique_ptr<PartShare>* share);
  std::shared_ptr<HashAggregate> NewPart(const SpilledGroups::Taken& taken, const PartShare& share);
  absl::StatusOr<std::shared_ptr<HashAggregate>> PartOf(const SpilledGroups::Taken& taken, const PartShare& share);
  absl::StatusOr<std::shared_ptr<HashAggregate>> PartOfOneGroup(const SpilledGroups::Taken& taken,
                                                                const PartShare& share);
  // The first of the next n positions that no reader of the partition has taken yet.
  uint64_t TakePositions(uint32_t partition, uint32_t num_partitions, uint64_t n);

  std::shared_ptr<const AggregateDescriptor> descriptor_;
  AggregateEntrySource entry_points_;
  std::shared_ptr<const void> code_;
  AggregateOptions options_;
  AggregateStats stats_;
  std::shared_ptr<DictionarySeries> dictionaries_;  // values of dictionary keys, shared by all thread-local groups
  std::atomic<uint32_t> num_local_states_{0};
  std::unique_ptr<GroupMerger> merger_;
  GroupPart part_;
  MemoryHolder* whole_ = nullptr;
  std::shared_ptr<MemoryBudget> io_budget_;  // null: not of a partition
  std::mutex spilled_mutex_;                 // guards the making of spilled_
  std::shared_ptr<SpilledGroups> spilled_;   // null: groups stay in memory
  std::atomic<uint32_t> num_readers_{0};
  uint64_t shared_bytes_ = 0;  // that readers may take for partitions now; under the mutex, as the next
  std::map<ReaderShare, uint32_t> num_shares_;
  struct Result;
  std::unique_ptr<Result> result_;
  // Of one group whose values are not in memory: the results of the aggregates that have parts; null: of all others.
  std::unique_ptr<OutputBatch> results_of_parts_;
  std::map<ReaderShare, uint64_t> next_positions_;  // for the readers of each
};

// Keys as in the results, then a `binary` column for each aggregate.
std::vector<ColumnType> AggregateStateTypes(const AggregationSpec& spec);

// Reads the groups of a finalised aggregation, in no particular order. *Threads*: a reader belongs to one thread;
// readers share the groups, and each group comes out of exactly one of them.
class GroupReader {
 public:
  // partition, num_partitions: read only the groups of one partition by the hash of the key. A key belongs to the same
  // partition in every aggregation of the same spec, in any process of this version.
  explicit GroupReader(std::shared_ptr<HashAggregate> aggregate, GroupColumns columns = GroupColumns::kResults,
                       uint32_t partition = 0, uint32_t num_partitions = 1);
  // How often a group comes out, by its tuple.
  using CopiesOf = uint64_t (*)(const AggregateDescriptor& descriptor, const uint8_t* tuple);
  // copies_of: null: once. Before the first Next.
  void SetCopies(CopiesOf copies_of);
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
  uint32_t CountCopies(uint32_t n, uint8_t** groups) const;
  uint32_t Repeat(uint64_t most);
  void Consume(uint32_t num_rows);
  uint32_t KeepPartition(uint32_t n, uint8_t** groups) const;
  absl::StatusOr<uint32_t> WriteGroups(uint8_t* const* tuples, uint32_t n, OutputBatch* out, uint64_t out_row);
  absl::StatusOr<uint32_t> WriteFitting(uint8_t* const* tuples, uint32_t n, OutputBatch* out, uint64_t out_row);
  uint64_t RowsWithoutGrowth(uint64_t written, OutputBatch* out) const;
  absl::StatusOr<bool> WriteBatch(OutputBatch* out);
  absl::StatusOr<bool> NextSpilled(OutputBatch* out);

  std::shared_ptr<HashAggregate> aggregate_;
  std::unique_ptr<State> state_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_AGGREGATE_HASH_AGGREGATE_H_
