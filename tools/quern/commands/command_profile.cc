// SPDX-License-Identifier: Apache-2.0
// quern profile: the results of `quern tune`, as files (profile.h describes their content):
//
//     $ quern profile show
//     profile  /home/ada/.config/quern/znver5-1f0c9a3e.profile
//     machine  AMD EPYC 9R45, znver5: this one
//     facts    34 of memory
//     spill    block_bytes=1048576 read_ahead=4 write_behind=2 threads=4 reads=ring
//     pieces   rows=8192
//     input    rows=1024 keyless_rows=256
//     entries  2
//
//     loop        keys  table    pipeline  threads  setting  ns/row  default    off  gain  noise
//     probe_open  word  64 MiB          1        1       96    6.20     7.10  12.50   13%   1.2%
//     probe_open  word  128 MiB         1        1  default    9.80     9.80  15.10    0%   0.9%
//
// A profile is copied to a machine of the same kind by `quern profile export` there and `quern profile import FILE`
// here: the entries of FILE replace those of the same cells, and others stay. Files of another machine are rejected.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "codegen/machine/profile.h"
#include "runtime/base/status.h"
#include "tools/frontend/errors.h"
#include "tools/quern/commands/command.h"
#include "tools/quern/files/table_io.h"
#include "tools/quern/run/arguments.h"

namespace quern::cli {
namespace {

struct ProfileCommand {
  std::vector<std::string> words;  // the action, then files
  std::optional<std::string> output;

  const std::string& action() const { return words[0]; }
  size_t num_files() const { return words.size() - 1; }
  const std::string& file(size_t i) const { return words[i + 1]; }
};

struct ActionRow {
  const char* name;
  size_t min_files, max_files;
  const char* files;
};
constexpr ActionRow kActions[] = {
    {"show", 0, 1, "show [FILE]"},
    {"path", 0, 0, "path"},
    {"merge", 2, 2, "merge FILE FILE [-o FILE]"},
    {"diff", 2, 2, "diff FILE FILE"},
    {"export", 0, 1, "export [FILE]"},
    {"import", 1, 1, "import FILE"},
};

absl::StatusOr<bool> ParseCommand(const std::vector<std::string>& words, ProfileCommand* command) {
  Arguments arguments("profile", "Shows, compares and carries tuning profiles, which quern tune makes.",
                      "quern profile diff before.profile after.profile");
  arguments.PositionalRest("ACTION", &command->words,
                           "show [FILE]: what is in it; path: where profiles are looked for; merge FILE FILE: both, "
                           "the second one's entries winning; "
                           "diff FILE FILE: entries that differ; export [FILE]: the one that plans go by; import FILE: "
                           "take it for this machine");
  arguments.Value("-o,--output", &command->output, "FILE", "merge: write to FILE (default: print)");
  return arguments.Parse(words);
}

absl::Status CheckCommand(const ProfileCommand& command) {
  std::vector<std::string> names;
  const ActionRow* row = nullptr;
  for (const ActionRow& action : kActions) {
    names.emplace_back(action.name);
    if (command.action() == action.name) row = &action;
  }
  if (row == nullptr) return CommandError(UnknownWord("action of profile", command.action(), names));
  if (command.num_files() < row->min_files || command.num_files() > row->max_files) {
    return CommandError("number of files: " + std::to_string(command.num_files()) + "; accepted: quern profile " +
                        row->files);
  }
  if (command.output.has_value() && command.action() != "merge")
    return CommandError("-o without merge: " + command.action() + "; accepted: merge");
  return absl::OkStatus();
}

absl::StatusOr<Profile> ReadFile(const std::string& path) {
  absl::StatusOr<Profile> profile = ReadProfile(path);
  QUERN_RETURN_IF_ERROR(AsDataError(profile.status()));
  return profile;
}

// The settings that plans use.
absl::StatusOr<Profile> ProfileInUse() {
  const std::shared_ptr<const Profile> profile = ProfileOfProcess();
  if (profile != nullptr) return *profile;
  return DataError("no profile: of this machine; accepted: after quern tune, or a FILE");
}

std::string SizeText(uint32_t size_class) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB"};
  return std::to_string(uint64_t{1} << size_class % 10) + " " + kUnits[size_class / 10];
}

std::string Fixed(double value, int digits, const char* unit = "") {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f%s", digits, value, unit);
  return text;
}

std::vector<std::string> RowOf(const ProfileEntry& entry) {
  const double gain = entry.default_ns > 0 && !entry.is_default ? 1 - entry.ns / entry.default_ns : 0;
  return {LoopText(entry.cell.loop),
          KeyClassText(entry.cell.keys),
          SizeText(entry.cell.size_class),
          std::to_string(entry.cell.pipeline),
          std::to_string(entry.cell.threads),
          entry.is_default ? "default" : PrintSetting(entry.setting, DefaultHint(entry.cell.loop)),
          Fixed(entry.ns, 2),
          Fixed(entry.default_ns, 2),
          Fixed(entry.off_ns, 2),
          Fixed(gain * 100, 0, "%"),
          Fixed(entry.noise * 100, 1, "%")};
}

// In columns: words to the left, from the fourth on to the right.
void PrintRows(const std::vector<std::vector<std::string>>& rows) {
  constexpr size_t kNumWords = 3;
  std::vector<size_t> widths(rows[0].size());
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      const int width = static_cast<int>(widths[i]);
      std::printf("%s%*s", i == 0 ? "" : "  ", i < kNumWords ? -width : width, row[i].c_str());
    }
    std::printf("\n");
  }
}

int Show(const Profile& profile) {
  const std::string difference = ForeignMachine(profile);
  const std::string cpu_name = profile.machine.cpu_name.empty() ? "" : profile.machine.cpu_name + ", ";
  std::printf("profile  %s\n", OneLine(profile.path).c_str());
  std::printf("machine  %s: %s\n", OneLine(cpu_name + profile.machine.cpu).c_str(),
              difference.empty() ? "this one" : OneLine("another one, " + difference).c_str());
  if (profile.facts.has_value()) std::printf("facts    %zu of memory\n", profile.facts->memory.size());
  else std::printf("facts    none\n");
  if (profile.spill.has_value()) std::printf("spill    %s\n", PrintSpillChoice(profile.spill->choice).c_str());
  if (profile.pieces.has_value()) std::printf("pieces   rows=%u\n", profile.pieces->rows);
  if (profile.input.has_value()) std::printf("input    %s\n", PrintInputRows(profile.input->rows).c_str());
  std::printf("entries  %zu\n", profile.entries.size());
  if (profile.entries.empty()) return kExitOk;
  std::vector<std::vector<std::string>> rows = {
      {"loop", "keys", "table", "pipeline", "threads", "setting", "ns/row", "default", "off", "gain", "noise"}};
  for (const ProfileEntry& entry : profile.entries) rows.push_back(RowOf(entry));
  std::printf("\n");
  PrintRows(rows);
  return kExitOk;
}

// Each location and its file. The first that has a file is used.
absl::StatusOr<int> PrintPaths() {
  const std::vector<std::string> places = ProfilePlaces(HostSignature());
  if (places.empty()) std::printf("off: QUERN_PROFILE\n");
  bool is_decided = false;
  for (const std::string& place : places) {
    const absl::StatusOr<Profile> profile = ReadProfile(place);
    const bool is_here = !absl::IsNotFound(profile.status());
    std::string what = "none";
    if (is_here)
      what = is_decided                         ? "hidden by the one before"
             : !profile.ok()                    ? "bad"
             : ForeignMachine(*profile).empty() ? "used"
                                                : "of another machine";
    std::printf("%s  %s\n", OneLine(place).c_str(), what.c_str());
    is_decided |= is_here;
  }
  return kExitOk;
}

absl::StatusOr<int> WriteOrPrint(const Profile& profile, const std::optional<std::string>& path) {
  if (path.has_value()) {
    QUERN_RETURN_IF_ERROR(WriteProfile(profile, *path));
  } else {
    std::fputs(profile.Print().c_str(), stdout);
  }
  return kExitOk;
}

absl::StatusOr<int> Merge(const ProfileCommand& command) {
  QUERN_ASSIGN_OR_RETURN(const Profile first, ReadFile(command.file(0)));
  QUERN_ASSIGN_OR_RETURN(const Profile second, ReadFile(command.file(1)));
  QUERN_ASSIGN_OR_RETURN(const Profile merged, MergeProfiles(first, second));
  return WriteOrPrint(merged, command.output);
}

absl::StatusOr<int> Diff(const ProfileCommand& command) {
  QUERN_ASSIGN_OR_RETURN(const Profile first, ReadFile(command.file(0)));
  QUERN_ASSIGN_OR_RETURN(const Profile second, ReadFile(command.file(1)));
  std::fputs(DiffProfiles(first, second).c_str(), stdout);
  return kExitOk;
}

absl::StatusOr<int> Export(const ProfileCommand& command) {
  QUERN_ASSIGN_OR_RETURN(const Profile profile, ProfileInUse());
  return WriteOrPrint(profile, command.num_files() == 0 ? std::nullopt : std::optional(command.file(0)));
}

absl::StatusOr<int> Import(const ProfileCommand& command) {
  QUERN_ASSIGN_OR_RETURN(Profile profile, ReadFile(command.file(0)));
  const std::string difference = ForeignMachine(profile);
  if (!difference.empty()) {
    return DataError("profile of another machine: " + command.file(0) + " (" + difference +
                     "); accepted: one of this machine");
  }
  QUERN_ASSIGN_OR_RETURN(const std::string home, ProfileHome(HostSignature()));
  const absl::StatusOr<Profile> before = ReadProfile(home);
  if (!absl::IsNotFound(before.status())) {
    QUERN_RETURN_IF_ERROR(AsDataError(before.status()));
    QUERN_ASSIGN_OR_RETURN(profile, MergeProfiles(*before, profile));
  }
  QUERN_RETURN_IF_ERROR(WriteProfile(profile, home));
  std::printf("%zu entries are in %s\n", profile.entries.size(), OneLine(home).c_str());
  return kExitOk;
}

}  // namespace

absl::StatusOr<int> RunProfile(const std::vector<std::string>& words) {
  ProfileCommand command;
  QUERN_ASSIGN_OR_RETURN(const bool go_on, ParseCommand(words, &command));
  if (!go_on) return kExitOk;
  QUERN_RETURN_IF_ERROR(CheckCommand(command));
  if (command.action() == "path") return PrintPaths();
  if (command.action() == "merge") return Merge(command);
  if (command.action() == "diff") return Diff(command);
  if (command.action() == "export") return Export(command);
  if (command.action() == "import") return Import(command);
  QUERN_ASSIGN_OR_RETURN(const Profile profile, command.num_files() == 0 ? ProfileInUse() : ReadFile(command.file(0)));
  return Show(profile);
}

}  // namespace quern::cli
