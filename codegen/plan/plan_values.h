// SPDX-License-Identifier: Apache-2.0
// Values of plan parameters: read from overrides, and printed, the same for the plans of kernels and of pipelines.
#ifndef QUERN_CODEGEN_PLAN_PLAN_VALUES_H_
#define QUERN_CODEGEN_PLAN_PLAN_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "codegen/plan/plan_choices.h"
#include "runtime/base/status.h"

namespace quern {

// "bad value of plan parameter NAME: ", as messages about a value begin.
std::string BadPlanValue(std::string_view name);

// Takes the number off a name that begins with one, as "2.batch_size": of a step, or of a pipeline. nullopt: it does
// not.
std::optional<size_t> TakeNumber(std::string_view* name);

// *Errors*: InvalidArgument for text that is no whole number from min to max.
absl::Status SetPlanNumber(std::string_view name, std::string_view value, uint32_t min, uint32_t max, const char* unit,
                           uint32_t* target);

// *Errors*: InvalidArgument for a word that is no choice.
template <class Choice>
absl::Status SetPlanChoice(std::string_view name, std::string_view value, Choice* target) {
  const std::optional<Choice> choice = ParseChoice<Choice>(value);
  if (!choice) return InvalidArgument(BadPlanValue(name) + Show(value) + "; accepted: " + ChoiceWords<Choice>());
  *target = *choice;
  return absl::OkStatus();
}

// "name = value      # meaning".
std::string PlanLine(std::string_view name, std::string_view value, const std::string& meaning);
std::string PlanNumberLine(std::string_view name, uint32_t value, const char* meaning, const char* unit);
template <class Choice>
std::string PlanChoiceLine(std::string_view name, Choice value, const char* meaning) {
  return PlanLine(name, WordOf(value), meaning + ("; accepted: " + ChoiceWords<Choice>()));
}

}  // namespace quern

#endif  // QUERN_CODEGEN_PLAN_PLAN_VALUES_H_
