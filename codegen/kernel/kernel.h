// SPDX-License-Identifier: Apache-2.0
// A finished kernel, the options it was requested with, and what compiling it cost. No LLVM header reaches the
// includer.
#ifndef QUERN_CODEGEN_KERNEL_KERNEL_H_
#define QUERN_CODEGEN_KERNEL_KERNEL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "codegen/kernel/operator_kernel.h"
#include "codegen/plan/plan.h"
#include "runtime/base/counters.h"

namespace quern {

enum class Engine : uint8_t {
  kAuto,     // the compiled kernel where one can be made, else the generic one
  kJit,      // the compiled kernel or an error
  kGeneric,  // the generic kernel; nothing is compiled
};

enum class CompileWhen : uint8_t {
  kNow,         // before Compile returns
  kBackground,  // kAuto: if the compiled kernel is there in time, that; else the generic one with a tier (tier.h)
};

struct CompileOptions {
  Engine engine = Engine::kAuto;
  PlanOverrides overrides;
  std::string template_dir;  // bitcode from here instead of the embedded one; empty: embedded
  bool use_cache = true;     // the memory cache of the process, and the disk cache
  // Only for kBackground:
  CompileWhen when = CompileWhen::kNow;
  uint64_t expected_rows = 0;  // rows that one thread of the caller is expected to process with it; 0: unknown
  std::optional<uint64_t> compile_after_rows;  // summed over all jobs; nullopt: as soon as compiling pays
  bool swap_waits = false;  // for tests: the job that reaches compile_after_rows waits for the compiled kernel
};

// Milliseconds of each stage of a compilation.
struct CompileTimes {
  double plan_ms = 0, load_ms = 0, emit_ms = 0, link_ms = 0, optimise_ms = 0, codegen_ms = 0, jit_ms = 0;
  double total_ms = 0;
};

enum class CacheOutcome : uint8_t { kOff, kMiss, kMemory, kDisk };
const char* CacheText(CacheOutcome outcome);  // "off", "miss", "memory", "disk"

class KernelTier;

// A finished kernel. Immutable and shared by threads; its code lives as long as it does.
struct Kernel {
  KernelPlan plan;
  AnyOperatorKernel of;              // of the operator of plan.spec
  Engine engine = Engine::kGeneric;  // kJit or kGeneric, never kAuto
  uint64_t code_bytes = 0;
  uint64_t page_bytes = 0;           // whole pages of code and constants; the cache counts these
  CompileTimes times;                // of the compilation that made this kernel
  bool from_disk = false;            // loaded, not compiled
  std::shared_ptr<const void> code;  // owner of the machine code; null for the generic kernel
  // Counts of all jobs that ran this kernel. They change; the kernel does not.
  std::shared_ptr<CounterSet> counters = std::make_shared<CounterSet>();
  std::shared_ptr<KernelTier> tier;  // only for kBackground: the tier of this generic kernel; else null

  // The descriptor and entry points of a kernel whose spec is a Spec.
  template <class Spec>
  const OperatorKernel<Spec>& As() const {
    return std::get<OperatorKernel<Spec>>(of);
  }
};

struct CompiledKernel {
  std::shared_ptr<const Kernel> kernel;
  CacheOutcome cache = CacheOutcome::kOff;
  std::string warning;  // why kAuto fell back to the generic kernel; empty if it did not
};

// Statistics of the process's kernel cache.
struct KernelCacheStats {
  uint64_t kernels = 0, code_bytes = 0, limit_bytes = 0, hits = 0, misses = 0, evictions = 0;
  // All kernels of the process, including those outside the cache (code_memory.h).
  uint64_t live_kernels = 0, live_bytes = 0, reserved_bytes = 0, mappings = 0;
};

}  // namespace quern

#endif  // QUERN_CODEGEN_KERNEL_KERNEL_H_
