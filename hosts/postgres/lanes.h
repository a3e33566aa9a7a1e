/* SPDX-License-Identifier: Apache-2.0
 *
 * Loops over several tuples of a page at a time, with AVX-512, where the compiler and the processor have it.
 */
#ifndef QUERN_PG_LANES_H_
#define QUERN_PG_LANES_H_

#include "postgres.h"
/* PostgreSQL's headers come first. */
#ifdef __x86_64__
#include <immintrin.h>
#define HAS_LANES 1
#define OF_LANES __attribute__((target("avx512f,avx512bw,avx512vl")))
#endif

static inline bool lanes_are_there(void) {
#ifdef HAS_LANES
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

#endif /* QUERN_PG_LANES_H_ */
