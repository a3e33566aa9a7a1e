// SPDX-License-Identifier: Apache-2.0
// What spill_bench measures.
#ifndef QUERN_BENCH_SPILL_SPILL_SECTIONS_H_
#define QUERN_BENCH_SPILL_SPILL_SECTIONS_H_

#include <vector>

#include "bench/common/sections.h"

namespace quern::bench {

std::vector<NamedCell> AllSpillCells(const Settings& settings);

}  // namespace quern::bench

#endif  // QUERN_BENCH_SPILL_SPILL_SECTIONS_H_
