// SPDX-License-Identifier: Apache-2.0
// How loops over tables prefetch cache lines, by the table's size. These settings are data, not code: one kernel runs
// with any of them, and a running job accepts another setting, so measuring a candidate needs no compilation.
#ifndef QUERN_RUNTIME_ROWS_PREFETCH_H_
#define QUERN_RUNTIME_ROWS_PREFETCH_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
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

// In place of a distance: every line of a batch is prefetched before the first is used (group prefetching), instead of
// a fixed number of rows ahead of the one in use (a ring).
constexpr uint16_t kWholeBatch = 0xffff;

struct PrefetchSetting {
  uint16_t distance = 0;    // rows, up to kMaxPrefetchDistance, or kWholeBatch; 0: no prefetch
  uint16_t group_rows = 0;  // rows whose tuples are prefetched before the first is compared; 0: as in the plan
  uint16_t batch_rows = 0;  // rows hashed at a time; 0: as in the plan
  uint8_t stages = 3;       // dependent lines that are prefetched; a loop with fewer stages ignores the rest
  PrefetchHint hint = PrefetchHint::kT0;

  bool operator==(const PrefetchSetting&) const = default;
};

// The distance of a ring whose arrays extend kMaxPrefetchDistance rows beyond the batch.
inline uint32_t RingDistance(const PrefetchSetting& setting) {
  return setting.distance < kMaxPrefetchDistance ? setting.distance : kMaxPrefetchDistance;
}

// "0", "64", "all/group=32/batch=512/stages=1/hint=nta": the distance, then whatever is not the default. *Errors*:
// InvalidArgument, naming the text and what is accepted.
std::string PrintSetting(const PrefetchSetting& setting, PrefetchHint default_hint);
absl::StatusOr<PrefetchSetting> ParseSetting(std::string_view text, PrefetchHint default_hint);

struct ScheduleEntry {
  uint64_t max_bytes = UINT64_MAX;  // of the table
  PrefetchSetting setting;

  bool operator==(const ScheduleEntry&) const = default;
};

// Settings by table size, smallest first; the last entry has no upper limit.
struct PrefetchSchedule {
  // Most schedules fit inline: operators copy schedules for each job, and a job of a hundred rows takes a microsecond.
  using Entries = absl::InlinedVector<ScheduleEntry, 6>;
  Entries entries = Entries(1);

  const PrefetchSetting& For(uint64_t table_bytes) const;
  bool operator==(const PrefetchSchedule&) const = default;
};

// "0@1M,64@32M,128": settings, each with the table size up to which it applies; the last has none. Sizes are in bytes,
// or in K, M, G where they are whole. Neighbours with the same setting are printed as one entry; without such
// neighbours, ParseSchedule(PrintSchedule(l)) == l.
std::string PrintSchedule(const PrefetchSchedule& schedule, PrefetchHint default_hint);
absl::StatusOr<PrefetchSchedule> ParseSchedule(std::string_view text, PrefetchHint default_hint);
PrefetchHint DefaultHint(PrefetchLoop loop);
uint32_t NumStages(PrefetchLoop loop);

// One schedule for each loop; an operator ignores those of other operators. Copies share their schedules until one of
// them is changed: operators copy them for each job, and a job of ten rows takes three microseconds.
class PrefetchSchedules {
 public:
  using All = std::array<PrefetchSchedule, kNumPrefetchLoops>;

  const PrefetchSchedule& operator[](PrefetchLoop loop) const { return all()[static_cast<size_t>(loop)]; }
  const PrefetchSetting& For(PrefetchLoop loop, uint64_t table_bytes) const { return (*this)[loop].For(table_bytes); }
  const All& all() const { return shared_ == nullptr ? kDefault : *shared_; }

  // The schedules to be changed: this object's own from now on.
  All& Change() {
    shared_ = std::make_shared<All>(all());
    return *shared_;
  }
  // Sets one setting for tables of any size.
  void Set(PrefetchLoop loop, const PrefetchSetting& setting) {
    Change()[static_cast<size_t>(loop)].entries = {{UINT64_MAX, setting}};
  }
  bool operator==(const PrefetchSchedules& other) const { return all() == other.all(); }

 private:
  static const All kDefault;
  std::shared_ptr<All> shared_;  // null: the default
};

// Distances that are the same for tables of any size; an operator ignores those of other operators.
struct PrefetchDistances {
#define QUERN_PREFETCH_DISTANCE(name, scope, default_value, max, unit, meaning) uint32_t name = default_value;
#include "runtime/rows/prefetch_distances.def"
  bool operator==(const PrefetchDistances&) const = default;
};

// Turns all prefetching off, as `prefetch=off` does.
void StopPrefetching(PrefetchSchedules* schedules, PrefetchDistances* distances);
// All distances that an operator may use: of each loop at each table size, and of prefetch_distances.def.
std::vector<uint32_t> EffectiveDistances(const PrefetchSchedules& schedules, const PrefetchDistances& distances);

// Sizes of the machine's caches, by which tables are classified.
struct CacheSizes {
  uint64_t l2_bytes = uint64_t{1} << 20;
  uint64_t l3_bytes = uint64_t{32} << 20;

  // "l2", "l3" or "dram".
  const char* NameFor(uint64_t table_bytes) const;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_ROWS_PREFETCH_H_
