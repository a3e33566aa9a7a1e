// SPDX-License-Identifier: Apache-2.0
// The grammar of column lists; list_parser.h describes names.
//
//     list := item (',' item)*              --select a,build.b,"odd, name"
//     keys := key (',' key)*                --by "name collate utf8mb4_bin, k"
//     pair := key ['=' key]                 --on "name collate utf8mb4_bin = other, k"
//     key  := name ['collate' word]         --by '"", k': a column may have an empty name, as pandas writes its index
//     test := name sign name                --residual 'shipped<=due,"odd name">k'
//
// A bare name with a point is ambiguous here: probe.x can be the column x of PROBE or a column called "probe.x", which
// only the schemas decide. NameText keeps both readings; quotes make it unambiguous. In the list of tests a bare name
// also ends at < > and !.
#include "tools/frontend/column_names.h"

#include <optional>
#include <utility>

#include "runtime/base/status.h"
#include "tools/frontend/errors.h"
#include "tools/frontend/list_parser.h"

namespace quern::cli {
namespace {

constexpr const char* kNamesForm = "NAME[,NAME...], odd names in double quotes";

absl::StatusOr<KeyPairText> ParseKeyPair(ListParser* parser) {
  QUERN_ASSIGN_OR_RETURN(const KeyText probe, ParseKey(parser));
  KeyText build = probe;
  if (parser->Take('=')) {
    QUERN_ASSIGN_OR_RETURN(build, ParseKey(parser));
  }
  if (!probe.collation.empty() && !build.collation.empty() && probe.collation != build.collation) {
    return CommandError("two collations for one key: " + QuoteName(probe.name) + " collate " + probe.collation + "=" +
                        QuoteName(build.name) + " collate " + build.collation +
                        "; accepted: the same after both, or one after either");
  }
  return KeyPairText{probe.name, build.name, probe.collation.empty() ? build.collation : probe.collation};
}

absl::StatusOr<ComparisonText> ParseComparison(ListParser* parser) {
  QUERN_ASSIGN_OR_RETURN(std::string probe, parser->PlainName());
  const std::optional<Comparison> op = parser->ReadSign();
  if (!op.has_value()) return parser->Bad();
  QUERN_ASSIGN_OR_RETURN(std::string build, parser->PlainName());
  return ComparisonText{std::move(probe), std::move(build), *op};
}

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

absl::StatusOr<std::vector<KeyPairText>> ParseKeyPairs(std::string_view what, std::string_view text) {
  ListParser parser(what, "L=R[,L=R...], each a column name [collate NAME], odd names in double quotes", text);
  std::vector<KeyPairText> pairs;
  do {
    QUERN_ASSIGN_OR_RETURN(KeyPairText pair, ParseKeyPair(&parser));
    pairs.push_back(std::move(pair));
  } while (parser.Take(','));
  if (!parser.AtEnd()) return parser.Bad();
  return pairs;
}

absl::StatusOr<std::vector<ComparisonText>> ParseComparisons(std::string_view what, std::string_view text) {
  ListParser parser(what, "L<R[,L<R...], with < <= > >= != or =, odd names in double quotes", text, kEndsInTests);
  std::vector<ComparisonText> comparisons;
  do {
    QUERN_ASSIGN_OR_RETURN(ComparisonText comparison, ParseComparison(&parser));
    comparisons.push_back(std::move(comparison));
  } while (parser.Take(','));
  if (!parser.AtEnd()) return parser.Bad();
  return comparisons;
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
