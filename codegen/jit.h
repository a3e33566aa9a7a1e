// SPDX-License-Identifier: Apache-2.0
// From an object file to code that runs, and back to nothing when the last kernel that uses it is gone.
#ifndef QUERN_CODEGEN_JIT_H_
#define QUERN_CODEGEN_JIT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "llvm/Support/MemoryBuffer.h"

namespace quern {

// Loaded machine code. *Ownership*: freeing it unmaps the code.
struct LoadedCode {
  std::vector<void*> addresses;  // of the symbols asked for, in their order
  uint64_t code_bytes = 0;       // of sections mapped executable
  std::shared_ptr<const void> owner;
};

// Links an object with JITLink into fresh memory that is never writable and executable at once. Undefined symbols are bound to the calls of
// runtime_calls.h; nothing else of the process is visible to it. Profilers and debuggers learn of it under the name of `spec`
// (code_events.h). *Threads*: any. *Cost*: about 0.3 ms; the first call of a process makes
// the session, about 0.1 ms. *Errors*: Internal.
absl::StatusOr<LoadedCode> LoadObject(std::unique_ptr<llvm::MemoryBuffer> object, const std::vector<std::string>& symbols,
                                      const std::string& spec);

}  // namespace quern

#endif  // QUERN_CODEGEN_JIT_H_
