// SPDX-License-Identifier: Apache-2.0
// What a join costs per row: of every key type, size and layout, with and without prefetching, on one thread and on
// several, beside what the machine's memory costs per row. Each section answers one question and prints one table; its
// cells are benchmarks by name:
//
//     join_bench                                        all of it: minutes, and 3 GiB at the peak
//     join_bench --benchmark_list_tests                 the names
//     join_bench --benchmark_filter=floor               one section
//     join_bench --benchmark_filter=postgres/i64/.*/extra0 --turns 9
//     join_bench --rows-scale 0.001                     everything with a thousandth of the rows: does it run?
//
// What is compared takes turns (A B C A B C ..) in one process, and the best of the turns counts, because a neighbour
// on a shared machine can only add. A prefetch that gains nothing differs from distance 0 by noise alone; hence a ratio
// below 0.98 is given more turns before it is believed. Every run checks the number of its result rows.
#include "bench/join/join_sections.h"

int main(int argc, char** argv) {
  return quern::bench::RunSections("join_bench", quern::bench::AllJoinCells, argc, argv);
}
