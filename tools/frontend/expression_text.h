// SPDX-License-Identifier: Apache-2.0
// The grammar of expressions over named columns: in --select of a map, in arguments and keys of an aggregation.
#ifndef QUERN_TOOLS_FRONTEND_EXPRESSION_TEXT_H_
#define QUERN_TOOLS_FRONTEND_EXPRESSION_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/spec/expression.h"
#include "tools/frontend/date_words.h"

namespace quern::cli {

class ListParser;

// What may stand behind a value, in errors.
inline constexpr char kOperatorForm[] = "+ - * / % || = <> < <= > >= :: is, in, between, like, and, or";

// Like Expression, with names instead of types; between, in, like, is null and case are calls already.
struct ExpressionText {
  enum class Form : uint8_t { kColumn, kNumber, kString, kTime, kTruth, kNull, kInterval, kSign, kCall };

  Form form = Form::kNull;
  std::string text = {};             // a column's name, a number with its sign, a string or time between its quotes,
                                     // true or false, one of + - * / %
  ValueType type = {};               // kTime: date32, time64 or timestamp; kCall of a cast: its target
  Interval interval = {};            // kInterval
  ExpressionFunction function = {};  // kCall
  std::vector<ExpressionText> parts = {};  // kSign (one part: the negative), kCall
  std::string shown = {};                  // as it was written, with normalised blanks
  size_t depth = 1, size = 1;              // levels and nodes
};

// "l_extendedprice * (1 - l_discount)", "case when k is null then 0 else year(day) end", "cast(x as f64) / 3".
// *Errors*: InvalidArgument with `what` (the option), the text from where it is wrong, and what is accepted there.
absl::StatusOr<ExpressionText> ParseExpressionText(std::string_view what, std::string_view text);
// An expression within another text, up to its end. After an error the parser stands where the text is wrong.
absl::StatusOr<ExpressionText> ParseExpressionText(std::string_view what, ListParser* parser);
// The same up to an `and` or `or` that stands in no parentheses.
absl::StatusOr<ExpressionText> ParseExpressionTerm(std::string_view what, ListParser* parser);

// Calls `visit` for the name of each column that is mentioned, in order, which may replace it.
absl::Status VisitNames(ExpressionText* text, const std::function<absl::Status(std::string*)>& visit);
// Appends these names.
void AddNames(const ExpressionText& text, std::vector<std::string>* names);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FRONTEND_EXPRESSION_TEXT_H_
