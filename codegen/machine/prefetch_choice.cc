// SPDX-License-Identifier: Apache-2.0
// The formula. Several lines can be loaded at the same time: with 130 ns of latency and 3 ns a line when many are
// outstanding, 44 lines cover the latency. Rows come unevenly, so the distance is twice as much, rounded up to a power
// of two: 88, 128. By size class:
//
//     2^20 bytes     5 ns, a hit in L2             0    less than a prefetch costs
//     2^25 bytes    20 ns, 1.2 ns a line    34 -> 64    in L3
//     2^27 bytes   130 ns, 3 ns a line      87 -> 128   in memory
//
// For caches of 1 MiB and 32 MiB this gives the schedule "0@1M,64@32M,128". The latencies are those that a profile has
// measured, otherwise these three numbers. A profile's entries for the loop itself take precedence (profile.h).
#include "codegen/machine/prefetch_choice.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "codegen/machine/profile.h"
#include "runtime/aggregate/aggregate_descriptor.h"
#include "runtime/rows/row_layout.h"

namespace quern {
namespace {

constexpr uint32_t kNumClasses = kLargestSizeClass - kSmallestSizeClass + 1;

bool HasVariable(const ColumnType& type) { return !type.is_dictionary && IsVariable(RowOf(type.id).storage); }

uint64_t BytesOf(uint32_t size_class) { return uint64_t{1} << size_class; }

// A load with a smaller latency is not prefetched: the instructions for the prefetch take as long.
constexpr double kPrefetchNs = 6;
// Outstanding lines per line that covers the latency (of 37 cells for which `quern tune` found better settings, most
// needed fewer than four: with 6 MiB, 13 ns and 1.2 ns a line, distance 16 takes 3.5 ns a probe, distance 128 3.8).
constexpr double kBursts = 2;
constexpr uint32_t kLeastDistance = 8;
constexpr uint32_t kMostDistance = 128;  // a larger distance begins to evict lines that were prefetched before
constexpr uint32_t kCollisionDistance =
    24;  // rows, among collided strings, whose next bytes are prefetched (collision_sort.cc)

// The table size from which prefetch pays, whatever the latencies. Packed keys of groups are looked up eight at a time,
// independently, so prefetch gains only above a quarter of the L3 cache (100,000 groups of 32 bytes: 6.7 ns a row
// without, 7.1 with; 300,000: 13.5 and 9.9; `agg_bench --benchmark_filter=groups`).
uint64_t GateBytes(PrefetchLoop loop, const MemoryModel& model) {
  // Sorted rows are read one after another, independently (four columns, 1.5 MiB: 2.4 ns a row without, 5.7 with; 3
  // MiB: 8.4 and 5.9).
  if (loop == PrefetchLoop::kGather) return 2 * model.l2_bytes;
  if (loop == PrefetchLoop::kCollision) return model.l2_bytes / 2;
  const bool is_packed_key_groups = loop == PrefetchLoop::kUpdateDense || loop == PrefetchLoop::kUpdateOpen;
  return is_packed_key_groups ? std::max(model.l2_bytes, model.l3_bytes / 4) : 0;
}

uint32_t DistanceOf(const MemoryModel& model, uint32_t class_number) {
  const double latency = model.latency_ns[class_number], line = model.line_ns[class_number];
  if (!(latency >= kPrefetchNs)) return 0;
  const double rows = line > 0 ? std::min<double>(std::ceil(kBursts * latency / line), kMostDistance) : kLeastDistance;
  return std::clamp(std::bit_ceil(static_cast<uint32_t>(rows)), kLeastDistance, kMostDistance);
}

// The end of a class. A cache's class ends with the cache, even if the cache's size is not a power of two.
uint64_t EndOfClass(const MemoryModel& model, uint32_t class_number) {
  const uint64_t end = BytesOf(kSmallestSizeClass + class_number);
  for (const uint64_t cache : {model.l2_bytes, model.l3_bytes})
    if (cache >= end && cache < 2 * end) return cache;
  return end;
}

PrefetchSetting SettingOf(PrefetchLoop loop, uint32_t distance) {
  PrefetchSetting setting;
  setting.distance = static_cast<uint16_t>(distance);
  setting.hint = DefaultHint(loop);
  return setting;
}

void AddEntry(uint64_t max_bytes, const PrefetchSetting& setting, PrefetchSchedule* schedule) {
  if (!schedule->entries.empty() && schedule->entries.back().setting == setting)
    schedule->entries.back().max_bytes = max_bytes;
  else schedule->entries.push_back({max_bytes, setting});
}

}  // namespace

const char* KeyClassText(KeyClass keys) {
  switch (keys) {
    case KeyClass::kPacked: return "packed";
    case KeyClass::kFixed: return "fixed";
    case KeyClass::kString: return "string";
  }
  return "fixed";
}

KeyClass KeyClassOf(const KernelSpec& spec) {
  std::vector<KeySpec> kernel_keys;
  bool has_variable = false;
  for (const KeySpec& key : KeysOf(spec)) {
    kernel_keys.push_back(KernelKey(key));
    has_variable |= HasVariable(key.type);
  }
  const auto* const sort = std::get_if<SortSpec>(&spec);
  if (sort != nullptr)
    for (const ColumnType& type : sort->payload) has_variable |= HasVariable(type);
  if (has_variable) return KeyClass::kString;
  if (sort != nullptr) return sort->payload.empty() ? KeyClass::kPacked : KeyClass::kFixed;
  return WordBits(kernel_keys) != 0 ? KeyClass::kPacked : KeyClass::kFixed;
}

uint32_t SizeClassOf(uint64_t table_bytes) {
  const auto bits = static_cast<uint32_t>(std::bit_width(std::max<uint64_t>(table_bytes, 1) - 1));
  return std::clamp(bits, kSmallestSizeClass, kLargestSizeClass);
}

MemoryModel BelievedModel(const Machine& machine) {
  MemoryModel model = {machine.l2_bytes, machine.l3_bytes, {}, {}};
  for (uint32_t i = 0; i < kNumClasses; ++i) {
    const uint64_t bytes = BytesOf(kSmallestSizeClass + i);
    model.latency_ns[i] = bytes <= machine.l2_bytes ? 5 : bytes <= machine.l3_bytes ? 20 : 130;
    model.line_ns[i] = bytes <= machine.l2_bytes ? 1 : bytes <= machine.l3_bytes ? 1.2 : 3;
  }
  return model;
}

PrefetchSchedule EstimateSchedule(PrefetchLoop loop, KeyClass, const MemoryModel& model) {
  PrefetchSchedule schedule;
  schedule.entries.clear();
  // Sorts read rows in blocks, which are short enough to be prefetched whole, and in prefix collisions.
  if (loop == PrefetchLoop::kGather || loop == PrefetchLoop::kCollision) {
    if (const uint64_t gate = GateBytes(loop, model); gate != 0) AddEntry(gate, SettingOf(loop, 0), &schedule);
    AddEntry(UINT64_MAX, SettingOf(loop, loop == PrefetchLoop::kGather ? kWholeBatch : kCollisionDistance), &schedule);
    return schedule;
  }
  // A build prefetches whole blocks, since they are short and a tuple's position suffices for its prefetch (100,000
  // tuples into slots: 10 % less time than with distance 64; 3 M: 4 %).
  const bool builds_packed_keys = loop == PrefetchLoop::kBuildOpen || loop == PrefetchLoop::kBuildDense;
  const uint64_t gate = GateBytes(loop, model);
  for (uint32_t i = 0; i < kNumClasses; ++i) {
    const uint64_t end = i + 1 == kNumClasses ? UINT64_MAX : EndOfClass(model, i);
    const uint64_t begin = schedule.entries.empty() ? 0 : schedule.entries.back().max_bytes;
    if (begin < gate) AddEntry(std::min(gate, end), SettingOf(loop, 0), &schedule);
    const uint32_t distance = DistanceOf(model, i);
    if (end > gate)
      AddEntry(end, SettingOf(loop, builds_packed_keys && distance != 0 ? kWholeBatch : distance), &schedule);
  }
  return schedule;
}

PrefetchSchedule ChooseSchedule(PrefetchLoop loop, KeyClass keys, uint32_t pipeline, const Machine& machine,
                                const Profile* profile, std::string* origin) {
  const bool is_measured = profile != nullptr && profile->facts.has_value() && !profile->facts->memory.empty();
  const MemoryModel model = is_measured ? ModelOf(*profile->facts, machine) : BelievedModel(machine);
  const PrefetchSchedule estimate = EstimateSchedule(loop, keys, model);
  *origin = is_measured ? "estimate by measured latencies" : "estimate";
  return profile == nullptr ? estimate : profile->Schedule(loop, keys, pipeline, estimate, origin);
}

}  // namespace quern
