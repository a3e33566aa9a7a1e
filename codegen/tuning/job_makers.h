// SPDX-License-Identifier: Apache-2.0
// Declarations that the jobs of all operators share.
#ifndef QUERN_CODEGEN_TUNING_JOB_MAKERS_H_
#define QUERN_CODEGEN_TUNING_JOB_MAKERS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/compiler.h"
#include "codegen/operators.h"
#include "codegen/tuning/job.h"
#include "codegen/tuning/job_data.h"

namespace quern::tuning {

// Rows that an operator takes at a time. A pipeline takes batches of the size that engines pass on, so that its loops
// take turns in the caches.
constexpr uint64_t kBatchRows = uint64_t{1} << 14;
constexpr uint64_t kPipelineBatchRows = uint64_t{1} << 11;
// Rows that a job looks up in a table, over and over: more than a last-level cache has lines.
constexpr uint64_t kLeastPoolRows = uint64_t{1} << 16;
constexpr uint64_t kMostPoolRows = uint64_t{1} << 23;

// A kernel and the cell and data that it is measured for.
struct JobKernel {
  TuningCell cell;
  TuningData data;
  std::shared_ptr<const Kernel> kernel;
  KernelPlan plan;  // untuned

  // Rows that make a table of the cell's size class if each takes `bytes_per_row` of it.
  uint64_t RowsFor(double bytes_per_row) const;
  // The kernel under a plan that has this setting at all sizes.
  std::shared_ptr<const Kernel> With(const PrefetchSetting& setting) const;
  // The plan's setting for a table of so many bytes.
  PrefetchSetting Planned(uint64_t table_bytes) const;
  uint64_t batch_rows() const { return cell.pipeline > 1 ? kPipelineBatchRows : kBatchRows; }
  uint32_t text_bytes() const { return data.key_bytes == 0 ? 16 : data.key_bytes; }
};

// The number of rows of a run: about slice_ms worth, judged by the last run.
class SliceSize {
 public:
  SliceSize(double slice_ms, uint64_t batch_rows) : slice_ns_(slice_ms * 1e6), batch_rows_(batch_rows) {}
  // Whole batches.
  uint64_t Rows() const;
  void Saw(double ns_per_row) { ns_per_row_ = ns_per_row; }

 private:
  double slice_ns_;
  uint64_t batch_rows_;
  double ns_per_row_ = 20;  // until something has been measured
};

absl::StatusOr<std::unique_ptr<TuningJob>> MakeProbeJob(const JobKernel& kernel);
absl::StatusOr<std::unique_ptr<TuningJob>> MakeBuildJob(const JobKernel& kernel);
// A finished table of so many rows, whose keys are the numbers from 0 on, each once, and whose payload are these, too.
// *Errors*: those of the join, and of JobRows::Make.
absl::StatusOr<std::shared_ptr<const HashJoin>> MakeNumberedTable(const std::shared_ptr<const Kernel>& kernel,
                                                                  uint64_t num_rows);
absl::StatusOr<std::unique_ptr<TuningJob>> MakeUpdateJob(const JobKernel& kernel);
absl::StatusOr<std::unique_ptr<TuningJob>> MakeGatherJob(const JobKernel& kernel);
absl::StatusOr<std::unique_ptr<TuningJob>> MakeCollisionJob(const JobKernel& kernel);

// The numbers of rows [first, first + rows) of a table of num_keys keys, in pseudorandom order.
std::vector<uint64_t> NumbersInNoOrder(uint64_t first, uint64_t rows, uint64_t num_keys);
// The numbers of probe rows, chosen by the data's hit rate and skew.
std::vector<uint64_t> NumbersOfPool(uint64_t num_keys, const TuningData& data);

}  // namespace quern::tuning

#endif  // QUERN_CODEGEN_TUNING_JOB_MAKERS_H_
