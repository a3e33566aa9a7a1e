// SPDX-License-Identifier: Apache-2.0
// Sorts. A gather job sorts its rows and reads them, a slice at a time; when all have been read, it sorts again, which
// is not timed:
//
//     1,000,000 rows, slices of 200,000     sort, 5 runs, sort, 5 runs, ..
//     1,000 rows                            sort and read, 17 times a run
//
// A collision job sorts strings that share their first bytes in groups of sixteen, so that scattered rows collide until
// the sort reads bytes beyond the sort-key prefix. A run is a whole sort, or as many as fill a slice.
#include <algorithm>
#include <utility>

#include "codegen/tuning/job_makers.h"
#include "runtime/base/status.h"
#include "runtime/rows/output_batch.h"
#include "runtime/sort/row_sort.h"

namespace quern::tuning {
namespace {

constexpr uint32_t kCollisionPrefixBytes = 24;  // more than a sort-key prefix holds
constexpr uint64_t kReadRows = 4096;            // at a time
// Rows read in a run at least, even if that takes several sorts: sorting takes ten times as long as reading.
constexpr uint64_t kFewestReadRows = 16384;

// The rows of a sort, and the bytes stored for each, by which schedules are looked up.
struct SortInputRows {
  uint64_t num_rows = 0;
  uint64_t bytes_per_row = 0;
  RowMaker maker;
  std::shared_ptr<const JobRows> rows;

  absl::Status Make(const JobKernel& job) {
    const auto& spec = std::get<SortSpec>(job.plan.spec);
    const bool ties = job.cell.loop == PrefetchLoop::kCollision;
    maker = {spec.keys, spec.payload, false, job.text_bytes(), ties ? kCollisionPrefixBytes : 0};
    QUERN_ASSIGN_OR_RETURN(const uint64_t source_bytes, BytesOfRow(maker));
    const QuernSortDescriptor& descriptor = *job.kernel->As<SortSpec>().descriptor->get();
    const bool has_row_ids = std::any_of(spec.payload.begin(), spec.payload.end(),
                                         [](const ColumnType& t) { return t.id == TypeId::kRowId; });
    bytes_per_row = uint64_t{8} * (descriptor.num_words + (has_row_ids ? 1 : 0)) + descriptor.rows.tuple_bytes;
    num_rows = job.RowsFor(static_cast<double>(bytes_per_row));
    constexpr uint64_t kEntryBytes = uint64_t{3} * 24;  // as placed, as sorted, and the sort's scratch space
    QUERN_RETURN_IF_ERROR(CheckMemory(num_rows * (source_bytes + 8 + bytes_per_row + kEntryBytes)));
    QUERN_ASSIGN_OR_RETURN(rows, JobRows::Make(maker, NumbersInNoOrder(0, num_rows, num_rows)));
    return absl::OkStatus();
  }

  // A sort that is ready to be finalised.
  absl::StatusOr<std::shared_ptr<RowSort>> Begin(const std::shared_ptr<const Kernel>& kernel) const {
    std::shared_ptr<RowSort> sort = MakeRowSort(kernel, std::make_shared<MemoryBudget>());
    for (uint64_t at = 0; at < num_rows; at += kBatchRows) {
      BatchView view = rows->View(at, std::min(kBatchRows, num_rows - at));
      view.owner = rows;
      QUERN_RETURN_IF_ERROR(sort->Append(view));
    }
    return sort;
  }
};

// ---- gathering -----------------------------------------------------------------------------------------------------

class GatherJob final : public TuningJob {
 public:
  explicit GatherJob(const JobKernel& job) : job_(job), slice_(job.data.slice_ms, kReadRows) {}

  absl::Status Begin() {
    QUERN_RETURN_IF_ERROR(input_.Make(job_));
    return Sort();
  }

  absl::StatusOr<double> Run(const PrefetchSetting& setting) override {
    const uint64_t wanted = std::min(slice_.Rows(), std::max(input_.num_rows, kFewestReadRows));
    double seconds = 0;
    uint64_t rows = 0;
    while (rows < wanted) {
      if (num_read_ >= input_.num_rows) QUERN_RETURN_IF_ERROR(Sort());
      sort_->SetPrefetch(job_.cell.loop, setting);
      const uint64_t share = (wanted - rows) / job_.cell.threads + 1;
      QUERN_RETURN_IF_ERROR(OnThreads(job_.cell.threads, [&](uint32_t t) { return readers_[t]->Read(share); }));
      for (const auto& reader : readers_) {
        seconds += reader->seconds;
        rows += reader->rows;
        num_read_ += reader->rows;
      }
    }
    const double ns = seconds / static_cast<double>(rows) * 1e9;
    slice_.Saw(ns);
    return ns;
  }

  PrefetchSetting Default() const override { return job_.Planned(table_bytes()); }
  uint64_t table_bytes() const override { return input_.num_rows * input_.bytes_per_row; }

 private:
  // The state of one thread.
  struct Reader {
    SortReader reader;
    OutputBatch out;
    uint64_t rows = 0;
    double seconds = 0;

    Reader(const std::shared_ptr<RowSort>& sort, const SortSpec& spec)
        : reader(sort), out(SortOutputTypes(spec), kReadRows, std::make_shared<MemoryBudget>()) {}

    absl::Status Read(uint64_t wanted) {
      rows = 0;
      const double start = NowSeconds();
      for (bool more = true; more && rows < wanted; rows += out.num_rows()) {
        QUERN_ASSIGN_OR_RETURN(more, reader.Next(&out));
      }
      seconds = NowSeconds() - start;
      return absl::OkStatus();
    }
  };

  absl::Status Sort() {
    readers_.clear();
    sort_ = nullptr;
    QUERN_ASSIGN_OR_RETURN(sort_, input_.Begin(job_.kernel));
    QUERN_RETURN_IF_ERROR(sort_->Finalise());
    for (uint32_t t = 0; t < job_.cell.threads; ++t)
      readers_.push_back(std::make_unique<Reader>(sort_, std::get<SortSpec>(job_.plan.spec)));
    const uint64_t limit = std::get<SortSpec>(job_.plan.spec).limit;
    num_read_ = limit == 0 ? 0 : input_.num_rows - std::min(input_.num_rows, limit);
    return absl::OkStatus();
  }

  const JobKernel job_;
  SliceSize slice_;
  SortInputRows input_;
  std::shared_ptr<RowSort> sort_;
  std::vector<std::unique_ptr<Reader>> readers_;
  uint64_t num_read_ = 0;  // in the present sort
};

// ---- collisions ----------------------------------------------------------------------------------------------------

class CollisionJob final : public TuningJob {
 public:
  explicit CollisionJob(const JobKernel& job) : job_(job), slice_(job.data.slice_ms, 1) {}

  absl::Status Begin() { return input_.Make(job_); }

  absl::StatusOr<double> Run(const PrefetchSetting& setting) override {
    const std::shared_ptr<const Kernel> kernel = job_.With(setting);
    const uint64_t wanted = slice_.Rows();
    double seconds = 0;
    uint64_t rows = 0;
    do {
      QUERN_ASSIGN_OR_RETURN(const std::shared_ptr<RowSort> sort, input_.Begin(kernel));
      std::vector<double> each(job_.cell.threads);
      QUERN_RETURN_IF_ERROR(OnThreads(job_.cell.threads, [&](uint32_t t) {
        const double start = NowSeconds();
        const absl::Status status = job_.cell.threads > 1 ? sort->Finalise() : sort->Finalise();
        each[t] = NowSeconds() - start;
        return status;
      }));
      for (const double s : each) seconds += s;
      rows += input_.num_rows;
    } while (rows < wanted);
    const double ns = seconds / static_cast<double>(rows) * 1e9;
    slice_.Saw(ns);
    return ns;
  }

  PrefetchSetting Default() const override { return job_.Planned(table_bytes()); }
  uint64_t table_bytes() const override { return input_.num_rows * input_.bytes_per_row; }

 private:
  const JobKernel job_;
  SliceSize slice_;
  SortInputRows input_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TuningJob>> MakeGatherJob(const JobKernel& kernel) {
  auto job = std::make_unique<GatherJob>(kernel);
  QUERN_RETURN_IF_ERROR(job->Begin());
  return std::unique_ptr<TuningJob>(std::move(job));
}

absl::StatusOr<std::unique_ptr<TuningJob>> MakeCollisionJob(const JobKernel& kernel) {
  auto job = std::make_unique<CollisionJob>(kernel);
  QUERN_RETURN_IF_ERROR(job->Begin());
  return std::unique_ptr<TuningJob>(std::move(job));
}

}  // namespace quern::tuning
