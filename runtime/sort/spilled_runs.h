// SPDX-License-Identifier: Apache-2.0
// Sorts of more rows than memory holds: an external merge sort (Knuth, The Art of Computer Programming 3, 5.4). A
// thread's rows that find no more memory are sorted and written to a store as a *run*; the runs are merged as they are
// read.
//
//     SpillingRows: LocalRows -> run, run, ..  -+
//     SpillingRows: LocalRows -> run, run, ..  -+-> merged to fewer, longer runs  ->  Next, Next, ..
#ifndef QUERN_RUNTIME_SORT_SPILLED_RUNS_H_
#define QUERN_RUNTIME_SORT_SPILLED_RUNS_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/shared_work.h"
#include "runtime/base/stop_flag.h"
#include "runtime/rows/output_batch.h"
#include "runtime/sink/sink.h"
#include "runtime/sort/local_rows.h"
#include "runtime/sort/run_merger.h"
#include "runtime/sort/sort_descriptor.h"
#include "runtime/spill/budget_with_reserve.h"
#include "runtime/spill/spill_context.h"
#include "runtime/spill/spilled_rows.h"

namespace quern {

class SpillingRows;

// The runs of a sort. *Threads*: any number at once.
class SpilledRuns {
 public:
  // stop_flag: not owned; may be null.
  SpilledRuns(SortContext context, const QuernSortEntryPoints& generic, std::shared_ptr<SpillContext> spill,
              const StopFlag* stop_flag);
  ~SpilledRuns();

  const SortContext& context() const { return context_; }
  SpillContext* spill() const { return spill_.get(); }
  const StopFlag* stop_flag() const { return stop_flag_; }
  bool has_runs() const;

  // Sorts rows and writes them as a run. budget: of sorting. *Errors*: those of a sort, and of RowWriter.
  absl::Status Write(LocalRows* rows, const std::shared_ptr<MemoryBudget>& budget);
  // Makes runs of the rows of other threads, for one that finds no memory; returns whether there were any.
  absl::StatusOr<bool> WriteOthers(const SpillingRows* except);
  void Register(SpillingRows* rows);
  void Deregister(SpillingRows* rows);

  // The work after which rows can be read: writes what is still in memory, and merges runs until all can be read at
  // once. Called once.
  SharedWork* BeginMerge(std::vector<SpillingRows*> locals);
  // Of the result.
  uint64_t num_rows() const;
  // The next rows, as SortReader::Next.
  absl::StatusOr<bool> Next(OutputBatch* out, uint64_t* position);

 private:
  struct Merge;
  struct Run {
    SpilledRows rows;
    uint64_t level = 1;  // how often its rows were written
  };
  absl::StatusOr<std::optional<SharedWork::Phase>> NextPhase();
  absl::Status MergeSome();
  absl::Status WriteMerged(uint64_t row_bytes, Merge* merge, RowWriter* writer) const;
  absl::Status CheckStop() const { return stop_flag_ == nullptr ? absl::OkStatus() : stop_flag_->Check(); }
  uint32_t most_runs() const;
  uint64_t OutRows(uint64_t row_bytes) const;

  const SortContext context_;
  SortContext run_context_;
  const SortEntrySource generic_;
  const std::shared_ptr<SpillContext> spill_;
  const StopFlag* const stop_flag_;
  std::vector<ColumnType> types_;  // of a run: all keys, the row id of a stable sort, the payload
  std::shared_ptr<const SortDescriptor> longer_runs_, result_;  // of merges
  std::mutex write_mutex_;
  mutable std::mutex mutex_;  // guards runs_
  std::vector<Run> runs_;
  std::mutex locals_mutex_;
  std::vector<SpillingRows*> locals_;
  std::vector<SpillingRows*> last_locals_;
  bool wrote_locals_ = false;
  SharedWork work_;
  uint64_t num_rows_ = 0;
  std::mutex read_mutex_;  // guards what follows
  std::unique_ptr<Merge> merge_;
  uint64_t position_ = 0;
  absl::Status read_status_;
};

// The local state of a sort that spills. What sorting its rows takes is kept in reserve.
class SpillingRows final : public LocalState {
 public:
  explicit SpillingRows(std::shared_ptr<SpilledRuns> runs);
  ~SpillingRows() override { runs_->Deregister(this); }

  // *Errors*: as LocalRows and RowWriter.
  absl::Status Append(const BatchView& batch, RowKind kind, uint64_t first_row_id) override;
  absl::Status FreeMemory(const absl::Status& refused) override;

  LocalRows* rows() const { return rows_.get(); }
  uint64_t num_input_rows() const { return num_input_rows_; }
  void GiveReserveBack() { memory_.GiveBack(); }
  // Makes a run of the rows; returns whether there were any. *Threads*: any.
  absl::StatusOr<bool> Spill();

 private:
  absl::StatusOr<uint64_t> AppendSome(const BatchView& batch, uint64_t first_row_id);
  absl::StatusOr<bool> SpillLocked();
  absl::Status ReserveFor(uint64_t num_rows);
  std::unique_ptr<LocalRows> NoRows() const;
  absl::StatusOr<uint64_t> AddPiece(const BatchView& batch, uint64_t first_row_id, uint64_t n, bool* is_refused);

  const std::shared_ptr<SpilledRuns> runs_;
  std::vector<ColumnType> keys_, payload_;
  std::mutex mutex_;  // guards what follows: another thread may spill
  BudgetWithReserve memory_;
  std::unique_ptr<LocalRows> rows_;
  uint64_t num_input_rows_ = 0;
  uint64_t piece_rows_;  // that are appended at a time
};

}  // namespace quern

#endif  // QUERN_RUNTIME_SORT_SPILLED_RUNS_H_
