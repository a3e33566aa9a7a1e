// SPDX-License-Identifier: Apache-2.0
// From an object file to code that runs, and back to nothing when the last kernel that uses it is gone.
#ifndef QUERN_CODEGEN_LLVM_JIT_H_
#define QUERN_CODEGEN_LLVM_JIT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace quern {

// Loaded machine code. *Ownership*: freeing the owner gives the pages back.
struct LoadedCode {
  std::vector<void*> addresses;  // of the symbols asked for, in their order
  uint64_t code_bytes = 0;       // of sections mapped executable
  uint64_t page_bytes = 0;       // of the pages that it takes, with its constants
  std::shared_ptr<const void> owner;
};

// Links an object with JITLink into pages that are never writable and executable at once (code_memory.h). Undefined
// symbols are bound to the calls of runtime_calls.h; nothing else of the process is visible to it. Profilers and
// debuggers learn of it under the name of `spec` (code_events.h). *Threads*: any. *Cost*: below 0.1 ms
// (`compile_bench`, stage jit); nothing is kept from one call to the next, and no part of LLVM's code generation is
// started. *Errors*: ResourceExhausted, FailedPrecondition: as CodePages::Commit; else Internal.
absl::StatusOr<LoadedCode> LoadObject(std::string_view object, const std::vector<std::string>& symbols,
                                      const std::string& spec);

}  // namespace quern

#endif  // QUERN_CODEGEN_LLVM_JIT_H_
