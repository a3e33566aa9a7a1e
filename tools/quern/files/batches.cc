// SPDX-License-Identifier: Apache-2.0
// Tables enter and leave kernels by Arrow's C data interface, batch by batch, as they would from any other host:
//
//     6,000,000 rows -> 92 batches of up to 64 Ki rows -> ArrowArray -> BatchView -> kernel -> OutputBatch ->
//     ArrowArray
//
// Batches are slices of the table's chunks, so a chunk's end ends a batch: a Parquet file with row groups of 122,880
// rows gives batches of 65,536 and 57,344 rows in turns. A BatchView shares the ownership of its slice, an exported
// OutputBatch owns its buffers.
// --filter leaves rows out by a selection, which keeps their numbers.
#include "tools/quern/files/batches.h"

#include <arrow/api.h>
#include <arrow/c/bridge.h>

#include <string>
#include <utility>

#include "runtime/base/status.h"
#include "tools/quern/files/table_io.h"

namespace quern::cli {
namespace {

arrow::Result<RecordBatchPointer> Compacted(const RecordBatchPointer& batch) {
  arrow::ArrayVector columns;
  for (const auto& column : batch->columns()) {
    ARROW_ASSIGN_OR_RAISE(auto copy, arrow::Concatenate({column}));
    columns.push_back(std::move(copy));
  }
  return arrow::RecordBatch::Make(batch->schema(), batch->num_rows(), std::move(columns));
}

// The rows of a bool column that are true.
void SelectRows(const arrow::Array& column, std::vector<uint32_t>* selection) {
  const auto& rows = static_cast<const arrow::BooleanArray&>(column);
  selection->resize(static_cast<size_t>(rows.length()));
  size_t selected = 0;
  for (int64_t i = 0; i < rows.length(); ++i) {
    (*selection)[selected] = static_cast<uint32_t>(i);
    selected += rows.IsValid(i) && rows.Value(i) ? 1 : 0;
  }
  selection->resize(selected);
}

}  // namespace

absl::StatusOr<std::vector<RecordBatchPointer>> CutIntoBatches(const std::shared_ptr<arrow::Table>& table) {
  arrow::TableBatchReader reader(table);
  reader.set_chunksize(kBatchRows);
  QUERN_ASSIGN_OR_RETURN_ARROW(auto batches, reader.ToRecordBatches(),
                               "cannot cut into batches: " + std::to_string(table->num_rows()) + " rows");
  return batches;
}

absl::StatusOr<BatchView> ViewOf(const arrow::RecordBatch& batch, const KernelInput& input) {
  ArrowArray array;
  QUERN_RETURN_IF_ARROW_ERROR(arrow::ExportRecordBatch(batch, &array),
                              "cannot export a batch: " + batch.schema()->ToString());
  return ImportArrow(&array, input.binding, input.keys, input.payload);
}

absl::StatusOr<InputBatches> InputBatches::Cut(const KernelInput& input) {
  InputBatches cut(input);
  QUERN_ASSIGN_OR_RETURN(cut.batches_, CutIntoBatches(input.table));
  for (const RecordBatchPointer& batch : cut.batches_) {
    cut.first_rows_.push_back(cut.num_rows_);
    cut.num_rows_ += static_cast<uint64_t>(batch->num_rows());
  }
  return cut;
}

uint64_t InputBatches::num_rows(size_t i) const { return static_cast<uint64_t>(batches_[i]->num_rows()); }

absl::StatusOr<BatchView> InputBatches::View(size_t i, std::vector<uint32_t>* selection) const {
  QUERN_ASSIGN_OR_RETURN(BatchView view, ViewOf(*batches_[i], *input_));
  view.first_row_id = first_rows_[i];
  if (!input_->filter.has_value()) return view;
  SelectRows(*batches_[i]->column(*input_->filter), selection);
  view.selection = selection->data();
  view.num_rows = selection->size();
  return view;
}

absl::StatusOr<RecordBatchPointer> TakeRows(const std::shared_ptr<arrow::Schema>& schema, OutputBatch* out) {
  const uint64_t rows = out->num_rows();
  ArrowArray array;
  out->ExportArrow(&array);
  QUERN_ASSIGN_OR_RETURN_ARROW(RecordBatchPointer batch, arrow::ImportRecordBatch(&array, schema),
                               "cannot import a result batch: " + std::to_string(rows) + " rows");
  if (rows >= kOutputRows / 4) return batch;
  QUERN_ASSIGN_OR_RETURN_ARROW(RecordBatchPointer compacted, Compacted(batch),
                               "cannot copy a result batch: " + std::to_string(rows) + " rows");
  return compacted;
}

absl::StatusOr<std::shared_ptr<arrow::Table>> TableOf(const std::shared_ptr<arrow::Schema>& schema,
                                                      const std::vector<std::vector<RecordBatchPointer>>& results) {
  std::vector<RecordBatchPointer> batches;
  for (const auto& of_one : results) batches.insert(batches.end(), of_one.begin(), of_one.end());
  QUERN_ASSIGN_OR_RETURN_ARROW(auto table, arrow::Table::FromRecordBatches(schema, batches),
                               "cannot put together result batches: " + std::to_string(batches.size()));
  return table;
}

absl::StatusOr<std::shared_ptr<arrow::Table>> TableOf(const std::shared_ptr<arrow::Schema>& schema,
                                                      const std::vector<std::vector<RecordBatchPointer>>& results,
                                                      const std::vector<int>& order) {
  QUERN_ASSIGN_OR_RETURN(const auto table, TableOf(schema, results));
  QUERN_ASSIGN_OR_RETURN_ARROW(auto ordered, table->SelectColumns(order),
                               "cannot order result columns: " + std::to_string(order.size()));
  return ordered;
}

}  // namespace quern::cli
