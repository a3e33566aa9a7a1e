// SPDX-License-Identifier: Apache-2.0
// A text is read twice, as a name and as an expression, and only the columns of the file decide between the readings:
//
//     unit-price     the column of that name; where there is none, unit minus price
//     year(day)      likewise in --by, where a bare name may have parentheses; in --agg it is an expression
//     price * qty    an expression: a bare name has no blanks
//     name           a name: an expression that is a column alone is no other reading
#include "tools/frontend/computed_key.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "runtime/base/status.h"
#include "tools/frontend/errors.h"
#include "tools/frontend/expression_text.h"
#include "tools/frontend/list_parser.h"

namespace quern::cli {
namespace {

constexpr const char* kKeysForm =
    "KEY[,KEY...], each a column name [collate NAME] or an expression, with [as NAME], odd names in double quotes";

bool AtWord(const ListParser& parser, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&parser](std::string_view word) {
    ListParser ahead = parser;
    return ahead.ReadWord(word);
  });
}

bool AtEndOfKey(const ListParser& parser, std::initializer_list<std::string_view> words) {
  ListParser ahead = parser;
  return ahead.AtEnd() || ahead.At(',') || ahead.At(')') || AtWord(parser, words);
}

}  // namespace

absl::StatusOr<KeyText> ParseComputedKey(std::string_view what, ListParser* parser,
                                         std::initializer_list<std::string_view> words) {
  ListParser behind_name = *parser, behind_expression = *parser;
  absl::StatusOr<KeyText> key = ParseKey(&behind_name);
  absl::StatusOr<ExpressionText> expression = ParseExpressionText(what, &behind_expression);
  const bool is_name = key.ok() && AtEndOfKey(behind_name, words);
  const size_t name_end = behind_name.position(), expression_end = behind_expression.position();
  const bool is_computed = expression.ok() && expression->form != ExpressionText::Form::kColumn;
  // In `price% asc` the name ends before a word of the list, which is no column of an expression.
  const bool may_be_longer = expression_end > name_end && !(is_name && AtWord(behind_name, words));
  const bool is_expression =
      is_computed && AtEndOfKey(behind_expression, words) && (!is_name || may_be_longer || expression_end == name_end);
  if (!is_expression && (is_name || (!key.ok() && expression_end <= name_end))) {
    *parser = behind_name;
    return key;
  }
  if (!expression.ok()) return expression.status();
  if (!is_computed) {
    *parser = behind_name;
    return key;
  }
  KeyText computed{.name = expression->shown, .may_be_column = is_name && expression_end == name_end};
  if (computed.may_be_column) computed = *std::move(key);
  *parser = behind_expression;
  computed.computed = std::make_shared<const ExpressionText>(*std::move(expression));
  return computed;
}

absl::Status CheckNoConstant(std::string_view what, const KeyText& key) {
  std::vector<std::string> names;
  if (key.computed != nullptr) AddNames(*key.computed, &names);
  if (key.computed == nullptr || !names.empty()) return absl::OkStatus();
  return CommandError("constant as a key in " + std::string(what) + ": " + key.computed->shown +
                      "; accepted: a column name, or an expression over columns");
}

absl::StatusOr<std::vector<KeyText>> ParseComputedKeys(std::string_view what, std::string_view text) {
  ListParser parser(what, kKeysForm, text);
  std::vector<KeyText> keys;
  do {
    QUERN_ASSIGN_OR_RETURN(KeyText key, ParseComputedKey(what, &parser, {"as"}));
    if (parser.ReadWord("as")) {
      QUERN_ASSIGN_OR_RETURN(key.as, parser.PlainName());
    }
    keys.push_back(std::move(key));
  } while (parser.Take(','));
  if (!parser.AtEnd()) return parser.Bad();
  return keys;
}

}  // namespace quern::cli
