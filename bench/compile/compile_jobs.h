// SPDX-License-Identifier: Apache-2.0
// The jobs on which compile_bench measures the code rather than the compilation: the main loops of every operator, on
// tables that stay in the caches, so that memory hides nothing.
#ifndef QUERN_BENCH_COMPILE_COMPILE_JOBS_H_
#define QUERN_BENCH_COMPILE_COMPILE_JOBS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace quern::bench {

using ParamLists = std::vector<std::string>;  // plan parameters of each contender: "passes=o3 codegen_level=3"

struct LoopJob {
  std::string name;
  std::string spec;
  // Nanoseconds a row for each contender, the best of interleaved turns.
  std::function<absl::StatusOr<std::vector<double>>(const ParamLists& params, uint64_t num_rows, int turns)> run;
};

// Jobs of every operator, with keys of one word, several keys, and texts.
const std::vector<LoopJob>& AllLoopJobs();

}  // namespace quern::bench

#endif  // QUERN_BENCH_COMPILE_COMPILE_JOBS_H_
