// SPDX-License-Identifier: Apache-2.0
// The grammar of expressions, which is SQL's. From what binds least to what binds most:
//
//     or | and | not | comparison | side | sum | product | negative | cast by '::' | value
//
//     comparison := side sign side | side 'is' ['not'] ('null' | 'distinct' 'from' side)
//                 | side ['not'] 'between' side 'and' side | side ['not'] 'in' '(' expression (',' expression)* ')'
//                 | side ['not'] 'like' side ['escape' side]
//     side       := sum ('||' sum)*
//     value      := number | "'" text "'" | 'true' | 'false' | 'null' | column
//                 | ('date' | 'time' | 'timestamp') "'" text "'"
//                 | function '(' expression (',' expression)* ')' | '(' expression ')'
//                 | 'case' ('when' expression 'then' expression)+ ['else' expression] 'end'
//                 | ('cast' | 'cast_or_null') '(' expression 'as' type ')'
//                 | 'extract' '(' field 'from' expression ')' | 'date_trunc' '(' "'" field "'" ',' expression ')'
//                 | 'substring' '(' expression 'from' expression ['for' expression] ')'
//                 | 'interval' ("'" number [unit] "'" | number) [unit]
//
//     --select "l_extendedprice * (1 - l_discount) as revenue, l_orderkey::i32"
//
// The tree has calls of functions (expression_functions.def) wherever the types do not matter:
//
//     a between 1 and 9    and(greater_equal(a, 1), less_equal(a, 9))          a is not null    is_valid(a)
//     a not in (1, 2)      not(or(equal(a, 1), equal(a, 2)))                   case ..          case_when(..)
//     a not like 'b%'      not(like(a, 'b%'))                                  a || b || c        concat(a, b, c)
//
// `a` occurs twice in these, and a kernel computes it once. The five signs + - * / % stay signs, since they mean other
// functions for integers than for floats (expression_types.cc).
#include "tools/frontend/expression_text.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "runtime/base/status.h"
#include "tools/frontend/errors.h"
#include "tools/frontend/list_parser.h"

namespace quern::cli {
namespace {

using Form = ExpressionText::Form;
using Function = ExpressionFunction;

constexpr std::string_view kEndsInExpressions = ",=\"<>!()'+-*/%:|";
constexpr const char* kValueForm =
    "a column, a number, 'text', true, false, null, date '..', FUNCTION(..), case when .., cast(.. as TYPE), or "
    "parentheses; odd names in double quotes";
constexpr std::string_view kReserved[] = {"and",  "or",   "not", "is", "in",       "between", "case", "when",
                                          "then", "else", "end", "as", "distinct", "from",    "null", "like"};
constexpr size_t kMaxInCall = 64;  // arguments of and, or, concat

// SQL's names of types beside those of specs.
struct TypeName {
  std::string_view sql, spec;
};
constexpr TypeName kTypeNames[] = {
    {"boolean", "bool"}, {"tinyint", "i8"},         {"smallint", "i16"}, {"int", "i32"},
    {"integer", "i32"},  {"bigint", "i64"},         {"real", "f32"},     {"double", "f64"},
    {"date", "date32"},  {"decimal", "decimal128"}, {"text", "utf8"},    {"varchar", "utf8"}};

// SQL's names of functions that do the same in the engines that have them.
struct FunctionName {
  std::string_view sql;
  Function function;
};
constexpr FunctionName kFunctionNames[] = {{"substr", Function::kSubstring},
                                           {"ltrim", Function::kTrimStart},
                                           {"rtrim", Function::kTrimEnd},
                                           {"btrim", Function::kTrim}};

bool IsReserved(const std::string& word) {
  return std::find(std::begin(kReserved), std::end(kReserved), word) != std::end(kReserved);
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

size_t EndOfDigits(std::string_view text, size_t begin) {
  while (begin < text.size() && IsDigit(text[begin])) ++begin;
  return begin;
}

// The number at the beginning of a text, "1.5e-3"; "" if there is none.
std::string_view NumberToken(std::string_view text) {
  size_t end = EndOfDigits(text, 0);
  size_t num_digits = end;
  if (end < text.size() && text[end] == '.') {
    const size_t behind = EndOfDigits(text, end + 1);
    num_digits += behind - end - 1;
    end = behind;
  }
  if (num_digits == 0) return {};
  if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    const bool has_sign = end + 1 < text.size() && (text[end + 1] == '+' || text[end + 1] == '-');
    const size_t first = end + (has_sign ? 2 : 1);
    const size_t last = EndOfDigits(text, first);
    if (last > first) end = last;
  }
  return text.substr(0, end);
}

const ExpressionFunctionRow* FunctionNamed(const std::string& name) {
  for (const ExpressionFunctionRow& row : AllExpressionFunctions())
    if (row.text == name) return &row;
  for (const FunctionName& known : kFunctionNames)
    if (known.sql == name) return &RowOf(known.function);
  return nullptr;
}

std::optional<TypeId> TypeOfTime(const std::string& word) {
  if (word == "date") return TypeId::kDate32;
  if (word == "time") return TypeId::kTime64;
  if (word == "timestamp") return TypeId::kTimestamp;
  return std::nullopt;
}

Function FunctionOf(Comparison op) {
  switch (op) {
    case Comparison::kLess: return Function::kLess;
    case Comparison::kLessEqual: return Function::kLessEqual;
    case Comparison::kGreater: return Function::kGreater;
    case Comparison::kGreaterEqual: return Function::kGreaterEqual;
    case Comparison::kNotEqual: return Function::kNotEqual;
    case Comparison::kEqual: return Function::kEqual;
  }
  return Function::kEqual;
}

class ExpressionParser {
 public:
  using Parsed = absl::StatusOr<ExpressionText>;
  using Parts = std::vector<ExpressionText>;

  ExpressionParser(std::string_view what, ListParser* parser)
      : what_(what), outer_(*parser), parser_(parser->Embedded(what, kValueForm, kEndsInExpressions)) {}
  ~ExpressionParser() { outer_.MoveTo(parser_); }
  ExpressionParser(const ExpressionParser&) = delete;
  ExpressionParser& operator=(const ExpressionParser&) = delete;

  Parsed Or();
  Parsed Not();
  absl::Status CheckEnd();

 private:
  template <class TakeSign>
  Parsed Chain(Function function, TakeSign&& take_sign, Parsed (ExpressionParser::*next)());
  Parsed And();
  Parsed Comparison();
  Parsed Nullness(ExpressionText left, size_t begin);
  Parsed Bounded(ExpressionText left, size_t begin);
  Parsed Listed(const ExpressionText& left, size_t begin);
  Parsed Matched(ExpressionText left, size_t begin);
  Parsed Concatenation();
  Parsed Substring(size_t begin);
  Parsed Sum();
  Parsed Product();
  Parsed Negative();
  Parsed CastBySign();
  Parsed Value();
  Parsed ValueOfWord(const std::string& word, size_t begin);
  Parsed Case(size_t begin);
  Parsed Call(const ExpressionFunctionRow& row, size_t begin);
  Parsed OfField(const std::string& word, size_t begin);
  Parsed IntervalOf(size_t begin);
  absl::StatusOr<ValueType> Type();

  // A node that was written from `begin` on.
  Parsed Made(ExpressionText node, size_t begin);
  Parsed MadeCall(Function function, Parts parts, size_t begin);
  Parsed MadeSign(std::string sign, Parts parts, size_t begin);
  Parsed Negated(bool negated, Parsed expression, size_t begin);
  absl::Status Bad(const std::string& accepted);
  absl::Status TooDeep();
  std::string NextWord();  // in lower case; not taken

  std::string what_;
  ListParser& outer_;
  ListParser parser_;
  size_t depth_ = 0;
};

// ---- nodes ----

absl::Status ExpressionParser::Bad(const std::string& accepted) {
  const std::string rest(parser_.Rest());
  return CommandError("bad expression in " + what_ + ": " + (rest.empty() ? "end of the expression" : rest) +
                      "; accepted: " + accepted);
}

absl::Status ExpressionParser::TooDeep() {
  return Bad("up to " + std::to_string(kMaxExpressionDepth) + " operators, calls and parentheses one in another");
}

std::string ExpressionParser::NextWord() {
  ListParser ahead = parser_;
  return LowerCase(ahead.BareWord());
}

ExpressionParser::Parsed ExpressionParser::Made(ExpressionText node, size_t begin) {
  for (const ExpressionText& part : node.parts) {
    node.depth = std::max(node.depth, part.depth + 1);
    node.size += part.size;
  }
  if (node.depth > kMaxExpressionDepth) return TooDeep();
  if (node.size > kMaxExpressionNodes) return Bad("up to " + std::to_string(kMaxExpressionNodes) + " parts");
  node.shown = WithNormalisedBlanks(parser_.TextFrom(begin));
  return node;
}

ExpressionParser::Parsed ExpressionParser::MadeCall(Function function, Parts parts, size_t begin) {
  return Made({.form = Form::kCall, .function = function, .parts = std::move(parts)}, begin);
}

ExpressionParser::Parsed ExpressionParser::MadeSign(std::string sign, Parts parts, size_t begin) {
  return Made({.form = Form::kSign, .text = std::move(sign), .parts = std::move(parts)}, begin);
}

ExpressionParser::Parsed ExpressionParser::Negated(bool negated, Parsed expression, size_t begin) {
  if (!negated || !expression.ok()) return expression;
  return MadeCall(Function::kNot, {*std::move(expression)}, begin);
}

// ---- truths ----

// and(a, b, ..); calls of calls where there are too many for one.
template <class TakeSign>
ExpressionParser::Parsed ExpressionParser::Chain(Function function, TakeSign&& take_sign,
                                                 Parsed (ExpressionParser::*next)()) {
  const size_t begin = parser_.position();
  Parts parts;
  do {
    QUERN_ASSIGN_OR_RETURN(ExpressionText part, (this->*next)());
    if (parts.size() == kMaxInCall) {
      QUERN_ASSIGN_OR_RETURN(ExpressionText all, MadeCall(function, std::move(parts), begin));
      parts = {std::move(all)};
    }
    parts.push_back(std::move(part));
  } while (take_sign());
  if (parts.size() == 1) return std::move(parts[0]);
  return MadeCall(function, std::move(parts), begin);
}

ExpressionParser::Parsed ExpressionParser::Or() {
  if (++depth_ > kMaxExpressionDepth) return TooDeep();
  Parsed all = Chain(Function::kOr, [this] { return parser_.ReadWord("or"); }, &ExpressionParser::And);
  --depth_;
  return all;
}

ExpressionParser::Parsed ExpressionParser::And() {
  return Chain(Function::kAnd, [this] { return parser_.ReadWord("and"); }, &ExpressionParser::Not);
}

ExpressionParser::Parsed ExpressionParser::Not() {
  const size_t begin = parser_.position();
  if (!parser_.ReadWord("not")) return Comparison();
  if (++depth_ > kMaxExpressionDepth) return TooDeep();
  QUERN_ASSIGN_OR_RETURN(ExpressionText inside, Not());
  --depth_;
  return MadeCall(Function::kNot, {std::move(inside)}, begin);
}

ExpressionParser::Parsed ExpressionParser::Comparison() {
  const size_t begin = parser_.position();
  Parsed left = Concatenation();
  while (left.ok()) {
    const auto op = parser_.Take("<>") ? quern::Comparison::kNotEqual : parser_.ReadSign();
    if (op.has_value()) {
      QUERN_ASSIGN_OR_RETURN(ExpressionText right, Concatenation());
      left = MadeCall(FunctionOf(*op), {*std::move(left), std::move(right)}, begin);
      continue;
    }
    if (parser_.ReadWord("is")) {
      left = Nullness(*std::move(left), begin);
      continue;
    }
    const bool negated = parser_.ReadWord("not");
    if (parser_.ReadWord("between")) {
      left = Negated(negated, Bounded(*std::move(left), begin), begin);
    } else if (parser_.ReadWord("in")) {
      left = Negated(negated, Listed(*left, begin), begin);
    } else if (parser_.ReadWord("like")) {
      left = Negated(negated, Matched(*std::move(left), begin), begin);
    } else if (negated) {
      return Bad("between, in, like");
    } else {
      break;
    }
  }
  return left;
}

ExpressionParser::Parsed ExpressionParser::Nullness(ExpressionText left, size_t begin) {
  const bool negated = parser_.ReadWord("not");
  if (parser_.ReadWord("null"))
    return MadeCall(negated ? Function::kIsValid : Function::kIsNull, {std::move(left)}, begin);
  if (!parser_.ReadWord("distinct")) return Bad(negated ? "null, distinct from" : "[not] null, [not] distinct from");
  if (!parser_.ReadWord("from")) return Bad("from");
  QUERN_ASSIGN_OR_RETURN(ExpressionText right, Concatenation());
  return MadeCall(negated ? Function::kIsNotDistinct : Function::kIsDistinct, {std::move(left), std::move(right)},
                  begin);
}

ExpressionParser::Parsed ExpressionParser::Bounded(ExpressionText left, size_t begin) {
  QUERN_ASSIGN_OR_RETURN(ExpressionText low, Concatenation());
  if (!parser_.ReadWord("and")) return Bad("and EXPRESSION");
  QUERN_ASSIGN_OR_RETURN(ExpressionText high, Concatenation());
  QUERN_ASSIGN_OR_RETURN(ExpressionText above, MadeCall(Function::kGreaterEqual, {left, std::move(low)}, begin));
  QUERN_ASSIGN_OR_RETURN(ExpressionText below,
                         MadeCall(Function::kLessEqual, {std::move(left), std::move(high)}, begin));
  return MadeCall(Function::kAnd, {std::move(above), std::move(below)}, begin);
}

ExpressionParser::Parsed ExpressionParser::Listed(const ExpressionText& left, size_t begin) {
  if (!parser_.Take('(')) return Bad("(EXPRESSION[,EXPRESSION..])");
  Parts parts;
  do {
    QUERN_ASSIGN_OR_RETURN(ExpressionText value, Or());
    QUERN_ASSIGN_OR_RETURN(ExpressionText is_equal, MadeCall(Function::kEqual, {left, std::move(value)}, begin));
    if (parts.size() == kMaxInCall) {
      QUERN_ASSIGN_OR_RETURN(ExpressionText any, MadeCall(Function::kOr, std::move(parts), begin));
      parts = {std::move(any)};
    }
    parts.push_back(std::move(is_equal));
  } while (parser_.Take(','));
  if (!parser_.Take(')')) return Bad("',' or ')'");
  if (parts.size() == 1) return std::move(parts[0]);
  return MadeCall(Function::kOr, std::move(parts), begin);
}

// After `like`.
ExpressionParser::Parsed ExpressionParser::Matched(ExpressionText left, size_t begin) {
  Parts parts = {std::move(left)};
  QUERN_ASSIGN_OR_RETURN(ExpressionText pattern, Concatenation());
  parts.push_back(std::move(pattern));
  if (parser_.ReadWord("escape")) {
    QUERN_ASSIGN_OR_RETURN(ExpressionText escape, Concatenation());
    parts.push_back(std::move(escape));
  }
  return MadeCall(Function::kLike, std::move(parts), begin);
}

// ---- strings ----

// concat(a, b, ..), as chains of truths.
ExpressionParser::Parsed ExpressionParser::Concatenation() {
  return Chain(Function::kConcat, [this] { return parser_.Take("||"); }, &ExpressionParser::Sum);
}

// "substring(name from 1 for 3)", "substring(name, 1, 3)", behind the parenthesis.
ExpressionParser::Parsed ExpressionParser::Substring(size_t begin) {
  Parts parts;
  QUERN_ASSIGN_OR_RETURN(ExpressionText string, Or());
  parts.push_back(std::move(string));
  const bool has_words = parser_.ReadWord("from");
  if (!has_words && !parser_.Take(',')) return Bad(std::string(kOperatorForm) + ", ',', from");
  QUERN_ASSIGN_OR_RETURN(ExpressionText start, Or());
  parts.push_back(std::move(start));
  if (has_words ? parser_.ReadWord("for") : parser_.Take(',')) {
    QUERN_ASSIGN_OR_RETURN(ExpressionText length, Or());
    parts.push_back(std::move(length));
  }
  if (!parser_.Take(')')) return Bad(std::string(kOperatorForm) + (has_words ? ", for, ')'" : ", ',', ')'"));
  return MadeCall(Function::kSubstring, std::move(parts), begin);
}

// ---- numbers ----

ExpressionParser::Parsed ExpressionParser::Sum() {
  const size_t begin = parser_.position();
  Parsed left = Product();
  while (left.ok() && (parser_.At('+') || parser_.At('-'))) {
    const std::string sign = parser_.Take('+') ? "+" : (parser_.Take('-'), "-");
    QUERN_ASSIGN_OR_RETURN(ExpressionText right, Product());
    left = MadeSign(sign, {*std::move(left), std::move(right)}, begin);
  }
  return left;
}

ExpressionParser::Parsed ExpressionParser::Product() {
  const size_t begin = parser_.position();
  Parsed left = Negative();
  while (left.ok() && (parser_.At('*') || parser_.At('/') || parser_.At('%'))) {
    const std::string sign = parser_.Take('*') ? "*" : parser_.Take('/') ? "/" : (parser_.Take('%'), "%");
    QUERN_ASSIGN_OR_RETURN(ExpressionText right, Negative());
    left = MadeSign(sign, {*std::move(left), std::move(right)}, begin);
  }
  return left;
}

ExpressionParser::Parsed ExpressionParser::Negative() {
  const size_t begin = parser_.position();
  if (!parser_.Take('-')) return CastBySign();
  if (++depth_ > kMaxExpressionDepth) return TooDeep();
  QUERN_ASSIGN_OR_RETURN(ExpressionText inside, Negative());
  --depth_;
  if (inside.form != Form::kNumber) return MadeSign("-", {std::move(inside)}, begin);
  const bool is_negative = inside.text.starts_with('-');
  inside.text = is_negative ? inside.text.substr(1) : "-" + inside.text;
  return Made({.form = Form::kNumber, .text = std::move(inside.text)}, begin);
}

ExpressionParser::Parsed ExpressionParser::CastBySign() {
  const size_t begin = parser_.position();
  Parsed value = Value();
  while (value.ok() && parser_.Take("::")) {
    QUERN_ASSIGN_OR_RETURN(const ValueType type, Type());
    value = Made({.form = Form::kCall, .type = type, .function = Function::kCast, .parts = {*std::move(value)}}, begin);
  }
  return value;
}

// "decimal(15, 2)", "i64".
absl::StatusOr<ValueType> ExpressionParser::Type() {
  std::string text = LowerCase(parser_.BareWord());
  for (const TypeName& name : kTypeNames)
    if (text == name.sql) text = name.spec;
  if (text.empty()) return Bad("a type, as i64, f64, decimal(15,2) or date");
  if (parser_.Take('(')) {
    text += "(" + parser_.BareWord();
    while (parser_.Take(',')) text += "," + parser_.BareWord();
    if (!parser_.Take(')')) return Bad("',' or ')'");
    text += ")";
  }
  return ParseValueType(text);
}

// ---- values ----

ExpressionParser::Parsed ExpressionParser::Value() {
  const size_t begin = parser_.position();
  if (parser_.Take('(')) {
    QUERN_ASSIGN_OR_RETURN(ExpressionText inside, Or());
    if (!parser_.Take(')')) return Bad(std::string(kOperatorForm) + ", ')'");
    return inside;
  }
  const std::string_view number = NumberToken(parser_.Rest());
  if (!number.empty()) {
    parser_.Take(number);
    return Made({.form = Form::kNumber, .text = std::string(number)}, begin);
  }
  if (parser_.At('\'')) {
    QUERN_ASSIGN_OR_RETURN(std::string text, parser_.QuotedText());
    return Made({.form = Form::kString, .text = std::move(text)}, begin);
  }
  const std::string word = NextWord();
  if (!word.empty() && !parser_.At('"')) return ValueOfWord(word, begin);
  if (!parser_.At('"')) return Bad(kValueForm);
  QUERN_ASSIGN_OR_RETURN(std::string name, parser_.PlainName());
  return Made({.form = Form::kColumn, .text = std::move(name)}, begin);
}

ExpressionParser::Parsed ExpressionParser::ValueOfWord(const std::string& word, size_t begin) {
  if (parser_.ReadWord("case")) return Case(begin);
  if (parser_.ReadWord("null")) return Made({.form = Form::kNull}, begin);
  if (IsReserved(word)) return Bad(kValueForm);
  ListParser ahead = parser_;
  ahead.BareWord();
  if (ahead.At('(')) {
    const ExpressionFunctionRow* row = FunctionNamed(word);
    if (row != nullptr) return Call(*row, begin);
    if (word == "extract" || word == "date_trunc") return OfField(word, begin);
    if (word == "lower" || word == "upper") {
      return CommandError("unknown function in " + what_ + ": " + word +
                          ", which means something else in each engine; accepted: ascii_" + word +
                          (word == "lower" ? ", of the letters A to Z alone" : ", of the letters a to z alone"));
    }
    std::vector<std::string> accepted;
    for (const ExpressionFunctionRow& known : AllExpressionFunctions()) accepted.emplace_back(known.text);
    return CommandError(UnknownWord("function in " + what_, word, accepted));
  }
  if (word == "interval" && (ahead.At('\'') || !NumberToken(ahead.Rest()).empty())) return IntervalOf(begin);
  const std::optional<TypeId> time = TypeOfTime(word);
  if (time.has_value() && ahead.At('\'')) {
    parser_.BareWord();
    QUERN_ASSIGN_OR_RETURN(std::string text, parser_.QuotedText());
    return Made({.form = Form::kTime, .text = std::move(text), .type = {.id = *time}}, begin);
  }
  const Form form = word == "true" || word == "false" ? Form::kTruth : Form::kColumn;
  QUERN_ASSIGN_OR_RETURN(std::string name, parser_.PlainName());
  if (form == Form::kTruth) name = word;
  return Made({.form = form, .text = std::move(name)}, begin);
}

// After `case`.
ExpressionParser::Parsed ExpressionParser::Case(size_t begin) {
  Parts parts;
  while (parser_.ReadWord("when")) {
    QUERN_ASSIGN_OR_RETURN(ExpressionText condition, Or());
    if (!parser_.ReadWord("then")) return Bad(std::string(kOperatorForm) + ", then");
    QUERN_ASSIGN_OR_RETURN(ExpressionText value, Or());
    parts.push_back(std::move(condition));
    parts.push_back(std::move(value));
  }
  if (parts.empty()) return Bad("when EXPRESSION then EXPRESSION");
  ExpressionText otherwise{.form = Form::kNull, .shown = "null"};
  if (parser_.ReadWord("else")) {
    QUERN_ASSIGN_OR_RETURN(otherwise, Or());
  }
  if (!parser_.ReadWord("end")) return Bad(std::string(kOperatorForm) + ", when, else, end");
  parts.push_back(std::move(otherwise));
  return MadeCall(Function::kCaseWhen, std::move(parts), begin);
}

// At the function's name.
ExpressionParser::Parsed ExpressionParser::Call(const ExpressionFunctionRow& row, size_t begin) {
  parser_.BareWord();
  parser_.Take('(');
  if (row.id == Function::kSubstring) return Substring(begin);
  const bool names_type = NamesType(row);
  ExpressionText call{.form = Form::kCall, .function = row.id};
  do {
    QUERN_ASSIGN_OR_RETURN(ExpressionText argument, Or());
    call.parts.push_back(std::move(argument));
    if (!names_type || call.parts.size() < row.min_arguments) continue;
    if (!parser_.ReadWord("as")) return Bad("as TYPE");
    QUERN_ASSIGN_OR_RETURN(call.type, Type());
    break;
  } while (parser_.Take(','));
  if (!parser_.Take(')')) return Bad(names_type ? "')'" : std::string(kOperatorForm) + ", ',', ')'");
  return Made(std::move(call), begin);
}

// "extract(year from day)", "date_trunc('month', day)", at the word.
ExpressionParser::Parsed ExpressionParser::OfField(const std::string& word, size_t begin) {
  const bool is_trunc = word == "date_trunc";
  const char* const form = is_trunc ? kDateTruncForm : kExtractForm;
  const ListParser before = parser_;
  parser_.BareWord();
  parser_.Take('(');
  absl::StatusOr<std::string> field = is_trunc ? parser_.QuotedText() : parser_.BareWord();
  if (field.ok()) field = LowerCase(*std::move(field));
  const std::optional<Function> function = !field.ok() ? std::nullopt
                                           : is_trunc  ? TruncOfField(*field)
                                                       : FunctionOfField(*field);
  if (!function.has_value() || !(is_trunc ? parser_.Take(',') : parser_.ReadWord("from"))) {
    parser_ = before;
    return Bad(form);
  }
  QUERN_ASSIGN_OR_RETURN(ExpressionText inside, Or());
  if (!parser_.Take(')')) return Bad(std::string(kOperatorForm) + ", ')'");
  return MadeCall(*function, {std::move(inside)}, begin);
}

// "interval '3' month", "interval '3 months'", "interval 3 month", at the word.
ExpressionParser::Parsed ExpressionParser::IntervalOf(size_t begin) {
  const ListParser before = parser_;
  parser_.BareWord();
  std::string text;
  if (parser_.At('\'')) {
    QUERN_ASSIGN_OR_RETURN(text, parser_.QuotedText());
  } else {
    text = parser_.BareWord();
  }
  std::optional<Interval> interval = IntervalOfText(LowerCase(text));
  if (!interval.has_value()) interval = IntervalOfText(LowerCase(text + " " + parser_.BareWord()));
  if (interval.has_value()) return Made({.form = Form::kInterval, .interval = *interval}, begin);
  parser_ = before;
  return Bad(kIntervalForm);
}

absl::Status ExpressionParser::CheckEnd() { return parser_.AtEnd() ? absl::OkStatus() : Bad(kOperatorForm); }

}  // namespace

absl::StatusOr<ExpressionText> ParseExpressionText(std::string_view what, ListParser* parser) {
  return ExpressionParser(what, parser).Or();
}

absl::StatusOr<ExpressionText> ParseExpressionTerm(std::string_view what, ListParser* parser) {
  return ExpressionParser(what, parser).Not();
}

absl::StatusOr<ExpressionText> ParseExpressionText(std::string_view what, std::string_view text) {
  ListParser list(what, kValueForm, text, kEndsInExpressions);
  ExpressionParser parser(what, &list);
  QUERN_ASSIGN_OR_RETURN(ExpressionText expression, parser.Or());
  QUERN_RETURN_IF_ERROR(parser.CheckEnd());
  return expression;
}

absl::Status VisitNames(ExpressionText* text, const std::function<absl::Status(std::string*)>& visit) {
  if (text->form == Form::kColumn) return visit(&text->text);
  for (ExpressionText& part : text->parts) QUERN_RETURN_IF_ERROR(VisitNames(&part, visit));
  return absl::OkStatus();
}

void AddNames(const ExpressionText& text, std::vector<std::string>* names) {
  if (text.form == Form::kColumn) names->push_back(text.text);
  for (const ExpressionText& part : text.parts) AddNames(part, names);
}

}  // namespace quern::cli
