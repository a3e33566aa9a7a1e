// SPDX-License-Identifier: Apache-2.0
// Measurements that only a new process can make.
#ifndef QUERN_BENCH_COMPILE_FRESH_PROCESS_H_
#define QUERN_BENCH_COMPILE_FRESH_PROCESS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace quern::bench {

// Runs this program again with these arguments and environment variables, and returns the numbers that it prints.
// *Errors*: Internal if it fails or does not print that many numbers.
absl::StatusOr<std::vector<double>> AskFreshProcess(const std::vector<std::string>& words,
                                                    const std::vector<std::pair<std::string, std::string>>& variables,
                                                    size_t num_numbers);

}  // namespace quern::bench

#endif  // QUERN_BENCH_COMPILE_FRESH_PROCESS_H_
