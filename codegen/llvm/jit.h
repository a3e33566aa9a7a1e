// SPDX-License-Identifier: Apache-2.0
// Loads an object file as executable code, and frees it when the last kernel that uses it is gone.
#ifndef QUERN_CODEGEN_LLVM_JIT_H_
#define QUERN_CODEGEN_LLVM_JIT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace quern {

// Loaded machine code. *Ownership*: destroying the owner frees the pages.
struct LoadedCode {
  std::vector<void*> addresses;  // of the requested symbols, in their order
  uint64_t code_bytes = 0;       // in executable sections
  uint64_t page_bytes = 0;       // in the pages of code and constants
  std::shared_ptr<const void> owner;
};

// Links an object with JITLink into pages that are never writable and executable at once (code_memory.h). Undefined
// symbols can bind only to the functions of runtime_calls.h. Profilers and debuggers see the code under the name of
// `spec` (code_events.h). *Threads*: any. *Cost*: below 0.1 ms (`compile_bench`, stage jit); no state is kept between
// calls, and LLVM's code generation is not initialised. *Errors*: ResourceExhausted and FailedPrecondition as
// CodePages::Commit; else Internal.
absl::StatusOr<LoadedCode> LoadObject(std::string_view object, const std::vector<std::string>& symbols,
                                      const std::string& spec);

}  // namespace quern

#endif  // QUERN_CODEGEN_LLVM_JIT_H_
