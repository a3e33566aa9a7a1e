// SPDX-License-Identifier: Apache-2.0
// Inputs behind a pipeline: batches of the host's pass through filters, maps and probes before they reach a job, or a
// function of the host (runtime/pipeline/pipeline.h). The input belongs to one thread, as every input, and so do its
// steps; the jobs of the steps are shared. Internal.
//
// A join whose build rows come out on their own, or which has written rows, must know when it has been probed with
// everything, and its job counts the inputs that have begun to probe it:
//
//     input 1   append ............ finish               1, 2, then 1 input with rows: QUERN_PORT_UNMATCHED is refused
//     input 2          append .............. finish      0: its outputs may be made, and no more rows may be appended
#ifndef QUERN_HOSTS_C_JOBS_PIPELINE_ROWS_H_
#define QUERN_HOSTS_C_JOBS_PIPELINE_ROWS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/inspect/pipeline_capture.h"
#include "hosts/c/host_rows.h"
#include "hosts/c/job.h"
#include "runtime/pipeline/pipeline.h"

namespace quern::c_abi {

// The operator of a job, as step number i. *Ownership*: it keeps the job. *Errors*: FailedPrecondition for a join that
// still has work; InvalidArgument for a job of another operator than filter, map and join.
absl::StatusOr<decltype(PipelineStep::op)> StepOpOf(const std::shared_ptr<Job>& job, size_t i);

// A step's join that has rows for QUERN_PORT_UNMATCHED.
struct FlaggedJoin {
  std::shared_ptr<Job> job;
  size_t step;
};
// job: of step number i, which is no reduction; its work is done.
void AddIfFlagged(const std::shared_ptr<Job>& job, size_t i, std::vector<FlaggedJoin>* joins);

// What the rows end in: an input of a job, or the host.
struct RowsEnd {
  std::unique_ptr<JobInput> input;
  const HostRows* host = nullptr;  // the same
  std::shared_ptr<Job> job;        // whose memory pays, and whose flag stops the pipeline; the host's: of the last step
  Kept kept = Kept::kNothing;
};

// Appends what comes out of the steps to the job's own input. A piece of rows that was refused memory comes once more,
// and so do the batches that it becomes; those that are in the job already are left out.
class EndOfPipeline final : public PipelineEnd {
 public:
  EndOfPipeline(JobInput* input, BatchTypes types) : input_(input), types_(std::move(types)) {}

  absl::Status Append(const BatchView& batch) override;
  void BeginPiece() override { next_ = 0; }
  void EndPiece() override { num_done_ = 0; }

  // Whether a part of the piece is in the job.
  bool has_part() const { return num_done_ != 0 || taken_rows_ != 0; }

 private:
  JobInput* const input_;
  const BatchTypes types_;
  uint64_t next_ = 0;        // number of the next batch of the piece
  uint64_t num_done_ = 0;    // batches of the piece that are in the job
  uint64_t taken_rows_ = 0;  // rows of the batch behind them that are, too
};

class PipelineJobInput final : public JobInput {
 public:
  // num_open: null, or counts the inputs that have rows and are neither finished nor destroyed. capture: null, or sees
  // the rows.
  PipelineJobInput(RowsEnd end, std::shared_ptr<const Pipeline> pipeline, std::vector<FlaggedJoin> probed,
                   uint64_t piece_rows, std::atomic<int64_t>* num_open = nullptr, PipelineCapture* capture = nullptr);
  ~PipelineJobInput() override { EndProbing(); }

  absl::Status CheckOpen(const char* call) const override { return input_->CheckOpen(call); }
  absl::Status Append(const BatchView& batch, uint64_t* taken_rows) override;
  bool needs_rest() const override { return has_part() || input_->needs_rest(); }
  absl::Status Finish() override;
  void LoseRows() override { input_->LoseRows(); }
  uint64_t num_groups() const override { return input_->num_groups(); }
  bool ends_in_host() const override { return host_ != nullptr; }

  PortColumns columns;  // of the source, all of them keys, by position

 private:
  // Whether a part of the next piece is in the job, or has been written by a join.
  bool has_part() const { return end_.has_part() || way_.has_written_part(); }
  bool HasStopped() const { return host_ != nullptr && host_->has_stopped(); }
  absl::Status Send(const BatchView& batch, uint64_t* taken_rows);
  absl::Status SendCaptured(const BatchView& batch, uint64_t* taken_rows);
  absl::Status BeginProbing();
  void EndProbing();

  // Of a batch without ids, after a refusal.
  struct Rest {
    uint64_t first_row_id, num_rows;
  };

  const std::shared_ptr<Job> job_;
  const std::unique_ptr<JobInput> input_;
  const HostRows* const host_;
  const std::vector<FlaggedJoin> probed_;
  std::atomic<int64_t>* const num_open_;
  PipelineCapture* const capture_;
  bool probes_ = false;  // rows have come, and the input has not finished
  Rest rest_ = {};
  std::atomic<uint64_t> next_row_for_host_{0};
  std::atomic<uint64_t>& next_source_row_;  // that one, or the job's, over all its inputs
  EndOfPipeline end_;
  PipelineInput way_;
};

}  // namespace quern::c_abi

#endif  // QUERN_HOSTS_C_JOBS_PIPELINE_ROWS_H_
