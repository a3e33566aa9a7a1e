// SPDX-License-Identifier: Apache-2.0
// What a sort costs per row: of all kinds of keys, beside a vectorised sort of bare numbers; compiled and generic, by
// encoded keys and by comparing; of ten rows and of millions; of rows that came in order; of the first rows alone; on
// one thread and on several; and a merge of sorted runs. Each section answers one question and prints one table:
//
//     sort_bench                                         all of it: minutes, and 3 GiB at the peak
//     sort_bench --benchmark_list_tests                  the names
//     sort_bench --benchmark_filter=keys/i64             one key list
//     sort_bench --rows-scale 0.001                      everything with a thousandth of the rows: does it run?
//
// What is compared takes turns (A B C A B C ..) in one process, and the best of the turns counts, because a neighbour
// on a shared machine can only add. Before the first turn every sort's result is checked once: in order, and the values
// that went in.
#include "bench/sort/sort_sections.h"

int main(int argc, char** argv) {
  return quern::bench::RunSections("sort_bench", quern::bench::AllSortCells, argc, argv);
}
