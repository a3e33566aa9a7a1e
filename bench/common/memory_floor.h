// SPDX-License-Identifier: Apache-2.0
// What this machine's memory asks for a random cache line, whatever a program does with it.
#ifndef QUERN_BENCH_COMMON_MEMORY_FLOOR_H_
#define QUERN_BENCH_COMMON_MEMORY_FLOOR_H_

#include <cstdint>

namespace quern::bench {

struct MemoryFloor {
  double line_ns = 1e9;  // of one random line
  int distance = 0;      // of the prefetch that was best; loads
};

// Random lines of as much memory as a table takes, on the same kind of pages: independent loads, the best of several
// prefetch distances and of three rounds. *Cost*: 18 times `loads`.
MemoryFloor MeasureFloor(uint64_t bytes, uint64_t loads);

}  // namespace quern::bench

#endif  // QUERN_BENCH_COMMON_MEMORY_FLOOR_H_
