// SPDX-License-Identifier: Apache-2.0
// Applies a prefetch setting to a loop. The kind of prefetch is a type, chosen once outside the loop, so that a loop
// that does not prefetch contains no instruction for it. Example with 8 rows at distance 3 (at kWholeBatch the first
// column holds all of them):
//
//     prefetched   0 1 2 | 3   4   5   6   7
//     used               |   0   1   2   3   4  5 6 7
#ifndef QUERN_RUNTIME_ROWS_PREFETCH_LINES_H_
#define QUERN_RUNTIME_ROWS_PREFETCH_LINES_H_

#include <algorithm>
#include <cstdint>

#include "runtime/rows/prefetch.h"

namespace quern {

// Columns are prefetched so far ahead that they would evict groups from an L1 cache: aggregating into 10,000 groups
// takes a tenth less time with the hint for L2.
constexpr PrefetchHint kInputHint = PrefetchHint::kT1;
// Columns that are prefetched no farther ahead fit an L1 cache, and go there.
constexpr uint32_t kNearInputRows = 512;

// Calls f.operator()<Prefetch>().
template <class F>
inline __attribute__((always_inline)) decltype(auto) WithPrefetch(const PrefetchSetting& setting, F&& f) {
  if (setting.distance == 0) return f.template operator()<NoPrefetch>();
  switch (setting.hint) {
    case PrefetchHint::kT0: break;
    case PrefetchHint::kT1: return f.template operator()<PrefetchWith<PrefetchHint::kT1>>();
    case PrefetchHint::kT2: return f.template operator()<PrefetchWith<PrefetchHint::kT2>>();
    case PrefetchHint::kNta: return f.template operator()<PrefetchWith<PrefetchHint::kNta>>();
    case PrefetchHint::kWrite: return f.template operator()<PrefetchWith<PrefetchHint::kWrite>>();
  }
  return f.template operator()<PrefetchWith<PrefetchHint::kT0>>();
}

// Rows, of a batch of n, that are prefetched before the first is used. kWholeBatch exceeds the rows of any batch.
inline uint32_t RowsAhead(const PrefetchSetting& setting, uint32_t n) {
  return std::min<uint32_t>(setting.distance, n);
}
// The same for a line whose address is read from the line of RowsAhead.
inline uint32_t RowsAheadTwice(const PrefetchSetting& setting, uint32_t n) {
  return std::min<uint32_t>(2u * setting.distance, n);
}

// An entry that says where its tuples end. Where they begin is where those of the entry before it end, which one entry
// in eight, of 8 bytes, has in the line before its own.
template <class Prefetch, class Entry>
inline __attribute__((always_inline)) void PrefetchEntry(const Entry* entry) {
  Prefetch::For(entry);
  Prefetch::For(entry - 1);
}

// Calls use(i) for rows 0 .. n-1, and prefetch(i) `ahead` rows before use(i).
template <class Prefetch, class PrefetchRow, class UseRow>
inline __attribute__((always_inline)) void ForEachRow(uint32_t n, uint32_t ahead, PrefetchRow&& prefetch,
                                                      UseRow&& use) {
  uint32_t i = 0;
  if constexpr (Prefetch::kPrefetches) {
    for (; i < ahead; ++i) prefetch(i);
    for (i = 0; i + ahead < n; ++i) {
      prefetch(i + ahead);
      use(i);
    }
  }
  for (; i < n; ++i) use(i);
}

}  // namespace quern

#endif  // QUERN_RUNTIME_ROWS_PREFETCH_LINES_H_
