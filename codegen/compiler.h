// SPDX-License-Identifier: Apache-2.0
// Turns a spec into a kernel: all stages of a compilation behind one call. No LLVM header reaches the includer.
#ifndef QUERN_CODEGEN_COMPILER_H_
#define QUERN_CODEGEN_COMPILER_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "codegen/kernel/kernel.h"
#include "runtime/spec/spec.h"

namespace quern {

// Compiles a kernel for this machine, or finds it in the caches. Threads that request the same kernel at the same time
// share one compilation. *Cost*: docs/performance-kernels.md, "Compiling"; a cache hit takes one hash and one lock.
// *Threads*: any. *Errors*: InvalidArgument for a bad spec or parameter; Internal where an invariant of the generator
// is broken.
absl::StatusOr<CompiledKernel> Compile(const KernelSpec& spec, const CompileOptions& options = {});

// The same for the text of a spec. *Cost* of a hit: one hash of the text and one lock, since a known text is not parsed
// again.
absl::StatusOr<CompiledKernel> CompileText(std::string_view spec, const CompileOptions& options = {});

// Limits the machine code that the kernel cache of the process keeps, in bytes of whole pages. The least recently used
// kernels leave first; kernels in use live on. Default 64 MiB.
void SetKernelCacheLimit(uint64_t code_bytes);
KernelCacheStats GetKernelCacheStats();
void ClearKernelCache();

}  // namespace quern

#endif  // QUERN_CODEGEN_COMPILER_H_
