// SPDX-License-Identifier: Apache-2.0
// What a sort costs per row: with all kinds of keys, compared with a vectorised sort of bare numbers; compiled and
// generic, with encoded keys and with comparisons; for ten rows and for millions; for rows that arrive in order; for
// the first rows alone; on one and on several threads; and for a merge of sorted runs. Each section answers one
// question and prints one table:
//
//     sort_bench                                         everything: minutes, and 3 GiB at the peak
//     sort_bench --benchmark_list_tests                  the names
//     sort_bench --benchmark_filter=keys/i64             one key list
//     sort_bench --rows-scale 0.001                      everything with a thousandth of the rows: does it run?
//
// Contenders take turns (A B C A B C ..) in one process, and the best turn of each counts, because a neighbour on a
// shared machine can only add time. Before the first turn the result of every sort is checked once: it must be in order
// and have the input's values.
#include "bench/sort/sort_sections.h"

int main(int argc, char** argv) {
  return quern::bench::RunSections("sort_bench", quern::bench::AllSortCells, argc, argv);
}
