// SPDX-License-Identifier: Apache-2.0
// Threads take the input's batches in turns. The condition chooses the rows of a batch, and Arrow copies them; the
// kernel computes columns of these alone, so that a row which the condition leaves out causes no error. Columns that
// are selected by their names are the batch's own:
//
//     batch 0   where 1 0 0 1 ..   12,000 rows of name, price, qty    kernel   12,000 of price * qty
//     batch 1   where 0 0 0 0 ..   none
#include "tools/quern/map/map_run.h"

#include <arrow/api.h>
#include <arrow/compute/api.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/shared_work.h"
#include "runtime/base/status.h"
#include "tools/frontend/errors.h"
#include "tools/quern/files/batches.h"
#include "tools/quern/files/select_rows.h"
#include "tools/quern/stream/append_batches.h"

namespace quern::cli {
namespace {

// What all threads share.
struct Mapping {
  const PreparedMap& prepared;
  const std::shared_ptr<MemoryBudget>& budget;
  bool count;
  Progress* progress;
  std::vector<RecordBatchPointer> batches;
  std::vector<uint64_t> first_rows;         // of the batches
  std::vector<RecordBatchPointer> results;  // by batch; null where there is no row
  std::vector<uint64_t> num_rows;           // likewise
  std::vector<int> columns;                 // of the table that the map reads or copies
};

std::vector<int> ColumnsOfResults(const PreparedMap& prepared) {
  std::vector<int> columns = prepared.map->expressions().binding.keys;
  for (const MapResult& result : prepared.results)
    if (!result.is_computed) columns.push_back(static_cast<int>(result.number));
  return columns;
}

// The columns of the result for the rows of batch i. is_copy: `batch` has only those that meet the condition.
absl::StatusOr<RecordBatchPointer> ResultOf(const Mapping& mapping, size_t i, const arrow::RecordBatch& batch,
                                            bool is_copy) {
  const PreparedMap& prepared = mapping.prepared;
  const auto first_row = is_copy ? std::nullopt : std::optional<uint64_t>(mapping.first_rows[i]);
  QUERN_ASSIGN_OR_RETURN(const RecordBatchPointer computed, prepared.map->Compute(batch, mapping.budget, first_row));
  arrow::ArrayVector columns;
  for (size_t c = 0; c < prepared.results.size(); ++c) {
    const MapResult& result = prepared.results[c];
    const int number = static_cast<int>(result.number);
    std::shared_ptr<arrow::Array> column = result.is_computed ? computed->column(number) : batch.column(number);
    if (column->type()->id() == arrow::Type::DICTIONARY) {
      const auto& field = prepared.schema->field(static_cast<int>(c));
      QUERN_ASSIGN_OR_RETURN_ARROW(column, arrow::compute::Cast(*column, field->type()),
                                   "cannot decode column " + field->name());
    }
    const bool is_new = !result.is_computed && (is_copy || column != batch.column(number));
    if (is_new) QUERN_RETURN_IF_ERROR(mapping.budget->Reserve(BytesOf(*column)));
    columns.push_back(std::move(column));
  }
  return arrow::RecordBatch::Make(prepared.schema, batch.num_rows(), std::move(columns));
}

absl::Status MapBatch(size_t i, Mapping* mapping) {
  RecordBatchPointer batch = mapping->batches[i];
  mapping->progress->Add(static_cast<uint64_t>(batch->num_rows()));
  const RowTest* const where = mapping->prepared.where.get();
  if (where != nullptr && mapping->count) {
    QUERN_ASSIGN_OR_RETURN(mapping->num_rows[i], where->Count(*batch));
    return absl::OkStatus();
  }
  if (where != nullptr) {
    QUERN_ASSIGN_OR_RETURN(batch, where->Rows(batch, mapping->columns));
  }
  mapping->num_rows[i] = static_cast<uint64_t>(batch->num_rows());
  if (mapping->num_rows[i] == 0 || mapping->count) return absl::OkStatus();
  QUERN_ASSIGN_OR_RETURN(mapping->results[i], ResultOf(*mapping, i, *batch, batch != mapping->batches[i]));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<OperatorResult> RunPreparedMap(const PreparedMap& prepared, bool count,
                                              const std::shared_ptr<MemoryBudget>& budget, uint32_t threads,
                                              Progress* progress) {
  Stopwatch watch;
  Mapping mapping{prepared, budget, count, progress, {}, {}, {}, {}, ColumnsOfResults(prepared)};
  QUERN_ASSIGN_OR_RETURN(mapping.batches, CutIntoBatches(prepared.table));
  const size_t num_batches = mapping.batches.size();
  for (uint64_t row = 0; const RecordBatchPointer& batch : mapping.batches) {
    mapping.first_rows.push_back(row);
    row += static_cast<uint64_t>(batch->num_rows());
  }
  mapping.results.resize(num_batches);
  mapping.num_rows.resize(num_batches);
  OperatorResult result;
  result.threads = ThreadsFor(num_batches, threads);
  progress->Begin("rows", static_cast<uint64_t>(prepared.table->num_rows()));
  const auto run = [&mapping](uint32_t, uint64_t i) { return MapBatch(i, &mapping); };
  QUERN_RETURN_IF_ERROR(AsDataError(RunMorsels(result.threads, num_batches, run)));
  for (const uint64_t rows : mapping.num_rows) result.num_rows += rows;
  if (!count) {
    std::erase(mapping.results, nullptr);
    QUERN_ASSIGN_OR_RETURN(result.table, TableOf(prepared.schema, {std::move(mapping.results)}));
  }
  result.run_ms = watch.Lap();
  return result;
}

}  // namespace quern::cli
