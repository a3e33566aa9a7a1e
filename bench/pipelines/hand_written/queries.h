// SPDX-License-Identifier: Apache-2.0
// Queries 1, 3, 6 and 9 of TPC-H as loops written by hand. Each returns an error, or an empty text and the result.
#ifndef QUERN_BENCH_PIPELINES_HAND_WRITTEN_QUERIES_H_
#define QUERN_BENCH_PIPELINES_HAND_WRITTEN_QUERIES_H_

#include <string>

#include "bench/pipelines/hand_written/arrow_tables.h"

namespace quern::bench {

std::string Query1(TableReader* tables, unsigned num_threads, ResultTable* result);
std::string Query3(TableReader* tables, unsigned num_threads, ResultTable* result);
std::string Query6(TableReader* tables, unsigned num_threads, ResultTable* result);
std::string Query9(TableReader* tables, unsigned num_threads, ResultTable* result);

}  // namespace quern::bench

#endif  // QUERN_BENCH_PIPELINES_HAND_WRITTEN_QUERIES_H_
