// SPDX-License-Identifier: Apache-2.0
// A text that is a comparison as a whole stays one. Another one is taken apart at each `and` outside of parentheses and
// quotes, and each term is read both ways.
#include "tools/frontend/condition_text.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "runtime/base/status.h"
#include "tools/frontend/list_parser.h"

namespace quern::cli {
namespace {

// The terms of a condition that all must hold, of its text: none is within parentheses, quotes, case .. end or between
// .. and. One term if there is an `or` outside of these.
std::vector<std::string_view> TermsOf(std::string_view text) {
  std::vector<std::string_view> terms;
  size_t begin = 0;
  int depth = 0;
  bool in_between = false;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '"' || c == '\'') {
      i = std::min(text.find(c, i + 1), text.size() - 1) + 1;
      continue;
    }
    const auto end = std::find_if_not(text.begin() + static_cast<ptrdiff_t>(i), text.end(), IsWordCharacter);
    const std::string word = cli::LowerCase(std::string(text.begin() + static_cast<ptrdiff_t>(i), end));
    depth += (c == '(' || word == "case") - (c == ')' || word == "end");
    if (depth == 0 && word == "or") return {text};
    if (depth == 0 && word == "and" && !in_between) {
      terms.push_back(Trimmed(text.substr(begin, i - begin)));
      begin = i + word.size();
    }
    if (depth == 0 && (word == "and" || word == "between")) in_between = word == "between";
    i += std::max<size_t>(word.size(), 1);
  }
  terms.push_back(Trimmed(text.substr(begin)));
  return terms;
}

bool IsAbout(const absl::Status& status, const char* what) { return std::string(status.message()).starts_with(what); }

// Whether a bare constant is the text of a computation, as "10-5" is and the date "1998-09-02" is not.
bool IsComputation(const WhereConstant& constant) {
  const std::string_view text = constant.text;
  if (constant.form != WhereConstant::Form::kBare || text.find_first_not_of("0123456789.+-*/% ") != text.npos)
    return false;
  const size_t sign = text.find_first_of("+-*/%", 1);  // behind one in front of a number
  const bool is_date = sign == 4 && text[sign] == '-' && text.find('-', sign + 1) != text.npos;
  return sign != text.npos && !is_date && text.find_first_of("0123456789.") < sign;
}

bool HasComputation(const WhereText& condition) {
  return std::any_of(condition.constants.begin(), condition.constants.end(), IsComputation) ||
         std::any_of(condition.children.begin(), condition.children.end(), HasComputation);
}

// Whether what both readings of a text give is a comparison. A bare name or constant may have the signs of an
// expression: "qty*price > 100" is one of both, with other names, and "qty > 10-5" no comparison.
bool IsComparison(const WhereText& condition, const ExpressionText& expression) {
  std::vector<std::string> of_condition, of_expression;
  AddNames(condition, &of_condition);
  AddNames(expression, &of_expression);
  return !HasComputation(condition) &&
         std::set(of_condition.begin(), of_condition.end()) == std::set(of_expression.begin(), of_expression.end());
}

// Whether a value is compared with null, which holds for no row: a comparison's error says so.
bool ComparesWithNull(const ExpressionText& text) {
  const auto is_null = [](const ExpressionText& part) { return part.form == ExpressionText::Form::kNull; };
  const bool compares = text.form == ExpressionText::Form::kCall && text.function >= ExpressionFunction::kEqual &&
                        text.function <= ExpressionFunction::kGreaterEqual;
  return (compares && std::any_of(text.parts.begin(), text.parts.end(), is_null)) ||
         std::any_of(text.parts.begin(), text.parts.end(), ComparesWithNull);
}

// Whether a text that is no comparison, for this reason, is meant as an expression.
bool IsMeant(const absl::StatusOr<ExpressionText>& expression, const absl::Status& not_compared) {
  return expression.ok() && !ComparesWithNull(*expression) && !IsAbout(not_compared, "too many comparisons");
}

// The terms of an expression, of which some may be comparisons.
void AddTerms(std::string_view what, ExpressionText expression, ConditionText* condition) {
  if (expression.form == ExpressionText::Form::kCall && expression.function == ExpressionFunction::kAnd) {
    for (ExpressionText& part : expression.parts) AddTerms(what, std::move(part), condition);
    return;
  }
  absl::StatusOr<WhereText> comparison = ParseWhere(what, expression.shown);
  ConditionTerm term;
  if (comparison.ok() && IsComparison(*comparison, expression)) {
    term.comparison = *std::move(comparison);
  } else {
    if (comparison.ok() && !HasComputation(*comparison)) term.comparison = *std::move(comparison);
    term.expression = std::move(expression);
  }
  condition->terms.push_back(std::move(term));
}

}  // namespace

absl::StatusOr<ConditionText> ParseCondition(std::string_view what, std::string_view text) {
  ConditionText condition;
  absl::StatusOr<WhereText> whole = ParseWhere(what, text);
  const absl::StatusOr<ExpressionText> whole_expression = ParseExpressionText(what, text);
  if (whole.ok() && (!whole_expression.ok() || IsComparison(*whole, *whole_expression))) {
    condition.terms.push_back({.comparison = *std::move(whole)});
    return condition;
  }
  for (const std::string_view term : TermsOf(text)) {
    absl::StatusOr<WhereText> comparison = ParseWhere(what, term);
    absl::StatusOr<ExpressionText> expression = ParseExpressionText(what, term);
    if (comparison.ok() && (!expression.ok() || IsComparison(*comparison, *expression)))
      condition.terms.push_back({.comparison = *std::move(comparison)});
    else if (comparison.ok() || IsMeant(expression, comparison.status()))
      AddTerms(what, *std::move(expression), &condition);
    else return IsAbout(expression.status(), "unknown function") ? expression.status() : comparison.status();
  }
  return condition;
}

absl::StatusOr<std::optional<ConditionText>> ParseAllConditions(std::string_view what,
                                                                const std::vector<std::string>& texts) {
  if (texts.empty()) return std::nullopt;
  ConditionText all;
  for (const std::string& text : texts) {
    QUERN_ASSIGN_OR_RETURN(ConditionText condition, ParseCondition(what, text));
    std::move(condition.terms.begin(), condition.terms.end(), std::back_inserter(all.terms));
  }
  return all;
}

ExpressionText AllOf(std::vector<ExpressionText> expressions) {
  constexpr size_t kMostParts = 64;  // of a call
  while (expressions.size() > 1) {
    ExpressionText all{.form = ExpressionText::Form::kCall, .function = ExpressionFunction::kAnd};
    const auto end = expressions.begin() + static_cast<ptrdiff_t>(std::min(expressions.size(), kMostParts));
    for (auto part = expressions.begin(); part != end; ++part) {
      all.shown += (all.shown.empty() ? "" : " and ") + part->shown;
      all.depth = std::max(all.depth, part->depth + 1);
      all.size += part->size;
      all.parts.push_back(std::move(*part));
    }
    expressions.erase(expressions.begin(), end);
    expressions.insert(expressions.begin(), std::move(all));
  }
  return std::move(expressions.front());
}

void AddNames(const ConditionText& condition, std::vector<std::string>* names) {
  for (const ConditionTerm& term : condition.terms) {
    if (term.comparison.has_value()) AddNames(*term.comparison, names);
    else AddNames(*term.expression, names);
  }
}

}  // namespace quern::cli
