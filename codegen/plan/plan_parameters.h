// SPDX-License-Identifier: Apache-2.0
// Iterates the rows of plan_parameters.def, with a plan's value for each.
#ifndef QUERN_CODEGEN_PLAN_PLAN_PARAMETERS_H_
#define QUERN_CODEGEN_PLAN_PLAN_PARAMETERS_H_

#include <cstdint>
#include <string_view>

#include "codegen/plan/plan.h"
#include "codegen/plan/scope.h"

namespace quern {

// `scope`: the operators whose plans have the parameter.
struct NumberParameter {
  Scope scope;
  std::string_view name;
  bool is_for_tests;
  uint32_t default_value, min, max;
  const char *unit, *meaning;
};

template <class Choice>
struct ChoiceParameter {
  Scope scope;
  std::string_view name;
  bool is_for_tests;
  Choice default_value;
  const char* meaning;
};

struct ScheduleParameter {
  Scope scope;
  std::string_view name;
  PrefetchLoop loop;
  const char* meaning;
};

// Calls on_number(parameter, value), on_choice(parameter, value) or on_schedule(parameter, schedule, origin) for each
// row, whatever the spec. `plan` may be const.
template <class Plan, class OnNumber, class OnChoice, class OnSchedule>
void ForEachParameter(Plan& plan, const OnNumber& on_number, const OnChoice& on_choice, const OnSchedule& on_schedule) {
#define QUERN_PLAN_NUMBER(scope, name, default_value, min, max, unit, meaning) \
  on_number(NumberParameter{Scope::scope, #name, false, default_value, min, max, unit, meaning}, plan.name);
#define QUERN_PLAN_CHOICE(scope, name, Type, default_value, meaning) \
  on_choice(ChoiceParameter<Type>{Scope::scope, #name, false, Type::default_value, meaning}, plan.name);
#define QUERN_PLAN_SCHEDULE(scope, Loop, name, meaning) \
  on_schedule(ScheduleParameter{Scope::scope, #name, PrefetchLoop::Loop, meaning}, plan.name, plan.name##_origin);
#define QUERN_TEST_NUMBER(scope, name, default_value, min, max, unit, meaning) \
  on_number(NumberParameter{Scope::scope, "test." #name, true, default_value, min, max, unit, meaning}, plan.test.name);
#define QUERN_TEST_CHOICE(scope, name, Type, default_value, meaning) \
  on_choice(ChoiceParameter<Type>{Scope::scope, "test." #name, true, Type::default_value, meaning}, plan.test.name);
#include "codegen/plan/plan_parameters.def"
}

// The callback for kinds of rows that a caller ignores.
inline constexpr auto kSkipParameter = [](const auto&...) {};

}  // namespace quern

#endif  // QUERN_CODEGEN_PLAN_PLAN_PARAMETERS_H_
