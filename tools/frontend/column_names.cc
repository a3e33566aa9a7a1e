// SPDX-License-Identifier: Apache-2.0
// The grammar of column lists; list_parser.h describes names.
//
//     list := item (',' item)*              --select a,build.b,"odd, name"
//     keys := key (',' key)*                --by "name collate utf8mb4_bin, k"
//     key  := name ['collate' word]         --by '"", k': a column may have an empty name, as pandas writes its index
//
// A bare name with a point is ambiguous here: probe.x can be the column x of PROBE or a column called "probe.x", which
// only the schemas decide. NameText keeps both readings; quotes make it unambiguous.
#include "tools/frontend/column_names.h"

#include <optional>
#include <utility>

#include "runtime/base/status.h"
#include "tools/frontend/errors.h"
#include "tools/frontend/list_parser.h"

namespace quern::cli {
namespace {

constexpr const char* kNamesForm = "NAME[,NAME...], odd names in double quotes";

}  // namespace

absl::StatusOr<KeyText> ParseKey(ListParser* parser) {
  QUERN_ASSIGN_OR_RETURN(std::string name, parser->PlainName());
  KeyText key{std::move(name), ""};
  if (parser->ReadWord("collate")) {
    QUERN_ASSIGN_OR_RETURN(key.collation, parser->CollationName());
  }
  return key;
}

absl::StatusOr<std::vector<NameText>> ParseNames(std::string_view what, std::string_view text) {
  ListParser parser(what, kNamesForm, text);
  std::vector<NameText> names;
  do {
    QUERN_ASSIGN_OR_RETURN(NameText name, parser.Name());
    names.push_back(std::move(name));
  } while (parser.Take(','));
  if (!parser.AtEnd()) return parser.Bad();
  return names;
}

absl::StatusOr<std::vector<std::string>> ParsePlainNames(std::string_view what, std::string_view text) {
  ListParser parser(what, kNamesForm, text);
  std::vector<std::string> names;
  do {
    QUERN_ASSIGN_OR_RETURN(std::string name, parser.PlainName());
    names.push_back(std::move(name));
  } while (parser.Take(','));
  if (!parser.AtEnd()) return parser.Bad();
  return names;
}

absl::StatusOr<std::vector<KeyText>> ParseKeys(std::string_view what, std::string_view text) {
  ListParser parser(what, "KEY[,KEY...], each a column name [collate NAME], odd names in double quotes", text);
  std::vector<KeyText> keys;
  do {
    QUERN_ASSIGN_OR_RETURN(KeyText key, ParseKey(&parser));
    keys.push_back(std::move(key));
  } while (parser.Take(','));
  if (!parser.AtEnd()) return parser.Bad();
  return keys;
}

std::string QuoteName(std::string_view name) {
  bool odd = name.empty();
  std::string quoted = "\"";
  for (const char c : name) {
    odd = odd || IsBlank(c) || kEndsInCalls.find(c) != std::string_view::npos;
    quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  }
  return odd ? quoted + "\"" : std::string(name);
}

}  // namespace quern::cli
