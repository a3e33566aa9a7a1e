// SPDX-License-Identifier: Apache-2.0
// The grammar of --select of a map: expressions with names.
#ifndef QUERN_TOOLS_FRONTEND_SELECT_TEXT_H_
#define QUERN_TOOLS_FRONTEND_SELECT_TEXT_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/frontend/expression_text.h"

namespace quern::cli {

// A column of the result of a map.
struct SelectText {
  bool is_all = false;  // *: all columns of the input
  ExpressionText expression;
  std::string name;       // the user's; else that of a column, or the expression's text with normalised blanks
  bool is_named = false;  // the user gave the name: a column's own letters do not replace it

  bool is_column() const { return expression.form == ExpressionText::Form::kColumn; }
};

// "*, price * qty as total, name". *Errors*: those of ParseExpressionText.
absl::StatusOr<std::vector<SelectText>> ParseSelect(std::string_view what, std::string_view text);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FRONTEND_SELECT_TEXT_H_
