// SPDX-License-Identifier: Apache-2.0
// Sorts of more rows than memory holds, by merging (Knuth, The Art of Computer Programming 3, 5.4). A
// thread's rows that find no more memory are sorted and written to a store as a *run*; the runs are merged as they are
// read, range by range, by as many threads as read.
//
//     SpillingRows: LocalRows -> run, run, ..  -+                                      range 0  ->  Next, Next, ..
//     SpillingRows: LocalRows -> run, run, ..  -+-> merged to fewer, longer runs  ->   range 1  ->  Next, ..
#ifndef QUERN_RUNTIME_SORT_SPILLING_SPILLED_RUNS_H_
#define QUERN_RUNTIME_SORT_SPILLING_SPILLED_RUNS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <semaphore>
#include <shared_mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/shared_work.h"
#include "runtime/base/stop_flag.h"
#include "runtime/rows/output_batch.h"
#include "runtime/sort/local_rows.h"
#include "runtime/sort/sort_columns.h"
#include "runtime/sort/sort_descriptor.h"
#include "runtime/sort/sorted_rows.h"
#include "runtime/sort/spilling/range_merge.h"
#include "runtime/sort/spilling/sorted_run.h"
#include "runtime/spill/spill_context.h"
#include "runtime/spill/spilled_rows.h"

namespace quern {

class SpillingRows;

// The runs of a sort. *Threads*: any number at once.
class SpilledRuns {
 public:
  // stop_flag: not owned; may be null. level: how often rows are written with those of the first runs.
  SpilledRuns(SortContext context, const QuernSortEntryPoints& generic, std::shared_ptr<SpillContext> spill,
              const StopFlag* stop_flag, uint64_t level = 1);
  ~SpilledRuns();

  const SortContext& context() const { return context_; }
  SpillContext* spill() const { return spill_.get(); }
  const StopFlag* stop_flag() const { return stop_flag_; }
  bool has_runs() const;

  // Sorts rows and writes them as a run. budget: of sorting. *Errors*: those of a sort, and of RowWriter.
  absl::Status Write(LocalRows* rows, const std::shared_ptr<MemoryBudget>& budget);
  // The same for rows in chunks, which take about row_bytes each.
  absl::Status Write(SortInput input, uint64_t row_bytes, const std::shared_ptr<MemoryBudget>& budget);

  // The work after which rows can be read: writes what is still in memory, merges runs until all can be read at once,
  // and divides them into ranges. Called once.
  SharedWork* BeginMerge(std::vector<SpillingRows*> locals);
  // The result, after that.
  MergedRanges* ranges() const { return ranges_.get(); }

 private:
  class WritersTurn;
  static absl::StatusOr<uint64_t> Fill(SortedRows* sorted, uint64_t first, uint64_t end, uint64_t most_bytes,
                                       SortColumnWriter* columns, SortedRows::BlockBuffers* buffers, OutputBatch* out);
  absl::StatusOr<std::optional<SharedWork::Phase>> NextPhase();
  bool SetMemoryAsideFor(size_t num_runs);
  absl::Status MergeSome();
  uint64_t NumRanges() const;
  absl::Status WriteMerged(uint64_t row_bytes, RangeMerge* merge, RunWriter* writer) const;
  absl::Status CheckStop() const { return stop_flag_ == nullptr ? absl::OkStatus() : stop_flag_->Check(); }
  uint32_t most_runs() const;
  uint64_t OutRows(uint64_t row_bytes) const;

  const SortContext context_;
  SortContext run_context_;
  const QuernSortEntryPoints generic_;
  const std::shared_ptr<SpillContext> spill_;
  const StopFlag* const stop_flag_;
  const uint64_t level_;
  std::vector<ColumnType> types_;  // of a run: all keys, the row id of a stable sort, the payload
  std::shared_ptr<const SortDescriptor> longer_runs_, result_;  // of merges
  RowLeads leads_;
  static constexpr ptrdiff_t kMostWriters = 3;
  std::counting_semaphore<kMostWriters> writers_{kMostWriters};
  std::shared_mutex writing_;  // held by each of them, or by one alone
  mutable std::mutex mutex_;   // guards runs_
  std::vector<SortedRun> runs_;
  std::vector<SpillingRows*> last_locals_;
  bool wrote_locals_ = false, has_divided_ = false;
  SharedWork work_;
  std::vector<uint64_t> dividing_leads_;
  std::vector<std::vector<uint64_t>> bounds_;  // by run: of the ranges, without 0 and the run's end
  std::unique_ptr<MergedRanges> ranges_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_SORT_SPILLING_SPILLED_RUNS_H_
