// SPDX-License-Identifier: Apache-2.0
#include "codegen/plan/plan_values.h"

#include <charconv>

namespace quern {
namespace {

bool ReadNumber(std::string_view text, uint64_t* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

}  // namespace

std::optional<size_t> TakeNumber(std::string_view* name) {
  const size_t dot = name->find('.');
  uint64_t number = 0;
  if (dot == std::string_view::npos || !ReadNumber(name->substr(0, dot), &number)) return std::nullopt;
  name->remove_prefix(dot + 1);
  return number;
}

std::string BadPlanValue(std::string_view name) { return "bad value of plan parameter " + std::string(name) + ": "; }

absl::Status SetPlanNumber(std::string_view name, std::string_view value, uint32_t min, uint32_t max, const char* unit,
                           uint32_t* target) {
  uint64_t number = 0;
  if (!ReadNumber(value, &number) || number < min || number > max) {
    return InvalidArgument(BadPlanValue(name) + Show(value) + "; accepted: " + std::to_string(min) + " to " +
                           std::to_string(max) + " " + unit);
  }
  *target = static_cast<uint32_t>(number);
  return absl::OkStatus();
}

std::string PlanLine(std::string_view name, std::string_view value, const std::string& meaning) {
  const size_t column = 36;
  const std::string setting = std::string(name) + " = " + std::string(value);
  return setting + std::string(setting.size() < column ? column - setting.size() : 1, ' ') + "# " + meaning + "\n";
}

std::string PlanNumberLine(std::string_view name, uint32_t value, const char* meaning, const char* unit) {
  return PlanLine(name, std::to_string(value), meaning + std::string(" (") + unit + ")");
}

}  // namespace quern
