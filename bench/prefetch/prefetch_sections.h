// SPDX-License-Identifier: Apache-2.0
// What prefetch_bench measures.
#ifndef QUERN_BENCH_PREFETCH_PREFETCH_SECTIONS_H_
#define QUERN_BENCH_PREFETCH_PREFETCH_SECTIONS_H_

#include <vector>

#include "bench/common/sections.h"

namespace quern::bench {

std::vector<NamedCell> AllPrefetchCells(const Settings& settings);

void AddPartitionedJoins(Cells* cells);  // prefetch_partitions.cc
void AddCounts(Cells* cells);            // prefetch_counts.cc

}  // namespace quern::bench

#endif  // QUERN_BENCH_PREFETCH_PREFETCH_SECTIONS_H_
