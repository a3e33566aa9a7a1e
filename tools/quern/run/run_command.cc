// SPDX-License-Identifier: Apache-2.0
// The steps of a run; a command supplies those of its operator:
//
//     open the result file -> read -> spec -> compile -> run -> write or print -> report
//                             ^operator                  ^operator
//
// The result file comes first, so that an unwritable folder is found before any work. The times of --stats follow the
// steps: read_ms ends with columns of the spec's types in memory, run_ms with result columns in memory or with their
// number. peak_bytes and --memory-limit count what is read of files while it is read, input columns, the operator's
// state and results.
//
// With QUERN_VERBOSE=1 the library leaves a line on stderr for each kernel that it makes (verbose.h), and each run one
// whose last field can be pasted into a shell:
//
//     quern,run,engine=jit,rows_in=5,rows_out=3,threads=1,ms=0.125,repro="quern join --on k --count probe.csv
//     build.csv"
#include "tools/quern/run/run_command.h"

#include <arrow/table.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codegen/base/log.h"
#include "codegen/inspect/verbose.h"
#include "codegen/machine/machine.h"
#include "codegen/machine/profile.h"
#include "codegen/plan/plan.h"
#include "codegen/tier/tier.h"
#include "runtime/base/kept_pages.h"
#include "runtime/base/status.h"
#include "tools/frontend/errors.h"
#include "tools/quern/files/output_file.h"
#include "tools/quern/files/reading_memory.h"
#include "tools/quern/files/table_io.h"
#include "tools/quern/files/table_print.h"

namespace quern::cli {
namespace {

constexpr int64_t kRowsShown = 20;
// Of a streamed run, one of so many shares of the limit is left to readers and writers of files.
constexpr uint64_t kStreamedShare = 4;
// Of a limit: what a thread takes at least that reads pages of a file, and has rows that are appended.
constexpr uint64_t kStreamedThreadBytes = 8 << 20;

double NowMs() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The library's messages go to stderr, on lines of their own even under a progress bar; its warnings not with --quiet.
void ListenToLibrary(bool quiet) {
  SetLogCallback([quiet](LogLevel level, std::string_view line) {
    if (level == LogLevel::kWarning && quiet) return;
    WipeProgressLine();
    if (level == LogLevel::kWarning) ReportWarning(line);
    else std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
  });
}

// Opens the file of -o before any work, so that an unwritable folder is found early; none for --explain.
absl::Status CreateOutput(const RunOptions& options, std::optional<OutputFile>* file) {
  if (!options.output.has_value() || options.explain) return absl::OkStatus();
  QUERN_ASSIGN_OR_RETURN(OutputFile created, OutputFile::Create(*options.output));
  file->emplace(std::move(created));
  return absl::OkStatus();
}

// Runs the job as often as --repeat says. The result is that of the last run, and run_ms is the median: the first run
// of a process also pays for fresh pages.
absl::StatusOr<OperatorResult> RunRepeatedly(const RunOptions& options, const std::shared_ptr<MemoryBudget>& budget,
                                             Progress* progress, FileJob* job) {
  std::vector<double> times_ms;
  OperatorResult result;
  while (times_ms.size() < options.repeat) {
    result = {};  // before the next one takes memory
    QUERN_ASSIGN_OR_RETURN(result, job->Run(budget, progress));
    times_ms.push_back(result.run_ms);
  }
  const auto middle = times_ms.begin() + static_cast<std::ptrdiff_t>(times_ms.size() / 2);
  std::nth_element(times_ms.begin(), middle, times_ms.end());
  result.run_ms = *middle;
  return result;
}

// Gives memory back to the system when it is freed, but for a small share of the limit: by default the C library keeps
// blocks, more from time to time, in several arenas for each core, and the library keeps pages. Costs a system call for
// each block above 128 KiB, and a fault for each page of a new one.
void KeepLittleFreedMemory(uint64_t limit_bytes) {
  constexpr uint64_t kKeptShare = 16, kMostKept = 16 << 20;
  KeptPages::OfProcess().SetMost(std::min(limit_bytes / kKeptShare, kMostKept));
#ifdef __GLIBC__
  constexpr int kBlockBytes = 128 << 10, kArenas = 2;
  mallopt(M_MMAP_THRESHOLD, kBlockBytes);
  mallopt(M_TRIM_THRESHOLD, kBlockBytes);
  mallopt(M_ARENA_MAX, kArenas);
#endif
}

// The resident pages of files that are mapped, most of them code of this program and of Arrow: the system can take them
// back at any time. 0 where it does not say.
uint64_t MappedFileBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    uint64_t kib = 0;
    if (word == "RssFile:" && status >> kib) return kib << 10;
  }
  return 0;
}

uint32_t StreamedThreads(const RunOptions& options) {
  const uint64_t most = std::max<uint64_t>(options.memory_limit_bytes / kStreamedThreadBytes, 1);
  return static_cast<uint32_t>(std::min<uint64_t>(options.threads, most));
}

// A run whose inputs are read piece by piece: its result is in the file already, or consists of its first rows.
absl::StatusOr<OperatorResult> RunStreamed(const RunOptions& options, const StreamRun& run,
                                           std::optional<OutputFile>* file, FileJob* job) {
  OutputFile* const into = file->has_value() ? &**file : nullptr;
  ResultStream results(options.count ? ResultColumns() : job->result_columns(), kRowsShown, into,
                       options.output_format);
  QUERN_RETURN_IF_ERROR(results.Begin());
  QUERN_ASSIGN_OR_RETURN(OperatorResult result, job->Stream(run, &results));
  QUERN_RETURN_IF_ERROR(results.End());
  result.num_rows = results.num_rows();
  QUERN_ASSIGN_OR_RETURN(result.table, results.FirstRows());
  return result;
}

// The last step of every run: the table, if there is one, goes to the file or its first rows to stdout, and so does the
// number for --count; of a streamed run, the file is complete already. Ends the progress bar before it prints.
absl::Status Deliver(const std::shared_ptr<arrow::Table>& table, uint64_t num_rows, const RunOptions& options,
                     std::optional<OutputFile>* file, std::optional<Progress>* progress) {
  if (table != nullptr && file->has_value()) QUERN_RETURN_IF_ERROR((*file)->WriteTable(table, options.output_format));
  if (file->has_value()) QUERN_RETURN_IF_ERROR((*file)->Commit());
  progress->reset();
  if (table != nullptr && !file->has_value()) std::fputs(PrintTable(*table, kRowsShown, num_rows).c_str(), stdout);
  if (options.count) std::printf("%llu\n", static_cast<unsigned long long>(num_rows));
  return absl::OkStatus();
}

// Prints what --stats and QUERN_VERBOSE ask for.
void ReportRun(const RunOptions& options, const RunStats& stats, const JsonObject& json,
               const std::vector<std::string>& words) {
  if (options.stats) std::fprintf(stderr, "%s\n", json.Finish().c_str());
  if (!options.verbose) return;
  std::fprintf(stderr, "quern,run,engine=%s,rows_in=%llu,rows_out=%llu,threads=%u,ms=%.3f,repro=\"%s\"\n",
               stats.engine.c_str(), static_cast<unsigned long long>(stats.rows_in),
               static_cast<unsigned long long>(stats.rows_out), stats.threads, stats.run_ms,
               CommandLine(words).c_str());
}

// An operator with one kernel, and what prepares its input.
class OperatorJob final : public FileJob {
 public:
  explicit OperatorJob(FileOperator* file_operator) : operator_(*file_operator) {}

  absl::Status Read() override { return operator_.Read(); }
  uint64_t rows_in() const override { return operator_.rows_in(); }
  absl::StatusOr<std::string> Explain(const RunOptions& options) const override;
  absl::Status Compile(const RunOptions& options, RunStats* stats) override;
  absl::StatusOr<OperatorResult> Run(const std::shared_ptr<MemoryBudget>& budget, Progress* progress) override {
    return operator_.Run(compiled_, budget, progress);
  }
  bool can_stream() const override { return operator_.can_stream(); }
  absl::Status ReadSamples() override { return operator_.ReadSamples(); }
  ResultColumns result_columns() const override { return operator_.result_columns(); }
  SpillSettings spill_settings() const override { return MakeSpillSettings(compiled_.kernel->plan); }
  absl::StatusOr<OperatorResult> Stream(const StreamRun& run, ResultStream* results) override {
    return operator_.Stream(compiled_, run, results);
  }
  void AddStats(RunStats* stats) override;
  void AddFields(const RunStats& stats, JsonObject* json) const override;

 private:
  FileOperator& operator_;
  CompiledKernel compiled_;
};

// Specs, and the plan of the operator's own.
absl::StatusOr<std::string> OperatorJob::Explain(const RunOptions& options) const {
  const KernelSpec spec = operator_.spec();
  QUERN_ASSIGN_OR_RETURN(const Machine machine, HostMachine());
  QUERN_ASSIGN_OR_RETURN(const KernelPlan plan,
                         MakePlan(spec, machine, options.compile.overrides, ProfileOfProcess().get()));
  std::string text;
  for (const KernelSpec& before : operator_.input_specs()) text += PrintSpec(before) + "\n";
  text += PrintSpec(spec) + "\n";
  if (!operator_.result_text().empty()) text += "# its result: " + operator_.result_text() + "\n";
  return text + PrintPlan(plan);
}

absl::Status OperatorJob::Compile(const RunOptions& options, RunStats* stats) {
  CompileOptions compile = options.compile;
  compile.expected_rows = operator_.rows_in() / options.threads;
  Stopwatch watch;
  QUERN_ASSIGN_OR_RETURN(compiled_, quern::Compile(operator_.spec(), compile));
  QUERN_RETURN_IF_ERROR(operator_.CompileConditions(compile));
  stats->compile_ms = watch.Lap();
  stats->spec = PrintSpec(operator_.spec());
  stats->plan_json = PlanJson(compiled_.kernel->plan);
  stats->engine = compiled_.kernel->engine == Engine::kGeneric ? "generic" : "jit";
  stats->cache = CacheText(compiled_.cache);
  return absl::OkStatus();
}

// The final state of a kernel that started as the generic one: what ran at the end, and the compile time on its thread.
void OperatorJob::AddStats(RunStats* stats) {
  const auto compiled = compiled_.kernel->tier == nullptr ? nullptr : compiled_.kernel->tier->Compiled();
  if (compiled == nullptr) return;
  stats->engine = "jit";
  stats->cache = CacheText(compiled_.kernel->tier->cache());
  stats->compile_ms = compiled->times.total_ms;
}

// What the operator counted, in all runs of --repeat together: the kernel's numbers, since the process runs no other
// job.
void OperatorJob::AddFields(const RunStats& stats, JsonObject* json) const {
  operator_.AddStats(json);
  const Counters counters = compiled_.kernel->counters->Sum();
  JsonObject counted;
#define QUERN_COUNTER(id, name, meaning) counted.Count(#name, counters.name);
#include "runtime/base/counters.def"
  counted.Text("prefetch_class", operator_.prefetch_class())
      .Text("tier", TierText(counters))
      .Text("cache", stats.cache);
  json->Json("counters", counted.Finish());
}

}  // namespace

void AddSpillStats(const SpillStats& spilled, JsonObject* json) {
  json->Count("spilled_bytes", spilled.written_bytes).Count("spilled_rows", spilled.written_rows);
  json->Count("unspilled_bytes", spilled.read_bytes).Count("spill_levels", spilled.max_level);
  json->Count("spill_waits", spilled.late_blocks);
}

Stopwatch::Stopwatch() : last_ms_(NowMs()) {}

double Stopwatch::Lap() {
  const double now_ms = NowMs();
  return now_ms - std::exchange(last_ms_, now_ms);
}

absl::StatusOr<int> RunOnFiles(const std::string& name, const std::vector<std::string>& words,
                               const RunOptions& options, FileOperator* file_operator) {
  OperatorJob job(file_operator);
  return RunJob(name, words, options, &job);
}

absl::StatusOr<int> RunJob(const std::string& name, const std::vector<std::string>& words, const RunOptions& options,
                           FileJob* job) {
  ListenToLibrary(options.quiet);
  QUERN_RETURN_IF_ERROR(StartArrow(options.threads));
  const bool streams = options.spills && options.repeat == 1 && job->can_stream();
  if (streams) KeepLittleFreedMemory(options.memory_limit_bytes);
  const uint64_t limit = options.memory_limit_bytes;
  const auto budget = std::make_shared<MemoryBudget>(streams ? limit / kStreamedShare * (kStreamedShare - 1) : limit);
  SetReadingBudget(budget, streams ? OverLimit::kTaken : OverLimit::kRefused);
  std::optional<OutputFile> file;
  QUERN_RETURN_IF_ERROR(CreateOutput(options, &file));
  std::optional<Progress> progress(std::in_place, !options.quiet);
  RunStats stats;
  Stopwatch watch;
  progress->Begin("read", 0);
  QUERN_RETURN_IF_ERROR(streams ? job->ReadSamples() : job->Read());
  stats.read_ms = watch.Lap();
  if (options.explain) {
    progress.reset();
    QUERN_ASSIGN_OR_RETURN(const std::string text, job->Explain(options));
    std::fputs(text.c_str(), stdout);
    return kExitOk;
  }
  QUERN_RETURN_IF_ERROR(job->Compile(options, &stats));
  std::shared_ptr<SpillContext> spill;
  if (streams) {
    SpillSettings settings = job->spill_settings();
    settings.overdraft_bytes = limit - budget->limit_bytes();
    spill =
        std::make_shared<SpillContext>(std::make_unique<TemporaryFiles>(*options.spill_folder, 0), budget, settings);
    progress->ShowSpilled([spill] { return spill->stats().written_bytes; });
  }
  QUERN_ASSIGN_OR_RETURN(const OperatorResult result,
                         streams
                             ? RunStreamed(options, {budget, spill, StreamedThreads(options), &*progress}, &file, job)
                             : RunRepeatedly(options, budget, &*progress, job));
  job->AddStats(&stats);
  progress->Begin("write", 0);
  watch.Lap();
  QUERN_RETURN_IF_ERROR(Deliver(result.table, result.num_rows, options, &file, &progress));
  stats.write_ms = watch.Lap();
  stats.run_ms = result.run_ms;
  stats.rows_in = job->rows_in();
  stats.rows_out = result.num_rows;
  stats.peak_bytes = budget->peak_bytes();
  stats.threads = result.threads;
  JsonObject json = StatsJson(stats);
  if (spill != nullptr) {
    AddSpillStats(spill->stats(), &json);
    json.Count("mapped_file_bytes", MappedFileBytes());
  }
  job->AddFields(stats, &json);
  std::vector<std::string> command_line = {name};
  command_line.insert(command_line.end(), words.begin(), words.end());
  ReportRun(options, stats, json, command_line);
  return kExitOk;
}

}  // namespace quern::cli
