// SPDX-License-Identifier: Apache-2.0
#include "runtime/rows/arrow_format.h"

#include <string_view>

namespace quern {
namespace {

// "d:38,2", "d:18,0,64"
std::string DecimalFormat(TypeId id, const std::string& scale) {
  const std::string text = "d:" + std::to_string(MaxDigitsOf(id)) + "," + (scale.empty() ? "0" : scale);
  return id == TypeId::kDecimal128 ? text : text + "," + std::to_string(RowOf(id).width_bytes * 8);
}

}  // namespace

std::string UnitOf(const std::string& format) {
  if (format.rfind("d:", 0) == 0) {
    const size_t scale = format.find(',') + 1;
    return format.substr(scale, format.find(',', scale) - scale);
  }
  for (const char* type : {"ts", "tt", "tD"})
    if (format.rfind(type, 0) == 0) return format.substr(0, 3);
  return "";
}

std::string FirstFormat(const ColumnType& type) {
  if (IsDecimal(type.id)) return DecimalFormat(type.id, "");
  if (type.id == TypeId::kTimestamp) return "tss:";
  const std::string_view formats = RowOf(type.id).arrow;
  return std::string(formats.substr(0, formats.find('|')));
}

std::string FormatOfResult(const AggregateSpec& aggregate, const ColumnType& result, const std::string& argument) {
  switch (RowOf(aggregate.function).result) {
    case ResultRule::kSame: return argument;
    case ResultRule::kSumOf:
    case ResultRule::kAverageOf:
    case ResultRule::kDecimal:
      return IsDecimal(result.id) ? DecimalFormat(result.id, UnitOf(argument)) : FirstFormat(result);
    case ResultRule::kCount:
    case ResultRule::kDouble:
    case ResultRule::kOfHost: return FirstFormat(result);
  }
  return "";
}

}  // namespace quern
