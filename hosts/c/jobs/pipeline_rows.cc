// SPDX-License-Identifier: Apache-2.0
#include "hosts/c/jobs/pipeline_rows.h"

#include <chrono>
#include <string>

#include "hosts/c/host_batch.h"
#include "runtime/base/status.h"
#include "runtime/join/hash_join.h"

namespace quern::c_abi {

absl::StatusOr<decltype(PipelineStep::op)> StepOpOf(const std::shared_ptr<Job>& job, size_t i) {
  if (job->filter() != nullptr) return std::shared_ptr<const RowFilter>(job, job->filter());
  if (job->mapper() != nullptr) return std::shared_ptr<const RowMapper>(job, job->mapper());
  if (job->hash_join() == nullptr)
    return InvalidArgument("step " + std::to_string(i) + ": a job of " + job->name + "; accepted: filter, map, join");
  if (job->hash_join()->is_finalised()) return std::shared_ptr<const HashJoin>(job, job->hash_join());
  return absl::FailedPreconditionError("step " + std::to_string(i) +
                                       ": the join still has work; accepted: a join whose work is done");
}

void AddIfFlagged(const std::shared_ptr<Job>& job, size_t i, std::vector<FlaggedJoin>* joins) {
  const HashJoin* const join = job->hash_join();
  if (join == nullptr) return;
  if (join->has_spilled() || RowOf(join->descriptor().spec().kind).flags_matched_rows())
    joins->push_back({job->JobOfTable(), i});
}

absl::Status EndOfPipeline::Append(const BatchView& batch) {
  if (next_++ < num_done_) return absl::OkStatus();
  const bool is_rest = taken_rows_ != 0;
  uint64_t taken_rows = 0;
  const absl::Status status =
      is_rest ? input_->Append(SliceOf(batch, types_.keys, types_.payload, taken_rows_, batch.num_rows - taken_rows_),
                               &taken_rows)
              : input_->Append(batch, &taken_rows);
  if (status.ok()) {
    ++num_done_;
    taken_rows_ = 0;
  } else {
    taken_rows_ += taken_rows;
  }
  return status;
}

PipelineJobInput::PipelineJobInput(RowsEnd end, std::shared_ptr<const Pipeline> pipeline,
                                   std::vector<FlaggedJoin> probed, uint64_t piece_rows, std::atomic<int64_t>* num_open,
                                   PipelineCapture* capture)
    : columns{QUERN_PORT_ROWS, "pipeline", {pipeline->source(), {}}, true},
      job_(end.job),
      input_(std::move(end.input)),
      host_(end.host),
      probed_(std::move(probed)),
      num_open_(num_open),
      capture_(capture),
      next_source_row_(end.host != nullptr ? next_row_for_host_ : end.job->next_source_row),
      end_(input_.get(), {pipeline->sink().keys, pipeline->sink().payload}),
      way_(std::move(pipeline), end.job->budget, &end_, piece_rows) {}

absl::Status PipelineJobInput::Append(const BatchView& batch, uint64_t* taken_rows) {
  *taken_rows = 0;
  if (batch.num_rows != 0 && !probes_) QUERN_RETURN_IF_ERROR(BeginProbing());
  const absl::Status status = HasStopped() ? absl::OkStatus() : SendCaptured(batch, taken_rows);
  if (HasStopped()) {
    *taken_rows = batch.num_rows;
    return absl::OkStatus();
  }
  if (!status.ok() && !absl::IsResourceExhausted(status) && has_part()) input_->LoseRows();
  return status;
}

absl::Status PipelineJobInput::Finish() {
  QUERN_RETURN_IF_ERROR(input_->Finish());
  EndProbing();
  return absl::OkStatus();
}

// The job counts the rows that arrive, of which a filter leaves out some, and the host counts none. So rows without ids
// get theirs here: the numbers of the source's rows, which those that a refused append has left over keep.
absl::Status PipelineJobInput::Send(const BatchView& batch, uint64_t* taken_rows) {
  if (batch.first_row_id != kCountedRowIds || batch.selection != nullptr) return way_.Append(batch, taken_rows);
  const bool is_rest = rest_.num_rows != 0 && rest_.num_rows == batch.num_rows;
  BatchView counted = batch;
  counted.first_row_id = is_rest ? rest_.first_row_id : next_source_row_.fetch_add(batch.num_rows);
  rest_ = {counted.first_row_id, batch.num_rows};
  const absl::Status status = way_.Append(counted, taken_rows);
  rest_ = {counted.first_row_id + *taken_rows, batch.num_rows - *taken_rows};
  return status;
}

absl::Status PipelineJobInput::SendCaptured(const BatchView& batch, uint64_t* taken_rows) {
  if (capture_ == nullptr) return Send(batch, taken_rows);
  const auto start = std::chrono::steady_clock::now();
  const absl::Status status = Send(batch, taken_rows);
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start);
  capture_->Add(status.ok() ? batch.num_rows : *taken_rows, static_cast<uint64_t>(ns.count()));
  return status;
}

absl::Status PipelineJobInput::BeginProbing() {
  for (const FlaggedJoin& join : probed_) ++join.job->num_open_pipelines;
  if (num_open_ != nullptr) ++*num_open_;
  if (capture_ != nullptr) capture_->AddThread();
  probes_ = true;
  for (const FlaggedJoin& join : probed_) {
    if (join.job->num_unmatched_outputs == 0) continue;
    EndProbing();
    return absl::FailedPreconditionError("append after QUERN_PORT_UNMATCHED: rows of step " +
                                         std::to_string(join.step) +
                                         " have been handed out; accepted: before an output of that port is created");
  }
  return absl::OkStatus();
}

void PipelineJobInput::EndProbing() {
  if (!probes_) return;
  for (const FlaggedJoin& join : probed_) --join.job->num_open_pipelines;
  if (num_open_ != nullptr) --*num_open_;
  probes_ = false;
}

}  // namespace quern::c_abi
