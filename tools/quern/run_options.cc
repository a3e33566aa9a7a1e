// SPDX-License-Identifier: Apache-2.0
// What every command that runs has in common: its options, the compilation, the delivery of the result and the report of the run. A
// command adds its operator in between:
//
//     options.Check -> CreateOutput -> read files -> CompileForRun -> the operator -> Deliver -> ReportRun
//
// With QUERN_VERBOSE=1 each compilation and each run leaves a line on stderr whose last field can be pasted into a shell:
//
//     quern,compile,engine=jit,cache=miss,ms=8.125,repro="quern dump plan 'join.inner keys=i64'"
#include "tools/quern/run_options.h"

#include <arrow/memory_pool.h>
#include <arrow/table.h>

#include <chrono>
#include <cstdio>
#include <utility>

#include "codegen/machine.h"
#include "codegen/plan.h"
#include "runtime/status.h"
#include "tools/quern/environment.h"
#include "tools/quern/errors.h"
#include "tools/quern/table_print.h"

namespace quern::cli {
namespace {

constexpr int64_t kRowsShown = 20;

double NowMs() { return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

absl::StatusOr<Engine> ParseEngine(const std::string& text) {
  if (text == "jit") return Engine::kJit;
  if (text == "generic") return Engine::kGeneric;
  if (text == "auto") return Engine::kAuto;
  return CommandError(UnknownWord("engine", text, {"jit", "generic", "auto"}));
}

std::string CacheText(CacheOutcome outcome) {
  switch (outcome) {
    case CacheOutcome::kOff: return "off";
    case CacheOutcome::kMiss: return "miss";
    case CacheOutcome::kMemory: return "memory";
  }
  return "off";
}

// A word as a POSIX shell reads it back: in single quotes, each of its own as '\''.
std::string ShellWord(const std::string& word) {
  const std::string plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=,:+%@";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string CommandLine(const std::vector<std::string>& words) {
  std::string text = "quern";
  for (const std::string& word : words) text += " " + ShellWord(word);
  return text;
}

}  // namespace

void RunOptions::AddTo(Arguments* arguments) {
  arguments->Value("-o,--output", &output, "FILE", "write the result to FILE.parquet, FILE.csv or FILE.arrow");
  arguments->Flag("--count", &count, "print only the number of result rows");
  arguments->Value("--threads", &threads_text, "N", "threads, 1 to 1024 (default: QUERN_THREADS, else the number of cores)");
  arguments->Value("--engine", &engine_text, "ENGINE", "jit, generic (compiles nothing) or auto (default)");
  arguments->Value("--memory-limit", &memory_limit_text, "SIZE", "fail rather than take more memory, as 512M or 2G (default: no limit)");
  arguments->Values("--param", &param_texts, "NAME=VALUE", "set a tuning parameter of the plan; may be given several times");
  arguments->Flag("--explain", &explain, "print the kernel spec and the plan, and do not run");
  arguments->Flag("--stats", &stats, "print what the run did as one JSON object on one line of stderr");
  arguments->Flag("--quiet", &quiet, "no progress bar and no warnings");
}

absl::Status RunOptions::Check() {
  if (output.has_value() && count) return CommandError("options exclude each other: -o and --count; accepted: one of them");
  if (output.has_value()) {
    QUERN_ASSIGN_OR_RETURN(output_format, FormatOfFile("-o", *output));
  }
  if (threads_text.has_value()) {
    QUERN_ASSIGN_OR_RETURN(const uint64_t number, ParseNumber("--threads", *threads_text, 1, kMaxThreads));
    threads = static_cast<uint32_t>(number);
  } else {
    QUERN_ASSIGN_OR_RETURN(threads, ThreadsOfEnvironment());
  }
  if (memory_limit_text.has_value()) {
    QUERN_ASSIGN_OR_RETURN(memory_limit_bytes, ParseBytes("--memory-limit", *memory_limit_text));
  }
  if (engine_text.has_value()) {
    QUERN_ASSIGN_OR_RETURN(compile.engine, ParseEngine(*engine_text));
  }
  QUERN_ASSIGN_OR_RETURN(compile.overrides, ParseParams(param_texts));
  QUERN_ASSIGN_OR_RETURN(verbose, VerboseOfEnvironment());
  return absl::OkStatus();
}

absl::StatusOr<PlanOverrides> ParseParams(const std::vector<std::string>& texts) {
  PlanOverrides overrides;
  for (const std::string& text : texts) {
    QUERN_ASSIGN_OR_RETURN(auto assignment, ParseAssignment("--param", text));
    overrides.push_back(std::move(assignment));
  }
  return overrides;
}

Stopwatch::Stopwatch() : last_ms_(NowMs()) {}

double Stopwatch::Lap() {
  const double now_ms = NowMs();
  return now_ms - std::exchange(last_ms_, now_ms);
}

absl::StatusOr<CompiledKernel> CompileForRun(const KernelSpec& spec, const RunOptions& options, RunStats* stats) {
  Stopwatch watch;
  QUERN_ASSIGN_OR_RETURN(CompiledKernel compiled, Compile(spec, options.compile));
  stats->compile_ms = watch.Lap();
  stats->spec = PrintSpec(spec);
  stats->plan_json = PlanJson(compiled.kernel->plan);
  stats->engine = compiled.kernel->engine == Engine::kGeneric ? "generic" : "jit";
  stats->cache = CacheText(compiled.cache);
  if (!compiled.warning.empty() && !options.quiet) ReportWarning(compiled.warning);
  if (options.verbose) {
    std::vector<std::string> words = {"dump", "plan", stats->spec};
    for (const std::string& param : options.param_texts) words.insert(words.end(), {"--param", param});
    std::fprintf(stderr, "quern,compile,engine=%s,cache=%s,ms=%.3f,repro=\"%s\"\n", stats->engine.c_str(), stats->cache.c_str(),
                 stats->compile_ms, CommandLine(words).c_str());
  }
  return compiled;
}

absl::Status CreateOutput(const RunOptions& options, std::optional<OutputFile>* file) {
  if (!options.output.has_value() || options.explain) return absl::OkStatus();
  QUERN_ASSIGN_OR_RETURN(OutputFile created, OutputFile::Create(*options.output));
  file->emplace(std::move(created));
  return absl::OkStatus();
}

absl::Status ExplainSpec(const KernelSpec& spec, const RunOptions& options) {
  QUERN_ASSIGN_OR_RETURN(const Machine machine, HostMachine());
  QUERN_ASSIGN_OR_RETURN(const KernelPlan plan, MakePlan(spec, machine, options.compile.overrides));
  std::printf("%s\n%s", PrintSpec(spec).c_str(), PrintPlan(plan).c_str());
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<MemoryBudget>> BudgetBesideInputs(const RunOptions& options) {
  auto budget = std::make_shared<MemoryBudget>(options.memory_limit_bytes);
  QUERN_RETURN_IF_ERROR(budget->Reserve(static_cast<uint64_t>(arrow::default_memory_pool()->bytes_allocated())));
  return budget;
}

absl::Status Deliver(const std::shared_ptr<arrow::Table>& table, uint64_t num_rows, const RunOptions& options,
                     std::optional<OutputFile>* file, std::optional<Progress>* progress) {
  if (table != nullptr && file->has_value()) {
    QUERN_RETURN_IF_ERROR((*file)->WriteTable(table, options.output_format));
    QUERN_RETURN_IF_ERROR((*file)->Commit());
  }
  progress->reset();
  if (table != nullptr && !file->has_value()) std::fputs(PrintTable(*table, kRowsShown).c_str(), stdout);
  if (options.count) std::printf("%llu\n", static_cast<unsigned long long>(num_rows));
  return absl::OkStatus();
}

void ReportRun(const RunOptions& options, const RunStats& stats, const JsonObject& json, const std::vector<std::string>& words) {
  if (options.stats) std::fprintf(stderr, "%s\n", json.Finish().c_str());
  if (!options.verbose) return;
  std::fprintf(stderr, "quern,run,engine=%s,rows_in=%llu,rows_out=%llu,threads=%u,ms=%.3f,repro=\"%s\"\n", stats.engine.c_str(),
               static_cast<unsigned long long>(stats.rows_in), static_cast<unsigned long long>(stats.rows_out), stats.threads, stats.run_ms,
               CommandLine(words).c_str());
}

}  // namespace quern::cli
