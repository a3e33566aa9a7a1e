// SPDX-License-Identifier: Apache-2.0
// Spec in, kernel out: the whole way through the house behind one call. No LLVM header reaches the includer.
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

// Makes a kernel for this machine, or finds it in the process's cache. Threads that ask for the same kernel at once
// wait for one compilation. *Cost*: "Performance" in README.md; a hit is one hash and one lock. *Threads*: any.
// *Errors*: InvalidArgument for a bad spec or parameter; Internal where an invariant of the generator is broken.
absl::StatusOr<CompiledKernel> Compile(const KernelSpec& spec, const CompileOptions& options = {});

// The same for a spec's text. *Cost* of a hit: one hash of the text and one lock, since a text that was seen before is
// not parsed again.
absl::StatusOr<CompiledKernel> CompileText(std::string_view spec, const CompileOptions& options = {});

// The state that runs a kernel of a join.
std::shared_ptr<HashJoin> MakeHashJoin(const std::shared_ptr<const Kernel>& kernel,
                                       std::shared_ptr<MemoryBudget> budget);

// What a host knows of an aggregation's groups; nothing is wrong where it is wrong, but slower.
struct GroupHints {
  uint64_t expected_groups = 0;  // 0: unknown
  std::vector<KeyRange> ranges;  // by key; may be empty
};

// The state that runs a kernel of an aggregation.
std::shared_ptr<HashAggregate> MakeHashAggregate(const std::shared_ptr<const Kernel>& kernel,
                                                 std::shared_ptr<MemoryBudget> budget, const GroupHints& hints = {});

// The state that runs a kernel of a sort.
std::shared_ptr<RowSort> MakeRowSort(const std::shared_ptr<const Kernel>& kernel, std::shared_ptr<MemoryBudget> budget);

// What merges runs that were sorted by a kernel of a sort.
std::unique_ptr<RunMerger> MakeRunMerger(const std::shared_ptr<const Kernel>& kernel,
                                         std::shared_ptr<MemoryBudget> budget, uint32_t num_runs);

// The state that runs a kernel of a filter; it keeps the kernel.
std::shared_ptr<RowFilter> MakeRowFilter(const std::shared_ptr<const Kernel>& kernel);

// Limits the bytes of machine code, in whole pages, that the process's cache keeps (least recently used go first;
// kernels in use live on). Default 64 MiB.
void SetKernelCacheLimit(uint64_t code_bytes);
KernelCacheStats GetKernelCacheStats();
void ClearKernelCache();

}  // namespace quern

#endif  // QUERN_CODEGEN_COMPILER_H_
