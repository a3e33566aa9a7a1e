// SPDX-License-Identifier: Apache-2.0
// Runs of sorts over a workload, timed and in turns: Quern's sorts, a merge of runs, and sorts of bare numbers.
#ifndef QUERN_BENCH_SORT_SORT_RUN_H_
#define QUERN_BENCH_SORT_SORT_RUN_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/sort/sort_workload.h"
#include "codegen/compiler.h"
#include "codegen/operators.h"
#include "runtime/sort/row_sort.h"

namespace quern::bench {

// Seconds of each phase of one run.
struct SortTimes {
  double create_s = 0, append_s = 0, finalise_s = 0, read_s = 0;
  SortStats stats;

  double all_s() const { return create_s + append_s + finalise_s + read_s; }
};

struct SortContender {
  std::function<absl::Status(SortTimes*)> run;
  std::function<absl::Status()> check;  // called before the first turn; may be empty
  SortTimes best = {.create_s = 1e9, .stats = {}};
};

// params: plan parameters as --param takes them, "test.sort_method=comparison".
absl::StatusOr<std::shared_ptr<const Kernel>> CompileSort(const std::string& spec, const std::string& params = "",
                                                          Engine engine = Engine::kJit);

// A contender that sorts the workload with a kernel whose keys are the workload's, in order and all `out`. Its check
// runs the sort once and compares the result with the input: it must be in order and have as many rows and, without a
// limit, the same values. One thread uses the plain calls.
SortContender SortWith(const std::shared_ptr<const Kernel>& kernel, const SortWorkload& workload, unsigned threads = 1);

// A contender that sorts a copy of the first key, i64, and nothing else: only the sort in place is timed, as finalise.
SortContender VectorSortOf(const SortWorkload& workload);
SortContender StdSortOf(const SortWorkload& workload);

// A contender that merges that many sorted runs of the workload. The runs are made by this call, with 64 Ki rows a
// batch, and kept.
absl::StatusOr<SortContender> MergeOf(const std::shared_ptr<const Kernel>& kernel, const SortWorkload& workload,
                                      uint32_t num_runs);

// Runs every contender once, then every one again, and so on; the best turn of each counts. *Errors*: the sort's;
// Internal for a wrong result.
absl::Status TakeTurns(int turns, std::vector<SortContender>* contenders);

}  // namespace quern::bench

#endif  // QUERN_BENCH_SORT_SORT_RUN_H_
