// SPDX-License-Identifier: Apache-2.0
// Loops whose instructions and cache lines are counted, not timed: by callgrind in a small program of their own, by
// hardware counters here.
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

// "descriptors", "payload", .. and "probe_open", a join's look-up of rows in slots.
std::vector<std::string> CountedLoops();

// A loop over so many rows, ready to run any number of times. *Errors*: InvalidArgument for a loop that there is not;
// ResourceExhausted.
absl::StatusOr<std::function<absl::Status()>> MakeCountedLoop(std::string_view loop, uint32_t distance, uint32_t rows);

}  // namespace quern::bench

#endif  // QUERN_BENCH_PREFETCH_COUNTED_LOOPS_H_
