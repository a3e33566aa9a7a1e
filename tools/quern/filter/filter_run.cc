// SPDX-License-Identifier: Apache-2.0
// Threads take the input's batches in turns. The kernel makes a bitmap of a batch, and Arrow selects its rows from the
// columns of the result. A batch of which all rows pass is not copied; one of which none passes is dropped. The pieces
// are concatenated in the order of their batches:
//
//     batch 0   1 0 0 1 ..    12,000 rows         result   rows of 0, rows of 2
//     batch 1   0 0 0 0 ..    none
//     batch 2   0 1 1 0 ..    31,000 rows
#include "tools/quern/filter/filter_run.h"

#include <arrow/api.h>
#include <arrow/compute/api.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/shared_work.h"
#include "runtime/base/status.h"
#include "runtime/filter/row_filter.h"
#include "tools/frontend/errors.h"
#include "tools/quern/files/batches.h"
#include "tools/quern/files/select_rows.h"
#include "tools/quern/files/table_io.h"

namespace quern::cli {
namespace {

using ArrayPointer = std::shared_ptr<arrow::Array>;

// What all threads share.
struct Filtering {
  const PreparedFilter& prepared;
  const RowFilter* filter;  // null: the condition has expressions, which RowTest evaluates
  const std::shared_ptr<MemoryBudget>& budget;
  bool count;
  Progress* progress;
  std::vector<RecordBatchPointer> batches;
  std::vector<RecordBatchPointer> results;  // by batch; null where no row passed
  std::vector<uint64_t> num_rows;           // likewise
};

// The rows of a batch whose bits are set, as the result has them.
absl::StatusOr<RecordBatchPointer> RowsOf(const Filtering& filtering, const arrow::RecordBatch& batch,
                                          const ArrayPointer& passes, uint64_t num_rows) {
  const std::shared_ptr<arrow::Schema>& schema = filtering.prepared.schema;
  const bool all_pass = num_rows == static_cast<uint64_t>(batch.num_rows());
  arrow::ArrayVector columns;
  for (int i = 0; i < schema->num_fields(); ++i) {
    const std::string what = "cannot take rows of column " + schema->field(i)->name();
    ArrayPointer column = batch.column(filtering.prepared.result[static_cast<size_t>(i)]);
    if (!all_pass) {
      QUERN_ASSIGN_OR_RETURN_ARROW(column, SelectRows(column, passes), what);
    }
    if (column->type()->id() == arrow::Type::DICTIONARY) {
      QUERN_ASSIGN_OR_RETURN_ARROW(column, arrow::compute::Cast(*column, schema->field(i)->type()), what);
    } else if (all_pass) {
      columns.push_back(std::move(column));
      continue;
    }
    QUERN_RETURN_IF_ERROR(filtering.budget->Reserve(BytesOf(*column)));
    columns.push_back(std::move(column));
  }
  return arrow::RecordBatch::Make(schema, static_cast<int64_t>(num_rows), std::move(columns));
}

// A batch's rows for which a condition with expressions holds.
absl::Status TestBatch(size_t i, Filtering* filtering) {
  const arrow::RecordBatch& batch = *filtering->batches[i];
  filtering->progress->Add(static_cast<uint64_t>(batch.num_rows()));
  QUERN_ASSIGN_OR_RETURN(const ArrayPointer passes, filtering->prepared.where->Bits(batch));
  const auto num_rows = static_cast<uint64_t>(static_cast<const arrow::BooleanArray&>(*passes).true_count());
  filtering->num_rows[i] = num_rows;
  if (num_rows == 0 || filtering->count) return absl::OkStatus();
  QUERN_ASSIGN_OR_RETURN(filtering->results[i], RowsOf(*filtering, batch, passes, num_rows));
  return absl::OkStatus();
}

absl::Status FilterBatch(size_t i, Filtering* filtering) {
  if (filtering->filter == nullptr) return TestBatch(i, filtering);
  const arrow::RecordBatch& batch = *filtering->batches[i];
  QUERN_ASSIGN_OR_RETURN(const BatchView view, ViewOf(batch, filtering->prepared.input));
  filtering->progress->Add(view.num_rows);
  if (filtering->count) {
    QUERN_ASSIGN_OR_RETURN(filtering->num_rows[i], filtering->filter->Count(view));
    return absl::OkStatus();
  }
  QUERN_ASSIGN_OR_RETURN_ARROW(std::shared_ptr<arrow::Buffer> bits, arrow::AllocateBuffer((batch.num_rows() + 7) / 8),
                               "cannot take memory for a bitmap: " + std::to_string(batch.num_rows()) + " rows");
  QUERN_ASSIGN_OR_RETURN(filtering->num_rows[i], filtering->filter->Mask(view, bits->mutable_data()));
  if (filtering->num_rows[i] == 0) return absl::OkStatus();
  const auto passes = std::make_shared<arrow::BooleanArray>(batch.num_rows(), std::move(bits));
  QUERN_ASSIGN_OR_RETURN(filtering->results[i], RowsOf(*filtering, batch, passes, filtering->num_rows[i]));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<OperatorResult> RunPreparedFilter(const PreparedFilter& prepared, const CompiledKernel& compiled,
                                                 bool count, const std::shared_ptr<MemoryBudget>& budget,
                                                 uint32_t threads, Progress* progress) {
  Stopwatch watch;
  const bool is_computed = prepared.where->condition().expressions != nullptr;
  const std::shared_ptr<const RowFilter> filter = is_computed ? nullptr : MakeRowFilter(compiled.kernel);
  Filtering filtering{prepared, filter.get(), budget, count, progress, {}, {}, {}};
  QUERN_ASSIGN_OR_RETURN(filtering.batches, CutIntoBatches(prepared.input.table));
  const size_t num_batches = filtering.batches.size();
  filtering.results.resize(num_batches);
  filtering.num_rows.resize(num_batches);
  OperatorResult result;
  result.threads = static_cast<uint32_t>(std::clamp<size_t>(num_batches, 1, threads));
  progress->Begin("rows", static_cast<uint64_t>(prepared.input.table->num_rows()));
  const auto run = [&filtering](uint32_t, uint64_t i) { return FilterBatch(i, &filtering); };
  QUERN_RETURN_IF_ERROR(AsDataError(RunMorsels(result.threads, num_batches, run)));
  for (const uint64_t rows : filtering.num_rows) result.num_rows += rows;
  if (!count) {
    std::erase(filtering.results, nullptr);
    QUERN_ASSIGN_OR_RETURN(result.table, TableOf(prepared.schema, {std::move(filtering.results)}));
  }
  result.run_ms = watch.Lap();
  return result;
}

}  // namespace quern::cli
