// SPDX-License-Identifier: Apache-2.0
// Inputs of jobs behind a pipeline: batches of the host's pass through filters, maps and probes before they reach the
// job, or a function of the host (runtime/pipeline/pipeline.h). The input belongs to one thread, as every input, and so
// do its steps; the jobs of the steps are shared.
//
// A join whose build rows come out on their own, or which has written rows, must know when it has been probed with
// everything, and its job counts the inputs that have begun to probe it:
//
//     input 1   append ............ finish               1, 2, then 1 input with rows: QUERN_PORT_UNMATCHED is refused
//     input 2          append .............. finish      0: its outputs may be made, and no more rows may be appended
#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <utility>

#include "hosts/c/host_batch.h"
#include "hosts/c/host_rows.h"
#include "hosts/c/job.h"
#include "runtime/base/messages.h"
#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "runtime/join/hash_join.h"
#include "runtime/pipeline/pipeline.h"
#include "runtime/spec/spec_text.h"

namespace quern::c_abi {
namespace {

// Members from on_rows on may be missing.
constexpr size_t kPipelineOptionsSize = offsetof(quern_pipeline_options, on_rows);
constexpr uint64_t kMaxPieceRows = 65536;

// Appends what comes out of the steps to the job's own input. A piece of rows that was refused memory comes once more,
// and so do the batches that it becomes; those that are in the job already are left out.
class EndOfPipeline final : public PipelineEnd {
 public:
  EndOfPipeline(JobInput* input, BatchTypes types) : input_(input), types_(std::move(types)) {}

  absl::Status Append(const BatchView& batch) override {
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

// A step's join that has rows for QUERN_PORT_UNMATCHED.
struct FlaggedJoin {
  std::shared_ptr<Job> job;
  size_t step;
};

// What the rows end in: an input of a job, or the host.
struct End {
  std::unique_ptr<JobInput> input;
  const HostRows* host = nullptr;  // the same
  std::shared_ptr<Job> job;        // whose memory pays, and whose flag stops the pipeline; the host's: of the last step
  Kept kept = Kept::kNothing;
};

class PipelineJobInput final : public JobInput {
 public:
  PipelineJobInput(End end, std::shared_ptr<const Pipeline> pipeline, std::vector<FlaggedJoin> probed,
                   uint64_t piece_rows)
      : columns{QUERN_PORT_ROWS, "pipeline", {pipeline->source(), {}}, true},
        input_(std::move(end.input)),
        host_(end.host),
        probed_(std::move(probed)),
        next_source_row_(end.host != nullptr ? next_row_for_host_ : end.job->next_source_row),
        end_(input_.get(), {pipeline->sink().keys, pipeline->sink().payload}),
        way_(std::move(pipeline), end.job->budget, &end_, piece_rows) {}
  ~PipelineJobInput() override { EndProbing(); }

  absl::Status CheckOpen(const char* call) const override { return input_->CheckOpen(call); }
  absl::Status Append(const BatchView& batch, uint64_t* taken_rows) override {
    *taken_rows = 0;
    if (batch.num_rows != 0 && !probes_) QUERN_RETURN_IF_ERROR(BeginProbing());
    const absl::Status status = HasStopped() ? absl::OkStatus() : Send(batch, taken_rows);
    if (HasStopped()) {
      *taken_rows = batch.num_rows;
      return absl::OkStatus();
    }
    if (!status.ok() && !absl::IsResourceExhausted(status) && has_part()) input_->LoseRows();
    return status;
  }
  bool needs_rest() const override { return has_part() || input_->needs_rest(); }
  absl::Status Finish() override {
    QUERN_RETURN_IF_ERROR(input_->Finish());
    EndProbing();
    return absl::OkStatus();
  }
  void LoseRows() override { input_->LoseRows(); }
  uint64_t num_groups() const override { return input_->num_groups(); }
  bool ends_in_host() const override { return host_ != nullptr; }

  PortColumns columns;

 private:
  // Whether a part of the next piece is in the job, or has been written by a join.
  bool has_part() const { return end_.has_part() || way_.has_written_part(); }
  bool HasStopped() const { return host_ != nullptr && host_->has_stopped(); }

  // The job counts the rows that arrive, of which a filter leaves out some, and the host counts none. So rows without
  // ids get theirs here: the numbers of the source's rows, which those that a refused append has left over keep.
  absl::Status Send(const BatchView& batch, uint64_t* taken_rows) {
    if (batch.first_row_id != kCountedRowIds || batch.selection != nullptr) return way_.Append(batch, taken_rows);
    const bool is_rest = rest_.num_rows != 0 && rest_.num_rows == batch.num_rows;
    BatchView counted = batch;
    counted.first_row_id = is_rest ? rest_.first_row_id : next_source_row_.fetch_add(batch.num_rows);
    rest_ = {counted.first_row_id, batch.num_rows};
    const absl::Status status = way_.Append(counted, taken_rows);
    rest_ = {counted.first_row_id + *taken_rows, batch.num_rows - *taken_rows};
    return status;
  }

  absl::Status BeginProbing() {
    for (const FlaggedJoin& join : probed_) ++join.job->num_open_pipelines;
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
  void EndProbing() {
    for (const FlaggedJoin& join : probed_) join.job->num_open_pipelines -= probes_ ? 1 : 0;
    probes_ = false;
  }

  const std::unique_ptr<JobInput> input_;
  const HostRows* const host_;
  const std::vector<FlaggedJoin> probed_;
  bool probes_ = false;  // rows have come, and the input has not finished
  struct Rest {
    uint64_t first_row_id, num_rows;
  };
  Rest rest_ = {};  // of a batch without ids, after a refusal
  std::atomic<uint64_t> next_row_for_host_{0};
  std::atomic<uint64_t>& next_source_row_;  // that one, or the job's, over all its inputs
  EndOfPipeline end_;
  PipelineInput way_;
};

absl::StatusOr<std::vector<ColumnType>> SourceTypes(const char* columns) {
  std::vector<ColumnType> types;
  if (columns == nullptr || *columns == 0) return types;
  for (const std::string_view text : Split(columns, ',')) {
    QUERN_ASSIGN_OR_RETURN(const Item item, ParseItem(text, Role::kPayload));
    if (item.key.type.id == TypeId::kRowId) return Wrong("type of a pipeline's column", text, "types of columns");
    types.push_back(item.key.type);
  }
  return types;
}

absl::StatusOr<std::vector<uint32_t>> Numbers(const uint32_t* numbers, size_t count, const char* name) {
  if (count != 0 && numbers == nullptr) return MissingArgument(name);
  return std::vector<uint32_t>(numbers, numbers + count);
}

absl::StatusOr<PipelineStep> StepOf(const quern_pipeline_step& given, size_t i) {
  if (given.job == nullptr) return MissingArgument("steps[].job");
  const std::shared_ptr<Job>& job = given.job->job;
  PipelineStep step;
  QUERN_ASSIGN_OR_RETURN(step.columns.keys, Numbers(given.keys, given.num_keys, "steps[].keys"));
  QUERN_ASSIGN_OR_RETURN(step.columns.payload, Numbers(given.payload, given.num_payload, "steps[].payload"));
  step.host_context = given.context;
  if (job->filter() != nullptr) {
    step.op = std::shared_ptr<const RowFilter>(job, job->filter());
  } else if (job->mapper() != nullptr) {
    step.op = std::shared_ptr<const RowMapper>(job, job->mapper());
  } else if (job->hash_join() != nullptr) {
    if (!job->hash_join()->is_finalised()) {
      return absl::FailedPreconditionError("step " + std::to_string(i) +
                                           ": the join still has work; accepted: a join whose work is done");
    }
    step.op = std::shared_ptr<const HashJoin>(job, job->hash_join());
  } else {
    return InvalidArgument("step " + std::to_string(i) + ": a job of " + job->name + "; accepted: filter, map, join");
  }
  return step;
}

bool IsReduction(const quern_pipeline_options& options, size_t i) {
  return options.reductions != nullptr && options.reductions[i];
}

std::vector<FlaggedJoin> FlaggedJoins(const quern_pipeline_options& options) {
  std::vector<FlaggedJoin> joins;
  for (size_t i = 0; i < options.num_steps; ++i) {
    const std::shared_ptr<Job>& job = options.steps[i].job->job;
    const HashJoin* const join = job->hash_join();
    if (join == nullptr || IsReduction(options, i)) continue;
    if (join->has_spilled() || RowOf(join->descriptor().spec().kind).flags_matched_rows()) joins.push_back({job, i});
  }
  return joins;
}

// port, spec: of the job that takes the rows; null where the host does.
absl::StatusOr<std::shared_ptr<const Pipeline>> PipelineOf(const quern_pipeline_options& options,
                                                           const PortColumns* port, const KernelSpec* spec,
                                                           bool keeps_strings) {
  QUERN_ASSIGN_OR_RETURN(std::vector<ColumnType> source, SourceTypes(options.columns));
  if (options.num_steps != 0 && options.steps == nullptr) return MissingArgument("steps");
  std::vector<PipelineStep> steps;
  for (size_t i = 0; i < options.num_steps; ++i) {
    QUERN_ASSIGN_OR_RETURN(PipelineStep step, StepOf(options.steps[i], i));
    step.is_reduction = IsReduction(options, i);
    if (step.is_reduction && !std::holds_alternative<std::shared_ptr<const HashJoin>>(step.op)) {
      return InvalidArgument("step " + std::to_string(i) + ": a reduction by a job of " +
                             options.steps[i].job->job->name + "; accepted: a join");
    }
    steps.push_back(std::move(step));
  }
  PipelineSink sink;
  sink.takes_all_types = port == nullptr;
  if (port != nullptr) {
    sink.keys = port->types.keys;
    sink.payload = port->types.payload;
  }
  sink.keeps_strings = keeps_strings;
  const auto* const aggregation = spec == nullptr ? nullptr : std::get_if<AggregationSpec>(spec);
  const bool takes_states = port != nullptr && port->port == QUERN_PORT_STATES;
  if (aggregation != nullptr && !takes_states) sink.values = aggregation->columns;
  sink.reads_row_ids = spec != nullptr && ReadsRowIds(*spec);
  QUERN_ASSIGN_OR_RETURN(sink.columns.keys, Numbers(options.keys, options.num_keys, "keys"));
  QUERN_ASSIGN_OR_RETURN(sink.columns.payload, Numbers(options.payload, options.num_payload, "payload"));
  return Pipeline::Make(std::move(source), std::move(steps), std::move(sink));
}

absl::StatusOr<End> EndOf(const std::shared_ptr<Job>& job, quern_port port) {
  QUERN_RETURN_IF_ERROR(job->stop->Check());
  End end;
  QUERN_ASSIGN_OR_RETURN(end.input, job->NewInput(port, {}));
  if (job->FindPort(port) == nullptr) return job->NoSuchPort(port, "a port that takes batches of rows");
  end.job = job;
  end.kept = job->kept(port);
  if (end.kept == Kept::kBatch) {
    return InvalidArgument("job that takes the rows of a pipeline: " + std::string(job->name) +
                           ", which reads batches in place until their rows have come out; accepted: join, "
                           "aggregation, sort, set operation");
  }
  return end;
}

absl::StatusOr<End> EndInHost(const quern_pipeline_options& options) {
  if (options.on_rows == nullptr) return MissingArgument("job, without on_rows");
  if (options.num_steps == 0) return Wrong("num_steps of a pipeline into the host", "0", "1 or more");
  if (options.steps == nullptr) return MissingArgument("steps");
  const quern_job* const last = options.steps[options.num_steps - 1].job;
  if (last == nullptr) return MissingArgument("steps[].job");
  QUERN_RETURN_IF_ERROR(last->job->stop->Check());
  auto host = std::make_unique<HostRows>(options.on_rows, options.context);
  End end;
  end.host = host.get();
  end.input = std::move(host);
  end.job = last->job;
  return end;
}

absl::Status Create(quern_job* job, const quern_port& given_port, const quern_pipeline_options* given,
                    quern_input** input) {
  if (input == nullptr) return MissingArgument("input");
  *input = nullptr;
  if (given == nullptr) return MissingArgument("options");
  QUERN_ASSIGN_OR_RETURN(const quern_pipeline_options options, ReadOptions(given, kPipelineOptionsSize));
  if (options.piece_rows > kMaxPieceRows)
    return Wrong("piece_rows out of range", std::to_string(options.piece_rows),
                 "0 to " + std::to_string(kMaxPieceRows));
  if (job != nullptr && options.on_rows != nullptr)
    return Wrong("ends of a pipeline", "a job and on_rows", "one of them");
  End end;
  const PortColumns* columns = nullptr;
  if (job != nullptr) {
    QUERN_ASSIGN_OR_RETURN(const quern_port port, PortOf(given_port));
    QUERN_ASSIGN_OR_RETURN(end, EndOf(job->job, port));
    columns = job->job->FindPort(port);
  } else {
    QUERN_ASSIGN_OR_RETURN(end, EndInHost(options));
  }
  const std::shared_ptr<Job> of = end.job;
  const Kept kept = end.kept;
  QUERN_ASSIGN_OR_RETURN(
      std::shared_ptr<const Pipeline> pipeline,
      PipelineOf(options, columns, job != nullptr ? &of->kernel->plan.spec : nullptr, kept == Kept::kStrings));
  auto made =
      std::make_unique<PipelineJobInput>(std::move(end), std::move(pipeline), FlaggedJoins(options),
                                         options.piece_rows == 0 ? thresholds::kPipelineRows : options.piece_rows);
  PortColumns* const source = &made->columns;
  *input = new quern_input{.job = of,
                           .port = source,
                           .kept = kept,
                           .copies_strings = options.copy_bytes && kept == Kept::kStrings,
                           .string_pages = StringPagesOf(*of),
                           .input = std::move(made)};
  return absl::OkStatus();
}

}  // namespace
}  // namespace quern::c_abi

using namespace quern;  // NOLINT: the function below is a C symbol

extern "C" quern_status quern_pipeline_input_create(quern_job* job, quern_port port,
                                                    const quern_pipeline_options* options, quern_input** input,
                                                    quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::Create(job, port, options, input); });
}
