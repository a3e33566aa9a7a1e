// SPDX-License-Identifier: Apache-2.0
// An interval has one number and one unit; years, quarters and weeks are numbers of months and days:
//
//     interval '2' year         24 months
//     interval '1 week'         7 days
//     interval '90' minute      5400 seconds
#include "tools/frontend/date_words.h"

#include <charconv>
#include <system_error>

namespace quern::cli {
namespace {

using Function = ExpressionFunction;
using Unit = Interval::Unit;

// trunc: nullopt where dates and timestamps are not cut down to it.
struct FieldRow {
  std::string_view text;
  Function function;
  std::optional<Function> trunc;
};
constexpr FieldRow kFields[] = {
    {"year", Function::kYear, Function::kDateTruncYear},
    {"quarter", Function::kQuarter, Function::kDateTruncQuarter},
    {"month", Function::kMonth, Function::kDateTruncMonth},
    {"week", Function::kIsoWeek, Function::kDateTruncWeek},
    {"day", Function::kDay, Function::kTimestampTruncDay},
    {"dow", Function::kSundayDayOfWeek, std::nullopt},
    {"isodow", Function::kIsoDayOfWeek, std::nullopt},
    {"doy", Function::kDayOfYear, std::nullopt},
    {"isoyear", Function::kIsoYear, std::nullopt},
    {"hour", Function::kHour, Function::kTimestampTruncHour},
    {"minute", Function::kMinute, Function::kTimestampTruncMinute},
    {"second", Function::kSecond, Function::kTimestampTruncSecond},
};

struct UnitRow {
  std::string_view text;
  Unit unit;
  int64_t number;
};
constexpr UnitRow kUnits[] = {
    {"year", Unit::kMonths, 12},    {"quarter", Unit::kMonths, 3}, {"month", Unit::kMonths, 1},
    {"week", Unit::kDays, 7},       {"day", Unit::kDays, 1},       {"hour", Unit::kSeconds, 3600},
    {"minute", Unit::kSeconds, 60}, {"second", Unit::kSeconds, 1},
};

const FieldRow* RowOfField(std::string_view field) {
  for (const FieldRow& row : kFields)
    if (row.text == field) return &row;
  return nullptr;
}

}  // namespace

std::optional<ExpressionFunction> FunctionOfField(std::string_view field) {
  const FieldRow* row = RowOfField(field);
  return row != nullptr ? std::optional(row->function) : std::nullopt;
}

std::optional<ExpressionFunction> TruncOfField(std::string_view field) {
  const FieldRow* row = RowOfField(field);
  return row != nullptr ? row->trunc : std::nullopt;
}

std::optional<Interval> IntervalOfText(std::string_view text) {
  int32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  if (text.ends_with('s')) text.remove_suffix(1);
  for (const UnitRow& row : kUnits) {
    if (row.text != text) continue;
    const int64_t all = number * row.number;
    const bool fits = row.unit == Unit::kSeconds || static_cast<int32_t>(all) == all;
    return fits ? std::optional(Interval{row.unit, all}) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace quern::cli
