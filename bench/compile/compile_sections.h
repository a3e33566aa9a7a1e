// SPDX-License-Identifier: Apache-2.0
// The sections of compile_bench.
#ifndef QUERN_BENCH_COMPILE_COMPILE_SECTIONS_H_
#define QUERN_BENCH_COMPILE_COMPILE_SECTIONS_H_

#include <string>
#include <vector>

#include "bench/common/sections.h"

namespace quern::bench {

std::vector<NamedCell> AllCompileCells(const Settings& settings);

// What a fresh process of this bench does for section `first`: it compiles once and prints the milliseconds. Returns
// the exit status.
int CompileFirst(const std::string& spec);
// The same for section `hit`: it prints the microseconds that a kernel takes from the disk cache of the environment,
// the first time and later.
int CompileFromDisk(const std::string& spec);

}  // namespace quern::bench

#endif  // QUERN_BENCH_COMPILE_COMPILE_SECTIONS_H_
