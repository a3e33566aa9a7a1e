// SPDX-License-Identifier: Apache-2.0
// The words of the grammars:
//
//     name     := any run of characters but blanks and the ends   |   '"' anything, with "" for one " '"'
//               | both, side first: probe."a b"
//     sign     := '<' | '<=' | '>' | '>=' | '!=' | '='
//     constant := a bare word   |   "'" anything, with '' for one ' "'"
//
// Each list chooses which characters end a bare name: in `--by a` these are , = and ", in `--agg sum(a)` also the
// parentheses. So a column called f(x) can be bare in --by and needs quotes in --agg. QuoteName quotes every odd name,
// which all lists accept.
//
// Words are compared without regard to case, as in SQL: in "s COLLATE binary" ReadWord("collate") takes 7 characters.
// If a list meets anything unexpected, it is rejected as a whole, with the option, the text and the grammar of the
// list.
#include "tools/frontend/list_parser.h"

#include <algorithm>
#include <utility>

#include "runtime/base/status.h"
#include "tools/frontend/errors.h"

namespace quern::cli {
namespace {

// std::tolower follows the locale of the host's process, and in a Turkish one it does not make an i of an I.
char LowerLetter(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool EqualsWord(std::string_view word, std::string_view lower_case) {
  const auto same = [](char c, char lower) { return LowerLetter(c) == lower; };
  return std::equal(word.begin(), word.end(), lower_case.begin(), lower_case.end(), same);
}

struct Sign {
  std::string_view text;
  Comparison op;
};

// A sign that is a prefix of another one comes after it.
constexpr Sign kSigns[] = {{"<=", Comparison::kLessEqual}, {">=", Comparison::kGreaterEqual},
                           {"!=", Comparison::kNotEqual},  {"<", Comparison::kLess},
                           {">", Comparison::kGreater},    {"=", Comparison::kEqual}};

NameText BareName(const std::string& bare) {
  const std::string side = bare.substr(0, 6);
  if ((side == "probe." || side == "build.") && bare.size() > side.size())
    return {bare, side.substr(0, 5), bare.substr(6)};
  return {bare, "", bare};
}

bool EndsWith(const std::string& text, std::string_view characters) {
  return !text.empty() && characters.find(text.back()) != std::string_view::npos;
}

}  // namespace

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\n'; }

bool IsWordCharacter(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c < 0;
}

std::string_view Trimmed(std::string_view text) {
  const auto is_end = [](char c) { return IsBlank(c) || c == '\r'; };
  while (!text.empty() && is_end(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_end(text.back())) text.remove_suffix(1);
  return text;
}

std::string LowerCase(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), LowerLetter);
  return text;
}

std::string WithNormalisedBlanks(std::string_view text) {
  std::string normalised;
  char quote = '\0';  // the one that is open
  for (const char c : text) {
    const bool is_open = quote != '\0';
    if (!is_open && IsBlank(c)) {
      if (!EndsWith(normalised, " (")) normalised += ' ';
      continue;
    }
    if (!is_open && (c == ')' || c == ',') && EndsWith(normalised, " ")) normalised.pop_back();
    if (c == '"' || c == '\'') quote = is_open ? (c == quote ? '\0' : quote) : c;
    normalised += c;
  }
  while (EndsWith(normalised, " ")) normalised.pop_back();
  return normalised;
}

bool ListParser::AtEnd() {
  SkipBlanks();
  return next_ == text_.size();
}

bool ListParser::At(char c) { return !AtEnd() && text_[next_] == c; }

bool ListParser::Take(char c) { return Take(std::string_view(&c, 1)); }

bool ListParser::Take(std::string_view sign) {
  SkipBlanks();
  if (text_.substr(next_, sign.size()) != sign) return false;
  next_ += sign.size();
  return true;
}

bool ListParser::ReadWord(std::string_view lower_case) {
  SkipBlanks();
  if (!EqualsWord(BareWordAt(next_), lower_case)) return false;
  next_ += lower_case.size();
  return true;
}

std::optional<Comparison> ListParser::ReadSign() {
  for (const Sign& sign : kSigns)
    if (Take(sign.text)) return sign.op;
  return std::nullopt;
}

std::string ListParser::BareWord() {
  SkipBlanks();
  const std::string_view word = BareWordAt(next_);
  next_ += word.size();
  return std::string(word);
}

absl::StatusOr<NameText> ListParser::Name() {
  const std::string bare = BareWord();
  const bool quoted = next_ < text_.size() && text_[next_] == '"';
  if (bare.empty() && !quoted) return Bad();
  if (!quoted) return BareName(bare);
  if (!(bare.empty() || bare == "probe." || bare == "build.")) return Bad();
  QUERN_ASSIGN_OR_RETURN(std::string name, Quoted());
  if (bare.empty()) return NameText{name, "", name};
  return NameText{std::nullopt, bare.substr(0, bare.size() - 1), std::move(name)};
}

absl::StatusOr<std::string> ListParser::PlainName() {
  QUERN_ASSIGN_OR_RETURN(const NameText name, Name());
  if (!name.whole.has_value()) return Bad();
  return *name.whole;
}

absl::StatusOr<std::string> ListParser::CollationName() {
  QUERN_ASSIGN_OR_RETURN(std::string name, PlainName());
  if (name.empty()) return Bad();
  return name;
}

absl::StatusOr<std::string> ListParser::QuotedText() {
  SkipBlanks();
  if (next_ == text_.size() || text_[next_] != '\'') return Bad();
  return Quoted();
}

size_t ListParser::position() {
  SkipBlanks();
  return next_;
}

ListParser ListParser::Embedded(std::string_view what, std::string_view accepted, std::string_view ends) const {
  ListParser embedded(what, accepted, text_, ends);
  embedded.next_ = next_;
  return embedded;
}

absl::Status ListParser::Bad() const {
  return CommandError("bad value of " + what_ + ": " + std::string(text_) + "; accepted: " + accepted_);
}

void ListParser::SkipBlanks() {
  while (next_ < text_.size() && IsBlank(text_[next_])) ++next_;
}

std::string_view ListParser::BareWordAt(size_t begin) const {
  size_t end = begin;
  while (end < text_.size() && !IsBlank(text_[end]) && ends_.find(text_[end]) == std::string_view::npos) ++end;
  return text_.substr(begin, end - begin);
}

// From the opening quote, of either kind, to just after the closing one.
absl::StatusOr<std::string> ListParser::Quoted() {
  const char quote = text_[next_];
  std::string inside;
  for (++next_; next_ < text_.size(); ++next_) {
    if (text_[next_] == quote) {
      ++next_;
      if (next_ == text_.size() || text_[next_] != quote) return inside;
    }
    inside += text_[next_];
  }
  return Bad();  // no closing quote
}

}  // namespace quern::cli
