// SPDX-License-Identifier: Apache-2.0
// The objects behind quern_job, quern_input and quern_output. Internal: quern.h is the interface.
//
// What all operators share stands in job.cc (ports, batches, results), port_arrow.cc (Arrow), job_calls.cc (the
// functions of the ABI) and job_run.cc (threads of the library). An operator supplies a Job with its inputs and
// outputs:
//
//     jobs/   join_job.cc   aggregate_job.cc   set_job.cc   sort_job.cc   merge_job.cc   filter_job.cc   map_job.cc
//             pipeline_job.cc: several of them, by the spec of a pipeline
#ifndef QUERN_HOSTS_C_JOB_H_
#define QUERN_HOSTS_C_JOB_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/compiler.h"
#include "codegen/operators.h"
#include "codegen/pipeline_compiler.h"
#include "hosts/c/arrow_fields.h"
#include "hosts/c/boundary.h"
#include "hosts/c/column_memory.h"
#include "hosts/c/kernel_handle.h"
#include "hosts/c/quern.h"
#include "runtime/base/memory.h"
#include "runtime/base/stop_flag.h"
#include "runtime/base/thresholds.h"
#include "runtime/filter/row_filter.h"
#include "runtime/rows/arrow_import.h"
#include "runtime/rows/batch_view.h"
#include "runtime/rows/output_batch.h"
#include "runtime/sink/sink.h"

namespace quern {
class HashJoin;
class RowMapper;
}  // namespace quern

namespace quern::c_abi {

constexpr uint64_t kDefaultBatchRows = 65536;

// The columns of an input batch.
struct BatchTypes {
  std::vector<ColumnType> keys;
  std::vector<ColumnType> payload;
};
// Whether there are strings or binaries among them: stored rows may then point to bytes outside themselves.
bool HasStrings(const BatchTypes& types);

// Where Arrow batches have the columns of a port.
struct PortBinding {
  ColumnBinding children;
  std::vector<BoundField> keys, payload;
};

// The batches that enter by one port.
struct PortColumns {
  quern_port port;
  const char* name;  // in errors: "build"
  BatchTypes types;
  bool by_position = false;     // Arrow arrays have the keys, then the payload, and need no binding
  uint32_t held_key_bytes = 0;  // of a string or binary that is a key: up to so many are stored in the row itself
  std::optional<PortBinding> binding = std::nullopt;
};

// What a job goes on reading of a batch after the call that handed it in.
enum class Kept : uint8_t {
  kNothing,
  kStrings,  // the bytes of long strings
  kBatch,    // all vectors
};

struct InputOptions {
  uint32_t run = 0;
  bool copy_bytes = false;
  void* context = nullptr;  // of a pipeline: for functions of the host
};

struct OutputOptions {
  uint64_t batch_rows = kDefaultBatchRows;
  uint32_t partition = 0;
  uint32_t num_partitions = 1;
  void* context = nullptr;  // of a join's residual
};

// A batch of which a part was added before memory was refused.
struct RefusedBatch {
  bool is_held = false;  // there is one
  uint64_t num_rows = 0;
  uint64_t taken_rows = 0;  // the first ones, which are in the job
};

// *Threads*: one at a time.
class JobInput {
 public:
  virtual ~JobInput() = default;
  // *Errors*: FailedPrecondition where no row may be added; `call` is the name in the text.
  virtual absl::Status CheckOpen(const char* call) const = 0;
  // taken_rows: receives how many rows of the batch were added, its first ones; set also by a call that fails.
  virtual absl::Status Append(const BatchView& batch, uint64_t* taken_rows) = 0;
  // For memory that a batch needs before it is appended: as LocalState::FreeMemory.
  virtual absl::Status FreeMemory(const absl::Status& refused) { return refused; }
  // After ResourceExhausted: whether a part of the batch is in the job.
  virtual bool needs_rest() const { return false; }
  virtual absl::Status Finish() = 0;
  // Marks the job as missing rows, after a part of a batch.
  virtual void LoseRows() {}
  virtual uint64_t num_groups() const { return 0; }
  // Whether rows go to a function of the host, and none to the job.
  virtual bool ends_in_host() const { return false; }
};

// The rows of an output's results, up to batch_rows. Under a limit they are fewer where they would take more than a
// share of it, and where memory is refused.
std::unique_ptr<OutputBatch> NewResults(std::vector<ColumnType> types, uint64_t batch_rows,
                                        std::shared_ptr<MemoryBudget> budget);

// *Threads*: one at a time.
class JobOutput {
 public:
  JobOutput(std::vector<ColumnType> types, uint64_t batch_rows, std::shared_ptr<MemoryBudget> budget)
      : rows(NewResults(std::move(types), batch_rows, std::move(budget))) {}
  virtual ~JobOutput() = default;

  // Starts a batch, which `rows_of` describes. *Errors*: InvalidArgument for an output that takes none.
  virtual absl::Status Push(BatchView batch, const BatchTypes& rows_of);
  // Fills `rows` and the members run and position of `result`; returns its state.
  virtual absl::StatusOr<quern_result_state> Fill(quern_result* result) = 0;

  std::unique_ptr<OutputBatch> rows;
  quern_result result = {};
  std::vector<quern_column> columns;                            // of the result
  std::optional<quern_result_state> state = QUERN_RESULT_MORE;  // of the last call; empty after a failure
};

// *Threads*: members are written before inputs and outputs exist, and only read from then on.
class Job : public std::enable_shared_from_this<Job> {
 public:
  Job(const CompiledKernel& compiled, const quern_job_options& options, const char* job_name);
  // One whose rows another job takes: with that one's kernel, memory and flag.
  Job(const Job& end, const char* job_name);
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  virtual ~Job() = default;

  // *Errors*: InvalidArgument for a port that has none.
  virtual absl::StatusOr<std::unique_ptr<JobInput>> NewInput(quern_port port, const InputOptions& options);
  virtual absl::StatusOr<std::unique_ptr<JobOutput>> NewOutput(quern_port port, const OutputOptions& options);

  virtual absl::StatusOr<WorkState> Work() { return WorkState::kDone; }
  virtual absl::Status Finalise() { return absl::OkStatus(); }

  // Before the first row. host: of the job's options. *Errors*: InvalidArgument for options that are not accepted.
  virtual absl::Status Spill(const quern_spill_options& options, void* host);

  virtual Kept kept(quern_port /*port*/) const { return Kept::kBatch; }
  // Called when a port has been bound. *Errors*: InvalidArgument for schemas that do not fit each other.
  virtual absl::Status CheckBindings() const { return absl::OkStatus(); }
  // Called before ResultFields, by any thread: binds ports whose fields come from those of another port.
  // *Errors*: FailedPrecondition where something that they depend on is not bound.
  virtual absl::Status BindDependentPorts() { return absl::OkStatus(); }
  // The fields behind the probe of a join whose build side is bound, for probe batches of these fields.
  virtual absl::StatusOr<std::vector<ResultField>> FieldsBehindProbe(const PortBinding& probe) const;
  // The fields of an output's arrays; all ports are bound. *Errors*: InvalidArgument for a port without fields.
  virtual absl::StatusOr<std::vector<ResultField>> ResultFields(quern_port port) const;
  // Whether rows that enter, or leave, by a port make sense only to libraries of the same format number.
  virtual bool reads_format(quern_port /*port*/) const { return false; }
  virtual bool writes_format(quern_port /*port*/) const { return false; }
  virtual void FillStats(quern_job_stats* /*stats*/) const {}
  // Announces the rows of a run to the kernels that see all of them.
  virtual void ExpectRows(uint64_t num_rows, uint32_t threads) const { c_abi::ExpectRows(*kernel, num_rows, threads); }
  // Where it writes rows; null: nowhere.
  virtual const SpillContext* spill() const { return nullptr; }
  virtual Counters counters() const = 0;
  virtual const char* prefetch_class() const { return "off"; }
  virtual const RowFilter* filter() const { return nullptr; }
  virtual const HashJoin* hash_join() const { return nullptr; }
  // The job that has the table of hash_join().
  virtual std::shared_ptr<Job> JobOfTable() { return shared_from_this(); }
  // Of the operator that reads the rows of its input port; null for a pipeline, whose steps read them.
  virtual const KernelSpec* SpecOfRows() const { return &kernel->plan.spec; }
  virtual const RowMapper* mapper() const { return nullptr; }
  // Whether outputs of the port take batches (quern_output_push).
  virtual bool TakesBatches(quern_port port) const { return port == QUERN_PORT_PROBE; }
  // Whether rows have partitions by the keys of the port (quern_job_partition).
  virtual bool HasPartitions(quern_port /*port*/) const { return false; }

  // Null where no batches enter by the port.
  virtual PortColumns* FindPort(quern_port port);
  const PortColumns* FindPort(quern_port port) const { return const_cast<Job*>(this)->FindPort(port); }
  absl::Status NoSuchPort(quern_port port, const char* accepted) const;

  const char* const name;  // in errors: "join"
  const std::shared_ptr<const Kernel> kernel;
  const CacheOutcome cache;  // of the kernel, when the job was made
  const std::shared_ptr<MemoryBudget> budget;
  const std::shared_ptr<StopFlag> stop;
  const bool has_narrow_row_ids;  // those that come out have 4 bytes
  std::vector<PortColumns> ports;

  // Of rows that come through pipelines without ids: the id of the next one, over all inputs of the job.
  std::atomic<uint64_t> next_source_row{0};
  // Of a join that has rows for QUERN_PORT_UNMATCHED: the inputs of pipelines that probe it, have rows, and are neither
  // finished nor destroyed; the outputs of QUERN_PORT_UNMATCHED that there have been. A thread that begins an input or
  // makes an output raises its own number first and then reads the other one. Where that is not 0, it lowers its own
  // number again and refuses. So of two that come at the same time, at most one goes on.
  std::atomic<int64_t> num_open_pipelines{0};
  std::atomic<int64_t> num_unmatched_outputs{0};
};

// A job with a sink: joins, aggregations, sorts.
class SinkJob : public Job {
 public:
  using Job::Job;

  absl::StatusOr<WorkState> Work() override;
  absl::Status Finalise() override;
  absl::Status Spill(const quern_spill_options& options, void* host) override;
  const SpillContext* spill() const override { return sink->spill().get(); }
  Counters counters() const override { return sink->counters(); }

  // The inputs that have rows and are neither finished nor destroyed.
  std::atomic<int64_t> num_open_inputs{0};
  std::shared_ptr<Sink> sink;

 protected:
  void SetSink(std::shared_ptr<Sink> made) {
    sink = std::move(made);
    sink->SetStopFlag(stop);
  }
  std::unique_ptr<JobInput> NewSinkInput(RowKind kind);
  // *Errors*: FailedPrecondition before all work is done.
  absl::Status CheckDone() const;

 private:
  absl::Status CheckInputs() const;
};

// ---- the operators' jobs; the kernel's operator has been checked ----

using NewJobResult = absl::StatusOr<std::shared_ptr<Job>>;
NewJobResult NewJob(const JoinSpec& spec, const CompiledKernel& compiled, const quern_job_options& options);
NewJobResult NewJob(const AggregationSpec& spec, const CompiledKernel& compiled, const quern_job_options& options);
// With num_runs a merge.
NewJobResult NewJob(const SortSpec& spec, const CompiledKernel& compiled, const quern_job_options& options);
NewJobResult NewMergeJob(const SortSpec& spec, const CompiledKernel& compiled, const quern_job_options& options);
NewJobResult NewJob(const SetSpec& spec, const CompiledKernel& compiled, const quern_job_options& options);
NewJobResult NewJob(const FilterSpec& spec, const CompiledKernel& compiled, const quern_job_options& options);
NewJobResult NewJob(const MapSpec& spec, const CompiledKernel& compiled, const quern_job_options& options);
// options: `tables` are handles.
NewJobResult NewPipelineJob(const CompiledPipeline& compiled, const quern_job_options& options);

// ---- what they share ----

// "QUERN_PORT_ROWS"
std::string PortText(const quern_port& port);
// Checks a caller's enum. *Errors*: InvalidArgument for a number that is no port.
absl::StatusOr<quern_port> PortOf(const quern_port& port);
// *Errors*: InvalidArgument for a missing batch, or one of another size.
absl::Status CheckBatch(const quern_batch* batch);

// *Errors*: InvalidArgument for more rows than a result may have.
absl::Status CheckBatchRows(uint64_t batch_rows);
// The rows of an output's results: as many as wanted, and no more than there are.
uint64_t ResultRows(uint64_t batch_rows, uint64_t num_rows);

// ---- calls on handles ----

// For the copies of an input's strings.
StringPages StringPagesOf(const Job& job);

absl::StatusOr<std::unique_ptr<quern_input>> NewInput(const std::shared_ptr<Job>& job, quern_port port,
                                                      const InputOptions& options);
absl::StatusOr<std::unique_ptr<quern_output>> NewOutput(const std::shared_ptr<Job>& job, quern_port port,
                                                        const OutputOptions& options);
// *Errors*: of ResourceExhausted the input remembers how many rows were added; it takes the same batch again, from the
// first row that was not.
absl::Status AppendHostBatch(quern_input* input, const quern_batch& batch);
absl::Status AppendImported(quern_input* input, const BatchView& batch);
// *Errors*: FailedPrecondition while a batch that was refused in part has not been appended again.
absl::Status CheckWhole(const quern_input& input, const char* call);
absl::Status PushHostBatch(quern_output* output, const quern_batch& batch);
// Fills the output's rows; the members num_rows, state, run and position of its result are set.
absl::Status NextRows(quern_output* output);
// The same, with columns.
absl::Status NextResult(quern_output* output);

}  // namespace quern::c_abi

struct quern_job {
  std::shared_ptr<quern::c_abi::Job> job;
};

struct quern_input {
  std::shared_ptr<quern::c_abi::Job> job;
  quern::c_abi::PortColumns* port;
  quern::c_abi::Kept kept;
  bool copies_strings;
  quern::c_abi::StringPages string_pages;  // of the copies
  std::unique_ptr<quern::c_abi::JobInput> input;
  quern::c_abi::RefusedBatch refused = {};
  // Of a large batch, that are added at a time: fewer where their strings are too large for the memory limit.
  uint64_t slice_rows = quern::thresholds::kMorselRows;
};

struct quern_output {
  std::shared_ptr<quern::c_abi::Job> job;
  quern::c_abi::PortColumns* port;  // of the batches that it takes; null if it takes none
  std::unique_ptr<quern::c_abi::JobOutput> output;
};

#endif  // QUERN_HOSTS_C_JOB_H_
