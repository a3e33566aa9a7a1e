// SPDX-License-Identifier: Apache-2.0
// Chooses the prefetch schedules of a plan: from a profile where it has measured the loop, else estimated from facts of
// the machine.
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

// What a loop does for a row beside waiting for lines goes by its keys: packed into one word, of fixed width, or with
// strings among them.
enum class KeyClass : uint8_t { kPacked, kFixed, kString };
const char* KeyClassText(KeyClass keys);  // "packed", "fixed", "string"
// Of a sort: kString where a key or a column of its payload is of variable length, kPacked where entries hold all that
// comes out.
KeyClass KeyClassOf(const KernelSpec& spec);

// Classes of table size: class c holds tables of more than 2^(c-1) and at most 2^c bytes; the first and the last have
// no other end.
constexpr uint32_t kSmallestSizeClass = 15;  // 32 KiB
constexpr uint32_t kLargestSizeClass = 31;   // 2 GiB
uint32_t SizeClassOf(uint64_t table_bytes);

// What is known of the machine's memory: measured (machine_facts.h), or believed.
struct MemoryModel {
  uint64_t l2_bytes = 0, l3_bytes = 0;
  // Nanoseconds, by size class minus kSmallestSizeClass: until a dependent load of a random line is there, and per line
  // where many are under way.
  double latency_ns[kLargestSizeClass - kSmallestSizeClass + 1] = {};
  double line_ns[kLargestSizeClass - kSmallestSizeClass + 1] = {};
};
// From the cache sizes alone: 5, 20 and 130 ns.
MemoryModel BelievedModel(const Machine& machine);
// The formula: enough lines under way to cover the latency of the class, twice over, since they come in bursts; none
// where waiting costs less than asking.
PrefetchSchedule EstimateSchedule(PrefetchLoop loop, KeyClass keys, const MemoryModel& model);

// *origin: as ScheduleOrigin says.
PrefetchSchedule ChooseSchedule(PrefetchLoop loop, KeyClass keys, uint32_t pipeline, const Machine& machine,
                                const Profile* profile, std::string* origin);

}  // namespace quern

#endif  // QUERN_CODEGEN_MACHINE_PREFETCH_CHOICE_H_
