// SPDX-License-Identifier: Apache-2.0
// What an aggregation costs per row: with few groups and many, with every kind of table, with one aggregate and with
// eight, on one and on several threads, compared with what the machine's memory costs per row. Each section answers one
// question and prints one table:
//
//     agg_bench                                         everything: minutes, and 3 GiB at the peak
//     agg_bench --benchmark_list_tests                  the names
//     agg_bench --benchmark_filter=groups               one section
//     agg_bench --rows-scale 0.001                      everything with a thousandth of the rows: does it run?
//
// Contenders take turns (A B C A B C ..) in one process, and the best turn of each counts, because a neighbour on a
// shared machine can only add time. Every run checks the number of its groups.
#include "bench/aggregate/agg_sections.h"

int main(int argc, char** argv) {
  return quern::bench::RunSections("agg_bench", quern::bench::AllAggregateCells, argc, argv);
}
