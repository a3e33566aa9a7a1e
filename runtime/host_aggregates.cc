// SPDX-License-Identifier: Apache-2.0
// Aggregates of a host: the registry of their names, and the accumulator that calls them.
//
// A host registers `area` once, with the size of its state and three callbacks, and from then on any spec of the process may say
// host.area(f64,f64). A batch of 1000 rows is one call: 1000 row numbers and 1000 addresses of states go over, so that a callback that does
// little costs little. Entries are never removed, since a kernel may hold their address for as long as the process runs.
//
//     state of 20 bytes in the group's row    | 20 bytes of the host | 4 bytes unused |     rounded up to 24: the next one is aligned to 8
//
// The host writes validity as bits from 0 on, while rows of the result begin anywhere: its bitmap is a copy, dealt out bit by bit.
#include "runtime/host_aggregates.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/called_accumulator_kinds.h"

namespace quern {
namespace {

constexpr size_t kLongestName = 64;
constexpr uint32_t kMostStateBytes = 4096;

struct Registry {
  std::mutex mutex;
  std::map<std::string, HostAggregate, std::less<>> aggregates;
};

// Never destroyed: threads may aggregate while the process ends.
Registry& TheRegistry() {
  static auto* const registry = new Registry;
  return *registry;
}

bool IsLetterDigitOrUnderscore(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

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

class HostAccumulator final : public SpecAccumulator {
 public:
  HostAccumulator(const AggregateSpec& spec, const HostAggregate* host) : SpecAccumulator(spec), host_(*host) {}

  uint32_t state_bytes() const override { return (host_.state_bytes + 7) / 8 * 8; }

  absl::Status Update(const AccumulatorRows& rows, AccumulatorMemory*) const override {
    if (rows.n == 0) return absl::OkStatus();
    const auto num_columns = static_cast<uint32_t>(spec().arguments.size());
    auto* const states = reinterpret_cast<void* const*>(rows.states);
    return Check("update", host_.update(host_.user, rows.columns, num_columns, rows.rows, states, rows.n));
  }

  absl::Status Merge(uint8_t* const* into, uint8_t* const* from, uint32_t n, AccumulatorMemory*) const override {
    if (n == 0) return absl::OkStatus();
    return Check("merge", host_.merge(host_.user, reinterpret_cast<void* const*>(into), reinterpret_cast<const void* const*>(from), n));
  }

  absl::StatusOr<uint32_t> Finalise(const uint8_t* const* states, uint32_t n, QuernOutColumn* out, uint64_t out_row) const override {
    if (n == 0) return 0;
    const uint32_t width = RowOf(host_.result.id).width_bytes;
    uint8_t* const values = static_cast<uint8_t*>(out->values) + out_row * width;
    std::vector<uint8_t> validity((uint64_t{n} + 7) / 8, 0xff);
    QUERN_RETURN_IF_ERROR(
        Check("finalise", host_.finalise(host_.user, reinterpret_cast<const void* const*>(states), n, values, validity.data())));
    for (uint32_t i = 0; i < n; ++i) {
      const bool valid = blocks::Bit(validity.data(), i);
      WriteValidity(out, out_row + i, valid);
      if (!valid) std::memset(values + uint64_t{i} * width, 0, width);
    }
    return n;
  }

  void Save(const uint8_t* state, std::string* bytes) const override {
    bytes->append(reinterpret_cast<const char*>(state), host_.state_bytes);
  }

  absl::Status MergeSaved(uint8_t* state, std::string_view bytes, AccumulatorMemory* memory) const override {
    if (bytes.size() != host_.state_bytes) return Damaged(bytes);
    std::vector<uint64_t> copy(state_bytes() / 8);  // aligned to 8
    std::memcpy(copy.data(), bytes.data(), bytes.size());
    auto* from = reinterpret_cast<uint8_t*>(copy.data());
    return Merge(&state, &from, 1, memory);
  }

 private:
  absl::Status Check(const char* callback, int answer) const {
    if (answer == 0) return absl::OkStatus();
    return absl::AbortedError("host aggregate failed: " + spec().host_name + ": " + callback + " answered " + std::to_string(answer) +
                              "; accepted: 0");
  }

  const HostAggregate& host_;
};

}  // namespace

absl::Status RegisterHostAggregate(std::string_view name, const HostAggregate& aggregate) {
  QUERN_RETURN_IF_ERROR(CheckName(name));
  if (aggregate.state_bytes == 0 || aggregate.state_bytes > kMostStateBytes) {
    return InvalidArgument("bad state of host aggregate " + std::string(name) + ": " + std::to_string(aggregate.state_bytes) +
                           " bytes; accepted: 1 to 4096");
  }
  QUERN_RETURN_IF_ERROR(CheckResult(name, aggregate.result));
  QUERN_RETURN_IF_ERROR(CheckCallbacks(name, aggregate));
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  if (registry.aggregates.emplace(name, aggregate).second) return absl::OkStatus();
  return absl::AlreadyExistsError("host aggregate registered twice: " + std::string(name) + "; accepted: once in a process");
}

const HostAggregate* FindHostAggregate(std::string_view name) {
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  const auto found = registry.aggregates.find(name);
  return found != registry.aggregates.end() ? &found->second : nullptr;
}

absl::StatusOr<std::unique_ptr<CalledAccumulator>> MakeHostAccumulator(const AggregateSpec& spec) {
  const HostAggregate* const host = FindHostAggregate(spec.host_name);
  if (host == nullptr) {
    return absl::NotFoundError("unknown host aggregate: " + Show(spec.host_name) + "; accepted: a name that the host registered");
  }
  return std::make_unique<HostAccumulator>(spec, host);
}

}  // namespace quern
