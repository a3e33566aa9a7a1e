// SPDX-License-Identifier: Apache-2.0
// The state of one hash join: build batches in, finalise, probe batches in, output batches out. It owns the memory and
// the order of the steps; the loops are a kernel's (generic or compiled), reached through QuernJoinEntryPoints.
//
//     HashJoin join(descriptor, entry points, code, budget, options);
//     join.Append(...)*  ->  join.Finalise()  ->  any number of JoinProber: SetInput(...), Next(...)*
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
#include "runtime/abi/kernel_abi.h"
#include "runtime/base/adaptive_gate.h"
#include "runtime/base/counters.h"
#include "runtime/base/memory.h"
#include "runtime/join/join_descriptor.h"
#include "runtime/join/join_loop.h"
#include "runtime/join/join_options.h"
#include "runtime/join/join_table.h"
#include "runtime/join/table_builder.h"
#include "runtime/rows/batch_view.h"
#include "runtime/spec/spec.h"

namespace quern {

struct JoinStats {
  uint64_t build_rows = 0;  // appended, null keys included
  uint64_t table_rows = 0;  // of them in the table: without null keys that match nothing
  uint64_t directory_bytes = 0;
  uint64_t tuple_bytes = 0;        // all tuples; slots, where the layout has slots
  uint32_t prefetch_distance = 0;  // chosen at Finalise; rows, or kWholeBatch; 0 where the plan does not prefetch
  const char* prefetch_class =
      "";  // at Finalise: "l2", "l3", "dram" by the table's bytes; "off" where the plan does not prefetch
  const char* layout = "";  // chosen at Finalise (join_table.h)
};

class BuildSide;
class JobObserver;
class JoinAppender;

// *Example* with threads of the caller's own, each of which runs
//
//     JoinAppender appender(join);   while (batch) appender.Append(batch);   appender.Finish();
//     -- all threads have come here --
//     join->FinaliseShared();
//     JoinProber prober(join);       while (batch) { prober.SetInput(batch); while (more) more = prober.Next(&out); }
//     -- all threads have come here; only for kinds that keep build rows --
//     prober.SetUnmatched();         while (more) more = prober.Next(&out);
class HashJoin {
 public:
  // *Ownership*: `code` keeps the kernel's machine code alive. *Errors*: none; memory is taken later.
  HashJoin(std::shared_ptr<const JoinDescriptor> descriptor, JoinEntrySource entry_points,
           std::shared_ptr<const void> code, std::shared_ptr<MemoryBudget> budget, const JoinOptions& options);
  ~HashJoin();

  // Adds a batch to the build side. Strings are not copied: the batch's owner is kept until the join is destroyed.
  // *Cost*: one pass; tuple_bytes a row, and 8 more where keys are no words. *Threads*: one at a time; JoinAppender for
  // more. *Errors*: FailedPrecondition after Finalise, InvalidArgument for a batch without the spec's columns, which
  // leave the join as it was; ResourceExhausted over the budget, after which a part of the batch may be missing, and
  // the join refuses to go on.
  absl::Status Append(const BatchView& batch);

  // Builds the table. *Cost*: one or two random cache lines a row, prefetched or in cache; twice the tuples' bytes at
  // the peak. *Errors*: ResourceExhausted, which leaves the join as it was before.
  absl::Status Finalise();

  // The same by any number of threads at once, each of which takes part and comes back when the table is built (at
  // once, where it is).
  // *Errors*: as Finalise, the same for all threads; then the join is of no use any more.
  absl::Status FinaliseShared();

  // Another setting for a loop, whatever the size of the table: for tuners. A loop that probes takes it up at its next
  // batch, one that builds before Finalise, and those that this join's table does not have never. Changes no row.
  // *Threads*: none may append, build or probe at the same time.
  void SetPrefetch(PrefetchLoop loop, const PrefetchSetting& setting);

  // Who looks on from now on, until the join is gone; to be called before Append.
  void Observe(std::unique_ptr<JobObserver> observer);

  const JoinStats& stats() const { return stats_; }
  // Whether probers have left prefetch off, against the schedule, where few rows were hits.
  bool prefetch_adapted() const { return prefetch_adapted_.load(std::memory_order_relaxed); }
  // *Threads*: any, at any time.
  Counters counters() const { return counters_->Sum(); }
  const JoinDescriptor& descriptor() const { return *descriptor_; }

 private:
  friend class JoinProber;
  friend class JoinAppender;
  absl::Status CheckOpen(const char* call) const;
  absl::Status AppendTo(BuildSide* side, const BatchView& batch);
  absl::Status AddBuildSide(std::unique_ptr<BuildSide> side);
  std::unique_ptr<BuildSide> NewBuildSide() const;
  std::unique_ptr<TableBuilder> NewBuilder();
  void Take(TableBuilder* builder);

  std::shared_ptr<const JoinDescriptor> descriptor_;
  JoinEntrySource entry_points_;
  std::shared_ptr<CounterSet> counters_;
  std::shared_ptr<const void> code_;
  std::shared_ptr<MemoryBudget> budget_;
  JoinOptions options_;
  JoinStats stats_;
  std::mutex mutex_;  // of what appenders bring, and of who finalises
  std::unique_ptr<BuildSide> own_side_;
  std::vector<std::unique_ptr<BuildSide>> sides_;  // all, when finalising
  std::atomic<uint64_t> next_row_id_{0};
  std::atomic<bool> lost_rows_{false};  // an append failed in the middle of a batch
  std::unique_ptr<TableBuilder> shared_builder_;
  std::atomic<bool> finalised_{false};
  JoinTable table_;
  TableMemory memory_;
  TupleList null_rows_;
  bool build_is_empty_ = true;
  bool build_has_null_key_ = false;
  std::unique_ptr<JobObserver> observer_;         // mostly null
  mutable std::atomic<uint64_t> next_morsel_{0};  // of the drain
  mutable std::atomic<bool> prefetch_adapted_{false};
};

// Adds batches to a join from one thread while others do the same from theirs.
class JoinAppender {
 public:
  explicit JoinAppender(std::shared_ptr<HashJoin> join);
  ~JoinAppender();

  // As HashJoin::Append. Row ids that are counted go on from whatever batch came before, of any appender.
  absl::Status Append(const BatchView& batch);
  // Hands the rows to the join. An appender that goes without it takes its rows with it. *Errors*: FailedPrecondition
  // after Finalise.
  absl::Status Finish();

 private:
  std::shared_ptr<HashJoin> join_;
  std::unique_ptr<BuildSide> side_;
};

// One output batch: the columns of JoinOutputTypes(spec). Buffers are owned by the batch.
class OutputBatch;

// Probes a finalised join. *Threads*: each prober belongs to one thread; any number of them may share a join.
class JoinProber {
 public:
  explicit JoinProber(std::shared_ptr<const HashJoin> join);
  ~JoinProber();

  // Starts on a batch, whose columns must stay until Next has answered false.
  absl::Status SetInput(BatchView batch);

  // Starts on the build rows that come out on their own (right, full, right_semi, right_anti; none for other kinds). To
  // be called when all probers are done with all inputs. Probers share the rows: each row comes out of one of them,
  // once.
  absl::Status SetUnmatched();

  // Fills `out` (emptied first) with up to out->capacity() rows, fewer only where the input ends or an output column is
  // full to its offsets' limit. Answers whether there is more to come from this input. Without output columns it
  // counts, in one call.
  // *Errors*: InvalidArgument for an output batch of other columns or of no rows; FailedPrecondition for the second
  // match of a single join; ResourceExhausted. After the last two, rows of this input are lost and only SetInput helps.
  absl::StatusOr<bool> Next(OutputBatch* out);

 private:
  void Begin(BatchView batch);
  void AdaptPrefetch();
  bool is_quiet() const { return prefetch_gate_.has_value() && !prefetch_gate_->is_open(); }

  std::shared_ptr<const HashJoin> join_;
  JoinTable unprefetched_table_;  // the join's, without prefetch; where hits are rare
  std::optional<AdaptiveGate> prefetch_gate_;
  uint64_t adapt_rows_ = 0, adapt_hits_ = 0;
  BatchView input_;
  QuernJoinProbeArgs args_;
  bool scans_unmatched_ = false;
  ScanUnmatched unmatched_scan_;
  uint64_t rows_seen_ = 0;
  std::unique_ptr<QuernProbeScratch> scratch_;
  CounterBlock counters_;
  uint32_t num_new_candidates_ = 0;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_JOIN_HASH_JOIN_H_
