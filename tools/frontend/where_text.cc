// SPDX-License-Identifier: Apache-2.0
// The grammar of conditions: SQL's, as far as a filter's kernel supports it (runtime/spec/condition.h):
//
//     condition := condition 'or' condition | condition 'and' condition | 'not' condition | '(' condition ')' | leaf
//     leaf      := column sign value | column ['not'] 'in' '(' constant (',' constant)* ')'
//                | column ['not'] 'between' constant 'and' constant
//                | column ['not'] 'like' text ['escape' text] | column 'is' ['not'] 'null' | column
//     column    := name ['collate' name]
//     value     := column | constant
//     constant  := number | date | 'true' | 'false' | [word] "'" text "'" | 'x' "'" digits "'"
//
//     --where "l_shipdate >= date '1995-03-15' and l_comment like '%pending%' or \"odd name\" = 3"
//
// To the right of a sign, a word that begins with a digit, a sign or a point is a constant, so 1998-09-02 needs no
// quotes; any other word is a column: `a = b` compares two columns. A column with the name of a word of the grammar
// needs double quotes.
#include "tools/frontend/where_text.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "runtime/base/status.h"
#include "tools/frontend/errors.h"
#include "tools/frontend/list_parser.h"

namespace quern::cli {
namespace {

constexpr const char* kLeafForm =
    "COLUMN [collate NAME], then < <= > >= != <> or = with a constant or a column, [not] in (..), [not] between .. and "
    ".., [not] like "
    "'..', "
    "is [not] null; not, and, or and parentheses; odd names in double quotes";
constexpr const char* kConstantForm = "a number, a date, true, false, or text in single quotes";
constexpr std::string_view kReserved[] = {"and",  "or",     "not", "in",   "between",
                                          "like", "escape", "is",  "null", "collate"};
constexpr std::string_view kTypedTexts[] = {"date", "time", "timestamp"};

bool IsReserved(const std::string& word) {
  return std::find(std::begin(kReserved), std::end(kReserved), word) != std::end(kReserved);
}

bool IsBareConstant(const std::string& lower) {
  constexpr std::string_view kNumbers = "0123456789+-.";
  if (lower.empty() || kNumbers.find(lower[0]) != std::string_view::npos) return !lower.empty();
  return lower == "true" || lower == "false" || lower == "nan" || lower == "inf";
}

class WhereParser {
 public:
  WhereParser(std::string_view what, ListParser parser) : what_(what), parser_(std::move(parser)) {}
  absl::StatusOr<WhereText> Whole();
  absl::StatusOr<WhereText> Or();
  const ListParser& parser() const { return parser_; }

 private:
  absl::StatusOr<WhereText> And();
  absl::StatusOr<WhereText> Not();
  absl::StatusOr<WhereText> Leaf();
  absl::StatusOr<WhereText> Compared(WhereText leaf);
  absl::StatusOr<WhereText> Listed(WhereText leaf);
  absl::StatusOr<WhereText> Bounded(WhereText leaf);
  absl::StatusOr<WhereText> Matched(WhereText leaf);
  absl::StatusOr<WhereText> Nullness(WhereText leaf);
  absl::StatusOr<KeyText> Column();
  absl::StatusOr<WhereConstant> Constant();
  absl::StatusOr<WhereConstant> TextOrBytes(const std::string& prefix, size_t begin);
  absl::Status AddConstant(WhereText* leaf);
  absl::Status CheckDepth();
  // `accepted` is what was expected next.
  absl::Status Bad(const std::string& accepted);
  std::string NextWord();  // in lower case; not taken

  std::string what_;
  ListParser parser_;
  size_t depth_ = 0;
  size_t num_leaves_ = 0;
};

absl::Status WhereParser::Bad(const std::string& accepted) {
  const std::string rest(parser_.Rest());
  return CommandError("bad condition in " + what_ + ": " + (rest.empty() ? "end of the condition" : rest) +
                      "; accepted: " + accepted);
}

std::string WhereParser::NextWord() {
  ListParser ahead = parser_;
  return LowerCase(ahead.BareWord());
}

absl::StatusOr<WhereText> WhereParser::Whole() {
  QUERN_ASSIGN_OR_RETURN(WhereText where, Or());
  if (parser_.AtEnd() && num_leaves_ > kMaxPredicateLeaves) {
    return CommandError("too many comparisons in " + what_ + ": " + std::to_string(num_leaves_) + "; accepted: up to " +
                        std::to_string(kMaxPredicateLeaves) + "; in (..) is one, whatever its list");
  }
  if (parser_.AtEnd()) return where;
  const std::string word = NextWord();
  return word.empty() ? Bad("and, or") : CommandError(UnknownWord("word in " + what_, word, {"and", "or"}));
}

absl::StatusOr<WhereText> WhereParser::Or() {
  QUERN_ASSIGN_OR_RETURN(WhereText first, And());
  if (NextWord() != "or") return first;
  WhereText whole{.kind = PredicateKind::kOr};
  AddPart(std::move(first), &whole);
  while (parser_.ReadWord("or")) {
    QUERN_ASSIGN_OR_RETURN(WhereText next, And());
    AddPart(std::move(next), &whole);
  }
  return whole;
}

absl::StatusOr<WhereText> WhereParser::And() {
  QUERN_ASSIGN_OR_RETURN(WhereText first, Not());
  if (NextWord() != "and") return first;
  WhereText whole{.kind = PredicateKind::kAnd};
  AddPart(std::move(first), &whole);
  while (parser_.ReadWord("and")) {
    QUERN_ASSIGN_OR_RETURN(WhereText next, Not());
    AddPart(std::move(next), &whole);
  }
  return whole;
}

absl::Status WhereParser::CheckDepth() {
  if (++depth_ < kMaxPredicateDepth) return absl::OkStatus();
  return Bad("up to " + std::to_string(kMaxPredicateDepth) + " parentheses and nots one in another");
}

absl::StatusOr<WhereText> WhereParser::Not() {
  if (parser_.ReadWord("not")) {
    QUERN_RETURN_IF_ERROR(CheckDepth());
    WhereText whole{.kind = PredicateKind::kNot};
    QUERN_ASSIGN_OR_RETURN(WhereText negated, Not());
    --depth_;
    whole.children.push_back(std::move(negated));
    return whole;
  }
  if (!parser_.Take('(')) return Leaf();
  QUERN_RETURN_IF_ERROR(CheckDepth());
  QUERN_ASSIGN_OR_RETURN(WhereText inside, Or());
  --depth_;
  if (!parser_.Take(')')) return Bad("and, or, ')'");
  return inside;
}

// ---- leaves ----

absl::StatusOr<KeyText> WhereParser::Column() {
  const std::string word = NextWord();
  if (IsReserved(word) || (word.empty() && !parser_.At('"'))) return Bad(kLeafForm);
  return ParseKey(&parser_);
}

absl::StatusOr<WhereText> WhereParser::Leaf() {
  ++num_leaves_;
  WhereText leaf;
  QUERN_ASSIGN_OR_RETURN(leaf.column, Column());
  const std::optional<Comparison> op = parser_.Take("<>") ? Comparison::kNotEqual : parser_.ReadSign();
  if (op.has_value()) {
    leaf.op = *op;
    return Compared(std::move(leaf));
  }
  if (parser_.ReadWord("is")) return Nullness(std::move(leaf));
  leaf.negated = parser_.ReadWord("not");
  if (parser_.ReadWord("in")) return Listed(std::move(leaf));
  if (parser_.ReadWord("between")) return Bounded(std::move(leaf));
  if (parser_.ReadWord("like")) return Matched(std::move(leaf));
  if (leaf.negated) return Bad("in, between, like");
  const std::string word = NextWord();
  const bool ends = parser_.AtEnd() || parser_.At(')') || word == "and" || word == "or";
  if (!ends && word.empty()) return Bad("< <= > >= != <> =, in, between, like, is, not, collate, and, or");
  if (!ends)
    return CommandError(
        UnknownWord("word in " + what_, word, {"in", "between", "like", "is", "not", "collate", "and", "or"}));
  leaf.kind = PredicateKind::kCompare;
  leaf.is_bare = true;
  leaf.constants.push_back({.text = "true", .shown = "true"});
  return leaf;
}

absl::StatusOr<WhereText> WhereParser::Compared(WhereText leaf) {
  const std::string word = NextWord();
  ListParser ahead = parser_;
  ahead.BareWord();
  const bool is_text = parser_.At('\'') || (!word.empty() && ahead.At('\''));
  if (is_text || IsBareConstant(word)) {
    leaf.kind = PredicateKind::kCompare;
    QUERN_RETURN_IF_ERROR(AddConstant(&leaf));
    return leaf;
  }
  if (word == "null") return Bad(std::string(kConstantForm) + ", or a column; nulls are met by is null");
  if (IsReserved(word) || (word.empty() && !parser_.At('"'))) return Bad(std::string(kConstantForm) + ", or a column");
  leaf.kind = PredicateKind::kCompareColumns;
  QUERN_ASSIGN_OR_RETURN(leaf.other, Column());
  return leaf;
}

absl::StatusOr<WhereText> WhereParser::Listed(WhereText leaf) {
  leaf.kind = PredicateKind::kIn;
  if (!parser_.Take('(')) return Bad("(CONSTANT[,CONSTANT..])");
  do QUERN_RETURN_IF_ERROR(AddConstant(&leaf));
  while (parser_.Take(','));
  if (!parser_.Take(')')) return Bad("',' or ')'");
  return leaf;
}

absl::StatusOr<WhereText> WhereParser::Bounded(WhereText leaf) {
  leaf.kind = PredicateKind::kBetween;
  QUERN_RETURN_IF_ERROR(AddConstant(&leaf));
  if (!parser_.ReadWord("and")) return Bad("and CONSTANT");
  QUERN_RETURN_IF_ERROR(AddConstant(&leaf));
  return leaf;
}

absl::StatusOr<WhereText> WhereParser::Matched(WhereText leaf) {
  leaf.kind = PredicateKind::kLike;
  if (!parser_.At('\'')) return Bad("a pattern in single quotes");
  QUERN_RETURN_IF_ERROR(AddConstant(&leaf));
  if (!parser_.ReadWord("escape")) return leaf;
  if (!parser_.At('\'')) return Bad("one character in single quotes, or '' for none");
  QUERN_ASSIGN_OR_RETURN(const std::string text, parser_.QuotedText());
  const absl::StatusOr<char32_t> escape = EscapeOf(text);
  if (!escape.ok()) return CommandError(std::string(escape.status().message()));
  leaf.escape = *escape;
  return leaf;
}

absl::StatusOr<WhereText> WhereParser::Nullness(WhereText leaf) {
  leaf.kind = PredicateKind::kIsNull;
  leaf.negated = parser_.ReadWord("not");
  if (!parser_.ReadWord("null")) return Bad(leaf.negated ? "null" : "null, not null");
  return leaf;
}

// ---- constants ----

absl::Status WhereParser::AddConstant(WhereText* leaf) {
  QUERN_ASSIGN_OR_RETURN(WhereConstant constant, Constant());
  leaf->constants.push_back(std::move(constant));
  return absl::OkStatus();
}

absl::StatusOr<WhereConstant> WhereParser::Constant() {
  const size_t begin = parser_.position();
  const std::string word = NextWord();
  if (!IsBareConstant(word)) {
    ListParser before = parser_;
    parser_.BareWord();
    if (parser_.At('\'')) return TextOrBytes(word, begin);
    parser_ = before;
    return Bad(kConstantForm);
  }
  WhereConstant constant;
  constant.text = parser_.BareWord();
  constant.shown = std::string(parser_.TextFrom(begin));
  return constant;
}

absl::StatusOr<std::string> BytesOfDigits(const std::string& what, const std::string& digits) {
  std::string bytes;
  for (size_t i = 0; i < digits.size(); i += 2) {
    uint8_t byte = 0;
    const char* const first = digits.data() + i;
    if (i + 1 < digits.size() && std::from_chars(first, first + 2, byte, 16).ptr == first + 2)
      bytes += static_cast<char>(byte);
    else
      return CommandError("bytes that are no pairs of hexadecimal digits in " + what + ": x'" + digits +
                          "'; accepted: x'00ff'");
  }
  return bytes;
}

// `prefix`: the word before the quotes, which has been taken.
absl::StatusOr<WhereConstant> WhereParser::TextOrBytes(const std::string& prefix, size_t begin) {
  const bool is_typed = std::find(std::begin(kTypedTexts), std::end(kTypedTexts), prefix) != std::end(kTypedTexts);
  if (!prefix.empty() && prefix != "x" && !is_typed) {
    return CommandError(UnknownWord("word before a text in " + what_, prefix, {"date", "time", "timestamp", "x"}));
  }
  WhereConstant constant;
  constant.form = WhereConstant::Form::kText;
  QUERN_ASSIGN_OR_RETURN(constant.text, parser_.QuotedText());
  constant.shown = std::string(parser_.TextFrom(begin));
  if (prefix != "x") return constant;
  constant.form = WhereConstant::Form::kBytes;
  QUERN_ASSIGN_OR_RETURN(constant.text, BytesOfDigits(what_, constant.text));
  return constant;
}

}  // namespace

absl::StatusOr<WhereText> ParseWhere(std::string_view what, std::string_view text) {
  return WhereParser(what, ListParser(what, kLeafForm, text, kEndsInCalls)).Whole();
}

absl::StatusOr<WhereText> ParseWhere(std::string_view what, ListParser* parser) {
  WhereParser where_parser(what, parser->Embedded(what, kLeafForm, kEndsInCalls));
  QUERN_ASSIGN_OR_RETURN(WhereText where, where_parser.Or());
  parser->MoveTo(where_parser.parser());
  return where;
}

void AddPart(WhereText part, WhereText* whole) {
  if (part.kind == whole->kind)
    std::move(part.children.begin(), part.children.end(), std::back_inserter(whole->children));
  else whole->children.push_back(std::move(part));
}

void AddNames(const WhereText& where, std::vector<std::string>* names) {
  for (const WhereText& child : where.children) AddNames(child, names);
  if (!where.children.empty()) return;
  names->push_back(where.column.name);
  if (where.kind == PredicateKind::kCompareColumns) names->push_back(where.other.name);
}

}  // namespace quern::cli
