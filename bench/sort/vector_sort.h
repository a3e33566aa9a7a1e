// SPDX-License-Identifier: Apache-2.0
// A sort of bare numbers, for comparison.
#ifndef QUERN_BENCH_SORT_VECTOR_SORT_H_
#define QUERN_BENCH_SORT_VECTOR_SORT_H_

#include <cstdint>

namespace quern::bench {

// Highway's VQSort: a quicksort that partitions with the best vector instructions of the machine.
void VectorSort(int64_t* keys, uint64_t n);

// The instruction set that it uses: "AVX3", ..
const char* VectorSortTarget();

}  // namespace quern::bench

#endif  // QUERN_BENCH_SORT_VECTOR_SORT_H_
