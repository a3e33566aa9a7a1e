// SPDX-License-Identifier: Apache-2.0
// The functions of the ABI about jobs, inputs and outputs. Each checks what a caller can get wrong, then does its work
// inside Boundary. A handle is a small object; whatever it needs lives as long as the handle:
//
//     quern_kernel -> Kernel (machine code) <- Job (table, groups or rows; memory budget) <- quern_job
//                                              Job                                        <- quern_input, ..
//                                              Job                                        <- quern_output, ..
//
// A host may therefore destroy them in any order. Result columns belong to their output.
#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "hosts/c/arrow_fields.h"
#include "hosts/c/format_number.h"
#include "hosts/c/host_batch.h"
#include "hosts/c/job.h"
#include "hosts/c/jobs/pipeline_job.h"
#include "hosts/c/port_arrow.h"
#include "runtime/base/kept_pages.h"
#include "runtime/base/status.h"

namespace quern::c_abi {
namespace {

// The sizes that the structs had in version 2.0, or in the version that brought them.
constexpr size_t kJobOptionsSize = offsetof(quern_job_options, spill),
                 kInputOptionsSize = offsetof(quern_input_options, context),
                 kOutputOptionsSize = sizeof(quern_output_options);

// ---- jobs ----

NewJobResult NewAnyJob(const quern_kernel& kernel, const quern_job_options& options) {
  const CompiledKernel& compiled = kernel.compiled;
  const KernelSpec& kernel_spec = compiled.kernel->plan.spec;
  if (options.num_runs != 0 && !Is<SortSpec>(kernel_spec)) {
    return InvalidArgument("num_runs for a kernel that does not sort: " + std::to_string(options.num_runs) +
                           "; accepted: 0, or a kernel of sort");
  }
  if ((options.reserve == nullptr) != (options.release == nullptr))
    return InvalidArgument("one of reserve and release; accepted: both, or neither");
  if (options.residual != nullptr && !Is<JoinSpec>(kernel_spec))
    return InvalidArgument("residual for a kernel that does not join: a function; accepted: NULL, or a kernel of join");
  if (options.row_id_bytes != 0 && options.row_id_bytes != 4 && options.row_id_bytes != 8)
    return InvalidArgument("row_id_bytes: " + std::to_string(options.row_id_bytes) + "; accepted: 0, 4 or 8");
  if (kernel.pipeline.has_value()) return NewPipelineJob(*kernel.pipeline, options);
  if (options.num_tables != 0)
    return InvalidArgument("tables of a job that is no pipeline: " + std::to_string(options.num_tables) +
                           "; accepted: 0");
  if (options.on_rows != nullptr)
    return InvalidArgument("on_rows for a job that is no pipeline: a function; accepted: NULL");
  return std::visit([&](const auto& spec) { return NewJob(spec, compiled, options); }, kernel_spec);
}

absl::Status CreateJob(const quern_kernel* kernel, const quern_job_options* given, quern_job** job) {
  if (job == nullptr) return MissingArgument("job");
  *job = nullptr;
  if (kernel == nullptr) return MissingArgument("kernel");
  QUERN_ASSIGN_OR_RETURN(const quern_job_options options, ReadOptions(given, kJobOptionsSize));
  QUERN_ASSIGN_OR_RETURN(std::shared_ptr<Job> made, NewAnyJob(*kernel, options));
  if (options.spill != nullptr) QUERN_RETURN_IF_ERROR(made->Spill(*options.spill, options.host));
  *job = new quern_job{std::move(made)};
  return absl::OkStatus();
}

absl::Status JobOfStep(quern_job* job, size_t step, quern_job** of_step) {
  if (of_step == nullptr) return MissingArgument("of_step");
  *of_step = nullptr;
  if (job == nullptr) return MissingArgument("job");
  const auto* const pipeline = dynamic_cast<const PipelineJob*>(job->job.get());
  if (pipeline == nullptr)
    return InvalidArgument("job without steps: " + std::string(job->job->name) + "; accepted: a pipeline");
  if (step >= pipeline->num_steps()) {
    return InvalidArgument("step out of range: " + std::to_string(step) + "; accepted: 0 to " +
                           std::to_string(pipeline->num_steps() - 1));
  }
  *of_step = new quern_job{pipeline->JobOfStep(step)};
  return absl::OkStatus();
}

absl::Status Work(quern_job* job, quern_work_state* state) {
  if (state == nullptr) return MissingArgument("state");
  *state = QUERN_WORK_DONE;
  if (job == nullptr) return MissingArgument("job");
  QUERN_RETURN_IF_ERROR(job->job->stop->Check());
  QUERN_ASSIGN_OR_RETURN(const WorkState found, job->job->Work());
  *state = found == WorkState::kMore ? QUERN_WORK_MORE : found == WorkState::kBusy ? QUERN_WORK_BUSY : QUERN_WORK_DONE;
  return absl::OkStatus();
}

absl::Status ReleaseMemory(const quern_job* job, uint64_t bytes, uint64_t* released) {
  if (released == nullptr) return MissingArgument("released");
  *released = 0;
  if (job == nullptr) return MissingArgument("job");
  if (bytes != 0) *released = KeptPages::OfProcess().Clear();
  return absl::OkStatus();
}

absl::Status FinaliseJob(quern_job* job) {
  if (job == nullptr) return MissingArgument("job");
  QUERN_RETURN_IF_ERROR(job->job->stop->Check());
  return job->job->Finalise();
}

// ---- Arrow ----

absl::Status BindArrow(quern_job* job, const quern_port& given, const ArrowSchema* schema, const int32_t* keys,
                       const int32_t* payload) {
  if (job == nullptr) return MissingArgument("job");
  if (schema == nullptr) return MissingArgument("schema");
  QUERN_ASSIGN_OR_RETURN(const quern_port port, PortOf(given));
  return BindPort(job->job.get(), port, *schema, keys, payload);
}

absl::Status ResultSchema(const quern_job* job, const quern_port& given, ArrowSchema* schema) {
  if (schema == nullptr) return MissingArgument("schema");
  *schema = {};
  if (job == nullptr) return MissingArgument("job");
  QUERN_ASSIGN_OR_RETURN(const quern_port port, PortOf(given));
  return ExportResultSchema(job->job.get(), port, schema);
}

absl::Status AppendArrow(quern_input* input, ArrowArray* batch, const quern_arrow_rows* rows) {
  if (batch == nullptr) return MissingArgument("batch");
  const MovedInArray moved(batch);
  if (input == nullptr) return MissingArgument("input");
  QUERN_RETURN_IF_ERROR(input->job->stop->Check());
  QUERN_RETURN_IF_ERROR(input->input->CheckOpen("append"));
  QUERN_ASSIGN_OR_RETURN(BatchView view, ImportRows(*input->port, batch, rows));
  const std::shared_ptr<const void> needed_for_this_call = view.owner;
  if (input->kept == Kept::kNothing) {
    view.owner = nullptr;
    view.owns_strings = false;
  }
  return AppendImported(input, view);
}

absl::Status PushArrow(quern_output* output, ArrowArray* batch, const quern_arrow_rows* rows) {
  if (batch == nullptr) return MissingArgument("batch");
  const MovedInArray moved(batch);
  if (output == nullptr) return MissingArgument("output");
  QUERN_RETURN_IF_ERROR(output->job->stop->Check());
  if (output->port == nullptr) return output->output->Push({}, {});
  QUERN_ASSIGN_OR_RETURN(BatchView view, ImportRows(*output->port, batch, rows));
  return output->output->Push(std::move(view), output->port->types);
}

// ---- inputs ----

absl::Status CreateInput(quern_job* job, const quern_port& given_port, const quern_input_options* given,
                         quern_input** input) {
  if (input == nullptr) return MissingArgument("input");
  *input = nullptr;
  if (job == nullptr) return MissingArgument("job");
  QUERN_RETURN_IF_ERROR(job->job->stop->Check());
  QUERN_ASSIGN_OR_RETURN(const quern_port port, PortOf(given_port));
  QUERN_ASSIGN_OR_RETURN(const quern_input_options options, ReadOptions(given, kInputOptionsSize));
  const PortColumns* const columns = job->job->FindPort(port);
  QUERN_RETURN_IF_ERROR(CheckFormatNumber(options.format, columns == nullptr ? "rows" : columns->name));
  QUERN_ASSIGN_OR_RETURN(std::unique_ptr<quern_input> made,
                         NewInput(job->job, port, {options.run, options.copy_bytes, options.context}));
  *input = made.release();
  return absl::OkStatus();
}

absl::Status Append(quern_input* input, const quern_batch* batch) {
  if (input == nullptr) return MissingArgument("input");
  QUERN_RETURN_IF_ERROR(input->job->stop->Check());
  QUERN_RETURN_IF_ERROR(input->input->CheckOpen("append"));
  QUERN_RETURN_IF_ERROR(CheckBatch(batch));
  return AppendHostBatch(input, *batch);
}

absl::Status Finish(quern_input* input) {
  if (input == nullptr) return MissingArgument("input");
  QUERN_RETURN_IF_ERROR(input->job->stop->Check());
  QUERN_RETURN_IF_ERROR(CheckWhole(*input, "finish"));
  return input->input->Finish();
}

// ---- outputs ----

absl::StatusOr<OutputOptions> OptionsOf(const quern_output_options* given) {
  QUERN_ASSIGN_OR_RETURN(const quern_output_options options, ReadOptions(given, kOutputOptionsSize));
  QUERN_RETURN_IF_ERROR(CheckBatchRows(options.batch_rows));
  OutputOptions read;
  if (options.batch_rows != 0) read.batch_rows = options.batch_rows;
  read.partition = options.partition;
  read.num_partitions = std::max(options.num_partitions, 1u);
  read.context = options.context;
  if (read.partition < read.num_partitions) return read;
  return InvalidArgument("partition out of range: " + std::to_string(read.partition) + "; accepted: 0 to " +
                         std::to_string(read.num_partitions - 1));
}

absl::Status CreateOutput(quern_job* job, const quern_port& given_port, const quern_output_options* given,
                          quern_output** output) {
  if (output == nullptr) return MissingArgument("output");
  *output = nullptr;
  if (job == nullptr) return MissingArgument("job");
  QUERN_RETURN_IF_ERROR(job->job->stop->Check());
  QUERN_ASSIGN_OR_RETURN(const quern_port port, PortOf(given_port));
  QUERN_ASSIGN_OR_RETURN(const OutputOptions options, OptionsOf(given));
  QUERN_ASSIGN_OR_RETURN(std::unique_ptr<quern_output> made, NewOutput(job->job, port, options));
  *output = made.release();
  return absl::OkStatus();
}

absl::Status Push(quern_output* output, const quern_batch* batch) {
  if (output == nullptr) return MissingArgument("output");
  QUERN_RETURN_IF_ERROR(output->job->stop->Check());
  QUERN_RETURN_IF_ERROR(CheckBatch(batch));
  return PushHostBatch(output, *batch);
}

absl::Status Next(quern_output* output, const quern_result** result) {
  if (result == nullptr) return MissingArgument("result");
  *result = nullptr;
  if (output == nullptr) return MissingArgument("output");
  QUERN_RETURN_IF_ERROR(NextResult(output));
  *result = &output->output->result;
  return absl::OkStatus();
}

absl::Status NextArrow(quern_output* output, ArrowArray* rows, const quern_result** result) {
  if (rows == nullptr) return MissingArgument("rows");
  *rows = {};
  if (result == nullptr) return MissingArgument("result");
  *result = nullptr;
  if (output == nullptr) return MissingArgument("output");
  QUERN_RETURN_IF_ERROR(NextRows(output));
  output->output->rows->ExportArrow(rows);
  *result = &output->output->result;
  return absl::OkStatus();
}

// ---- filters ----

// What is wanted of the rows that pass.
struct FilterAnswer {
  uint32_t* rows;
  uint8_t* bitmap;
  uint64_t* num_rows;
};

absl::StatusOr<const RowFilter*> FilterOf(const quern_job* job, const FilterAnswer& answer) {
  if (answer.num_rows == nullptr) return MissingArgument("num_rows");
  if (job == nullptr) return MissingArgument("job");
  if (answer.rows != nullptr && answer.bitmap != nullptr)
    return InvalidArgument("both rows and bitmap; accepted: one of them, or neither to count");
  if (job->job->filter() != nullptr) return job->job->filter();
  return InvalidArgument("wrong job for a filter: " + std::string(job->job->name) +
                         "; accepted: a job of a kernel `filter ..`");
}

absl::StatusOr<uint64_t> RunFilter(const RowFilter& filter, const BatchView& batch, const FilterAnswer& answer) {
  if (answer.rows != nullptr) return filter.Select(batch, answer.rows);
  if (answer.bitmap != nullptr) return filter.Mask(batch, answer.bitmap);
  return filter.Count(batch);
}

absl::StatusOr<uint64_t> Filter(const quern_job* job, const quern_batch* batch, const FilterAnswer& answer) {
  QUERN_ASSIGN_OR_RETURN(const RowFilter* filter, FilterOf(job, answer));
  QUERN_RETURN_IF_ERROR(CheckBatch(batch));
  QUERN_RETURN_IF_ERROR(job->job->stop->Check());
  const PortColumns& columns = job->job->ports.front();
  QUERN_ASSIGN_OR_RETURN(const HostBatchView view,
                         ViewOfHostBatch(*batch, columns.types.keys, {}, columns.name, {job->job->budget}));
  return RunFilter(*filter, view.batch, answer);
}

absl::StatusOr<uint64_t> FilterArrow(const quern_job* job, const ArrowArray* batch, const quern_arrow_rows* selected,
                                     const FilterAnswer& answer) {
  QUERN_ASSIGN_OR_RETURN(const RowFilter* filter, FilterOf(job, answer));
  if (batch == nullptr) return MissingArgument("batch");
  QUERN_RETURN_IF_ERROR(job->job->stop->Check());
  QUERN_ASSIGN_OR_RETURN(const BatchView view, BorrowKeys(job->job->ports.front(), *batch, selected));
  return RunFilter(*filter, view, answer);
}

// Stores the number of rows, 0 after a failure. It runs after the work, since the number may be a member of the batch
// itself, which is then the selection of the next operation.
absl::Status Answer(const absl::StatusOr<uint64_t>& passed, uint64_t* num_rows) {
  if (num_rows != nullptr) *num_rows = passed.value_or(0);
  return passed.status();
}

}  // namespace
}  // namespace quern::c_abi

namespace c_abi = quern::c_abi;

extern "C" {

quern_status quern_job_create(quern_kernel* kernel, const quern_job_options* options, quern_job** job,
                              quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::CreateJob(kernel, options, job); });
}

void quern_job_destroy(quern_job* job) { delete job; }

quern_status quern_job_step(quern_job* job, size_t step, quern_job** of_step, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::JobOfStep(job, step, of_step); });
}

void quern_job_cancel(quern_job* job) {
  if (job != nullptr) job->job->stop->Stop();
}

quern_status quern_job_bind_arrow(quern_job* job, quern_port port, const ArrowSchema* schema, const int32_t* keys,
                                  const int32_t* payload, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::BindArrow(job, port, schema, keys, payload); });
}

quern_status quern_job_result_schema(const quern_job* job, quern_port port, ArrowSchema* schema, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::ResultSchema(job, port, schema); });
}

quern_status quern_job_release_memory(quern_job* job, uint64_t bytes, uint64_t* released, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::ReleaseMemory(job, bytes, released); });
}

quern_status quern_job_work(quern_job* job, quern_work_state* state, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::Work(job, state); });
}

quern_status quern_job_finalise(quern_job* job, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::FinaliseJob(job); });
}

quern_status quern_job_filter(const quern_job* job, const quern_batch* batch, uint32_t* rows, uint8_t* bitmap,
                              uint64_t* num_rows, quern_error* error) {
  return c_abi::Boundary(error,
                         [&] { return c_abi::Answer(c_abi::Filter(job, batch, {rows, bitmap, num_rows}), num_rows); });
}

quern_status quern_job_filter_arrow(const quern_job* job, const ArrowArray* batch, const quern_arrow_rows* selected,
                                    uint32_t* rows, uint8_t* bitmap, uint64_t* num_rows, quern_error* error) {
  return c_abi::Boundary(error, [&] {
    return c_abi::Answer(c_abi::FilterArrow(job, batch, selected, {rows, bitmap, num_rows}), num_rows);
  });
}

void quern_job_get_stats(const quern_job* job, quern_job_stats* stats) {
  if (stats == nullptr) return;
  quern_job_stats all = {};
  all.layout = "";
  if (job != nullptr) {
    job->job->FillStats(&all);
    all.used_bytes = job->job->budget->used_bytes();
    all.peak_bytes = job->job->budget->peak_bytes();
    if (const quern::SpillContext* const spill = job->job->spill(); spill != nullptr) {
      const quern::SpillStats spilled = spill->stats();
      all.spilled_bytes = spilled.written_bytes;
      all.spilled_rows = spilled.written_rows;
      all.unspilled_bytes = spilled.read_bytes;
      all.spill_levels = spilled.max_level;
      all.spill_waits = spilled.late_blocks;
    }
  }
  c_abi::WriteAnswer(all, stats);
}

uint64_t quern_job_used_bytes(const quern_job* job) { return job == nullptr ? 0 : job->job->budget->used_bytes(); }

quern_status quern_input_create(quern_job* job, quern_port port, const quern_input_options* options,
                                quern_input** input, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::CreateInput(job, port, options, input); });
}

void quern_input_destroy(quern_input* input) { delete input; }

quern_status quern_input_append(quern_input* input, const quern_batch* batch, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::Append(input, batch); });
}

quern_status quern_input_append_arrow(quern_input* input, ArrowArray* batch, const quern_arrow_rows* rows,
                                      quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::AppendArrow(input, batch, rows); });
}

quern_status quern_input_finish(quern_input* input, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::Finish(input); });
}

uint64_t quern_input_num_groups(const quern_input* input) { return input == nullptr ? 0 : input->input->num_groups(); }

quern_status quern_output_create(quern_job* job, quern_port port, const quern_output_options* options,
                                 quern_output** output, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::CreateOutput(job, port, options, output); });
}

void quern_output_destroy(quern_output* output) { delete output; }

quern_status quern_output_push(quern_output* output, const quern_batch* batch, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::Push(output, batch); });
}

quern_status quern_output_push_arrow(quern_output* output, ArrowArray* batch, const quern_arrow_rows* rows,
                                     quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::PushArrow(output, batch, rows); });
}

quern_status quern_output_next(quern_output* output, const quern_result** result, quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::Next(output, result); });
}

quern_status quern_output_next_arrow(quern_output* output, ArrowArray* rows, const quern_result** result,
                                     quern_error* error) {
  return c_abi::Boundary(error, [&] { return c_abi::NextArrow(output, rows, result); });
}

}  // extern "C"
