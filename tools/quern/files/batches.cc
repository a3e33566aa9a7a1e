// SPDX-License-Identifier: Apache-2.0
// Tables enter and leave kernels by Arrow's C data interface, batch by batch, as they would from any other host:
//
//     6,000,000 rows -> 92 batches of up to 64 Ki rows -> ArrowArray -> BatchView -> kernel -> OutputBatch ->
//     ArrowArray
//
// Batches are slices of the table's chunks, so a chunk's end ends a batch: a Parquet file with row groups of 122,880
// rows gives batches of 65,536 and 57,344 rows in turns. A BatchView shares the ownership of its slice, an exported
// OutputBatch owns its buffers.
// A condition leaves rows out by a selection, which keeps their numbers. Where all rows of a batch meet it there is
// none, and the kernel reads the columns from end to end. Where columns are computed of the batch, the rows are copied
// before: an expression may have no result for a row that is left out.
#include "tools/quern/files/batches.h"

#include <arrow/api.h>
#include <arrow/c/bridge.h>

#include <optional>
#include <string>
#include <utility>

#include "runtime/base/status.h"
#include "tools/quern/files/row_condition.h"
#include "tools/quern/files/row_map.h"
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

absl::StatusOr<RecordBatchPointer> WithColumn(const RecordBatchPointer& batch,
                                              const std::shared_ptr<arrow::Field>& field,
                                              const std::shared_ptr<arrow::Array>& column) {
  QUERN_ASSIGN_OR_RETURN_ARROW(RecordBatchPointer added, batch->AddColumn(batch->num_columns(), field, column),
                               "cannot add a column to a batch: " + std::to_string(batch->num_rows()) + " rows");
  return added;
}

// The columns of the table that the operator, its expressions and its filters read, and not `where` alone.
std::vector<int> ColumnsRead(const KernelInput& input) {
  std::vector<int> columns = input.binding.keys;
  const auto add = [&columns](const std::vector<int>& more) {
    columns.insert(columns.end(), more.begin(), more.end());
  };
  add(input.binding.payload);
  if (input.map != nullptr) add(input.map->expressions().binding.keys);
  for (const std::shared_ptr<RowTest>& test : input.made_columns) add(test->condition().columns());
  return columns;
}

// The batch with the columns that its operator's expressions and filters are.
absl::StatusOr<RecordBatchPointer> WithMadeColumns(RecordBatchPointer batch, const KernelInput& input,
                                                   std::optional<uint64_t> first_row) {
  if (input.map != nullptr) {
    QUERN_ASSIGN_OR_RETURN(const RecordBatchPointer computed, input.map->Compute(*batch, nullptr, first_row));
    for (int i = 0; i < computed->num_columns(); ++i) {
      QUERN_ASSIGN_OR_RETURN(batch, WithColumn(batch, computed->schema()->field(i), computed->column(i)));
    }
  }
  for (const std::shared_ptr<RowTest>& test : input.made_columns) {
    QUERN_ASSIGN_OR_RETURN(const auto bits, test->Bits(*batch));
    QUERN_ASSIGN_OR_RETURN(batch, WithColumn(batch, arrow::field("", arrow::boolean(), false), bits));
  }
  return batch;
}

}  // namespace

absl::StatusOr<std::vector<RecordBatchPointer>> CutIntoBatches(const std::shared_ptr<arrow::Table>& table) {
  arrow::TableBatchReader reader(table);
  reader.set_chunksize(kBatchRows);
  QUERN_ASSIGN_OR_RETURN_ARROW(auto batches, reader.ToRecordBatches(),
                               "cannot cut into batches: " + std::to_string(table->num_rows()) + " rows");
  return batches;
}

std::vector<KernelSpec> InputSpecs(const KernelInput& input) {
  std::vector<KernelSpec> specs;
  if (input.where != nullptr && input.where->condition().expressions != nullptr)
    specs.emplace_back(input.where->condition().expressions->expressions().spec);
  if (input.map != nullptr) specs.emplace_back(input.map->expressions().spec);
  return specs;
}

absl::Status CompileConditions(const CompileOptions& options, const KernelInput& input) {
  for (const std::shared_ptr<RowTest>& test : input.made_columns) QUERN_RETURN_IF_ERROR(test->Compile(options));
  if (input.map != nullptr) QUERN_RETURN_IF_ERROR(input.map->Compile(options));
  return input.where == nullptr ? absl::OkStatus() : input.where->Compile(options);
}

absl::StatusOr<BatchView> ViewOf(const arrow::RecordBatch& batch, const ColumnBinding& binding,
                                 const std::vector<ColumnType>& keys, const std::vector<ColumnType>& payload) {
  ArrowArray array;
  QUERN_RETURN_IF_ARROW_ERROR(arrow::ExportRecordBatch(batch, &array),
                              "cannot export a batch: " + batch.schema()->ToString());
  return ImportArrow(&array, binding, keys, payload);
}

absl::StatusOr<BatchView> ViewOf(const arrow::RecordBatch& batch, const KernelInput& input) {
  return ViewOf(batch, input.binding, input.keys, input.payload);
}

absl::StatusOr<InputBatches> InputBatches::Cut(const KernelInput& input, uint64_t first_row) {
  InputBatches cut(input);
  QUERN_ASSIGN_OR_RETURN(cut.batches_, CutIntoBatches(input.table));
  for (const RecordBatchPointer& batch : cut.batches_) {
    cut.first_rows_.push_back(first_row + cut.num_rows_);
    cut.num_rows_ += static_cast<uint64_t>(batch->num_rows());
  }
  return cut;
}

uint64_t InputBatches::num_rows(size_t i) const { return static_cast<uint64_t>(batches_[i]->num_rows()); }

absl::StatusOr<BatchView> InputBatches::View(size_t i, std::vector<uint32_t>* selection) const {
  RecordBatchPointer batch = batches_[i];
  const bool is_cut = input_->map != nullptr && input_->where != nullptr;
  const auto first_row = is_cut ? std::nullopt : std::optional<uint64_t>(first_rows_[i]);
  if (is_cut) {
    QUERN_ASSIGN_OR_RETURN(batch, input_->where->Rows(batch, ColumnsRead(*input_)));
  }
  QUERN_ASSIGN_OR_RETURN(batch, WithMadeColumns(std::move(batch), *input_, first_row));
  QUERN_ASSIGN_OR_RETURN(BatchView view, ViewOf(*batch, *input_));
  view.first_row_id = first_rows_[i];
  if (input_->where == nullptr || is_cut) return view;
  if (selection->size() < view.num_rows) selection->resize(view.num_rows);
  QUERN_ASSIGN_OR_RETURN(const uint64_t selected, input_->where->Select(*batches_[i], selection->data()));
  if (selected == view.num_rows) return view;
  view.selection = selection->data();
  view.num_rows = selected;
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
