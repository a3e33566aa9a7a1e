// SPDX-License-Identifier: Apache-2.0
// Merges of sorted runs as jobs: an input for each run, one output of rows in order.
//
// The host drives the merge; its runs come from sorts, files or other machines. Example: `sort keys=i32:out`, two runs
// of two batches each:
//
//     run 0   2 5 | 9       run 1   3 4 | 6
//
//     quern_output_next    needs run 0          the host hands in  2 5
//     quern_output_next    needs run 1          the host hands in  3 4
//     quern_output_next    2 3 4, needs run 1   5 may not come out yet: run 1 may go on with a 4.  The host hands in  6
//     quern_output_next    5, needs run 0       ..
//
// A batch is read in place until its run needs the next one. Until then an Arrow array is kept, and so is what had to
// be made to read a host's vectors. An input may finish at once after its last batch: its run ends when that is used
// up.
#include <string>
#include <vector>

#include "hosts/c/arrow_fields.h"
#include "hosts/c/job.h"
#include "hosts/c/jobs/row_columns.h"
#include "runtime/base/status.h"
#include "runtime/sort/run_merger.h"
#include "runtime/spec/spec_text.h"

namespace quern::c_abi {

PortColumns RowColumns(const SortSpec& spec) {
  PortColumns columns = {QUERN_PORT_ROWS, "input", {}};
  for (const KeySpec& key : spec.keys) columns.types.keys.push_back(key.type);
  columns.types.payload = spec.payload;
  return columns;
}

std::vector<ResultField> RowFields(const SortSpec& spec, const PortBinding& binding) {
  const std::vector<ColumnType> types = SortOutputTypes(spec);
  std::vector<ResultField> fields;
  const auto add = [&](const ColumnType& type, const BoundField& bound) {
    fields.push_back(FieldOf(bound, type, "rowid", types[fields.size()].nullable));
  };
  for (size_t i = 0; i < spec.keys.size(); ++i) {
    if (spec.keys[i].out) add(spec.keys[i].type, binding.keys[i]);
  }
  for (size_t i = 0; i < spec.payload.size(); ++i) add(spec.payload[i], binding.payload[i]);
  for (const WindowFunction function : spec.window) fields.push_back({PrintItem(function), "L", false});
  return fields;
}

namespace {

constexpr uint32_t kMaxRuns = 65536;

// *Threads*: all handles of a merge are used by one thread at a time.
struct Merge {
  std::unique_ptr<RunMerger> merger;
  bool failed = false;         // rows are lost
  std::vector<bool> finished;  // by run: its last batch has come

  absl::Status CheckNoFailure() const {
    if (!failed) return absl::OkStatus();
    return absl::FailedPreconditionError("rows after a failure: some of them are lost; accepted: a new merge");
  }
};

class RunInput final : public JobInput {
 public:
  RunInput(std::shared_ptr<Merge> merge, uint32_t run) : merge_(std::move(merge)), run_(run) {}

  absl::Status CheckOpen(const char* /*call*/) const override { return merge_->CheckNoFailure(); }
  absl::Status Append(const BatchView& batch, uint64_t* /*taken_rows*/) override {
    QUERN_RETURN_IF_ERROR(CheckNotFinished());
    return merge_->merger->Input(run_, batch);
  }
  absl::Status Finish() override {
    QUERN_RETURN_IF_ERROR(merge_->CheckNoFailure());
    QUERN_RETURN_IF_ERROR(CheckNotFinished());
    merge_->finished[run_] = true;
    merge_->merger->End(run_).IgnoreError();  // refused while the run has rows left: the output ends it
    return absl::OkStatus();
  }

 private:
  absl::Status CheckNotFinished() const {
    if (!merge_->finished[run_]) return absl::OkStatus();
    return absl::FailedPreconditionError("input after the run's end: run " + std::to_string(run_) +
                                         "; accepted: runs that need input");
  }

  std::shared_ptr<Merge> merge_;
  const uint32_t run_;
};

class MergedOutput final : public JobOutput {
 public:
  MergedOutput(std::shared_ptr<Merge> merge, const SortSpec& spec, uint64_t batch_rows,
               std::shared_ptr<MemoryBudget> budget)
      : JobOutput(SortOutputTypes(spec), batch_rows, std::move(budget)), merge_(std::move(merge)) {}

  absl::StatusOr<quern_result_state> Fill(quern_result* filled) override {
    QUERN_RETURN_IF_ERROR(merge_->CheckNoFailure());
    RunMerger& merger = *merge_->merger;
    while (true) {
      merge_->failed = true;
      QUERN_ASSIGN_OR_RETURN(const MergeState found, merger.Next(rows.get()));
      merge_->failed = false;
      if (found == MergeState::kRows) return QUERN_RESULT_MORE;
      if (found == MergeState::kDone) return QUERN_RESULT_DONE;
      filled->run = merger.needed_run();
      if (!merge_->finished[filled->run]) return QUERN_RESULT_NEEDS_INPUT;
      QUERN_RETURN_IF_ERROR(merger.End(filled->run));
      filled->run = 0;
      if (rows->num_rows() != 0) return QUERN_RESULT_MORE;
    }
  }

 private:
  std::shared_ptr<Merge> merge_;
};

class MergeJob final : public Job {
 public:
  MergeJob(const SortSpec& spec, const CompiledKernel& compiled, const quern_job_options& options)
      : Job(compiled, options, "merge"), spec_(spec), num_runs_(options.num_runs), merge_(std::make_shared<Merge>()) {
    merge_->merger = MakeRunMerger(kernel, budget, num_runs_);
    merge_->finished.resize(num_runs_);
    ports.push_back(RowColumns(spec_));
  }

  absl::StatusOr<std::unique_ptr<JobInput>> NewInput(quern_port port, const InputOptions& options) override {
    if (port != QUERN_PORT_ROWS) return NoSuchPort(port, "QUERN_PORT_ROWS");
    if (options.run < num_runs_) return std::make_unique<RunInput>(merge_, options.run);
    return InvalidArgument("run out of range: " + std::to_string(options.run) + "; accepted: 0 to " +
                           std::to_string(num_runs_ - 1));
  }

  absl::StatusOr<std::unique_ptr<JobOutput>> NewOutput(quern_port port, const OutputOptions& options) override {
    if (port != QUERN_PORT_ROWS) return NoSuchPort(port, "QUERN_PORT_ROWS");
    return std::make_unique<MergedOutput>(merge_, spec_, options.batch_rows, budget);
  }

  bool reads_format(quern_port port) const override { return port == QUERN_PORT_ROWS; }
  bool writes_format(quern_port port) const override { return port == QUERN_PORT_ROWS; }
  absl::StatusOr<std::vector<ResultField>> ResultFields(quern_port port) const override {
    if (port != QUERN_PORT_ROWS) return NoSuchPort(port, "QUERN_PORT_ROWS");
    return RowFields(spec_, *ports.front().binding);
  }

  Counters counters() const override { return merge_->merger->counters(); }

 private:
  const SortSpec& spec_;  // of the kernel
  const uint32_t num_runs_;
  std::shared_ptr<Merge> merge_;
};

}  // namespace

NewJobResult NewMergeJob(const SortSpec& spec, const CompiledKernel& compiled, const quern_job_options& options) {
  if (!spec.window.empty()) {
    return InvalidArgument("window function of a merge: " + PrintItem(spec.window.front()) +
                           "; accepted: a spec without window");
  }
  if (options.num_runs > kMaxRuns) {
    return InvalidArgument("num_runs out of range: " + std::to_string(options.num_runs) + "; accepted: 1 to " +
                           std::to_string(kMaxRuns) + ", or 0 for a sort");
  }
  return std::make_shared<MergeJob>(spec, compiled, options);
}

}  // namespace quern::c_abi
