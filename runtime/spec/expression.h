// SPDX-License-Identifier: Apache-2.0
// Expressions: what a kernel computes of the columns of one row. Their text names columns by number, functions by name,
// and gives each constant its type:
//
//     multiply($2,subtract(1.00:decimal128(3,2),$3))
//     case_when(less($0,8766:date32),0:i64,is_null($1),null:i64,$1)
//     cast(add_checked($0,1:i32),i64)
//
//     equal($4,'it''s':utf8)    like($4,'%a!%%':utf8(utf8mb4_general_ci),'!':utf8(utf8mb4_general_ci))
//
//     expression   $NUMBER | CONSTANT:TYPE | null:TYPE | FUNCTION(expression,..)
//                  | cast(expression,TYPE) | cast_or_null(expression,TYPE)
//                  | divide_decimal_checked(expression,expression,TYPE)
//                  | divide_decimal_or_null(expression,expression,TYPE)
//
// Strings are values like others, of columns, constants and calls: case_when(like($0,'PROMO%':utf8),substring($1,1:i64,
// 3:i64),'none':utf8). A call gives no dictionary; one that takes a string of a dictionary gives a plain one.
//
// Types never change by themselves: add of i32 and i64 is an error, and cast makes one of the other. Decimals alone may
// have different precisions and scales. A front end that has implicit casts adds them.
//
// *Nulls*: a function of a null is null, unless expression_functions.def says otherwise. *Errors of rows*: functions
// whose `errors` is kFail, and decimals beyond 38 digits; they count only where the result is used (case_when, and,
// or).
#ifndef QUERN_RUNTIME_SPEC_EXPRESSION_H_
#define QUERN_RUNTIME_SPEC_EXPRESSION_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/spec/column_type.h"
#include "runtime/spec/literal.h"

namespace quern {

constexpr uint8_t kMaxDecimalDigits = 38;

// The type of a value in an expression: bool, integers, floats, decimals, dates, times, durations, and strings and
// binaries of any length.
struct ValueType {
  TypeId id = TypeId::kI64;
  uint8_t digits = 0;  // decimals: the precision, 1 to 9, 18 or 38 by type; else 0
  uint8_t scale = 0;   // decimals: digits behind the point, 0 to `digits`
  bool nullable = false;
  // Strings: as in ColumnType.
  bool is_dictionary = false;
  TypeId index = TypeId::kI32;
  Collation collation = kCollationBinary;

  bool operator==(const ValueType&) const = default;
};
inline bool IsStringType(TypeId id) { return IsVariable(RowOf(id).storage); }
// "decimal128(15,2):nullable". *Errors*: InvalidArgument for a type that expressions do not have.
std::string PrintValueType(const ValueType& type);
absl::StatusOr<ValueType> ParseValueType(std::string_view text);
// The column that holds such values.
ColumnType ColumnTypeOf(const ValueType& type);
// Whether both have the same values, be they nullable or not, strings in dictionaries or not, decimals of 32, 64 or 128
// bits.
bool AreAlike(const ValueType& a, const ValueType& b);

enum class ExpressionFunction : uint8_t {
#define QUERN_EXPRESSION_FUNCTION(Id, text, min_arguments, max_arguments, accepts, result, errors) Id,
#include "runtime/spec/expression_functions.def"
};

enum class Operands : uint8_t {
  kNumbers,            // of one type; decimals of any precision and scale
  kPlainNumbers,       // integers or floats, of one type
  kIntegers,           // of one type
  kFloats,             // of one type
  kDecimals,           // of any precision and scale
  kAlike,              // any, of one type
  kTruths,             // bool
  kCases,              // bool, value, bool, value, .., value; values of one type
  kDates,              // date32
  kDateAndNumber,      // date32, i32
  kDateAndUnits,       // date32 and a constant, the units of a second
  kTimestampAndUnits,  // timestamp and such a constant
  kAnyValue,
  kStrings,           // one
  kTexts,             // one of UTF-8
  kAllStrings,        // of one type
  kStringAndRange,    // a string, and one or two i64
  kStringAndText,     // a string and a constant of its type
  kStringAndPattern,  // the same, and perhaps a constant escape: one character, or none
};

enum class ResultOf : uint8_t {
  kSame,            // that of the arguments; of decimals, the widest
  kSameIn128,       // decimals: of 128 bits, as all arithmetic makes them; else as kSame
  kWider,           // decimals: of 128 bits, the larger scale, and one digit more; else as kSame
  kProduct,         // decimals: of 128 bits, the sums of digits and of scales; else as kSame
  kTruth,           // bool, null where an argument is null
  kTruthNeverNull,  // bool
  kCases,           // that of the values
  kFirstValid,      // as kSame, null where all arguments are null
  kFirstOrNull,     // as kSame, may be null
  kI32,
  kI64,
  kDate,  // date32
  kTimestamp,
  kTarget,    // the type that the cast names
  kQuotient,  // the decimal that the call names
};

enum class RowErrors : uint8_t { kNone, kFail, kNull };

struct ExpressionFunctionRow {
  ExpressionFunction id;
  std::string_view text;
  uint8_t min_arguments, max_arguments;
  Operands accepts;
  ResultOf result;
  RowErrors errors;
};
std::span<const ExpressionFunctionRow> AllExpressionFunctions();
const ExpressionFunctionRow& RowOf(ExpressionFunction function);
// Whether a call names a type behind its arguments, as casts do.
bool NamesType(const ExpressionFunctionRow& row);

enum class ExpressionKind : uint8_t { kColumn, kConstant, kCall };

struct Expression {
  ExpressionKind kind = ExpressionKind::kColumn;
  ValueType type;                     // of the result; calls: as TypeOfCall says
  uint32_t column = 0;                // kColumn
  std::optional<Literal> value;       // kConstant; nullopt: null. Decimals: the number without its point
  ExpressionFunction function = {};   // kCall
  std::vector<Expression> arguments;  // kCall

  bool operator==(const Expression&) const = default;
};

constexpr size_t kMaxExpressionDepth = 64;
constexpr size_t kMaxExpressionNodes = 4096;  // of all expressions of a spec

// Makes expressions, with their types. *Errors*: InvalidArgument that names the value and what is accepted.
absl::StatusOr<Expression> MakeColumn(uint32_t column, std::span<const ValueType> columns);
absl::StatusOr<Expression> MakeConstant(std::optional<Literal> value, const ValueType& type);
absl::StatusOr<Expression> MakeCall(ExpressionFunction function, std::vector<Expression> arguments,
                                    const ValueType& target = {});

// Reads and writes the text form. `columns`: the types of $0, $1, .. Reads as far as the expression goes if `rest` is
// given, and else the whole text.
absl::StatusOr<Expression> ParseExpression(std::string_view text, std::span<const ValueType> columns,
                                           std::string_view* rest = nullptr);
std::string PrintExpression(const Expression& expression);

// A constant without its type: "1.00", "null" without a value.
std::string ConstantText(const std::optional<Literal>& value, const ValueType& type);

// Checks what only a caller who fills the struct can get wrong.
absl::Status ValidateExpression(const Expression& expression, std::span<const ValueType> columns);

// The number of nodes.
size_t SizeOf(const Expression& expression);
// *Errors*: InvalidArgument for more than kMaxExpressionNodes.
absl::Status CheckSize(const Expression& expression);

}  // namespace quern

#endif  // QUERN_RUNTIME_SPEC_EXPRESSION_H_
