// SPDX-License-Identifier: Apache-2.0
// Each thread that sends what a join has left takes an output of the join and an input behind it, sends one result, and
// puts both back for the next call. The next join begins when the last one's rows are all sent:
//
//     thread 0   A: 65536 rows | A: 900 rows, done |       | B: 12 rows, done | the end's work
//     thread 1   A: 65536 rows | busy              | busy  | B: none, done    | the end's work
#include "hosts/c/jobs/pipeline_job.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "hosts/c/jobs/value_formats.h"
#include "hosts/c/port_arrow.h"
#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "runtime/join/hash_join.h"
#include "runtime/spec/spec_text.h"

namespace quern::c_abi {
namespace {

// The job of a step that is no join.
NewJobResult NewStepJob(const KernelSpec& spec, const CompiledKernel& compiled, const quern_job_options& given) {
  quern_job_options options = {};
  options.struct_size = sizeof(options);
  options.stop = given.stop;
  if (const auto* map = std::get_if<MapSpec>(&spec)) return NewJob(*map, compiled, options);
  return NewJob(std::get<FilterSpec>(spec), compiled, options);
}

// The next of the host's tables, for a step that probes or reduces by it.
NewJobResult TableOf(const KernelSpec& spec, size_t step, size_t number, const quern_job_options& options) {
  const quern_job* const table = options.tables[number];
  const std::string name = "tables[" + std::to_string(number) + "]";
  if (table == nullptr) return MissingArgument(name.c_str());
  const HashJoin* const join = table->job->hash_join();
  if (join == nullptr)
    return InvalidArgument(name + ": a job of " + table->job->name + "; accepted: a join, or a pipeline into build");
  const KernelSpec of_table = join->descriptor().spec();
  if (of_table == spec) return table->job;
  return InvalidArgument(name + " for step " + std::to_string(step) + ": " + PrintSpec(of_table) +
                         "; accepted: " + PrintSpec(spec));
}

absl::Status CheckTables(const PipelineSpec& spec, const quern_job_options& options) {
  const auto wanted = static_cast<size_t>(std::count_if(
      spec.steps.begin(), spec.steps.end(), [](const PipelineStepSpec& step) { return Is<JoinSpec>(step.spec); }));
  if (options.num_tables != wanted) {
    return InvalidArgument("number of tables of a pipeline: " + std::to_string(options.num_tables) +
                           "; accepted: " + std::to_string(wanted) + ", one for each step that probes or reduces");
  }
  return wanted != 0 && options.tables == nullptr ? MissingArgument("tables") : absl::OkStatus();
}

absl::Status CheckEmit(const PipelineSpec& spec, const quern_job_options& options) {
  if (!spec.end.has_value() && options.on_rows == nullptr) return MissingArgument("on_rows, for a pipeline that emits");
  if (!spec.end.has_value() && options.residual != nullptr)
    return InvalidArgument("residual of a pipeline that emits rows: a function; accepted: NULL, and one of the tables");
  if (spec.end.has_value() && options.on_rows != nullptr)
    return InvalidArgument("on_rows for a pipeline that emits no rows: a function; accepted: NULL, or emit at its end");
  return absl::OkStatus();
}

BoundField BoundOf(const ResultField& field) { return {field.name, field.format}; }

// One of another job's kernel, without inputs and outputs.
class PlainJob final : public Job {
 public:
  PlainJob(const Job& of, const quern_job_options& options)
      : Job(CompiledKernel{of.kernel, of.cache, ""}, options, of.name) {}
  Counters counters() const override { return {}; }
};

// Row ids that have come out of a join are numbers to later steps.
std::vector<PipelineColumn> ResultColumns(const JoinSpec& join) {
  std::vector<PipelineColumn> columns = PipelineColumnsOf(JoinOutputTypes(join));
  for (PipelineColumn& column : columns)
    if (column.type.id == TypeId::kRowId) column.type.id = TypeId::kU64;
  return columns;
}

bool HasRowIds(const std::vector<ColumnType>& types) {
  return std::any_of(types.begin(), types.end(), [](const ColumnType& type) { return type.id == TypeId::kRowId; });
}

// Whether the steps from `first` on, or the end, read the ids of rows. Aggregations may (first, last, string_agg).
bool ReadsRowIds(const PipelineSpec& spec, size_t first) {
  for (size_t i = first; i < spec.steps.size(); ++i) {
    const auto* const join = std::get_if<JoinSpec>(&spec.steps[i].spec);
    if (join != nullptr && !spec.steps[i].is_reduction && (join->host_residual || HasRowIds(join->probe))) return true;
  }
  if (!spec.end.has_value()) return false;
  const EndTypes end = EndTypesOf(*spec.end);
  return end.reads_row_ids || Is<AggregationSpec>(*spec.end) || HasRowIds(end.keys) || HasRowIds(end.payload);
}

// What a table has left comes out of it once, by one step.
absl::Status CheckFlaggedOnce(const std::vector<FlaggedJoin>& flagged) {
  for (size_t i = 0; i < flagged.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (flagged[i].job != flagged[j].job) continue;
      return InvalidArgument("steps " + std::to_string(flagged[j].step) + " and " + std::to_string(flagged[i].step) +
                             ": one table, which has rows left when all probing is done; accepted: a table for each");
    }
  }
  return absl::OkStatus();
}

std::vector<BoundField> Chosen(const std::vector<BoundField>& fields, const std::vector<uint32_t>& numbers) {
  std::vector<BoundField> chosen;
  for (const uint32_t number : numbers) chosen.push_back(fields[number]);
  return chosen;
}

}  // namespace

NewJobResult NewPipelineJob(const CompiledPipeline& compiled, const quern_job_options& options) {
  const PipelineSpec& spec = compiled.plan->spec;
  if (options.num_runs != 0)
    return InvalidArgument("num_runs of a pipeline: " + std::to_string(options.num_runs) + "; accepted: 0");
  QUERN_RETURN_IF_ERROR(CheckTables(spec, options));
  QUERN_RETURN_IF_ERROR(CheckEmit(spec, options));
  std::vector<std::shared_ptr<Job>> steps;
  size_t next_table = 0;
  for (size_t i = 0; i < spec.steps.size(); ++i) {
    const KernelSpec& of_step = spec.steps[i].spec;
    QUERN_ASSIGN_OR_RETURN(std::shared_ptr<Job> step, Is<JoinSpec>(of_step)
                                                          ? TableOf(of_step, i, next_table++, options)
                                                          : NewStepJob(of_step, compiled.kernels[i], options));
    steps.push_back(std::move(step));
  }
  std::shared_ptr<Job> of;
  if (spec.end.has_value()) {
    QUERN_ASSIGN_OR_RETURN(
        of, std::visit([&](const auto& end) { return NewJob(end, compiled.kernels.back(), options); }, *spec.end));
  } else {
    of = std::make_shared<PlainJob>(*steps.back(), options);  // in which the memory of steps counts
  }
  return std::make_shared<PipelineJob>(compiled.plan, std::move(steps), of,
                                       PipelineJob::HostEnd{options.on_rows, options.rows_context});
}

PipelineJob::PipelineJob(std::shared_ptr<const PipelinePlan> plan, std::vector<std::shared_ptr<Job>> steps,
                         const std::shared_ptr<Job>& of, HostEnd host)
    : Job(*of, "pipeline"),
      plan_(std::move(plan)),
      capture_(PipelineCapture::Of(plan_->asked, plan_->given)),
      steps_(std::move(steps)),
      of_(of),
      end_(plan_->spec.end.has_value() ? of : nullptr),
      host_(host) {
  BatchTypes types;
  for (const PipelineColumn& column : plan_->spec.source) types.keys.push_back(column.type);
  ports.push_back({QUERN_PORT_ROWS, "pipeline", std::move(types)});
}

quern_port PipelineJob::end_port() const { return end_->hash_join() != nullptr ? QUERN_PORT_BUILD : QUERN_PORT_ROWS; }

PortColumns* PipelineJob::FindPort(quern_port port) {
  if (port == QUERN_PORT_ROWS) return &ports.front();
  return end_ == nullptr ? nullptr : end_->FindPort(port);
}

Kept PipelineJob::kept(quern_port port) const {
  if (end_ == nullptr) return Kept::kNothing;
  return end_->kept(port == QUERN_PORT_ROWS ? end_port() : port);
}

absl::Status PipelineJob::Spill(const quern_spill_options& options, void* host) {
  return end_ == nullptr ? Job::Spill(options, host) : end_->Spill(options, host);
}

void PipelineJob::FillStats(quern_job_stats* stats) const {
  if (end_ != nullptr) end_->FillStats(stats);
}

void PipelineJob::ExpectRows(uint64_t num_rows, uint32_t threads) const {
  for (size_t i = 0; i < std::min(StepsOfAllRows(plan_->spec), num_steps()); ++i)
    JobOfStep(i)->ExpectRows(num_rows, threads);
}

Counters PipelineJob::counters() const { return end_ == nullptr ? steps_.back()->counters() : end_->counters(); }

// ---- inputs and outputs ---------------------------------------------------------------------------------------------

// Once the host wants no more rows, no input hands it any, nor does what joins have left.
bool PipelineJob::CallHost(void* call, const quern_batch* rows) {
  const HostCall& host = *static_cast<const HostCall*>(call);
  if (host.job->has_stopped_) return false;
  const bool more = host.job->host_.on_rows(host.context, rows);
  if (!more) host.job->has_stopped_ = true;
  return more;
}

// One for each context, as long as the job.
PipelineJob::HostCall* PipelineJob::HostCallOf(void* context) {
  const std::lock_guard lock(host_mutex_);
  return &host_calls_.try_emplace(context, HostCall{this, context}).first->second;
}

absl::StatusOr<RowsEnd> PipelineJob::NewEnd(void* context) {
  RowsEnd end;
  if (end_ == nullptr) {
    auto host = std::make_unique<HostRows>(CallHost, HostCallOf(context == nullptr ? host_.context : context));
    end.host = host.get();
    end.input = std::move(host);
    end.job = of_;
    return end;
  }
  QUERN_ASSIGN_OR_RETURN(end.input, end_->NewInput(end_port(), {}));
  end.job = end_;
  end.kept = end_->kept(end_port());
  return end;
}

// An input for the rows in front of a step: those of the source, or what the join before it has left.
absl::StatusOr<std::unique_ptr<PipelineJobInput>> PipelineJob::InputFrom(size_t first_step, void* context) {
  const PipelineSpec& spec = plan_->spec;
  std::vector<PipelineColumn> source = spec.source;
  if (first_step != 0) source = ResultColumns(std::get<JoinSpec>(spec.steps[first_step - 1].spec));
  std::vector<PipelineStep> steps;
  std::vector<FlaggedJoin> flagged;
  for (size_t i = first_step; i < steps_.size(); ++i) {
    PipelineStep step{.op = {}, .columns = spec.steps[i].columns, .is_reduction = spec.steps[i].is_reduction};
    step.host_context = context;
    QUERN_ASSIGN_OR_RETURN(step.op, StepOpOf(steps_[i], i));
    steps.push_back(std::move(step));
    if (!spec.steps[i].is_reduction) AddIfFlagged(steps_[i], i, &flagged);
  }
  QUERN_RETURN_IF_ERROR(CheckFlaggedOnce(flagged));
  QUERN_ASSIGN_OR_RETURN(RowsEnd end, NewEnd(context));
  PipelineSink sink{.keys = {}, .payload = {}, .values = {}, .columns = spec.end_columns, .takes_all_types = true};
  if (spec.end.has_value()) {
    sink = SinkOf(*spec.end, spec.end_columns);
    sink.keeps_strings = end.kept == Kept::kStrings;
  }
  QUERN_ASSIGN_OR_RETURN(std::shared_ptr<const Pipeline> pipeline,
                         Pipeline::Make(source, std::move(steps), std::move(sink)));
  return std::make_unique<PipelineJobInput>(std::move(end), std::move(pipeline), std::move(flagged), plan_->piece_rows,
                                            first_step == 0 ? &num_open_inputs_ : nullptr,
                                            first_step == 0 ? capture_.get() : nullptr);
}

absl::StatusOr<std::unique_ptr<JobInput>> PipelineJob::NewInput(quern_port port, const InputOptions& options) {
  if (port == QUERN_PORT_ROWS) return InputFrom(0, options.context);
  if (end_ == nullptr) return NoSuchPort(port, "QUERN_PORT_ROWS");
  return end_->NewInput(port, options);
}

absl::StatusOr<std::unique_ptr<JobOutput>> PipelineJob::NewOutput(quern_port port, const OutputOptions& options) {
  if (end_ == nullptr) return NoSuchPort(port, "none, as it emits its rows");
  return end_->NewOutput(port, options);
}

// ---- what joins have left -------------------------------------------------------------------------------------------

absl::Status PipelineJob::CheckInputs() const {
  const int64_t num_open = num_open_inputs_;
  if (num_open == 0) return absl::OkStatus();
  return absl::FailedPreconditionError("work before all inputs have finished: " + std::to_string(num_open) +
                                       " with rows; accepted: after quern_input_finish of each");
}

absl::Status PipelineJob::FindFlagged() {
  std::vector<FlaggedJoin> flagged;
  for (size_t i = 0; i < steps_.size(); ++i) {
    QUERN_RETURN_IF_ERROR(StepOpOf(steps_[i], i).status());
    if (!plan_->spec.steps[i].is_reduction) AddIfFlagged(steps_[i], i, &flagged);
  }
  flagged_ = std::move(flagged);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<PipelineJob::Left>> PipelineJob::NewLeft(const FlaggedJoin& join) {
  auto left = std::make_unique<Left>();
  QUERN_ASSIGN_OR_RETURN(std::unique_ptr<PipelineJobInput> input, InputFrom(join.step + 1, nullptr));
  OutputOptions options;  // copies of all columns, as they come from a probe
  options.batch_rows = std::min<uint64_t>(plan_->piece_rows, thresholds::kFirstPieceRows);
  QUERN_ASSIGN_OR_RETURN(left->output, c_abi::NewOutput(join.job, QUERN_PORT_UNMATCHED, options));
  // Steps read row ids of 8 bytes, whatever the host gets from the table.
  if (join.job->has_narrow_row_ids) left->output->job = std::make_shared<PlainJob>(*join.job, quern_job_options{});
  if (ReadsRowIds(plan_->spec, join.step + 1)) {
    left->all_rows.resize(left->output->output->rows->capacity());
    std::iota(left->all_rows.begin(), left->all_rows.end(), 0);
  }
  // A result is there until the next one, so that an end that keeps strings copies them.
  const Kept kept = this->kept(QUERN_PORT_ROWS);
  PortColumns* const columns = &input->columns;
  left->input = std::make_unique<quern_input>(quern_input{.job = of_,
                                                          .port = columns,
                                                          .kept = kept,
                                                          .copies_strings = kept == Kept::kStrings,
                                                          .string_pages = StringPagesOf(*this),
                                                          .input = std::move(input)});
  return left;
}

absl::StatusOr<bool> PipelineJob::SendOne(Left* left) const {
  if (!left->has_rows) {
    QUERN_RETURN_IF_ERROR(NextResult(left->output.get()));
    left->has_rows = true;
  }
  const quern_result& rows = left->output->output->result;
  quern_batch batch = {};
  batch.keys = rows.columns;
  batch.num_rows = rows.num_rows;
  // Their ids are those that are counted behind the join; the input gives no others to rows that are selected.
  if (!left->all_rows.empty()) {
    batch.first_row_id = kCountedRowIds;
    batch.selection = left->all_rows.data();
  }
  QUERN_RETURN_IF_ERROR(AppendHostBatch(left->input.get(), batch));
  left->has_rows = false;
  if (rows.state == QUERN_RESULT_MORE) return true;
  QUERN_RETURN_IF_ERROR(left->input->input->Finish());
  return false;
}

absl::StatusOr<WorkState> PipelineJob::WorkOnLeft() {
  std::unique_ptr<Left> left;
  FlaggedJoin join;
  {
    const std::lock_guard lock(left_mutex_);
    if (has_failed_) {
      return absl::FailedPreconditionError(
          "work after a failure: rows that a join had left are lost; accepted: a new job");
    }
    if (!flagged_.has_value()) QUERN_RETURN_IF_ERROR(FindFlagged());
    while (current_ < flagged_->size() && is_exhausted_ && idle_.empty()) {
      if (num_working_ != 0) return WorkState::kBusy;
      ++current_;
      is_exhausted_ = false;
    }
    if (current_ == flagged_->size()) return WorkState::kDone;
    join = (*flagged_)[current_];
    ++num_working_;
    if (!idle_.empty()) {
      left = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  const auto send = [&]() -> absl::StatusOr<bool> {
    if (left == nullptr) {
      QUERN_ASSIGN_OR_RETURN(left, NewLeft(join));
    }
    return SendOne(left.get());
  };
  absl::StatusOr<bool> more = false;
  const absl::Status status = WithoutBadAlloc([&] {
    more = send();
    return more.status();
  });
  const std::lock_guard lock(left_mutex_);
  --num_working_;
  left_changed_.notify_all();
  if (!status.ok()) {
    // What was refused memory comes again, and where there is no output yet nothing is lost.
    if (left == nullptr) return status;
    if (absl::IsResourceExhausted(status) && left->has_rows) idle_.push_back(std::move(left));
    else has_failed_ = true;
    return status;
  }
  if (*more) idle_.push_back(std::move(left));
  else is_exhausted_ = true;
  return WorkState::kMore;
}

absl::Status PipelineJob::SendLeft() {
  while (true) {
    QUERN_RETURN_IF_ERROR(stop->Check());
    QUERN_ASSIGN_OR_RETURN(const WorkState state, WorkOnLeft());
    if (state == WorkState::kDone) return absl::OkStatus();
    if (state == WorkState::kMore) continue;
    std::unique_lock lock(left_mutex_);
    left_changed_.wait(lock, [&] { return num_working_ == 0 || !idle_.empty() || !is_exhausted_; });
  }
}

absl::StatusOr<WorkState> PipelineJob::Work() {
  QUERN_RETURN_IF_ERROR(CheckInputs());
  QUERN_ASSIGN_OR_RETURN(const WorkState state, WorkOnLeft());
  if (state != WorkState::kDone) return state;
  if (capture_ != nullptr) capture_->End();
  return end_ == nullptr ? WorkState::kDone : end_->Work();
}

absl::Status PipelineJob::Finalise() {
  QUERN_RETURN_IF_ERROR(CheckInputs());
  QUERN_RETURN_IF_ERROR(SendLeft());
  if (capture_ != nullptr) capture_->End();
  return end_ == nullptr ? absl::OkStatus() : end_->Finalise();
}

// ---- Arrow ----------------------------------------------------------------------------------------------------------

namespace {

// A reduction compares keys with those of a table, as a probe does. Those of a table without a binding have no units.
absl::Status CheckUnitsOfReduction(Job* job, const std::vector<BoundField>& keys) {
  const absl::Status bound = job->BindDependentPorts();
  if (!bound.ok()) return absl::IsFailedPrecondition(bound) ? absl::OkStatus() : bound;
  const std::optional<PortBinding>& build = job->JobOfTable()->FindPort(QUERN_PORT_BUILD)->binding;
  if (!build.has_value()) return absl::OkStatus();
  for (size_t i = 0; i < keys.size(); ++i)
    QUERN_RETURN_IF_ERROR(CheckSameUnit({build->keys[i], "build"}, {keys[i], "probe"}, "keys", i));
  return absl::OkStatus();
}

}  // namespace

// The fields behind a step, of those in front of it.
absl::StatusOr<std::vector<BoundField>> PipelineJob::FieldsBehind(size_t step,
                                                                  const std::vector<BoundField>& fields) const {
  const PipelineStepSpec& of = plan_->spec.steps[step];
  Job& job = *steps_[step];
  if (of.is_reduction) QUERN_RETURN_IF_ERROR(CheckUnitsOfReduction(&job, Chosen(fields, of.columns.keys)));
  if (Is<FilterSpec>(of.spec) || of.is_reduction) return fields;
  PortBinding binding;
  binding.keys = Chosen(fields, of.columns.keys);
  if (Is<MapSpec>(of.spec)) {
    job.ports.front().binding = std::move(binding);
    QUERN_RETURN_IF_ERROR(job.CheckBindings());
    QUERN_ASSIGN_OR_RETURN(const std::vector<ResultField> made, job.ResultFields(QUERN_PORT_ROWS));
    std::vector<BoundField> behind = fields;
    for (const ResultField& field : made) behind.push_back(BoundOf(field));
    return behind;
  }
  QUERN_RETURN_IF_ERROR(job.BindDependentPorts());
  Job& table = *job.JobOfTable();
  QUERN_RETURN_IF_ERROR(CheckBound(*table.FindPort(QUERN_PORT_BUILD)));
  binding.payload = Chosen(fields, of.columns.payload);
  QUERN_ASSIGN_OR_RETURN(const std::vector<ResultField> made, table.FieldsBehindProbe(binding));
  std::vector<BoundField> behind;
  for (const ResultField& field : made) behind.push_back(BoundOf(field));
  return behind;
}

absl::StatusOr<PortBinding> PipelineJob::EndBinding() const {
  QUERN_RETURN_IF_ERROR(CheckBound(ports.front()));
  std::vector<BoundField> fields = ports.front().binding->keys;
  for (size_t i = 0; i < steps_.size(); ++i) {
    QUERN_ASSIGN_OR_RETURN(fields, FieldsBehind(i, fields));
  }
  const StepColumns& columns = plan_->spec.end_columns;
  PortBinding binding;
  binding.keys = Chosen(fields, columns.keys);
  binding.payload = Chosen(fields, columns.payload);
  return binding;
}

absl::Status PipelineJob::BindDependentPorts() {
  const std::lock_guard lock(binding_mutex_);
  QUERN_ASSIGN_OR_RETURN(PortBinding binding, EndBinding());
  if (end_ == nullptr) return absl::OkStatus();
  PortColumns& columns = *end_->FindPort(end_port());
  if (columns.binding.has_value()) return absl::OkStatus();
  columns.binding = std::move(binding);
  const absl::Status status = end_->CheckBindings();
  if (!status.ok()) columns.binding.reset();
  return status;
}

// A table may be bound later, and is looked at again before a schema is made.
absl::Status PipelineJob::CheckBindings() const {
  if (end_ != nullptr) QUERN_RETURN_IF_ERROR(end_->CheckBindings());
  if (!ports.front().binding.has_value()) return absl::OkStatus();
  const absl::Status status = const_cast<PipelineJob*>(this)->BindDependentPorts();
  return absl::IsFailedPrecondition(status) ? absl::OkStatus() : status;
}

absl::StatusOr<std::vector<ResultField>> PipelineJob::ResultFields(quern_port port) const {
  if (end_ == nullptr) return NoSuchPort(port, "none, as it emits its rows");
  for (const PortColumns& columns : end_->ports) QUERN_RETURN_IF_ERROR(CheckBound(columns));
  QUERN_ASSIGN_OR_RETURN(std::vector<ResultField> fields, end_->ResultFields(port));
  // Aggregates have the names that the host has written, also where maps are fused into them.
  if (const auto* const asked = std::get_if<AggregationSpec>(&*plan_->asked.end); asked != nullptr) {
    for (size_t i = 0; i < asked->aggregates.size(); ++i)
      fields[asked->keys.size() + i].name = PrintItem(asked->aggregates[i]);
  }
  return fields;
}

}  // namespace quern::c_abi
