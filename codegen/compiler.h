// SPDX-License-Identifier: Apache-2.0
// Turns a spec into a kernel: all stages of a compilation behind one call. No LLVM header reaches the includer.
#ifndef QUERN_CODEGEN_COMPILER_H_
#define QUERN_CODEGEN_COMPILER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/kernel/kernel.h"
#include "runtime/aggregate/hash_aggregate.h"
#include "runtime/filter/row_filter.h"
#include "runtime/join/hash_join.h"
#include "runtime/sort/row_sort.h"
#include "runtime/sort/run_merger.h"
#include "runtime/spec/spec.h"

namespace quern {

// Compiles a kernel for this machine, or finds it in the caches. Threads that request the same kernel at the same time
// share one compilation. *Cost*: docs/performance.md, "Compiling"; a cache hit takes one hash and one lock. *Threads*:
// any. *Errors*: InvalidArgument for a bad spec or parameter; Internal where an invariant of the generator is broken.
absl::StatusOr<CompiledKernel> Compile(const KernelSpec& spec, const CompileOptions& options = {});

// The same for the text of a spec. *Cost* of a hit: one hash of the text and one lock, since a known text is not parsed
// again.
absl::StatusOr<CompiledKernel> CompileText(std::string_view spec, const CompileOptions& options = {});

// The state of a join that runs this kernel.
std::shared_ptr<HashJoin> MakeHashJoin(const std::shared_ptr<const Kernel>& kernel,
                                       std::shared_ptr<MemoryBudget> budget);

// What a host expects of the groups of an aggregation. Wrong hints cost time; results stay correct.
struct GroupHints {
  uint64_t expected_groups = 0;  // 0: unknown
  std::vector<KeyRange> ranges;  // by key; may be empty
};

// The state of an aggregation that runs this kernel.
std::shared_ptr<HashAggregate> MakeHashAggregate(const std::shared_ptr<const Kernel>& kernel,
                                                 std::shared_ptr<MemoryBudget> budget, const GroupHints& hints = {});

// The state of a sort that runs this kernel.
std::shared_ptr<RowSort> MakeRowSort(const std::shared_ptr<const Kernel>& kernel, std::shared_ptr<MemoryBudget> budget);

// A merger of runs that a kernel of this sort has sorted.
std::unique_ptr<RunMerger> MakeRunMerger(const std::shared_ptr<const Kernel>& kernel,
                                         std::shared_ptr<MemoryBudget> budget, uint32_t num_runs);

// The state of a filter that runs this kernel; it keeps the kernel alive.
std::shared_ptr<RowFilter> MakeRowFilter(const std::shared_ptr<const Kernel>& kernel);

// Limits the machine code that the kernel cache of the process keeps, in bytes of whole pages. The least recently used
// kernels leave first; kernels in use live on. Default 64 MiB.
void SetKernelCacheLimit(uint64_t code_bytes);
KernelCacheStats GetKernelCacheStats();
void ClearKernelCache();

}  // namespace quern

#endif  // QUERN_CODEGEN_COMPILER_H_
