// SPDX-License-Identifier: Apache-2.0
// Threads take the input's batches in turns, each into its thread-local groups; then all threads merge their groups
// (append_batches.h) and read them:
//
//     read       A: 64 Ki groups, and again    B: likewise    each group comes out of one of them
//
// Few groups are read by one thread, however many threads there are.
//
// Groups come in no particular order. first, last and string_agg depend on the order of the rows in the files: batches
// carry the number of their first row, so it makes no difference which thread takes which batch.
#include "tools/quern/aggregate/aggregate_run.h"

#include <arrow/api.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/aggregate/hash_aggregate.h"
#include "runtime/base/shared_work.h"
#include "runtime/base/status.h"
#include "runtime/rows/output_batch.h"
#include "tools/frontend/errors.h"
#include "tools/quern/files/append_batches.h"
#include "tools/quern/files/batches.h"

namespace quern::cli {
namespace {

// What the reading threads share.
struct Reading {
  const PreparedAggregate& prepared;
  const std::shared_ptr<HashAggregate>& aggregate;
  const std::shared_ptr<MemoryBudget>& budget;
  bool count;
  std::vector<std::vector<RecordBatchPointer>> results;  // by reader
  std::vector<uint64_t> num_rows;                        // likewise
};

absl::Status ReadGroups(size_t reader_number, Reading* reading) {
  GroupReader reader(reading->aggregate);
  const AggregationSpec& spec = reading->prepared.spec;
  OutputBatch out(reading->count ? std::vector<ColumnType>() : AggregateOutputTypes(spec), kOutputRows,
                  reading->budget);
  bool more = true;
  while (more) {
    QUERN_ASSIGN_OR_RETURN(more, reader.Next(&out));
    reading->num_rows[reader_number] += out.num_rows();
    if (reading->count || out.num_rows() == 0) continue;
    QUERN_ASSIGN_OR_RETURN(RecordBatchPointer rows, TakeRows(reading->prepared.schema, &out));
    reading->results[reader_number].push_back(std::move(rows));
  }
  return absl::OkStatus();
}

absl::Status Read(uint32_t threads, Reading* reading) {
  const uint64_t num_batches = reading->aggregate->stats().num_groups / kOutputRows + 1;
  const uint64_t readers = std::min<uint64_t>(threads, num_batches);
  reading->results.resize(readers);
  reading->num_rows.resize(readers);
  return RunMorsels(threads, readers, [reading](uint32_t, uint64_t reader) { return ReadGroups(reader, reading); });
}

}  // namespace

absl::StatusOr<AggregateResult> RunPreparedAggregate(const PreparedAggregate& prepared, const CompiledKernel& compiled,
                                                     bool count, const std::shared_ptr<MemoryBudget>& budget,
                                                     uint32_t threads, Progress* progress) {
  Stopwatch watch;
  const std::shared_ptr<HashAggregate> aggregate = MakeHashAggregate(compiled.kernel, budget);
  QUERN_ASSIGN_OR_RETURN(const InputBatches batches, InputBatches::Cut(prepared.input));
  OperatorResult result;
  result.threads = ThreadsFor(batches.size(), threads);
  QUERN_RETURN_IF_ERROR(AsDataError(AppendAndFinalise(batches, result.threads, progress, aggregate)));
  progress->Begin("groups", 0);
  Reading reading{prepared, aggregate, budget, count, {}, {}};
  QUERN_RETURN_IF_ERROR(AsDataError(Read(result.threads, &reading)));
  for (const uint64_t rows : reading.num_rows) result.num_rows += rows;
  if (!count) {
    QUERN_ASSIGN_OR_RETURN(result.table, TableOf(prepared.schema, reading.results));
  }
  result.run_ms = watch.Lap();
  return AggregateResult{std::move(result), aggregate->stats()};
}

}  // namespace quern::cli
