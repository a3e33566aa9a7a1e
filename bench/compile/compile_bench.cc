// SPDX-License-Identifier: Apache-2.0
// How long from a spec to a callable kernel, and what the code is worth that comes out? Each section answers one
// question and prints one table, in milliseconds, one thread, nothing cached:
//
//     compile_bench                                     all of it: ten minutes
//     compile_bench --benchmark_filter='cold|keys'      every stage, medians of 50; and whether time grows linearly
//     with the keys compile_bench --benchmark_filter=first            the first compilation of a process compile_bench
//     --benchmark_filter=hit              a kernel that is in memory or on disk compile_bench --benchmark_filter=passes
//     each row of codegen/llvm/passes.def turned round: what it costs, what it gains compile_bench
//     --benchmark_filter=stock            our lists of passes beside LLVM's -O3 on every operator's main loops
//     compile_bench --benchmark_filter=levels           levels of code generation; is there a quick tier?
//
// Stages: load parses the template's bitcode, emit defines the holes, link brings blocks and checks the invariants,
// optimise is our own pass list, codegen LLVM's code generator, jit maps the code. What is compared takes turns, as in
// the other benches.
#include <cstring>

#include "bench/compile/compile_sections.h"

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--first") == 0) return quern::bench::CompileFirst(argv[2]);
  if (argc == 3 && std::strcmp(argv[1], "--from-disk") == 0) return quern::bench::CompileFromDisk(argv[2]);
  return quern::bench::RunSections("compile_bench", quern::bench::AllCompileCells, argc, argv);
}
