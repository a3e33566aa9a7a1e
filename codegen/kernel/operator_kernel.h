// SPDX-License-Identifier: Apache-2.0
// What the compiler, the tiers and the dump need of an operator, and the part of a kernel that is the operator's own.
// They follow the list of operators (KernelSpec): an operator without its traits does not compile.
#ifndef QUERN_CODEGEN_KERNEL_OPERATOR_KERNEL_H_
#define QUERN_CODEGEN_KERNEL_OPERATOR_KERNEL_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/plan/plan.h"
#include "ir-templates/generic/generic_aggregate.h"
#include "ir-templates/generic/generic_filter.h"
#include "ir-templates/generic/generic_join.h"
#include "ir-templates/generic/generic_map.h"
#include "ir-templates/generic/generic_sort.h"
#include "runtime/aggregate/aggregate_descriptor.h"
#include "runtime/filter/filter_descriptor.h"
#include "runtime/join/join_descriptor.h"
#include "runtime/map/map_descriptor.h"
#include "runtime/sort/sort_descriptor.h"

namespace quern {

// One specialisation for each operator:
//
//     Descriptor            what a kernel is specialised for; has get(), spec() and Print()
//     EntryPoints           a struct of functions
//     kTemplate             the operator's file in ir-templates/; its entry points are quern_<kTemplate>_<member>
//     BlockModules(descriptor)   the modules of the blocks that it calls
//     Options               what the plan says of its jobs
//     MakeDescriptor(plan)  the descriptor, with the fields that the plan sets
//     MakeOptions(plan)     the options of all jobs
//     Generic()             the entry points of the generic kernel
//     ForEachEntryPoint(descriptor, entry_points, f)   calls f(symbol, &member) for each that the descriptor needs
template <class Spec>
struct OperatorTraits;

template <>
struct OperatorTraits<JoinSpec> {
  using Descriptor = JoinDescriptor;
  using EntryPoints = QuernJoinEntryPoints;
  using Options = JoinOptions;
  static constexpr char kTemplate[] = "join";
  static std::vector<const char*> BlockModules(const Descriptor&) { return {"blocks"}; }
  static absl::StatusOr<std::shared_ptr<const Descriptor>> MakeDescriptor(const KernelPlan& plan) {
    return MakePlannedDescriptor(plan);
  }
  static Options MakeOptions(const KernelPlan& plan) { return MakeJoinOptions(plan); }
  static EntryPoints Generic() { return GenericJoinKernel(); }
  template <class F>
  static void ForEachEntryPoint(const Descriptor& descriptor, EntryPoints* entry_points, const F& f) {
    const NeededEntryPoints needed = EntryPointsOf(*descriptor.get());
#define QUERN_JOIN_ENTRY(field, result, parameters) \
  if (needed.field) f("quern_join_" #field, &entry_points->field);
#include "runtime/abi/join_entry_points.def"
  }
};

template <>
struct OperatorTraits<AggregationSpec> {
  using Descriptor = AggregateDescriptor;
  using EntryPoints = QuernAggregateEntryPoints;
  using Options = AggregateOptions;
  static constexpr char kTemplate[] = "aggregate";
  static std::vector<const char*> BlockModules(const Descriptor& descriptor) {
    if (descriptor.get()->has_lanes || descriptor.computed() != nullptr) return {"blocks", "lane_blocks"};
    return {"blocks"};
  }
  static absl::StatusOr<std::shared_ptr<const Descriptor>> MakeDescriptor(const KernelPlan& plan) {
    return MakePlannedGroups(plan);
  }
  static Options MakeOptions(const KernelPlan& plan) { return MakeAggregateOptions(plan); }
  static EntryPoints Generic() { return GenericAggregateKernel(); }
  template <class F>
  static void ForEachEntryPoint(const Descriptor& descriptor, EntryPoints* entry_points, const F& f) {
    const NeededAggregateEntryPoints needed = EntryPointsOf(*descriptor.get());
#define QUERN_AGGREGATE_ENTRY(field, result, parameters) \
  if (needed.field) f("quern_aggregate_" #field, &entry_points->field);
#include "runtime/abi/aggregate_entry_points.def"
  }
};

template <>
struct OperatorTraits<SortSpec> {
  using Descriptor = SortDescriptor;
  using EntryPoints = QuernSortEntryPoints;
  using Options = SortOptions;
  static constexpr char kTemplate[] = "sort";
  static std::vector<const char*> BlockModules(const Descriptor&) { return {"blocks"}; }
  static absl::StatusOr<std::shared_ptr<const Descriptor>> MakeDescriptor(const KernelPlan& plan) {
    return MakePlannedSort(plan);
  }
  static Options MakeOptions(const KernelPlan& plan) { return MakeSortOptions(plan); }
  static EntryPoints Generic() { return GenericSortKernel(); }
  template <class F>
  static void ForEachEntryPoint(const Descriptor& descriptor, EntryPoints* entry_points, const F& f) {
    const NeededSortEntryPoints needed = EntryPointsOf(*descriptor.get());
#define QUERN_SORT_ENTRY(field, result, parameters) \
  if (needed.field) f("quern_sort_" #field, &entry_points->field);
#include "runtime/abi/sort_entry_points.def"
  }
};

template <>
struct OperatorTraits<FilterSpec> {
  using Descriptor = FilterDescriptor;
  using EntryPoints = QuernFilterEntryPoints;
  struct Options {};
  // A block module of its own, so that no kernel searches blocks that it cannot use.
  static constexpr char kTemplate[] = "filter";
  static std::vector<const char*> BlockModules(const Descriptor&) { return {"filter_blocks"}; }
  static absl::StatusOr<std::shared_ptr<const Descriptor>> MakeDescriptor(const KernelPlan& plan) {
    return MakePlannedFilter(plan);
  }
  static Options MakeOptions(const KernelPlan&) { return {}; }
  static EntryPoints Generic() { return GenericFilterKernel(); }
  template <class F>
  static void ForEachEntryPoint(const Descriptor&, EntryPoints* entry_points, const F& f) {
    f("quern_filter_mask", &entry_points->mask);
  }
};

template <>
struct OperatorTraits<MapSpec> {
  using Descriptor = MapDescriptor;
  using EntryPoints = QuernMapEntryPoints;
  struct Options {};
  static constexpr char kTemplate[] = "map";
  static std::vector<const char*> BlockModules(const Descriptor&) { return {"lane_blocks"}; }
  static absl::StatusOr<std::shared_ptr<const Descriptor>> MakeDescriptor(const KernelPlan& plan) {
    return std::make_shared<const MapDescriptor>(std::get<MapSpec>(plan.spec));
  }
  static Options MakeOptions(const KernelPlan&) { return {}; }
  static EntryPoints Generic() { return GenericMapKernel(); }
  template <class F>
  static void ForEachEntryPoint(const Descriptor&, EntryPoints* entry_points, const F& f) {
    f("quern_map_rows", &entry_points->rows);
  }
};

// Set operations run the kernels of aggregations.
template <>
struct OperatorTraits<SetSpec> : OperatorTraits<AggregationSpec> {};

// The operator's part of a kernel. *Ownership*: Kernel::code owns the code of compiled entry points.
template <class Spec>
struct OperatorKernel {
  using Traits = OperatorTraits<Spec>;
  std::shared_ptr<const typename Traits::Descriptor> descriptor;
  typename Traits::Options options = {};
  typename Traits::EntryPoints entry_points = {};  // of the functions that `descriptor` does not need: null
};
using AnyOperatorKernel = OverOperators<OperatorKernel>;

// The operator's part of a plan's kernel, still without entry points. *Errors*: NotFound for an aggregate function of
// the host that is not registered.
absl::StatusOr<AnyOperatorKernel> DescribeKernel(const KernelPlan& plan);

// Gives it the descriptor and options of another plan that leads to the same code; entry points stay. *Errors*: as
// DescribeKernel.
absl::Status ChangePlan(const KernelPlan& plan, AnyOperatorKernel* kernel);

// Gives it the options of a plan that makes the same descriptor.
void SetOptions(const KernelPlan& plan, AnyOperatorKernel* kernel);

// The symbols of the entry points that a kernel of this descriptor has, in the order of its struct.
std::vector<std::string> EntryPointSymbols(const AnyOperatorKernel& kernel);
// Sets them; `addresses` in the order of EntryPointSymbols.
void SetEntryPoints(const std::vector<void*>& addresses, AnyOperatorKernel* kernel);
// Sets those of the generic kernel.
void SetGenericEntryPoints(AnyOperatorKernel* kernel);

// The kernel's fields as a table, as `quern dump layout` prints it.
std::string PrintLayout(const AnyOperatorKernel& kernel);
// The operator's file in ir-templates/, without its ending.
const char* TemplateName(const KernelSpec& spec);

}  // namespace quern

#endif  // QUERN_CODEGEN_KERNEL_OPERATOR_KERNEL_H_
