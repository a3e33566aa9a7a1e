// SPDX-License-Identifier: Apache-2.0
// One run of a sort has four phases, each timed and all but the first on the requested number of threads:
//
//     create | append | finalise | read         2 threads, 10 M rows: 153 batches; a free thread takes the next one
//
// One thread uses the plain calls, several threads the shared ones, so a speed-up is relative to what a caller without
// threads gets. Result rows are written to an output batch that the next rows overwrite: no consumer is timed.
#include "bench/sort/sort_run.h"

#include <algorithm>
#include <atomic>
#include <sstream>
#include <utility>

#include "bench/common/append_rows.h"
#include "bench/common/timing.h"
#include "bench/sort/sort_check.h"
#include "bench/sort/vector_sort.h"
#include "runtime/base/status.h"
#include "runtime/rows/output_batch.h"
#include "runtime/sort/run_merger.h"

namespace quern::bench {
namespace {

constexpr uint64_t kOutputRows = uint64_t{1} << 14;

using OnResult = std::function<absl::Status(const OutputBatch&)>;

// One sort, from its first row to its last.
class SortRun {
 public:
  SortRun(std::shared_ptr<const Kernel> kernel, unsigned threads, const SortWorkload& workload)
      : kernel_(std::move(kernel)),
        threads_(threads),
        workload_(workload),
        spec_(std::get<SortSpec>(kernel_->plan.spec)) {}

  absl::Status Create() {
    budget_ = std::make_shared<MemoryBudget>();
    sort_ = MakeRowSort(kernel_, budget_);
    return absl::OkStatus();
  }

  absl::Status Append() {
    return AppendRows(sort_, workload_.spec().num_rows, threads_, [this](uint64_t first, uint64_t num_rows) {
      return workload_.View(first, num_rows, spec_.payload.size());
    });
  }

  absl::Status Finalise() { return FinaliseOnThreads(sort_.get(), threads_); }

  absl::Status Read() {
    return OnThreads(threads_, [this] { return ReadAll([](const OutputBatch&) { return absl::OkStatus(); }); });
  }

  absl::Status ReadAll(const OnResult& on_result) {
    SortReader reader(sort_);
    OutputBatch out(SortOutputTypes(spec_), std::clamp<uint64_t>(workload_.spec().num_rows, 1, kOutputRows), budget_);
    for (bool more = true; more;) {
      QUERN_ASSIGN_OR_RETURN(more, reader.Next(&out));
      QUERN_RETURN_IF_ERROR(on_result(out));
      rows_out_ += out.num_rows();
    }
    return absl::OkStatus();
  }

  absl::Status CheckRowsOut() const {
    const uint64_t all = workload_.spec().num_rows, expected = spec_.limit == 0 ? all : std::min(all, spec_.limit);
    if (rows_out_ == expected) return absl::OkStatus();
    return Internal("wrong number of result rows of " + PrintSpec(spec_) + ": " + std::to_string(rows_out_) +
                    "; accepted: " + std::to_string(expected));
  }

  const SortStats& stats() const { return sort_->stats(); }

 private:
  std::shared_ptr<const Kernel> kernel_;
  const unsigned threads_;
  const SortWorkload& workload_;
  const SortSpec& spec_;
  std::shared_ptr<MemoryBudget> budget_;
  std::shared_ptr<RowSort> sort_;
  std::atomic<uint64_t> rows_out_{0};
};

absl::Status Time(absl::Status (SortRun::*phase)(), SortRun* run, double* seconds) {
  const double start = Now();
  QUERN_RETURN_IF_ERROR((run->*phase)());
  *seconds = Now() - start;
  return absl::OkStatus();
}

absl::Status RunOnce(const std::shared_ptr<const Kernel>& kernel, unsigned threads, const SortWorkload& workload,
                     SortTimes* times) {
  SortRun run(kernel, threads, workload);
  QUERN_RETURN_IF_ERROR(Time(&SortRun::Create, &run, &times->create_s));
  QUERN_RETURN_IF_ERROR(Time(&SortRun::Append, &run, &times->append_s));
  QUERN_RETURN_IF_ERROR(Time(&SortRun::Finalise, &run, &times->finalise_s));
  QUERN_RETURN_IF_ERROR(Time(&SortRun::Read, &run, &times->read_s));
  times->stats = run.stats();
  return run.CheckRowsOut();
}

absl::Status CheckOnce(const std::shared_ptr<const Kernel>& kernel, unsigned threads, const SortWorkload& workload) {
  SortRun run(kernel, threads, workload);
  SortCheck check(std::get<SortSpec>(kernel->plan.spec), workload);
  QUERN_RETURN_IF_ERROR(run.Create());
  QUERN_RETURN_IF_ERROR(run.Append());
  QUERN_RETURN_IF_ERROR(run.Finalise());
  QUERN_RETURN_IF_ERROR(run.ReadAll([&](const OutputBatch& out) { return check.Add(out); }));
  QUERN_RETURN_IF_ERROR(run.CheckRowsOut());
  return check.Finish();
}

// A contender that sorts a fresh copy of the first key in place.
template <class Sort>
SortContender NumbersSortedBy(const SortWorkload& workload, Sort sort) {
  SortContender contender;
  contender.run = [&workload, sort](SortTimes* times) -> absl::Status {
    const int64_t* from = workload.Integers(0);
    std::vector<int64_t> keys(from, from + workload.spec().num_rows);
    const double start = Now();
    sort(keys.data(), keys.size());
    times->finalise_s = Now() - start;
    return std::is_sorted(keys.begin(), keys.end()) ? absl::OkStatus()
                                                    : Internal("a sort of numbers left them out of order");
  };
  return contender;
}

// Sorted runs: the result batches of one sort each.
struct SortedRuns {
  std::vector<std::vector<std::unique_ptr<OutputBatch>>> runs;
  std::shared_ptr<MemoryBudget> budget = std::make_shared<MemoryBudget>();
};

absl::Status MakeRun(const std::shared_ptr<const Kernel>& kernel, const SortWorkload& workload, uint64_t begin,
                     uint64_t end, SortedRuns* all) {
  const auto sort = MakeRowSort(kernel, all->budget);
  QUERN_RETURN_IF_ERROR(sort->Append(workload.View(begin, end - begin, 0)));
  QUERN_RETURN_IF_ERROR(sort->Finalise());
  SortReader reader(sort);
  auto& run = all->runs.emplace_back();
  for (bool more = true; more;) {
    auto batch = std::make_unique<OutputBatch>(SortOutputTypes(std::get<SortSpec>(kernel->plan.spec)),
                                               std::clamp<uint64_t>(end - begin, 1, kBatchRows), all->budget);
    QUERN_ASSIGN_OR_RETURN(more, reader.Next(batch.get()));
    if (batch->num_rows() > 0) run.push_back(std::move(batch));
  }
  return absl::OkStatus();
}

BatchView ViewOf(const SortWorkload& workload, const OutputBatch& batch) {
  BatchView view;
  for (size_t k = 0; k < workload.spec().keys.size(); ++k) {
    const QuernOutColumn& from = batch.column(k);
    QuernColumn column = {};
    const bool is_text = IsText(workload.spec().keys[k]);
    column.values = is_text ? from.bytes : from.values;
    if (is_text) column.offsets = from.offsets;
    view.keys.push_back(column);
  }
  view.num_rows = batch.num_rows();
  return view;
}

absl::Status MergeRuns(const std::shared_ptr<const Kernel>& kernel, const SortWorkload& workload, const SortedRuns& all,
                       const OnResult& on_result) {
  const std::unique_ptr<RunMerger> merger = MakeRunMerger(kernel, all.budget, static_cast<uint32_t>(all.runs.size()));
  OutputBatch out(SortOutputTypes(std::get<SortSpec>(kernel->plan.spec)), kOutputRows, all.budget);
  std::vector<size_t> next_batch(all.runs.size());
  uint64_t num_rows = 0;
  for (MergeState state = MergeState::kRows; state != MergeState::kDone;) {
    QUERN_ASSIGN_OR_RETURN(state, merger->Next(&out));
    QUERN_RETURN_IF_ERROR(on_result(out));
    num_rows += out.num_rows();
    if (state != MergeState::kNeedsInput) continue;
    const uint32_t run = merger->needed_run();
    const size_t batch = next_batch[run]++;
    const bool has_batch = batch < all.runs[run].size();
    QUERN_RETURN_IF_ERROR(has_batch ? merger->Input(run, ViewOf(workload, *all.runs[run][batch])) : merger->End(run));
  }
  if (num_rows == workload.spec().num_rows) return absl::OkStatus();
  return Internal("wrong number of merged rows: " + std::to_string(num_rows) +
                  "; accepted: " + std::to_string(workload.spec().num_rows));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Kernel>> CompileSort(const std::string& spec, const std::string& params,
                                                          Engine engine) {
  CompileOptions options;
  options.engine = engine;
  std::istringstream words(params);
  for (std::string word; words >> word;) {
    const size_t equals = std::min(word.find('='), word.size() - 1);
    options.overrides.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  QUERN_ASSIGN_OR_RETURN(CompiledKernel compiled, CompileText(spec, options));
  return std::move(compiled.kernel);
}

SortContender SortWith(const std::shared_ptr<const Kernel>& kernel, const SortWorkload& workload, unsigned threads) {
  SortContender contender;
  contender.check = [=, &workload] { return CheckOnce(kernel, threads, workload); };
  contender.run = [=, &workload](SortTimes* times) { return RunOnce(kernel, threads, workload, times); };
  return contender;
}

SortContender VectorSortOf(const SortWorkload& workload) { return NumbersSortedBy(workload, &VectorSort); }

SortContender StdSortOf(const SortWorkload& workload) {
  return NumbersSortedBy(workload, [](int64_t* keys, uint64_t n) { std::sort(keys, keys + n); });
}

absl::StatusOr<SortContender> MergeOf(const std::shared_ptr<const Kernel>& kernel, const SortWorkload& workload,
                                      uint32_t num_runs) {
  const auto all = std::make_shared<SortedRuns>();
  const uint64_t rows = workload.spec().num_rows;
  for (uint64_t run = 0; run < num_runs; ++run)
    QUERN_RETURN_IF_ERROR(MakeRun(kernel, workload, rows * run / num_runs, rows * (run + 1) / num_runs, all.get()));
  SortContender contender;
  contender.check = [=, &workload]() -> absl::Status {
    SortCheck check(std::get<SortSpec>(kernel->plan.spec), workload);
    QUERN_RETURN_IF_ERROR(MergeRuns(kernel, workload, *all, [&](const OutputBatch& out) { return check.Add(out); }));
    return check.Finish();
  };
  contender.run = [=, &workload](SortTimes* times) -> absl::Status {
    const double start = Now();
    QUERN_RETURN_IF_ERROR(MergeRuns(kernel, workload, *all, [](const OutputBatch&) { return absl::OkStatus(); }));
    times->read_s = Now() - start;
    return absl::OkStatus();
  };
  return contender;
}

absl::Status TakeTurns(int turns, std::vector<SortContender>* contenders) {
  for (const SortContender& contender : *contenders) {
    if (contender.check) QUERN_RETURN_IF_ERROR(contender.check());
  }
  for (int turn = 0; turn < turns; ++turn) {
    for (SortContender& contender : *contenders) {
      SortTimes times;
      QUERN_RETURN_IF_ERROR(contender.run(&times));
      if (times.all_s() < contender.best.all_s()) contender.best = times;
    }
  }
  return absl::OkStatus();
}

}  // namespace quern::bench
