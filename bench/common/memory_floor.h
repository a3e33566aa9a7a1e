// SPDX-License-Identifier: Apache-2.0
// The time that this machine's memory needs for a random cache line.
#ifndef QUERN_BENCH_COMMON_MEMORY_FLOOR_H_
#define QUERN_BENCH_COMMON_MEMORY_FLOOR_H_

#include <cstdint>

namespace quern::bench {

struct MemoryFloor {
  double line_ns = 1e9;  // a random line
  int distance = 0;      // the best prefetch distance, in loads
};

// Loads random lines from as much memory as a table takes, on the same kind of pages. The loads are independent; the
// result is the best of several prefetch distances and of three rounds. *Cost*: 18 times `loads`.
MemoryFloor MeasureFloor(uint64_t bytes, uint64_t loads);

}  // namespace quern::bench

#endif  // QUERN_BENCH_COMMON_MEMORY_FLOOR_H_
