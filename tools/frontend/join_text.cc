// SPDX-License-Identifier: Apache-2.0
//     pairs := pair (',' pair)*             pair := side ['=' side]              --on 'id = order, year(day) = y, k'
//     tests := term (',' term)*             term := side sign side               --residual 'price * 2 < total'
//     on    := term (('and' | ',') term)*                                        join t on id = order and price < total
//     side  := name ['collate' word] | expression
//
// As in computed_key.h, a text that is a name and an expression has both readings, and the columns decide:
//
//     unit-price = cost      the columns unit-price and cost; where there is no unit-price, unit minus price
//     round(a, 2) = b        an expression: a name ends at the comma
#include "tools/frontend/join_text.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/base/status.h"
#include "tools/frontend/errors.h"
#include "tools/frontend/expression_text.h"
#include "tools/frontend/list_parser.h"

namespace quern::cli {
namespace {

constexpr const char* kPairsForm =
    "L=R[,L=R...], each a column name [collate NAME] or an expression, odd names in double quotes";
constexpr const char* kTestsForm =
    "L<R[,L<R...], each a column name or an expression, with < <= > >= != or =, odd names in double quotes";

std::optional<Comparison> ComparisonOf(const ExpressionText& text) {
  if (text.form != ExpressionText::Form::kCall || text.parts.size() != 2) return std::nullopt;
  if (text.function == ExpressionFunction::kEqual) return Comparison::kEqual;
  if (text.function == ExpressionFunction::kNotEqual) return Comparison::kNotEqual;
  if (text.function == ExpressionFunction::kLess) return Comparison::kLess;
  if (text.function == ExpressionFunction::kLessEqual) return Comparison::kLessEqual;
  if (text.function == ExpressionFunction::kGreater) return Comparison::kGreater;
  if (text.function == ExpressionFunction::kGreaterEqual) return Comparison::kGreaterEqual;
  return std::nullopt;
}

// A side beside one that is no name: its own text may be a name all the same.
KeyText SideOf(const ExpressionText& text) {
  if (text.form == ExpressionText::Form::kColumn) return {.name = text.text};
  ListParser parser("", "", text.shown, kEndsInTests);
  const absl::StatusOr<std::string> name = parser.PlainName();
  if (name.ok() && parser.AtEnd())
    return {.name = *name, .computed = std::make_shared<const ExpressionText>(text), .may_be_column = true};
  return {.name = text.shown, .computed = std::make_shared<const ExpressionText>(text), .may_be_column = false};
}

void AddExpression(const ExpressionText& text, KeyText* name) {
  if (text.form != ExpressionText::Form::kColumn) name->computed = std::make_shared<const ExpressionText>(text);
}

bool AtEndOfTerm(const ListParser& parser, std::initializer_list<std::string_view> words) {
  ListParser ahead = parser;
  return ahead.AtEnd() || ahead.At(',') || std::any_of(words.begin(), words.end(), [&parser](std::string_view word) {
           ListParser behind = parser;
           return behind.ReadWord(word);
         });
}

// The collation of two sides.
absl::StatusOr<std::string> TakeCollation(JoinTermText* term) {
  KeyText &probe = term->probe, &build = term->build;
  if (!probe.collation.empty() && !build.collation.empty() && probe.collation != build.collation) {
    return CommandError("two collations for one key: " + QuoteName(probe.name) + " collate " + probe.collation + "=" +
                        QuoteName(build.name) + " collate " + build.collation +
                        "; accepted: the same after both, or one after either");
  }
  const std::string build_collation = std::exchange(build.collation, "");
  const std::string probe_collation = std::exchange(probe.collation, "");
  return probe_collation.empty() ? build_collation : probe_collation;
}

// Two names with a sign between them; one name is both sides.
absl::StatusOr<JoinTermText> ParseNames(ListParser* parser, bool may_be_one) {
  JoinTermText term;
  QUERN_ASSIGN_OR_RETURN(term.probe, ParseKey(parser));
  term.build = term.probe;
  const std::optional<Comparison> op = parser->ReadSign();
  if (!op.has_value()) return may_be_one ? absl::StatusOr<JoinTermText>(std::move(term)) : parser->Bad();
  term.op = *op;
  QUERN_ASSIGN_OR_RETURN(term.build, ParseKey(parser));
  return term;
}

absl::StatusOr<JoinTermText> ParseTerm(std::string_view what, ListParser* parser, bool may_be_one,
                                       std::initializer_list<std::string_view> words) {
  ListParser behind_names = *parser, behind_expression = *parser;
  absl::StatusOr<JoinTermText> term = ParseNames(&behind_names, may_be_one);
  absl::StatusOr<ExpressionText> expression = ParseExpressionTerm(what, &behind_expression);
  const bool is_names = term.ok() && AtEndOfTerm(behind_names, words);
  const bool is_expression = expression.ok() && AtEndOfTerm(behind_expression, words);
  const size_t names_end = behind_names.position(), expression_end = behind_expression.position();
  if (!is_names && !is_expression) {
    if (!expression.ok() && expression_end > names_end) return expression.status();
    return term.ok() ? parser->Bad() : term.status();
  }
  const std::optional<Comparison> op = is_expression ? ComparisonOf(*expression) : std::nullopt;
  if (is_names && (!is_expression || names_end >= expression_end)) {
    *parser = behind_names;
    if (!is_expression || names_end > expression_end || (op.has_value() && op != term->op)) return term;
    AddExpression(op.has_value() ? expression->parts[0] : *expression, &term->probe);
    AddExpression(op.has_value() ? expression->parts[1] : *expression, &term->build);
  } else {
    *parser = behind_expression;
    term = JoinTermText();
    term->op = op.value_or(Comparison::kEqual);
    term->is_comparison = op.has_value();
    if (op.has_value()) {
      term->probe = SideOf(expression->parts[0]);
      term->build = SideOf(expression->parts[1]);
    } else {
      term->probe = {.name = expression->shown, .may_be_column = false};
      term->probe.computed = std::make_shared<const ExpressionText>(*expression);
      term->build = term->probe;
    }
  }
  term->whole = std::make_shared<const ExpressionText>(*std::move(expression));
  return term;
}

absl::StatusOr<std::vector<JoinTermText>> ParseList(std::string_view what, std::string_view text, bool are_keys) {
  ListParser parser(what, are_keys ? kPairsForm : kTestsForm, text, kEndsInTests);
  std::vector<JoinTermText> terms;
  do {
    QUERN_ASSIGN_OR_RETURN(JoinTermText term, ParseTerm(what, &parser, are_keys, {}));
    if (are_keys ? term.op != Comparison::kEqual : !term.is_comparison) return parser.Bad();
    QUERN_ASSIGN_OR_RETURN(term.collation, TakeCollation(&term));
    if (!are_keys && !term.collation.empty()) return parser.Bad();
    terms.push_back(std::move(term));
  } while (parser.Take(','));
  if (!parser.AtEnd()) return parser.Bad();
  return terms;
}

}  // namespace

absl::StatusOr<JoinTermText> ParseJoinTerm(std::string_view what, ListParser* parser,
                                           std::initializer_list<std::string_view> words) {
  QUERN_ASSIGN_OR_RETURN(JoinTermText term, ParseTerm(what, parser, false, words));
  QUERN_ASSIGN_OR_RETURN(term.collation, TakeCollation(&term));
  return term;
}

absl::StatusOr<std::vector<JoinTermText>> ParseKeyPairs(std::string_view what, std::string_view text) {
  return ParseList(what, text, true);
}

absl::StatusOr<std::vector<JoinTermText>> ParseComparisons(std::string_view what, std::string_view text) {
  return ParseList(what, text, false);
}

}  // namespace quern::cli
