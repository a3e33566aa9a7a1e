// SPDX-License-Identifier: Apache-2.0
// Expressions are read by recursive descent, and typed from the leaves up: each call gets its type from those of its
// arguments (TypeOfCall), so that a tree which exists is well typed. Depth and number of nodes are limited, for texts
// as well as for structs of a caller, because both are walked by recursion.
#include "runtime/spec/expression.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "runtime/base/messages.h"
#include "runtime/base/status.h"
#include "runtime/spec/expression_strings.h"
#include "runtime/spec/spec_scanner.h"
#include "runtime/spec/spec_text.h"

namespace quern {
namespace {

constexpr ExpressionFunctionRow kFunctions[] = {
#define QUERN_EXPRESSION_FUNCTION(Id, text, min_arguments, max_arguments, accepts, result, errors) \
  {ExpressionFunction::Id, text, min_arguments, max_arguments, Operands::accepts, ResultOf::result, RowErrors::errors},
#include "runtime/spec/expression_functions.def"
};

constexpr bool IsInOrder() {
  for (size_t i = 0; i < std::size(kFunctions); ++i)
    if (static_cast<size_t>(kFunctions[i].id) != i) return false;
  return true;
}
static_assert(IsInOrder());

// ---- types ----

bool IsTime(TypeId id) { return id >= TypeId::kDate32 && id <= TypeId::kDuration; }
bool IsOfExpressions(TypeId id) {
  return id == TypeId::kBool || IsInteger(id) || IsFloat(id) || IsDecimal(id) || IsTime(id) || IsStringType(id);
}

std::string_view FormOfDecimal(TypeId id) {
  if (id == TypeId::kDecimal32) return "decimal32(DIGITS,SCALE)";
  return id == TypeId::kDecimal64 ? "decimal64(DIGITS,SCALE)" : "decimal128(DIGITS,SCALE)";
}

Names TypesOfExpressions() {
  Names names;
  for (const TypeRow& row : AllTypes())
    if (IsOfExpressions(row.id)) names.push_back(IsDecimal(row.id) ? FormOfDecimal(row.id) : row.text);
  return names;
}

// "1 to 18 digits, a scale from 0 to the digits"
std::string FormOfDigits(TypeId id) {
  return "1 to " + std::to_string(MaxDigitsOf(id)) + " digits, a scale from 0 to the digits";
}

absl::Status CheckValueType(const ValueType& type) {
  if (static_cast<size_t>(type.id) >= AllTypes().size() || !IsOfExpressions(type.id)) {
    const bool is_known = static_cast<size_t>(type.id) < AllTypes().size();
    return Wrong("type that expressions do not have",
                 is_known ? std::string(RowOf(type.id).text) : std::to_string(static_cast<int>(type.id)),
                 Listed(TypesOfExpressions()));
  }
  const bool fits = IsDecimal(type.id)
                        ? type.digits >= 1 && type.digits <= MaxDigitsOf(type.id) && type.scale <= type.digits
                        : type.digits == 0 && type.scale == 0;
  if (fits) return CheckType(ColumnTypeOf(type), "an expression");
  return Wrong("digits and scale of " + std::string(RowOf(type.id).text),
               std::to_string(type.digits) + ", " + std::to_string(type.scale),
               IsDecimal(type.id) ? FormOfDigits(type.id) : "0, 0");
}

absl::StatusOr<ValueType> ParseDecimalType(TypeId id, const NamedText& name) {
  ValueType type{.id = id};
  const std::vector<std::string_view> parts = Split(name.parameter, ',');
  __int128 numbers[2] = {};
  bool known = parts.size() == 2;
  for (size_t i = 0; i < 2 && known; ++i)
    known = ReadInteger(parts[i], &numbers[i]) && numbers[i] >= 0 && numbers[i] <= MaxDigitsOf(id);
  if (!known || numbers[0] < 1 || numbers[1] > numbers[0])
    return Wrong("decimal type", name.whole, std::string(FormOfDecimal(id)) + ", " + FormOfDigits(id));
  type.digits = static_cast<uint8_t>(numbers[0]);
  type.scale = static_cast<uint8_t>(numbers[1]);
  return type;
}

std::string TypeText(const ValueType& type) {
  if (IsStringType(type.id)) return PrintType(ColumnTypeOf(type));
  std::string text(RowOf(type.id).text);
  if (IsDecimal(type.id)) text += "(" + std::to_string(type.digits) + "," + std::to_string(type.scale) + ")";
  return text;
}

// ---- types of calls ----

std::string_view AcceptedText(Operands accepts) {
  switch (accepts) {
    case Operands::kNumbers: return "integers, floats or decimals of one type, decimals of any precision and scale";
    case Operands::kPlainNumbers: return "integers or floats of one type";
    case Operands::kIntegers: return "integers of one type";
    case Operands::kFloats: return "floats of one type";
    case Operands::kDecimals: return "decimals of any precision and scale";
    case Operands::kAlike: return "values of one type, decimals of one scale";
    case Operands::kTruths: return "bool";
    case Operands::kCases: return "bool, value, bool, value, .., value; values of one type";
    case Operands::kDates: return "date32";
    case Operands::kDateAndNumber: return "date32, i32";
    case Operands::kDateAndUnits: return "date32 and a constant, 1, 1000, 1000000 or 1000000000 as i64";
    case Operands::kTimestampAndUnits: return "timestamp and a constant, 1, 1000, 1000000 or 1000000000 as i64";
    case Operands::kAnyValue: return "any value";
    case Operands::kStrings:
    case Operands::kTexts:
    case Operands::kAllStrings:
    case Operands::kStringAndRange:
    case Operands::kStringAndText:
    case Operands::kStringAndPattern: break;  // expression_strings.cc
  }
  return {};
}

using Arguments = std::vector<Expression>;

bool AllAlike(const Arguments& arguments, size_t first, size_t step) {
  for (size_t i = first + step; i < arguments.size(); i += step)
    if (!AreAlike(arguments[first].type, arguments[i].type)) return false;
  return true;
}

bool AllDecimals(const Arguments& arguments) {
  return std::all_of(arguments.begin(), arguments.end(), [](const Expression& e) { return IsDecimal(e.type.id); });
}

bool AllTruths(const Arguments& arguments, size_t step) {
  for (size_t i = 0; i < arguments.size(); i += step)
    if (arguments[i].type.id != TypeId::kBool) return false;
  return true;
}

bool AreCases(const Arguments& arguments) {
  if (arguments.size() % 2 == 0) return false;
  for (size_t i = 0; i + 1 < arguments.size(); i += 2) {
    if (arguments[i].type.id != TypeId::kBool) return false;
    if (!AreAlike(arguments[i + 1].type, arguments.back().type)) return false;
  }
  return true;
}

// Whether it is the constant number of units that a second has.
bool AreUnits(const Expression& e) {
  if (e.kind != ExpressionKind::kConstant || e.type.id != TypeId::kI64 || !e.value.has_value()) return false;
  const __int128 units = e.value->number;
  return units == 1 || units == 1000 || units == 1000000 || units == 1000000000;
}

bool AreAccepted(Operands accepts, const Arguments& arguments) {
  const TypeId id = arguments[0].type.id;
  const bool of_one_type =
      std::all_of(arguments.begin(), arguments.end(), [&](const Expression& e) { return e.type.id == id; });
  switch (accepts) {
    case Operands::kNumbers: return AllDecimals(arguments) || (of_one_type && (IsInteger(id) || IsFloat(id)));
    case Operands::kPlainNumbers: return of_one_type && (IsInteger(id) || IsFloat(id));
    case Operands::kIntegers: return of_one_type && IsInteger(id);
    case Operands::kFloats: return of_one_type && IsFloat(id);
    case Operands::kDecimals: return AllDecimals(arguments);
    case Operands::kAlike: return AllAlike(arguments, 0, 1);
    case Operands::kTruths: return AllTruths(arguments, 1);
    case Operands::kCases: return AreCases(arguments);
    case Operands::kDates: return of_one_type && id == TypeId::kDate32;
    case Operands::kDateAndNumber: return id == TypeId::kDate32 && arguments[1].type.id == TypeId::kI32;
    case Operands::kDateAndUnits: return id == TypeId::kDate32 && AreUnits(arguments[1]);
    case Operands::kTimestampAndUnits: return id == TypeId::kTimestamp && AreUnits(arguments[1]);
    case Operands::kAnyValue: return true;
    case Operands::kStrings:
    case Operands::kTexts:
    case Operands::kAllStrings:
    case Operands::kStringAndRange:
    case Operands::kStringAndText:
    case Operands::kStringAndPattern: break;
  }
  return false;
}

absl::Status CheckOperands(const ExpressionFunctionRow& row, const Arguments& arguments) {
  if (arguments.size() < row.min_arguments || arguments.size() > row.max_arguments) {
    const std::string least = std::to_string(row.min_arguments), most = std::to_string(row.max_arguments);
    return Wrong("number of arguments of " + std::string(row.text), std::to_string(arguments.size()),
                 least == most ? least : least + " to " + most);
  }
  if (TakesOnlyStrings(row)) return CheckStringArguments(row, arguments);
  if (AreAccepted(row.accepts, arguments)) return absl::OkStatus();
  std::string types;
  for (const Expression& argument : arguments) types += (types.empty() ? "" : ", ") + TypeText(argument.type);
  return Wrong("arguments of " + std::string(row.text), types, std::string(AcceptedText(row.accepts)));
}

// Whether the bits of one are those of the other: dates and times, and integers of their width.
bool IsSameWidth(TypeId a, TypeId b) {
  const auto is_bits = [](TypeId id) { return IsTime(id) || id == TypeId::kI32 || id == TypeId::kI64; };
  return is_bits(a) && is_bits(b) && RowOf(a).width_bytes == RowOf(b).width_bytes;
}

bool IsCast(const ValueType& from, const ValueType& to) {
  if (IsStringType(from.id) || IsStringType(to.id)) return IsStringCast(from, to);
  if (AreAlike(from, to)) return true;
  if (IsInteger(to.id))
    return from.id == TypeId::kBool || IsInteger(from.id) || IsFloat(from.id) || IsDecimal(from.id) ||
           IsSameWidth(from.id, to.id);
  if (IsFloat(to.id)) return IsInteger(from.id) || IsFloat(from.id) || IsDecimal(from.id);
  if (IsDecimal(to.id)) return IsInteger(from.id) || IsDecimal(from.id);
  return IsSameWidth(from.id, to.id);
}

absl::StatusOr<ValueType> TypeOfProduct(const Arguments& arguments) {
  ValueType type = arguments[0].type;
  const ValueType& other = arguments[1].type;
  if (!IsDecimal(type.id)) return type;
  if (type.scale + other.scale > kMaxDecimalDigits) {
    return Wrong("scale of a product", std::to_string(type.scale + other.scale),
                 "0 to 38; cast an argument to fewer digits");
  }
  type.id = TypeId::kDecimal128;
  type.digits = static_cast<uint8_t>(std::min<int>(type.digits + other.digits, kMaxDecimalDigits));
  type.scale = static_cast<uint8_t>(type.scale + other.scale);
  return type;
}

// As arithmetic makes it.
ValueType In128Bits(ValueType type) {
  if (IsDecimal(type.id)) type.id = TypeId::kDecimal128;
  return type;
}

// The type of a result that has the whole digits and the scale of both; `more` digits in front of the point.
ValueType Widened(ValueType type, const ValueType& other, int more) {
  if (!IsDecimal(type.id)) return type;
  type.id = std::max(type.id, other.id);
  const int whole = std::max(type.digits - type.scale, other.digits - other.scale);
  type.scale = std::max(type.scale, other.scale);
  type.digits = static_cast<uint8_t>(std::min<int>(whole + type.scale + more, kMaxDecimalDigits));
  return type;
}

// Of values that come out of dictionaries.
ValueType Decoded(ValueType type) {
  type.is_dictionary = false;
  type.index = ValueType().index;
  return type;
}

ValueType WidestOf(const Arguments& arguments, size_t first, size_t step) {
  ValueType type = Decoded(arguments[first].type);
  for (size_t i = first; i < arguments.size(); i += step) type = Widened(type, arguments[i].type, 0);
  return type;
}

bool AnyNullable(const Arguments& arguments) {
  return std::any_of(arguments.begin(), arguments.end(), [](const Expression& e) { return e.type.nullable; });
}

// The values of case_when: 1, 3, .. and the last argument.
ValueType TypeOfCases(const Arguments& arguments) {
  ValueType type = Decoded(arguments.back().type);
  for (size_t i = 1; i < arguments.size(); i += 2) {
    const bool nullable = type.nullable || arguments[i].type.nullable;
    type = Widened(type, arguments[i].type, 0);
    type.nullable = nullable;
  }
  return type;
}

absl::StatusOr<ValueType> TypeOfQuotient(const Arguments& arguments, const ValueType& target) {
  QUERN_RETURN_IF_ERROR(CheckValueType(target));
  if (!IsDecimal(target.id))
    return Wrong("type of a quotient", TypeText(target),
                 "decimal32(DIGITS,SCALE), decimal64(DIGITS,SCALE), decimal128(DIGITS,SCALE)");
  const int least = arguments[0].type.scale - arguments[1].type.scale;
  if (target.scale < least)
    return Wrong("scale of a quotient", std::to_string(target.scale),
                 std::to_string(least) + " or more, the difference of the arguments' scales");
  return target;
}

absl::StatusOr<ValueType> TypeOfCall(const ExpressionFunctionRow& row, const Arguments& arguments,
                                     const ValueType& target) {
  QUERN_RETURN_IF_ERROR(CheckOperands(row, arguments));
  ValueType type = Decoded(arguments[0].type);
  switch (row.result) {
    case ResultOf::kSame:
      if (!TakesOnlyStrings(row)) type = WidestOf(arguments, 0, 1);
      break;
    case ResultOf::kSameIn128: type = In128Bits(type); break;
    case ResultOf::kWider: type = Widened(In128Bits(type), arguments[1].type, 1); break;
    case ResultOf::kProduct: {
      QUERN_ASSIGN_OR_RETURN(type, TypeOfProduct(arguments));
      break;
    }
    case ResultOf::kTruth: type = {.id = TypeId::kBool}; break;
    case ResultOf::kTruthNeverNull: return ValueType{.id = TypeId::kBool};
    case ResultOf::kCases: return TypeOfCases(arguments);
    case ResultOf::kFirstValid: {
      type = WidestOf(arguments, 0, 1);
      type.nullable =
          std::all_of(arguments.begin(), arguments.end(), [](const Expression& e) { return e.type.nullable; });
      return type;
    }
    case ResultOf::kFirstOrNull: type.nullable = true; return type;
    case ResultOf::kI32: type = {.id = TypeId::kI32}; break;
    case ResultOf::kI64: type = {.id = TypeId::kI64}; break;
    case ResultOf::kDate: type = {.id = TypeId::kDate32}; break;
    case ResultOf::kTimestamp: type = {.id = TypeId::kTimestamp}; break;
    case ResultOf::kQuotient: {
      QUERN_ASSIGN_OR_RETURN(type, TypeOfQuotient(arguments, target));
      break;
    }
    case ResultOf::kTarget: {
      QUERN_RETURN_IF_ERROR(CheckValueType(target));
      if (!IsCast(type, target))
        return Wrong("cast", TypeText(type) + " to " + TypeText(target),
                     "numbers and bool to numbers, dates and times to integers of their width and back, numbers, bool "
                     "and date32 to utf8, large_utf8 and utf8_view and back");
      type = target;
      break;
    }
  }
  type.nullable = AnyNullable(arguments) || row.errors == RowErrors::kNull;
  return type;
}

// ---- constants ----

absl::Status WrongDecimal(const ValueType& type, std::string_view shown) {
  return Wrong("constant of " + TypeText(type), shown,
               "up to " + std::to_string(type.digits - type.scale) + " digits before the point and exactly " +
                   std::to_string(type.scale) + " behind it");
}

// "-1.50" of decimal128(3,2) is -150.
absl::StatusOr<Literal> DecimalOf(std::string_view token, const ValueType& type) {
  const size_t point = token.find('.');
  std::string digits(token.substr(0, point));
  size_t behind = 0;
  if (point != std::string_view::npos) {
    const std::string_view fraction = token.substr(point + 1);
    behind = fraction.size();
    digits += fraction;
  }
  Literal literal;
  if (behind != type.scale || (point != std::string_view::npos && behind == 0) || !ReadInteger(digits, &literal.number))
    return WrongDecimal(type, token);
  const __int128 limit = PowerOfTen(type.digits);
  if (literal.number <= -limit || literal.number >= limit) return WrongDecimal(type, token);
  return literal;
}

std::string DecimalText(__int128 number, uint8_t scale) {
  std::string digits = IntegerText(number);
  if (number < 0) digits.erase(0, 1);
  if (digits.size() <= scale) digits.insert(0, scale + 1 - digits.size(), '0');
  if (scale != 0) digits.insert(digits.size() - scale, 1, '.');
  return (number < 0 ? "-" : "") + digits;
}

// ---- reading ----

constexpr char kForms[] = "$NUMBER, CONSTANT:TYPE, null:TYPE, FUNCTION(EXPRESSION,..)";

class ExpressionParser : private SpecScanner {
 public:
  ExpressionParser(std::string_view text, std::span<const ValueType> columns)
      : SpecScanner(text, "end of the expression"), columns_(columns) {}
  absl::StatusOr<Expression> Any();
  std::string_view rest() const { return rest_; }

 private:
  absl::StatusOr<Expression> Column();
  absl::StatusOr<Expression> Constant();
  absl::StatusOr<Expression> StringConstant();
  absl::StatusOr<ValueType> ConstantType(std::string_view token);
  absl::StatusOr<Expression> Call();
  absl::StatusOr<ValueType> Type();
  absl::StatusOr<std::vector<Expression>> ArgumentsOf(const ExpressionFunctionRow& row, ValueType* target);

  std::span<const ValueType> columns_;
  size_t depth_ = 0, num_nodes_ = 0;
};

absl::StatusOr<Expression> ExpressionParser::Any() {
  if (depth_ >= kMaxExpressionDepth)
    return Wrong("expression nested too deep", Near(), "up to " + std::to_string(kMaxExpressionDepth) + " levels");
  if (++num_nodes_ > kMaxExpressionNodes)
    return Wrong("expression of too many parts", Near(), "up to " + std::to_string(kMaxExpressionNodes));
  if (rest_.starts_with('$')) return Column();
  const bool is_call = !Word().empty() && rest_.substr(Word().size()).starts_with('(');
  return is_call ? Call() : Constant();
}

absl::StatusOr<Expression> ExpressionParser::Column() {
  const size_t end = std::min(rest_.find_first_not_of("0123456789", 1), rest_.size());
  const std::string_view whole = rest_.substr(0, end);
  __int128 number = 0;
  if (!ReadInteger(whole.substr(1), &number)) return Wrong("column", Near(), "$0, $1, ..");
  Take(end);
  return MakeColumn(static_cast<uint32_t>(std::min<__int128>(number, UINT32_MAX)), columns_);
}

absl::StatusOr<ValueType> ExpressionParser::Type() {
  const size_t end = EndOfType();
  if (end == 0) return Wrong("type expected", Near(), Listed(TypesOfExpressions()));
  return ParseValueType(Take(end));
}

// Behind a constant.
absl::StatusOr<ValueType> ExpressionParser::ConstantType(std::string_view token) {
  if (!ReadSign(":"))
    return Wrong("constant without a type", token,
                 std::string(token) + ":TYPE, TYPE one of " + Listed(TypesOfExpressions()));
  QUERN_ASSIGN_OR_RETURN(ValueType type, Type());
  if (type.nullable) return Wrong("constant that is nullable", TypeText(type) + ":nullable", TypeText(type));
  return type;
}

absl::StatusOr<Expression> ExpressionParser::StringConstant() {
  Literal literal;
  QUERN_ASSIGN_OR_RETURN(literal.bytes, String());
  const std::string token = StringText(literal.bytes);
  QUERN_ASSIGN_OR_RETURN(const ValueType type, ConstantType(token));
  if (!IsStringType(type.id)) return WrongLiteral(ColumnTypeOf(type), token);
  return MakeConstant(std::move(literal), type);
}

absl::StatusOr<Expression> ExpressionParser::Constant() {
  if (StartsString()) return StringConstant();
  const std::string_view token = NumberToken();
  if (token.empty()) return Wrong("expression expected", Near(), kForms);
  Take(token.size());
  QUERN_ASSIGN_OR_RETURN(ValueType type, ConstantType(token));
  if (token == "null") return MakeConstant(std::nullopt, type);
  absl::StatusOr<Literal> literal = IsDecimal(type.id) ? DecimalOf(token, type) : NumberOf(token, ColumnTypeOf(type));
  if (!literal.ok()) return literal.status();
  return MakeConstant(*std::move(literal), type);
}

absl::StatusOr<Expression> ExpressionParser::Call() {
  const std::string_view name = Take(Word().size());
  const auto row =
      std::find_if(std::begin(kFunctions), std::end(kFunctions), [&](const auto& r) { return r.text == name; });
  if (row == std::end(kFunctions)) {
    Names names;
    for (const ExpressionFunctionRow& known : kFunctions) names.push_back(known.text);
    return Unknown("function", name, names);
  }
  Take(1);
  ++depth_;
  ValueType target;
  QUERN_ASSIGN_OR_RETURN(std::vector<Expression> arguments, ArgumentsOf(*row, &target));
  --depth_;
  return MakeCall(row->id, std::move(arguments), target);
}

// As far as ')'.
absl::StatusOr<std::vector<Expression>> ExpressionParser::ArgumentsOf(const ExpressionFunctionRow& row,
                                                                      ValueType* target) {
  const bool is_cast = row.result == ResultOf::kTarget;
  std::vector<Expression> arguments;
  do {
    if (NamesType(row) && arguments.size() == row.min_arguments) {
      QUERN_ASSIGN_OR_RETURN(*target, Type());
      if (target->nullable)
        return Wrong("target of a " + std::string(is_cast ? "cast" : "quotient") + " that is nullable",
                     TypeText(*target) + ":nullable", TypeText(*target));
      break;
    }
    QUERN_ASSIGN_OR_RETURN(Expression argument, Any());
    arguments.push_back(std::move(argument));
    if (NamesType(row) && !rest_.starts_with(','))
      return Wrong(is_cast ? "cast without a type" : "quotient without a type", Near(),
                   std::string(row.text) + (is_cast ? "(EXPRESSION,TYPE)" : "(EXPRESSION,EXPRESSION,TYPE)"));
  } while (ReadSign(","));
  if (!ReadSign(")"))
    return Wrong("arguments of " + std::string(row.text) + " not closed", Near(), "',' and an expression, or ')'");
  return arguments;
}

void Print(const Expression& expression, std::string* text) {
  switch (expression.kind) {
    case ExpressionKind::kColumn: *text += "$" + std::to_string(expression.column); return;
    case ExpressionKind::kConstant:
      *text += ConstantText(expression.value, expression.type) + ":" + TypeText(expression.type);
      return;
    case ExpressionKind::kCall: break;
  }
  const ExpressionFunctionRow& row = RowOf(expression.function);
  *text += std::string(row.text) + "(";
  for (size_t i = 0; i < expression.arguments.size(); ++i) {
    if (i > 0) *text += ",";
    Print(expression.arguments[i], text);
  }
  if (NamesType(row)) *text += "," + TypeText(expression.type);
  *text += ")";
}

absl::Status Validate(const Expression& expression, std::span<const ValueType> columns, size_t depth) {
  if (depth >= kMaxExpressionDepth)
    return Wrong("expression nested too deep", std::to_string(depth + 1),
                 "up to " + std::to_string(kMaxExpressionDepth) + " levels");
  if (static_cast<size_t>(expression.kind) > static_cast<size_t>(ExpressionKind::kCall))
    return Wrong("kind of an expression out of range", std::to_string(static_cast<int>(expression.kind)), "0 to 2");
  absl::StatusOr<Expression> made = Expression();
  if (expression.kind == ExpressionKind::kColumn) {
    made = MakeColumn(expression.column, columns);
  } else if (expression.kind == ExpressionKind::kConstant) {
    ValueType type = expression.type;
    type.nullable = false;
    made = MakeConstant(expression.value, type);
  } else {
    if (static_cast<size_t>(expression.function) >= std::size(kFunctions))
      return Wrong("function number out of range", std::to_string(static_cast<int>(expression.function)),
                   "0 to " + std::to_string(std::size(kFunctions) - 1));
    for (const Expression& argument : expression.arguments)
      QUERN_RETURN_IF_ERROR(Validate(argument, columns, depth + 1));
    ValueType target;
    if (NamesType(RowOf(expression.function))) {
      target = expression.type;
      target.nullable = false;
    }
    made = MakeCall(expression.function, expression.arguments, target);
  }
  QUERN_RETURN_IF_ERROR(made.status());
  if (*made == expression) return absl::OkStatus();
  return Wrong("fields of an expression", TypeText(expression.type),
               "what MakeColumn, MakeConstant and MakeCall fill: " + TypeText(made->type));
}

}  // namespace

std::span<const ExpressionFunctionRow> AllExpressionFunctions() { return kFunctions; }
const ExpressionFunctionRow& RowOf(ExpressionFunction function) { return kFunctions[static_cast<size_t>(function)]; }
bool NamesType(const ExpressionFunctionRow& row) {
  return row.result == ResultOf::kTarget || row.result == ResultOf::kQuotient;
}

std::string PrintValueType(const ValueType& type) { return TypeText(type) + (type.nullable ? ":nullable" : ""); }

absl::StatusOr<ValueType> ParseValueType(std::string_view text) {
  const std::vector<std::string_view> parts = Split(text, ':');
  QUERN_ASSIGN_OR_RETURN(const NamedText name, SplitName(parts[0], "TYPE, TYPE(PARAMETER)"));
  ValueType type;
  const auto row = std::find_if(AllTypes().begin(), AllTypes().end(),
                                [&](const TypeRow& known) { return IsDecimal(known.id) && known.text == name.name; });
  if (row != AllTypes().end()) {
    QUERN_ASSIGN_OR_RETURN(type, ParseDecimalType(row->id, name));
  } else {
    QUERN_ASSIGN_OR_RETURN(const Item item, ParseItem(parts[0], Role::kArgument));
    const ColumnType& column = item.key.type;
    type.id = column.id;
    type.is_dictionary = column.is_dictionary;
    type.index = column.index;
    type.collation = column.collation;
    if (column.is_dictionary && !IsStringType(column.id))
      return Wrong("type that expressions do not have", parts[0], Listed(TypesOfExpressions()));
    QUERN_RETURN_IF_ERROR(CheckValueType(type));
  }
  for (size_t i = 1; i < parts.size(); ++i) {
    if (parts[i] != "nullable" || type.nullable) return Wrong("flag of a value", parts[i], "nullable, once");
    type.nullable = true;
  }
  return type;
}

ColumnType ColumnTypeOf(const ValueType& type) {
  ColumnType column;
  column.id = type.id;
  column.nullable = type.nullable;
  column.is_dictionary = type.is_dictionary;
  column.index = type.index;
  column.collation = type.collation;
  return column;
}

bool AreAlike(const ValueType& a, const ValueType& b) {
  const bool are_decimals = IsDecimal(a.id) && IsDecimal(b.id);
  return (a.id == b.id || are_decimals) && a.scale == b.scale && a.collation == b.collation;
}

absl::StatusOr<Expression> MakeColumn(uint32_t column, std::span<const ValueType> columns) {
  if (column >= columns.size()) {
    return Wrong("column", "$" + std::to_string(column),
                 columns.empty() ? "none" : "$0 to $" + std::to_string(columns.size() - 1));
  }
  Expression made;
  made.kind = ExpressionKind::kColumn;
  made.column = column;
  made.type = columns[column];
  return made;
}

absl::StatusOr<Expression> MakeConstant(std::optional<Literal> value, const ValueType& type) {
  QUERN_RETURN_IF_ERROR(CheckValueType(type));
  if (type.is_dictionary)
    return Wrong("constant of a dictionary", TypeText(type),
                 "the type of its values, " + std::string(RowOf(type.id).text));
  Expression made;
  made.kind = ExpressionKind::kConstant;
  made.type = type;
  made.type.nullable = !value.has_value();
  if (value.has_value()) {
    QUERN_RETURN_IF_ERROR(CheckLiteral(*value, ColumnTypeOf(type)));
    const __int128 limit = PowerOfTen(type.digits);
    if (IsDecimal(type.id) && (value->number <= -limit || value->number >= limit))
      return WrongDecimal(type, IntegerText(value->number));
  }
  made.value = std::move(value);
  return made;
}

absl::StatusOr<Expression> MakeCall(ExpressionFunction function, std::vector<Expression> arguments,
                                    const ValueType& target) {
  Expression made;
  made.kind = ExpressionKind::kCall;
  made.function = function;
  QUERN_ASSIGN_OR_RETURN(made.type, TypeOfCall(RowOf(function), arguments, target));
  made.arguments = std::move(arguments);
  return made;
}

absl::StatusOr<Expression> ParseExpression(std::string_view text, std::span<const ValueType> columns,
                                           std::string_view* rest) {
  ExpressionParser parser(text, columns);
  QUERN_ASSIGN_OR_RETURN(Expression expression, parser.Any());
  if (rest != nullptr) *rest = parser.rest();
  else if (!parser.rest().empty()) return Wrong("text behind an expression", parser.rest(), "none");
  return expression;
}

std::string ConstantText(const std::optional<Literal>& value, const ValueType& type) {
  if (!value.has_value()) return "null";
  if (IsDecimal(type.id)) return DecimalText(value->number, type.scale);
  return LiteralText(*value, ColumnTypeOf(type));
}

std::string PrintExpression(const Expression& expression) {
  std::string text;
  Print(expression, &text);
  return text;
}

absl::Status ValidateExpression(const Expression& expression, std::span<const ValueType> columns) {
  QUERN_RETURN_IF_ERROR(CheckSize(expression));
  return Validate(expression, columns, 0);
}

size_t SizeOf(const Expression& expression) {
  size_t size = 1;
  for (const Expression& argument : expression.arguments) size += SizeOf(argument);
  return size;
}

absl::Status CheckSize(const Expression& expression) {
  const size_t size = SizeOf(expression);
  if (size <= kMaxExpressionNodes) return absl::OkStatus();
  return Wrong("expression of too many parts", std::to_string(size), "up to " + std::to_string(kMaxExpressionNodes));
}

}  // namespace quern
