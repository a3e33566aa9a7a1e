// SPDX-License-Identifier: Apache-2.0
// The rows that one thread has appended to a sort that spills, and which it writes as runs.
#ifndef QUERN_RUNTIME_SORT_SPILLING_ROWS_H_
#define QUERN_RUNTIME_SORT_SPILLING_ROWS_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/rows/batch_view.h"
#include "runtime/sink/sink.h"
#include "runtime/sort/local_rows.h"
#include "runtime/sort/spilled_runs.h"
#include "runtime/spec/column_type.h"
#include "runtime/spill/budget_with_reserve.h"

namespace quern {

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

#endif  // QUERN_RUNTIME_SORT_SPILLING_ROWS_H_
