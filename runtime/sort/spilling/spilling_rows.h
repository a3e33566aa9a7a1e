// SPDX-License-Identifier: Apache-2.0
// The rows that one thread has appended to a sort that spills: it divides them, or writes them as runs.
#ifndef QUERN_RUNTIME_SORT_SPILLING_SPILLING_ROWS_H_
#define QUERN_RUNTIME_SORT_SPILLING_SPILLING_ROWS_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/rows/batch_view.h"
#include "runtime/sink/sink.h"
#include "runtime/sort/local_rows.h"
#include "runtime/sort/spilling/spilled_sort.h"
#include "runtime/spec/column_type.h"
#include "runtime/spill/budget_with_reserve.h"
#include "runtime/spill/tuple_blocks.h"

namespace quern {

// The local state of a sort that spills. What becomes of its rows when they leave is kept in reserve: what sorting them
// takes, or what dividing them does.
class SpillingRows final : public LocalState {
 public:
  explicit SpillingRows(std::shared_ptr<SpilledSort> sort);
  ~SpillingRows() override { sort_->Deregister(this); }

  // *Errors*: as LocalRows and RowWriter.
  absl::Status Append(const BatchView& batch, RowKind kind, uint64_t first_row_id) override;
  absl::Status FreeMemory(const absl::Status& refused) override;

  LocalRows* rows() const { return rows_.get(); }
  uint64_t num_input_rows() const { return num_input_rows_; }

  // What follows: *Threads*: any.
  // Whether a thread adds rows, or lets them go.
  bool is_at_work() { return !std::unique_lock<std::mutex>(mutex_, std::try_to_lock).owns_lock(); }
  // Rows that were not divided yet, and a sample of them: of each `step` rows, one.
  uint64_t num_rows();
  void AddSample(uint64_t step, std::vector<RowLead>* sample);
  // Gives back what is in reserve; all but what rows need that are to be divided.
  void GiveReserveBack();
  void ShrinkReserve();
  // Reserves what sorting all rows takes; false where that is refused.
  bool ReserveToSort();
  // Makes a run of the rows, or divides them; with frees_blocks, writes some of those that are divided, also of those
  // that have just been. Returns whether there were any. *Errors*: those of SpilledRuns::Write and
  // RangePartitions::Divide.
  absl::StatusOr<bool> LetGo(bool frees_blocks);

  // Makes a run of rows that are left. Divides them, and keeps what is in memory. *Threads*: one, when no row is
  // appended any more.
  absl::Status EndRuns() { return LetGo(/*frees_blocks=*/true).status(); }
  absl::Status EndDividing();

 private:
  absl::StatusOr<uint64_t> AppendSome(const BatchView& batch, uint64_t first_row_id);
  absl::StatusOr<uint64_t> DivideSome(const BatchView& batch, uint64_t first_row_id);
  absl::StatusOr<bool> MakeRoom(bool frees_blocks);
  absl::StatusOr<bool> MayTryAgain(bool frees_blocks);
  absl::Status DivideAll();
  absl::Status RestoreFields();
  bool divides() const;
  uint64_t BytesInReserve(uint64_t num_rows) const;
  uint64_t BytesToSort(uint64_t num_rows) const;
  absl::Status ReserveAtLeast(uint64_t bytes);
  std::unique_ptr<LocalRows> NoRows() const;
  absl::StatusOr<uint64_t> AddPiece(const BatchView& batch, uint64_t first_row_id, uint64_t n, bool* is_refused);

  const std::shared_ptr<SpilledSort> sort_;
  std::vector<ColumnType> keys_, payload_;
  std::mutex mutex_;  // guards what follows: another thread may let rows go
  BudgetWithReserve memory_;
  std::unique_ptr<LocalRows> rows_;
  std::unique_ptr<TupleBlocks> blocks_;  // of rows that were divided; null: none were
  uint64_t num_input_rows_ = 0;
  uint64_t piece_rows_;  // that are appended at a time
  // Since rows were appended, and of those since rows left.
  uint32_t num_refusals_ = 0, num_tries_ = 0;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_SORT_SPILLING_SPILLING_ROWS_H_
