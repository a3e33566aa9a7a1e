// SPDX-License-Identifier: Apache-2.0
// Pipelines as jobs, by their spec (runtime/pipeline/pipeline_spec.h):
//
//     ROWS: columns of the source ─> filter ─> map ─> probe a table ─> the job of the end, which has all other ports
//
// A join of which rows are left when all probing is done, because its kind returns build rows or because it has written
// rows, passes them through the steps behind it. That is the first part of the job's work, join by join:
//
//     inputs    orders ─ probe A ─ probe B ─ aggregate
//     work      what A has left ─ probe B ─ aggregate          then what B has left ─ aggregate, then the aggregation's
//
// Internal.
#ifndef QUERN_HOSTS_C_JOBS_PIPELINE_JOB_H_
#define QUERN_HOSTS_C_JOBS_PIPELINE_JOB_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/inspect/pipeline_capture.h"
#include "hosts/c/job.h"
#include "hosts/c/jobs/pipeline_rows.h"

namespace quern::c_abi {

class PipelineJob final : public Job {
 public:
  // Where emitted rows go.
  struct HostEnd {
    decltype(quern_job_options::on_rows) on_rows = nullptr;
    void* context = nullptr;
  };

  // steps: of the plan. of: the job of the end; where rows are emitted, any job with the options of this one.
  PipelineJob(std::shared_ptr<const PipelinePlan> plan, std::vector<std::shared_ptr<Job>> steps,
              const std::shared_ptr<Job>& of, HostEnd host);

  absl::StatusOr<std::unique_ptr<JobInput>> NewInput(quern_port port, const InputOptions& options) override;
  absl::StatusOr<std::unique_ptr<JobOutput>> NewOutput(quern_port port, const OutputOptions& options) override;
  absl::StatusOr<WorkState> Work() override;
  absl::Status Finalise() override;
  absl::Status Spill(const quern_spill_options& options, void* host) override;

  Kept kept(quern_port port) const override;
  absl::Status CheckBindings() const override;
  absl::Status BindDependentPorts() override;
  absl::StatusOr<std::vector<ResultField>> ResultFields(quern_port port) const override;
  bool reads_format(quern_port port) const override { return HasEnd(port) && end_->reads_format(port); }
  bool writes_format(quern_port port) const override { return end_ != nullptr && end_->writes_format(port); }
  void FillStats(quern_job_stats* stats) const override;
  void ExpectRows(uint64_t num_rows, uint32_t threads) const override;
  const SpillContext* spill() const override { return end_ == nullptr ? nullptr : end_->spill(); }
  Counters counters() const override;
  const char* prefetch_class() const override { return end_ == nullptr ? "off" : end_->prefetch_class(); }
  const HashJoin* hash_join() const override { return end_ == nullptr ? nullptr : end_->hash_join(); }
  std::shared_ptr<Job> JobOfTable() override { return end_ == nullptr ? shared_from_this() : end_; }
  const KernelSpec* SpecOfRows() const override { return nullptr; }
  bool TakesBatches(quern_port port) const override { return end_ != nullptr && end_->TakesBatches(port); }
  bool HasPartitions(quern_port port) const override { return HasEnd(port) && end_->HasPartitions(port); }
  PortColumns* FindPort(quern_port port) override;

  // Null where rows are emitted.
  const std::shared_ptr<Job>& end() const { return end_; }
  // The job of a step, or of the end behind them; null for an end that emits.
  std::shared_ptr<Job> JobOfStep(size_t i) const { return i == steps_.size() ? end_ : steps_[i]; }
  size_t num_steps() const { return steps_.size() + (end_ == nullptr ? 0 : 1); }

  // One piece of the work of sending what joins have left. *Threads*: any.
  absl::StatusOr<WorkState> WorkOnLeft();
  // All of it, together with other threads that are here.
  absl::Status SendLeft();
  // *Errors*: FailedPrecondition while inputs have rows.
  absl::Status CheckInputs() const;

 private:
  // What the function of the host is called with; `context` is the host's.
  struct HostCall {
    PipelineJob* job;
    void* context;
  };
  static bool CallHost(void* call, const quern_batch* rows);
  HostCall* HostCallOf(void* context);

  // What one thread sends of what a join has left.
  struct Left {
    std::unique_ptr<quern_output> output;
    std::unique_ptr<quern_input> input;
    bool has_rows = false;           // of the output's last result, which were refused memory
    std::vector<uint32_t> all_rows;  // 0, 1, ..: a selection, where something behind reads the ids of rows; else empty
  };

  // The port of the end by which rows enter.
  quern_port end_port() const;
  bool HasEnd(quern_port port) const { return end_ != nullptr && port != QUERN_PORT_ROWS; }
  absl::StatusOr<std::unique_ptr<PipelineJobInput>> InputFrom(size_t first_step, void* context);
  absl::StatusOr<RowsEnd> NewEnd(void* context);
  absl::Status FindFlagged();
  absl::StatusOr<std::unique_ptr<Left>> NewLeft(const FlaggedJoin& join);
  // Sends one result; returns whether there are more.
  absl::StatusOr<bool> SendOne(Left* left) const;
  absl::StatusOr<std::vector<BoundField>> FieldsBehind(size_t step, const std::vector<BoundField>& fields) const;
  absl::StatusOr<PortBinding> EndBinding() const;

  const std::shared_ptr<const PipelinePlan> plan_;
  const std::unique_ptr<PipelineCapture> capture_;  // null: the process does not capture
  const std::vector<std::shared_ptr<Job>> steps_;
  const std::shared_ptr<Job> of_;   // as given; inputs of the job's own, which must not keep it, name this one
  const std::shared_ptr<Job> end_;  // the same, or null
  const HostEnd host_;
  std::atomic<int64_t> num_open_inputs_{0};
  std::atomic<bool> has_stopped_{false};  // the host wants no more rows
  std::mutex host_mutex_;
  std::map<void*, HostCall> host_calls_;  // by context

  std::mutex left_mutex_;  // of what follows
  std::condition_variable left_changed_;
  std::optional<std::vector<FlaggedJoin>> flagged_;  // whose rows are sent in this order
  size_t current_ = 0;                               // of these: the one whose rows are being sent
  bool is_exhausted_ = false;                        // it has no more rows for new outputs
  uint32_t num_working_ = 0;                         // threads that send
  std::vector<std::unique_ptr<Left>> idle_;
  bool has_failed_ = false;  // rows are lost

  std::mutex binding_mutex_;
};

}  // namespace quern::c_abi

#endif  // QUERN_HOSTS_C_JOBS_PIPELINE_JOB_H_
