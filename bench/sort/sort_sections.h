// SPDX-License-Identifier: Apache-2.0
// What sort_bench measures.
#ifndef QUERN_BENCH_SORT_SORT_SECTIONS_H_
#define QUERN_BENCH_SORT_SORT_SECTIONS_H_

#include <vector>

#include "bench/common/sections.h"

namespace quern::bench {

std::vector<NamedCell> AllSortCells(const Settings& settings);

}  // namespace quern::bench

#endif  // QUERN_BENCH_SORT_SORT_SECTIONS_H_
