// SPDX-License-Identifier: Apache-2.0
#include "runtime/spec/spec_scanner.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "runtime/base/messages.h"
#include "runtime/base/status.h"

namespace quern {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::string_view kWordCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.";

}  // namespace

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

size_t SpecScanner::EndOfWord(size_t begin) const {
  return std::min(rest_.find_first_not_of(kWordCharacters, begin), rest_.size());
}

void SpecScanner::SkipBlanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(kBlanks), rest_.size())); }

std::string_view SpecScanner::Take(size_t bytes) {
  const std::string_view taken = rest_.substr(0, bytes);
  rest_.remove_prefix(taken.size());
  SkipBlanks();
  return taken;
}

bool SpecScanner::ReadWord(std::string_view word) {
  if (LowerCase(Word()) != word) return false;
  Take(word.size());
  return true;
}

bool SpecScanner::ReadSign(std::string_view sign) {
  if (!rest_.starts_with(sign)) return false;
  Take(sign.size());
  return true;
}

std::string_view SpecScanner::NumberToken() const {
  size_t end = rest_.starts_with('-') ? 1 : 0;
  for (; end < rest_.size(); ++end) {
    const bool is_sign =
        (rest_[end] == '+' || rest_[end] == '-') && end > 0 && (rest_[end - 1] == 'e' || rest_[end - 1] == 'E');
    if (!is_sign && kWordCharacters.find(rest_[end]) == std::string_view::npos) break;
  }
  return rest_.substr(0, end);
}

bool SpecScanner::StartsString() const {
  return rest_.starts_with('\'') || rest_.starts_with("x'") || rest_.starts_with("X'");
}

bool SpecScanner::StartsLiteral() const {
  const std::string word = LowerCase(Word());
  if (word == "true" || word == "false" || word == "nan" || word == "inf") return true;
  if (word == "x" && rest_.substr(1).starts_with('\'')) return true;
  return rest_.starts_with('\'') || rest_.find_first_of("0123456789.+-") == 0;
}

size_t SpecScanner::EndOfType() const {
  size_t end = EndOfWord(0);
  if (end < rest_.size() && rest_[end] == '(') {
    size_t open = 0;
    do {
      if (rest_[end] == '(') ++open;
      if (rest_[end] == ')') --open;
      ++end;
    } while (open > 0 && end < rest_.size());
  }
  while (end < rest_.size() && rest_[end] == ':') end = EndOfWord(end + 1);
  return end;
}

absl::StatusOr<Literal> SpecScanner::Constant(const ColumnType& type) {
  if (FormOf(type.id) == LiteralForm::kBytes && StartsString()) {
    const std::string_view begin = rest_;
    Literal literal;
    QUERN_ASSIGN_OR_RETURN(literal.bytes, String());
    if (type.width_bytes == 0 || literal.bytes.size() == type.width_bytes) return literal;
    return WrongLiteral(type, begin.substr(0, begin.find_last_not_of(kBlanks, begin.size() - rest_.size() - 1) + 1));
  }
  const std::string_view token = NumberToken();
  if (token.empty() || StartsString()) return WrongLiteral(type, Near());
  QUERN_ASSIGN_OR_RETURN(Literal literal, NumberOf(token, type));
  Take(token.size());
  return literal;
}

absl::StatusOr<std::string> SpecScanner::String() { return rest_.starts_with('\'') ? Text() : HexBytes(); }

absl::StatusOr<std::string> SpecScanner::Text() {
  std::string text;
  for (size_t begin = 1;;) {
    const size_t end = rest_.find('\'', begin);
    if (end == std::string_view::npos) return Wrong("string not closed", rest_, kStringForm);
    text += rest_.substr(begin, end - begin);
    begin = end + 1;
    if (!rest_.substr(begin).starts_with('\'')) {
      Take(begin);
      return text;
    }
    text += '\'';
    ++begin;
  }
}

absl::StatusOr<std::string> SpecScanner::HexBytes() {
  const size_t end = rest_.find('\'', 2);
  if (end == std::string_view::npos) return Wrong("string not closed", rest_, kStringForm);
  const std::string_view whole = rest_.substr(0, end + 1), digits = rest_.substr(2, end - 2);
  std::string bytes;
  for (size_t i = 0; i < digits.size(); i += 2) {
    uint8_t byte = 0;
    const char* const first = digits.data() + i;
    const bool pair = i + 1 < digits.size() && std::from_chars(first, first + 2, byte, 16).ptr == first + 2;
    if (!pair) return Wrong("bytes that are no pairs of hexadecimal digits", whole, "x'00ff'");
    bytes += static_cast<char>(byte);
  }
  Take(end + 1);
  return bytes;
}

}  // namespace quern
