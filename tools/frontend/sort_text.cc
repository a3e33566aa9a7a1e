// SPDX-License-Identifier: Apache-2.0
// The grammar of --by and --window: SQL's ORDER BY, and nearly SQL's window functions:
//
//     keys    := key (',' key)*                    --by 'day desc nulls first, name collate utf8mb4_bin, "odd, name"'
//     key     := (name | expression) (order | nulls | collate)*        expression: expression_text.cc
//     order   := 'asc' | 'desc'
//     nulls   := 'nulls' ('first' | 'last')
//     collate := 'collate' word
//     windows := window (',' window)*              --window 'row_number, rank as place'
//     window  := word ['as' name]
//
// The first word of a key is always a name, so `desc desc` sorts the column desc. After it each of the three may appear
// once, in any order; SQL has COLLATE first, but nothing depends on that. Case does not matter. A text that is a name
// and an expression, as unit-price, has both readings (computed_key.h).
#include "tools/frontend/sort_text.h"

#include <array>
#include <utility>

#include "runtime/base/status.h"
#include "tools/frontend/computed_key.h"
#include "tools/frontend/errors.h"
#include "tools/frontend/list_parser.h"

namespace quern::cli {
namespace {

constexpr const char* kKeysForm =
    "KEY[,KEY...], each a column name [collate NAME] or an expression, with [asc|desc] [nulls first|last], odd "
    "names in double quotes";
constexpr const char* kWindowsForm =
    "FUNCTION [as NAME][,...] with row_number, rank or dense_rank, odd names in double quotes";

struct WindowRow {
  const char* text;
  WindowFunction function;
};

constexpr std::array<WindowRow, 3> kWindows = {{{"row_number", WindowFunction::kRowNumber},
                                                {"rank", WindowFunction::kRank},
                                                {"dense_rank", WindowFunction::kDenseRank}}};

// The words after one key's name.
class KeyWordsParser {
 public:
  KeyWordsParser(std::string_view what, ListParser* parser, SortKeyText* key)
      : what_(what), parser_(*parser), key_(*key) {}
  absl::Status Parse();

 private:
  absl::Status ParseWord();
  absl::Status ParseNulls();
  absl::Status UnknownKeyWord(const std::string& word) const;

  std::string what_;
  ListParser& parser_;
  SortKeyText& key_;
  bool has_order_ = false;
  bool has_nulls_ = false;
};

absl::Status KeyWordsParser::UnknownKeyWord(const std::string& word) const {
  return CommandError(
      UnknownWord("word in " + what_, word, {"desc", "asc", "nulls first", "nulls last", "collate NAME"}));
}

absl::Status KeyWordsParser::ParseNulls() {
  key_.nulls_first = parser_.ReadWord("first");
  if (!key_.nulls_first && !parser_.ReadWord("last")) {
    const std::string place = parser_.BareWord();
    return UnknownKeyWord("nulls" + (place.empty() ? "" : " " + place));
  }
  return std::exchange(has_nulls_, true) ? parser_.Bad() : absl::OkStatus();
}

absl::Status KeyWordsParser::ParseWord() {
  const bool descending = parser_.ReadWord("desc");
  if (descending || parser_.ReadWord("asc")) {
    key_.descending = descending;
    return std::exchange(has_order_, true) ? parser_.Bad() : absl::OkStatus();
  }
  if (parser_.ReadWord("nulls")) return ParseNulls();
  if (parser_.ReadWord("collate")) {
    if (!key_.column.collation.empty()) return parser_.Bad();
    QUERN_ASSIGN_OR_RETURN(key_.column.collation, parser_.CollationName());
    return absl::OkStatus();
  }
  const std::string word = parser_.BareWord();
  return word.empty() ? parser_.Bad() : UnknownKeyWord(word);
}

absl::Status KeyWordsParser::Parse() {
  while (!parser_.AtEnd() && !parser_.At(',')) QUERN_RETURN_IF_ERROR(ParseWord());
  return absl::OkStatus();
}

absl::StatusOr<WindowFunction> WindowByName(const std::string& name) {
  std::vector<std::string> accepted;
  for (const WindowRow& row : kWindows) {
    if (row.text == name) return row.function;
    accepted.emplace_back(row.text);
  }
  return CommandError(UnknownWord("window function", name, accepted));
}

absl::StatusOr<WindowText> ParseWindow(ListParser* parser) {
  WindowText window;
  window.text = LowerCase(parser->BareWord());
  if (window.text.empty()) return parser->Bad();
  QUERN_ASSIGN_OR_RETURN(window.function, WindowByName(window.text));
  window.name = window.text;
  if (parser->ReadWord("as")) {
    QUERN_ASSIGN_OR_RETURN(window.name, parser->PlainName());
  }
  return window;
}

}  // namespace

absl::StatusOr<std::vector<SortKeyText>> ParseSortKeys(std::string_view what, std::string_view text) {
  ListParser parser(what, kKeysForm, text);
  std::vector<SortKeyText> keys;
  do {
    SortKeyText key;
    QUERN_ASSIGN_OR_RETURN(key.column, ParseComputedKey(what, &parser, {"asc", "desc", "nulls", "collate"}));
    QUERN_RETURN_IF_ERROR(KeyWordsParser(what, &parser, &key).Parse());
    keys.push_back(std::move(key));
  } while (parser.Take(','));
  return keys;
}

absl::StatusOr<std::vector<WindowText>> ParseWindows(std::string_view what, std::string_view text) {
  ListParser parser(what, kWindowsForm, text);
  std::vector<WindowText> windows;
  do {
    QUERN_ASSIGN_OR_RETURN(WindowText window, ParseWindow(&parser));
    windows.push_back(std::move(window));
  } while (parser.Take(','));
  if (!parser.AtEnd()) return parser.Bad();
  return windows;
}

}  // namespace quern::cli
