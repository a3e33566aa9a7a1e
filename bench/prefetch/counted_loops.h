// SPDX-License-Identifier: Apache-2.0
// Loops whose instructions and cache lines are counted rather than timed: by callgrind in a small program of their own,
// and by hardware counters in the bench.
#ifndef QUERN_BENCH_PREFETCH_COUNTED_LOOPS_H_
#define QUERN_BENCH_PREFETCH_COUNTED_LOOPS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace quern::bench {

// "descriptors", "payload", .. and "probe_open", a join's lookup of rows in slots.
std::vector<std::string> CountedLoops();

// A loop over that many rows, which can run any number of times. *Errors*: InvalidArgument for an unknown loop;
// ResourceExhausted.
absl::StatusOr<std::function<absl::Status()>> MakeCountedLoop(std::string_view loop, uint32_t distance, uint32_t rows);

}  // namespace quern::bench

#endif  // QUERN_BENCH_PREFETCH_COUNTED_LOOPS_H_
