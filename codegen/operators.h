// SPDX-License-Identifier: Apache-2.0
// Operators that run a kernel: they begin with the kernel that there is, and change to the compiled one when it is
// ready.
#ifndef QUERN_CODEGEN_OPERATORS_H_
#define QUERN_CODEGEN_OPERATORS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "codegen/kernel/kernel.h"
#include "runtime/aggregate/hash_aggregate.h"
#include "runtime/base/memory.h"
#include "runtime/filter/row_filter.h"
#include "runtime/join/hash_join.h"
#include "runtime/map/row_mapper.h"
#include "runtime/sort/row_sort.h"
#include "runtime/sort/run_merger.h"

namespace quern {

// The state of a join that runs this kernel.
std::shared_ptr<HashJoin> MakeHashJoin(const std::shared_ptr<const Kernel>& kernel,
                                       std::shared_ptr<MemoryBudget> budget);

// What a host expects of the groups of an aggregation. Wrong hints cost time; results stay correct.
struct GroupHints {
  uint64_t expected_groups = 0;  // 0: unknown
  std::vector<KeyRange> ranges;  // by key; may be empty
};

// The state of an aggregation, or of the groups of a set operation, that runs this kernel.
std::shared_ptr<HashAggregate> MakeHashAggregate(const std::shared_ptr<const Kernel>& kernel,
                                                 std::shared_ptr<MemoryBudget> budget, const GroupHints& hints = {});

// The descriptor of the groups of a kernel of either.
const AggregateDescriptor& GroupsOf(const Kernel& kernel);

// The state of a sort that runs this kernel.
std::shared_ptr<RowSort> MakeRowSort(const std::shared_ptr<const Kernel>& kernel, std::shared_ptr<MemoryBudget> budget);

// A merger of runs that a kernel of this sort has sorted.
std::unique_ptr<RunMerger> MakeRunMerger(const std::shared_ptr<const Kernel>& kernel,
                                         std::shared_ptr<MemoryBudget> budget, uint32_t num_runs);

// The state of a filter that runs this kernel; it keeps the kernel alive.
std::shared_ptr<RowFilter> MakeRowFilter(const std::shared_ptr<const Kernel>& kernel);

// The state of a map that runs this kernel; it keeps the kernel alive.
std::shared_ptr<const RowMapper> MakeRowMapper(const std::shared_ptr<const Kernel>& kernel);

}  // namespace quern

#endif  // QUERN_CODEGEN_OPERATORS_H_
