// SPDX-License-Identifier: Apache-2.0
// What only a process that has just begun can measure.
#ifndef QUERN_BENCH_COMPILE_FRESH_PROCESS_H_
#define QUERN_BENCH_COMPILE_FRESH_PROCESS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace quern::bench {

// Runs this program again with these words and variables, and answers the numbers that it prints. *Errors*: Internal
// where it fails or prints others than so many numbers.
absl::StatusOr<std::vector<double>> AskFreshProcess(const std::vector<std::string>& words,
                                                    const std::vector<std::pair<std::string, std::string>>& variables,
                                                    size_t num_numbers);

}  // namespace quern::bench

#endif  // QUERN_BENCH_COMPILE_FRESH_PROCESS_H_
