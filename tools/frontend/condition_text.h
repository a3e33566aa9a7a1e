// SPDX-License-Identifier: Apache-2.0
// Conditions on rows: comparisons, for which there are filters (where_text.h), and expressions that are true or false.
//
//     "price * qty > 100 and name like 'b%'"       an expression and a comparison
//     "unit-price > 5"                             a comparison where a column is called unit-price, else an expression
#ifndef QUERN_TOOLS_FRONTEND_CONDITION_TEXT_H_
#define QUERN_TOOLS_FRONTEND_CONDITION_TEXT_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/frontend/expression_text.h"
#include "tools/frontend/where_text.h"

namespace quern::cli {

// At least one of both; two where the columns decide: it is the comparison if they have its names.
struct ConditionTerm {
  std::optional<WhereText> comparison = std::nullopt;
  std::optional<ExpressionText> expression = std::nullopt;
};

struct ConditionText {
  std::vector<ConditionTerm> terms;  // that all hold
};

// *Errors*: those of ParseWhere.
absl::StatusOr<ConditionText> ParseCondition(std::string_view what, std::string_view text);
// The conditions of an option that may be given several times, as one that holds where all do; nullopt: there are none.
absl::StatusOr<std::optional<ConditionText>> ParseAllConditions(std::string_view what,
                                                                const std::vector<std::string>& texts);

// One expression that is true where all are: and(a, b, ..), whose later terms cannot fail where an earlier one decides.
ExpressionText AllOf(std::vector<ExpressionText> expressions);

// Appends the names of the columns that a condition mentions, in order.
void AddNames(const ConditionText& condition, std::vector<std::string>* names);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FRONTEND_CONDITION_TEXT_H_
