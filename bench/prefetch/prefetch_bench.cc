// SPDX-License-Identifier: Apache-2.0
// Where prefetching pays and where it does not. Each section answers one question and prints one table:
//
//     prefetch_bench                                      everything: two to three minutes, 1.1 GiB at the peak
//     prefetch_bench --benchmark_list_tests               the names
//     prefetch_bench --benchmark_filter=payload           a loop over descriptors: distance x locality x read or write
//     prefetch_bench --benchmark_filter=operators/probe   the same for the loops of our joins
//     prefetch_bench --benchmark_filter=pgcon             one large table against 256 that fit the cache
//     prefetch_bench --benchmark_filter=counts            instructions and lines a row: callgrind, hardware
//     prefetch_bench --rows-scale 0.001 --turns 1         everything with a thousandth of the rows: does it run?
//
// Contenders take turns in one process and the best turn of each counts, since a neighbour on a shared machine can only
// add time. Memory is filled with values other than 0: some processors do not write back a line of zeros that held
// zeros before.
#include "bench/prefetch/prefetch_sections.h"

int main(int argc, char** argv) {
  return quern::bench::RunSections("prefetch_bench", quern::bench::AllPrefetchCells, argc, argv);
}
