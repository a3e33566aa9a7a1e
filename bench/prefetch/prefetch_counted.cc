// SPDX-License-Identifier: Apache-2.0
// A program for callgrind: it makes the rows of one loop and runs the loop once, in a function whose name tells
// callgrind when to count.
//
//     valgrind --tool=callgrind --cache-sim=yes --toggle-collect=QuernCountedLoop prefetch_counted payload 64 200000
//
// prefetch_bench runs it this way for its section "counts". The program does not contain LLVM, whose debug information
// valgrind reads slowly or not at all.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "bench/prefetch/counted_loops.h"

extern "C" __attribute__((noinline)) bool QuernCountedLoop(const std::function<absl::Status()>* run) {
  return (*run)().ok();
}

int main(int argc, char** argv) {
  const auto number = [&](int i) { return argc > i ? static_cast<uint32_t>(std::strtoul(argv[i], nullptr, 10)) : 0; };
  const auto run = quern::bench::MakeCountedLoop(argc > 1 ? argv[1] : "", number(2), number(3));
  if (!run.ok()) {
    std::fprintf(stderr, "prefetch_counted: error: %s\n", std::string(run.status().message()).c_str());
    return 2;
  }
  return QuernCountedLoop(&*run) ? 0 : 1;
}
