// SPDX-License-Identifier: Apache-2.0
// What a row costs in instructions and cache lines, whatever the machine and its neighbours do meanwhile: callgrind
// runs the loop over a model of caches. The model has no notion of time and ignores prefetches: a line that was
// prefetched early enough and a line that the program waits for both count as one miss. Therefore it shows how many
// lines a row touches, that this number is the same at all distances, and how many instructions prefetching costs.
// Hardware counters would show how many of the misses are waited for; the bench reads them where the system permits it.
//
//     payload      0     3.0 instructions   2.0 loads   1.25 lines: one of the payload, a quarter of one of descriptors
//     payload     64     6.0                2.5         1.25: prefetching loads the address too, two rows at a time
#include <linux/perf_event.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "bench/prefetch/counted_loops.h"
#include "bench/prefetch/prefetch_sections.h"
#include "runtime/base/status.h"

namespace quern::bench {
namespace {

constexpr uint64_t kRows = 200'000;              // 12.8 MB of payloads
constexpr const char* kModel = "1048576,16,64";  // last level: bytes (1/12 of that), ways, bytes a line
constexpr uint32_t kDistances[] = {0, 64};

// ---- callgrind -------------------------------------------------------------------------------------------------

using EventCounts = std::map<std::string, double>;

// Reads the lines "events: Ir Dr .." and "totals: 12 3 .." that callgrind writes.
absl::StatusOr<EventCounts> ReadCounts(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> events;
  EventCounts counts;
  for (std::string line, word; std::getline(file, line);) {
    std::istringstream words(line);
    words >> word;
    if (word == "events:")
      while (words >> word) events.push_back(word);
    if (word != "totals:") continue;
    double count = 0;
    for (size_t i = 0; i < events.size() && words >> count; ++i) counts[events[i]] = count;
  }
  if (counts["Ir"] == 0)
    return Internal("no counts: in " + Show(path) + "; accepted: the output of callgrind for a loop that ran");
  return counts;
}

// Waits for a program whose output is discarded. Returns its exit status; 127 if it could not be started.
int RunProgram(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", 1, 0);
  pid_t child = 0;
  const int error = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  if (error != 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 127;
  return WEXITSTATUS(status);
}

bool HasCallgrind() {
  static const bool has = RunProgram({"valgrind", "--version"}) == 0;
  return has;
}

absl::StatusOr<EventCounts> AskCallgrind(const std::string& loop, uint32_t distance, uint64_t rows) {
  std::error_code error;
  const std::filesystem::path program =
      std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / "prefetch_counted";
  const std::filesystem::path out =
      std::filesystem::temp_directory_path(error) / ("quern_counts." + std::to_string(getpid()));
  const int status = RunProgram({"valgrind", "--tool=callgrind", "--cache-sim=yes", "--toggle-collect=QuernCountedLoop",
                                 "--I1=32768,8,64", "--D1=32768,8,64", std::string("--LL=") + kModel,
                                 "--callgrind-out-file=" + out.string(), program.string(), loop,
                                 std::to_string(distance), std::to_string(rows)});
  auto counts = ReadCounts(out.string());
  std::filesystem::remove(out, error);
  if (status != 0) {
    return Internal("callgrind failed: status " + std::to_string(status) + " of " + Show(program.string()) +
                    "; accepted: 0");
  }
  return counts;
}

// ---- hardware counters -----------------------------------------------------------------------------------------

// Counts the cache misses of this thread in user mode.
class MissCounter {
 public:
  MissCounter() {
    perf_event_attr attr = {};
    attr.size = sizeof attr;
    attr.type = PERF_TYPE_HARDWARE;
    attr.config = PERF_COUNT_HW_CACHE_MISSES;
    attr.disabled = 1;
    attr.exclude_kernel = 1;
    attr.exclude_hv = 1;
    descriptor_ = static_cast<int>(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
    if (descriptor_ < 0) error_ = errno;
  }
  MissCounter(const MissCounter&) = delete;
  MissCounter& operator=(const MissCounter&) = delete;
  ~MissCounter() {
    if (descriptor_ >= 0) close(descriptor_);
  }

  // nullopt where the system has no counters.
  std::optional<uint64_t> Count(const std::function<void()>& run) const {
    if (descriptor_ < 0) return std::nullopt;
    ioctl(descriptor_, PERF_EVENT_IOC_RESET, 0);
    ioctl(descriptor_, PERF_EVENT_IOC_ENABLE, 0);
    run();
    ioctl(descriptor_, PERF_EVENT_IOC_DISABLE, 0);
    uint64_t count = 0;
    if (read(descriptor_, &count, sizeof count) != sizeof count) return std::nullopt;
    return count;
  }
  int error() const { return error_; }

 private:
  int descriptor_ = -1, error_ = 0;
};

// ---- the section -----------------------------------------------------------------------------------------------

absl::StatusOr<std::string> HardwareMisses(const MissCounter& counter, const std::string& loop, uint32_t distance,
                                           uint64_t rows) {
  QUERN_ASSIGN_OR_RETURN(const auto run, MakeCountedLoop(loop, distance, static_cast<uint32_t>(rows)));
  absl::Status outcome;
  const std::optional<uint64_t> misses = counter.Count([&] { outcome = run(); });
  QUERN_RETURN_IF_ERROR(outcome);
  return misses.has_value() ? Fixed(static_cast<double>(*misses) / static_cast<double>(rows)) : "-";
}

// The difference that prefetching makes to the counts.
void PrintReading(const std::string& loop, const std::vector<EventCounts>& counts, double rows,
                  const MissCounter& counter) {
  const auto difference = [&](const char* event) { return (counts[1].at(event) - counts[0].at(event)) / rows; };
  const double lines = difference("DLmr") + difference("DLmw");
  std::printf(
      "\n%s: prefetching %u rows ahead adds %s instructions and %s loads a row, and %s lines to the %s that a row "
      "touches\n",
      loop.c_str(), kDistances[1], Fixed(difference("Ir")).c_str(), Fixed(difference("Dr")).c_str(),
      lines < 0.01 && lines > -0.01 ? "no" : Fixed(lines).c_str(),
      Fixed((counts[0].at("DLmr") + counts[0].at("DLmw")) / rows).c_str());
  if (counter.error() != 0) std::printf("no hardware counters here: %s\n", std::strerror(counter.error()));
  std::printf("\n");
  std::fflush(stdout);
}

absl::Status CountsCell(const Settings& settings, const std::string& loop, Section* section) {
  const uint64_t rows = settings.Rows(kRows);
  const MissCounter counter;
  std::vector<EventCounts> all;
  for (const uint32_t distance : kDistances) {
    QUERN_ASSIGN_OR_RETURN(const std::string hardware, HardwareMisses(counter, loop, distance, rows));
    std::vector<std::string> row = {loop, std::to_string(distance), Grouped(rows)};
    EventCounts counts;
    if (HasCallgrind()) {
      QUERN_ASSIGN_OR_RETURN(counts, AskCallgrind(loop, distance, rows));
    }
    for (const auto& events : {std::pair{"Ir", ""}, {"Dr", ""}, {"Dw", ""}, {"D1mr", "D1mw"}, {"DLmr", "DLmw"}})
      row.push_back(counts.empty() ? "-"
                                   : Fixed((counts[events.first] + counts[events.second]) / static_cast<double>(rows)));
    row.push_back(hardware);
    section->Row(row);
    all.push_back(std::move(counts));
  }
  if (HasCallgrind()) PrintReading(loop, all, static_cast<double>(rows), counter);
  else std::printf("\nno valgrind here: no counts\n\n");
  return absl::OkStatus();
}

}  // namespace

void AddCounts(Cells* cells) {
  cells->Begin(
      "counts",
      "callgrind's model of caches (D1 32 KiB, last level 1 MiB), which ignores prefetches: what does a row touch?",
      {{"loop", -13},
       {"distance", 9},
       {"rows", 10},
       {"instructions", 14, "a row, callgrind"},
       {"loads", 8, "a row, callgrind"},
       {"stores", 8, "a row, callgrind"},
       {"D1 misses", 11, "a row, callgrind"},
       {"LL misses", 11, "a row, callgrind"},
       {"misses", 10, "hardware"}});
  for (const std::string& loop : CountedLoops())
    cells->Add(loop,
               [settings = cells->settings(), loop](Section* section) { return CountsCell(settings, loop, section); });
}

}  // namespace quern::bench
