// SPDX-License-Identifier: Apache-2.0
// Runs of aggregation kernels over a workload, timed and in turns.
#ifndef QUERN_BENCH_AGGREGATE_AGG_RUN_H_
#define QUERN_BENCH_AGGREGATE_AGG_RUN_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/aggregate/agg_workload.h"
#include "codegen/compiler.h"
#include "codegen/operators.h"

namespace quern::bench {

// Seconds of each phase, from the turn with the smallest sum.
struct AggTimes {
  double append_s = 1e9, finalise_s = 1e9, read_s = 1e9;
  uint64_t num_groups = 0;
  AggregateStats stats;

  double all_s() const { return append_s + finalise_s + read_s; }
};

struct AggContender {
  std::vector<std::shared_ptr<const Kernel>> kernels;  // one after the other over the same input
  unsigned threads = 1;
  AggTimes best = {};

  double RowNs(const AggWorkload& workload) const {
    return best.all_s() / static_cast<double>(workload.spec().num_rows) * 1e9;
  }
};

// A contender with one kernel. params: plan parameters as --param takes them, "group_layout=open".
absl::StatusOr<AggContender> CompeteAggregate(const std::string& spec, const std::string& params = "",
                                              Engine engine = Engine::kJit);

// Runs every contender once, then every one again, and so on; the best turn counts. Groups are written to output
// batches and dropped. *Errors*: the aggregation's; Internal for a wrong number of groups.
absl::Status TakeTurns(const AggWorkload& workload, int turns, std::vector<AggContender>* contenders);

}  // namespace quern::bench

#endif  // QUERN_BENCH_AGGREGATE_AGG_RUN_H_
