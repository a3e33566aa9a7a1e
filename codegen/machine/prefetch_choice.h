// SPDX-License-Identifier: Apache-2.0
// Chooses the prefetch schedules of a plan: from a profile if it has measurements of the loop, otherwise estimated from
// facts of the machine.
#ifndef QUERN_CODEGEN_MACHINE_PREFETCH_CHOICE_H_
#define QUERN_CODEGEN_MACHINE_PREFETCH_CHOICE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "codegen/machine/machine.h"
#include "runtime/rows/prefetch.h"
#include "runtime/spec/spec.h"

namespace quern {

class Profile;

// A row's keys decide how much a loop computes besides waiting for cache lines: packed into one word, of fixed width,
// or with strings among them.
enum class KeyClass : uint8_t { kPacked, kFixed, kString };
const char* KeyClassText(KeyClass keys);  // "packed", "fixed", "string"
// For a sort: kString if a key or a payload column has variable length; kPacked if the sort-key prefixes hold the whole
// result.
KeyClass KeyClassOf(const KernelSpec& spec);

// Classes of table size: class c holds tables of more than 2^(c-1) and at most 2^c bytes; the first class has no lower
// bound and the last no upper bound.
constexpr uint32_t kSmallestSizeClass = 15;  // 32 KiB
constexpr uint32_t kLargestSizeClass = 31;   // 2 GiB
uint32_t SizeClassOf(uint64_t table_bytes);

// The machine's memory, as measured (machine_facts.h) or assumed.
struct MemoryModel {
  uint64_t l2_bytes = 0, l3_bytes = 0;
  // Nanoseconds, indexed by size class minus kSmallestSizeClass: the latency of a dependent load of a random line, and
  // the time per line with many loads outstanding.
  double latency_ns[kLargestSizeClass - kSmallestSizeClass + 1] = {};
  double line_ns[kLargestSizeClass - kSmallestSizeClass + 1] = {};
};
// From the cache sizes alone: 5, 20 and 130 ns.
MemoryModel BelievedModel(const Machine& machine);
// The formula: enough outstanding lines to cover twice the latency of the class, since rows come in bursts; none where
// waiting costs less than prefetching.
PrefetchSchedule EstimateSchedule(PrefetchLoop loop, KeyClass keys, const MemoryModel& model);

// *origin: see ScheduleOrigin.
PrefetchSchedule ChooseSchedule(PrefetchLoop loop, KeyClass keys, uint32_t pipeline, const Machine& machine,
                                const Profile* profile, std::string* origin);

}  // namespace quern

#endif  // QUERN_CODEGEN_MACHINE_PREFETCH_CHOICE_H_
