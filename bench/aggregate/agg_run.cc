// SPDX-License-Identifier: Apache-2.0
// One run of an aggregation has three phases, each timed and each on the requested number of threads:
//
//     append | finalise | read         2 threads, 20 M rows: 306 batches; a free thread takes the next one
//
// One thread uses the plain calls, several threads the shared ones, so a speed-up is relative to what a caller without
// threads gets.
#include "bench/aggregate/agg_run.h"

#include <algorithm>
#include <atomic>
#include <sstream>

#include "bench/common/append_rows.h"
#include "bench/common/timing.h"
#include "runtime/base/status.h"
#include "runtime/rows/output_batch.h"

namespace quern::bench {
namespace {

constexpr uint64_t kOutputRows = uint64_t{1} << 14;

class AggRun {
 public:
  AggRun(const std::shared_ptr<const Kernel>& kernel, unsigned threads, const AggWorkload& workload)
      : threads_(threads),
        workload_(workload),
        spec_(std::get<AggregationSpec>(kernel->plan.spec)),
        arguments_(AggregateInputTypes(spec_)),
        budget_(std::make_shared<MemoryBudget>()),
        aggregate_(MakeHashAggregate(kernel, budget_)) {}

  absl::Status Append() {
    return AppendRows(aggregate_, workload_.spec().num_rows, threads_,
                      [&](uint64_t first, uint64_t num_rows) { return workload_.View(first, num_rows, arguments_); });
  }

  absl::Status Finalise() { return FinaliseOnThreads(aggregate_.get(), threads_); }

  absl::Status Read() {
    return OnThreads(threads_, [&]() -> absl::Status {
      GroupReader reader(aggregate_);
      OutputBatch out(AggregateOutputTypes(spec_), kOutputRows, budget_);
      for (bool more = true; more;) {
        QUERN_ASSIGN_OR_RETURN(more, reader.Next(&out));
        num_groups_ += out.num_rows();
      }
      return absl::OkStatus();
    });
  }

  uint64_t num_groups() const { return num_groups_; }
  const AggregateStats& stats() const { return aggregate_->stats(); }

 private:
  const unsigned threads_;
  const AggWorkload& workload_;
  const AggregationSpec& spec_;
  const std::vector<ColumnType> arguments_;
  std::shared_ptr<MemoryBudget> budget_;
  std::shared_ptr<HashAggregate> aggregate_;
  std::atomic<uint64_t> num_groups_{0};
};

absl::Status RunOnce(const std::shared_ptr<const Kernel>& kernel, unsigned threads, const AggWorkload& workload,
                     AggTimes* sum) {
  AggRun run(kernel, threads, workload);
  const double start = Now();
  QUERN_RETURN_IF_ERROR(run.Append());
  const double appended = Now();
  QUERN_RETURN_IF_ERROR(run.Finalise());
  const double finalised = Now();
  QUERN_RETURN_IF_ERROR(run.Read());
  sum->append_s += appended - start;
  sum->finalise_s += finalised - appended;
  sum->read_s += Now() - finalised;
  sum->num_groups = run.num_groups();
  sum->stats = run.stats();
  if (run.num_groups() == workload.num_groups_met()) return absl::OkStatus();
  return Internal("wrong number of groups: " + std::to_string(run.num_groups()) +
                  "; accepted: " + std::to_string(workload.num_groups_met()));
}

}  // namespace

absl::StatusOr<AggContender> CompeteAggregate(const std::string& spec, const std::string& params, Engine engine) {
  CompileOptions options;
  options.engine = engine;
  std::istringstream words(params);
  for (std::string word; words >> word;) {
    const size_t equals = std::min(word.find('='), word.size() - 1);
    options.overrides.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  QUERN_ASSIGN_OR_RETURN(CompiledKernel compiled, CompileText(spec, options));
  return AggContender{.kernels = {std::move(compiled.kernel)}};
}

absl::Status TakeTurns(const AggWorkload& workload, int turns, std::vector<AggContender>* contenders) {
  for (int turn = 0; turn < turns; ++turn) {
    for (AggContender& contender : *contenders) {
      AggTimes sum = {.append_s = 0, .finalise_s = 0, .read_s = 0, .stats = {}};
      for (const auto& kernel : contender.kernels)
        QUERN_RETURN_IF_ERROR(RunOnce(kernel, contender.threads, workload, &sum));
      if (sum.all_s() < contender.best.all_s()) contender.best = sum;
    }
  }
  return absl::OkStatus();
}

}  // namespace quern::bench
