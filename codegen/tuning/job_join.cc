// SPDX-License-Identifier: Apache-2.0
// Joins. A probe job builds its table once and probes it with a pool of rows, a slice at a time. The joins of a
// pipeline take turns batch by batch, so that they evict each other's cache lines as they would in a query:
//
//     pipeline=2     batch 0 -> join A, join B     batch 1 -> join A, join B     ..
//
// A build job rebuilds the table for each run, as often as fits a slice. Only finalising is timed, since rows arrive in
// order and do not wait for cache lines.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "codegen/tuning/job_makers.h"
#include "runtime/base/status.h"
#include "runtime/join/hash_join.h"
#include "runtime/rows/output_batch.h"
#include "runtime/rows/row_layout.h"

namespace quern::tuning {
namespace {

constexpr double kDirectoryBytesPerRow = 24;  // of an unchained table: 16 to 32
constexpr double kBitmapBytesPerRow = 0.125;

bool IsDense(PrefetchLoop loop) { return loop == PrefetchLoop::kBuildDense || loop == PrefetchLoop::kProbeDense; }
bool IsOpen(PrefetchLoop loop) { return loop == PrefetchLoop::kBuildOpen || loop == PrefetchLoop::kProbeOpen; }

double BytesPerRow(const JobKernel& job) {
  const double tuple_bytes = job.kernel->As<JoinSpec>().descriptor->rows()->tuple_bytes;
  if (IsDense(job.cell.loop)) return tuple_bytes + kBitmapBytesPerRow;
  if (IsOpen(job.cell.loop)) return tuple_bytes * 100 / job.plan.open_load_percent;
  return tuple_bytes + kDirectoryBytesPerRow;
}

std::vector<ColumnType> WithResiduals(std::vector<ColumnType> columns, const JoinSpec& spec) {
  for (const ResidualSpec& residual : spec.residual) columns.push_back(residual.type);
  return columns;
}

// In place of the host's residual, which the tuner does not have.
int KeepAllPairs(void* /*user*/, void* /*context*/, const uint64_t* /*probe_rows*/, const uint64_t* /*build_rows*/,
                 uint64_t n, uint8_t* keep) {
  std::memset(keep, 1, n);
  return 0;
}

// The build side of a job: its size, and its rows, made on demand.
struct BuildRows {
  uint64_t num_rows = 0, num_keys = 0;
  RowMaker maker;
  std::vector<std::shared_ptr<const JobRows>> kept;  // kBatchRows each; empty: rows are made as they are appended

  BuildRows(const JoinSpec& spec, uint64_t rows)
      : num_rows(rows), num_keys(rows), maker{spec.keys, WithResiduals(spec.build, spec), true, 16, 0} {}
  explicit BuildRows(const JobKernel& job) {
    const auto& spec = std::get<JoinSpec>(job.plan.spec);
    num_rows = job.RowsFor(BytesPerRow(job));
    num_keys = std::max<uint64_t>(num_rows / std::max(job.data.rows_per_key, 1u), 1);
    maker = {spec.keys, WithResiduals(spec.build, spec), IsDense(job.cell.loop), job.text_bytes(), 0};
  }

  uint64_t num_batches() const { return (num_rows + kBatchRows - 1) / kBatchRows; }
  absl::StatusOr<std::shared_ptr<const JobRows>> MakeBatch(uint64_t batch) const {
    const uint64_t first = batch * kBatchRows;
    return JobRows::Make(maker, NumbersInNoOrder(first, std::min(kBatchRows, num_rows - first), num_keys));
  }

  absl::Status Keep() {
    while (kept.size() < num_batches()) {
      QUERN_ASSIGN_OR_RETURN(std::shared_ptr<const JobRows> made, MakeBatch(kept.size()));
      kept.push_back(std::move(made));
    }
    return absl::OkStatus();
  }

  // Batches go to the threads by turns.
  template <class Side>
  absl::Status AppendTo(Side* side, uint32_t thread, uint32_t threads) const {
    for (uint64_t batch = thread; batch < num_batches(); batch += threads) {
      std::shared_ptr<const JobRows> rows = kept.empty() ? nullptr : kept[batch];
      if (rows == nullptr) {
        QUERN_ASSIGN_OR_RETURN(rows, MakeBatch(batch));
      }
      BatchView view = rows->View(0, rows->num_rows());
      view.owner = rows;
      QUERN_RETURN_IF_ERROR(side->Append(view));
    }
    return absl::OkStatus();
  }
};

uint64_t BytesOf(const JoinStats& stats) { return stats.directory_bytes + stats.tuple_bytes; }

// Checks that the source, the appended tuples and the table fit in memory.
absl::Status CheckFits(const JobKernel& job, const BuildRows& build, uint64_t pool_rows) {
  QUERN_ASSIGN_OR_RETURN(const uint64_t row_bytes, BytesOfRow(build.maker));
  const auto table = static_cast<uint64_t>(static_cast<double>(build.num_rows) * BytesPerRow(job));
  const uint64_t tuples = build.num_rows * (job.kernel->As<JoinSpec>().descriptor->rows()->tuple_bytes + 8);
  return CheckMemory((table + tuples + build.num_rows * row_bytes) * job.cell.pipeline + pool_rows * (row_bytes + 8));
}

absl::Status CheckLayout(const JobKernel& job, const JoinStats& stats) {
  const std::string layout = stats.layout;
  const bool is_it = IsDense(job.cell.loop)
                         ? layout == "dense" || layout == "ranked" || layout == "csr" || layout == "bitmap"
                     : IsOpen(job.cell.loop) ? layout == "open" || layout == "counting"
                                             : layout == "unchained";
  if (is_it) return absl::OkStatus();
  return absl::UnimplementedError("layout of a tuning job of " + PrintCell(job.cell) + ": " + layout +
                                  "; accepted: that of the loop");
}

// ---- probing -------------------------------------------------------------------------------------------------------

class ProbeJob final : public TuningJob {
 public:
  explicit ProbeJob(const JobKernel& job)
      : job_(job), budget_(std::make_shared<MemoryBudget>()), slice_(job.data.slice_ms, job.batch_rows()) {}

  absl::Status Begin() {
    const BuildRows build(job_);
    QUERN_RETURN_IF_ERROR(CheckFits(job_, build, std::clamp(build.num_keys, kLeastPoolRows, kMostPoolRows)));
    for (uint32_t i = 0; i < std::max(job_.cell.pipeline, 1u); ++i) {
      joins_.push_back(MakeHashJoin(job_.kernel, budget_));
      joins_.back()->SetHostResidual({KeepAllPairs});
      QUERN_RETURN_IF_ERROR(build.AppendTo(joins_.back().get(), 0, 1));
      QUERN_RETURN_IF_ERROR(joins_.back()->Finalise());
      QUERN_RETURN_IF_ERROR(CheckLayout(job_, joins_.back()->stats()));
    }
    const auto& spec = std::get<JoinSpec>(job_.plan.spec);
    const RowMaker maker = {spec.keys, WithResiduals(spec.probe, spec), build.maker.dense, job_.text_bytes(), 0};
    QUERN_ASSIGN_OR_RETURN(pool_, JobRows::Make(maker, NumbersOfPool(build.num_keys, job_.data)));
    for (uint32_t t = 0; t < job_.cell.threads; ++t) workers_.push_back(std::make_unique<Worker>(*this, t));
    return absl::OkStatus();
  }

  absl::StatusOr<double> Run(const PrefetchSetting& setting) override {
    for (const auto& join : joins_) join->SetPrefetch(job_.cell.loop, setting);
    const uint64_t rows = slice_.Rows();
    QUERN_RETURN_IF_ERROR(OnThreads(job_.cell.threads, [&](uint32_t t) { return workers_[t]->Probe(rows); }));
    double seconds = 0;
    for (const auto& worker : workers_) seconds += worker->seconds;
    const double ns = seconds / static_cast<double>(rows * workers_.size()) * 1e9;
    slice_.Saw(ns * static_cast<double>(joins_.size()));
    return ns / static_cast<double>(joins_.size());
  }

  PrefetchSetting Default() const override { return job_.Planned(table_bytes()); }
  uint64_t table_bytes() const override { return BytesOf(joins_[0]->stats()); }

 private:
  // The state of one thread.
  struct Worker {
    const ProbeJob& job;
    std::vector<std::unique_ptr<JoinProber>> probers;
    OutputBatch out;
    uint64_t at;
    double seconds = 0;

    Worker(const ProbeJob& job_of, uint32_t thread)
        : job(job_of),
          out(JoinOutputTypes(std::get<JoinSpec>(job_of.job_.plan.spec)), kBatchRows, job_of.budget_),
          at(job_of.pool_->num_rows() / job_of.job_.cell.threads * thread) {
      for (const auto& join : job.joins_) probers.push_back(std::make_unique<JoinProber>(join));
    }

    absl::Status Probe(uint64_t rows) {
      const double start = NowSeconds();
      for (uint64_t done = 0; done < rows; done += job.job_.batch_rows()) {
        const uint64_t n = std::min(job.job_.batch_rows(), job.pool_->num_rows());
        if (at + n > job.pool_->num_rows()) at = 0;
        for (const auto& prober : probers) {
          QUERN_RETURN_IF_ERROR(prober->SetInput(job.pool_->View(at, n)));
          for (bool more = true; more;) {
            QUERN_ASSIGN_OR_RETURN(more, prober->Next(&out));
          }
        }
        at += n;
      }
      seconds = NowSeconds() - start;
      return absl::OkStatus();
    }
  };

  const JobKernel job_;
  std::shared_ptr<MemoryBudget> budget_;
  SliceSize slice_;
  std::vector<std::shared_ptr<HashJoin>> joins_;
  std::shared_ptr<const JobRows> pool_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

// ---- building ------------------------------------------------------------------------------------------------------

class BuildJob final : public TuningJob {
 public:
  explicit BuildJob(const JobKernel& job) : job_(job), build_(job), slice_(job.data.slice_ms, 1) {}

  absl::Status Begin() {
    QUERN_RETURN_IF_ERROR(CheckFits(job_, build_, 0));
    QUERN_RETURN_IF_ERROR(build_.Keep());
    QUERN_RETURN_IF_ERROR(BuildOnce(job_.kernel).status());
    return absl::OkStatus();
  }

  absl::StatusOr<double> Run(const PrefetchSetting& setting) override {
    const std::shared_ptr<const Kernel> kernel = job_.With(setting);
    const uint64_t wanted = slice_.Rows();
    double seconds = 0;
    uint64_t rows = 0;
    do {
      QUERN_ASSIGN_OR_RETURN(const double once, BuildOnce(kernel));
      seconds += once;
      rows += build_.num_rows;
    } while (rows < wanted);
    const double ns = seconds / static_cast<double>(rows) * 1e9;
    slice_.Saw(ns);
    return ns;
  }

  PrefetchSetting Default() const override { return job_.Planned(table_bytes_); }
  uint64_t table_bytes() const override { return table_bytes_; }

 private:
  // The seconds of all threads together.
  absl::StatusOr<double> BuildOnce(const std::shared_ptr<const Kernel>& kernel) {
    const std::shared_ptr<HashJoin> join = MakeHashJoin(kernel, std::make_shared<MemoryBudget>());
    join->SetHostResidual({KeepAllPairs});
    const uint32_t threads = job_.cell.threads;
    std::vector<double> seconds(threads);
    if (threads > 1) QUERN_RETURN_IF_ERROR(OnThreads(threads, [&](uint32_t t) { return AppendShare(join, t); }));
    else QUERN_RETURN_IF_ERROR(build_.AppendTo(join.get(), 0, 1));
    QUERN_RETURN_IF_ERROR(OnThreads(threads, [&](uint32_t t) {
      const double start = NowSeconds();
      const absl::Status status = threads > 1 ? join->Finalise() : join->Finalise();
      seconds[t] = NowSeconds() - start;
      return status;
    }));
    QUERN_RETURN_IF_ERROR(CheckLayout(job_, join->stats()));
    table_bytes_ = BytesOf(join->stats());
    double sum = 0;
    for (const double s : seconds) sum += s;
    return sum;
  }

  absl::Status AppendShare(const std::shared_ptr<HashJoin>& join, uint32_t thread) const {
    Appender appender(join);
    QUERN_RETURN_IF_ERROR(build_.AppendTo(&appender, thread, job_.cell.threads));
    return appender.Finish();
  }

  const JobKernel job_;
  BuildRows build_;
  SliceSize slice_;
  uint64_t table_bytes_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TuningJob>> MakeProbeJob(const JobKernel& kernel) {
  auto job = std::make_unique<ProbeJob>(kernel);
  QUERN_RETURN_IF_ERROR(job->Begin());
  return std::unique_ptr<TuningJob>(std::move(job));
}

absl::StatusOr<std::shared_ptr<const HashJoin>> MakeNumberedTable(const std::shared_ptr<const Kernel>& kernel,
                                                                  uint64_t num_rows) {
  const BuildRows build(std::get<JoinSpec>(kernel->plan.spec), num_rows);
  std::shared_ptr<HashJoin> join = MakeHashJoin(kernel, std::make_shared<MemoryBudget>());
  join->SetHostResidual({KeepAllPairs});
  QUERN_RETURN_IF_ERROR(build.AppendTo(join.get(), 0, 1));
  QUERN_RETURN_IF_ERROR(join->Finalise());
  return std::shared_ptr<const HashJoin>(std::move(join));
}

absl::StatusOr<std::unique_ptr<TuningJob>> MakeBuildJob(const JobKernel& kernel) {
  auto job = std::make_unique<BuildJob>(kernel);
  QUERN_RETURN_IF_ERROR(job->Begin());
  return std::unique_ptr<TuningJob>(std::move(job));
}

}  // namespace quern::tuning
