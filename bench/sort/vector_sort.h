// SPDX-License-Identifier: Apache-2.0
// What a sort of nothing but numbers takes.
#ifndef QUERN_BENCH_SORT_VECTOR_SORT_H_
#define QUERN_BENCH_SORT_VECTOR_SORT_H_

#include <cstdint>

namespace quern::bench {

// Highway's VQSort: a quicksort that partitions with vector instructions, by the best that the machine has.
void VectorSort(int64_t* keys, uint64_t n);

// Its instruction set: "AVX3", ..
const char* VectorSortTarget();

}  // namespace quern::bench

#endif  // QUERN_BENCH_SORT_VECTOR_SORT_H_
