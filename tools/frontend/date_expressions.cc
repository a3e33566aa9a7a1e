// SPDX-License-Identifier: Apache-2.0
// A timestamp is taken apart into its date and the units behind midnight where months are added to it:
//
//     2024-01-31 10:30:00 plus one month      2024-01-31, 37800 seconds -> 2024-02-29, 37800 seconds
//
// Kernels add integers to timestamps as casts of the same bits, so that an overflow is an error.
#include "tools/frontend/date_expressions.h"

#include <string>
#include <utility>

#include "runtime/base/messages.h"
#include "runtime/base/status.h"
#include "tools/frontend/time_text.h"

namespace quern::cli {
namespace {

using Function = ExpressionFunction;
using Made = absl::StatusOr<Expression>;

constexpr ValueType kI64Type = {.id = TypeId::kI64};

Made IntegerOf(__int128 number, TypeId id) { return MakeConstant(Literal{.number = number}, {.id = id}); }

// The units of a second, until they are known.
Made Units() { return IntegerOf(1, TypeId::kI64); }

// These seconds in units, likewise.
Made UnreadSeconds(int64_t seconds) {
  Made made = IntegerOf(seconds, TypeId::kI64);
  if (made.ok()) made->value->bytes = kUnread;
  return made;
}

Made CallOf(Function function, Expression a, Made b) {
  QUERN_RETURN_IF_ERROR(b.status());
  return MakeCall(function, {std::move(a), *std::move(b)});
}

// The units behind midnight of a timestamp, as i64.
Made TimeOfDay(const Expression& value) {
  QUERN_ASSIGN_OR_RETURN(Expression day, CallOf(Function::kTimestampTruncDay, value, Units()));
  QUERN_ASSIGN_OR_RETURN(Expression whole, MakeCall(Function::kCast, {value}, kI64Type));
  return CallOf(Function::kSubtractChecked, std::move(whole), MakeCall(Function::kCast, {std::move(day)}, kI64Type));
}

// A timestamp plus a number of its units.
Made PlusUnits(Expression value, Made more) {
  QUERN_ASSIGN_OR_RETURN(Expression whole, MakeCall(Function::kCast, {std::move(value)}, kI64Type));
  QUERN_ASSIGN_OR_RETURN(Expression sum, CallOf(Function::kAddChecked, std::move(whole), std::move(more)));
  return MakeCall(Function::kCast, {std::move(sum)}, {.id = TypeId::kTimestamp});
}

// add_days and add_months of a timestamp.
Made Moved(Function function, Expression value, Expression number) {
  QUERN_ASSIGN_OR_RETURN(Expression time, TimeOfDay(value));
  QUERN_ASSIGN_OR_RETURN(Expression date, DateCast(std::move(value), TypeId::kDate32));
  QUERN_ASSIGN_OR_RETURN(Expression moved, CallOf(function, std::move(date), std::move(number)));
  QUERN_ASSIGN_OR_RETURN(Expression midnight, DateCast(std::move(moved), TypeId::kTimestamp));
  return PlusUnits(std::move(midnight), std::move(time));
}

bool IsTimestamp(const Expression& e) { return e.type.id == TypeId::kTimestamp; }

// "i64", for errors: nulls are not the cause.
std::string TypeText(const Expression& e) {
  ValueType type = e.type;
  type.nullable = false;
  return PrintValueType(type);
}

// An argument, cast where the function takes dates.
absl::Status MakeDates(std::vector<Expression>* arguments) {
  for (Expression& argument : *arguments) {
    if (!IsTimestamp(argument)) continue;
    QUERN_ASSIGN_OR_RETURN(argument, DateCast(std::move(argument), TypeId::kDate32));
  }
  return absl::OkStatus();
}

}  // namespace

bool IsOfDates(ExpressionFunction function) {
  switch (RowOf(function).accepts) {
    case Operands::kDates:
    case Operands::kDateAndNumber:
    case Operands::kDateAndUnits:
    case Operands::kTimestampAndUnits: return true;
    case Operands::kNumbers:
    case Operands::kPlainNumbers:
    case Operands::kIntegers:
    case Operands::kFloats:
    case Operands::kDecimals:
    case Operands::kAlike:
    case Operands::kTruths:
    case Operands::kCases:
    case Operands::kAnyValue:
    case Operands::kStrings:
    case Operands::kTexts:
    case Operands::kAllStrings:
    case Operands::kStringAndRange:
    case Operands::kStringAndText:
    case Operands::kStringAndPattern: return false;
  }
  return false;
}

Made DateCast(Expression value, TypeId to) {
  const Function function = to == TypeId::kDate32 ? Function::kTimestampToDate : Function::kDateToTimestamp;
  return CallOf(function, std::move(value), Units());
}

Made DateCall(ExpressionFunction function, std::vector<Expression> arguments) {
  const ExpressionFunctionRow& row = RowOf(function);
  const bool is_moment = IsTimestamp(arguments[0]);
  if (row.accepts == Operands::kDateAndUnits || row.accepts == Operands::kTimestampAndUnits) {
    if (function == Function::kTimestampTruncDay && arguments[0].type.id == TypeId::kDate32) return arguments[0];
    if (row.accepts == Operands::kTimestampAndUnits && !is_moment)
      return Wrong("argument of " + std::string(row.text), TypeText(arguments[0]),
                   "timestamp; a cast, as d::timestamp");
    QUERN_ASSIGN_OR_RETURN(Expression constant, Units());
    arguments.push_back(std::move(constant));
    return MakeCall(function, std::move(arguments));
  }
  if (row.accepts == Operands::kDateAndNumber && is_moment && arguments.size() == 2)
    return Moved(function, std::move(arguments[0]), std::move(arguments[1]));
  QUERN_RETURN_IF_ERROR(MakeDates(&arguments));
  QUERN_ASSIGN_OR_RETURN(Expression call, MakeCall(function, std::move(arguments)));
  if (!is_moment || row.result != ResultOf::kSame) return call;
  return DateCast(std::move(call), TypeId::kTimestamp);
}

Made PlusInterval(Expression value, const Interval& interval) {
  const bool is_moment = IsTimestamp(value);
  if (!is_moment && value.type.id != TypeId::kDate32)
    return Wrong("interval beside", TypeText(value), "date32, timestamp");
  if (interval.unit == Interval::Unit::kMonths) {
    QUERN_ASSIGN_OR_RETURN(Expression months, IntegerOf(interval.number, TypeId::kI32));
    return DateCall(Function::kAddMonths, {std::move(value), std::move(months)});
  }
  const bool is_days = interval.unit == Interval::Unit::kDays;
  if (!is_moment && !is_days)
    return Wrong("interval of seconds beside", "date32", "timestamp; a cast, as d::timestamp + interval '1' hour");
  if (!is_moment) return CallOf(Function::kAddDays, std::move(value), IntegerOf(interval.number, TypeId::kI32));
  return PlusUnits(std::move(value), UnreadSeconds(interval.number * (is_days ? kSecondsPerDay : 1)));
}

}  // namespace quern::cli
