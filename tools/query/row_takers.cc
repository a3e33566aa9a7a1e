// SPDX-License-Identifier: Apache-2.0
#include "tools/query/row_takers.h"

#include <algorithm>
#include <bit>

#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "runtime/rows/copy_rows.h"
#include "tools/query/text_views.h"

namespace quern::query {
namespace {

constexpr uint64_t kFirstResultRows = 1024;

}  // namespace

ResultTaker::ResultTaker(std::vector<ColumnType> types, const std::vector<QueryColumn>& columns,
                         std::shared_ptr<MemoryBudget> budget)
    : types_(std::move(types)), columns_(columns), budget_(std::move(budget)), next_rows_(kFirstResultRows) {}

ResultTaker::~ResultTaker() {
  for (ArrowArray& batch : batches_) batch.release(&batch);
}

absl::Status ResultTaker::Append(const BatchView& batch) {
  num_rows_ += batch.num_rows;
  for (uint64_t row = 0; row < batch.num_rows;) {
    if (out_ == nullptr) {
      const uint64_t capacity = std::max(next_rows_, std::bit_ceil(batch.num_rows - row));
      out_ = std::make_unique<OutputBatch>(types_, std::min(capacity, thresholds::kMorselRows), budget_);
      QUERN_RETURN_IF_ERROR(out_->Reset());
      next_rows_ = std::min(4 * next_rows_, thresholds::kMorselRows);
    }
    QUERN_ASSIGN_OR_RETURN(const uint64_t copied, CopyRows(batch, types_, row, out_.get()));
    row += copied;
    if (row < batch.num_rows) QUERN_RETURN_IF_ERROR(Flush());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ArrowArray>> ResultTaker::TakeBatches() {
  QUERN_RETURN_IF_ERROR(Flush());
  next_rows_ = kFirstResultRows;
  return std::move(batches_);
}

absl::Status ResultTaker::Flush() {
  if (out_ == nullptr || out_->num_rows() == 0) return absl::OkStatus();
  ArrowArray batch;
  out_->ExportArrow(&batch);
  batches_.push_back(batch);
  out_ = nullptr;
  return MakeOffsets(columns_, budget_, &batches_.back());
}

absl::Status SinkTaker::Append(const BatchView& batch) {
  if (next_++ < num_done_) return absl::OkStatus();
  num_rows_ += batch.num_rows;
  if (!made_views_.empty()) {
    with_views_ = batch;
    for (size_t v = 0; v < views_.size(); ++v)
      QUERN_RETURN_IF_ERROR(
          views_[v].Make(batch.selection, batch.num_rows, budget_, &with_views_.payload[made_views_[v]]));
  }
  const absl::Status status = input_.Append(made_views_.empty() ? batch : with_views_);
  if (status.ok()) ++num_done_;
  else sink_refused_ = true;
  return status;
}

PipelineTaker::PipelineTaker(std::shared_ptr<const Pipeline> pipeline, const std::shared_ptr<MemoryBudget>& budget,
                             PipelineEnd* end, uint64_t piece_rows, const StopFlag* stop)
    : pipeline_(std::move(pipeline)), end_(end), input_(pipeline_, budget, end, piece_rows), stop_(stop) {}

absl::Status PipelineTaker::Take(const BatchView& batch) {
  if (stop_ != nullptr) QUERN_RETURN_IF_ERROR(stop_->Check());
  num_rows_ += batch.num_rows;
  uint64_t taken_rows = 0;
  absl::Status status = input_.Append(batch, &taken_rows);
  for (uint64_t done = 0; absl::IsResourceExhausted(status);) {
    QUERN_RETURN_IF_ERROR(end_->FreeMemory(status));
    done += taken_rows;
    status = input_.Append(SliceOf(batch, pipeline_->source(), {}, done, batch.num_rows - done), &taken_rows);
  }
  return status;
}

}  // namespace quern::query
