// SPDX-License-Identifier: Apache-2.0
// Where prefetching pays and where it does not. Each section answers one question and prints one table:
//
//     prefetch_bench                                      all of it: two to three minutes, 1.1 GiB at the peak
//     prefetch_bench --benchmark_list_tests               the names
//     prefetch_bench --benchmark_filter=payload           one of the loops over descriptors: distance x locality x read
//     or write prefetch_bench --benchmark_filter=operators/probe   the same of our joins' loops prefetch_bench
//     --benchmark_filter=pgcon             one large table against 256 that fit the cache prefetch_bench
//     --benchmark_filter=counts            instructions and cache lines a row: callgrind's model, hardware counters
//     prefetch_bench --rows-scale 0.001 --turns 1         everything with a thousandth of the rows: does it run?
//
// What is compared takes turns in one process and the best of the turns counts, since a neighbour on a shared machine
// can only add. Memory is filled with other values than 0: some processors do not write back a line of zeros that was
// one before.
#include "bench/prefetch/prefetch_sections.h"

int main(int argc, char** argv) {
  return quern::bench::RunSections("prefetch_bench", quern::bench::AllPrefetchCells, argc, argv);
}
