// SPDX-License-Identifier: Apache-2.0
// LLVM takes memory in two ways: by operator new, which throws, and by malloc in its containers, which call a handler
// and otherwise abort. It is built without exceptions, so that one that passes through it runs none of its destructors;
// left_on_exception.h says what that means for its objects. The handler belongs to the process's copy of LLVM, which is
// the library's own.
#include "codegen/base/llvm_memory.h"

#include <new>

#include "llvm/Support/ErrorHandling.h"
#include "runtime/base/fork_safety.h"

namespace quern {

void ThrowWhereLlvmIsRefusedMemory() {
  const NoFork no_fork;  // the first call installs it
  static const bool done = [] {
    llvm::install_bad_alloc_error_handler([](void*, const char*, bool) { throw std::bad_alloc(); });
    return true;
  }();
  static_cast<void>(done);
}

}  // namespace quern
