// SPDX-License-Identifier: Apache-2.0
// How long does a callable kernel take from its spec, and how good is its code? Each section answers one question and
// prints one table, in milliseconds, on one thread, with nothing cached:
//
//     compile_bench                                     everything: ten minutes
//     compile_bench --benchmark_filter='cold|keys'      every stage, medians of 50; is time linear in the keys?
//     compile_bench --benchmark_filter=first            the first compilation of a process
//     compile_bench --benchmark_filter=hit              a kernel that is in memory or on disk
//     compile_bench --benchmark_filter=passes           each row of codegen/llvm/passes.def inverted: its cost and gain
//     compile_bench --benchmark_filter=stock            our passes against LLVM's -O3, on every operator's loops
//     compile_bench --benchmark_filter=levels           levels of code generation; is there a quick tier?
//
// Stages: load parses the template's bitcode, emit defines the holes, link adds blocks and checks the invariants,
// optimise is our own pass list, codegen LLVM's code generator, jit maps the code. Contenders take turns, as in the
// other benches.
#include <cstring>

#include "bench/compile/compile_sections.h"

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--first") == 0) return quern::bench::CompileFirst(argv[2]);
  if (argc == 3 && std::strcmp(argv[1], "--from-disk") == 0) return quern::bench::CompileFromDisk(argv[2]);
  return quern::bench::RunSections("compile_bench", quern::bench::AllCompileCells, argc, argv);
}
