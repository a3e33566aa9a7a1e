// SPDX-License-Identifier: Apache-2.0
// What a collation costs: in a filter's comparisons and LIKE, as a key of sorts, joins and aggregations, and as a
// function; compared with binary, and with a class that has a virtual comparison, as engines have it. Each section
// answers one question and prints one table:
//
//     collation_bench                                   everything: five to ten minutes, and 1 GiB at the peak
//     collation_bench --benchmark_list_tests            the names
//     collation_bench --benchmark_filter=predicates     one section
//     collation_bench --rows-scale 0.001                everything with a thousandth of the rows: does it run?
//
// Contenders take turns (A B C A B C ..) in one process, and the best turn of each counts, because a neighbour on a
// shared machine can only add time. All results are checked before anything is timed.
#include "bench/collation/collation_sections.h"

int main(int argc, char** argv) {
  return quern::bench::RunSections("collation_bench", quern::bench::AllCollationCells, argc, argv);
}
