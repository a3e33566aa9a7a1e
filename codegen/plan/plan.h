// SPDX-License-Identifier: Apache-2.0
// The kernel plan: every choice about how a kernel computes a spec on a machine. No other code makes such choices.
#ifndef QUERN_CODEGEN_PLAN_PLAN_H_
#define QUERN_CODEGEN_PLAN_PLAN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/machine/machine.h"
#include "codegen/plan/plan_choices.h"
#include "runtime/aggregate/aggregate_descriptor.h"
#include "runtime/aggregate/aggregate_options.h"
#include "runtime/filter/filter_descriptor.h"
#include "runtime/join/hash_join.h"
#include "runtime/rows/prefetch.h"
#include "runtime/sort/sort_descriptor.h"
#include "runtime/sort/sort_options.h"
#include "runtime/spec/spec.h"

namespace quern {

class Profile;
struct SpillSettings;

// --param NAME=VALUE, in the order given; the last value of a name counts.
using PlanOverrides = std::vector<std::pair<std::string, std::string>>;

// Where a schedule comes from, for people: "given", "estimate", "profile: 9 sizes exact, 3 nearest".
struct ScheduleOrigin {
  std::string text;

  bool operator==(const ScheduleOrigin&) const { return true; }  // not part of a plan's identity
};

// Parameters that only tests and benches set: "test.hash" and so on.
struct TestParameters {
#define QUERN_TEST_NUMBER(scope, name, default_value, min, max, unit, meaning) uint32_t name = default_value;
#define QUERN_TEST_CHOICE(scope, name, Type, default_value, meaning) Type name = Type::default_value;
#include "codegen/plan/plan_parameters.def"

  bool operator==(const TestParameters&) const = default;
};

struct KernelPlan {
  KernelSpec spec;
#define QUERN_PLAN_NUMBER(scope, name, default_value, min, max, unit, meaning) uint32_t name = default_value;
#define QUERN_PLAN_CHOICE(scope, name, Type, default_value, meaning) Type name = Type::default_value;
#define QUERN_PLAN_SCHEDULE(scope, Loop, name, meaning) \
  PrefetchSchedule name;                                \
  ScheduleOrigin name##_origin;
#include "codegen/plan/plan_parameters.def"
  TestParameters test;
  // The machine's cache sizes, which delimit the classes of table size.
  uint64_t l2_bytes = 0;
  uint64_t l3_bytes = 0;

  bool operator==(const KernelPlan&) const = default;
};

// Makes the plan. `profile`: a profile of `machine`, or null. *Errors*: InvalidArgument for an unknown parameter or a
// value out of range; the message lists what is accepted.
absl::StatusOr<KernelPlan> MakePlan(const KernelSpec& spec, const Machine& machine, const PlanOverrides& overrides,
                                    const Profile* profile = nullptr);

// Whether plans of the spec have the parameter, as an override names it.
bool HasParameter(const KernelSpec& spec, std::string_view name);

// The first line is "plan <spec>"; each further line is "name = value  # meaning", with the value as --param takes it.
std::string PrintPlan(const KernelPlan& plan);
// All numbers and choices, without prefetch settings: the overrides that turn another plan of this spec into this one.
PlanOverrides ParametersOf(const KernelPlan& plan);
// The parameters that a kernel's code depends on, as a JSON object; the others are data of its jobs. The cache on
// disk uses these as its key, so that a plan made with another profile finds the same code.
std::string CodeParameters(const KernelPlan& plan);
// The parameters as JSON object members, for --stats: {"layout":"unchained",...}.
std::string PlanJson(const KernelPlan& plan);

// The plan in the runtime's terms: the descriptor with its tuning fields set, and the operator's options.
std::shared_ptr<const JoinDescriptor> MakePlannedDescriptor(const KernelPlan& plan);
JoinOptions MakeJoinOptions(const KernelPlan& plan);
// The aggregation whose groups the spec's kernel finds: the spec itself, or the one behind a set operation.
AggregationSpec GroupsOf(const KernelSpec& spec);
// *Errors*: NotFound for an aggregate function of the host that is not registered.
absl::StatusOr<std::shared_ptr<const AggregateDescriptor>> MakePlannedGroups(const KernelPlan& plan);
AggregateOptions MakeAggregateOptions(const KernelPlan& plan);
std::shared_ptr<const SortDescriptor> MakePlannedSort(const KernelPlan& plan);
SortOptions MakeSortOptions(const KernelPlan& plan);
// How rows are written and read where memory is short.
SpillSettings MakeSpillSettings(const KernelPlan& plan);
std::shared_ptr<const FilterDescriptor> MakePlannedFilter(const KernelPlan& plan);

}  // namespace quern

#endif  // QUERN_CODEGEN_PLAN_PLAN_H_
