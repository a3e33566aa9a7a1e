// SPDX-License-Identifier: Apache-2.0
// What a plan tells the runtime of a sort: how, never what.
#ifndef QUERN_RUNTIME_SORT_SORT_OPTIONS_H_
#define QUERN_RUNTIME_SORT_SORT_OPTIONS_H_

#include <cstdint>
#include <vector>

#include "runtime/rows/prefetch.h"

namespace quern {

// kRadix: keys are encoded to words, and entries of words are sorted. kComparison: tuples are sorted by comparing their
// fields, as engines do that compile comparisons alone: a rival for benches and tests (`test.sort_method`), and no
// choice for users.
enum class SortMethod : uint8_t { kRadix, kComparison };

struct SortOptions {
  bool prefetches = true;  // what rows that tie or come out are read from
  PrefetchSchedules prefetch;
  PrefetchDistances distances;
  bool huge_pages = true;
  uint64_t bucket_bytes = uint64_t{1} << 18;  // of entries that are sorted in the L2 cache at a time
  uint32_t dictionary_rows = 65536;  // of a side, from which strings that are few get codes; up to kChunkRows; 0: never
  uint32_t prefix_words =
      2;  // words of an entry at most; one more where it then holds all that comes out of it; 1 to 4
  uint64_t top_rows = 262144;  // limits up to which rows that cannot come out are dropped as they arrive

  // Of all loops that prefetch; all 0 where the plan says off.
  std::vector<uint32_t> EffectiveDistances() const { return quern::EffectiveDistances(prefetch, distances); }
};

}  // namespace quern

#endif  // QUERN_RUNTIME_SORT_SORT_OPTIONS_H_
