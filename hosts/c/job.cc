// SPDX-License-Identifier: Apache-2.0
// What the jobs of all operators share: ports, the way of a batch to its operator, and the way of a result to the host.
//
//     quern_batch ── ViewOfHostBatch ──┐
//     ArrowArray ── ImportArrow ───────┴─> BatchView ─> slices of a morsel ─> JobInput::Append, or JobOutput::Push
//     JobOutput::Fill ─> OutputBatch ─> quern_result, or ArrowArray
//
// A large batch is added in slices of 65536 rows, so that a job can be stopped within it. When one of them fails after
// others were added, rows are missing, and the job says so at every later call. A slice that is refused memory is no
// such failure: the input remembers how many rows the job has, and takes the same batch again from there.
//
//     batch of 150000 rows    65536 | 10240, then refused              75776 rows are in the job
//     the same batch again            rows 75776 .. 131071 | 18928
#include "hosts/c/job.h"

#include <algorithm>
#include <string>

#include "hosts/c/arrow_fields.h"
#include "hosts/c/host_batch.h"
#include "hosts/c/spill_options.h"
#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "runtime/blocks/blocks.h"
#include "runtime/rows/output_batch.h"
#include "runtime/spill/spilled_rows.h"

namespace quern::c_abi {
namespace {

constexpr const char* kPortNames[] = {"QUERN_PORT_ROWS",      "QUERN_PORT_BUILD",  "QUERN_PORT_PROBE",
                                      "QUERN_PORT_UNMATCHED", "QUERN_PORT_STATES", "QUERN_PORT_THRESHOLD",
                                      "QUERN_PORT_LEFT",      "QUERN_PORT_RIGHT"};

MemoryAccount AccountOf(const quern_job_options& options) { return {options.reserve, options.release, options.host}; }

// ---- inputs of sinks ----

// The appender is made for the first batch: an input without rows costs nothing, and is no thread that takes part.
class SinkJobInput final : public JobInput {
 public:
  SinkJobInput(std::shared_ptr<SinkJob> job, RowKind kind) : job_(std::move(job)), kind_(kind) {}
  ~SinkJobInput() override { Close(); }

  absl::Status CheckOpen(const char* call) const override {
    QUERN_RETURN_IF_ERROR(job_->sink->CheckOpen(call));
    if (!finished_) return absl::OkStatus();
    return absl::FailedPreconditionError(std::string(call) +
                                         " after finish: the rows were handed over; accepted: a new input");
  }
  absl::Status Append(const BatchView& batch, uint64_t* taken_rows) override {
    Open();
    return appender_->Append(batch, kind_, taken_rows);
  }
  absl::Status FreeMemory(const absl::Status& refused) override {
    if (job_->sink->spill() == nullptr) return refused;
    Open();
    return appender_->FreeMemory(refused);
  }
  bool needs_rest() const override { return appender_ && appender_->needs_rest(); }
  absl::Status Finish() override {
    QUERN_RETURN_IF_ERROR(CheckOpen("finish"));
    if (appender_) QUERN_RETURN_IF_ERROR(appender_->Finish());
    Close();
    finished_ = true;
    return absl::OkStatus();
  }
  void LoseRows() override { job_->sink->LoseRows(); }
  uint64_t num_groups() const override { return appender_ ? appender_->num_groups() : 0; }

 private:
  void Open() {
    if (appender_) return;
    appender_.emplace(job_->sink);
    ++job_->num_open_inputs;
  }
  void Close() {
    if (appender_) --job_->num_open_inputs;
    appender_.reset();
  }

  std::shared_ptr<SinkJob> job_;
  std::optional<Appender> appender_;
  const RowKind kind_;
  bool finished_ = false;
};

// ---- batches ----

// Who has the rows of an input, in errors.
const char* HolderOf(const quern_input& input) { return input.input->ends_in_host() ? "host" : input.job->name; }

// After a slice that has failed, of a batch of which `taken_rows` rows are in the job. Where a repeated batch fails
// otherwise than before, and has added no rows, the rows of the earlier calls still wait for theirs.
absl::Status AfterSlice(absl::Status status, uint64_t num_rows, uint64_t taken_rows, quern_input* input) {
  if (absl::IsResourceExhausted(status))
    input->refused = {taken_rows != 0 || input->input->needs_rest(), num_rows, taken_rows};
  else if (taken_rows != input->refused.taken_rows) input->input->LoseRows();
  return status;
}

// Adds a batch slice by slice, from the first row that an earlier call did not add; append(first_row, num_rows,
// &is_too_large, &taken_rows) adds a slice. Slices end at the same rows in each call. One whose strings are too large
// for the memory limit is halved, and so are the next ones; those of later batches try twice as many rows.
template <class AppendSlice>
absl::Status AppendSlices(quern_input* input, uint64_t num_rows, AppendSlice&& append) {
  if (input->refused.is_held && input->refused.num_rows != num_rows) {
    return absl::FailedPreconditionError(
        "batch of " + std::to_string(num_rows) + " rows after a refused append: a part of another batch is in the " +
        HolderOf(*input) + "; accepted: the refused batch, of " + std::to_string(input->refused.num_rows) + " rows");
  }
  uint64_t slice_rows = input->kept == Kept::kBatch ? std::max<uint64_t>(num_rows, 1) : input->slice_rows;
  uint64_t row = input->refused.taken_rows;
  do {
    const uint64_t n = std::min(slice_rows - row % slice_rows, num_rows - row);
    uint64_t taken_rows = 0;
    bool is_too_large = false;
    const absl::Status status = WithoutBadAlloc([&] { return append(row, n, &is_too_large, &taken_rows); });
    if (is_too_large) {
      while (slice_rows >= n) slice_rows /= 2;
      input->slice_rows = slice_rows;
      continue;
    }
    if (!status.ok()) return AfterSlice(status, num_rows, row + taken_rows, input);
    row += n;
  } while (row < num_rows);
  input->refused = {};
  input->slice_rows = std::min(2 * input->slice_rows, thresholds::kMorselRows);
  return absl::OkStatus();
}

// Makes a view, which may take memory that the input can free.
template <class MakeView>
absl::StatusOr<HostBatchView> FreeingMemory(quern_input* input, const bool* is_too_large, MakeView&& make_view) {
  absl::StatusOr<HostBatchView> made = make_view();
  while (absl::IsResourceExhausted(made.status()) && !*is_too_large) {
    QUERN_RETURN_IF_ERROR(input->input->FreeMemory(made.status()));
    made = make_view();
  }
  return made;
}

StringMemory StringMemoryOf(quern_input* input, bool* is_too_large) {
  const std::shared_ptr<MemoryBudget>& budget = input->job->budget;
  const uint64_t most_bytes = budget == nullptr ? 0 : budget->limit_bytes() / thresholds::kCopiedStringsShare;
  return {budget, input->copies_strings, &input->string_pages, input->port->held_key_bytes, most_bytes, is_too_large};
}

absl::Status AppendSlice(quern_input* input, const quern_batch& batch, bool* is_too_large, uint64_t* taken_rows) {
  const BatchTypes& types = input->port->types;
  const StringMemory strings = StringMemoryOf(input, is_too_large);
  QUERN_ASSIGN_OR_RETURN(HostBatchView view, FreeingMemory(input, is_too_large, [&] {
                           return ViewOfHostBatch(batch, types.keys, types.payload, input->port->name, strings);
                         }));
  const std::shared_ptr<const void> needed_for_this_call = view.batch.owner;
  if (input->kept != Kept::kBatch) view.batch.owner = view.strings;
  view.batch.owns_strings = input->copies_strings;
  return input->input->Append(view.batch, taken_rows);
}

// ---- results ----

quern_column ResultColumn(const QuernOutColumn& column, const ColumnType& type) {
  const Storage storage = RowOf(type.id).storage;
  quern_column result = {};
  result.validity = column.validity;
  const bool has_offsets = storage == kVar32 || storage == kVar64;
  result.values = has_offsets ? column.bytes : column.values;
  result.offsets = has_offsets ? OffsetsOf(column) : nullptr;
  result.buffers = storage == kView ? &column.bytes : nullptr;
  result.num_bytes = column.num_bytes;
  result.null_count = column.null_count;
  return result;
}

// Row ids of 4 bytes take the place of those of 8. Those of null rows may be anything, and become 0.
absl::Status NarrowRowIds(const OutputBatch& rows, const QuernOutColumn& column) {
  const auto* const wide = static_cast<const uint8_t*>(column.values);
  auto* const narrow = static_cast<uint8_t*>(column.values);
  for (uint64_t row = 0; row < rows.num_rows(); ++row) {
    uint64_t id = blocks::LoadAt<uint64_t>(wide, row);
    if (column.validity != nullptr && !blocks::Bit(column.validity, row)) id = 0;
    if (id > UINT32_MAX) {
      return absl::OutOfRangeError("row id beyond 32 bits: " + std::to_string(id) +
                                   "; accepted: below 4294967296, or row_id_bytes 8");
    }
    blocks::Store(narrow + row * sizeof(uint32_t), static_cast<uint32_t>(id));
  }
  return absl::OkStatus();
}

absl::Status NarrowRowIds(OutputBatch* rows) {
  for (size_t i = 0; i < rows->num_columns(); ++i)
    if (rows->type(i).id == TypeId::kRowId) QUERN_RETURN_IF_ERROR(NarrowRowIds(*rows, rows->column(i)));
  return absl::OkStatus();
}

absl::Status EmptyRows(OutputBatch* rows) {
  QUERN_RETURN_IF_ERROR(rows->Reset());
  rows->set_num_rows(0);
  return absl::OkStatus();
}

}  // namespace

std::string PortText(const quern_port& port) {
  const uint32_t number = NumberOf(port);
  return number < std::size(kPortNames) ? kPortNames[number] : std::to_string(number);
}

absl::StatusOr<quern_port> PortOf(const quern_port& port) {
  const uint32_t number = NumberOf(port);
  if (number < std::size(kPortNames)) return port;
  return InvalidArgument("unknown port: " + std::to_string(number) + "; accepted: 0 to " +
                         std::to_string(std::size(kPortNames) - 1));
}

absl::Status CheckBatch(const quern_batch* batch) {
  constexpr size_t kBatchSize = sizeof(quern_batch);  // in version 2.0
  if (batch == nullptr) return MissingArgument("batch");
  if (batch->struct_size == 0) return absl::OkStatus();
  return CheckStructSize(batch->struct_size, kBatchSize, kBatchSize, batch + 1);
}

bool HasStrings(const BatchTypes& types) {
  const auto is_string = [](const ColumnType& type) { return IsVariable(RowOf(type.id).storage); };
  return std::any_of(types.keys.begin(), types.keys.end(), is_string) ||
         std::any_of(types.payload.begin(), types.payload.end(), is_string);
}

absl::Status CheckBatchRows(uint64_t batch_rows) {
  constexpr uint64_t kMaxResultRows = INT32_MAX;
  if (batch_rows <= kMaxResultRows) return absl::OkStatus();
  return InvalidArgument("batch_rows out of range: " + std::to_string(batch_rows) + "; accepted: 0 to " +
                         std::to_string(kMaxResultRows));
}

std::unique_ptr<OutputBatch> NewResults(std::vector<ColumnType> types, uint64_t batch_rows,
                                        std::shared_ptr<MemoryBudget> budget) {
  const uint64_t limit = budget == nullptr ? 0 : budget->limit_bytes();
  if (limit != 0) {
    const uint64_t most_rows = limit / thresholds::kResultShareOfLimit / std::max<uint64_t>(RowBytesOf(types), 1);
    batch_rows = std::min(batch_rows, std::max(most_rows, thresholds::kFewestResultRows));
  }
  auto results = std::make_unique<OutputBatch>(std::move(types), batch_rows, std::move(budget));
  results->SetFewestRows(thresholds::kFewestResultRows);
  return results;
}

// A table of few rows needs only small results.
uint64_t ResultRows(uint64_t batch_rows, uint64_t num_rows) { return std::clamp<uint64_t>(num_rows, 1, batch_rows); }

// ---- jobs -----------------------------------------------------------------------------------------------------------

Job::Job(const CompiledKernel& compiled, const quern_job_options& options, const char* job_name)
    : name(job_name),
      kernel(compiled.kernel),
      cache(compiled.cache),
      budget(std::make_shared<MemoryBudget>(options.memory_limit, AccountOf(options))),
      stop(std::make_shared<StopFlag>(options.stop)),
      has_narrow_row_ids(options.row_id_bytes == 4) {}

Job::Job(const Job& end, const char* job_name)
    : name(job_name),
      kernel(end.kernel),
      cache(end.cache),
      budget(end.budget),
      stop(end.stop),
      has_narrow_row_ids(end.has_narrow_row_ids) {}

PortColumns* Job::FindPort(quern_port port) {
  const auto found =
      std::find_if(ports.begin(), ports.end(), [&](const PortColumns& columns) { return columns.port == port; });
  return found == ports.end() ? nullptr : &*found;
}

absl::Status Job::NoSuchPort(quern_port port, const char* accepted) const {
  return InvalidArgument("port that the " + std::string(name) + " does not have here: " + PortText(port) +
                         "; accepted: " + accepted);
}

// Jobs without rows of their own: what is wrong is still said.
absl::Status Job::Spill(const quern_spill_options& options, void* host) {
  return SpillOf(options, host, budget, MakeSpillSettings(kernel->plan)).status();
}

absl::StatusOr<std::unique_ptr<JobInput>> Job::NewInput(quern_port port, const InputOptions& /*options*/) {
  return NoSuchPort(port, "none, as it has no inputs");
}

absl::StatusOr<std::unique_ptr<JobOutput>> Job::NewOutput(quern_port port, const OutputOptions& /*options*/) {
  return NoSuchPort(port, "none, as it has no outputs");
}

absl::StatusOr<std::vector<ResultField>> Job::FieldsBehindProbe(const PortBinding& /*probe*/) const {
  return NoSuchPort(QUERN_PORT_PROBE, "a join");
}

absl::StatusOr<std::vector<ResultField>> Job::ResultFields(quern_port port) const {
  return NoSuchPort(port, "none, as it has no outputs");
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): outputs that take batches keep them
absl::Status JobOutput::Push(BatchView /*batch*/, const BatchTypes& /*rows_of*/) {
  return InvalidArgument("batch for an output that takes none; accepted: an output of QUERN_PORT_PROBE, or of a map");
}

// ---- jobs with a sink -----------------------------------------------------------------------------------------------

std::unique_ptr<JobInput> SinkJob::NewSinkInput(RowKind kind) {
  return std::make_unique<SinkJobInput>(std::static_pointer_cast<SinkJob>(shared_from_this()), kind);
}

absl::Status SinkJob::Spill(const quern_spill_options& options, void* host) {
  QUERN_ASSIGN_OR_RETURN(std::shared_ptr<SpillContext> spill,
                         SpillOf(options, host, budget, MakeSpillSettings(kernel->plan)));
  sink->SetSpill(std::move(spill));
  return absl::OkStatus();
}

absl::Status SinkJob::CheckInputs() const {
  const int64_t num_open = num_open_inputs;
  if (num_open == 0) return absl::OkStatus();
  return absl::FailedPreconditionError("work before all inputs have finished: " + std::to_string(num_open) +
                                       " with rows; accepted: after quern_input_finish of each");
}

absl::StatusOr<WorkState> SinkJob::Work() {
  QUERN_RETURN_IF_ERROR(CheckInputs());
  return sink->Work();
}

absl::Status SinkJob::Finalise() {
  QUERN_RETURN_IF_ERROR(CheckInputs());
  return sink->Finalise();
}

absl::Status SinkJob::CheckDone() const {
  if (sink->is_finalised()) return absl::OkStatus();
  return absl::FailedPreconditionError("output before all work is done: the " + std::string(name) +
                                       " still has work; accepted: after quern_job_finalise, or QUERN_WORK_DONE");
}

// ---- handles --------------------------------------------------------------------------------------------------------

StringPages StringPagesOf(const Job& job) { return StringPages(job.kernel->plan.huge_pages == HugePages::kOn); }

absl::StatusOr<std::unique_ptr<quern_input>> NewInput(const std::shared_ptr<Job>& job, quern_port port,
                                                      const InputOptions& options) {
  QUERN_ASSIGN_OR_RETURN(std::unique_ptr<JobInput> made, job->NewInput(port, options));
  const Kept kept = job->kept(port);
  return std::make_unique<quern_input>(quern_input{.job = job,
                                                   .port = job->FindPort(port),
                                                   .kept = kept,
                                                   .copies_strings = options.copy_bytes && kept == Kept::kStrings,
                                                   .string_pages = StringPagesOf(*job),
                                                   .input = std::move(made)});
}

absl::StatusOr<std::unique_ptr<quern_output>> NewOutput(const std::shared_ptr<Job>& job, quern_port port,
                                                        const OutputOptions& options) {
  QUERN_ASSIGN_OR_RETURN(std::unique_ptr<JobOutput> made, job->NewOutput(port, options));
  PortColumns* const columns = job->TakesBatches(port) ? job->FindPort(port) : nullptr;
  return std::make_unique<quern_output>(quern_output{.job = job, .port = columns, .output = std::move(made)});
}

absl::Status AppendHostBatch(quern_input* input, const quern_batch& batch) {
  if (!input->refused.is_held && (input->kept == Kept::kBatch || batch.num_rows <= input->slice_rows)) {
    uint64_t taken_rows = 0;
    bool is_too_large = false;
    const absl::Status status = WithoutBadAlloc([&] { return AppendSlice(input, batch, &is_too_large, &taken_rows); });
    if (!is_too_large) return status.ok() ? status : AfterSlice(status, batch.num_rows, taken_rows, input);
  }
  QUERN_RETURN_IF_ERROR(CheckNumRows(batch.num_rows));
  return AppendSlices(input, batch.num_rows, [&](uint64_t first_row, uint64_t n, bool* is_too_large, uint64_t* taken) {
    if (n == batch.num_rows) return AppendSlice(input, batch, is_too_large, taken);
    const BatchTypes& types = input->port->types;
    const BatchSlice slice(batch, types.keys, types.payload, first_row, n);
    return AppendSlice(input, slice.batch(), is_too_large, taken);
  });
}

absl::Status AppendImportedSlice(quern_input* input, const BatchView& batch, bool* is_too_large, uint64_t* taken_rows) {
  if (!input->copies_strings) return input->input->Append(batch, taken_rows);
  const BatchTypes& types = input->port->types;
  const StringMemory strings = StringMemoryOf(input, is_too_large);
  QUERN_ASSIGN_OR_RETURN(HostBatchView view, FreeingMemory(input, is_too_large, [&] {
                           return WithCopiedStrings(batch, types.keys, types.payload, input->port->name, strings);
                         }));
  const std::shared_ptr<const void> needed_for_this_call = view.batch.owner;
  view.batch.owner = view.strings;
  view.batch.owns_strings = true;
  return input->input->Append(view.batch, taken_rows);
}

absl::Status AppendImported(quern_input* input, const BatchView& batch) {
  return AppendSlices(input, batch.num_rows, [&](uint64_t first_row, uint64_t n, bool* is_too_large, uint64_t* taken) {
    if (n == batch.num_rows) return AppendImportedSlice(input, batch, is_too_large, taken);
    const BatchTypes& types = input->port->types;
    return AppendImportedSlice(input, SliceOf(batch, types.keys, types.payload, first_row, n), is_too_large, taken);
  });
}

absl::Status CheckWhole(const quern_input& input, const char* call) {
  if (!input.refused.is_held) return absl::OkStatus();
  return absl::FailedPreconditionError(std::string(call) + " after a refused append: a part of the batch is in the " +
                                       HolderOf(input) + "; accepted: the same batch again, or quern_input_destroy");
}

absl::Status PushHostBatch(quern_output* output, const quern_batch& batch) {
  if (output->port == nullptr) return output->output->Push({}, {});
  const BatchTypes& types = output->port->types;
  QUERN_ASSIGN_OR_RETURN(HostBatchView view,
                         ViewOfHostBatch(batch, types.keys, types.payload, output->port->name, {output->job->budget}));
  if (view.strings != nullptr) {  // the converted columns and their strings live as long as the batch is read
    auto owners = std::make_shared<std::pair<std::shared_ptr<const void>, std::shared_ptr<const void>>>(
        std::move(view.batch.owner), std::move(view.strings));
    view.batch.owner = std::move(owners);
  }
  return output->output->Push(std::move(view.batch), types);
}

absl::Status NextRows(quern_output* handle) {
  JobOutput& output = *handle->output;
  QUERN_RETURN_IF_ERROR(handle->job->stop->Check());
  output.result = {};
  if (!output.state) {
    return absl::FailedPreconditionError("result after a failure: rows are lost; accepted: " +
                                         std::string(handle->port == nullptr ? "a new job" : "a new batch"));
  }
  if (*output.state == QUERN_RESULT_DONE) {
    QUERN_RETURN_IF_ERROR(EmptyRows(output.rows.get()));
    output.result.state = QUERN_RESULT_DONE;
    return absl::OkStatus();
  }
  output.state.reset();
  QUERN_ASSIGN_OR_RETURN(const quern_result_state state, output.Fill(&output.result));
  if (handle->job->has_narrow_row_ids) QUERN_RETURN_IF_ERROR(NarrowRowIds(output.rows.get()));
  output.state = state;
  output.result.state = *output.state;
  output.result.num_rows = output.rows->num_rows();
  return absl::OkStatus();
}

absl::Status NextResult(quern_output* handle) {
  QUERN_RETURN_IF_ERROR(NextRows(handle));
  JobOutput& output = *handle->output;
  output.columns.clear();
  output.columns.reserve(output.rows->num_columns());
  for (size_t i = 0; i < output.rows->num_columns(); ++i)
    output.columns.push_back(ResultColumn(output.rows->column(i), output.rows->type(i)));
  output.result.num_columns = output.columns.size();
  output.result.columns = output.columns.empty() ? nullptr : output.columns.data();
  return absl::OkStatus();
}

}  // namespace quern::c_abi
