// SPDX-License-Identifier: Apache-2.0
// Spec in, kernel out: the whole way through the house behind one call. No LLVM header reaches the includer.
#ifndef QUERN_CODEGEN_COMPILER_H_
#define QUERN_CODEGEN_COMPILER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/machine.h"
#include "codegen/plan.h"
#include "runtime/counters.h"
#include "runtime/hash_aggregate.h"
#include "runtime/hash_join.h"
#include "runtime/kernel_abi.h"
#include "runtime/row_filter.h"
#include "runtime/row_sort.h"
#include "runtime/run_merger.h"
#include "runtime/spec.h"

namespace quern {

enum class Engine : uint8_t {
  kAuto,     // the compiled kernel where it can be had, else the generic one
  kJit,      // the compiled kernel or an error
  kGeneric,  // the generic kernel; nothing is compiled
};

enum class CompileWhen : uint8_t {
  kNow,         // before Compile returns
  kBackground,  // kAuto: Compile returns the generic kernel, which is compiled beside its jobs once that pays (tier.h)
};

struct CompileOptions {
  Engine engine = Engine::kAuto;
  PlanOverrides overrides;
  std::string template_dir;  // bitcode from here instead of the embedded one; empty: embedded
  bool use_cache = true;     // the process's memory cache, and the disk's
  // Of kBackground alone:
  CompileWhen when = CompileWhen::kNow;
  uint64_t expected_rows = 0;                  // what the caller thinks one of its threads will process with it; 0: unknown
  std::optional<uint64_t> compile_after_rows;  // of all jobs together; nullopt: as soon as it pays
  bool swap_waits = false;                     // the job that brings the last of these rows waits for the compiled kernel: for tests
};

// Milliseconds of each stage of one compilation.
struct CompileTimes {
  double plan_ms = 0, load_ms = 0, emit_ms = 0, link_ms = 0, optimise_ms = 0, codegen_ms = 0, jit_ms = 0;
  double total_ms = 0;
};

enum class CacheOutcome : uint8_t { kOff, kMiss, kMemory, kDisk };
const char* CacheText(CacheOutcome outcome);  // "off", "miss", "memory", "disk"

class KernelTier;

// One ready kernel. Immutable, shared by threads; its code lives as long as it does.
struct Kernel {
  KernelPlan plan;
  // Of the operator of plan.spec; the others' are null.
  std::shared_ptr<const JoinShape> shape;
  QuernJoinEntryPoints join = {};
  std::shared_ptr<const AggregateShape> groups;
  QuernAggregateEntryPoints aggregate = {};
  std::shared_ptr<const SortShape> rows;
  QuernSortEntryPoints sort = {};
  std::shared_ptr<const FilterShape> where;
  QuernFilterEntryPoints filter = {};
  Engine engine = Engine::kGeneric;  // kJit or kGeneric: which it is
  uint64_t code_bytes = 0;
  uint64_t page_bytes = 0;           // of the pages that code and constants take; what the cache counts
  CompileTimes times;                // of the compilation that made it
  bool from_disk = false;            // loaded, not compiled
  std::shared_ptr<const void> code;  // owner of the machine code; null for generic
  // What all jobs have counted that ran it. Not a part of what the kernel is, which does not change.
  std::shared_ptr<CounterSet> counters = std::make_shared<CounterSet>();
  std::shared_ptr<KernelTier> tier;  // kBackground: this kernel is the generic one, and here is what becomes of it; else null
};

struct CompiledKernel {
  std::shared_ptr<const Kernel> kernel;
  CacheOutcome cache = CacheOutcome::kOff;
  std::string warning;  // kAuto fell back to the generic kernel: why. Else empty.
};

// Makes a kernel for this machine, or finds it in the process's cache. Threads that ask for the same kernel at once wait for one
// compilation. *Cost*: "Performance" in README.md; a hit is one hash and one lock. *Threads*: any.
// *Errors*: InvalidArgument for a bad spec or parameter; Internal where an invariant of the generator is broken.
absl::StatusOr<CompiledKernel> Compile(const KernelSpec& spec, const CompileOptions& options = {});

// The same for a spec's text. *Cost* of a hit: one hash of the text and one lock, since a text that was seen before is not parsed again.
absl::StatusOr<CompiledKernel> CompileText(std::string_view spec, const CompileOptions& options = {});

// The state that runs a kernel of a join.
std::shared_ptr<HashJoin> MakeHashJoin(const std::shared_ptr<const Kernel>& kernel, std::shared_ptr<MemoryBudget> budget);

// What a host knows of an aggregation's groups; nothing is wrong where it is wrong, but slower.
struct GroupHints {
  uint64_t expected_groups = 0;  // 0: unknown
  std::vector<KeyRange> ranges;  // by key; may be empty
};

// The state that runs a kernel of an aggregation.
std::shared_ptr<HashAggregate> MakeHashAggregate(const std::shared_ptr<const Kernel>& kernel, std::shared_ptr<MemoryBudget> budget,
                                                 const GroupHints& hints = {});

// The state that runs a kernel of a sort.
std::shared_ptr<RowSort> MakeRowSort(const std::shared_ptr<const Kernel>& kernel, std::shared_ptr<MemoryBudget> budget);

// What merges runs that were sorted by a kernel of a sort.
std::unique_ptr<RunMerger> MakeRunMerger(const std::shared_ptr<const Kernel>& kernel, std::shared_ptr<MemoryBudget> budget,
                                         uint32_t num_runs);

// The state that runs a kernel of a filter; it keeps the kernel.
std::shared_ptr<RowFilter> MakeRowFilter(const std::shared_ptr<const Kernel>& kernel);

// Limits the bytes of machine code, in whole pages, that the process's cache keeps (least recently used go first; kernels in use live on).
// Default 64 MiB.
void SetKernelCacheLimit(uint64_t code_bytes);
struct KernelCacheStats {
  uint64_t kernels = 0, code_bytes = 0, limit_bytes = 0, hits = 0, misses = 0, evictions = 0;
  // Of all kernels of the process, those too that the cache no longer keeps or never did (code_memory.h).
  uint64_t live_kernels = 0, live_bytes = 0, reserved_bytes = 0, mappings = 0;
};
KernelCacheStats GetKernelCacheStats();
void ClearKernelCache();

// One stage of the way as text, the same from run to run, for any machine that LLVM knows:
// spec, plan, layout, template, ir, opt, asm, obj (a summary of sections and symbols), remarks, mca (loops, by the program llvm-mca of
// PATH). `profile`: null for the process's if `machine` is this one, and none otherwise. *Errors*: InvalidArgument with the accepted
// stages; of mca, FailedPrecondition where there is no such program.
absl::StatusOr<std::string> Dump(std::string_view stage, const KernelSpec& spec, const Machine& machine, const CompileOptions& options,
                                 const Profile* profile = nullptr);

}  // namespace quern

#endif  // QUERN_CODEGEN_COMPILER_H_
