// SPDX-License-Identifier: Apache-2.0
// The part of a plan that the runtime of a sort follows. It changes how rows are sorted, never the result.
#ifndef QUERN_RUNTIME_SORT_SORT_OPTIONS_H_
#define QUERN_RUNTIME_SORT_SORT_OPTIONS_H_

#include <cstdint>
#include <vector>

#include "runtime/rows/prefetch.h"

namespace quern {

// kRadix: keys are encoded to words, and sort-key prefixes made of them are sorted. kComparison: tuples are sorted by
// comparing their fields, as in engines that only compile comparisons. It is a baseline for benches and tests
// (`test.sort_method`), and not a choice for users.
enum class SortMethod : uint8_t { kRadix, kComparison };

struct SortOptions {
  bool prefetches = true;  // prefetch what collided rows and result rows are read from
  PrefetchSchedules prefetch;
  PrefetchDistances distances;
  bool huge_pages = true;
  uint64_t bucket_bytes = uint64_t{1} << 18;  // of prefixes that are sorted in the L2 cache at a time
  uint32_t dictionary_rows = 65536;  // rows of a thread from which few strings get codes; to kChunkRows; 0: never
  uint32_t prefix_words = 2;   // most words of a prefix, 1 to 4; one more if the prefix then holds the whole result
  bool divides_ranges = true;  // rows that memory has no room for are divided by ranges of keys, where that pays
  uint64_t top_rows = 262144;  // highest limit under which rows that are not needed are dropped as they arrive

  // The distances of all prefetch loops; all 0 where the plan says off.
  std::vector<uint32_t> EffectiveDistances() const { return quern::EffectiveDistances(prefetch, distances); }
};

}  // namespace quern

#endif  // QUERN_RUNTIME_SORT_SORT_OPTIONS_H_
