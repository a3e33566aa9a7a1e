// SPDX-License-Identifier: Apache-2.0
// The object behind quern_kernel, and what jobs need of it. Internal: quern.h is the interface.
#ifndef QUERN_HOSTS_C_KERNEL_HANDLE_H_
#define QUERN_HOSTS_C_KERNEL_HANDLE_H_

#include <array>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "codegen/compiler.h"
#include "codegen/pipeline_compiler.h"
#include "codegen/tier/tier.h"
#include "hosts/c/boundary.h"
#include "hosts/c/quern.h"
#include "runtime/base/counters.h"
#include "runtime/base/fork_safety.h"

namespace quern::c_abi {

// Announces the rows of a run to a kernel that is not compiled yet. What matters is how long the run takes: the rows of
// one of its threads.
inline void ExpectRows(const Kernel& kernel, uint64_t num_rows, uint32_t threads = 1) {
  if (kernel.tier != nullptr) kernel.tier->Expect(num_rows / threads);
}

// The state of a kernel: unchanged since it was made, or, with a tier, the outcome of its compilation.
enum class KernelState : uint8_t { kAsMade, kSwapped, kFailed };

// The texts of quern_kernel_text in one of these states, made at the first request, so that a cache hit does not print
// a plan.
struct KernelTexts {
  std::string spec, plan, layout, engine, cache, compile_ms, code_bytes, warning;
};

// Writes as many counters as the host's struct_size has room for.
void WriteCounters(const Counters& counted, const char* prefetch_class, const Kernel& kernel, CacheOutcome cache,
                   quern_counters* counters);

}  // namespace quern::c_abi

struct quern_kernel {
  quern::CompiledKernel compiled;  // of a pipeline: of its end, or of a step where its end emits rows
  std::optional<quern::CompiledPipeline> pipeline;
  // One for each KernelState, made at the first request. No std::call_once: glibc ends the process where an exception
  // passes through it and the memory to load its unwinder is refused.
  mutable quern::ForkSafeMutex texts_mutex;
  mutable std::array<std::unique_ptr<const quern::c_abi::KernelTexts>, 3> texts;
  mutable std::set<std::string> pipeline_texts;  // that were returned
};

namespace quern::c_abi {

// Of a pipeline, to each of its kernels up to the first step that takes rows away.
void ExpectRows(const quern_kernel& handle, uint64_t num_rows);

}  // namespace quern::c_abi

#endif  // QUERN_HOSTS_C_KERNEL_HANDLE_H_
