// SPDX-License-Identifier: Apache-2.0
// The contract of operators that need all rows before the first result: joins (their build side), aggregations, sorts.
// Such an operator is a *sink*. Each thread adds batches to a *local state*; the sink combines the local states when it
// is finalised. (The terms are those of DuckDB's PhysicalOperator: sink, combine, finalise; a global and a local
// state.)
//
//     Appender(sink): Append(batch)*, Finish()   on each thread  ─┐
//     Appender(sink): Append(batch)*, Finish()                   ─┼─>  Work() until done   ─>  the operator's readers
//     sink.Append(batch)*                        on one thread   ─┘    on any threads
//
// What operators share stands here once: the order of calls, the mark of lost rows, row ids, counters, the observer and
// the work that threads do together. An operator supplies what a local state does with a batch, and how local states
// become the result.
#ifndef QUERN_RUNTIME_SINK_SINK_H_
#define QUERN_RUNTIME_SINK_SINK_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/counters.h"
#include "runtime/base/memory.h"
#include "runtime/base/shared_work.h"
#include "runtime/base/stop_flag.h"
#include "runtime/rows/batch_view.h"
#include "runtime/rows/job_observer.h"
#include "runtime/spill/spill_context.h"

namespace quern {

// The kind of the rows of a batch.
enum class RowKind : uint8_t {
  kInput,
  kStates,  // aggregations only: keys and states that another aggregation of the same spec returned
  kTuples,  // aggregations only: tuples that another part of the same aggregation has written, as one column
};

// The texts of errors about the order of calls.
struct SinkTexts {
  const char* rows;      // the name of what is added up: "groups"
  const char* complete;  // why no row may be added after finalise: "the groups are complete"
  const char* missing;   // what a failed append causes: "rows are missing from the groups"
  const char* accepted;  // what to do then: "a new aggregation"
};

// The rows of one thread. *Threads*: one at a time.
class LocalState : public OnOwnLines {
 public:
  explicit LocalState(std::shared_ptr<CounterSet> counters) : counters_(std::move(counters)) {}
  LocalState(const LocalState&) = delete;
  LocalState& operator=(const LocalState&) = delete;
  virtual ~LocalState() = default;

  // first_row_id: the row id of the batch's row 0. *Errors*: ResourceExhausted, or std::bad_alloc, after which the
  // first taken_rows_ rows of the batch have been added; others, after which any part may have been.
  virtual absl::Status Append(const BatchView& batch, RowKind kind, uint64_t first_row_id) = 0;

  // For a caller that was refused memory which a batch needs before it is appended: lets rows go, where the operator
  // spills. After OK the caller asks again. *Errors*: `refused` where nothing can leave; others as those of Append.
  virtual absl::Status FreeMemory(const absl::Status& refused) { return refused; }

  // Of an aggregation: the groups so far.
  virtual uint64_t num_groups() const { return 0; }

  CounterBlock* counters() { return &counters_; }

 protected:
  CounterBlock counters_;
  // Both are 0 and false when Append is called.
  uint64_t taken_rows_ = 0;       // of the batch
  bool is_within_block_ = false;  // after a refusal: rows behind those have left something that they alone complete
  bool is_broken_ = false;        // after a refusal: it came where the state cannot go on

 private:
  friend class Sink;
  friend class Appender;
  // The rows that a refused Append has left over.
  struct Rest {
    uint64_t first_row_id;  // the row id that was counted for row 0, or kCountedRowIds: they are to be counted again
    uint64_t num_rows;
    RowKind kind;
  };
  std::optional<Rest> rest_;
  bool needs_rest_ = false;  // a part of the refused batch is here
};

class Sink {
 public:
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  virtual ~Sink() = default;

  // Adds a batch to a local state of the sink's own. *Threads*: one at a time; an Appender each for more.
  // taken_rows: may be null; receives how many rows of the batch were added, its first ones: all after success, any
  // number after ResourceExhausted. The rest may then be appended as a batch of its own, with the same row ids as if
  // the whole batch had been; where rows were added, no other batch is accepted, and no finalise.
  // *Errors*: FailedPrecondition after finalise and for another batch than the rest, and InvalidArgument for a batch
  // without the spec's columns, all of which change nothing; ResourceExhausted; others, after which a part of the batch
  // may be missing and every further call fails.
  absl::Status Append(const BatchView& batch, RowKind kind = RowKind::kInput, uint64_t* taken_rows = nullptr);

  // As Appender::FreeMemory, of the local state of Append.
  absl::Status FreeMemory(const absl::Status& refused);

  // Does one piece of the work that combines the local states: a task, or the beginning of a phase. Most take some
  // milliseconds; nothing bounds them yet (a sort whose threads have coded strings differently begins with a pass over
  // their rows). Never waits for another thread. All appenders must have finished. After kDone the readers of the
  // operator may run.
  // *Threads*: any. *Errors*: Cancelled, ResourceExhausted, OutOfRange, the same for all threads. Where AbandonFinalise
  // allows it, all rows are then as they were, so that the host may try again once all threads have returned; otherwise
  // the sink cannot be used afterwards.
  absl::StatusOr<WorkState> Work();

  // Works until all is done; waits where other threads are busy. Nothing remains to be done after a first success.
  // *Threads*: any. *Errors*: as Work.
  absl::Status Finalise();
  bool is_finalised() const { return finalised_; }
  // Whether there was a batch or an appender, or the sink was finalised.
  bool has_begun() const { return begun_; }

  // *Errors*: FailedPrecondition where no row may be added any more; `call` is the name in the text.
  absl::Status CheckOpen(const char* call) const;

  // Marks the sink as missing rows, for a caller that cannot add all of a batch: every further call fails.
  void LoseRows() { lost_rows_ = true; }
  // For threads that work together, each of which has an error or none: the error that made the sink lose rows, else
  // `status`. A thread that comes later is told "append after a failed append", with the text of that error behind it,
  // and may be the first to return.
  absl::Status FirstLoss(const absl::Status& status) const;
  const SinkTexts& texts() const { return texts_; }

  // Sets a flag that ends appends and the work with Cancelled. Call it before Append.
  void SetStopFlag(std::shared_ptr<const StopFlag> stop_flag) { stop_flag_ = std::move(stop_flag); }
  const StopFlag* stop_flag() const { return stop_flag_.get(); }  // may be null

  // Lets the operator write rows to a store where memory is short, and read them back. Call it before Append. Operators
  // that cannot spill ignore it.
  void SetSpill(std::shared_ptr<SpillContext> spill) { spill_ = std::move(spill); }
  const std::shared_ptr<SpillContext>& spill() const { return spill_; }  // may be null

  // Sets an observer for the rest of the sink's life. Call it before Append.
  void Observe(std::unique_ptr<JobObserver> observer) { observer_ = std::move(observer); }

  // *Threads*: any, at any time.
  Counters counters() const { return counters_->Sum(); }

 protected:
  // texts: kept, not copied.
  Sink(const SinkTexts& texts, std::shared_ptr<CounterSet> counters, std::shared_ptr<MemoryBudget> budget)
      : counters_(std::move(counters)), budget_(std::move(budget)), texts_(texts) {}

  // ---- what an operator supplies ----

  virtual std::unique_ptr<LocalState> NewLocalState() = 0;
  // *Errors*: InvalidArgument for a batch without the spec's columns.
  virtual absl::Status CheckInput(const BatchView& batch, RowKind kind) const = 0;
  virtual void ShowTo(JobObserver* observer, const BatchView& batch) const { observer->SeeInput(batch); }
  // Makes the work that combines the local states, all of which have arrived; the operator owns it. Called once, by one
  // thread, with the mutex held.
  virtual absl::StatusOr<SharedWork*> BeginFinalise() = 0;
  // Takes over what the work has made, all tasks of which are done. Called once, by one thread, with the mutex held.
  // The SharedWork itself must stay, since other threads may just be returning from it.
  virtual void EndFinalise() = 0;
  // Frees what BeginFinalise and its work, which failed, have made; no thread is in the work. Returns whether all rows
  // are as they were before.
  virtual bool AbandonFinalise() { return false; }

  // ---- what it may use ----

  // The local state of Append; null before.
  LocalState* own_local_state() const { return own_local_state_.get(); }
  // All local states, from BeginFinalise on; their type is that of NewLocalState.
  std::vector<std::unique_ptr<LocalState>>* local_states() { return &local_states_; }
  JobObserver* observer() const { return observer_.get(); }
  // For a sink that does a part of this one's work: it is stopped with it.
  void StopTogether(Sink* part) const { part->stop_flag_ = stop_flag_; }
  // Tells the observer, if there is one, that a finalised job has ended; for destructors. `fill` as for EndJob.
  template <class Fill>
  void EndJob(const Fill& fill) {
    if (observer_ != nullptr && finalised_) observer_->EndJob(fill);
  }

  const std::shared_ptr<CounterSet> counters_;
  const std::shared_ptr<MemoryBudget> budget_;
  std::mutex mutex_;                     // guards which thread begins and ends, and what appenders add
  std::shared_ptr<SpillContext> spill_;  // null: rows stay in memory

 private:
  friend class Appender;
  absl::Status AppendTo(LocalState* local, const BatchView& batch, RowKind kind, uint64_t* taken_rows);
  uint64_t CountRowIds(const LocalState& local, bool is_rest, uint64_t num_ids);
  absl::Status EndRefused(LocalState* local, const BatchView& batch, RowKind kind, uint64_t counted,
                          absl::Status status);
  absl::Status CheckWhole(const LocalState& local, const char* call) const;
  absl::Status Combine(std::unique_ptr<LocalState> local);
  absl::StatusOr<SharedWork*> Begin();
  void Lose(const absl::Status& error);
  absl::Status End(absl::Status status);
  void OpenAgain();

  const SinkTexts& texts_;
  std::unique_ptr<LocalState> own_local_state_;
  std::vector<std::unique_ptr<LocalState>> local_states_;
  std::atomic<uint64_t> next_row_id_{0};
  std::shared_ptr<const StopFlag> stop_flag_;  // may be null
  std::atomic<int> num_working_{0};            // threads in the work; falls without the mutex while the work goes on
  SharedWork* work_ = nullptr;                 // under the mutex, as the next
  bool ended_ = false;                         // EndFinalise was called
  std::atomic<bool> begun_{false};
  std::atomic<bool> finalising_{false};  // no row may be added
  std::atomic<bool> lost_rows_{false};   // an append failed in the middle of a batch, or finalising failed
  mutable std::mutex loss_mutex_;        // taken last
  absl::Status first_loss_;              // with which error, where it is known; under loss_mutex_
  std::atomic<bool> finalised_{false};
  std::unique_ptr<JobObserver> observer_;  // mostly null
};

// Adds batches to a sink from one thread while others do the same from theirs.
class Appender {
 public:
  explicit Appender(std::shared_ptr<Sink> sink);
  Appender(const Appender&) = delete;
  Appender& operator=(const Appender&) = delete;
  ~Appender();

  // As Sink::Append, for which Finish takes the place of finalise. Counted row ids continue from the batch that was
  // appended last, by whichever appender. A refused batch of which nothing is here, and which does not come again,
  // leaves a gap in them where another appender has counted on meanwhile.
  absl::Status Append(const BatchView& batch, RowKind kind = RowKind::kInput, uint64_t* taken_rows = nullptr);
  // As LocalState::FreeMemory; after another error than `refused` every further call fails.
  absl::Status FreeMemory(const absl::Status& refused);
  // After ResourceExhausted: whether a part of the batch is here, so that the rest must be appended before Finish.
  // False where nothing is: any batch may be appended then.
  bool needs_rest() const;
  // As Sink::CheckOpen; also FailedPrecondition after Finish.
  absl::Status CheckOpen(const char* call) const;
  // Hands the rows to the sink. An appender that is destroyed without Finish discards its rows. *Errors*:
  // FailedPrecondition after finalise, and while the rest of a refused batch is missing.
  absl::Status Finish();
  // As LocalState::num_groups; 0 after Finish.
  uint64_t num_groups() const { return local_ == nullptr ? 0 : local_->num_groups(); }

 private:
  std::shared_ptr<Sink> sink_;
  std::unique_ptr<LocalState> local_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_SINK_SINK_H_
