// SPDX-License-Identifier: Apache-2.0
// quern machine: what this machine's memory does, measured (codegen/machine/machine_facts.h), as a table or as JSON;
// with --device, what the file system does to which rows are spilled (codegen/machine/device_facts.h).
// While it measures it says on one line what, where stderr is a terminal:
//
//     measuring: random lines of 64 MiB on huge pages, 0.7 of 3.0 s
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdio>

#include "codegen/base/environment.h"
#include "codegen/machine/device_facts.h"
#include "codegen/machine/machine_facts.h"
#include "runtime/base/status.h"
#include "tools/frontend/errors.h"
#include "tools/quern/commands/command.h"
#include "tools/quern/files/progress.h"
#include "tools/quern/run/arguments.h"

namespace quern::cli {
namespace {

constexpr double kLeastSeconds = 0.1;
constexpr double kMostSeconds = 600;
constexpr uint64_t kLeastBytes = uint64_t{1} << kSmallestSizeClass;
constexpr uint64_t kMostBytes = uint64_t{1} << kLargestSizeClass;

absl::StatusOr<double> ParseSeconds(const std::string& text) {
  std::string_view number = text;
  if (!number.empty() && number.back() == 's') number.remove_suffix(1);
  double seconds = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), seconds);
  if (error != std::errc() || end != number.data() + number.size() ||
      !(seconds >= kLeastSeconds && seconds <= kMostSeconds))
    return CommandError("bad time of --seconds: " + Show(text) + "; accepted: 0.1 to 600, as 3, 0.5 or 3s");
  return seconds;
}

absl::StatusOr<MachineFactsOptions> OptionsOf(const std::optional<std::string>& seconds,
                                              const std::optional<std::string>& max_size) {
  MachineFactsOptions options;
  if (seconds) {
    QUERN_ASSIGN_OR_RETURN(options.seconds, ParseSeconds(*seconds));
  }
  if (max_size) {
    QUERN_ASSIGN_OR_RETURN(options.max_bytes, ParseBytes("--max-size", *max_size));
    if (options.max_bytes < kLeastBytes || options.max_bytes > kMostBytes)
      return CommandError("bad size of --max-size: " + Show(*max_size) + "; accepted: 32K to 2G");
  }
  return options;
}

// Options: those of the measurement.
template <class Options>
void ShowProgress(Options* options) {
  if (isatty(STDERR_FILENO) == 0) return;
  options->progress = [start = std::chrono::steady_clock::now(), most = options->seconds](const std::string& what) {
    WipeProgressLine();
    const double now = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::fprintf(stderr, "measuring: %s, %.1f of %.1f s", what.c_str(), now, most);
    std::fflush(stderr);
  };
}

absl::StatusOr<int> RunDevice(const std::optional<std::string>& seconds, const std::optional<std::string>& folder,
                              bool json) {
  DeviceFactsOptions options;
  if (seconds) {
    QUERN_ASSIGN_OR_RETURN(options.seconds, ParseSeconds(*seconds));
  }
  ShowProgress(&options);
  const absl::StatusOr<DeviceFacts> facts =
      MeasureDevice(folder ? *folder : ReadVariable(Variable::kSpillDir).value, options);
  WipeProgressLine();
  if (!facts.ok()) return DataError(std::string(facts.status().message()));
  std::fputs((json ? DeviceJson(*facts) + "\n" : PrintDevice(*facts)).c_str(), stdout);
  return kExitOk;
}

}  // namespace

absl::StatusOr<int> RunMachine(const std::vector<std::string>& words) {
  Arguments arguments("machine",
                      "Measures this machine's memory: how long a random line takes in tables of each size, on small "
                      "and on huge pages; where "
                      "caches end; streams; whether zeros are cheaper to store. With --device, the file system to "
                      "which rows are spilled: bandwidth and latency by the size of blocks and their number in flight. "
                      "Nothing else should run meanwhile.",
                      "quern machine --json > machine.json");
  bool json = false, device = false;
  std::optional<std::string> seconds, max_size, folder;
  arguments.Flag("--json", &json, "one JSON object on one line instead of a table");
  arguments.Value("--seconds", &seconds, "S", "time to measure, about (3; of --device 2)");
  arguments.Value("--max-size", &max_size, "SIZE", "largest table, 32K to 2G (2G or half of the memory that is free)");
  arguments.Flag("--device", &device,
                 "measure the file system of --spill-dir instead, with a nameless file of 256 MiB");
  arguments.Value("--spill-dir", &folder, "DIR", "of --device: a folder there (QUERN_SPILL_DIR, else /var/tmp)");
  QUERN_ASSIGN_OR_RETURN(const bool go_on, arguments.Parse(words));
  if (!go_on) return kExitOk;
  if (device && max_size)
    return CommandError("options exclude each other: --device and --max-size; accepted: one of them");
  if (folder && !device)
    return CommandError("what to measure: --spill-dir without --device; accepted: both, or neither");
  if (device) return RunDevice(seconds, folder, json);
  QUERN_ASSIGN_OR_RETURN(MachineFactsOptions options, OptionsOf(seconds, max_size));
  ShowProgress(&options);
  const absl::StatusOr<MachineFacts> facts = MeasureMachine(options);
  WipeProgressLine();
  if (!facts.ok()) return DataError(std::string(facts.status().message()));
  std::fputs((json ? FactsJson(*facts) + "\n" : PrintFacts(*facts)).c_str(), stdout);
  return kExitOk;
}

}  // namespace quern::cli
