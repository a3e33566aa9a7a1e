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
#include <functional>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "runtime/base/joined_threads.h"
#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "runtime/rows/output_batch.h"
#include "tools/frontend/errors.h"
#include "tools/quern/files/batches.h"
#include "tools/quern/files/table_io.h"

namespace quern::cli {
namespace {

constexpr int64_t kMinSharedBuildRows = thresholds::kSharedBuildRows;

// What the threads of one phase share: the items they take in turns, and the first error.
struct Phase {
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex mutex{};
  absl::Status status{};  // the first error, under the mutex

  void Fail(absl::Status error) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (!failed.exchange(true)) status = std::move(error);
  }
};

// Runs `work` on up to `threads` threads, this one among them, each with its number from 0. Returns how many there
// were.
uint32_t OnThreads(size_t threads, Phase* phase, const std::function<absl::Status(size_t)>& work) {
  const auto run = [&](size_t number) {
    try {
      if (absl::Status status = work(number); !status.ok()) phase->Fail(std::move(status));
    } catch (const std::bad_alloc&) {
      phase->Fail(OutOfMemory());
    }
  };
  JoinedThreads others;  // fewer will do
  while (others.size() + 1 < threads && others.Start([&run, number = others.size() + 1] { run(number); })) {
  }
  run(0);
  const size_t num_others = others.size();
  others.Join();
  return static_cast<uint32_t>(num_others) + 1;
}

// The number of threads that build and scan unmatched build rows.
uint32_t ThreadsForBuild(const KernelInput& build, uint32_t threads) {
  return build.table->num_rows() > kMinSharedBuildRows ? threads : 1;
}

absl::Status AppendBatches(const KernelInput& input, const std::vector<RecordBatchPointer>& batches, Phase* phase,
                           Progress* progress, const std::shared_ptr<HashJoin>& join) {
  JoinAppender appender(join);
  for (size_t i = phase->next++; i < batches.size() && !phase->failed; i = phase->next++) {
    QUERN_ASSIGN_OR_RETURN(const BatchView view, ViewOf(*batches[i], input));
    QUERN_RETURN_IF_ERROR(appender.Append(view));
    progress->Add(static_cast<uint64_t>(batches[i]->num_rows()));
  }
  return appender.Finish();
}

// Returns how many threads there were.
absl::StatusOr<uint32_t> Build(const KernelInput& input, uint32_t threads, Progress* progress,
                               const std::shared_ptr<HashJoin>& join) {
  QUERN_ASSIGN_OR_RETURN(const auto batches, CutIntoBatches(input.table));
  progress->Begin("build", static_cast<uint64_t>(input.table->num_rows()));
  Phase append;
  const size_t appenders = std::min<size_t>(threads, std::max<size_t>(batches.size(), 1));
  const uint32_t used =
      OnThreads(appenders, &append, [&](size_t) { return AppendBatches(input, batches, &append, progress, join); });
  QUERN_RETURN_IF_ERROR(append.status);
  Phase finalise;
  OnThreads(used, &finalise, [&](size_t) { return join->FinaliseShared(); });
  QUERN_RETURN_IF_ERROR(finalise.status);
  return used;
}

// What all threads share while they probe and scan unmatched build rows.
struct ProbeWork {
  const PreparedJoin& join;
  const std::vector<RecordBatchPointer>& batches;
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

// What one thread does.
absl::Status ProbeBatches(Phase* phase, ProbeWork* work) {
  JoinProber prober(work->table);
  OutputBatch out(JoinOutputTypes(work->join.spec), kOutputRows, work->budget);
  for (size_t i = phase->next++; i < work->batches.size() && !phase->failed; i = phase->next++) {
    QUERN_ASSIGN_OR_RETURN(BatchView view, ViewOf(*work->batches[i], work->join.inputs[kProbe]));
    QUERN_RETURN_IF_ERROR(prober.SetInput(std::move(view)));
    QUERN_RETURN_IF_ERROR(TakeAll(i, &prober, &out, work));
    work->progress->Add(static_cast<uint64_t>(work->batches[i]->num_rows()));
  }
  return absl::OkStatus();
}

// One thread's work: its share of the unmatched build rows.
absl::Status ScanUnmatchedRows(size_t number, ProbeWork* work) {
  JoinProber prober(work->table);
  OutputBatch out(JoinOutputTypes(work->join.spec), kOutputRows, work->budget);
  QUERN_RETURN_IF_ERROR(prober.SetUnmatched());
  return TakeAll(work->batches.size() + number, &prober, &out, work);
}

// Returns the most threads there were at one time.
absl::StatusOr<uint32_t> Probe(uint32_t threads, uint32_t scan_threads, ProbeWork* work) {
  work->progress->Begin("probe", static_cast<uint64_t>(work->join.inputs[kProbe].table->num_rows()));
  Phase probe;
  const size_t probers = std::min<size_t>(threads, work->batches.size());
  const uint32_t used = OnThreads(probers, &probe, [&](size_t) { return ProbeBatches(&probe, work); });
  QUERN_RETURN_IF_ERROR(probe.status);
  if (!RowOf(work->join.spec.join_kind).flags_matched_rows()) return used;
  work->progress->Begin("scan", 0);
  work->results.resize(work->batches.size() + scan_threads);
  Phase scan;
  const uint32_t scanned =
      OnThreads(scan_threads, &scan, [&](size_t number) { return ScanUnmatchedRows(number, work); });
  QUERN_RETURN_IF_ERROR(scan.status);
  return std::max(used, scanned);
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

  QUERN_ASSIGN_OR_RETURN(const auto batches, CutIntoBatches(join.inputs[kProbe].table));
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

}  // namespace quern::cli
