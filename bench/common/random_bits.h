// SPDX-License-Identifier: Apache-2.0
// 64 bits that look random and follow from a number. They do not depend on the process, so that every run of a bench
// has the same rows.
#ifndef QUERN_BENCH_COMMON_RANDOM_BITS_H_
#define QUERN_BENCH_COMMON_RANDOM_BITS_H_

#include <cstdint>

#include "runtime/base/bytes.h"

namespace quern::bench {

QUERN_INLINE uint64_t RandomBits(uint64_t i) { return blocks::Mix(i, blocks::kPublicHash); }

}  // namespace quern::bench

#endif  // QUERN_BENCH_COMMON_RANDOM_BITS_H_
