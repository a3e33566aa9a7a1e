// SPDX-License-Identifier: Apache-2.0
// A run is timed from its first row to its last, as a host would see it:
//
//     join         append build rows | finalise | probe | rows that were spilled, after all probes
//     aggregation  append            | finalise | read
//     sort         append            | finalise | read
//
// Output batches are made before, as a host has them, and are counted in the job's budget; the rows in them are
// dropped, or digested where results are compared.
#include "bench/spill/spill_run.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <variant>

#include "bench/common/append_rows.h"
#include "bench/common/random_bits.h"
#include "bench/common/timing.h"
#include "codegen/base/environment.h"
#include "runtime/base/status.h"
#include "runtime/rows/output_batch.h"

namespace quern::bench {
namespace {

constexpr uint64_t kOutputRows = 4096;

uint64_t HashBytes(const uint8_t* bytes, uint64_t num_bytes) {
  uint64_t hash = num_bytes;
  for (uint64_t i = 0; i < num_bytes; ++i) hash = RandomBits(hash ^ bytes[i]);
  return hash;
}

uint64_t HashRow(const OutputBatch& out, uint64_t row) {
  uint64_t hash = 0;
  for (size_t c = 0; c < out.num_columns(); ++c) {
    const QuernOutColumn& column = out.column(c);
    const Storage storage = RowOf(out.type(c).id).storage;
    const auto* const values = static_cast<const uint8_t*>(column.values);
    const auto* const offsets = static_cast<const int32_t*>(column.offsets);
    const uint64_t width = storage == kVar32 ? 0 : StorageFieldBytes(storage);
    const uint64_t value = storage == kVar32 ? HashBytes(column.bytes + offsets[row],
                                                         static_cast<uint64_t>(offsets[row + 1] - offsets[row]))
                                             : HashBytes(values + row * width, width);
    hash = RandomBits(hash ^ value);
  }
  return hash;
}

// One run of a job.
class JobRun {
 public:
  JobRun(const SpillJob& job, const RunSettings& settings)
      : job_(job), settings_(settings), budget_(std::make_shared<MemoryBudget>(settings.limit_bytes)) {
    if (!settings.spills) return;
    SpillSettings spill;
    spill.codec = settings.codec;
    spill_ = std::make_shared<SpillContext>(std::make_unique<TemporaryFiles>(SpillFolder(), 0, settings.calls), budget_,
                                            spill);
  }

  absl::Status Run() {
    if (job_.build != nullptr) return RunJoin();
    const KernelSpec& spec = job_.kernel->plan.spec;
    return std::holds_alternative<SortSpec>(spec) ? RunSort() : RunAggregation();
  }

  Measured Outcome() const {
    Measured outcome;
    outcome.peak_bytes = budget_->peak_bytes();
    outcome.rows_out = rows_out_;
    outcome.digest = digest_;
    if (spill_ != nullptr) outcome.spill = spill_->stats();
    return outcome;
  }

 private:
  absl::Status Append(const std::shared_ptr<Sink>& sink, const JobRows& rows) {
    if (spill_ != nullptr) sink->SetSpill(spill_);
    QUERN_RETURN_IF_ERROR(AppendRows(sink, rows.spec().num_rows, settings_.threads,
                                     [&](uint64_t first, uint64_t n) { return rows.View(first, n); }));
    return FinaliseOnThreads(sink.get(), settings_.threads);
  }

  // Calls work(out) on all threads.
  template <class Work>
  absl::Status Read(const std::vector<ColumnType>& types, const Work& work) {
    return OnThreads(settings_.threads, [&]() -> absl::Status {
      OutputBatch out(types, kOutputRows, budget_);
      return work(&out);
    });
  }

  // Takes all rows that a reader has.
  template <class Reader>
  absl::Status Take(Reader* reader, OutputBatch* out) {
    for (bool more = true; more;) {
      QUERN_ASSIGN_OR_RETURN(more, reader->Next(out));
      rows_out_ += out->num_rows();
      if (settings_.digests) Digest(*out);
    }
    return absl::OkStatus();
  }

  void Digest(const OutputBatch& out) {
    const bool is_sort = std::holds_alternative<SortSpec>(job_.kernel->plan.spec);
    for (uint64_t row = 0; row < out.num_rows(); ++row)
      digest_ = (is_sort ? RandomBits(digest_) : digest_) + HashRow(out, row);
  }

  absl::Status RunJoin();
  absl::Status RunAggregation();
  absl::Status RunSort();

  const SpillJob& job_;
  const RunSettings& settings_;
  const std::shared_ptr<MemoryBudget> budget_;
  std::shared_ptr<SpillContext> spill_;  // null: rows stay in memory
  std::atomic<uint64_t> rows_out_{0};
  uint64_t digest_ = 0;
};

// A join that spills has rows behind the probes, whatever its kind.
absl::Status JobRun::RunJoin() {
  const auto& spec = std::get<JoinSpec>(job_.kernel->plan.spec);
  const std::shared_ptr<HashJoin> join = MakeHashJoin(job_.kernel, budget_);
  QUERN_RETURN_IF_ERROR(Append(join, *job_.build));
  std::atomic<uint64_t> next_probe{0};
  const uint64_t num_rows = job_.rows->spec().num_rows;
  QUERN_RETURN_IF_ERROR(Read(JoinOutputTypes(spec), [&](OutputBatch* out) -> absl::Status {
    JoinProber prober(join);
    for (uint64_t at; (at = next_probe.fetch_add(kBatchRows)) < num_rows;) {
      QUERN_RETURN_IF_ERROR(prober.SetInput(job_.rows->View(at, std::min(kBatchRows, num_rows - at))));
      QUERN_RETURN_IF_ERROR(Take(&prober, out));
    }
    return absl::OkStatus();
  }));
  if (spill_ == nullptr) return absl::OkStatus();
  return Read(JoinOutputTypes(spec), [&](OutputBatch* out) -> absl::Status {
    JoinProber prober(join);
    QUERN_RETURN_IF_ERROR(prober.SetUnmatched());
    return Take(&prober, out);
  });
}

absl::Status JobRun::RunAggregation() {
  const auto& spec = std::get<AggregationSpec>(job_.kernel->plan.spec);
  const std::shared_ptr<HashAggregate> aggregate = MakeHashAggregate(job_.kernel, budget_);
  QUERN_RETURN_IF_ERROR(Append(aggregate, *job_.rows));
  return Read(AggregateOutputTypes(spec), [&](OutputBatch* out) {
    GroupReader reader(aggregate);
    return Take(&reader, out);
  });
}

absl::Status JobRun::RunSort() {
  const auto& spec = std::get<SortSpec>(job_.kernel->plan.spec);
  const std::shared_ptr<RowSort> sort = MakeRowSort(job_.kernel, budget_);
  QUERN_RETURN_IF_ERROR(Append(sort, *job_.rows));
  return Read(SortOutputTypes(spec), [&](OutputBatch* out) {
    SortReader reader(sort);
    return Take(&reader, out);
  });
}

// What a kind of job does, and of what rows.
struct JobKind {
  std::string spec;
  bool is_join = false;
  bool has_text = false, has_integer = false, has_payload = true;
  uint64_t rows_per_number = 1;  // of the rows, or of the probe side
};

JobKind KindOf(const std::string& name) {
  if (name == "join i64") return {"join.inner keys=i64 build=i64 probe=i64", true, false, true, true, 2};
  if (name == "join text") return {"join.inner keys=utf8 build=i64 probe=i64", true, true, false, true, 2};
  if (name == "aggregate") return {"aggregate keys=i64 aggs=count_star,sum(i64)", false, false, true, true, 2};
  if (name == "sort i64") return {"sort keys=i64:out payload=i64", false, false, true};
  return {"sort keys=utf8:out,i64:out", false, true, true, false, 4};
}

}  // namespace

const std::vector<std::string>& SpillJobNames() {
  static const std::vector<std::string> names = {"join i64", "join text", "aggregate", "sort i64", "sort text,i64"};
  return names;
}

absl::StatusOr<SpillJob> MakeSpillJob(const std::string& name, uint64_t rows, bool is_stored) {
  const JobKind kind = KindOf(name);
  CompileOptions options;
  options.engine = Engine::kJit;
  QUERN_ASSIGN_OR_RETURN(const CompiledKernel compiled, CompileText(kind.spec, options));
  SpillJob job = {name, compiled.kernel, nullptr, nullptr};
  JobRowsSpec spec = {.num_rows = rows,
                      .numbers = kind.rows_per_number == 1 ? RowNumbers::kDistinct : RowNumbers::kDrawn,
                      .num_numbers = std::max<uint64_t>(rows / kind.rows_per_number, 1),
                      .has_text = kind.has_text,
                      .has_integer = kind.has_integer,
                      .has_payload = kind.has_payload};
  job.rows = std::make_shared<JobRows>(spec, is_stored);
  if (!kind.is_join) return job;
  spec.num_rows = spec.num_numbers;
  spec.numbers = RowNumbers::kDistinct;
  job.build = std::make_shared<JobRows>(spec, is_stored);
  return job;
}

std::string SpillFolder() { return ReadVariable(Variable::kSpillDir).value; }

absl::StatusOr<Measured> RunOnce(const SpillJob& job, const RunSettings& settings) {
  JobRun run(job, settings);
  const double start = Now();
  const absl::Status status = run.Run();
  const double seconds = Now() - start;
  Measured outcome = run.Outcome();
  outcome.seconds = seconds;
  outcome.is_refused = absl::IsResourceExhausted(status);
  if (!outcome.is_refused) QUERN_RETURN_IF_ERROR(status);
  return outcome;
}

absl::Status TakeTurns(const SpillJob& job, int turns, std::vector<SpillContender>* contenders) {
  const Measured* first = nullptr;
  for (SpillContender& contender : *contenders) {
    RunSettings settings = contender.settings;
    settings.digests = true;
    settings.threads = 1;
    QUERN_ASSIGN_OR_RETURN(contender.best, RunOnce(job, settings));
    contender.best.seconds = 1e9;
    if (contender.best.is_refused) continue;
    if (first == nullptr) first = &contender.best;
    if (contender.best.rows_out != first->rows_out || contender.best.digest != first->digest) {
      return Internal("other rows of " + job.name + " under a limit: " + std::to_string(contender.best.rows_out) +
                      "; accepted: the " + std::to_string(first->rows_out) + " rows without one");
    }
  }
  for (int turn = 0; turn < turns; ++turn) {
    for (SpillContender& contender : *contenders) {
      if (contender.best.is_refused) continue;
      QUERN_ASSIGN_OR_RETURN(Measured run, RunOnce(job, contender.settings));
      if (run.is_refused || run.seconds < contender.best.seconds) contender.best = std::move(run);
    }
  }
  return absl::OkStatus();
}

}  // namespace quern::bench
