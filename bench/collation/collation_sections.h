// SPDX-License-Identifier: Apache-2.0
// What collation_bench measures.
#ifndef QUERN_BENCH_COLLATION_COLLATION_SECTIONS_H_
#define QUERN_BENCH_COLLATION_COLLATION_SECTIONS_H_

#include <string>
#include <vector>

#include "bench/common/sections.h"

namespace quern::bench {

std::vector<NamedCell> AllCollationCells(const Settings& settings);

// The sections: filters and functions of strings; sorts, joins and aggregations; memory primitives.
void AddStringSections(Cells* cells);
void AddOperatorSections(Cells* cells);
void AddMemorySection(Cells* cells);

// The collations to compare, binary first.
const std::vector<std::string>& BenchCollations();

}  // namespace quern::bench

#endif  // QUERN_BENCH_COLLATION_COLLATION_SECTIONS_H_
