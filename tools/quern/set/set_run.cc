// SPDX-License-Identifier: Apache-2.0
// Threads take the batches of both sides in turns, those of LEFT first, each into its thread-local groups; a group
// counts its rows of either side (set_operation.h). Then all threads merge their groups and read those that come out:
//
//     LEFT  65,000 rows: batch 0      RIGHT  150,000 rows: batches 1, 2, 3
//     append     A: 0, 2   B: 1, 3    finalise  A and B    read  A and B
#include "tools/quern/set/set_run.h"

#include <arrow/api.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/aggregate/set_operation.h"
#include "runtime/base/status.h"
#include "runtime/sink/sink_driver.h"
#include "tools/frontend/errors.h"
#include "tools/quern/stream/append_batches.h"
#include "tools/quern/stream/read_groups.h"

namespace quern::cli {
namespace {

absl::Status Append(const InputBatches& left, const InputBatches& right, uint32_t threads, SideColumns* columns,
                    Progress* progress, const std::shared_ptr<Sink>& sink) {
  progress->Begin("append", left.num_rows() + right.num_rows());
  const auto append = [&](const SinkInput& input, uint32_t /*thread*/, uint64_t i) -> absl::Status {
    const bool is_left = i < left.size();
    const InputBatches& batches = is_left ? left : right;
    const size_t number = is_left ? i : i - left.size();
    QUERN_ASSIGN_OR_RETURN(const BatchView keys, batches.View(number, /*selection=*/nullptr));
    QUERN_ASSIGN_OR_RETURN(const BatchView view, columns->With(keys, is_left ? SetSide::kLeft : SetSide::kRight));
    QUERN_RETURN_IF_ERROR(input.Append(view));
    progress->Add(batches.num_rows(number));
    return absl::OkStatus();
  };
  return AppendMorsels(sink, left.size() + right.size(), threads, append);
}

// The same of pieces of files.
absl::Status AppendPieces(const StreamedInput (&inputs)[2], uint32_t threads, SideColumns* columns, Progress* progress,
                          const std::shared_ptr<Sink>& sink) {
  const TableStream &left = *inputs[0].stream, &right = *inputs[1].stream;
  progress->Begin("append", left.num_rows() + right.num_rows());
  std::vector<std::vector<uint32_t>> selections(threads);
  const auto append = [&](const SinkInput& input, uint32_t thread, uint64_t i) {
    const bool is_left = i < left.num_pieces();
    const auto take = [&](const BatchView& keys) -> absl::Status {
      QUERN_ASSIGN_OR_RETURN(const BatchView view, columns->With(keys, is_left ? SetSide::kLeft : SetSide::kRight));
      return AppendStreamed(input, view);
    };
    return ForEachBatch(inputs[is_left ? 0 : 1], is_left ? i : i - left.num_pieces(), &selections[thread], progress,
                        take);
  };
  return AppendMorsels(sink, left.num_pieces() + right.num_pieces(), threads, append);
}

GroupRows RowsOf(const PreparedSet& set, bool count) {
  GroupRows rows;
  rows.columns = GroupColumns::kKeys;
  if (!count) rows.types = SetOutputTypes(set.spec);
  rows.schema = set.schema;
  rows.copies_of = CopiesOf(set.spec.kind);
  return rows;
}

}  // namespace

absl::StatusOr<SetResult> RunPreparedSet(const PreparedSet& set, const CompiledKernel& compiled, bool count,
                                         const std::shared_ptr<MemoryBudget>& budget, uint32_t threads,
                                         Progress* progress) {
  Stopwatch watch;
  const std::shared_ptr<HashAggregate> aggregate = MakeHashAggregate(compiled.kernel, budget);
  SideColumns columns(set.spec, budget);
  QUERN_ASSIGN_OR_RETURN(const InputBatches left, InputBatches::Cut(set.inputs[0]));
  QUERN_ASSIGN_OR_RETURN(const InputBatches right, InputBatches::Cut(set.inputs[1]));
  OperatorResult result;
  result.threads = ThreadsFor(left.size() + right.size(), threads);
  QUERN_RETURN_IF_ERROR(AsDataError(Append(left, right, result.threads, &columns, progress, aggregate)));
  progress->Begin("finalise", 0);
  QUERN_RETURN_IF_ERROR(AsDataError(FinaliseOnThreads(aggregate.get(), result.threads)));
  progress->Begin("rows", 0);
  const GroupRows rows = RowsOf(set, count);
  absl::StatusOr<ReadRows> read = ReadGroups(aggregate, rows, budget, result.threads);
  QUERN_RETURN_IF_ERROR(AsDataError(read.status()));
  result.num_rows = read->num_rows;
  result.table = std::move(read->table);
  result.run_ms = watch.Lap();
  return SetResult{std::move(result), aggregate->stats()};
}

absl::StatusOr<SetResult> StreamSet(const PreparedSet& set, const StreamedInput (&inputs)[2],
                                    const CompiledKernel& compiled, bool count, const StreamRun& run,
                                    ResultStream* results) {
  Stopwatch watch;
  const std::shared_ptr<HashAggregate> aggregate = MakeHashAggregate(compiled.kernel, run.budget);
  aggregate->SetSpill(run.spill);
  SideColumns columns(set.spec, run.budget);
  OperatorResult result;
  const TableStream &left = *inputs[0].stream, &right = *inputs[1].stream;
  result.threads = ThreadsFor(left.num_pieces() + right.num_pieces(),
                              std::min({run.threads, left.most_threads(), right.most_threads()}));
  QUERN_RETURN_IF_ERROR(AsDataError(AppendPieces(inputs, result.threads, &columns, run.progress, aggregate)));
  run.progress->Begin("finalise", 0);
  QUERN_RETURN_IF_ERROR(AsDataError(FinaliseOnThreads(aggregate.get(), result.threads)));
  run.progress->Begin("rows", 0);
  QUERN_RETURN_IF_ERROR(AsDataError(
      StreamGroups(aggregate, RowsOf(set, count), *run.budget, run.spill->io_budget(), result.threads, results)));
  result.run_ms = watch.Lap();
  return SetResult{std::move(result), aggregate->stats()};
}

}  // namespace quern::cli
