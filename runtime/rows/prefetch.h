// SPDX-License-Identifier: Apache-2.0
// How loops over tables ask for cache lines before they use them, by the table's size. Data, not code: one kernel runs
// with any of it, and a job may be told another setting while it runs, so that measuring a candidate costs no
// compilation.
#ifndef QUERN_RUNTIME_ROWS_PREFETCH_H_
#define QUERN_RUNTIME_ROWS_PREFETCH_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "runtime/abi/kernel_abi.h"
#include "runtime/base/prefetch_line.h"

namespace quern {

const char* HintText(PrefetchHint hint);  // "t0", "t1", "t2", "nta", "w"

enum class PrefetchLoop : uint8_t {
#define QUERN_PREFETCH_LOOP(Id, name, scope, hint, stages, meaning) Id,
#include "runtime/rows/prefetch_loops.def"
};
constexpr size_t kNumPrefetchLoops = 0
#define QUERN_PREFETCH_LOOP(Id, name, scope, hint, stages, meaning) +1
#include "runtime/rows/prefetch_loops.def"
    ;
const char* LoopText(PrefetchLoop loop);  // "probe_open"

// In place of a distance: every line of a batch is asked for before the first is used (group prefetching), not so many
// rows ahead of the one that is used (a ring).
constexpr uint16_t kWholeBatch = 0xffff;

struct PrefetchSetting {
  uint16_t distance = 0;    // rows, up to kMaxPrefetchDistance, or kWholeBatch; 0: nothing is asked for
  uint16_t group_rows = 0;  // whose tuples are asked for before the first is compared; 0: as the plan says
  uint16_t batch_rows = 0;  // hashed at a time; 0: as the plan says
  uint8_t stages = 3;       // dependent lines that are asked for; those that a loop does not have are nobody's
  PrefetchHint hint = PrefetchHint::kT0;

  bool operator==(const PrefetchSetting&) const = default;
};

// Rows ahead of a ring whose arrays go on for kMaxPrefetchDistance rows behind the batch.
inline uint32_t RingDistance(const PrefetchSetting& setting) {
  return setting.distance < kMaxPrefetchDistance ? setting.distance : kMaxPrefetchDistance;
}

// "0", "64", "all/group=32/batch=512/stages=1/hint=nta": the distance, then what is not the default. *Errors*:
// InvalidArgument that names the text and what is accepted.
std::string PrintSetting(const PrefetchSetting& setting, PrefetchHint default_hint);
absl::StatusOr<PrefetchSetting> ParseSetting(std::string_view text, PrefetchHint default_hint);

struct ScheduleEntry {
  uint64_t max_bytes = UINT64_MAX;  // of the table
  PrefetchSetting setting;

  bool operator==(const ScheduleEntry&) const = default;
};

// Settings by table size, smallest first; the last rung has no upper end.
struct PrefetchSchedule {
  // As many as most have lie inside: operators copy schedules for each job, and a job of a hundred rows takes a
  // microsecond.
  using Entries = absl::InlinedVector<ScheduleEntry, 6>;
  Entries entries = Entries(1);

  const PrefetchSetting& For(uint64_t table_bytes) const;
  bool operator==(const PrefetchSchedule&) const = default;
};

// "0@1M,64@32M,128": settings, each with the size up to which it counts; the last has none. Sizes are bytes, or K, M, G
// where they are whole. Neighbours with the same setting are one rung. ParseSchedule(PrintSchedule(l)) == l where they
// are.
std::string PrintSchedule(const PrefetchSchedule& schedule, PrefetchHint default_hint);
absl::StatusOr<PrefetchSchedule> ParseSchedule(std::string_view text, PrefetchHint default_hint);
PrefetchHint DefaultHint(PrefetchLoop loop);
uint32_t NumStages(PrefetchLoop loop);

// One schedule for each loop; those of other operators are not looked at.
struct PrefetchSchedules {
  std::array<PrefetchSchedule, kNumPrefetchLoops> all;

  PrefetchSchedule& operator[](PrefetchLoop loop) { return all[static_cast<size_t>(loop)]; }
  const PrefetchSchedule& operator[](PrefetchLoop loop) const { return all[static_cast<size_t>(loop)]; }
  const PrefetchSetting& For(PrefetchLoop loop, uint64_t table_bytes) const { return (*this)[loop].For(table_bytes); }
  // One setting for tables of any size.
  void Set(PrefetchLoop loop, const PrefetchSetting& setting) { (*this)[loop].entries = {{UINT64_MAX, setting}}; }
  bool operator==(const PrefetchSchedules&) const = default;
};

// Distances that are the same for tables of any size; those of other operators are not looked at.
struct PrefetchDistances {
#define QUERN_PREFETCH_DISTANCE(name, scope, default_value, max, unit, meaning) uint32_t name = default_value;
#include "runtime/rows/prefetch_distances.def"
  bool operator==(const PrefetchDistances&) const = default;
};

// Nothing is prefetched: what `prefetch=off` means.
void StopPrefetching(PrefetchSchedules* schedules, PrefetchDistances* distances);
// All distances that an operator may follow, of each loop at each table size and of prefetch_distances.def.
std::vector<uint32_t> EffectiveDistances(const PrefetchSchedules& schedules, const PrefetchDistances& distances);

// Sizes of the machine's caches, by which a table gets a name.
struct CacheSizes {
  uint64_t l2_bytes = uint64_t{1} << 20;
  uint64_t l3_bytes = uint64_t{32} << 20;

  // "l2", "l3" or "dram".
  const char* NameFor(uint64_t table_bytes) const;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_ROWS_PREFETCH_H_
