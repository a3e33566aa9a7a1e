// SPDX-License-Identifier: Apache-2.0
// Wassenberg, Blacher, Giesen, Sanders, "Vectorized and performance-portable quicksort", 2022: 10 M numbers of 64 bits
// in 5 ns each on AVX-512. It is the reference for a single integer key; it moves no row numbers. Debian: libhwy-dev.
#include "bench/sort/vector_sort.h"

#include <hwy/contrib/sort/vqsort.h>
#include <hwy/targets.h>

namespace quern::bench {

void VectorSort(int64_t* keys, uint64_t n) {
  const hwy::Sorter sorter;
  sorter(keys, n, hwy::SortAscending());
}

const char* VectorSortTarget() {
  const int64_t targets = hwy::SupportedTargets();
  return hwy::TargetName(targets & -targets);  // the lowest set bit is the best target
}

}  // namespace quern::bench
