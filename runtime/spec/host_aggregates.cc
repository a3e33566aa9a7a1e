// SPDX-License-Identifier: Apache-2.0
// The registry of a host's aggregate functions.
//
// A host registers `area` once, with the size of its state and three callbacks; from then on any spec of the process
// may use host.area(f64,f64). Entries are never removed, since a kernel may hold their address for as long as the
// process runs.
#include "runtime/spec/host_aggregates.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>

#include "runtime/base/fork_safety.h"
#include "runtime/base/status.h"

namespace quern {
namespace {

constexpr size_t kLongestName = 64;
constexpr uint32_t kMostStateBytes = 4096;

struct Registry {
  ForkSafeMutex mutex;
  std::map<std::string, HostAggregate, std::less<>> aggregates;
};

// Never destroyed: threads may aggregate while the process ends.
Registry& TheRegistry() {
  const NoFork no_fork;  // the first call makes it
  static auto* const registry = new Registry;
  return *registry;
}

bool IsLetterDigitOrUnderscore(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

absl::Status CheckName(std::string_view name) {
  if (!name.empty() && name.size() <= kLongestName && std::all_of(name.begin(), name.end(), IsLetterDigitOrUnderscore))
    return absl::OkStatus();
  return InvalidArgument("bad name of a host aggregate: " + Show(name) + "; accepted: 1 to 64 letters, digits and '_'");
}

absl::Status CheckResult(std::string_view name, const ColumnType& result) {
  const bool is_known = static_cast<size_t>(result.id) < AllTypes().size();
  const Storage storage = is_known ? RowOf(result.id).storage : kNoStorage;
  const bool is_fixed = storage == k8 || storage == k16 || storage == k32 || storage == k64 || storage == k128;
  if (is_fixed && !result.is_dictionary) return absl::OkStatus();
  return InvalidArgument("bad result type of host aggregate " + std::string(name) + ": " +
                         (is_known ? PrintType(result) : std::to_string(static_cast<int>(result.id))) +
                         "; accepted: numbers, dates and times");
}

absl::Status CheckCallbacks(std::string_view name, const HostAggregate& aggregate) {
  const char* missing = nullptr;
  if (aggregate.finalise == nullptr) missing = "finalise";
  if (aggregate.merge == nullptr) missing = "merge";
  if (aggregate.update == nullptr) missing = "update";
  if (missing == nullptr) return absl::OkStatus();
  return InvalidArgument("missing callback of host aggregate " + std::string(name) + ": " + missing +
                         "; accepted: update, merge and finalise");
}

}  // namespace

absl::Status RegisterHostAggregate(std::string_view name, const HostAggregate& aggregate) {
  QUERN_RETURN_IF_ERROR(CheckName(name));
  if (aggregate.state_bytes == 0 || aggregate.state_bytes > kMostStateBytes) {
    return InvalidArgument("bad state of host aggregate " + std::string(name) + ": " +
                           std::to_string(aggregate.state_bytes) + " bytes; accepted: 1 to 4096");
  }
  QUERN_RETURN_IF_ERROR(CheckResult(name, aggregate.result));
  QUERN_RETURN_IF_ERROR(CheckCallbacks(name, aggregate));
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  if (registry.aggregates.emplace(name, aggregate).second) return absl::OkStatus();
  return absl::AlreadyExistsError("host aggregate registered twice: " + std::string(name) +
                                  "; accepted: once in a process");
}

const HostAggregate* FindHostAggregate(std::string_view name) {
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  const auto found = registry.aggregates.find(name);
  return found != registry.aggregates.end() ? &found->second : nullptr;
}

}  // namespace quern
