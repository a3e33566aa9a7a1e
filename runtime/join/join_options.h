// SPDX-License-Identifier: Apache-2.0
// The part of a plan that the runtime of a join reads. It changes how the join runs, never its result.
#ifndef QUERN_RUNTIME_JOIN_JOIN_OPTIONS_H_
#define QUERN_RUNTIME_JOIN_JOIN_OPTIONS_H_

#include <cstdint>
#include <vector>

#include "runtime/rows/prefetch.h"

namespace quern {

// kAuto: dense where the keys' range allows it, else open where the keys are unique and the tuples narrow, else
// unchained. The other values request one layout; where the data rules it out, the choice falls back in the same order.
enum class LayoutChoice : uint8_t { kAuto, kUnchained, kDense, kOpen };

// kAuto: a table of packed keys, whose rows are in no bitmap, has a bitmap of its keys beside it where that is small.
enum class KeyFilterChoice : uint8_t { kAuto, kOff };

struct JoinOptions {
  PrefetchSchedules prefetch;  // applied when the table is complete, by its bytes
  PrefetchDistances distances;
  CacheSizes caches;
  LayoutChoice layout = LayoutChoice::kAuto;
  KeyFilterChoice key_filter = KeyFilterChoice::kAuto;
  uint32_t open_load_percent = 40;
  uint32_t partition_bits = 6;
  bool huge_pages = true;
  bool adapts = true;  // adaptive gates (adaptive_gate.h) may close where a choice does not pay off

  // The distances of all loops that prefetch; all 0 where the plan says off.
  std::vector<uint32_t> EffectiveDistances() const { return quern::EffectiveDistances(prefetch, distances); }
};

}  // namespace quern

#endif  // QUERN_RUNTIME_JOIN_JOIN_OPTIONS_H_
