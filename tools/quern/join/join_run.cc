// SPDX-License-Identifier: Apache-2.0
// Both sides are divided into batches of 64 Ki rows, which threads take in turns from a counter; each thread has its
// own appender or prober and its own output batch. Results are kept per probe batch and concatenated in the order of
// the probe side:
//
//     batch      0        1        2        3        6,000,000 probe rows: 92 batches; each of 4 threads takes about
//     23, thread     A        B        A        C        and a slow thread takes fewer results    [a0,a1]  [b0] [a2] []
//     table      a0 a1 b0 a2                         chunks, no row is copied
//
// So the order of results does not depend on the threads that probe. It does depend on those that build: the matches of
// one probe row, and the rows of the scan of unmatched build rows, are in the order in which threads happened to append
// them. A build side of up to 128 Ki rows is built and scanned by one thread, since several would not be faster.
//
// An output batch has memory for its full capacity of rows. A batch with few rows would hold all of it until the end:
// 92 batches with 100 rows each hold 92 x 64 Ki rows. So a batch that is less than a quarter full is copied into
// buffers of its own size.
#include "tools/quern/join/join_run.h"

#include <arrow/api.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/base/shared_work.h"
#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "runtime/rows/output_batch.h"
#include "runtime/sink/sink_driver.h"
#include "tools/frontend/errors.h"
#include "tools/quern/files/batches.h"
#include "tools/quern/files/table_io.h"
#include "tools/quern/stream/append_batches.h"

namespace quern::cli {
namespace {

constexpr int64_t kMinSharedBuildRows = thresholds::kSharedBuildRows;

// The number of threads that build and scan unmatched build rows.
uint32_t ThreadsForBuild(const KernelInput& build, uint32_t threads) {
  return build.table->num_rows() > kMinSharedBuildRows ? threads : 1;
}

// Returns how many threads there were.
absl::StatusOr<uint32_t> Build(const KernelInput& input, uint32_t threads, Progress* progress,
                               const std::shared_ptr<HashJoin>& join) {
  QUERN_ASSIGN_OR_RETURN(const InputBatches batches, InputBatches::Cut(input));
  progress->Begin("build", batches.num_rows());
  const uint32_t used = ThreadsFor(batches.size(), threads);
  const auto append = [&](const SinkInput& sink, uint32_t /*thread*/, uint64_t i) -> absl::Status {
    QUERN_ASSIGN_OR_RETURN(const BatchView view, batches.View(i, nullptr));
    QUERN_RETURN_IF_ERROR(sink.Append(view));
    progress->Add(batches.num_rows(i));
    return absl::OkStatus();
  };
  QUERN_RETURN_IF_ERROR(AppendMorsels(join, batches.size(), used, append));
  QUERN_RETURN_IF_ERROR(FinaliseOnThreads(join.get(), used));
  return used;
}

// What all threads share while they probe and scan unmatched build rows.
struct ProbeWork {
  const PreparedJoin& join;
  const InputBatches& batches;
  std::vector<std::vector<RecordBatchPointer>> results;  // per batch, then per thread that scans
  std::shared_ptr<const HashJoin> table;
  std::shared_ptr<MemoryBudget> budget;
  Progress* progress;
  std::atomic<uint64_t> num_rows{0};
};

// All that the prober has to give, into one place of the results.
absl::Status TakeAll(size_t place, JoinProber* prober, OutputBatch* out, ProbeWork* work) {
  bool more = true;
  while (more) {
    QUERN_ASSIGN_OR_RETURN(more, prober->Next(out));
    work->num_rows.fetch_add(out->num_rows(), std::memory_order_relaxed);
    if (work->join.order.empty() || out->num_rows() == 0) continue;
    QUERN_ASSIGN_OR_RETURN(RecordBatchPointer rows, TakeRows(work->join.kernel_schema, out));
    work->results[place].push_back(std::move(rows));
  }
  return absl::OkStatus();
}

// One thread's prober and its results.
struct ProbeThread {
  explicit ProbeThread(const ProbeWork& work)
      : prober(work.table), out(JoinOutputTypes(work.join.spec), kOutputRows, work.budget) {}

  JoinProber prober;
  OutputBatch out;
};

absl::Status ProbeBatch(uint64_t i, ProbeThread* thread, ProbeWork* work) {
  QUERN_ASSIGN_OR_RETURN(BatchView view, work->batches.View(i, nullptr));
  QUERN_RETURN_IF_ERROR(thread->prober.SetInput(std::move(view)));
  QUERN_RETURN_IF_ERROR(TakeAll(i, &thread->prober, &thread->out, work));
  work->progress->Add(work->batches.num_rows(i));
  return absl::OkStatus();
}

// One thread's work: its share of the unmatched build rows.
absl::Status ScanUnmatchedRows(size_t number, ProbeWork* work) {
  ProbeThread thread(*work);
  QUERN_RETURN_IF_ERROR(thread.prober.SetUnmatched());
  return TakeAll(work->batches.size() + number, &thread.prober, &thread.out, work);
}

// Returns the most threads there were at one time.
absl::StatusOr<uint32_t> Probe(uint32_t threads, uint32_t scan_threads, ProbeWork* work) {
  work->progress->Begin("probe", work->batches.num_rows());
  const uint32_t used = ThreadsFor(work->batches.size(), threads);
  std::vector<std::unique_ptr<ProbeThread>> of_threads(used);
  QUERN_RETURN_IF_ERROR(RunMorsels(used, work->batches.size(), [&](uint32_t thread, uint64_t i) {
    if (of_threads[thread] == nullptr) of_threads[thread] = std::make_unique<ProbeThread>(*work);
    return ProbeBatch(i, of_threads[thread].get(), work);
  }));
  if (!RowOf(work->join.spec.kind).flags_matched_rows()) return used;
  work->progress->Begin("scan", 0);
  work->results.resize(work->batches.size() + scan_threads);
  QUERN_RETURN_IF_ERROR(RunMorsels(scan_threads, scan_threads,
                                   [&](uint32_t, uint64_t number) { return ScanUnmatchedRows(number, work); }));
  return std::max(used, scan_threads);
}

}  // namespace

absl::StatusOr<JoinResult> RunPreparedJoin(const PreparedJoin& join, const CompiledKernel& compiled,
                                           const std::shared_ptr<MemoryBudget>& budget, uint32_t threads,
                                           Progress* progress) {
  JoinResult result;
  Stopwatch watch;
  const std::shared_ptr<HashJoin> table = MakeHashJoin(compiled.kernel, budget);
  const absl::StatusOr<uint32_t> builders =
      Build(join.inputs[kBuild], ThreadsForBuild(join.inputs[kBuild], threads), progress, table);
  QUERN_RETURN_IF_ERROR(AsDataError(builders.status()));
  result.build_ms = watch.Lap();

  QUERN_ASSIGN_OR_RETURN(const InputBatches batches, InputBatches::Cut(join.inputs[kProbe]));
  ProbeWork work{join, batches, std::vector<std::vector<RecordBatchPointer>>(batches.size()), table, budget, progress};
  const absl::StatusOr<uint32_t> probers = Probe(threads, ThreadsForBuild(join.inputs[kBuild], threads), &work);
  QUERN_RETURN_IF_ERROR(AsDataError(probers.status()));
  result.result.threads = std::max(*builders, *probers);
  result.result.num_rows = work.num_rows;
  if (!join.order.empty()) {
    QUERN_ASSIGN_OR_RETURN(result.result.table, TableOf(join.kernel_schema, work.results, join.order));
  }
  result.probe_ms = watch.Lap();
  result.result.run_ms = result.build_ms + result.probe_ms;
  result.stats = table->stats();
  result.prefetch_adapted = table->prefetch_adapted();
  return result;
}

namespace {

// One thread's prober of a streamed run.
struct StreamThread {
  StreamThread(const std::shared_ptr<const HashJoin>& table, const std::vector<ColumnType>& types, const StreamRun& run)
      : prober(table), out(StreamedResults(types, *run.budget, run.spill->io_budget())) {}

  absl::Status TakeAll(ResultStream* results) {
    bool more = true;
    while (more) {
      QUERN_ASSIGN_OR_RETURN(more, prober.Next(out.get()));
      QUERN_RETURN_IF_ERROR(results->Write(out.get()));
    }
    return absl::OkStatus();
  }

  JoinProber prober;
  const std::unique_ptr<OutputBatch> out;
  std::vector<uint32_t> selection;
};

absl::Status StreamProbe(const PreparedJoin& join, const StreamedInput& probe, const std::shared_ptr<HashJoin>& table,
                         uint32_t threads, const StreamRun& run, ResultStream* results) {
  const std::vector<ColumnType> types = join.order.empty() ? std::vector<ColumnType>() : JoinOutputTypes(join.spec);
  run.progress->Begin("probe", probe.stream->num_rows());
  std::vector<std::unique_ptr<StreamThread>> of_threads(threads);
  QUERN_RETURN_IF_ERROR(
      RunMorsels(ThreadsFor(*probe.stream, threads), probe.stream->num_pieces(), [&](uint32_t number, uint64_t piece) {
        std::unique_ptr<StreamThread>& thread = of_threads[number];
        if (thread == nullptr) thread = std::make_unique<StreamThread>(table, types, run);
        return ForEachBatch(probe, piece, &thread->selection, run.progress, [&](const BatchView& batch) {
          QUERN_RETURN_IF_ERROR(thread->prober.SetInput(batch));
          return thread->TakeAll(results);
        });
      }));
  of_threads.clear();
  if (!RowOf(join.spec.kind).flags_matched_rows() && !table->has_spilled()) return absl::OkStatus();
  run.progress->Begin("scan", 0);
  return RunMorsels(threads, threads, [&](uint32_t, uint64_t) -> absl::Status {
    StreamThread thread(table, types, run);
    QUERN_RETURN_IF_ERROR(thread.prober.SetUnmatched());
    return thread.TakeAll(results);
  });
}

}  // namespace

absl::StatusOr<JoinResult> StreamJoin(const PreparedJoin& join, const StreamedInput (&inputs)[2],
                                      const CompiledKernel& compiled, const StreamRun& run, ResultStream* results) {
  JoinResult result;
  Stopwatch watch;
  const std::shared_ptr<HashJoin> table = MakeHashJoin(compiled.kernel, run.budget);
  table->SetSpill(run.spill);
  QUERN_RETURN_IF_ERROR(AsDataError(AppendStream(inputs[kBuild], run.threads, "build", run.progress, table)));
  result.build_ms = watch.Lap();
  const size_t pieces = std::max(inputs[kProbe].stream->num_pieces(), inputs[kBuild].stream->num_pieces());
  result.result.threads = ThreadsFor(pieces, run.threads);
  QUERN_RETURN_IF_ERROR(AsDataError(StreamProbe(join, inputs[kProbe], table, result.result.threads, run, results)));
  result.probe_ms = watch.Lap();
  result.result.run_ms = result.build_ms + result.probe_ms;
  result.stats = table->stats();
  result.prefetch_adapted = table->prefetch_adapted();
  return result;
}

}  // namespace quern::cli
