// SPDX-License-Identifier: Apache-2.0
#include "codegen/emit/value_names.h"

#include <cstddef>
#include <cstdint>

#include "runtime/map/map_descriptor.h"

namespace quern {
namespace {

constexpr const char* kUpdateTexts[] = {
#define QUERN_UPDATE_FUNCTION(Id, text, reads, state_bytes) #text,
#include "runtime/abi/update_functions.def"
};

constexpr size_t kMostNameBytes = 80;
// Constants up to here are their names; others may be bits of anything.
constexpr uint64_t kMostNamedConstant = 1'000'000;

}  // namespace

std::string NameOfInstruction(const QuernMapInstruction& instruction, const std::vector<std::string>& names) {
  const std::string column = std::to_string(instruction.column);
  switch (instruction.function) {
    case kStoreLanes: return "";
    case kLoadLanes:
    case kLoadStringsLanes: return "$" + column;
    case kLoadStringValueLanes: return "string_value" + column;
    case kStringConstantLanes: return "string_constant" + column;
    case kConstantLanes: {
      const uint64_t low = instruction.parameters.low;
      return low <= kMostNamedConstant && instruction.parameters.high == 0 ? std::to_string(low) : "constant";
    }
    default: break;
  }
  const std::string function = LaneFunctionText(instruction.function);
  std::string name = function;
  for (uint32_t a = 0; a < NumArguments(instruction); ++a)
    name += (a == 0 ? "(" : ",") + names[instruction.arguments[a]];
  if (NumArguments(instruction) != 0) name += ")";
  return name.size() <= kMostNameBytes ? name : function;
}

std::string NameOfArgument(const QuernArgument& argument) {
  return (argument.is_computed ? "computed" : "$") + std::to_string(argument.column);
}

std::string NameOfState(const QuernAccumulator& accumulator) {
  std::string arguments;
  for (uint32_t a = 0; a < accumulator.num_arguments; ++a)
    arguments += (a == 0 ? "" : ",") + NameOfArgument(accumulator.arguments[a]);
  return std::string(kUpdateTexts[accumulator.step]) + "(" + arguments + ")";
}

}  // namespace quern
