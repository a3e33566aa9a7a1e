// SPDX-License-Identifier: Apache-2.0
// The options that all commands share that run a kernel over files.
#ifndef QUERN_TOOLS_QUERN_RUN_OPTIONS_H_
#define QUERN_TOOLS_QUERN_RUN_OPTIONS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "codegen/compiler.h"
#include "runtime/memory.h"
#include "tools/quern/arguments.h"
#include "tools/quern/progress.h"
#include "tools/quern/stats_json.h"
#include "tools/quern/table_io.h"

namespace quern::cli {

struct RunOptions {
  std::optional<std::string> output;
  bool count = false;
  std::optional<std::string> threads_text;
  std::optional<std::string> engine_text;
  std::optional<std::string> memory_limit_text;
  std::vector<std::string> param_texts;
  bool explain = false;
  bool stats = false;
  bool quiet = false;

  // Of the texts above and of the environment, set by Check.
  FileFormat output_format = FileFormat::kParquet;
  uint32_t threads = 1;
  uint64_t memory_limit_bytes = 0;  // 0: none
  bool verbose = false;
  CompileOptions compile;

  void AddTo(Arguments* arguments);
  // Turns texts into values. *Errors*: those of the command or the environment.
  absl::Status Check();
};

// --param of commands that do not run.
absl::StatusOr<PlanOverrides> ParseParams(const std::vector<std::string>& texts);

// Milliseconds since it was made, or since the last Lap.
class Stopwatch {
 public:
  Stopwatch();
  double Lap();

 private:
  double last_ms_;
};

// Compiles under the options, with what --stats and QUERN_VERBOSE say of it. Warnings go to stderr.
absl::StatusOr<CompiledKernel> CompileForRun(const KernelSpec& spec, const RunOptions& options, RunStats* stats);

// The file of -o, before any work, so that a folder that does not take it is found; none for --explain.
absl::Status CreateOutput(const RunOptions& options, std::optional<OutputFile>* file);

// --explain: spec and plan, to stdout.
absl::Status ExplainSpec(const KernelSpec& spec, const RunOptions& options);

// The budget of --memory-limit, with what Arrow holds already taken: the input's columns. *Errors*: they are over it.
absl::StatusOr<std::shared_ptr<MemoryBudget>> BudgetBesideInputs(const RunOptions& options);

// The last step of every run: the table to the file or its first rows to stdout, where there is one, and the number that --count asks for.
// Ends the progress bar before it prints.
absl::Status Deliver(const std::shared_ptr<arrow::Table>& table, uint64_t num_rows, const RunOptions& options,
                     std::optional<OutputFile>* file, std::optional<Progress>* progress);

// Prints what --stats and QUERN_VERBOSE ask for. `words`: the command line, from the command's name on.
void ReportRun(const RunOptions& options, const RunStats& stats, const JsonObject& json, const std::vector<std::string>& words);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_QUERN_RUN_OPTIONS_H_
