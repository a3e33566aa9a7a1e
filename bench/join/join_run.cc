// SPDX-License-Identifier: Apache-2.0
// One run of a join has four phases, each timed and each on the requested number of threads:
//
//     append | finalise | probe | scan of unmatched build rows, for kinds that return them
//
// Threads take batches as they become free: 10 M rows are 153 batches.
//
// One thread uses the plain calls, several threads the shared ones, so a speed-up is relative to what a caller without
// threads gets. Result rows are written to an output batch and dropped: no consumer is timed.
#include "bench/join/join_run.h"

#include <algorithm>
#include <atomic>
#include <sstream>
#include <utility>

#include "bench/common/append_rows.h"
#include "bench/common/timing.h"
#include "runtime/base/status.h"
#include "runtime/rows/output_batch.h"

namespace quern::bench {
namespace {

constexpr uint64_t kOutputRows = uint64_t{1} << 14;  // four columns of 8 bytes stay in the L2 cache
constexpr uint64_t kRowsBuiltATurn = 200'000;
constexpr uint64_t kMaxBuildsATurn = 200;

// One join, from its first row to its last.
class JoinRun {
 public:
  JoinRun(const Contender& contender, const JoinWorkload& workload)
      : threads_(contender.threads),
        workload_(workload),
        spec_(std::get<JoinSpec>(contender.kernel->plan.spec)),
        probe_rows_(contender.ProbeRows(workload)),
        budget_(std::make_shared<MemoryBudget>()),
        join_(MakeHashJoin(contender.kernel, budget_)) {}

  absl::Status Append();
  absl::Status Finalise();
  absl::Status Probe();
  absl::Status ScanUnmatched();
  uint64_t rows_out() const { return rows_out_; }
  const JoinStats& stats() const { return join_->stats(); }

 private:
  absl::Status TakeRows(JoinProber* prober, OutputBatch* out);

  unsigned threads_;
  const JoinWorkload& workload_;
  const JoinSpec& spec_;
  uint64_t probe_rows_;
  std::shared_ptr<MemoryBudget> budget_;
  std::shared_ptr<HashJoin> join_;
  std::atomic<uint64_t> next_probe_{0}, rows_out_{0};
};

absl::Status JoinRun::Append() {
  return AppendRows(join_, workload_.spec().build_rows, threads_, [this](uint64_t first, uint64_t num_rows) {
    return workload_.Build(first, num_rows, spec_.build.size());
  });
}

absl::Status JoinRun::Finalise() { return FinaliseOnThreads(join_.get(), threads_); }

absl::Status JoinRun::TakeRows(JoinProber* prober, OutputBatch* out) {
  uint64_t rows = 0;
  for (bool more = true; more;) {
    QUERN_ASSIGN_OR_RETURN(more, prober->Next(out));
    rows += out->num_rows();
  }
  rows_out_ += rows;
  return absl::OkStatus();
}

absl::Status JoinRun::Probe() {
  return OnThreads(threads_, [this]() -> absl::Status {
    JoinProber prober(join_);
    OutputBatch out(JoinOutputTypes(spec_), kOutputRows, budget_);
    for (uint64_t at; (at = next_probe_.fetch_add(kBatchRows)) < probe_rows_;) {
      QUERN_RETURN_IF_ERROR(
          prober.SetInput(workload_.Probe(at, std::min(kBatchRows, probe_rows_ - at), spec_.probe.size())));
      QUERN_RETURN_IF_ERROR(TakeRows(&prober, &out));
    }
    return absl::OkStatus();
  });
}

absl::Status JoinRun::ScanUnmatched() {
  if (RowOf(spec_.kind).build_row == RowsOut::kNever) return absl::OkStatus();
  return OnThreads(threads_, [this]() -> absl::Status {
    JoinProber prober(join_);
    OutputBatch out(JoinOutputTypes(spec_), kOutputRows, budget_);
    QUERN_RETURN_IF_ERROR(prober.SetUnmatched());
    return TakeRows(&prober, &out);
  });
}

absl::Status Time(absl::Status (JoinRun::*phase)(), JoinRun* run, double* best_s) {
  const double start = Now();
  QUERN_RETURN_IF_ERROR((run->*phase)());
  *best_s = std::min(*best_s, Now() - start);
  return absl::OkStatus();
}

absl::Status TakeTurn(const JoinWorkload& workload, Contender* contender) {
  JoinTimes& best = contender->best;
  const uint64_t builds = std::clamp<uint64_t>(kRowsBuiltATurn / workload.spec().build_rows, 1, kMaxBuildsATurn);
  std::unique_ptr<JoinRun> run;
  for (uint64_t i = 0; i < builds; ++i) {
    run = std::make_unique<JoinRun>(*contender, workload);
    QUERN_RETURN_IF_ERROR(Time(&JoinRun::Append, run.get(), &best.append_s));
    QUERN_RETURN_IF_ERROR(Time(&JoinRun::Finalise, run.get(), &best.finalise_s));
  }
  QUERN_RETURN_IF_ERROR(Time(&JoinRun::Probe, run.get(), &best.probe_s));
  QUERN_RETURN_IF_ERROR(Time(&JoinRun::ScanUnmatched, run.get(), &best.scan_s));
  best.stats = run->stats();
  best.rows_out = run->rows_out();
  const auto& spec = std::get<JoinSpec>(contender->kernel->plan.spec);
  const uint64_t expected = workload.ResultRows(spec.kind);
  if (contender->ProbeRows(workload) == workload.spec().probe_rows && best.rows_out != expected) {
    return Internal("wrong number of result rows of " + PrintSpec(spec) + ": " + std::to_string(best.rows_out) +
                    "; accepted: " + std::to_string(expected));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Contender> Compete(const std::string& spec, const std::string& params) {
  CompileOptions options;
  options.engine = Engine::kJit;
  std::istringstream words(params);
  for (std::string word; words >> word;) {
    const size_t equals = std::min(word.find('='), word.size() - 1);
    options.overrides.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  QUERN_ASSIGN_OR_RETURN(const CompiledKernel compiled, CompileText(spec, options));
  return Contender{compiled.kernel};
}

absl::Status TakeTurns(const JoinWorkload& workload, int turns, std::vector<Contender>* contenders) {
  for (int turn = 0; turn < turns; ++turn) {
    for (Contender& contender : *contenders) {
      if (turn < contender.turns) QUERN_RETURN_IF_ERROR(TakeTurn(workload, &contender));
    }
  }
  return absl::OkStatus();
}

}  // namespace quern::bench
