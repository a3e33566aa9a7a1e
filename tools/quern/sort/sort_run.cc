// SPDX-License-Identifier: Apache-2.0
// Threads take the input's batches in turns and sort them together (append_batches.h). Then each takes the next 64 Ki
// rows of the order that none has taken, and makes columns of them, until there are no more:
//
//     A    rows 0 .. 65,535                 rows 131,072 .. 196,607
//     B    rows 65,536 .. 131,071                 rows 196,608 .. 200,000
//
// The order in which threads finish does not matter: batches are ordered by the positions of their first rows. With
// --stable the order of appends does not matter either, since batches carry the number of their first row, and equal
// keys are in the order of rows.
#include "tools/quern/sort/sort_run.h"

#include <arrow/api.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/base/shared_work.h"
#include "runtime/base/status.h"
#include "runtime/rows/output_batch.h"
#include "tools/frontend/errors.h"
#include "tools/quern/files/batches.h"
#include "tools/quern/files/ordered_results.h"
#include "tools/quern/stream/append_batches.h"

namespace quern::cli {
namespace {

// Some rows of the result, and their position in it.
struct PlacedRows {
  uint64_t position;
  RecordBatchPointer rows;
};

// What the reading threads share.
struct Reading {
  const PreparedSort& prepared;
  const std::shared_ptr<RowSort>& sort;
  const std::shared_ptr<MemoryBudget>& budget;
  bool count;
  Progress* progress;
  std::vector<std::vector<PlacedRows>> results;  // by reader
  std::vector<uint64_t> num_rows;                // likewise
};

absl::Status ReadRows(size_t reader_number, Reading* reading) {
  SortReader reader(reading->sort);
  const uint64_t capacity = std::clamp<uint64_t>(reading->sort->stats().num_rows, 1, kOutputRows);
  OutputBatch out(reading->count ? std::vector<ColumnType>() : SortOutputTypes(reading->prepared.spec), capacity,
                  reading->budget);
  bool more = true;
  while (more) {
    QUERN_ASSIGN_OR_RETURN(more, reader.Next(&out));
    reading->num_rows[reader_number] += out.num_rows();
    reading->progress->Add(out.num_rows());
    if (reading->count || out.num_rows() == 0) continue;
    QUERN_ASSIGN_OR_RETURN(RecordBatchPointer rows, TakeRows(reading->prepared.kernel_schema, &out));
    reading->results[reader_number].push_back({reader.position(), std::move(rows)});
  }
  return absl::OkStatus();
}

absl::Status Read(uint32_t threads, Reading* reading) {
  const uint64_t num_rows = reading->sort->stats().num_rows;
  const uint64_t readers = std::min<uint64_t>(threads, num_rows / kOutputRows + 1);
  reading->results.resize(readers);
  reading->num_rows.resize(readers);
  reading->progress->Begin("rows", num_rows);
  return RunMorsels(threads, readers, [reading](uint32_t, uint64_t reader) { return ReadRows(reader, reading); });
}

// Of the memory, for each thread that merges: what it reads, its rows, and those that wait until others have been
// written. Arrow, which writes them, may take a half of the memory at any time.
constexpr uint64_t kReaderBytes = 64 << 20;

// Writes the rows that one reader gets.
absl::Status StreamRows(const std::shared_ptr<RowSort>& sort, const std::vector<ColumnType>& types,
                        const StreamRun& run, ResultStream* results, OrderedResults* ordered) {
  SortReader reader(sort);
  const std::unique_ptr<OutputBatch> out = StreamedResults(types, *run.budget, run.spill->io_budget());
  for (bool more = true; more;) {
    absl::StatusOr<bool> next = reader.Next(out.get());
    QUERN_RETURN_IF_ERROR(AsDataError(next.status()));
    more = *next;
    run.progress->Add(out->num_rows());
    QUERN_RETURN_IF_ERROR(types.empty() ? results->Write(out.get()) : ordered->Put(reader.position(), out.get()));
  }
  return absl::OkStatus();
}

std::vector<RecordBatchPointer> InOrder(const std::vector<std::vector<PlacedRows>>& results) {
  std::vector<PlacedRows> placed;
  for (const auto& of_one : results) placed.insert(placed.end(), of_one.begin(), of_one.end());
  std::sort(placed.begin(), placed.end(),
            [](const PlacedRows& a, const PlacedRows& b) { return a.position < b.position; });
  std::vector<RecordBatchPointer> batches;
  for (PlacedRows& rows : placed) batches.push_back(std::move(rows.rows));
  return batches;
}

}  // namespace

absl::StatusOr<SortResult> RunPreparedSort(const PreparedSort& prepared, const CompiledKernel& compiled, bool count,
                                           const std::shared_ptr<MemoryBudget>& budget, uint32_t threads,
                                           Progress* progress) {
  Stopwatch watch;
  const std::shared_ptr<RowSort> sort = MakeRowSort(compiled.kernel, budget);
  QUERN_ASSIGN_OR_RETURN(const InputBatches batches, InputBatches::Cut(prepared.input));
  OperatorResult result;
  result.threads = ThreadsFor(batches.size(), threads);
  QUERN_RETURN_IF_ERROR(AsDataError(AppendAndFinalise(batches, result.threads, progress, sort)));
  Reading reading{prepared, sort, budget, count, progress, {}, {}};
  QUERN_RETURN_IF_ERROR(AsDataError(Read(result.threads, &reading)));
  for (const uint64_t rows : reading.num_rows) result.num_rows += rows;
  if (!count) {
    QUERN_ASSIGN_OR_RETURN(result.table, TableOf(prepared.kernel_schema, {InOrder(reading.results)}, prepared.order));
  }
  result.run_ms = watch.Lap();
  return SortResult{std::move(result), sort->stats()};
}

absl::StatusOr<SortResult> StreamSort(const PreparedSort& prepared, const StreamedInput& input,
                                      const CompiledKernel& compiled, bool count, const StreamRun& run,
                                      ResultStream* results) {
  Stopwatch watch;
  const std::shared_ptr<RowSort> sort = MakeRowSort(compiled.kernel, run.budget);
  sort->SetSpill(run.spill);
  QUERN_RETURN_IF_ERROR(AsDataError(AppendStream(input, run.threads, "append", run.progress, sort)));
  run.progress->Begin("rows", sort->stats().num_rows);
  const std::vector<ColumnType> types = count ? std::vector<ColumnType>() : SortOutputTypes(prepared.spec);
  OrderedResults ordered(results, run.budget.get(), run.spill->io_bytes());
  const auto read = [&](uint32_t, uint64_t) { return ordered.End(StreamRows(sort, types, run, results, &ordered)); };
  const uint64_t most_readers = std::max<uint64_t>(run.budget->limit_bytes() / kReaderBytes, 1);
  const auto readers = static_cast<uint32_t>(count ? 1 : std::min<uint64_t>(run.threads, most_readers));
  QUERN_RETURN_IF_ERROR(RunMorsels(readers, readers, read));
  OperatorResult result;
  result.threads = ThreadsFor(*input.stream, run.threads);
  result.run_ms = watch.Lap();
  return SortResult{std::move(result), sort->stats()};
}

}  // namespace quern::cli
