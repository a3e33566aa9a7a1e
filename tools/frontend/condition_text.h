// SPDX-License-Identifier: Apache-2.0
// The grammar of --filter and of `filter (where` of an aggregate: a condition on one column.
#ifndef QUERN_TOOLS_FRONTEND_CONDITION_TEXT_H_
#define QUERN_TOOLS_FRONTEND_CONDITION_TEXT_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/spec/spec.h"

namespace quern::cli {

class ListParser;

// COLUMN, a bool one, or COLUMN OP CONSTANT.
struct ConditionText {
  std::string option;  // the option that holds it, for errors
  std::string column;
  std::optional<Comparison> op;
  std::string constant;
  bool is_quoted = false;  // the constant stood in single quotes
};

// "b", "shipped <= 1998-09-02", "\"odd name\" = 'it''s'".
absl::StatusOr<ConditionText> ParseCondition(std::string_view what, std::string_view text);
// The conditions of an option that may be given several times.
absl::StatusOr<std::vector<ConditionText>> ParseConditions(std::string_view what,
                                                           const std::vector<std::string>& texts);
// A condition within another text.
absl::StatusOr<ConditionText> ParseCondition(std::string_view what, ListParser* parser);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FRONTEND_CONDITION_TEXT_H_
