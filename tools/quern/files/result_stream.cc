// SPDX-License-Identifier: Apache-2.0
#include "tools/quern/files/result_stream.h"

#include <arrow/api.h>

#include <algorithm>
#include <utility>

#include "runtime/base/status.h"

namespace quern::cli {

ResultStream::ResultStream(ResultColumns columns, int64_t rows_kept, OutputFile* file, FileFormat format)
    : columns_(std::move(columns)), rows_kept_(rows_kept), file_(file), format_(format) {}

absl::Status ResultStream::Begin() {
  if (columns_.kernel_schema == nullptr) return absl::OkStatus();
  arrow::FieldVector fields;
  for (const int column : columns_.order) fields.push_back(columns_.kernel_schema->field(column));
  schema_ = arrow::schema(std::move(fields));
  return file_ == nullptr ? absl::OkStatus() : file_->BeginTable(schema_, format_);
}

absl::StatusOr<RecordBatchPointer> ResultStream::Take(OutputBatch* out) const {
  QUERN_ASSIGN_OR_RETURN(const RecordBatchPointer taken, TakeRows(columns_.kernel_schema, out));
  QUERN_ASSIGN_OR_RETURN_ARROW(RecordBatchPointer rows, taken->SelectColumns(columns_.order),
                               "cannot order result columns");
  return rows;
}

absl::Status ResultStream::Write(OutputBatch* out) {
  if (out->num_rows() == 0) return absl::OkStatus();
  if (columns_.kernel_schema == nullptr) {
    const std::lock_guard<std::mutex> lock(mutex_);
    num_rows_ += out->num_rows();
    return absl::OkStatus();
  }
  QUERN_ASSIGN_OR_RETURN(const RecordBatchPointer rows, Take(out));
  return Write(rows);
}

absl::Status ResultStream::WriteToFile(RecordBatchPointer rows) {
  constexpr size_t kMostWaiting = 4;
  std::unique_lock<std::mutex> lock(mutex_);
  num_rows_ += static_cast<uint64_t>(rows->num_rows());
  written_.wait(lock, [this] { return !is_writing_ || waiting_.size() < kMostWaiting; });
  waiting_.push_back(std::move(rows));
  if (is_writing_) return status_;
  is_writing_ = true;
  while (status_.ok() && !waiting_.empty()) {
    rows = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    const absl::Status status = file_->WriteBatch(rows);
    rows.reset();
    lock.lock();
    status_ = status;
    written_.notify_all();
  }
  waiting_.clear();  // after an error
  is_writing_ = false;
  written_.notify_all();
  return status_;
}

absl::Status ResultStream::Write(const RecordBatchPointer& rows) {
  if (file_ != nullptr) return WriteToFile(rows);
  const std::lock_guard<std::mutex> lock(mutex_);
  num_rows_ += static_cast<uint64_t>(rows->num_rows());
  const int64_t wanted = std::min(rows_kept_ - num_kept_, rows->num_rows());
  if (wanted <= 0) return absl::OkStatus();
  num_kept_ += wanted;
  // A slice would keep the memory of the whole batch.
  arrow::ArrayVector columns;
  for (const auto& column : rows->columns()) {
    QUERN_ASSIGN_OR_RETURN_ARROW(auto copy, arrow::Concatenate({column->Slice(0, wanted)}), "cannot copy result rows");
    columns.push_back(std::move(copy));
  }
  kept_.push_back(arrow::RecordBatch::Make(rows->schema(), wanted, std::move(columns)));
  return absl::OkStatus();
}

absl::Status ResultStream::End() {
  return file_ == nullptr || columns_.kernel_schema == nullptr ? absl::OkStatus() : file_->EndTable();
}

absl::StatusOr<std::shared_ptr<arrow::Table>> ResultStream::FirstRows() const {
  if (file_ != nullptr || columns_.kernel_schema == nullptr) return nullptr;
  QUERN_ASSIGN_OR_RETURN_ARROW(auto table, arrow::Table::FromRecordBatches(schema_, kept_),
                               "cannot put together result rows");
  return table;
}

}  // namespace quern::cli
