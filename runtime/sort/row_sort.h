// SPDX-License-Identifier: Apache-2.0
// The state of one sort: batches in, finalise, sorted rows out. It owns the memory and the order of the steps; what
// depends on the spec is a kernel's (generic or compiled), reached through QuernSortEntryPoints; sorting entries of
// words depends on no spec (prefix_sort.h).
//
//     RowSort sort(descriptor, entry points, code, budget, options);
//     sort.Append(...)*  ->  sort.Finalise()  ->  SortReader: Next(...)*
#ifndef QUERN_RUNTIME_SORT_ROW_SORT_H_
#define QUERN_RUNTIME_SORT_ROW_SORT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/counters.h"
#include "runtime/base/memory.h"
#include "runtime/rows/batch_view.h"
#include "runtime/rows/entry_slot.h"
#include "runtime/rows/output_batch.h"
#include "runtime/sort/sort_descriptor.h"
#include "runtime/sort/sort_options.h"

namespace quern {

struct SortStats {
  uint64_t input_rows = 0;
  uint64_t num_rows = 0;       // after Finalise: that come out
  uint64_t dropped_rows = 0;   // that a limit or threshold left out as they arrived
  uint64_t entry_bytes = 0;    // of an entry, after Finalise
  uint32_t key_bits = 0;       // of the words, that vary
  uint64_t collided_rows = 0;  // whose order the entries did not say
  uint64_t stored_bytes =
      0;  // of the rows that were sorted, without those of long strings: what prefetch settings go by
  const char* prefetch_class = "";  // after Finalise: "group", or "off" where the plan does not prefetch
  const char* method = "";  // how entries were sorted: "none", "sorted", "reversed", "nearly_sorted", "insertion",
                            // "vector", "radix", "comparison"
};

class JobObserver;
class SortedRows;
class LocalRows;

class SortThreshold;
struct SortContext;

class RowSort {
 public:
  // *Ownership*: `code` keeps the kernel's machine code alive. *Errors*: none; memory is taken later.
  RowSort(std::shared_ptr<const SortDescriptor> descriptor, SortEntrySource entry_points,
          const QuernSortEntryPoints& generic, std::shared_ptr<const void> code, std::shared_ptr<MemoryBudget> budget,
          const SortOptions& options);
  ~RowSort();

  // Adds a batch: keys and payload as the spec lists them (a rowid among the payload has a column without data). Values
  // of fixed width are copied; the bytes of strings above 12 stay where they are until the sort and its readers are
  // gone (`owner` keeps them), except in a sort with a limit, which copies those of the rows that it keeps. *Cost*: a
  // few ns a key. *Threads*: one at a time; SortAppender for more. *Errors*: FailedPrecondition after Finalise,
  // InvalidArgument for a batch without the spec's columns, which leave the sort as it was; ResourceExhausted, after
  // which it refuses to go on.
  absl::Status Append(const BatchView& batch);

  // Sorts. *Cost*: 5 to 30 ns a row. *Errors*: ResourceExhausted.
  absl::Status Finalise();
  // The same by any number of threads at once, each of which takes part and comes back when all is done (at once, where
  // it is).
  absl::Status FinaliseShared();

  // Another setting for rows of any size, from the next block that a reader reads on (kGather) and for sorting that
  // begins later (kCollision): for who measures settings. Nothing changes where the plan does not prefetch. *Threads*:
  // none while another call is under way.
  void SetPrefetch(PrefetchLoop loop, const PrefetchSetting& setting);

  // A sort with a limit: writes the key columns of the row that rows must come before (or tie with) to get among the
  // first `limit`, as one row; answers false, and no row, while there are too few rows or the spec has no limit. `out`:
  // SortKeyTypes(spec).
  // *Threads*: any, at any time before Finalise.
  absl::StatusOr<bool> GetThreshold(OutputBatch* out) const;
  // Tells that rows which come after the one row of `keys` need not come out: what another sort or a host knows
  // already.
  // *Errors*: InvalidArgument for a spec without limit, or not one row.
  absl::Status SetThreshold(const BatchView& keys);

  // Whether bytes of strings above 12 must stay where they are, as Append says.
  bool keeps_strings() const;

  // Who looks on from now on, until the sort is gone; to be called before Append.
  void Observe(std::unique_ptr<JobObserver> observer);

  const SortStats& stats() const { return stats_; }
  // *Threads*: any, at any time.
  Counters counters() const { return counters_->Sum(); }
  const SortDescriptor& descriptor() const { return *descriptor_; }

 private:
  friend class SortAppender;
  friend class SortReader;
  absl::Status CheckOpen(const char* call) const;
  absl::Status AppendTo(LocalRows* local, const BatchView& batch);
  SortContext Context() const;
  std::unique_ptr<LocalRows> NewLocalState() const;
  absl::Status AddLocalState(std::unique_ptr<LocalRows> local);
  absl::Status UnifyLocalStates();
  absl::StatusOr<SortedRows*> BeginSorting();
  absl::Status Sort();

  std::shared_ptr<const SortDescriptor> descriptor_;
  SortEntrySource entry_points_;
  const QuernSortEntryPoints generic_;
  std::shared_ptr<CounterSet> counters_;
  std::shared_ptr<const void> code_;
  std::shared_ptr<MemoryBudget> budget_;
  SortOptions options_;
  SortStats stats_;
  std::shared_ptr<SortThreshold> threshold_;
  std::mutex mutex_;
  std::unique_ptr<LocalRows> own_local_state_;
  std::vector<std::unique_ptr<LocalRows>> local_states_;
  std::atomic<uint64_t> next_row_id_{0};
  std::atomic<bool> lost_rows_{false};  // an append or the sort failed
  std::atomic<bool> sorts_{false};
  std::unique_ptr<SortedRows> rows_;
  std::atomic<uint64_t> next_position_{0};  // how far the readers have come
  std::atomic<bool> finalised_{false};
  std::unique_ptr<JobObserver> observer_;  // mostly null
};

// Adds batches from one thread while others do the same from theirs.
class SortAppender {
 public:
  explicit SortAppender(std::shared_ptr<RowSort> sort);
  ~SortAppender();

  absl::Status Append(const BatchView& batch);
  // Hands the rows over. An appender that goes without it takes its rows with it. *Errors*: FailedPrecondition after
  // Finalise.
  absl::Status Finish();

 private:
  std::shared_ptr<RowSort> sort_;
  std::unique_ptr<LocalRows> local_state_;
};

// Gives out the rows of a finalised sort in order. *Threads*: each reader belongs to one thread; any number of them
// share the rows: each takes the next ones that none has taken, and tells where they stand.
class SortReader {
 public:
  explicit SortReader(std::shared_ptr<RowSort> sort);
  ~SortReader();

  // Fills `out` (emptied first) with the next rows, up to out->capacity() of them; answers whether there may be more.
  // Without output columns it counts. *Cost*: about a random cache line a row where tuples have fields, prefetched.
  // *Errors*: FailedPrecondition before Finalise; InvalidArgument for an output batch of other columns or of no rows;
  // ResourceExhausted.
  absl::StatusOr<bool> Next(OutputBatch* out);
  // The place of the last batch's first row among all rows that come out.
  uint64_t position() const { return position_; }

 private:
  struct State;
  std::shared_ptr<RowSort> sort_;
  std::unique_ptr<State> state_;
  uint64_t position_ = 0;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_SORT_ROW_SORT_H_
