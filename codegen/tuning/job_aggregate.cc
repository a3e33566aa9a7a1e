// SPDX-License-Identifier: Apache-2.0
// Aggregations. All groups are inserted first; then a run appends rows with existing keys, so that it finds and updates
// groups and the table keeps its size:
//
//     begin    numbers 0 .. n-1, each once             the table grows to its size
//     run      a slice of a pool of random numbers     count and sum of each one's group
//
// The aggregation gets the number of groups in advance; otherwise tables would only have the sizes that growth
// produces.
//
// Each thread has its own aggregation, as each appender of a shared one has its own table.
#include <algorithm>
#include <bit>
#include <utility>

#include "codegen/tuning/job_makers.h"
#include "runtime/aggregate/aggregate_descriptor.h"
#include "runtime/aggregate/hash_aggregate.h"
#include "runtime/base/status.h"

namespace quern::tuning {
namespace {

constexpr double kDirectoryBytesPerGroup = 16;
// Mean loads: the number of slots is the next power of two above a load of 60 %, or of 30 % in the L2 cache
// (packed_key_groups.cc).
constexpr double kOpenLoad = 0.45, kOpenLoadInL2 = 0.22;

// The requested number of groups, or as many as leave room for the next block in an open table of so many bytes: with a
// few groups fewer, a table that was about to grow stays the same.
uint64_t GivenGroups(const JobKernel& job) {
  const uint64_t groups = std::max<uint64_t>(job.data.build_rows / std::max(job.data.rows_per_key, 1u), 1);
  const uint64_t slots = std::bit_floor(job.data.group_bytes / GroupsOf(*job.kernel).group()->tuple_bytes);
  const uint64_t room = slots * job.plan.group_load_percent / 100;
  const bool is_near =
      job.cell.loop == PrefetchLoop::kUpdateOpen && room >= groups && room < groups + job.plan.batch_size;
  return is_near ? std::max<uint64_t>(groups - std::min<uint64_t>(groups / 2, job.plan.batch_size), 1) : groups;
}

// The number of groups for a table of the cell's size class.
uint64_t GroupsFor(const JobKernel& job) {
  if (job.data.build_rows != 0) return GivenGroups(job);
  const uint64_t tuple_bytes = GroupsOf(*job.kernel).group()->tuple_bytes;
  if (job.cell.loop == PrefetchLoop::kUpdateDense) return job.RowsFor(static_cast<double>(tuple_bytes) + 1);
  if (job.cell.loop == PrefetchLoop::kUpdateDirectory)
    return job.RowsFor(static_cast<double>(tuple_bytes) + kDirectoryBytesPerGroup);
  // The number of slots is a power of two plus one.
  const uint64_t slots = std::bit_floor((uint64_t{1} << job.cell.size_class) / tuple_bytes - 1);
  const double load = slots * tuple_bytes <= job.plan.l2_bytes ? kOpenLoadInL2 : kOpenLoad;
  return std::max<uint64_t>(static_cast<uint64_t>(static_cast<double>(slots) * load), 16);
}

class UpdateJob final : public TuningJob {
 public:
  explicit UpdateJob(const JobKernel& job) : job_(job), slice_(job.data.slice_ms, job.batch_rows()) {}

  absl::Status Begin() {
    const AggregationSpec spec = GroupsOf(job_.plan.spec);
    const uint64_t groups = GroupsFor(job_);
    const RowMaker maker = {spec.keys, AggregateInputTypes(spec), job_.cell.loop == PrefetchLoop::kUpdateDense,
                            job_.text_bytes(), 0};
    QUERN_ASSIGN_OR_RETURN(const uint64_t row_bytes, BytesOfRow(maker));
    const uint64_t tables = uint64_t{job_.cell.threads} * job_.cell.pipeline;
    const uint64_t pool_rows = std::clamp(groups, kLeastPoolRows, kMostPoolRows);
    // A growing table exists twice.
    QUERN_RETURN_IF_ERROR(CheckMemory((uint64_t{2} << job_.cell.size_class) * tables + pool_rows * (row_bytes + 8)));
    QUERN_ASSIGN_OR_RETURN(pool_, JobRows::Make(maker, NumbersOfPool(groups, job_.data)));
    for (uint32_t t = 0; t < job_.cell.threads; ++t) {
      workers_.push_back(std::make_unique<Worker>(*this, t));
      QUERN_RETURN_IF_ERROR(workers_[t]->Begin(maker, groups));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<double> Run(const PrefetchSetting& setting) override {
    for (const auto& worker : workers_)
      for (const auto& aggregate : worker->aggregates) aggregate->SetPrefetch(job_.cell.loop, setting);
    const uint64_t rows = slice_.Rows();
    QUERN_RETURN_IF_ERROR(OnThreads(job_.cell.threads, [&](uint32_t t) { return workers_[t]->Update(rows); }));
    double seconds = 0;
    for (const auto& worker : workers_) seconds += worker->seconds;
    const double ns = seconds / static_cast<double>(rows * workers_.size()) * 1e9;
    slice_.Saw(ns);
    return ns / job_.cell.pipeline;
  }

  PrefetchSetting Default() const override { return job_.Planned(table_bytes()); }
  uint64_t table_bytes() const override { return workers_[0]->aggregates[0]->table_bytes(); }

 private:
  // The state of one thread.
  struct Worker {
    const UpdateJob& job;
    std::shared_ptr<MemoryBudget> budget = std::make_shared<MemoryBudget>();
    std::vector<std::shared_ptr<HashAggregate>> aggregates;
    uint64_t at;
    double seconds = 0;

    Worker(const UpdateJob& job_of, uint32_t thread)
        : job(job_of), at(job_of.pool_->num_rows() / job_of.job_.cell.threads * thread) {}

    absl::Status Begin(const RowMaker& maker, uint64_t groups) {
      GroupHints hints;
      hints.expected_groups = groups;
      const size_t carrier = CarrierOf(maker.keys);
      for (size_t k = 0; k < maker.keys.size() && maker.dense; ++k)
        hints.ranges.push_back({true, 0, k == carrier ? static_cast<int64_t>(groups) - 1 : 0});
      for (uint32_t i = 0; i < job.job_.cell.pipeline; ++i)
        aggregates.push_back(MakeHashAggregate(job.job_.kernel, budget, hints));
      for (uint64_t first = 0; first < groups; first += kBatchRows) {
        const uint64_t rows = std::min(kBatchRows, groups - first);
        QUERN_ASSIGN_OR_RETURN(const std::shared_ptr<const JobRows> made,
                               JobRows::Make(maker, NumbersInNoOrder(first, rows, groups)));
        for (const auto& aggregate : aggregates) QUERN_RETURN_IF_ERROR(aggregate->Append(made->View(0, rows)));
      }
      // A table grows before a batch whose rows might all make new groups.
      return Update(kLeastPoolRows);
    }

    absl::Status Update(uint64_t rows) {
      const double start = NowSeconds();
      for (uint64_t done = 0; done < rows; done += job.job_.batch_rows()) {
        const uint64_t n = std::min(job.job_.batch_rows(), job.pool_->num_rows());
        if (at + n > job.pool_->num_rows()) at = 0;
        for (const auto& aggregate : aggregates) QUERN_RETURN_IF_ERROR(aggregate->Append(job.pool_->View(at, n)));
        at += n;
      }
      seconds = NowSeconds() - start;
      return absl::OkStatus();
    }
  };

  const JobKernel job_;
  SliceSize slice_;
  std::shared_ptr<const JobRows> pool_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TuningJob>> MakeUpdateJob(const JobKernel& kernel) {
  auto job = std::make_unique<UpdateJob>(kernel);
  QUERN_RETURN_IF_ERROR(job->Begin());
  return std::unique_ptr<TuningJob>(std::move(job));
}

}  // namespace quern::tuning
