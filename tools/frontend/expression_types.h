// SPDX-License-Identifier: Apache-2.0
// From an expression over names to one that kernels take: functions for signs, types for constants, implicit casts.
#ifndef QUERN_TOOLS_FRONTEND_EXPRESSION_TYPES_H_
#define QUERN_TOOLS_FRONTEND_EXPRESSION_TYPES_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/spec/expression.h"
#include "tools/frontend/expression_text.h"

namespace quern::cli {

// A column that an expression may name.
struct ExpressionColumn {
  std::string name;
  std::string text;                    // "column k of INPUT", for errors
  std::string type_text;               // "decimal128(10, 2)", likewise
  std::string format;                  // of its values, in the Arrow C data interface: has a time's unit
  bool has_values = true;              // false: type null; the column is the constant null
  std::optional<ValueType> type = {};  // nullopt: expressions do not have it

  // Its type in the spec. A column that no expression reads is a bool of nulls there, since it has a number all the
  // same.
  ValueType TypeInSpec() const;
};
// read: the type in which kernels read such values, or the error of a type that they do not read.
ExpressionColumn MakeExpressionColumn(std::string name, std::string text, std::string type_text, std::string format,
                                      const absl::StatusOr<ColumnType>& read, bool nullable);
std::string FormatOf(const Expression& expression, std::span<const ExpressionColumn> columns);

// The expression, whose $0, $1, .. are `columns`. *Errors*: InvalidArgument with `what` (the option), the part that is
// wrong, and what is accepted: unknown columns, types without a common one, constants that no type holds.
absl::StatusOr<Expression> TypedExpression(std::string_view what, const ExpressionText& text,
                                           std::span<const ExpressionColumn> columns);

// Two expressions that are compared, of different rows: those of a join.
struct TypedSides {
  Expression left, right;  // of one type; $0, $1, .. are the columns of the side
};
// *Errors*: those of TypedExpression for `left = right`.
absl::StatusOr<TypedSides> TypedComparison(std::string_view what, const ExpressionText& left,
                                           std::span<const ExpressionColumn> left_columns, const ExpressionText& right,
                                           std::span<const ExpressionColumn> right_columns);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FRONTEND_EXPRESSION_TYPES_H_
