// SPDX-License-Identifier: Apache-2.0
// A thread pays if it gets enough rows. Aggregations have a further cost: threads that meet the same groups each make
// them, and the groups are merged afterwards. This costs next to nothing for few groups, but with many it is three to
// six times the work of one thread, and only more threads than that make up for it. So one thread appends the first
// 65,536 rows and counts the groups. If they are many, it appends three times as many rows again, to see whether their
// number keeps growing:
//
//     600,000 rows,       4 groups         4 after 65,536 rows                       all threads append the rest
//     600,000 rows,  20,000 groups    19,200 after 65,536, 20,000 after 262,144      all threads append the rest
//     600,000 rows, 150,000 groups    16,384 after 65,536, 65,536 after 262,144      one appends the rest, if fewer
//                                                                                    than eight are available
#include "codegen/plan/thread_advice.h"

#include <algorithm>

#include "runtime/base/thresholds.h"

namespace quern {

uint32_t ThreadsForRows(uint64_t num_rows, uint32_t available) {
  const uint64_t useful = num_rows == 0 ? 1 : (num_rows - 1) / thresholds::kRowsPerThread + 1;
  return static_cast<uint32_t>(std::clamp<uint64_t>(useful, 1, std::max(available, 1u)));
}

ThreadAdvice AdviseThreads(const KernelSpec& spec, uint64_t num_rows, std::span<const uint64_t> groups_seen,
                           uint32_t available) {
  const uint32_t threads = ThreadsForRows(num_rows, available);
  if (!Is<AggregationSpec, SetSpec>(spec) || threads == 1) return {threads, 0};
  if (groups_seen.empty()) return {threads, thresholds::kLookRows};
  const uint64_t first = groups_seen[0];
  if (first < thresholds::kManyGroups || threads >= thresholds::kThreadsForManyGroups) return {threads, 0};
  if (groups_seen.size() == 1) return {threads, 4 * thresholds::kLookRows};
  return {groups_seen[1] <= first + first / 2 ? threads : 1, 0};
}

}  // namespace quern
