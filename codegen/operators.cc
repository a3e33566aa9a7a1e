// SPDX-License-Identifier: Apache-2.0
// What the plan says of an operator's options, and whether a capture observes the job, is decided here.
#include "codegen/operators.h"

#include <utility>

#include "codegen/inspect/capture.h"
#include "codegen/plan/plan.h"
#include "codegen/tier/tier.h"
#include "ir-templates/generic/generic_join.h"
#include "ir-templates/generic/generic_sort.h"
#include "runtime/aggregate/set_operation.h"

namespace quern {
namespace {

// The entry points that an operator uses: the slot of the kernel's tier, or fixed ones.
template <class Spec>
auto SourceOf(const Kernel& kernel) {
  using EntryPoints = typename OperatorTraits<Spec>::EntryPoints;
  if (kernel.tier != nullptr) return EntrySource<EntryPoints>(kernel.tier->slot<Spec>(), kernel.counters);
  auto fixed =
      std::make_shared<EntrySlot<EntryPoints>>(kernel.As<Spec>().entry_points, nullptr, kernel.engine == Engine::kJit);
  return EntrySource<EntryPoints>(std::move(fixed), kernel.counters);
}

}  // namespace

std::shared_ptr<HashJoin> MakeHashJoin(const std::shared_ptr<const Kernel>& kernel,
                                       std::shared_ptr<MemoryBudget> budget) {
  auto join = std::make_shared<HashJoin>(kernel->As<JoinSpec>().descriptor, SourceOf<JoinSpec>(*kernel), kernel,
                                         std::move(budget), kernel->As<JoinSpec>().options);
  join->SetGeneric(GenericJoinKernel());
  if (auto observer = ObserverOf(kernel->plan)) join->Observe(std::move(observer));
  return join;
}

std::shared_ptr<HashAggregate> MakeHashAggregate(const std::shared_ptr<const Kernel>& kernel,
                                                 std::shared_ptr<MemoryBudget> budget, const GroupHints& hints) {
  const auto make = [&]<class Spec>(std::type_identity<Spec>, const SinkTexts& texts) {
    AggregateOptions options = kernel->As<Spec>().options;
    options.expected_groups = hints.expected_groups;
    options.ranges = hints.ranges;
    options.generic_maps = {GenericMapKernel(), GenericFilterKernel()};
    return std::make_shared<HashAggregate>(kernel->As<Spec>().descriptor, SourceOf<Spec>(*kernel), kernel,
                                           std::move(budget), options, texts);
  };
  auto aggregate = Is<SetSpec>(kernel->plan.spec) ? make(std::type_identity<SetSpec>(), kSetTexts)
                                                  : make(std::type_identity<AggregationSpec>(), kAggregateTexts);
  if (auto observer = ObserverOf(kernel->plan)) aggregate->Observe(std::move(observer));
  return aggregate;
}

const AggregateDescriptor& GroupsOf(const Kernel& kernel) {
  return Is<SetSpec>(kernel.plan.spec) ? *kernel.As<SetSpec>().descriptor : *kernel.As<AggregationSpec>().descriptor;
}

std::shared_ptr<RowSort> MakeRowSort(const std::shared_ptr<const Kernel>& kernel,
                                     std::shared_ptr<MemoryBudget> budget) {
  auto sort = std::make_shared<RowSort>(kernel->As<SortSpec>().descriptor, SourceOf<SortSpec>(*kernel),
                                        GenericSortKernel(), kernel, std::move(budget), kernel->As<SortSpec>().options);
  if (auto observer = ObserverOf(kernel->plan)) sort->Observe(std::move(observer));
  return sort;
}

std::unique_ptr<RunMerger> MakeRunMerger(const std::shared_ptr<const Kernel>& kernel,
                                         std::shared_ptr<MemoryBudget> budget, uint32_t num_runs) {
  return std::make_unique<RunMerger>(kernel->As<SortSpec>().descriptor, SourceOf<SortSpec>(*kernel), kernel,
                                     std::move(budget), num_runs);
}

std::shared_ptr<const RowMapper> MakeRowMapper(const std::shared_ptr<const Kernel>& kernel) {
  return std::make_shared<const RowMapper>(kernel->As<MapSpec>().descriptor, SourceOf<MapSpec>(*kernel),
                                           GenericMapKernel(), GenericFilterKernel(), kernel);
}

std::shared_ptr<RowFilter> MakeRowFilter(const std::shared_ptr<const Kernel>& kernel) {
  return std::make_shared<RowFilter>(kernel->As<FilterSpec>().descriptor, SourceOf<FilterSpec>(*kernel), kernel);
}

}  // namespace quern
