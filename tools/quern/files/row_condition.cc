// SPDX-License-Identifier: Apache-2.0
// A condition is evaluated on the whole column before a kernel runs, by Arrow's comparisons: it prepares the input of
// another operator.
//
//     quern aggregate --by l_returnflag --agg 'sum(l_quantity)' --filter 'l_shipdate<=1998-09-02' lineitem.parquet
//
// 6,001,215 dates become 6,001,215 bits. (Conditions on several columns have a kernel of their own: filter_request.h.)
//
// The constant is read by the type of the column: a whole number for integers of any width (as 64 bits, so that 1000 is
// larger than every i8), a number for floats, a number with any number of digits for decimals, YYYY-MM-DD for dates,
// and text in single quotes for strings.
//
// Arrow's < and <= are false if either operand is NaN, as IEEE 754 defines them; Quern's order has NaN above all
// numbers. x > c is evaluated as not (x <= c), which is the same for all values but NaN and keeps nulls null; a
// constant is never NaN.
#include "tools/quern/files/row_condition.h"

#include <arrow/api.h>
#include <arrow/compute/api.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "runtime/base/status.h"
#include "tools/frontend/errors.h"
#include "tools/quern/files/key_types.h"
#include "tools/quern/files/table_io.h"

namespace quern::cli {
namespace {

using TypePointer = std::shared_ptr<arrow::DataType>;
using ColumnPointer = std::shared_ptr<arrow::ChunkedArray>;
using ScalarPointer = std::shared_ptr<arrow::Scalar>;

// What a condition compares, for messages and for the constant.
struct Operand {
  const ConditionText& condition;
  const std::string& text;
  TypePointer type;  // dictionaries decoded

  absl::Status BadConstant(const std::string& accepted) const {
    return CommandError("bad constant in " + condition.option + ": " + condition.constant + "; accepted: " + accepted +
                        ", as " + text + " is " + type->ToString());
  }
};

template <class Number>
bool ReadNumber(const std::string& text, Number* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

template <class Number>
absl::StatusOr<ScalarPointer> NumberConstant(const Operand& operand, const char* accepted) {
  Number number = 0;
  if (operand.condition.is_quoted || !ReadNumber(operand.condition.constant, &number) ||
      std::isnan(static_cast<double>(number))) {
    return operand.BadConstant(accepted);
  }
  return arrow::MakeScalar(number);
}

absl::StatusOr<ScalarPointer> DecimalConstant(const Operand& operand) {
  arrow::Decimal128 value;
  int32_t precision = 0;
  int32_t scale = 0;
  if (operand.condition.is_quoted ||
      !arrow::Decimal128::FromString(operand.condition.constant, &value, &precision, &scale).ok() || scale < 0) {
    return operand.BadConstant("a decimal number");
  }
  return std::make_shared<arrow::Decimal128Scalar>(value, arrow::decimal128(std::max(precision, scale + 1), scale));
}

absl::StatusOr<ScalarPointer> DateConstant(const Operand& operand) {
  const auto parsed = arrow::Scalar::Parse(operand.type, operand.condition.constant);
  if (!parsed.ok()) return operand.BadConstant("a date, YYYY-MM-DD");
  return *parsed;
}

absl::StatusOr<ScalarPointer> TextConstant(const Operand& operand) {
  if (!operand.condition.is_quoted) return operand.BadConstant("text in single quotes");
  return std::make_shared<arrow::LargeStringScalar>(operand.condition.constant);
}

absl::StatusOr<ScalarPointer> Constant(const Operand& operand) {
  const arrow::Type::type id = operand.type->id();
  if (arrow::is_signed_integer(id)) return NumberConstant<int64_t>(operand, "a whole number");
  if (arrow::is_unsigned_integer(id)) return NumberConstant<uint64_t>(operand, "a whole number from 0");
  if (id == arrow::Type::FLOAT || id == arrow::Type::DOUBLE) return NumberConstant<double>(operand, "a number");
  if (id == arrow::Type::DECIMAL128) return DecimalConstant(operand);
  if (arrow::is_date(id)) return DateConstant(operand);
  if (arrow::is_string(id) || id == arrow::Type::STRING_VIEW) return TextConstant(operand);
  return CommandError("no constants for the type of a column in " + operand.condition.option + ": " + operand.text +
                      " is " + operand.type->ToString() + "; accepted: integers, floats, decimals, dates, strings");
}

// Arrow's function, and whether its result is negated.
std::pair<const char*, bool> FunctionOf(Comparison op) {
  switch (op) {
    case Comparison::kLess: return {"less", false};
    case Comparison::kLessEqual: return {"less_equal", false};
    case Comparison::kGreater: return {"less_equal", true};
    case Comparison::kGreaterEqual: return {"less", true};
    case Comparison::kNotEqual: return {"not_equal", false};
    case Comparison::kEqual: return {"equal", false};
  }
  return {"equal", false};
}

arrow::Result<ColumnPointer> Compare(const ColumnPointer& column, Comparison op, const ScalarPointer& constant) {
  const auto [function, turned] = FunctionOf(op);
  ARROW_ASSIGN_OR_RAISE(arrow::Datum rows, arrow::compute::CallFunction(function, {column, constant}));
  if (turned) {
    ARROW_ASSIGN_OR_RAISE(rows, arrow::compute::CallFunction("invert", {rows}));
  }
  return rows.chunked_array();
}

}  // namespace

absl::StatusOr<ColumnPointer> RowsThatMeet(const ConditionText& condition, const std::string& text,
                                           const ColumnPointer& column) {
  const Operand operand{condition, text, DecodedType(column->type())};
  const arrow::Type::type id = operand.type->id();
  if (id == arrow::Type::NA) return CastColumn(column, arrow::boolean(), text);
  if (!condition.op.has_value()) {
    if (id == arrow::Type::BOOL) return CastColumn(column, arrow::boolean(), text);
    return CommandError("condition that is no bool in " + condition.option + ": " + text + " is " +
                        operand.type->ToString() +
                        "; accepted: a bool column, or COLUMN<CONSTANT with < <= > >= != or =");
  }
  QUERN_ASSIGN_OR_RETURN(const ScalarPointer constant, Constant(operand));
  const bool is_text = constant->type->id() == arrow::Type::LARGE_STRING;
  QUERN_ASSIGN_OR_RETURN(const ColumnPointer values,
                         CastColumn(column, is_text ? arrow::large_utf8() : operand.type, text));
  QUERN_ASSIGN_OR_RETURN_ARROW(
      ColumnPointer rows, Compare(values, *condition.op, constant),
      "cannot compare " + text + " with " + condition.constant + ": " + operand.type->ToString());
  return rows;
}

absl::StatusOr<int> AddCondition(const ConditionText& condition, InputColumns* columns) {
  QUERN_ASSIGN_OR_RETURN(auto rows,
                         RowsThatMeet(condition, columns->Text(condition.column), columns->Find(condition.column)));
  if (!condition.op.has_value()) return columns->Add(condition.column, arrow::boolean());
  return columns->AddMade(std::move(rows));
}

absl::StatusOr<std::optional<int>> AddFilters(const std::vector<ConditionText>& filters, InputColumns* columns) {
  arrow::Datum all;
  for (const ConditionText& filter : filters) {
    QUERN_ASSIGN_OR_RETURN(const auto rows,
                           RowsThatMeet(filter, columns->Text(filter.column), columns->Find(filter.column)));
    if (!all.is_value()) {
      all = rows;
      continue;
    }
    QUERN_ASSIGN_OR_RETURN_ARROW(all, arrow::compute::CallFunction("and_kleene", {all, rows}),
                                 "cannot put together filters: " + std::to_string(filters.size()));
  }
  if (!all.is_value()) return std::nullopt;
  return columns->AddMade(all.chunked_array());
}

}  // namespace quern::cli
