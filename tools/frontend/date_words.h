// SPDX-License-Identifier: Apache-2.0
// The words of SQL for dates: fields of extract and date_trunc, units of intervals.
#ifndef QUERN_TOOLS_FRONTEND_DATE_WORDS_H_
#define QUERN_TOOLS_FRONTEND_DATE_WORDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/spec/expression.h"

namespace quern::cli {

constexpr const char* kExtractForm =
    "extract(FIELD from EXPRESSION), FIELD one of year, quarter, month, week, day, dow, isodow, doy, isoyear, hour, "
    "minute, second";
constexpr const char* kDateTruncForm =
    "date_trunc('FIELD', EXPRESSION), FIELD one of year, quarter, month, week, day, hour, minute, second";
constexpr const char* kIntervalForm =
    "interval 'NUMBER' UNIT, UNIT one of year, quarter, month, week, day, hour, minute, second";

// "dow", "week"; nullopt: no field.
std::optional<ExpressionFunction> FunctionOfField(std::string_view field);
// That cuts dates, or timestamps, down to a field.
std::optional<ExpressionFunction> TruncOfField(std::string_view field);

// A number of months, of days, or of seconds, which no other unit is a whole number of.
struct Interval {
  enum class Unit : uint8_t { kMonths, kDays, kSeconds };

  Unit unit = Unit::kDays;
  int64_t number = 0;
};
// "3 month", "-90 days", "2 hour". nullopt: of another form, or of more than 32 bits.
std::optional<Interval> IntervalOfText(std::string_view text);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FRONTEND_DATE_WORDS_H_
