// SPDX-License-Identifier: Apache-2.0
// The state of one hash join: build batches in, finalise, probe batches in, output batches out. HashJoin owns the
// memory and fixes the order of the calls; the loops belong to a kernel (generic or compiled) and are called through
// QuernJoinEntryPoints.
//
//     HashJoin join(descriptor, entry points, code, budget, options);
//     join.Append(...)*  ->  join.Finalise()  ->  any number of JoinProber: SetInput(...), Next(...)*
//
// The build side is a sink (runtime/sink/sink.h).
#ifndef QUERN_RUNTIME_JOIN_HASH_JOIN_H_
#define QUERN_RUNTIME_JOIN_HASH_JOIN_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/abi/join_abi.h"
#include "runtime/base/adaptive_gate.h"
#include "runtime/base/counters.h"
#include "runtime/base/memory.h"
#include "runtime/join/host_residual.h"
#include "runtime/join/join_descriptor.h"
#include "runtime/join/join_loop.h"
#include "runtime/join/join_options.h"
#include "runtime/join/join_table.h"
#include "runtime/join/key_summary.h"
#include "runtime/join/membership.h"
#include "runtime/join/probe_scratch.h"
#include "runtime/join/spilled_join.h"
#include "runtime/join/spilling_builder.h"
#include "runtime/join/table_builder.h"
#include "runtime/join/tables/packed_key_table.h"
#include "runtime/rows/batch_view.h"
#include "runtime/rows/job_observer.h"
#include "runtime/sink/sink.h"
#include "runtime/spec/join_spec.h"

namespace quern {

struct JoinStats {
  uint64_t build_rows = 0;  // appended, null keys included
  uint64_t table_rows = 0;  // rows in the table: without null keys that match nothing
  uint64_t directory_bytes = 0;
  uint64_t tuple_bytes = 0;        // all tuples; slots, where the layout has slots
  uint32_t prefetch_distance = 0;  // chosen at Finalise; rows, or kWholeBatch; 0 where the plan does not prefetch
  const char* prefetch_class =
      "";  // chosen at Finalise from the table's bytes: "l2", "l3" or "dram"; "off" where the plan does not prefetch
  const char* layout = "";  // chosen at Finalise (join_table.h)
};

// *Example* with the caller's own threads, each of which runs
//
//     Appender appender(join);       while (batch) appender.Append(batch);   appender.Finish();
//     -- barrier: all threads are here --
//     join->Finalise();
//     JoinProber prober(join);       while (batch) { prober.SetInput(batch); while (more) more = prober.Next(&out); }
//     -- barrier: all threads are here; only for kinds that output build rows --
//     prober.SetUnmatched();         while (more) more = prober.Next(&out);
class HashJoin final : public Sink {
 public:
  // *Ownership*: `code` keeps the kernel's machine code alive. *Errors*: none; memory is taken later.
  HashJoin(std::shared_ptr<const JoinDescriptor> descriptor, JoinEntrySource entry_points,
           std::shared_ptr<const void> code, std::shared_ptr<MemoryBudget> budget, const JoinOptions& options);
  ~HashJoin() override;

  // A batch of the build side has keys and build payload, then the columns of the residual predicate. Strings are not
  // copied: the join keeps the batch's owner until it is destroyed. *Cost* of Append: one pass; tuple_bytes a row, and
  // 8 more where keys are not packed. *Cost* of finalising: one or two random cache lines a row, prefetched or in
  // cache; at the peak, memory for twice the tuples' bytes, or for them and a directory where there is no more. A
  // Finalise that is refused memory may be repeated, and so may a cancelled one, unless the table has taken tuples.

  // Overrides a loop's setting for tables of any size; for tuners. A probe loop uses it from its next batch. Set that
  // of a build loop before Finalise. A loop that this join's table does not have ignores it. The setting changes no
  // result row.
  // *Threads*: none may append, build or probe at the same time.
  void SetPrefetch(PrefetchLoop loop, const PrefetchSetting& setting);

  // Sets the entry points that any descriptor has, for rows that are read back without dictionaries. A join that spills
  // needs them before finalise, where its spec has dictionaries or row ids.
  void SetGeneric(const QuernJoinEntryPoints& generic) { generic_ = generic; }

  // After finalise: whether rows were spilled that are not in the table. Then only JoinProber::Next gives all rows, in
  // any order, the scan of unmatched build rows included, whatever the kind of join.
  bool has_spilled() const { return spilled_ != nullptr; }
  // After finalise: whether others may keep this object for its strings when its caller has let it go: no string is the
  // caller's, no row was spilled, and neither a limit nor a host's account counts its memory.
  bool may_be_kept() const { return owns_strings_ && !has_spilled() && (budget_ == nullptr || !budget_->has_limit()); }

  // Sets the function that a spec with `host_residual` asks. Call it before the first probe.
  void SetHostResidual(const HostResidual& host) { host_residual_ = host; }

  const JoinStats& stats() const { return stats_; }
  // Whether any prober has turned prefetching off, against the schedule, because few rows were hits.
  bool prefetch_adapted() const { return prefetch_adapted_.load(std::memory_order_relaxed); }
  const JoinDescriptor& descriptor() const { return *descriptor_; }

  // What the table tells of a key, and which rows of a batch of the probe side may have a match: key_summary.h,
  // membership.h. *Threads*: any number at once, also while others probe. *Errors*: FailedPrecondition before all work
  // is done; InvalidArgument for a batch without the keys; Cancelled.
  // Of a join that has spilled, every row without a null key that matches nothing may have a match.
  absl::StatusOr<KeySummary> Summarise(uint32_t key) const;
  absl::StatusOr<uint64_t> FindMembers(const BatchView& batch, const MemberAnswer& answer) const;
  // Whether adaptive gates may close, in a pipeline's test of its keys, too.
  bool adapts() const { return options_.adapts; }

 private:
  friend class JoinProber;
  friend class PartProber;

  std::unique_ptr<LocalState> NewLocalState() override;
  absl::Status CheckInput(const BatchView& batch, RowKind kind) const override;
  void ShowTo(JobObserver* observer, const BatchView& batch) const override { observer->SeeBuild(batch); }
  absl::StatusOr<SharedWork*> BeginFinalise() override;
  void EndFinalise() override;
  bool AbandonFinalise() override;
  absl::Status CheckBuilt(const char* call) const;
  JoinContext Context() const { return {descriptor_, entry_points_, counters_, options_, budget_, stop_flag()}; }
  KeySummary SummariseSpilled(uint32_t key) const;
  // The table's memory, which may be freed once all rows of the table have come out: null then.
  std::shared_ptr<const TableMemory> UseTable() const;
  void FreeTable() const;
  // A join of some rows of this one, which has spilled; without rows yet.
  std::shared_ptr<HashJoin> NewPart(const std::shared_ptr<MemoryBudget>& budget) const;
  // Of such a join of `whole`: builds it of tuples that were written, or of rows with null keys alone.
  absl::Status BuildPart(const HashJoin& whole, const std::shared_ptr<SpilledRows>& tuples);
  absl::Status BuildNullRows(const HashJoin& whole, const ReadTuples& rows);

  std::shared_ptr<const JoinDescriptor> descriptor_;
  JoinEntrySource entry_points_;
  QuernJoinEntryPoints generic_ = {};
  std::shared_ptr<const void> code_;
  JoinOptions options_;
  HostResidual host_residual_;
  JoinStats stats_;
  std::unique_ptr<TableBuilder> builder_;  // while finalising, as the next
  std::unique_ptr<SpillingBuilder> spilling_;
  std::shared_ptr<SpilledBuild> spilled_build_;  // null: rows stay in memory
  std::unique_ptr<SpilledJoin> spilled_;         // null: all rows are in the table
  JoinTable table_;
  struct MemoryWithStrings;
  std::shared_ptr<MemoryWithStrings> made_memory_;  // until the table is complete
  bool owns_strings_ = true;
  mutable std::mutex memory_mutex_;  // guards memory_ where rows were spilled
  mutable std::shared_ptr<const TableMemory> memory_;
  TupleList null_rows_;
  bool build_is_empty_ = true;
  bool build_has_null_key_ = false;
  PackedKeyRange range_;
  uint64_t num_null_rows_ = 0;
  std::mutex spill_mutex_;                        // guards the making of spilled_build_
  mutable std::atomic<uint64_t> next_morsel_{0};  // of the scan of unmatched build rows
  mutable std::atomic<bool> prefetch_adapted_{false};
};

// One output batch: the columns of JoinOutputTypes(spec). Buffers are owned by the batch.
class OutputBatch;
class PartProber;

// Probes a finalised join. *Threads*: each prober belongs to one thread; any number of them may share a join.
class JoinProber {
 public:
  // host_context: passed to the host's residual.
  explicit JoinProber(std::shared_ptr<const HashJoin> join, void* host_context = nullptr);
  JoinProber(const JoinProber&) = delete;
  JoinProber& operator=(const JoinProber&) = delete;
  ~JoinProber();

  // Starts on a batch. Its columns must stay valid until Next has returned false. Of a join that has spilled, rows
  // whose keys are not in the table are written; they come out after SetUnmatched. *Errors*: InvalidArgument;
  // FailedPrecondition where a join that has spilled is probed after SetUnmatched. Of a join that has spilled also
  // those of the store, and Unavailable where memory was refused while rows were written: rows of the batch may then
  // have been written, and so every later SetInput and SetUnmatched, of any prober, returns the same error.
  absl::Status SetInput(BatchView batch);

  // Starts on a piece, one or more inputs that may have to come again, where memory is refused behind the probe. The
  // same inputs then give the same rows in the same order, as prefetching is adapted between pieces alone. Rows of a
  // join that has spilled are written the first time alone.
  void BeginPiece(bool is_again);
  // Whether rows of the piece were written, so that the same piece has to come again where it has failed.
  bool has_written_of_piece() const { return num_written_inputs_ != 0; }

  // Instead of Next, for joins of which a probe row comes out at most once and without columns of the build side:
  // writes the numbers of the batch's rows that come out, in their order, and returns how many they are. rows: room for
  // all rows of the input. *Errors*: as Next.
  absl::StatusOr<uint64_t> Select(uint32_t* rows);

  // Instead of Next, for kinds of join that have pairs, and no mark: the pairs alone, up to `capacity`, without
  // columns. rows: receives the numbers of the batch's rows; tuples: where their tuples lie from tuples() on, those of
  // rows without a match included. num_pairs: receives how many. Returns whether this input has more. EndPairs lets the
  // tuples go. *Errors*: as Next.
  absl::StatusOr<bool> NextPairs(uint64_t capacity, uint32_t* rows, uint64_t* tuples, uint64_t* num_pairs);
  // Empties `out` and copies the columns of pairs to it. Returns how many, the first ones. *Errors*: as Next.
  absl::StatusOr<uint64_t> CopyPairs(const uint32_t* rows, const uint64_t* tuples, uint64_t num_pairs,
                                     OutputBatch* out);
  void EndPairs() { in_use_.reset(); }
  const uint8_t* tuples() const { return args_.output.tuples; }
  // Keeps tuples and their strings, where HashJoin::may_be_kept.
  std::shared_ptr<const void> table_owner() const { return join_; }
  // How far ahead tuples of pairs are prefetched: 0 where the table is small, or the plan says off. No gate closes it:
  // each pair has a tuple.
  uint32_t prefetch_distance() const { return join_->table_.probe.distance; }

  // Starts on the build rows that are output on their own (right, full, right_semi, right_anti; none for other kinds),
  // and on all rows that were spilled, of every kind. Call it when all probers have finished all inputs. Probers share
  // the rows: exactly one of them outputs each row. A call while Next has more of them changes nothing. *Errors*: of a
  // join that has spilled, those of writing and reading, of any prober; FailedPrecondition after an error of Next.
  absl::Status SetUnmatched();

  // Empties `out` and fills it with up to out->capacity() rows, at most `most_rows`; with fewer only where the input
  // ends, strings of all find no memory, an output column reaches the limit of its offsets, or rows were spilled.
  // Returns whether this input has more rows. Without output columns it counts, in one call, or in several where rows
  // were spilled. *Errors*: InvalidArgument for an output batch with other columns or no room for a row; OutOfRange for
  // the second match of a single join; ResourceExhausted. After the last two, rows of this input are lost, and only
  // SetInput may follow.
  absl::StatusOr<bool> Next(OutputBatch* out, uint64_t most_rows = UINT64_MAX);

 private:
  friend class PartProber;
  // For rows that were read back.
  absl::Status SetPartInput(BatchView batch, const PartInput& input);
  absl::Status KeepResident(BatchView* batch);
  absl::StatusOr<bool> NextOfTable(OutputBatch* out);
  void SetOutput(OutputBatch* out, uint64_t most_rows);
  // Runs the probe. Returns whether this input has more.
  absl::StatusOr<bool> Run(const JoinProbe& probe);
  absl::StatusOr<bool> NextOfParts(OutputBatch* out);
  absl::StatusOr<bool> NextOfTableAndParts(OutputBatch* out);
  void Begin(BatchView batch);
  void AdaptPrefetch();
  JoinProbe MakeProbe();
  bool IsMembership() const;
  bool is_quiet() const { return prefetch_gate_.has_value() && !prefetch_gate_->is_open(); }

  std::shared_ptr<const HashJoin> join_;
  void* const host_context_;
  JoinTable unprefetched_table_;  // the join's table without prefetch; used where hits are rare
  std::optional<AdaptiveGate> prefetch_gate_;
  std::optional<AdaptiveGate> key_filter_gate_, key_filter_before_piece_;
  std::unique_ptr<ShortKeyCache> short_keys_;
  uint64_t adapt_rows_ = 0, adapt_hits_ = 0;
  uint64_t num_filtered_ = 0;  // rows that key filters have taken away
  BatchView input_;
  QuernJoinProbeArgs args_;
  enum class Unmatched : uint8_t { kNotBegun, kHasMore, kFailed };
  Unmatched unmatched_ = Unmatched::kNotBegun;
  bool scans_unmatched_ = false;
  ScanUnmatched unmatched_scan_;
  uint64_t rows_seen_ = 0;
  uint64_t most_rows_ = UINT64_MAX;  // of a result
  bool has_pieces_ = false;
  uint64_t rows_before_piece_ = 0, num_filtered_before_piece_ = 0;
  uint64_t next_input_ = 0, num_written_inputs_ = 0;  // of the piece; the first ones have been written
  const ProbeScratch scratch_;
  std::vector<uint8_t> members_;  // bits of an anti join's rows
  CounterBlock counters_;
  uint32_t num_new_candidates_ = 0;
  PartInput part_input_;
  // Of a join that has spilled:
  std::shared_ptr<const TableMemory> in_use_;  // while rows of the table are read
  std::vector<uint32_t> numbers_;              // partitions of a batch's rows
  std::vector<uint32_t> resident_rows_, spilled_rows_;
  std::vector<uint64_t> row_ids_;
  bool has_parts_ = false;             // follow the scan
  bool is_reading_ = false;            // SpilledJoin::BeginReading; not once the parts have begun
  bool has_left_ = false;              // SpilledJoin::Leave
  std::unique_ptr<PartProber> parts_;  // once they have begun
};

}  // namespace quern

#endif  // QUERN_RUNTIME_JOIN_HASH_JOIN_H_
