// SPDX-License-Identifier: Apache-2.0
// The grammar of conditions, which is SQL's as far as it goes:
//
//     condition := name [sign constant]        --filter 'shipped<=1998-09-02'      --filter "\"odd name\" = 'it''s'"
//
// A constant is recognised by its position, so 1998-09-02 needs no quotes. Text needs them; the type of the column
// decides how the text is read (row_condition.h).
#include "tools/frontend/condition_text.h"

#include "runtime/base/status.h"
#include "tools/frontend/list_parser.h"

namespace quern::cli {
namespace {

constexpr const char* kConditionForm =
    "COLUMN, a bool one, or COLUMN<CONSTANT with < <= > >= != or =, odd names in double quotes";

}  // namespace

absl::StatusOr<ConditionText> ParseCondition(std::string_view what, ListParser* parser) {
  ConditionText condition;
  condition.option = what;
  QUERN_ASSIGN_OR_RETURN(condition.column, parser->PlainName());
  condition.op = parser->ReadSign();
  if (!condition.op.has_value()) return condition;
  condition.constant = parser->BareWord();
  if (!condition.constant.empty()) return condition;
  condition.is_quoted = true;
  QUERN_ASSIGN_OR_RETURN(condition.constant, parser->QuotedText());
  return condition;
}

absl::StatusOr<ConditionText> ParseCondition(std::string_view what, std::string_view text) {
  ListParser parser(what, kConditionForm, text, kEndsInCalls);
  QUERN_ASSIGN_OR_RETURN(ConditionText condition, ParseCondition(what, &parser));
  if (!parser.AtEnd()) return parser.Bad();
  return condition;
}

absl::StatusOr<std::vector<ConditionText>> ParseConditions(std::string_view what,
                                                           const std::vector<std::string>& texts) {
  std::vector<ConditionText> conditions;
  for (const std::string& text : texts) {
    QUERN_ASSIGN_OR_RETURN(ConditionText condition, ParseCondition(what, text));
    conditions.push_back(std::move(condition));
  }
  return conditions;
}

}  // namespace quern::cli
