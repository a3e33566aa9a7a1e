// SPDX-License-Identifier: Apache-2.0
// What happens where memory is refused within LLVM.
#ifndef QUERN_CODEGEN_BASE_LLVM_MEMORY_H_
#define QUERN_CODEGEN_BASE_LLVM_MEMORY_H_

namespace quern {

// From now on LLVM's own containers throw std::bad_alloc, as operator new does, where they would abort the process. To
// be called before LLVM is used. *Threads*: any.
void ThrowWhereLlvmIsRefusedMemory();

}  // namespace quern

#endif  // QUERN_CODEGEN_BASE_LLVM_MEMORY_H_
