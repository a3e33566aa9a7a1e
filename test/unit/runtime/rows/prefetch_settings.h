// SPDX-License-Identifier: Apache-2.0
// Prefetch settings, none of which may change a result.
#ifndef QUERN_TEST_UNIT_RUNTIME_ROWS_PREFETCH_SETTINGS_H_
#define QUERN_TEST_UNIT_RUNTIME_ROWS_PREFETCH_SETTINGS_H_

#include <cstdint>
#include <vector>

#include "runtime/rows/prefetch.h"

namespace quern::test {

// Distances below, near and above the sizes of batches, with all hints and stages, and with batch sizes of their own.
inline std::vector<PrefetchSetting> ManySettings() {
  std::vector<PrefetchSetting> settings;
  for (const uint16_t distance : {uint16_t{0}, uint16_t{1}, uint16_t{7}, uint16_t{64}, uint16_t{512}, kWholeBatch})
    for (const PrefetchHint hint :
         {PrefetchHint::kT0, PrefetchHint::kT1, PrefetchHint::kT2, PrefetchHint::kNta, PrefetchHint::kWrite})
      settings.push_back({.distance = distance, .hint = hint});
  for (const uint16_t distance : {uint16_t{3}, kWholeBatch})
    for (const uint8_t stages : {uint8_t{1}, uint8_t{2}})
      for (const uint16_t batch_rows : {uint16_t{0}, uint16_t{1}, uint16_t{9}, uint16_t{4096}})
        settings.push_back({.distance = distance, .batch_rows = batch_rows, .stages = stages});
  return settings;
}

inline PrefetchSchedules LaddersOf(PrefetchLoop loop, const PrefetchSetting& setting) {
  PrefetchSchedules schedules;
  schedules.Set(loop, setting);
  return schedules;
}

}  // namespace quern::test

#endif  // QUERN_TEST_UNIT_RUNTIME_ROWS_PREFETCH_SETTINGS_H_
