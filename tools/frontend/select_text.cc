// SPDX-License-Identifier: Apache-2.0
// The grammar of --select of a map:
//
//     list := item (',' item)*          item := '*' | expression ['as' name]          expression: expression_text.cc
//
//     "name, price * qty as total, year( day )"    ->    columns called name, total, year(day)
#include "tools/frontend/select_text.h"

#include <utility>

#include "runtime/base/status.h"
#include "tools/frontend/errors.h"
#include "tools/frontend/list_parser.h"

namespace quern::cli {
namespace {

constexpr const char* kSelectForm = "EXPRESSION [as NAME][,...] or *, odd names in double quotes";

absl::StatusOr<SelectText> ParseSelected(std::string_view what, ListParser* parser) {
  SelectText selected;
  if (parser->Take('*')) {
    selected.is_all = true;
    return selected;
  }
  QUERN_ASSIGN_OR_RETURN(selected.expression, ParseExpressionText(what, parser));
  selected.name = selected.is_column() ? selected.expression.text : selected.expression.shown;
  if (parser->ReadWord("as")) {
    QUERN_ASSIGN_OR_RETURN(selected.name, parser->PlainName());
    selected.is_named = true;
  }
  return selected;
}

}  // namespace

absl::StatusOr<std::vector<SelectText>> ParseSelect(std::string_view what, std::string_view text) {
  ListParser parser(what, kSelectForm, text, kEndsInCalls);
  std::vector<SelectText> all;
  do {
    QUERN_ASSIGN_OR_RETURN(SelectText selected, ParseSelected(what, &parser));
    all.push_back(std::move(selected));
  } while (parser.Take(','));
  if (parser.AtEnd()) return all;
  return CommandError("bad expression in " + std::string(what) + ": " + std::string(parser.Rest()) +
                      "; accepted: " + kOperatorForm + ", as NAME, ','");
}

}  // namespace quern::cli
