// SPDX-License-Identifier: Apache-2.0
// The probe side is cut into batches of 64 Ki rows, which threads take in turns from a counter; each thread has its own prober and its own
// output batch. Results are kept per input batch and put together in input order, so that the result does not depend on threads:
//
//     batch      0        1        2        3          6,000,000 probe rows: 92 batches; with 4 threads each takes about 23,
//     thread     A        B        A        C          and whoever is slow takes fewer
//     results   [a0,a1]  [b0]     [a2]     []
//     table      a0 a1 b0 a2                           chunks, no row is copied
//
// An output batch takes memory for its capacity of rows. One that came back with few rows would hold all of it until the end: of 92
// batches with 100 rows each, 92 x 64 Ki rows. So a batch that is less than a quarter full is copied into buffers of its own size.
#include "tools/quern/join_run.h"

#include <arrow/api.h>
#include <arrow/c/bridge.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/arrow_import.h"
#include "runtime/output_batch.h"
#include "runtime/status.h"
#include "tools/quern/errors.h"
#include "tools/quern/run_options.h"

namespace quern::cli {
namespace {

constexpr int64_t kProbeBatchRows = 1 << 16;  // guess: large beside a kernel's batch, small beside a thread's share
constexpr uint64_t kOutputRows = 1 << 16;

using RecordBatchPointer = std::shared_ptr<arrow::RecordBatch>;

absl::StatusOr<std::vector<RecordBatchPointer>> CutIntoBatches(const std::shared_ptr<arrow::Table>& table, int64_t max_rows) {
  arrow::TableBatchReader reader(table);
  reader.set_chunksize(max_rows);
  QUERN_ASSIGN_OR_RETURN_ARROW(auto batches, reader.ToRecordBatches(),
                               "cannot cut into batches: " + std::to_string(table->num_rows()) + " rows");
  return batches;
}

absl::StatusOr<BatchView> ViewOf(const arrow::RecordBatch& batch, const JoinInput& input) {
  ArrowArray array;
  QUERN_RETURN_IF_ARROW_ERROR(arrow::ExportRecordBatch(batch, &array), "cannot export a batch: " + batch.schema()->ToString());
  return ImportArrow(&array, input.binding, input.keys, input.payload);
}

absl::Status Build(const JoinInput& input, Progress* progress, HashJoin* join) {
  QUERN_ASSIGN_OR_RETURN(const auto batches, CutIntoBatches(input.table, std::numeric_limits<int32_t>::max()));
  progress->Begin("build", static_cast<uint64_t>(input.table->num_rows()));
  for (const RecordBatchPointer& batch : batches) {
    QUERN_ASSIGN_OR_RETURN(const BatchView view, ViewOf(*batch, input));
    QUERN_RETURN_IF_ERROR(join->Append(view));
    progress->Add(static_cast<uint64_t>(batch->num_rows()));
  }
  return join->Finalise();
}

arrow::Result<RecordBatchPointer> Compacted(const RecordBatchPointer& batch) {
  arrow::ArrayVector columns;
  for (const auto& column : batch->columns()) {
    ARROW_ASSIGN_OR_RAISE(auto copy, arrow::Concatenate({column}));
    columns.push_back(std::move(copy));
  }
  return arrow::RecordBatch::Make(batch->schema(), batch->num_rows(), std::move(columns));
}

// What all threads of a probe share.
struct ProbeWork {
  const PreparedJoin& join;
  const std::vector<RecordBatchPointer>& batches;
  std::vector<std::vector<RecordBatchPointer>> results;  // per batch
  std::shared_ptr<const HashJoin> table;
  std::shared_ptr<MemoryBudget> budget;
  Progress* progress;
  std::atomic<size_t> next{0};
  std::atomic<uint64_t> num_rows{0};
  std::atomic<bool> failed{false};
  std::mutex mutex{};
  absl::Status status{};  // the first error, under the mutex

  void Fail(absl::Status error) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (!failed.exchange(true)) status = std::move(error);
  }
};

absl::StatusOr<RecordBatchPointer> TakeRows(const ProbeWork& work, OutputBatch* out) {
  const uint64_t rows = out->num_rows();
  ArrowArray array;
  out->ExportArrow(&array);
  QUERN_ASSIGN_OR_RETURN_ARROW(RecordBatchPointer batch, arrow::ImportRecordBatch(&array, work.join.kernel_schema),
                               "cannot import a result batch: " + std::to_string(rows) + " rows");
  if (rows >= kOutputRows / 4) return batch;
  QUERN_ASSIGN_OR_RETURN_ARROW(RecordBatchPointer compacted, Compacted(batch),
                               "cannot copy a result batch: " + std::to_string(rows) + " rows");
  return compacted;
}

absl::Status ProbeBatch(size_t index, JoinProber* prober, OutputBatch* out, ProbeWork* work) {
  QUERN_ASSIGN_OR_RETURN(BatchView view, ViewOf(*work->batches[index], work->join.inputs[kProbe]));
  QUERN_RETURN_IF_ERROR(prober->SetInput(std::move(view)));
  bool more = true;
  while (more) {
    QUERN_ASSIGN_OR_RETURN(more, prober->Next(out));
    work->num_rows.fetch_add(out->num_rows(), std::memory_order_relaxed);
    if (work->join.order.empty() || out->num_rows() == 0) continue;
    QUERN_ASSIGN_OR_RETURN(RecordBatchPointer rows, TakeRows(*work, out));
    work->results[index].push_back(std::move(rows));
  }
  work->progress->Add(static_cast<uint64_t>(work->batches[index]->num_rows()));
  return absl::OkStatus();
}

// What one thread does.
void ProbeBatches(ProbeWork* work) {
  try {
    JoinProber prober(work->table);
    std::vector<ColumnType> types = work->join.spec.probe;
    types.insert(types.end(), work->join.spec.build.begin(), work->join.spec.build.end());
    OutputBatch out(std::move(types), kOutputRows, work->budget);
    for (size_t i = work->next++; i < work->batches.size() && !work->failed; i = work->next++) {
      if (absl::Status status = ProbeBatch(i, &prober, &out, work); !status.ok()) work->Fail(std::move(status));
    }
  } catch (const std::bad_alloc&) {
    work->Fail(
        absl::ResourceExhaustedError("out of memory: the system gives no more; accepted: fewer columns by --select, fewer --threads"));
  }
}

// Answers how many threads there were. This thread is one of them.
uint32_t ProbeWithThreads(uint32_t threads, ProbeWork* work) {
  std::vector<std::thread> others;
  while (others.size() + 1 < std::min<size_t>(threads, work->batches.size())) {
    try {
      others.emplace_back(ProbeBatches, work);
    } catch (const std::system_error&) {
      break;  // fewer will do
    }
  }
  ProbeBatches(work);
  for (std::thread& thread : others) thread.join();
  return static_cast<uint32_t>(others.size()) + 1;
}

absl::StatusOr<std::shared_ptr<arrow::Table>> ResultTable(const PreparedJoin& join,
                                                          const std::vector<std::vector<RecordBatchPointer>>& results) {
  std::vector<RecordBatchPointer> batches;
  for (const auto& of_batch : results) batches.insert(batches.end(), of_batch.begin(), of_batch.end());
  const std::string what = "cannot put together result batches: " + std::to_string(batches.size());
  QUERN_ASSIGN_OR_RETURN_ARROW(const auto table, arrow::Table::FromRecordBatches(join.kernel_schema, batches), what);
  QUERN_ASSIGN_OR_RETURN_ARROW(auto ordered, table->SelectColumns(join.order), what);
  return ordered;
}

}  // namespace

absl::StatusOr<JoinResult> RunPreparedJoin(const PreparedJoin& join, const CompiledKernel& compiled,
                                           const std::shared_ptr<MemoryBudget>& budget, uint32_t threads, Progress* progress) {
  JoinResult result;
  Stopwatch watch;
  const std::shared_ptr<HashJoin> table = MakeHashJoin(compiled.kernel, budget);
  QUERN_RETURN_IF_ERROR(AsDataError(Build(join.inputs[kBuild], progress, table.get())));
  result.build_ms = watch.Lap();

  QUERN_ASSIGN_OR_RETURN(const auto batches, CutIntoBatches(join.inputs[kProbe].table, kProbeBatchRows));
  ProbeWork work{join, batches, std::vector<std::vector<RecordBatchPointer>>(batches.size()), table, budget, progress};
  progress->Begin("probe", static_cast<uint64_t>(join.inputs[kProbe].table->num_rows()));
  result.threads = ProbeWithThreads(threads, &work);
  QUERN_RETURN_IF_ERROR(AsDataError(work.status));
  result.num_rows = work.num_rows;
  if (!join.order.empty()) {
    QUERN_ASSIGN_OR_RETURN(result.table, ResultTable(join, work.results));
  }
  result.probe_ms = watch.Lap();
  result.stats = table->stats();
  return result;
}

}  // namespace quern::cli
