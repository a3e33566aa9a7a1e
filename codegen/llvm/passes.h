// SPDX-License-Identifier: Apache-2.0
// The pass list (passes.def) as data, for benchmarks. No LLVM header reaches the includer.
#ifndef QUERN_CODEGEN_LLVM_PASSES_H_
#define QUERN_CODEGEN_LLVM_PASSES_H_

#include <cstdint>
#include <span>

namespace quern {

enum class PassKind : uint8_t {
  kModule,    // run by Optimise, in the order of the list
  kFunction,  // likewise
  kLoop,      // likewise
  kMachine,   // run by LLVM's code generation
  kLeftOut,   // dropped from LLVM's code generation
};

struct PassRow {
  PassKind kind;
  const char* passes;  // one pass of Optimise; for code generation LLVM's names, each between two commas
  const char* meaning;
};

// The rows of passes.def in order. The plan parameter `test.toggled_pass` counts them from 1: that row is dropped, or
// run if it is left out.
std::span<const PassRow> PassRows();

}  // namespace quern

#endif  // QUERN_CODEGEN_LLVM_PASSES_H_
