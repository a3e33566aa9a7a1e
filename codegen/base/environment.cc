// SPDX-License-Identifier: Apache-2.0
// Reads the environment. Each row of environment_variables.def gives a variable's name, default and two texts. `quern
// env` prints all rows; other commands read the variables they need:
//
//     $ QUERN_THREADS=4 quern env
//     QUERN_THREADS  4       environment  threads of a run; --threads wins
//     QUERN_MACHINE  native  default      CPU that dump makes code for; --machine wins
//
// A bad value is an error of the environment (exit status 1), and only in commands that read the variable.
//
// The environment of a program with more rights than its user is the user's: read there, INTEL_JIT_PROFILER64 would run
// any code with the program's rights, and QUERN_DUMP would write to any folder. This is the only place that knows of
// this; everything else sees variables that are not set. LLVM is built without its own VTune listener and reads no
// variable that matters here.
#include "codegen/base/environment.h"

#include <sys/auxv.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <optional>
#include <system_error>
#include <thread>

#include "runtime/base/kept_pages.h"
#include "runtime/base/status.h"
#include "runtime/collation/icu_collation.h"

namespace quern {
namespace {

std::string CoresText() { return std::to_string(std::clamp(std::thread::hardware_concurrency(), 1u, 1024u)); }

// A program's folder by the XDG base directory specification, which says to ignore paths that are not absolute.
std::string UserFolder(const char* variable, const char* below_home) {
  if (IsPrivileged()) return "";
  const char* folder = std::getenv(variable);
  if (folder != nullptr && *folder == '/') return std::string(folder) + "/quern";
  const char* home = std::getenv("HOME");
  return home != nullptr && *home == '/' ? std::string(home) + below_home + "/quern" : "";
}

// The default of a variable whose default is not in the table.
std::string FoundDefault(Variable id) {
  if (id == Variable::kThreads) return CoresText();
  if (id == Variable::kKeptMemory) return std::to_string(KeptPages::DefaultBytes() >> 20);
  return id == Variable::kCacheDir ? UserFolder("XDG_CACHE_HOME", "/.cache") : "";
}

// In the column `privileged`: the variable is always read.
constexpr const char* kRead = nullptr;

VariableRow MakeRow(Variable id, const char* name, const std::string& default_text, const char* privileged,
                    const char* accepted, const char* meaning) {
  if (privileged != kRead && IsPrivileged()) return {id, name, privileged, false, accepted, meaning};
  const char* value = std::getenv(name);
  const bool is_set = value != nullptr && *value != '\0';
  return {id, name, is_set ? value : default_text.empty() ? FoundDefault(id) : default_text, is_set, accepted, meaning};
}

constexpr std::string_view kFileStages[] = {"plan", "layout", "ir", "opt", "asm"};
constexpr const char* kFileStagesText = "plan, layout, ir, opt, asm";

// The absolute path of a relative folder, so that it stays the same when the process changes its directory.
std::string AbsolutePath(const std::string& folder) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(folder, error);
  return error ? folder : path.string();
}

std::atomic<int> num_pretences{0};

// ICU reads its variable by itself, so it has to forget it, before any collation is opened: when the library is loaded.
bool WithholdFromIcu() {
  const char* folder = getauxval(AT_SECURE) != 0 ? std::getenv("ICU_DATA") : nullptr;
  if (folder != nullptr) IgnoreIcuFolder(folder);
  return folder != nullptr;
}

[[maybe_unused]] const bool kIsWithheldFromIcu = WithholdFromIcu();

}  // namespace

bool IsPrivileged() { return getauxval(AT_SECURE) != 0 || num_pretences.load(std::memory_order_relaxed) > 0; }

PretendPrivileged::PretendPrivileged() { ++num_pretences; }
PretendPrivileged::~PretendPrivileged() { --num_pretences; }

std::vector<VariableRow> ReadEnvironment() {
  return {
#define QUERN_ENVIRONMENT_VARIABLE(Id, name, default_text, privileged, accepted, meaning) \
  MakeRow(Variable::Id, #name, default_text, privileged, accepted, meaning),
#include "codegen/base/environment_variables.def"
  };
}

std::string UserConfigFolder() { return UserFolder("XDG_CONFIG_HOME", "/.config"); }

VariableRow ReadVariable(Variable id) { return ReadEnvironment()[static_cast<size_t>(id)]; }

bool StageDump::Leaves(std::string_view stage) const {
  return std::find(stages.begin(), stages.end(), stage) != stages.end();
}

absl::StatusOr<StageDump> StageDumpOfEnvironment() {
  const VariableRow row = ReadVariable(Variable::kDump);
  if (!row.from_environment) return StageDump{};
  const size_t colon = row.value.find(':');
  if (colon == std::string::npos || colon + 1 == row.value.size()) {
    return absl::FailedPreconditionError("bad value of QUERN_DUMP: " + ShowPath(row.value) +
                                         "; accepted: STAGE,STAGE,..:DIR with stages " + kFileStagesText);
  }
  StageDump dump{{}, AbsolutePath(row.value.substr(colon + 1))};
  for (size_t begin = 0; begin <= colon;) {
    const size_t end = std::min(row.value.find(',', begin), colon);
    const std::string stage = row.value.substr(begin, end - begin);
    if (std::find(std::begin(kFileStages), std::end(kFileStages), stage) == std::end(kFileStages)) {
      return absl::FailedPreconditionError("unknown stage of QUERN_DUMP: " + Show(stage) +
                                           "; accepted: " + kFileStagesText);
    }
    dump.stages.push_back(stage);
    begin = end + 1;
  }
  return dump;
}

absl::StatusOr<std::string> FolderOfEnvironment(Variable id) {
  const VariableRow row = ReadVariable(id);
  if (!row.from_environment) return std::string();
  std::error_code ignored;
  if (std::filesystem::is_directory(row.value, ignored)) return AbsolutePath(row.value);
  return absl::FailedPreconditionError("bad value of " + row.name + ": " + ShowPath(row.value) +
                                       "; accepted: " + row.accepted);
}

absl::StatusOr<std::optional<uint64_t>> KeptBytesOfEnvironment() {
  constexpr uint64_t kMostMib = uint64_t{1} << 20;
  const VariableRow row = ReadVariable(Variable::kKeptMemory);
  if (!row.from_environment) return std::nullopt;
  uint64_t mib = 0;
  const char* const begin = row.value.data();
  const auto [end, error] = std::from_chars(begin, begin + row.value.size(), mib);
  if (error == std::errc() && end == begin + row.value.size() && mib <= kMostMib) return mib << 20;
  return absl::FailedPreconditionError("bad value of " + row.name + ": " + Show(row.value) +
                                       "; accepted: " + row.accepted);
}

absl::StatusOr<std::optional<uint64_t>> HashSeedOfEnvironment() {
  const VariableRow row = ReadVariable(Variable::kHashSeed);
  if (row.value == "random") return std::nullopt;
  uint64_t seed = 0;
  const char* const begin = row.value.data();
  const auto [end, error] = std::from_chars(begin, begin + row.value.size(), seed);
  if (error == std::errc() && end == begin + row.value.size()) return seed;
  return absl::FailedPreconditionError("bad value of " + row.name + ": " + Show(row.value) +
                                       "; accepted: " + row.accepted);
}

absl::StatusOr<bool> SwitchOfEnvironment(Variable id) {
  const VariableRow row = ReadVariable(id);
  if (row.value == "0" || row.value == "1") return row.value == "1";
  return absl::FailedPreconditionError("bad value of " + row.name + ": " + Show(row.value) +
                                       "; accepted: " + row.accepted);
}

}  // namespace quern
