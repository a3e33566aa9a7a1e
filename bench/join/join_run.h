// SPDX-License-Identifier: Apache-2.0
// Runs of join kernels over a workload, timed and in turns.
#ifndef QUERN_BENCH_JOIN_JOIN_RUN_H_
#define QUERN_BENCH_JOIN_JOIN_RUN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/join/join_workload.h"
#include "codegen/compiler.h"
#include "codegen/operators.h"

namespace quern::bench {

// Seconds of each phase; the best of all turns.
struct JoinTimes {
  double append_s = 1e9, finalise_s = 1e9, probe_s = 1e9, scan_s = 1e9;
  uint64_t rows_out = 0;
  JoinStats stats;

  double build_s() const { return append_s + finalise_s; }
  double all_s() const { return build_s() + probe_s + scan_s; }
};

struct Contender {
  std::shared_ptr<const Kernel> kernel;
  unsigned threads = 1;
  uint64_t probe_rows = UINT64_MAX;  // at most that many of the workload's
  int turns = INT32_MAX;             // the number of turns that it takes part in
  JoinTimes best = {};

  uint64_t ProbeRows(const JoinWorkload& workload) const { return std::min(probe_rows, workload.spec().probe_rows); }
  double BuildNs(const JoinWorkload& workload) const {
    return best.build_s() / static_cast<double>(workload.spec().build_rows) * 1e9;
  }
  double ProbeNs(const JoinWorkload& workload) const {
    return (best.probe_s + best.scan_s) / static_cast<double>(ProbeRows(workload)) * 1e9;
  }
};

// A contender with the compiled kernel of a spec. params: plan parameters as --param takes them, "layout=open
// partition_bits=0".
absl::StatusOr<Contender> Compete(const std::string& spec, const std::string& params = "");

// Runs every contender once, then every one again, and so on. Thus what a neighbour on a shared machine does affects
// all contenders, and since it can only add time, the best turn counts. Small build sides are built up to 200 times a
// turn. *Errors*: the join's; Internal for a wrong number of rows.
absl::Status TakeTurns(const JoinWorkload& workload, int turns, std::vector<Contender>* contenders);

}  // namespace quern::bench

#endif  // QUERN_BENCH_JOIN_JOIN_RUN_H_
