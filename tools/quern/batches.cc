// SPDX-License-Identifier: Apache-2.0
// Tables go into kernels and come out of them by Arrow's C data interface, batch by batch, as they would from any other host:
//
//     6,000,000 rows  ->  92 batches of up to 64 Ki rows  ->  ArrowArray  ->  BatchView  ->  kernel  ->  OutputBatch  ->  ArrowArray
//
// Batches are slices of the table's chunks, so a chunk's end ends a batch: a Parquet file with row groups of 122,880 rows gives
// batches of 65,536 and 57,344 rows in turns. A BatchView shares the ownership of its slice, an exported OutputBatch owns its buffers.
#include "tools/quern/batches.h"

#include <arrow/api.h>
#include <arrow/c/bridge.h>

#include <string>
#include <utility>

#include "runtime/status.h"
#include "tools/quern/table_io.h"

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
  QUERN_RETURN_IF_ARROW_ERROR(arrow::ExportRecordBatch(batch, &array), "cannot export a batch: " + batch.schema()->ToString());
  return ImportArrow(&array, input.binding, input.keys, input.payload);
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

}  // namespace quern::cli
