// SPDX-License-Identifier: Apache-2.0
// Merges sorted runs of one spec, such as the results of several threads, machines or files, into one sorted stream,
// batch by batch.
//
//     RunMerger merger(descriptor, entry points, code, budget, num_runs);
//     for (;;) {
//       next = merger.Next(&out);                 // rows whose order is certain by now are in `out`
//       if (next == kDone) break;
//       if (next == kNeedsInput) merger.Input(merger.needed_run(), batch) or merger.End(merger.needed_run());
//     }
#ifndef QUERN_RUNTIME_SORT_RUN_MERGER_H_
#define QUERN_RUNTIME_SORT_RUN_MERGER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/counters.h"
#include "runtime/base/memory.h"
#include "runtime/rows/batch_view.h"
#include "runtime/rows/entry_slot.h"
#include "runtime/rows/output_batch.h"
#include "runtime/sort/sort_descriptor.h"

namespace quern {

enum class MergeState : uint8_t {
  kRows,        // `out` has rows; call again
  kNeedsInput,  // run needed_run() needs its next batch or its end; `out` may have rows
  kDone,        // `out` may have the last rows
};

// Rows are compared by the comparison keys of key_comparison.h: where a key's strings are longer than its words, the
// words of later keys are compared after the strings' tails. *Threads*: one at a time.
class RunMerger {
 public:
  // The spec's limit applies to the merged rows; rows with equal keys come in the order of their runs. The first call
  // of Next rejects specs with window functions. num_runs: 1 to 65536.
  RunMerger(std::shared_ptr<const SortDescriptor> descriptor, SortEntrySource entry_points,
            std::shared_ptr<const void> code, std::shared_ptr<MemoryBudget> budget, uint32_t num_runs);
  ~RunMerger();

  // Bounds the memory of the windows, roughly; small ones cost time. Call it before Input.
  void SetWindowBytes(uint64_t bytes);
  // The merge ends after so many rows, if the spec has no smaller limit. Call it before Next.
  void SetLimit(uint64_t num_rows);

  // Adds the next batch of a run, with columns as for RowSort::Append. All rows of a run must be in order. The batch's
  // vectors must stay until the run needs input again (`owner` keeps them alive).
  // *Errors*: InvalidArgument for a run out of range, a batch without the spec's columns, or rows that are not in order
  // (found when they are compared; the message names the row's number); FailedPrecondition for a run that has ended or
  // has rows left; ResourceExhausted.
  absl::Status Input(uint32_t run, const BatchView& batch);
  absl::Status End(uint32_t run);

  // Fills `out` (emptied first; columns SortOutputTypes(spec)); without output columns it counts.
  // *Cost*: log2(num_runs) comparisons of words a row.
  // *Errors*: InvalidArgument for a number of runs out of range, a spec with window functions, an output batch with
  // other columns or without rows, or rows that are not in order; ResourceExhausted. After rows out of order or lack of
  // memory, here or in Input, all calls return FailedPrecondition.
  absl::StatusOr<MergeState> Next(OutputBatch* out);
  // *Threads*: any, at any time.
  Counters counters() const;
  uint32_t needed_run() const { return needed_run_; }

 private:
  struct Run;
  struct State;
  uint32_t needed_run_ = 0;
  std::unique_ptr<State> state_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_SORT_RUN_MERGER_H_
