// SPDX-License-Identifier: Apache-2.0
// The types of an expression, from its leaves up. A spec has no implicit casts, so they are added here. Values that
// meet in an operator, a function or the branches of a case get one type:
//
//     integers of one sign             the wider one                i32 + i64 -> i64
//     signed and unsigned integers     the signed type of both      i16 + u16 -> i32      u64 with signed: refused
//     integer or decimal, and float    the float                    i32 * f64 -> f64
//     integer and decimal              the decimal                  i32 * decimal128(15,2): i32 is decimal128(10,0)
//     two decimals                     as they are; where they are compared, the larger scale
//     f32 and f64                      f64
//     texts of different types         large_utf8 where one is, else utf8_view; binaries alike
//     anything else                    the same type only
//
// A number without a cast takes the type beside it where that type holds it: in `i8column + 1` it is an i8. `1.5`
// beside decimals and integers is a decimal128(2,1), beside floats a float. Numbers among themselves are i64, decimals
// or f64: `1`, `1.5`, `1e3`. So it is with null, with strings, which take the type of the column of strings beside
// them, and with dates and times, which take the unit of the columns.
//
// The signs: + - * of integers are the checked functions, / is divide_checked and % modulo_checked; + - * of decimals
// and floats are add, subtract and multiply, / of floats is divide. / of decimals is refused: a user casts them to
// floats, or calls divide_decimal_checked with the type of the result.
//
// A date plus an interval stays a date, as does a date plus a number of days; the difference of two dates is an i64. Of
// a timestamp, the functions of dates take its date, those that cut dates down give the timestamp at midnight.
//
// Kernels see a time as a number of units. Columns that meet in a call have one unit, and a constant takes it. Where a
// constant meets columns is known only when all types are, so it is read last (expression_units.h has the rule):
//
//     s > timestamp '2020-01-01' and ms < timestamp '2021-01-01'      the first in seconds, the second in milliseconds
//     hour(s) = hour(ms)                                              hour($0,1) and hour($1,1000)
#include "tools/frontend/expression_types.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/spec/expression_strings.h"
#include "runtime/spec/expression_units.h"
#include "tools/frontend/column_names.h"
#include "tools/frontend/date_expressions.h"
#include "tools/frontend/errors.h"
#include "tools/frontend/value_types.h"

namespace quern::cli {
namespace {

using Form = ExpressionText::Form;
using Function = ExpressionFunction;

constexpr const char* kValueTypes = "bool, integers, floats, decimals of 128 bits, dates, times, durations, strings";
constexpr const char* kNumberForm = "up to 38 digits; with an exponent, a number that f64 holds";

// ---- expressions ----

std::vector<std::string> FormatsOf(std::span<const ExpressionColumn> columns) {
  std::vector<std::string> formats;
  for (const ExpressionColumn& column : columns) formats.push_back(column.format);
  return formats;
}

// A constant whose unit is not known yet (date_expressions.h).
bool IsUnread(const Expression& e) {
  return e.value.has_value() && !IsStringType(e.type.id) && e.value->bytes == kUnread;
}

// An expression, or a constant that takes the type beside it.
struct Value {
  const ExpressionText* text;
  bool is_constant = false;
  Expression expression = {};
};

class Typing {
 public:
  Typing(std::string_view what, std::span<const ExpressionColumn> columns)
      : what_(what), columns_(columns), formats_(FormatsOf(columns)) {
    for (const ExpressionColumn& column : columns) types_.push_back(column.type.value_or(ValueType()));
  }
  absl::StatusOr<Expression> Whole(const ExpressionText& text);

 private:
  using Values = std::vector<Value>;

  absl::Status CheckUnits(const ExpressionText& text, const Expression& whole) const;
  absl::StatusOr<Value> Typed(const ExpressionText& text);
  absl::StatusOr<Value> Column(const ExpressionText& text);
  absl::StatusOr<Value> Sign(const ExpressionText& text);
  absl::StatusOr<Value> Call(const ExpressionText& text);
  absl::StatusOr<Value> Case(const ExpressionText& text);
  absl::StatusOr<Value> Cast(const ExpressionText& text);
  absl::StatusOr<Value> DateCall(const ExpressionText& text);
  absl::StatusOr<Value> RangeCall(const ExpressionText& text);
  absl::StatusOr<Value> WithInterval(const ExpressionText& text);
  absl::StatusOr<std::optional<Value>> SumOfDates(const ExpressionText& text, const Values& values);
  absl::StatusOr<Expression> NumberOfDays(const ExpressionText& text, const Value& value);
  absl::Status CheckZone(const ExpressionText& text, std::span<const Expression> expressions);
  absl::StatusOr<Value> Checked(const ExpressionText& text, absl::StatusOr<Expression> call);
  absl::StatusOr<Values> TypedParts(const ExpressionText& text);

  absl::StatusOr<std::optional<ValueType>> CommonOf(const ExpressionText& text, const Values& values,
                                                    std::optional<ValueType> common);
  // The values as expressions of one type. same_scale: decimals, too. otherwise: the type of nulls alone.
  absl::StatusOr<std::vector<Expression>> Unified(const ExpressionText& text, const Values& values, bool same_scale,
                                                  std::optional<ValueType> otherwise);
  absl::StatusOr<Expression> Settled(const Value& value, const ValueType& type, bool same_scale);
  absl::StatusOr<Expression> Constant(const ExpressionText& text, const ValueType& type);
  absl::StatusOr<Literal> Time(const ExpressionText& text, TypeId id, std::string_view format) const;
  std::string_view FormatMet(std::span<const Expression> expressions, TypeId id) const;
  absl::Status ReadTimes(std::string_view met, std::string_view around, Expression* e) const;
  absl::StatusOr<Value> Made(const ExpressionText& text, Function function, std::vector<Expression> arguments,
                             const ValueType& target = {});
  absl::Status Wrong(const ExpressionText& text, const std::string& why, const std::string& accepted) const {
    return CommandError("bad expression in " + what_ + ": " + text.shown + ": " + why + "; accepted: " + accepted);
  }

  std::string what_;
  std::span<const ExpressionColumn> columns_;
  std::vector<ValueType> types_;
  std::vector<std::string> formats_;
  std::vector<const ExpressionText*> times_;  // an unread constant of a time is the number of one of these
};

// ---- columns ----

absl::StatusOr<Value> Typing::Column(const ExpressionText& text) {
  const auto column = std::find_if(columns_.begin(), columns_.end(),
                                   [&](const ExpressionColumn& known) { return known.name == text.text; });
  if (column == columns_.end()) {
    std::vector<std::string> names;
    for (const ExpressionColumn& known : columns_) names.push_back(QuoteName(known.name));
    return CommandError(UnknownWord("column in " + what_, QuoteName(text.text), names));
  }
  if (!column->has_values) return Value{.text = &text, .is_constant = true};
  if (!column->type.has_value())
    return Wrong(text, column->text + " is " + column->type_text + ", which expressions do not have", kValueTypes);
  Value value{.text = &text};
  QUERN_ASSIGN_OR_RETURN(value.expression, MakeColumn(static_cast<uint32_t>(column - columns_.begin()), types_));
  return value;
}

absl::Status Typing::CheckUnits(const ExpressionText& text, const Expression& whole) const {
  const std::optional<MixedUnits> mixed = FindMixedUnits(whole, formats_);
  if (!mixed.has_value()) return absl::OkStatus();
  const ExpressionColumn &first = columns_[mixed->first], &other = columns_[mixed->other];
  return Wrong(text, first.text + " is " + first.type_text + ", " + other.text + " is " + other.type_text,
               "times of one unit");
}

// ---- constants ----

absl::StatusOr<Literal> Typing::Time(const ExpressionText& text, TypeId id, std::string_view format) const {
  const std::optional<Literal> literal = TimeIn(text.text, id, format);
  if (literal.has_value()) return *literal;
  const char* form = "a date, YYYY-MM-DD";
  if (id == TypeId::kTimestamp) form = "a time, YYYY-MM-DD HH:MM:SS, of its unit";
  if (id == TypeId::kTime32 || id == TypeId::kTime64) form = "a time, HH:MM:SS, of its unit";
  return CommandError("bad constant in " + what_ + ": " + text.shown + "; accepted: " + form);
}

// The format of the first column that the expressions pass on as values of the type; "": of none.
std::string_view Typing::FormatMet(std::span<const Expression> expressions, TypeId id) const {
  const std::vector<uint32_t> columns = PassedOn(expressions, id);
  return columns.empty() ? std::string_view() : formats_[columns.front()];
}

// met: the format of the values which `e` meets. around: of the timestamp that `e` is a date or a number of units of.
// "": of no column.
absl::Status Typing::ReadTimes(std::string_view met, std::string_view around, Expression* e) const {
  const auto units = [](std::string_view format) {
    return UnitsPerSecond(format.empty() ? DefaultFormat({.id = TypeId::kTimestamp}) : format);
  };
  if (IsUnread(*e)) {
    if (e->type.id == TypeId::kI64) {
      absl::StatusOr<Expression> constant = MakeConstant(Literal{.number = e->value->number * units(around)}, e->type);
      if (!constant.ok())
        return CommandError("bad interval in " + what_ + ": " + std::string(constant.status().message()));
      *e = *std::move(constant);
    } else {
      const ExpressionText& text = *times_[static_cast<size_t>(e->value->number)];
      QUERN_ASSIGN_OR_RETURN(e->value, Time(text, e->type.id, met));
    }
  }
  const bool is_moment = e->type.id == TypeId::kTimestamp;
  const bool is_part = e->type.id == TypeId::kDate32 || e->type.id == TypeId::kI64;
  if (is_moment) around = met;
  else if (!is_part) around = {};
  std::string_view first = {};  // what the first argument meets
  for (size_t i = 0; i < e->arguments.size(); ++i) {
    Expression& argument = e->arguments[i];
    std::string_view format = met;
    if (argument.type.id != e->type.id) format = FormatMet(e->arguments, argument.type.id);
    if (format.empty() && argument.type.id == TypeId::kTimestamp) format = around;
    if (i == 0) first = format;
    QUERN_RETURN_IF_ERROR(ReadTimes(format, around, &argument));
  }
  if (e->kind != ExpressionKind::kCall) return absl::OkStatus();
  const Operands accepts = RowOf(e->function).accepts;
  if (accepts == Operands::kTimestampAndUnits) e->arguments[1].value->number = units(first);
  if (accepts == Operands::kDateAndUnits) e->arguments[1].value->number = units(met);
  return absl::OkStatus();
}

// A constant of a type that holds it.
absl::StatusOr<Expression> Typing::Constant(const ExpressionText& text, const ValueType& type) {
  if (text.form == Form::kNull || text.form == Form::kColumn) return MakeConstant(std::nullopt, type);
  if (text.form == Form::kTime) {
    times_.push_back(&text);
    QUERN_ASSIGN_OR_RETURN(Expression time,
                           MakeConstant(Literal{.number = static_cast<__int128>(times_.size() - 1)}, type));
    time.value->bytes = kUnread;
    return time;
  }
  if (text.form == Form::kString) {
    ValueType of_values = type;
    of_values.is_dictionary = false;
    of_values.index = ValueType().index;
    return MakeConstant(Literal{.bytes = text.text}, of_values);
  }
  const std::optional<Number> number = NumberOfText(text.text);
  const std::optional<Literal> literal = number.has_value() ? NumberIn(*number, text.text, type) : std::nullopt;
  if (!literal.has_value()) return Wrong(text, "number that " + PrintValueType(type) + " does not hold", kNumberForm);
  return MakeConstant(literal, type);
}

// ---- common types ----

// Of the values and `common`; nullopt if all are null.
absl::StatusOr<std::optional<ValueType>> Typing::CommonOf(const ExpressionText& text, const Values& values,
                                                          std::optional<ValueType> common) {
  const auto fold = [&](const ValueType& type) {
    if (!common.has_value()) {
      common = type;
      return absl::OkStatus();
    }
    const std::optional<ValueType> both = CommonType(*common, type);
    if (!both.has_value())
      return Wrong(text,
                   PrintValueType({common->id, common->digits, common->scale}) + " and " +
                       PrintValueType({type.id, type.digits, type.scale}) + " have no common type",
                   IsInteger(common->id) && IsInteger(type.id) ? "a cast of one of them, as x::i64"
                                                               : "numbers, or values of one type; a cast, as x::f64");
    common = both;
    return absl::OkStatus();
  };
  for (const Value& value : values)
    if (!value.is_constant) QUERN_RETURN_IF_ERROR(fold(value.expression.type));
  std::vector<std::pair<Number, const ExpressionText*>> wholes;
  const auto fold_number = [&](const Number& number, const ExpressionText& constant) -> absl::Status {
    const bool takes_it = common.has_value() && (IsFloat(common->id) || IsInteger(common->id)) &&
                          NumberIn(number, constant.text, *common).has_value();
    if (takes_it) return absl::OkStatus();
    const auto beside = common.has_value() && IsInteger(common->id) ? common : std::nullopt;
    const bool is_integer = number.is_whole() && (!common.has_value() || !IsDecimal(common->id));
    return fold(is_integer ? TypeOfWhole(number, beside) : number.type());
  };
  for (const Value& value : values) {  // what has a type of its own decides on those that have none
    if (!value.is_constant) continue;
    const ExpressionText& constant = *value.text;
    if (constant.form == Form::kTime && !(common.has_value() && IsTimeOf(constant.type.id, common->id)))
      QUERN_RETURN_IF_ERROR(fold(constant.type));
    if (constant.form == Form::kString && !(common.has_value() && IsStringType(common->id)))
      QUERN_RETURN_IF_ERROR(fold({.id = TypeId::kUtf8}));
    if (constant.form != Form::kNumber) continue;
    const std::optional<Number> number = NumberOfText(constant.text);
    if (!number.has_value()) return Wrong(constant, "number of too many digits", kNumberForm);
    if (number->is_whole()) wholes.emplace_back(*number, &constant);
    else QUERN_RETURN_IF_ERROR(fold_number(*number, constant));
  }
  // A u64 that holds the greatest one holds 1, too; an i64 that 1 becomes by itself does not hold the greatest one.
  std::sort(wholes.begin(), wholes.end(),
            [](const auto& a, const auto& b) { return a.first.unscaled > b.first.unscaled; });
  for (const auto& [number, constant] : wholes) QUERN_RETURN_IF_ERROR(fold_number(number, *constant));
  return common;
}

absl::StatusOr<Expression> Typing::Settled(const Value& value, const ValueType& type, bool same_scale) {
  ValueType target = type;
  target.nullable = false;
  if (value.is_constant) {
    if (IsDecimal(type.id) && value.text->form == Form::kNumber) {
      const ValueType own = NumberOfText(value.text->text)->type();
      target = same_scale ? DecimalType(own.digits - own.scale + type.scale, type.scale) : own;
    }
    return Constant(*value.text, target);
  }
  const ValueType& own = value.expression.type;
  if (IsDecimal(type.id)) {
    target = AsDecimal(own);
    if (same_scale) target = DecimalType(target.digits - target.scale + type.scale, type.scale);
  }
  target.nullable = target.is_dictionary = false;
  target.index = ValueType().index;
  if (AreAlike(own, target)) return value.expression;
  return MakeCall(Function::kCast, {value.expression}, target);
}

absl::StatusOr<std::vector<Expression>> Typing::Unified(const ExpressionText& text, const Values& values,
                                                        bool same_scale, std::optional<ValueType> otherwise) {
  QUERN_ASSIGN_OR_RETURN(std::optional<ValueType> common, CommonOf(text, values, std::nullopt));
  if (!common.has_value()) common = otherwise;
  if (!common.has_value()) return Wrong(text, "null without a type", "a cast, as null::i64");
  std::vector<Expression> expressions;
  for (const Value& value : values) {
    QUERN_ASSIGN_OR_RETURN(Expression expression, Settled(value, *common, same_scale));
    expressions.push_back(std::move(expression));
  }
  return expressions;
}

// ---- calls ----

absl::StatusOr<Value> Typing::Made(const ExpressionText& text, Function function, std::vector<Expression> arguments,
                                   const ValueType& target) {
  return Checked(text, MakeCall(function, std::move(arguments), target));
}

// A call may have an argument several times, so its size is checked before it becomes an argument itself.
absl::StatusOr<Value> Typing::Checked(const ExpressionText& text, absl::StatusOr<Expression> call) {
  const absl::Status status = call.ok() ? CheckSize(*call) : call.status();
  if (!status.ok())
    return CommandError("bad expression in " + what_ + ": " + text.shown + ": " + std::string(status.message()));
  return Value{.text = &text, .expression = *std::move(call)};
}

absl::StatusOr<std::vector<Value>> Typing::TypedParts(const ExpressionText& text) {
  Values values;
  for (const ExpressionText& part : text.parts) {
    QUERN_ASSIGN_OR_RETURN(Value value, Typed(part));
    values.push_back(std::move(value));
  }
  return values;
}

// ---- dates ----

// Whether it is a date: a constant has no type yet.
bool IsDate(const Value& value) {
  if (value.is_constant) return value.text->form == Form::kTime && value.text->type.id == TypeId::kDate32;
  return value.expression.type.id == TypeId::kDate32;
}

// What kernels compute of the units since 1970 is in UTC.
absl::Status Typing::CheckZone(const ExpressionText& text, std::span<const Expression> expressions) {
  for (const Expression& e : expressions) {
    const std::string format = FormatOf(e, columns_);
    const std::string zone = format.starts_with("ts") ? format.substr(std::min<size_t>(4, format.size())) : "";
    if (!zone.empty() && zone != "UTC")
      return Wrong(text, "timestamp of the zone " + zone, "timestamps without a zone, or of UTC");
  }
  return absl::OkStatus();
}

// A number of days or months, as i32.
absl::StatusOr<Expression> Typing::NumberOfDays(const ExpressionText& text, const Value& value) {
  QUERN_ASSIGN_OR_RETURN(auto own, Unified(text, {value}, false, ValueType{.id = TypeId::kI32}));
  if (!IsInteger(own[0].type.id)) return Wrong(text, "number that is " + PrintValueType(own[0].type), "integers");
  if (value.is_constant) return Settled(value, {.id = TypeId::kI32}, false);
  if (own[0].type.id == TypeId::kI32) return std::move(own[0]);
  return MakeCall(Function::kCast, {std::move(own[0])}, {.id = TypeId::kI32});
}

absl::StatusOr<Value> Typing::DateCall(const ExpressionText& text) {
  QUERN_ASSIGN_OR_RETURN(Values values, TypedParts(text));
  const ExpressionFunctionRow& row = RowOf(text.function);
  const bool has_units = row.accepts == Operands::kDateAndUnits || row.accepts == Operands::kTimestampAndUnits;
  const size_t num_arguments = row.min_arguments - (has_units ? 1u : 0u);
  if (values.size() != num_arguments)
    return Wrong(text, std::to_string(values.size()) + " arguments", std::to_string(num_arguments));
  std::vector<Expression> arguments;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i == 1 && row.accepts == Operands::kDateAndNumber) {
      QUERN_ASSIGN_OR_RETURN(Expression number, NumberOfDays(text, values[i]));
      arguments.push_back(std::move(number));
      continue;
    }
    const TypeId of_null = row.accepts == Operands::kTimestampAndUnits ? TypeId::kTimestamp : TypeId::kDate32;
    QUERN_ASSIGN_OR_RETURN(auto argument, Unified(text, {values[i]}, false, ValueType{.id = of_null}));
    arguments.push_back(std::move(argument[0]));
  }
  QUERN_RETURN_IF_ERROR(CheckZone(text, arguments));
  return Checked(text, cli::DateCall(text.function, std::move(arguments)));
}

// "day + interval '3' month", "interval '1' day + day", "day - interval '90' day".
absl::StatusOr<Value> Typing::WithInterval(const ExpressionText& text) {
  const bool comes_first = text.parts[0].form == Form::kInterval;
  const ExpressionText& other = text.parts[comes_first ? 1 : 0];
  Interval interval = text.parts[comes_first ? 0 : 1].interval;
  if (text.text != "+" && (text.text != "-" || comes_first))
    return Wrong(text, "interval in no sum", "EXPRESSION + INTERVAL, EXPRESSION - INTERVAL");
  if (text.text == "-") interval.number = -interval.number;
  QUERN_ASSIGN_OR_RETURN(Value value, Typed(other));
  QUERN_ASSIGN_OR_RETURN(auto moved, Unified(other, {std::move(value)}, false, ValueType{.id = TypeId::kDate32}));
  QUERN_RETURN_IF_ERROR(CheckZone(text, moved));
  return Checked(text, PlusInterval(std::move(moved[0]), interval));
}

// Of dates: their difference, a date and a number of days. nullopt: no such sum.
absl::StatusOr<std::optional<Value>> Typing::SumOfDates(const ExpressionText& text, const Values& values) {
  const bool is_minus = text.text == "-";
  if (values.size() != 2 || (!is_minus && text.text != "+")) return std::nullopt;
  const bool is_first = IsDate(values[0]), is_second = IsDate(values[1]);
  if (!(is_minus ? is_first : is_first != is_second)) return std::nullopt;
  const auto date = [&](size_t i) { return Unified(text, {values[i]}, false, std::nullopt); };
  QUERN_ASSIGN_OR_RETURN(auto first, date(is_first ? 0 : 1));
  if (is_minus && is_second) {
    QUERN_ASSIGN_OR_RETURN(auto second, date(1));
    return Made(text, Function::kDaysBetween, {std::move(second[0]), std::move(first[0])});
  }
  QUERN_ASSIGN_OR_RETURN(Expression days, NumberOfDays(text, values[is_first ? 1 : 0]));
  if (is_minus) {
    QUERN_ASSIGN_OR_RETURN(days, MakeCall(Function::kNegateChecked, {std::move(days)}));
  }
  return Made(text, Function::kAddDays, {std::move(first[0]), std::move(days)});
}

absl::StatusOr<Value> Typing::Sign(const ExpressionText& text) {
  const auto is_interval = [](const ExpressionText& part) { return part.form == Form::kInterval; };
  if (text.parts.size() == 2 && std::any_of(text.parts.begin(), text.parts.end(), is_interval))
    return WithInterval(text);
  QUERN_ASSIGN_OR_RETURN(Values values, TypedParts(text));
  QUERN_ASSIGN_OR_RETURN(std::optional<Value> of_dates, SumOfDates(text, values));
  if (of_dates.has_value()) return *std::move(of_dates);
  QUERN_ASSIGN_OR_RETURN(std::vector<Expression> parts, Unified(text, values, false, ValueType{.id = TypeId::kI64}));
  const bool is_integer = IsInteger(parts[0].type.id);
  const auto of = [is_integer](Function checked, Function other) { return is_integer ? checked : other; };
  Function function = Function::kModuloChecked;
  if (text.text == "+") function = of(Function::kAddChecked, Function::kAdd);
  else if (text.text == "-" && parts.size() == 1) function = of(Function::kNegateChecked, Function::kNegate);
  else if (text.text == "-") function = of(Function::kSubtractChecked, Function::kSubtract);
  else if (text.text == "*") function = of(Function::kMultiplyChecked, Function::kMultiply);
  else if (text.text == "/") function = of(Function::kDivideChecked, Function::kDivide);
  if (text.text == "/" && IsDecimal(parts[0].type.id))
    return Wrong(text, "quotient of decimals",
                 "integers or floats, as x::f64 / y; divide_decimal_checked(x, y as decimal(15,2))");
  return Made(text, function, std::move(parts));
}

// The conditions are bool, the values have one type.
absl::StatusOr<Value> Typing::Case(const ExpressionText& text) {
  QUERN_ASSIGN_OR_RETURN(Values values, TypedParts(text));
  Values results;
  std::vector<Expression> conditions;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i % 2 == 1 || i + 1 == values.size()) {
      results.push_back(std::move(values[i]));
      continue;
    }
    const ExpressionText& part = *values[i].text;
    QUERN_ASSIGN_OR_RETURN(auto condition,
                           Unified(part, {std::move(values[i])}, false, ValueType{.id = TypeId::kBool}));
    conditions.push_back(std::move(condition[0]));
  }
  QUERN_ASSIGN_OR_RETURN(auto unified, Unified(text, results, true, std::nullopt));
  std::vector<Expression> arguments;
  for (size_t i = 0; i < unified.size(); ++i) {
    if (i < conditions.size()) arguments.push_back(std::move(conditions[i]));
    arguments.push_back(std::move(unified[i]));
  }
  return Made(text, text.function, std::move(arguments));
}

absl::StatusOr<Value> Typing::Cast(const ExpressionText& text) {
  QUERN_ASSIGN_OR_RETURN(Value inside, Typed(text.parts[0]));
  const ExpressionText& source = *inside.text;
  if (inside.is_constant) {
    const std::optional<Number> number = source.form == Form::kNumber ? NumberOfText(source.text) : std::nullopt;
    const bool holds = number.has_value() ? NumberIn(*number, source.text, text.type).has_value()
                                          : source.form != Form::kNumber && source.form != Form::kString &&
                                                (source.form != Form::kTime || IsTimeOf(source.type.id, text.type.id));
    if (holds) {
      QUERN_ASSIGN_OR_RETURN(Expression constant, Constant(source, text.type));
      return Value{.text = &text, .expression = std::move(constant)};
    }
  }
  QUERN_ASSIGN_OR_RETURN(auto argument, Unified(text, {std::move(inside)}, false, std::nullopt));
  const TypeId from = argument[0].type.id, to = text.type.id;
  const bool is_of_dates =
      (from == TypeId::kTimestamp && to == TypeId::kDate32) || (from == TypeId::kDate32 && to == TypeId::kTimestamp);
  if (is_of_dates && text.function == Function::kCast) {
    QUERN_RETURN_IF_ERROR(CheckZone(text, argument));
    return Checked(text, DateCast(std::move(argument[0]), to));
  }
  return Made(text, text.function, std::move(argument), text.type);
}

// A string, and numbers of characters.
absl::StatusOr<Value> Typing::RangeCall(const ExpressionText& text) {
  QUERN_ASSIGN_OR_RETURN(Values values, TypedParts(text));
  std::vector<Expression> arguments;
  for (const Value& value : values) {
    const bool is_string = arguments.empty();
    QUERN_ASSIGN_OR_RETURN(auto own,
                           Unified(text, {value}, false, ValueType{.id = is_string ? TypeId::kUtf8 : TypeId::kI64}));
    if (!is_string && IsInteger(own[0].type.id) && own[0].type.id != TypeId::kI64) {
      QUERN_ASSIGN_OR_RETURN(own[0], MakeCall(Function::kCast, {std::move(own[0])}, {.id = TypeId::kI64}));
    }
    arguments.push_back(std::move(own[0]));
  }
  return Made(text, text.function, std::move(arguments));
}

absl::StatusOr<Value> Typing::Call(const ExpressionText& text) {
  const ExpressionFunctionRow& row = RowOf(text.function);
  if (row.result == ResultOf::kTarget) return Cast(text);
  if (row.accepts == Operands::kCases) return Case(text);
  if (IsOfDates(text.function)) return DateCall(text);
  if (row.accepts == Operands::kStringAndRange) return RangeCall(text);
  QUERN_ASSIGN_OR_RETURN(Values values, TypedParts(text));
  std::optional<ValueType> otherwise;
  if (row.accepts == Operands::kTruths || row.accepts == Operands::kAnyValue) otherwise = {.id = TypeId::kBool};
  if (TakesOnlyStrings(row)) otherwise = {.id = TypeId::kUtf8};
  const bool all_numbers = std::all_of(values.begin(), values.end(), [](const Value& v) {
    return v.is_constant && v.text->form != Form::kTime && v.text->form != Form::kString;
  });
  if (row.accepts == Operands::kFloats && all_numbers) {
    std::vector<Expression> reals;
    for (const Value& value : values) {
      QUERN_ASSIGN_OR_RETURN(Expression real, Settled(value, {.id = TypeId::kF64}, false));
      reals.push_back(std::move(real));
    }
    return Made(text, text.function, std::move(reals));
  }
  if (values.size() < row.min_arguments || values.size() > row.max_arguments)
    return Made(text, text.function, std::vector<Expression>(values.size()));
  const bool same_scale = row.accepts == Operands::kAlike;
  QUERN_ASSIGN_OR_RETURN(auto arguments, Unified(text, values, same_scale, otherwise));
  return Made(text, text.function, std::move(arguments), text.type);
}

absl::StatusOr<Value> Typing::Typed(const ExpressionText& text) {
  switch (text.form) {
    case Form::kColumn: return Column(text);
    case Form::kSign: return Sign(text);
    case Form::kCall: return Call(text);
    case Form::kInterval: return Wrong(text, "interval in no sum", "EXPRESSION + INTERVAL, EXPRESSION - INTERVAL");
    case Form::kTruth: {
      Value value{.text = &text};
      QUERN_ASSIGN_OR_RETURN(value.expression,
                             MakeConstant(Literal{.number = text.text == "true" ? 1 : 0}, {.id = TypeId::kBool}));
      return value;
    }
    case Form::kNumber:
    case Form::kString:
    case Form::kTime:
    case Form::kNull: break;
  }
  return Value{.text = &text, .is_constant = true};
}

absl::StatusOr<Expression> Typing::Whole(const ExpressionText& text) {
  QUERN_ASSIGN_OR_RETURN(Value value, Typed(text));
  QUERN_ASSIGN_OR_RETURN(auto whole, Unified(text, {std::move(value)}, false, std::nullopt));
  QUERN_RETURN_IF_ERROR(CheckUnits(text, whole[0]));
  QUERN_RETURN_IF_ERROR(ReadTimes(FormatMet(whole, whole[0].type.id), {}, &whole[0]));
  const absl::Status valid = ValidateExpression(whole[0], types_);
  if (!valid.ok())
    return CommandError("bad expression in " + what_ + ": " + text.shown + ": " + std::string(valid.message()));
  return std::move(whole[0]);
}

}  // namespace

ValueType ExpressionColumn::TypeInSpec() const {
  return type.value_or(ValueType{.id = TypeId::kBool, .nullable = true});
}

ExpressionColumn MakeExpressionColumn(std::string name, std::string text, std::string type_text, std::string format,
                                      const absl::StatusOr<ColumnType>& read, bool nullable) {
  ExpressionColumn column{std::move(name), std::move(text), std::move(type_text), std::move(format)};
  column.has_values = column.format != "n";
  if (column.has_values && read.ok()) column.type = ValueTypeOf(read->id, column.format, nullable);
  return column;
}

std::string FormatOf(const Expression& expression, std::span<const ExpressionColumn> columns) {
  return quern::FormatOf(expression, FormatsOf(columns));
}

absl::StatusOr<Expression> TypedExpression(std::string_view what, const ExpressionText& text,
                                           std::span<const ExpressionColumn> columns) {
  return Typing(what, columns).Whole(text);
}

namespace {

// Columns of different rows may have one name.
constexpr const char* kSidePrefixes[2] = {"l:", "r:"};

void MoveColumns(uint32_t by, Expression* expression) {
  if (expression->kind == ExpressionKind::kColumn) expression->column -= by;
  for (Expression& argument : expression->arguments) MoveColumns(by, &argument);
}

}  // namespace

absl::StatusOr<TypedSides> TypedComparison(std::string_view what, const ExpressionText& left,
                                           std::span<const ExpressionColumn> left_columns, const ExpressionText& right,
                                           std::span<const ExpressionColumn> right_columns) {
  ExpressionText both{.form = Form::kCall, .function = Function::kEqual, .parts = {left, right}};
  both.shown = left.shown + " = " + right.shown;
  std::vector<ExpressionColumn> columns;
  for (const size_t side : {0u, 1u}) {
    for (ExpressionColumn column : side == 0 ? left_columns : right_columns) {
      column.name = kSidePrefixes[side] + column.name;
      columns.push_back(std::move(column));
    }
    QUERN_RETURN_IF_ERROR(VisitNames(&both.parts[side], [side](std::string* name) {
      *name = kSidePrefixes[side] + *name;
      return absl::OkStatus();
    }));
  }
  QUERN_ASSIGN_OR_RETURN(Expression typed, TypedExpression(what, both, columns));
  TypedSides sides{std::move(typed.arguments[0]), std::move(typed.arguments[1])};
  MoveColumns(static_cast<uint32_t>(left_columns.size()), &sides.right);
  return sides;
}

}  // namespace quern::cli
