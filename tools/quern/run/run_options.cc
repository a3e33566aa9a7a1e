// SPDX-License-Identifier: Apache-2.0
// The options of every command that runs a kernel over files: texts as given on the command line, values as made by
// Check. Missing options come from the environment, as --threads from QUERN_THREADS, and otherwise from the machine:
//
//     --threads 3  >  QUERN_THREADS=2  >  the number of cores
#include "tools/quern/run/run_options.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

#include "codegen/base/environment.h"
#include "codegen/machine/profile.h"
#include "runtime/base/status.h"
#include "tools/frontend/errors.h"

namespace quern::cli {
namespace {

absl::StatusOr<Engine> ParseEngine(const std::string& text) {
  if (text == "jit") return Engine::kJit;
  if (text == "generic") return Engine::kGeneric;
  if (text == "auto") return Engine::kAuto;
  return CommandError(UnknownWord("engine", text, {"jit", "generic", "auto"}));
}

// What readers and writers of files take is more than a smaller limit.
constexpr uint64_t kLeastSpillLimit = 16 << 20;

absl::StatusOr<uint32_t> ThreadsOfEnvironment() {
  const VariableRow row = ReadVariable(Variable::kThreads);
  const absl::StatusOr<uint64_t> threads = ParseNumber(row.name, row.value, 1, kMaxThreads);
  if (!threads.ok()) return AsDataError(threads.status());
  return static_cast<uint32_t>(*threads);
}

// Before anything is read: that rows will have to be spilled may turn out late.
absl::Status CheckSpillFolder(const std::string& folder) {
  if (folder == "off") return absl::OkStatus();
  struct stat found = {};
  if (stat(folder.c_str(), &found) != 0 || !S_ISDIR(found.st_mode)) {
    const std::string reason = std::generic_category().message(found.st_mode == 0 ? errno : ENOTDIR);
    return CommandError("--spill-dir is no folder: " + ShowPath(folder) + ": " + reason +
                        "; accepted: a folder that exists, or off");
  }
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    return CommandError("--spill-dir takes no files: " + ShowPath(folder) + ": " +
                        std::generic_category().message(errno) + "; accepted: a folder that takes files, or off");
  }
  return absl::OkStatus();
}

}  // namespace

void RunOptions::AddTo(Arguments* arguments) {
  arguments->Value("-o,--output", &output, "FILE", "write the result to FILE.parquet, FILE.csv or FILE.arrow");
  arguments->Flag("--count", &count, "print only the number of result rows");
  arguments->Value("--threads", &threads_text, "N",
                   "threads, 1 to 1024 (default: QUERN_THREADS, else the number of cores)");
  arguments->Value("--repeat", &repeat_text, "N",
                   "run N times, 1 to 1000, on the rows in memory; run_ms of --stats is the median (default: 1)");
  arguments->Value("--engine", &engine_text, "ENGINE",
                   "auto (default): generic, then compiled once that pays; jit: compiled or an error; generic");
  arguments->Value("--memory-limit", &memory_limit_text, "SIZE",
                   "take no more memory, as 512M or 2G: spill rows from 16M up, or fail (default: no limit)");
  arguments->Value(
      "--spill-dir", &spill_folder, "DIR",
      "where rows beyond the memory limit go, in nameless files, of join, aggregate, sort and set of Parquet "
      "files, and of queries; off: they fail (default: QUERN_SPILL_DIR, else /var/tmp)");
  arguments->Values("--param", &param_texts, "NAME=VALUE",
                    "set a tuning parameter of the plan; may be given several times");
  arguments->Value("--profile", &profile_path, "FILE",
                   "go by this tuning profile, or off (default: QUERN_PROFILE, else this machine's)");
  arguments->Flag("--explain", &explain, "print the kernel spec and the plan, and do not run");
  arguments->Flag("--stats", &stats, "print what the run did as one JSON object on one line of stderr");
  arguments->Flag("--quiet", &quiet, "no progress bar and no warnings");
}

absl::Status RunOptions::Check() {
  if (output.has_value() && count)
    return CommandError("options exclude each other: -o and --count; accepted: one of them");
  if (output.has_value()) {
    QUERN_ASSIGN_OR_RETURN(output_format, FormatOfFile("-o", *output));
  }
  if (threads_text.has_value()) {
    QUERN_ASSIGN_OR_RETURN(const uint64_t number, ParseNumber("--threads", *threads_text, 1, kMaxThreads));
    threads = static_cast<uint32_t>(number);
  } else {
    QUERN_ASSIGN_OR_RETURN(threads, ThreadsOfEnvironment());
  }
  if (repeat_text.has_value()) {
    QUERN_ASSIGN_OR_RETURN(const uint64_t number, ParseNumber("--repeat", *repeat_text, 1, 1000));
    repeat = static_cast<uint32_t>(number);
  }
  if (memory_limit_text.has_value()) {
    QUERN_ASSIGN_OR_RETURN(memory_limit_bytes, ParseBytes("--memory-limit", *memory_limit_text));
  }
  if (spill_folder.has_value()) QUERN_RETURN_IF_ERROR(CheckSpillFolder(*spill_folder));
  else spill_folder = ReadVariable(Variable::kSpillDir).value;
  spills = memory_limit_bytes >= kLeastSpillLimit && *spill_folder != "off";
  if (engine_text.has_value()) {
    QUERN_ASSIGN_OR_RETURN(compile.engine, ParseEngine(*engine_text));
  }
  compile.when = CompileWhen::kBackground;  // of auto
  QUERN_ASSIGN_OR_RETURN(compile.overrides, ParseParams(param_texts));
  QUERN_ASSIGN_OR_RETURN(verbose, SwitchOfEnvironment(Variable::kVerbose));
  if (profile_path.has_value()) QUERN_RETURN_IF_ERROR(UseProfile(*profile_path, quiet));
  // The library would only warn.
  QUERN_RETURN_IF_ERROR(StageDumpOfEnvironment().status());
  QUERN_RETURN_IF_ERROR(FolderOfEnvironment(Variable::kOverride).status());
  return absl::OkStatus();
}

absl::Status UseProfile(const std::string& path, bool quiet) {
  if (path == "off") {
    SetProfileOfProcess(nullptr);
    return absl::OkStatus();
  }
  absl::StatusOr<Profile> profile = ReadProfile(path);
  QUERN_RETURN_IF_ERROR(AsDataError(profile.status()));
  const std::string difference = ForeignMachine(*profile);
  if (!difference.empty() && !quiet)
    ReportWarning("profile of another machine is used: " + path + " (" + difference + ")");
  SetProfileOfProcess(std::make_shared<const Profile>(*std::move(profile)));
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

}  // namespace quern::cli
