// SPDX-License-Identifier: Apache-2.0
// Threads take the input's batches in turns, each into its thread-local groups; then all threads merge their groups
// (append_batches.h) and read them (read_groups.h).
//
// Groups come in no particular order. first, last and string_agg depend on the order of the rows in the files: batches
// carry the number of their first row, so it makes no difference which thread takes which batch.
#include "tools/quern/aggregate/aggregate_run.h"

#include <arrow/api.h>

#include <utility>
#include <vector>

#include "runtime/aggregate/hash_aggregate.h"
#include "runtime/base/status.h"
#include "tools/frontend/errors.h"
#include "tools/quern/files/batches.h"
#include "tools/quern/stream/append_batches.h"
#include "tools/quern/stream/read_groups.h"

namespace quern::cli {

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
  GroupRows rows;
  if (!count) rows.types = AggregateOutputTypes(prepared.spec);
  rows.schema = prepared.schema;
  absl::StatusOr<ReadRows> read = ReadGroups(aggregate, rows, budget, result.threads);
  QUERN_RETURN_IF_ERROR(AsDataError(read.status()));
  result.num_rows = read->num_rows;
  result.table = std::move(read->table);
  result.run_ms = watch.Lap();
  return AggregateResult{std::move(result), aggregate->stats()};
}

absl::StatusOr<AggregateResult> StreamAggregate(const PreparedAggregate& prepared, const StreamedInput& input,
                                                const CompiledKernel& compiled, bool count, const StreamRun& run,
                                                ResultStream* results) {
  Stopwatch watch;
  const std::shared_ptr<HashAggregate> aggregate = MakeHashAggregate(compiled.kernel, run.budget);
  aggregate->SetSpill(run.spill);
  QUERN_RETURN_IF_ERROR(AsDataError(AppendStream(input, run.threads, "append", run.progress, aggregate)));
  run.progress->Begin("groups", 0);
  GroupRows rows;
  if (!count) rows.types = AggregateOutputTypes(prepared.spec);
  OperatorResult result;
  result.threads = ThreadsFor(*input.stream, run.threads);
  QUERN_RETURN_IF_ERROR(
      AsDataError(StreamGroups(aggregate, rows, *run.budget, run.spill->io_budget(), result.threads, results)));
  result.run_ms = watch.Lap();
  return AggregateResult{std::move(result), aggregate->stats()};
}

}  // namespace quern::cli
