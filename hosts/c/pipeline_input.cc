// SPDX-License-Identifier: Apache-2.0
// Pipelines whose steps are jobs of the host: quern_pipeline_input_create. Batches pass through them before they reach
// a job, or a function of the host (jobs/pipeline_rows.h).
#include <string>
#include <utility>

#include "codegen/machine/profile.h"
#include "codegen/plan/pipeline_plan.h"
#include "hosts/c/host_rows.h"
#include "hosts/c/job.h"
#include "hosts/c/jobs/pipeline_rows.h"
#include "runtime/base/messages.h"
#include "runtime/base/status.h"
#include "runtime/join/hash_join.h"
#include "runtime/pipeline/added_columns.h"
#include "runtime/pipeline/pipeline.h"
#include "runtime/pipeline/pipeline_spec.h"

namespace quern::c_abi {
namespace {

// Members from on_rows on may be missing.
constexpr size_t kPipelineOptionsSize = offsetof(quern_pipeline_options, on_rows);

absl::StatusOr<std::vector<uint32_t>> Numbers(const uint32_t* numbers, size_t count, const char* name) {
  if (count != 0 && numbers == nullptr) return MissingArgument(name);
  return std::vector<uint32_t>(numbers, numbers + count);
}

absl::StatusOr<PipelineStep> StepOf(const quern_pipeline_step& given, size_t i) {
  if (given.job == nullptr) return MissingArgument("steps[].job");
  PipelineStep step;
  QUERN_ASSIGN_OR_RETURN(step.columns.keys, Numbers(given.keys, given.num_keys, "steps[].keys"));
  QUERN_ASSIGN_OR_RETURN(step.columns.payload, Numbers(given.payload, given.num_payload, "steps[].payload"));
  step.host_context = given.context;
  QUERN_ASSIGN_OR_RETURN(step.op, StepOpOf(given.job->job, i));
  return step;
}

bool IsReduction(const quern_pipeline_options& options, size_t i) {
  return options.reductions != nullptr && options.reductions[i];
}

std::vector<FlaggedJoin> FlaggedJoinsOf(const quern_pipeline_options& options) {
  std::vector<FlaggedJoin> joins;
  for (size_t i = 0; i < options.num_steps; ++i)
    if (!IsReduction(options, i)) AddIfFlagged(options.steps[i].job->job, i, &joins);
  return joins;
}

// port, spec: of the job that takes the rows; null where the host does.
absl::StatusOr<std::shared_ptr<const Pipeline>> PipelineOf(const quern_pipeline_options& options,
                                                           const PortColumns* port, const KernelSpec* spec,
                                                           bool keeps_strings) {
  QUERN_ASSIGN_OR_RETURN(const std::vector<PipelineColumn> source,
                         ParsePipelineColumns(options.columns == nullptr ? "" : options.columns));
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
  if (aggregation != nullptr && !takes_states) {
    sink.values = aggregation->columns;
    sink.only_added = AddedColumnsOf(*aggregation);
  }
  sink.reads_row_ids = spec != nullptr && EndTypesOf(*spec).reads_row_ids;
  QUERN_ASSIGN_OR_RETURN(sink.columns.keys, Numbers(options.keys, options.num_keys, "keys"));
  QUERN_ASSIGN_OR_RETURN(sink.columns.payload, Numbers(options.payload, options.num_payload, "payload"));
  return Pipeline::Make(source, std::move(steps), std::move(sink));
}

absl::StatusOr<RowsEnd> EndOf(const std::shared_ptr<Job>& job, quern_port port) {
  QUERN_RETURN_IF_ERROR(job->stop->Check());
  RowsEnd end;
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

absl::StatusOr<RowsEnd> EndInHost(const quern_pipeline_options& options) {
  if (options.on_rows == nullptr) return MissingArgument("job, without on_rows");
  if (options.num_steps == 0) return Wrong("num_steps of a pipeline into the host", "0", "1 or more");
  if (options.steps == nullptr) return MissingArgument("steps");
  const quern_job* const last = options.steps[options.num_steps - 1].job;
  if (last == nullptr) return MissingArgument("steps[].job");
  QUERN_RETURN_IF_ERROR(last->job->stop->Check());
  auto host = std::make_unique<HostRows>(options.on_rows, options.context);
  RowsEnd end;
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
  if (options.piece_rows > kMostPieceRows)
    return Wrong("piece_rows out of range", std::to_string(options.piece_rows),
                 "0 to " + std::to_string(kMostPieceRows));
  if (job != nullptr && options.on_rows != nullptr)
    return Wrong("ends of a pipeline", "a job and on_rows", "one of them");
  RowsEnd end;
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
      PipelineOf(options, columns, job != nullptr ? of->SpecOfRows() : nullptr, kept == Kept::kStrings));
  const uint64_t piece_rows = options.piece_rows == 0 ? ChoosePieceRows(ProfileOfProcess().get()) : options.piece_rows;
  auto made =
      std::make_unique<PipelineJobInput>(std::move(end), std::move(pipeline), FlaggedJoinsOf(options), piece_rows);
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
