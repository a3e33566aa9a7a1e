// SPDX-License-Identifier: Apache-2.0
// Parses conditions by recursive descent, and prints them. Each rule of the grammar in condition.h is a function
// here:
//
//     i64 >= 5 and (utf8(utf8mb4_general_ci) like 'a!%%' escape '!' or not bool)
//
//     Or                 parses its parts by And, And by Not, Not by Leaf or, in parentheses, by Or again
//     kAnd               { i64 >= 5 , kOr { utf8(..) like .. , kNot { bool = true } } }
//
// Each text gives one tree, and each tree one text, so that the text can be a cache key: `a and (b and c)` is one kAnd
// of three, and parentheses are printed only where they are needed. Constants print as text that reads back to the same
// bits: numbers as the shortest decimal that does (0.1, 1e+300, -0, nan), strings between quotes if they are UTF-8
// without control characters and otherwise as x'00ff', so that a spec is always one line.
//
// A type ends where its parameter and its flags end, `utf8(icu:de-u-co-phonebk):nullable`, and contains no blank. A
// literal's type is that of the column on its left. Depth is limited, for texts as well as for structs of a caller,
// because both are walked by recursion.
#include "runtime/spec/condition.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/spec/spec_text.h"

namespace quern {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kWordCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.";
constexpr char32_t kDefaultEscape = U'\\';
constexpr char kLeafForms[] =
    "TYPE OP LITERAL, TYPE OP TYPE, TYPE [not] in (LITERAL,..), TYPE [not] between LITERAL and LITERAL, TYPE [not] "
    "like 'PATTERN' "
    "[escape 'C'], TYPE is [not] null, bool, not CONDITION, (CONDITION)";
constexpr char kStringForm[] = "'TEXT' with '' for a quote, or bytes as x'00ff'";
constexpr char kEscapeForm[] = "one character, or '' for none";

struct SignRow {
  std::string_view text;
  Comparison op;
};

// In the order of matching, longer signs first; the first sign of each comparison is the one that is printed.
constexpr SignRow kSigns[] = {
    {"<>", Comparison::kNotEqual},     {"<=", Comparison::kLessEqual}, {"<", Comparison::kLess},
    {">=", Comparison::kGreaterEqual}, {">", Comparison::kGreater},    {"==", Comparison::kEqual},
    {"=", Comparison::kEqual},         {"!=", Comparison::kNotEqual},
};

std::string_view SignText(Comparison op) {
  switch (op) {
    case Comparison::kLess: return "<";
    case Comparison::kLessEqual: return "<=";
    case Comparison::kGreater: return ">";
    case Comparison::kGreaterEqual: return ">=";
    case Comparison::kNotEqual: return "<>";
    case Comparison::kEqual: return "=";
  }
  return {};
}

constexpr std::string_view kReserved[] = {"and", "or",   "not",  "in",    "between", "like", "escape",
                                          "is",  "null", "true", "false", "nan",     "inf"};

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

// ---- constants ----

enum class LiteralForm : uint8_t { kBool, kInteger, kReal, kBytes };

LiteralForm FormOf(TypeId id) {
  if (id == TypeId::kBool) return LiteralForm::kBool;
  if (id == TypeId::kF32 || id == TypeId::kF64) return LiteralForm::kReal;
  const Storage storage = RowOf(id).storage;
  return IsVariable(storage) || storage == kFixed ? LiteralForm::kBytes : LiteralForm::kInteger;
}

struct Range {
  __int128 min, max;
};

// The range of integers that a column of the type can hold.
Range RangeOf(TypeId id) {
  constexpr __int128 kOne = 1, kMax = ~(kOne << 127);
  if (id == TypeId::kDecimal128) return {-kMax - 1, kMax};
  const uint32_t bits = RowOf(id).width_bytes * 8;
  if (id >= TypeId::kU8 && id <= TypeId::kU64) return {0, (kOne << bits) - 1};
  return {-(kOne << (bits - 1)), (kOne << (bits - 1)) - 1};
}

std::string IntegerText(__int128 number) {
  // The digits of the negative number: there is one more negative number than positive ones.
  std::string digits;
  __int128 rest = number < 0 ? number : -number;
  do {
    digits += static_cast<char>('0' - static_cast<int>(rest % 10));
    rest /= 10;
  } while (rest != 0);
  if (number < 0) digits += '-';
  return {digits.rbegin(), digits.rend()};
}

std::string RealText(double number, TypeId id) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  char text[32];
  const auto end = id == TypeId::kF32 ? std::to_chars(text, text + sizeof(text), static_cast<float>(number)).ptr
                                      : std::to_chars(text, text + sizeof(text), number).ptr;
  return {text, end};
}

std::string AcceptedLiteral(const ColumnType& type) {
  switch (FormOf(type.id)) {
    case LiteralForm::kBool: return "true, false";
    case LiteralForm::kInteger:
      return "an integer from " + IntegerText(RangeOf(type.id).min) + " to " + IntegerText(RangeOf(type.id).max);
    case LiteralForm::kReal:
      return std::string("a number up to ") + (type.id == TypeId::kF32 ? "3.4028235e+38" : "1.7976931348623157e+308") +
             ", inf, -inf, nan";
    case LiteralForm::kBytes:
      return type.width_bytes == 0
                 ? kStringForm
                 : std::to_string(type.width_bytes) + " bytes, as x'00ff' or 'TEXT' with '' for a quote";
  }
  return {};
}

absl::Status WrongLiteral(const ColumnType& type, std::string_view shown) {
  return Wrong("constant of " + PrintType(type), shown, AcceptedLiteral(type));
}

// Returns false if the text is not an integer, or not one of 128 bits.
bool ReadInteger(std::string_view text, __int128* number) {
  const bool negative = !text.empty() && text[0] == '-';
  if (negative) text.remove_prefix(1);
  if (text.empty() || text.find_first_not_of(kDigits) != std::string_view::npos) return false;
  __int128 value = 0;
  for (char c : text) {
    const int digit = negative ? '0' - c : c - '0';
    if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, digit, &value)) return false;
  }
  *number = value;
  return true;
}

template <class Real>
bool ReadFinite(std::string_view text, double* number) {
  if (text.find_first_not_of("0123456789.eE+-") != std::string_view::npos) return false;
  Real value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  *number = value;
  return error == std::errc() && rest == end;
}

bool ReadReal(std::string_view text, TypeId id, double* number) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::string lower = LowerCase(text);
  if (lower == "nan") *number = std::numeric_limits<double>::quiet_NaN();
  else if (lower == "inf") *number = kInfinity;
  else if (lower == "-inf") *number = -kInfinity;
  else return id == TypeId::kF32 ? ReadFinite<float>(text, number) : ReadFinite<double>(text, number);
  return true;
}

bool ReadBool(std::string_view text, __int128* number) {
  const std::string lower = LowerCase(text);
  *number = lower == "true" ? 1 : 0;
  return lower == "true" || lower == "false";
}

// ---- UTF-8 ----

// The number of bytes of the well-formed character at the beginning of `text`; 0 if there is none.
size_t CharacterBytes(std::string_view text, char32_t* character) {
  if (text.empty()) return 0;
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0}; };
  const uint8_t lead = byte(0);
  const size_t size = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
  char32_t value = size == 1 ? lead : lead & (0xFFu >> (size + 1));
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    value = value << 6 | (byte(i) & 0x3F);
  }
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < kLeast[size] || (value >= 0xD800 && value < 0xE000) || value > 0x10FFFF) return 0;
  *character = value;
  return size;
}

void AppendCharacter(char32_t c, std::string* text) {
  const auto add = [&](char32_t byte) { *text += static_cast<char>(byte); };
  if (c < 0x80) return add(c);
  if (c < 0x800) add(0xC0 | c >> 6);
  else if (c < 0x10000) add(0xE0 | c >> 12);
  else add(0xF0 | c >> 18);
  if (c >= 0x10000) add(0x80 | (c >> 12 & 0x3F));
  if (c >= 0x800) add(0x80 | (c >> 6 & 0x3F));
  add(0x80 | (c & 0x3F));
}

bool IsScalar(char32_t c) { return c < 0xD800 || (c >= 0xE000 && c <= 0x10FFFF); }

// UTF-8 without the control characters of ASCII and of Latin-1.
bool IsPrintable(std::string_view text) {
  while (!text.empty()) {
    char32_t c = 0;
    const size_t size = CharacterBytes(text, &c);
    if (size == 0 || c < 0x20 || (c >= 0x7F && c < 0xA0)) return false;
    text.remove_prefix(size);
  }
  return true;
}

std::string StringText(std::string_view bytes) {
  constexpr char kHex[] = "0123456789abcdef";
  const bool printable = IsPrintable(bytes);
  std::string text = printable ? "'" : "x'";
  for (char c : bytes) {
    const auto byte = static_cast<uint8_t>(c);
    if (!printable) text += {kHex[byte >> 4], kHex[byte & 15]};
    else text.append(c == '\'' ? 2 : 1, c);
  }
  return text + "'";
}

// ---- reading ----

std::string Near(std::string_view rest) { return rest.empty() ? "end of the condition" : std::string(rest); }

class ConditionParser {
 public:
  explicit ConditionParser(std::string_view text) : rest_(text) { SkipBlanks(); }
  absl::StatusOr<Predicate> Whole();

 private:
  absl::StatusOr<Predicate> Or();
  absl::StatusOr<Predicate> And();
  absl::StatusOr<Predicate> Not();
  absl::StatusOr<Predicate> InParentheses();
  absl::StatusOr<Predicate> Leaf();
  absl::StatusOr<Predicate> ComparisonOf(Predicate leaf);
  absl::StatusOr<Predicate> MembershipOf(Predicate leaf);
  absl::StatusOr<Predicate> RangeOf(Predicate leaf);
  absl::StatusOr<Predicate> MatchOf(Predicate leaf);
  absl::StatusOr<Predicate> NullnessOf(Predicate leaf);
  absl::Status WrongOperator(const ColumnType& type) const;
  absl::Status AddLiteral(const ColumnType& type, Predicate* leaf);
  absl::Status Nest();
  absl::StatusOr<ColumnType> Type();
  absl::StatusOr<Literal> Constant(const ColumnType& type);
  absl::StatusOr<std::string> String();
  absl::StatusOr<std::string> HexBytes();
  absl::StatusOr<char32_t> Escape();
  bool StartsLiteral() const;
  std::string_view Word() const { return rest_.substr(0, rest_.find_first_not_of(kWordCharacters)); }
  std::string_view NumberToken() const;
  std::string_view Take(size_t bytes);
  bool ReadWord(std::string_view word);
  bool ReadSign(std::string_view sign);
  void SkipBlanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(kBlanks), rest_.size())); }

  std::string_view rest_;  // begins with no blank
  size_t depth_ = 0;       // open `not`s and parentheses
  size_t num_leaves_ = 0;
};

std::string_view ConditionParser::Take(size_t bytes) {
  const std::string_view taken = rest_.substr(0, bytes);
  rest_.remove_prefix(taken.size());
  SkipBlanks();
  return taken;
}

bool ConditionParser::ReadWord(std::string_view word) {
  if (LowerCase(Word()) != word) return false;
  Take(word.size());
  return true;
}

bool ConditionParser::ReadSign(std::string_view sign) {
  if (!rest_.starts_with(sign)) return false;
  Take(sign.size());
  return true;
}

absl::StatusOr<Predicate> ConditionParser::Whole() {
  QUERN_ASSIGN_OR_RETURN(Predicate condition, Or());
  if (rest_.empty()) return condition;
  if (const std::string_view word = Word(); !word.empty())
    return Unknown("word behind a condition", word, {"and", "or"});
  return Wrong("text behind a condition", rest_, "and, or");
}

// Appends a part to *whole; parts of the same kind are merged.
void AddPart(Predicate part, Predicate* whole) {
  if (part.kind == whole->kind)
    std::move(part.children.begin(), part.children.end(), std::back_inserter(whole->children));
  else whole->children.push_back(std::move(part));
}

absl::StatusOr<Predicate> ConditionParser::Or() {
  QUERN_ASSIGN_OR_RETURN(Predicate first, And());
  if (LowerCase(Word()) != "or") return first;
  Predicate whole{.kind = PredicateKind::kOr};
  AddPart(std::move(first), &whole);
  while (ReadWord("or")) {
    QUERN_ASSIGN_OR_RETURN(Predicate next, And());
    AddPart(std::move(next), &whole);
  }
  return whole;
}

absl::StatusOr<Predicate> ConditionParser::And() {
  QUERN_ASSIGN_OR_RETURN(Predicate first, Not());
  if (LowerCase(Word()) != "and") return first;
  Predicate whole{.kind = PredicateKind::kAnd};
  AddPart(std::move(first), &whole);
  while (ReadWord("and")) {
    QUERN_ASSIGN_OR_RETURN(Predicate next, Not());
    AddPart(std::move(next), &whole);
  }
  return whole;
}

absl::Status TooDeep(std::string_view shown) {
  return Wrong("condition nested too deep", shown, "up to " + std::to_string(kMaxPredicateDepth) + " levels");
}

absl::Status ConditionParser::Nest() { return ++depth_ < kMaxPredicateDepth ? absl::OkStatus() : TooDeep(rest_); }

absl::StatusOr<Predicate> ConditionParser::Not() {
  if (rest_.starts_with('(')) return InParentheses();
  if (!ReadWord("not")) return Leaf();
  QUERN_RETURN_IF_ERROR(Nest());
  QUERN_ASSIGN_OR_RETURN(Predicate negated, Not());
  --depth_;
  Predicate whole{.kind = PredicateKind::kNot};
  whole.children.push_back(std::move(negated));
  return whole;
}

absl::StatusOr<Predicate> ConditionParser::InParentheses() {
  const std::string_view begin = rest_;
  Take(1);
  QUERN_RETURN_IF_ERROR(Nest());
  QUERN_ASSIGN_OR_RETURN(Predicate condition, Or());
  --depth_;
  if (ReadSign(")")) return condition;
  if (rest_.empty()) return Wrong("parenthesis not closed", begin, "')'");
  return Wrong("text in parentheses behind a condition", rest_, "and, or, ')'");
}

// ---- leaves ----

absl::StatusOr<ColumnType> ConditionParser::Type() {
  const std::string_view word = Word();
  const bool is_reserved =
      std::find(std::begin(kReserved), std::end(kReserved), LowerCase(word)) != std::end(kReserved);
  if (word.empty() || is_reserved || kDigits.find(word[0]) != std::string_view::npos)
    return Wrong("condition expected", Near(rest_), kLeafForms);
  size_t end = word.size();
  if (end < rest_.size() && rest_[end] == '(') {
    size_t open = 0;
    do {
      if (rest_[end] == '(') ++open;
      if (rest_[end] == ')') --open;
      ++end;
    } while (open > 0 && end < rest_.size());
  }
  while (end < rest_.size() && rest_[end] == ':')
    end = std::min(rest_.find_first_not_of(kWordCharacters, end + 1), rest_.size());
  QUERN_ASSIGN_OR_RETURN(const Item item, ParseItem(Take(end), Role::kCondition));
  return item.key.type;
}

absl::Status ConditionParser::WrongOperator(const ColumnType& type) const {
  const std::string behind = "behind " + PrintType(type);
  if (const std::string_view word = Word(); !word.empty())
    return Unknown("comparison " + behind, word,
                   {"=", "<>", "<", "<=", ">", ">=", "in", "between", "like", "is", "not"});
  return Wrong("comparison expected " + behind, Near(rest_), "=, <>, <, <=, >, >=, in, between, like, is, not");
}

absl::StatusOr<Predicate> ConditionParser::Leaf() {
  if (++num_leaves_ > kMaxPredicateLeaves)
    return Wrong("condition of too many comparisons", rest_, "up to " + std::to_string(kMaxPredicateLeaves));
  Predicate leaf;
  QUERN_ASSIGN_OR_RETURN(leaf.column, Type());
  for (const SignRow& sign : kSigns) {
    if (!ReadSign(sign.text)) continue;
    leaf.op = sign.op;
    return ComparisonOf(std::move(leaf));
  }
  if (ReadWord("is")) return NullnessOf(std::move(leaf));
  leaf.negated = ReadWord("not");
  if (ReadWord("in")) return MembershipOf(std::move(leaf));
  if (ReadWord("between")) return RangeOf(std::move(leaf));
  if (ReadWord("like")) return MatchOf(std::move(leaf));
  if (leaf.negated) return Wrong("comparison expected behind not", Near(rest_), "in, between, like");
  const std::string word = LowerCase(Word());
  const bool ends = rest_.empty() || rest_.starts_with(')') || word == "and" || word == "or";
  if (!ends || leaf.column.id != TypeId::kBool) return WrongOperator(leaf.column);
  leaf.kind = PredicateKind::kCompare;
  leaf.op = Comparison::kEqual;
  leaf.values.push_back({.number = 1});
  return leaf;
}

absl::Status DifferentTypes(const ColumnType& left, const ColumnType& right) {
  return Wrong("types that differ in a comparison of columns", PrintType(left) + " and " + PrintType(right),
               "one type, nullable or not");
}

// The same type except for nulls.
bool SameValues(ColumnType left, const ColumnType& right) {
  left.nullable = right.nullable;
  return left == right;
}

absl::StatusOr<Predicate> ConditionParser::ComparisonOf(Predicate leaf) {
  if (rest_.empty())
    return Wrong("constant of " + PrintType(leaf.column), Near(rest_),
                 AcceptedLiteral(leaf.column) + ", or a column's type");
  if (StartsLiteral()) {
    leaf.kind = PredicateKind::kCompare;
    QUERN_RETURN_IF_ERROR(AddLiteral(leaf.column, &leaf));
    return leaf;
  }
  leaf.kind = PredicateKind::kCompareColumns;
  QUERN_ASSIGN_OR_RETURN(leaf.other, Type());
  if (!SameValues(leaf.column, leaf.other)) return DifferentTypes(leaf.column, leaf.other);
  return leaf;
}

absl::Status CheckNumValues(size_t n) {
  if (n <= kMaxInValues) return absl::OkStatus();
  return Wrong("list of too many constants", std::to_string(n), "1 to " + std::to_string(kMaxInValues));
}

absl::StatusOr<Predicate> ConditionParser::MembershipOf(Predicate leaf) {
  leaf.kind = PredicateKind::kIn;
  if (!ReadSign("(")) return Wrong("list expected behind in", Near(rest_), "(LITERAL,..)");
  do {
    QUERN_RETURN_IF_ERROR(AddLiteral(leaf.column, &leaf));
    QUERN_RETURN_IF_ERROR(CheckNumValues(leaf.values.size()));
  } while (ReadSign(","));
  if (ReadSign(")")) return leaf;
  return Wrong("list not closed", Near(rest_), "',' and a literal, or ')'");
}

absl::StatusOr<Predicate> ConditionParser::RangeOf(Predicate leaf) {
  leaf.kind = PredicateKind::kBetween;
  QUERN_RETURN_IF_ERROR(AddLiteral(leaf.column, &leaf));
  if (!ReadWord("and")) return Wrong("upper bound expected behind between", Near(rest_), "and LITERAL");
  QUERN_RETURN_IF_ERROR(AddLiteral(leaf.column, &leaf));
  return leaf;
}

absl::Status LikeOfNoStrings(const ColumnType& type) {
  Names names;
  for (const TypeRow& row : AllTypes())
    if (IsVariable(row.storage)) names.push_back(row.text);
  return Wrong("like on a column without strings", PrintType(type), Listed(names));
}

absl::StatusOr<Predicate> ConditionParser::MatchOf(Predicate leaf) {
  leaf.kind = PredicateKind::kLike;
  if (!IsVariable(RowOf(leaf.column.id).storage)) return LikeOfNoStrings(leaf.column);
  QUERN_RETURN_IF_ERROR(AddLiteral(leaf.column, &leaf));
  if (!ReadWord("escape")) return leaf;
  QUERN_ASSIGN_OR_RETURN(leaf.escape, Escape());
  return leaf;
}

absl::StatusOr<Predicate> ConditionParser::NullnessOf(Predicate leaf) {
  leaf.kind = PredicateKind::kIsNull;
  leaf.negated = ReadWord("not");
  if (ReadWord("null")) return leaf;
  return Wrong(leaf.negated ? "null expected behind is not" : "null expected behind is", Near(rest_),
               leaf.negated ? "null" : "null, not null");
}

// ---- literals ----

absl::Status ConditionParser::AddLiteral(const ColumnType& type, Predicate* leaf) {
  QUERN_ASSIGN_OR_RETURN(Literal literal, Constant(type));
  leaf->values.push_back(std::move(literal));
  return absl::OkStatus();
}

// Reads a number: a sign, then letters, digits and '.', and signs of exponents.
std::string_view ConditionParser::NumberToken() const {
  size_t end = rest_.starts_with('-') ? 1 : 0;
  for (; end < rest_.size(); ++end) {
    const bool is_sign =
        (rest_[end] == '+' || rest_[end] == '-') && end > 0 && (rest_[end - 1] == 'e' || rest_[end - 1] == 'E');
    if (!is_sign && kWordCharacters.find(rest_[end]) == std::string_view::npos) break;
  }
  return rest_.substr(0, end);
}

bool ConditionParser::StartsLiteral() const {
  const std::string word = LowerCase(Word());
  if (word == "true" || word == "false" || word == "nan" || word == "inf") return true;
  if (word == "x" && rest_.substr(1).starts_with('\'')) return true;
  return rest_.starts_with('\'') || rest_.find_first_of("0123456789.+-") == 0;
}

absl::StatusOr<Literal> ConditionParser::Constant(const ColumnType& type) {
  Literal literal;
  const LiteralForm form = FormOf(type.id);
  const bool is_string = rest_.starts_with('\'') || rest_.starts_with("x'") || rest_.starts_with("X'");
  if (form == LiteralForm::kBytes && is_string) {
    const std::string_view begin = rest_;
    QUERN_ASSIGN_OR_RETURN(literal.bytes, rest_.starts_with('\'') ? String() : HexBytes());
    if (type.width_bytes == 0 || literal.bytes.size() == type.width_bytes) return literal;
    return WrongLiteral(type, begin.substr(0, begin.find_last_not_of(kBlanks, begin.size() - rest_.size() - 1) + 1));
  }
  const std::string_view token = NumberToken();
  if (token.empty() || is_string) return WrongLiteral(type, Near(rest_));
  bool known = false;
  if (form == LiteralForm::kBool) known = ReadBool(token, &literal.number);
  if (form == LiteralForm::kReal) known = ReadReal(token, type.id, &literal.real);
  if (form == LiteralForm::kInteger) {
    const Range range = quern::RangeOf(type.id);
    known = ReadInteger(token, &literal.number) && literal.number >= range.min && literal.number <= range.max;
  }
  if (!known) return WrongLiteral(type, token);
  Take(token.size());
  return literal;
}

absl::StatusOr<std::string> ConditionParser::String() {
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

absl::StatusOr<std::string> ConditionParser::HexBytes() {
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

absl::StatusOr<char32_t> ConditionParser::Escape() {
  const bool is_hex = rest_.starts_with("x'") || rest_.starts_with("X'");
  if (!is_hex && !rest_.starts_with('\'')) return Wrong("escape of like", Near(rest_), kEscapeForm);
  QUERN_ASSIGN_OR_RETURN(const std::string text, is_hex ? HexBytes() : String());
  return EscapeOf(text);
}

// ---- writing ----

// How tightly each kind binds.
int PrecedenceOf(PredicateKind kind) { return kind == PredicateKind::kOr ? 0 : kind == PredicateKind::kAnd ? 1 : 2; }

std::string LiteralText(const Literal& literal, const ColumnType& type) {
  switch (FormOf(type.id)) {
    case LiteralForm::kBool: return literal.number != 0 ? "true" : "false";
    case LiteralForm::kInteger: return IntegerText(literal.number);
    case LiteralForm::kReal: return RealText(literal.real, type.id);
    case LiteralForm::kBytes: return StringText(literal.bytes);
  }
  return {};
}

std::string EscapeText(char32_t escape) {
  std::string character;
  if (escape != 0) AppendCharacter(escape, &character);
  return " escape " + StringText(character);
}

void PrintList(const Predicate& leaf, std::string* text) {
  for (size_t i = 0; i < leaf.values.size(); ++i)
    *text += (i == 0 ? "" : ", ") + LiteralText(leaf.values[i], leaf.column);
}

void PrintLeaf(const Predicate& leaf, std::string* text) {
  const auto value = [&](size_t i) { return LiteralText(leaf.values[i], leaf.column); };
  const std::string negation = leaf.negated ? " not" : "";
  *text += PrintItem(leaf.column);
  switch (leaf.kind) {
    case PredicateKind::kCompare: {
      const bool is_bare =
          leaf.column.id == TypeId::kBool && leaf.op == Comparison::kEqual && leaf.values[0].number != 0;
      if (!is_bare) *text += " " + std::string(SignText(leaf.op)) + " " + value(0);
      break;
    }
    case PredicateKind::kCompareColumns:
      *text += " " + std::string(SignText(leaf.op)) + " " + PrintItem(leaf.other);
      break;
    case PredicateKind::kBetween: *text += negation + " between " + value(0) + " and " + value(1); break;
    case PredicateKind::kIn:
      *text += negation + " in (";
      PrintList(leaf, text);
      *text += ")";
      break;
    case PredicateKind::kLike:
      *text += negation + " like " + value(0) + (leaf.escape == kDefaultEscape ? "" : EscapeText(leaf.escape));
      break;
    case PredicateKind::kIsNull: *text += " is" + negation + " null"; break;
    case PredicateKind::kAnd:
    case PredicateKind::kOr:
    case PredicateKind::kNot: break;
  }
}

void Print(const Predicate& condition, std::string* text) {
  const bool is_not = condition.kind == PredicateKind::kNot;
  if (!is_not && condition.kind != PredicateKind::kAnd && condition.kind != PredicateKind::kOr)
    return PrintLeaf(condition, text);
  for (size_t i = 0; i < condition.children.size(); ++i) {
    const Predicate& child = condition.children[i];
    const bool inside = PrecedenceOf(child.kind) < PrecedenceOf(condition.kind);
    if (is_not) *text += "not ";
    else if (i > 0) *text += condition.kind == PredicateKind::kAnd ? " and " : " or ";
    if (inside) *text += "(";
    Print(child, text);
    if (inside) *text += ")";
  }
}

// ---- structs filled by a caller ----

std::string_view FieldsOf(PredicateKind kind) {
  switch (kind) {
    case PredicateKind::kAnd:
    case PredicateKind::kOr: return "children, two or more";
    case PredicateKind::kNot: return "children, one";
    case PredicateKind::kCompare: return "column, op, values, one";
    case PredicateKind::kCompareColumns: return "column, other, op";
    case PredicateKind::kBetween: return "column, negated, values, two";
    case PredicateKind::kIn: return "column, negated, values, 1 to 65536";
    case PredicateKind::kLike: return "column, negated, values, one, escape";
    case PredicateKind::kIsNull: return "column, negated";
  }
  return {};
}

struct Count {
  size_t min, max;
};

Count NumChildren(PredicateKind kind) {
  if (kind == PredicateKind::kNot) return {1, 1};
  const bool joins = kind == PredicateKind::kAnd || kind == PredicateKind::kOr;
  return joins ? Count{2, kMaxPredicateLeaves} : Count{0, 0};
}

Count NumValues(PredicateKind kind) {
  if (kind == PredicateKind::kBetween) return {2, 2};
  if (kind == PredicateKind::kIn) return {1, kMaxInValues};
  return kind == PredicateKind::kCompare || kind == PredicateKind::kLike ? Count{1, 1} : Count{0, 0};
}

bool IsLeaf(PredicateKind kind) { return NumChildren(kind).max == 0; }
bool IsBetween(size_t n, Count count) { return n >= count.min && n <= count.max; }

// The first field that does not apply to the kind, or that has too many or too few values; nullptr if there is none.
const char* MisusedField(const Predicate& p) {
  const PredicateKind kind = p.kind;
  const bool compares = kind == PredicateKind::kCompare || kind == PredicateKind::kCompareColumns;
  if (!IsBetween(p.children.size(), NumChildren(kind))) return "children";
  if (!IsBetween(p.values.size(), NumValues(kind))) return "values";
  if (!IsLeaf(kind) && p.column != ColumnType()) return "column";
  if (kind != PredicateKind::kCompareColumns && p.other != ColumnType()) return "other";
  if (!compares && p.op != Comparison()) return "op";
  if ((compares || !IsLeaf(kind)) && p.negated) return "negated";
  return kind != PredicateKind::kLike && p.escape != kDefaultEscape ? "escape" : nullptr;
}

absl::Status CheckLiteral(const Literal& literal, const ColumnType& type) {
  const LiteralForm form = FormOf(type.id);
  const Literal alone{.number = form == LiteralForm::kBool || form == LiteralForm::kInteger ? literal.number : 0,
                      .real = form == LiteralForm::kReal ? literal.real : 0,
                      .bytes = form == LiteralForm::kBytes ? literal.bytes : std::string()};
  if (alone != literal) return Wrong("constant with more than one value", PrintType(type), AcceptedLiteral(type));
  bool known = true;
  if (form == LiteralForm::kBool) known = literal.number == 0 || literal.number == 1;
  if (form == LiteralForm::kInteger)
    known = literal.number >= RangeOf(type.id).min && literal.number <= RangeOf(type.id).max;
  if (form == LiteralForm::kBytes) known = type.width_bytes == 0 || literal.bytes.size() == type.width_bytes;
  if (type.id == TypeId::kF32 && std::isfinite(literal.real)) {
    known =
        std::abs(literal.real) <= std::numeric_limits<float>::max() && static_cast<float>(literal.real) == literal.real;
  }
  if (known) return absl::OkStatus();
  if (form == LiteralForm::kReal) return WrongLiteral(type, RealText(literal.real, TypeId::kF64));
  return WrongLiteral(type, form == LiteralForm::kBytes ? StringText(literal.bytes) : IntegerText(literal.number));
}

class ConditionCheck {
 public:
  absl::Status Check(const Predicate& condition, size_t depth) {
    constexpr auto kLast = static_cast<size_t>(PredicateKind::kIsNull);
    if (depth >= kMaxPredicateDepth) return TooDeep(std::to_string(depth + 1));
    if (static_cast<size_t>(condition.kind) > kLast) {
      return Wrong("predicate kind out of range", std::to_string(static_cast<int>(condition.kind)),
                   "0 to " + std::to_string(kLast));
    }
    if (const char* field = MisusedField(condition); field != nullptr) {
      return Wrong("field of a predicate of kind " + std::to_string(static_cast<int>(condition.kind)), field,
                   std::string(FieldsOf(condition.kind)));
    }
    if (IsLeaf(condition.kind)) return CheckLeaf(condition);
    for (const Predicate& child : condition.children) {
      if (child.kind == condition.kind && child.kind != PredicateKind::kNot)
        return Wrong("child of its parent's kind", PrintCondition(child), "its children in its place");
      QUERN_RETURN_IF_ERROR(Check(child, depth + 1));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status CheckColumn(const ColumnType& type) {
    return CheckConditionColumn(type, "column " + std::to_string(num_columns_++) + " of the condition");
  }

  absl::Status CheckLeaf(const Predicate& leaf) {
    constexpr auto kLast = static_cast<size_t>(Comparison::kEqual);
    if (++num_leaves_ > kMaxPredicateLeaves) {
      return Wrong("condition of too many comparisons", std::to_string(num_leaves_),
                   "up to " + std::to_string(kMaxPredicateLeaves));
    }
    QUERN_RETURN_IF_ERROR(CheckColumn(leaf.column));
    if (static_cast<size_t>(leaf.op) > kLast)
      return Wrong("comparison number out of range in a condition", std::to_string(static_cast<int>(leaf.op)),
                   "0 to " + std::to_string(kLast));
    if (leaf.kind == PredicateKind::kCompareColumns) {
      QUERN_RETURN_IF_ERROR(CheckColumn(leaf.other));
      if (!SameValues(leaf.column, leaf.other)) return DifferentTypes(leaf.column, leaf.other);
    }
    if (leaf.kind == PredicateKind::kLike && !IsVariable(RowOf(leaf.column.id).storage))
      return LikeOfNoStrings(leaf.column);
    if (!IsScalar(leaf.escape))
      return Wrong("escape of like", std::to_string(static_cast<uint32_t>(leaf.escape)),
                   "a Unicode scalar value, or 0 for none");
    for (const Literal& literal : leaf.values) QUERN_RETURN_IF_ERROR(CheckLiteral(literal, leaf.column));
    return absl::OkStatus();
  }

  size_t num_leaves_ = 0, num_columns_ = 0;
};

void AppendColumns(const Predicate& condition, std::vector<ColumnType>* columns) {
  if (IsLeaf(condition.kind)) columns->push_back(condition.column);
  if (condition.kind == PredicateKind::kCompareColumns) columns->push_back(condition.other);
  for (const Predicate& child : condition.children) AppendColumns(child, columns);
}

}  // namespace

bool Literal::operator==(const Literal& other) const {
  const bool same_real =
      std::isnan(real) ? std::isnan(other.real) : std::bit_cast<uint64_t>(real) == std::bit_cast<uint64_t>(other.real);
  return same_real && number == other.number && bytes == other.bytes;
}

std::vector<ColumnType> ColumnsOf(const Predicate& condition) {
  std::vector<ColumnType> columns;
  AppendColumns(condition, &columns);
  return columns;
}

absl::StatusOr<Predicate> ParseCondition(std::string_view text) {
  QUERN_ASSIGN_OR_RETURN(Predicate condition, ConditionParser(text).Whole());
  QUERN_RETURN_IF_ERROR(ValidateCondition(condition));
  return condition;
}

std::string PrintCondition(const Predicate& condition) {
  std::string text;
  Print(condition, &text);
  return text;
}

absl::StatusOr<char32_t> EscapeOf(std::string_view text) {
  char32_t escape = 0;
  if (text.empty() || (CharacterBytes(text, &escape) == text.size() && escape != 0)) return escape;
  return Wrong("escape of like", StringText(text), kEscapeForm);
}

absl::Status ValidateCondition(const Predicate& condition) { return ConditionCheck().Check(condition, 0); }

}  // namespace quern
