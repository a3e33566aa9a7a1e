// SPDX-License-Identifier: Apache-2.0
// What a join costs per row: for every key type, size and layout, with and without prefetching, on one and on several
// threads, compared with what the machine's memory costs per row. Each section answers one question and prints one
// table; its cells are named benchmarks:
//
//     join_bench                                        everything: minutes, and 3 GiB at the peak
//     join_bench --benchmark_list_tests                 the names
//     join_bench --benchmark_filter=floor               one section
//     join_bench --benchmark_filter=postgres/i64/.*/extra0 --turns 9
//     join_bench --rows-scale 0.001                     everything with a thousandth of the rows: does it run?
//
// Contenders take turns (A B C A B C ..) in one process, and the best turn of each counts, because a neighbour on a
// shared machine can only add time. A prefetch that gains nothing differs from distance 0 only by noise; hence a ratio
// below 0.98 is confirmed with more turns. Every run checks the number of its result rows.
#include "bench/join/join_sections.h"

int main(int argc, char** argv) {
  return quern::bench::RunSections("join_bench", quern::bench::AllJoinCells, argc, argv);
}
