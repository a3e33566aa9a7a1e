// SPDX-License-Identifier: Apache-2.0
// Runs a kernel over files: the steps that such commands share, around the operator's own.
#ifndef QUERN_TOOLS_RUN_RUN_COMMAND_H_
#define QUERN_TOOLS_RUN_RUN_COMMAND_H_

#include <arrow/type_fwd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/compiler.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/spill/spill_context.h"
#include "tools/quern/files/progress.h"
#include "tools/quern/files/result_stream.h"
#include "tools/quern/run/run_options.h"
#include "tools/quern/run/stats_json.h"

namespace quern::cli {

// Milliseconds since it was made, or since the last Lap.
class Stopwatch {
 public:
  Stopwatch();
  double Lap();

 private:
  double last_ms_;
};

// The result of every operator.
struct OperatorResult {
  std::shared_ptr<arrow::Table> table;  // nullptr where rows were counted
  uint64_t num_rows = 0;
  double run_ms = 0;
  uint32_t threads = 1;
};

// A run whose inputs are read piece by piece and whose rows may be spilled.
struct StreamRun {
  std::shared_ptr<MemoryBudget> budget;
  std::shared_ptr<SpillContext> spill;
  uint32_t threads;
  Progress* progress;
};

// The fields of --stats of a run that may spill.
void AddSpillStats(const SpillStats& spilled, JsonObject* json);

// The steps that a command implements, in the order of the calls; --explain ends after spec().
class FileOperator {
 public:
  virtual ~FileOperator() = default;

  // Whether the inputs can be read piece by piece: then ReadSamples and Stream may take the place of Read and Run.
  virtual bool can_stream() const { return false; }
  // Finds the spec by what the files say of their columns.
  virtual absl::Status ReadSamples() { return Internal("no stream of this command"); }
  // Of a streamed run.
  virtual ResultColumns result_columns() const { return {}; }
  virtual absl::StatusOr<OperatorResult> Stream(const CompiledKernel&, const StreamRun&, ResultStream*) {
    return Internal("no stream of this command");
  }

  // Reads the files and finds the spec.
  virtual absl::Status Read() = 0;
  virtual KernelSpec spec() const = 0;
  // Those of the kernels that prepare its input and that --explain shows, in the order in which they run.
  virtual std::vector<KernelSpec> input_specs() const { return {}; }
  // What is done with its result, for --explain; "": nothing.
  virtual std::string result_text() const { return ""; }
  virtual uint64_t rows_in() const = 0;
  // Compiles the conditions that choose rows of its input, beside its kernel.
  virtual absl::Status CompileConditions(const CompileOptions&) { return absl::OkStatus(); }
  // May be called again, for the same result.
  virtual absl::StatusOr<OperatorResult> Run(const CompiledKernel& compiled,
                                             const std::shared_ptr<MemoryBudget>& budget, Progress* progress) = 0;
  // The fields of --stats that only this operator has.
  virtual void AddStats(JsonObject* json) const = 0;
  // After Run: the class of table sizes whose prefetch settings it used (JoinStats).
  virtual const char* prefetch_class() const { return "off"; }
};

// What a command runs, whatever its kernels; the steps in the order of the calls, --explain ends after Explain.
class FileJob {
 public:
  virtual ~FileJob() = default;

  // Reads the files and finds what is to be done.
  virtual absl::Status Read() = 0;
  virtual uint64_t rows_in() const = 0;
  virtual absl::StatusOr<std::string> Explain(const RunOptions& options) const = 0;
  // Also sets what --stats says of kernels.
  virtual absl::Status Compile(const RunOptions& options, RunStats* stats) = 0;
  // May be called again, for the same result.
  virtual absl::StatusOr<OperatorResult> Run(const std::shared_ptr<MemoryBudget>& budget, Progress* progress) = 0;
  // As of FileOperator.
  virtual bool can_stream() const { return false; }
  virtual absl::Status ReadSamples() { return Internal("no stream of this command"); }
  virtual ResultColumns result_columns() const { return {}; }
  virtual SpillSettings spill_settings() const { return {}; }  // after Compile
  virtual absl::StatusOr<OperatorResult> Stream(const StreamRun&, ResultStream*) {
    return Internal("no stream of this command");
  }
  // After Run. The fields of --stats that only this job has; what has changed of those that Compile has set.
  virtual void AddStats(RunStats* stats) = 0;
  virtual void AddFields(const RunStats& stats, JsonObject* json) const = 0;
};

// Runs a job, or an operator, and delivers its result according to the options. `name` and `words`: the command line.
// Returns the exit status.
absl::StatusOr<int> RunJob(const std::string& name, const std::vector<std::string>& words, const RunOptions& options,
                           FileJob* job);
absl::StatusOr<int> RunOnFiles(const std::string& name, const std::vector<std::string>& words,
                               const RunOptions& options, FileOperator* file_operator);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_RUN_RUN_COMMAND_H_
