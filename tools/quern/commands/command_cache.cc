// SPDX-License-Identifier: Apache-2.0
// quern cache: the kernels on disk, which any process of this user, machine and version loads instead of compiling them
// again:
//
//     $ quern cache ls
//     used                bytes  kernel
//     2026-03-01 14:05     9412  aggregate keys=utf8 aggs=count_star,sum(i64)
//     2026-03-01 14:02     5310  join.inner keys=i64
//     $ quern cache gc --max-size 1M
//     0 files removed, 2 of 14722 bytes are left
//
// QUERN_CACHE_DIR says where; QUERN_CACHE says what runs do with them and does not matter here, but for ro, in which
// nothing is removed. All that is known of a file was read from it and checked, as a run would do; what it would not
// load is shown with the reason.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <ctime>
#include <optional>
#include <sstream>

#include "codegen/cache/disk_cache.h"
#include "runtime/base/status.h"
#include "tools/frontend/errors.h"
#include "tools/quern/commands/command.h"
#include "tools/quern/commands/disk_cache_text.h"
#include "tools/quern/run/arguments.h"

namespace quern::cli {
namespace {

struct CacheCommand {
  std::string action;
  std::optional<std::string> max_size;
  bool is_long = false;
};

absl::StatusOr<bool> ParseCommand(const std::vector<std::string>& words, CacheCommand* command) {
  Arguments arguments("cache", "Shows or removes the kernels on disk.", "quern cache gc --max-size 64M");
  arguments.Positional(
      "ACTION", &command->action,
      "ls: each kernel; stat: where and how many; clear: remove all; gc: remove the least recently used");
  arguments.Value("--max-size", &command->max_size, "SIZE",
                  "gc: bytes that may stay, as 64M (default: 256M, to which runs keep too)");
  arguments.Flag("--long", &command->is_long, "ls: with plan, versions and machine");
  return arguments.Parse(words);
}

// "2026-03-01 14:05" of the local time.
std::string TimeText(int64_t ns) {
  const auto seconds = static_cast<time_t>(ns / 1'000'000'000);
  struct tm local;
  char text[32];
  if (localtime_r(&seconds, &local) == nullptr || std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &local) == 0)
    return "unknown";
  return text;
}

// The first line of a key is the spec.
std::string SpecOf(const StoredKernel& kernel) { return kernel.description.substr(0, kernel.description.find('\n')); }

void PrintLong(const StoredKernel& kernel) {
  std::printf("    file %s, object of %" PRIu64 " bytes\n", kernel.name.c_str(), kernel.object_bytes);
  std::istringstream lines(kernel.description.substr(SpecOf(kernel).size()));
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) std::printf("    %s\n", line.c_str());
  }
}

absl::StatusOr<int> List(const DiskCache& cache, bool is_long) {
  QUERN_ASSIGN_OR_RETURN(const DiskCacheContent content, cache.Read());
  std::printf("used                bytes  kernel\n");
  for (const StoredKernel& kernel : content.kernels) {
    const std::string what =
        kernel.problem.empty() ? SpecOf(kernel) : "not loaded: " + kernel.problem + ": " + kernel.name;
    std::printf("%-16s %8" PRIu64 "  %s\n", TimeText(kernel.used_ns).c_str(), kernel.file_bytes, OneLine(what).c_str());
    if (is_long && kernel.problem.empty()) PrintLong(kernel);
  }
  return kExitOk;
}

absl::StatusOr<int> PrintStat(const DiskCache& cache) {
  QUERN_ASSIGN_OR_RETURN(const DiskCacheContent content, cache.Read());
  const DiskCacheTotals totals = TotalsOf(content);
  std::printf("folder      %s\n", cache.place().directory.c_str());
  std::printf("mode        %s\n", ModeText(cache.place().mode));
  std::printf("kernels     %" PRIu64 "\n", totals.kernels);
  std::printf("not loaded  %" PRIu64 "\n", totals.problems);
  std::printf("temporary   %" PRIu64 "\n", content.temporary_files);
  std::printf("bytes       %" PRIu64 "\n", totals.bytes + content.temporary_bytes);
  std::printf("max bytes   %" PRIu64 "\n", cache.place().max_bytes);
  return kExitOk;
}

// What clear and gc did, and what they left.
absl::StatusOr<int> ReportRemoved(uint64_t removed, const DiskCache& cache) {
  QUERN_ASSIGN_OR_RETURN(const DiskCacheContent content, cache.Read());
  std::printf("%" PRIu64 " files removed, %zu of %" PRIu64 " bytes are left\n", removed, content.kernels.size(),
              TotalsOf(content).bytes);
  return kExitOk;
}

absl::StatusOr<int> RunAction(const CacheCommand& command, DiskCache* cache) {
  if (command.action == "ls") return List(*cache, command.is_long);
  if (command.action == "stat") return PrintStat(*cache);
  if (cache->place().mode == DiskCacheMode::kReadOnly) {
    return DataError("cannot remove kernels: QUERN_CACHE=ro; accepted: QUERN_CACHE=rw or off");
  }
  uint64_t removed = 0;
  if (command.action == "clear") {
    QUERN_ASSIGN_OR_RETURN(removed, cache->Clear());
  } else {
    uint64_t max_bytes = cache->place().max_bytes;
    if (command.max_size.has_value()) {
      QUERN_ASSIGN_OR_RETURN(max_bytes, ParseBytes("--max-size", *command.max_size));
    }
    QUERN_ASSIGN_OR_RETURN(removed, cache->Collect(max_bytes));
  }
  return ReportRemoved(removed, *cache);
}

}  // namespace

absl::StatusOr<int> RunCache(const std::vector<std::string>& words) {
  CacheCommand command;
  QUERN_ASSIGN_OR_RETURN(const bool go_on, ParseCommand(words, &command));
  if (!go_on) return kExitOk;
  const std::vector<std::string> actions = {"ls", "stat", "clear", "gc"};
  if (std::find(actions.begin(), actions.end(), command.action) == actions.end()) {
    return CommandError(UnknownWord("action of cache", command.action, actions));
  }
  if (command.max_size.has_value() && command.action != "gc")
    return CommandError("--max-size without gc: " + command.action + "; accepted: gc");
  if (command.is_long && command.action != "ls")
    return CommandError("--long without ls: " + command.action + "; accepted: ls");
  QUERN_ASSIGN_OR_RETURN(const DiskCachePlace place, DiskCachePlaceOfEnvironment());
  DiskCache cache(place);
  return RunAction(command, &cache);
}

}  // namespace quern::cli
