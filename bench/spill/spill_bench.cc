// SPDX-License-Identifier: Apache-2.0
// What jobs cost that finish under a memory limit: joins, aggregations and sorts under a half, a quarter and a tenth of
// the memory that they would take; with files that the page cache absorbs, and with files that it does not; as rows
// become more; and where all rows fit. Each section answers one question and prints one table:
//
//     spill_bench                                        everything: an hour, 3 GiB at the peak, 15 GiB of files
//     spill_bench --benchmark_list_tests                 the names
//     spill_bench --benchmark_filter='budget/sort'       one kind of jobs
//     spill_bench --rows-scale 0.01                      everything with a hundredth of the rows: does it run?
//     QUERN_SPILL_DIR=/mnt/disk spill_bench              with files on another device
//
// Contenders take turns (A B C A B C ..) in one process, and the best turn of each counts. Before the first turn each
// runs once, and its result is compared with that in memory, row by row through a digest. `waits` counts the blocks
// that a reader waited for though they had been asked for before.
#include "bench/spill/spill_sections.h"

int main(int argc, char** argv) {
  return quern::bench::RunSections("spill_bench", quern::bench::AllSpillCells, argc, argv);
}
