// SPDX-License-Identifier: Apache-2.0
// The grammar of --agg, which is SQL's where SQL has one:
//
//     list      := aggregate (',' aggregate)*
//     aggregate := word '(' inside ')' ['filter' '(' 'where' condition ')'] ['as' name]
//     inside    := '*'   |   ['distinct'] key (',' key)* [',' constant]
//     key       := name ['collate' word] | expression
//
// Conditions are those of where_text.cc, expressions those of expression_text.cc, which are conditions too: in `filter
// (where unit-price > 3)` a column is compared, or unit minus price where there is no such column.
//
// aggregate_functions.def lists the functions. Here are only the three that SQL spells differently: count(*) for
// count_star, and count(distinct x) and sum(distinct x) for count_distinct and sum_distinct. A constant is recognised
// by its position: after its column, the second argument of quantile(x, 0.9) is a number, although a column could be
// called 0.9.
//
// A result column has the name that the user wrote. Runs of blanks become one, and no blank stays after '(' or before
// ')' and ',', so that
//
//     "sum( x )  filter (where  b)"  ->  "sum(x) filter (where b)"          "quantile(x,0.9)"  ->  "quantile(x,0.9)"
//
// while blanks between quotes stay.
#include "tools/frontend/aggregate_text.h"

#include <charconv>
#include <utility>

#include "runtime/base/status.h"
#include "tools/frontend/computed_key.h"
#include "tools/frontend/errors.h"
#include "tools/frontend/list_parser.h"

namespace quern::cli {
namespace {

constexpr const char* kAggregatesForm =
    "FUNCTION(COLUMN) [filter (where CONDITION)] [as NAME][,...], as count(*), sum(x * y) or min(s collate NAME), odd "
    "names in double quotes";

// ---- functions ----

bool IsSpeltOtherwise(AggregateFunction function) {
  return function == AggregateFunction::kCountStar || function == AggregateFunction::kHost;
}

absl::StatusOr<AggregateFunction> FunctionByName(const std::string& name) {
  std::vector<std::string> accepted;
  for (const AggregateFunctionRow& row : AllAggregateFunctions()) {
    if (IsSpeltOtherwise(row.id)) continue;
    if (row.text == name) return row.id;
    accepted.emplace_back(row.text);
  }
  return CommandError(UnknownWord("aggregate function", name, accepted));
}

bool HasConstant(AggregateFunction function) {
  return function == AggregateFunction::kQuantile || function == AggregateFunction::kStringAgg;
}

// The call of a function: "covar_pop(x, y)".
std::string Form(AggregateFunction function) {
  const AggregateFunctionRow& row = RowOf(function);
  if (function == AggregateFunction::kCountStar) return "count(*)";
  if (function == AggregateFunction::kCountDistinct) return "count(distinct x)";
  if (function == AggregateFunction::kSumDistinct) return "sum(distinct x)";
  if (function == AggregateFunction::kQuantile) return "quantile(x, 0.9)";
  if (function == AggregateFunction::kStringAgg) return "string_agg(s, ', ')";
  return std::string(row.text) + (row.num_arguments == 2 ? "(x, y)" : "(x)");
}

// ---- calls ----

// Reads one aggregate of a list.
class CallParser {
 public:
  CallParser(std::string_view what, ListParser* parser) : what_(what), parser_(*parser), begin_(parser->position()) {}
  absl::StatusOr<AggregateText> Parse();

 private:
  absl::Status ParseFunction();
  absl::Status ParseInside();
  absl::Status ParseArguments();
  absl::Status ParseConstant();
  absl::Status ParseFilter();
  std::string Written() const { return WithNormalisedBlanks(parser_.TextFrom(begin_)); }

  std::string_view what_;
  ListParser& parser_;
  size_t begin_;
  std::string word_;
  AggregateText call_;
};

// After '(': the function depends on `*` and `distinct`, too.
absl::Status CallParser::ParseInside() {
  if (word_ == "count" && parser_.Take('*')) {
    if (!parser_.Take(')')) return parser_.Bad();
    call_.function = AggregateFunction::kCountStar;
    return absl::OkStatus();
  }
  QUERN_ASSIGN_OR_RETURN(call_.function, FunctionByName(word_));
  if (!parser_.ReadWord("distinct")) return ParseArguments();
  if (call_.function == AggregateFunction::kCount) {
    call_.function = AggregateFunction::kCountDistinct;
  } else if (call_.function == AggregateFunction::kSum) {
    call_.function = AggregateFunction::kSumDistinct;
  } else {
    return CommandError("distinct where it is not known: " + word_ +
                        "(distinct ..); accepted: count(distinct x), sum(distinct x)");
  }
  return ParseArguments();
}

absl::Status CallParser::ParseArguments() {
  const size_t num_columns = RowOf(call_.function).num_arguments;
  bool has_constant = false;
  size_t num_arguments = 0;
  if (!parser_.Take(')')) {
    do {
      ++num_arguments;
      if (num_arguments == num_columns + 1 && HasConstant(call_.function)) {
        QUERN_RETURN_IF_ERROR(ParseConstant());
        has_constant = true;
        continue;
      }
      QUERN_ASSIGN_OR_RETURN(KeyText column, ParseComputedKey(what_, &parser_, {"as"}));
      call_.arguments.push_back(std::move(column));
    } while (parser_.Take(','));
    if (!parser_.Take(')')) return parser_.Bad();
  }
  const bool may_go_without = call_.function == AggregateFunction::kStringAgg;
  if (call_.arguments.size() == num_columns && (has_constant || may_go_without || !HasConstant(call_.function)))
    return absl::OkStatus();
  return CommandError("wrong number of arguments: " + Written() + "; accepted: " + Form(call_.function));
}

absl::Status CallParser::ParseConstant() {
  if (call_.function == AggregateFunction::kStringAgg) {
    QUERN_ASSIGN_OR_RETURN(call_.separator, parser_.QuotedText());
    return absl::OkStatus();
  }
  const std::string word = parser_.BareWord();
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), call_.quantile);
  return error == std::errc() && end == word.data() + word.size() ? absl::OkStatus() : parser_.Bad();
}

absl::Status CallParser::ParseFilter() {
  if (!parser_.ReadWord("filter")) return absl::OkStatus();
  if (!parser_.Take('(') || !parser_.ReadWord("where")) return parser_.Bad();
  const size_t begin = parser_.position();
  ListParser behind_expression = parser_, behind_condition = parser_;
  absl::StatusOr<WhereText> condition = ParseWhere(what_, &behind_condition);
  absl::StatusOr<ExpressionText> expression = ParseExpressionText(what_, &behind_expression);
  const bool is_expression = expression.ok() && behind_expression.At(')');
  const bool is_condition = condition.ok() && behind_condition.At(')');
  if (!is_expression && !is_condition) return condition.ok() ? parser_.Bad() : condition.status();
  parser_.MoveTo(is_condition ? behind_condition : behind_expression);
  if (is_condition) call_.filter = *std::move(condition);
  if (is_expression) call_.computed_filter = std::make_shared<const ExpressionText>(*std::move(expression));
  call_.filter_text = parser_.TextFrom(begin);
  return parser_.Take(')') ? absl::OkStatus() : parser_.Bad();
}

absl::StatusOr<AggregateText> CallParser::Parse() {
  word_ = LowerCase(parser_.BareWord());
  if (word_.empty() || !parser_.Take('(')) return parser_.Bad();
  call_.separator = ",";  // string_agg(s) has SQL's default
  QUERN_RETURN_IF_ERROR(ParseInside());
  if (call_.function != AggregateFunction::kStringAgg) call_.separator.clear();
  QUERN_RETURN_IF_ERROR(ParseFilter());
  call_.name = Written();
  if (parser_.ReadWord("as")) {
    QUERN_ASSIGN_OR_RETURN(call_.name, parser_.PlainName());
  }
  return std::move(call_);
}

}  // namespace

std::string FunctionsText() {
  std::string text;
  for (const AggregateFunctionRow& row : AllAggregateFunctions()) {
    if (row.id != AggregateFunction::kHost) text += (text.empty() ? "" : ", ") + Form(row.id);
  }
  return text;
}

absl::StatusOr<std::vector<AggregateText>> ParseAggregates(std::string_view what, std::string_view text) {
  ListParser parser(what, kAggregatesForm, text, kEndsInCalls);
  std::vector<AggregateText> aggregates;
  do {
    QUERN_ASSIGN_OR_RETURN(AggregateText aggregate, CallParser(what, &parser).Parse());
    aggregates.push_back(std::move(aggregate));
  } while (parser.Take(','));
  if (!parser.AtEnd()) return parser.Bad();
  return aggregates;
}

}  // namespace quern::cli
