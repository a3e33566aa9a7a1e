// SPDX-License-Identifier: Apache-2.0
// Aggregates in a kernel spec: parsing, printing, accepted arguments and result types.
//
//     aggregate = function [ "(" argument { "," argument } ")" ] [ ":filter" ]
//     argument  = type [ ":nullable" ]; the last one of quantile is a number from 0 to 1, the last one of string_agg
//                 bytes such as x'2c20'
//     function  = one of aggregate_functions.def, or "host." and letters, digits, '_'
//
// Flags inside the parentheses belong to a column, the one outside to the aggregate: `sum(i64:nullable):filter` sums a
// column that may hold nulls, over the rows where a second column, a bool, is true. So the aggregate reads two columns,
// and there are two ways for its sum to be null: a group may have no row that passes, or only nulls in the rows that
// pass.
//
// Only functions that compare values accept a collation: under `utf8(utf8mb4_bin)` the strings 'a' and 'a ' are one for
// count_distinct and equal for min. No other function depends on it. Whatever has no meaning is rejected rather than
// ignored: if two texts meant the same, the cache would not find one by the other.
//
// A quantile is printed as the shortest decimal that gives the same double (0.9, 1e-05), bytes as lower-case
// hexadecimal digits.
#include "runtime/spec/aggregate_spec.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/spec/host_aggregates.h"
#include "runtime/spec/spec_text.h"

namespace quern {
namespace {

constexpr AggregateFunctionRow kFunctions[] = {
#define QUERN_AGGREGATE(Id, text, num_arguments, accepts, result) \
  {AggregateFunction::Id, text, num_arguments, Accepts::accepts, ResultRule::result},
#include "runtime/spec/aggregate_functions.def"
};

constexpr bool IsInOrder() {
  for (size_t i = 0; i < std::size(kFunctions); ++i)
    if (static_cast<size_t>(kFunctions[i].id) != i) return false;
  return true;
}
static_assert(IsInOrder());

constexpr size_t kMaxHostArguments = 8;
constexpr size_t kMaxSeparatorBytes = 1024;
constexpr std::string_view kHostPrefix = "host.";
constexpr char kForm[] = "NAME(ARGUMENT,..)[:filter]";
constexpr char kFormOf[] = "NAME(EXPRESSION,..)[:filter(EXPRESSION)]";  // of a spec with `in`

// ---- what a function accepts ----

// The functions that compare strings with each other.
constexpr AggregateFunction kComparing[] = {
    AggregateFunction::kMin,
    AggregateFunction::kMax,
    AggregateFunction::kAny,
    AggregateFunction::kFirst,
    AggregateFunction::kLast,
    AggregateFunction::kCountDistinct,
    AggregateFunction::kApproxCountDistinct,
};

bool TakesCollation(AggregateFunction function) {
  return std::find(std::begin(kComparing), std::end(kComparing), function) != std::end(kComparing);
}

bool IsAccepted(TypeId id, Accepts accepts) {
  switch (accepts) {
    case Accepts::kAnything: return id != TypeId::kRowId;
    case Accepts::kNumbers: return IsInteger(id) || IsFloat(id) || IsDecimal(id);
    case Accepts::kPlainNumbers: return IsInteger(id) || IsFloat(id);
    case Accepts::kIntegers: return IsInteger(id);
    case Accepts::kBooleans: return id == TypeId::kBool;
    case Accepts::kTexts: return IsVariable(RowOf(id).storage);
  }
  return false;
}

Names AcceptedTypes(Accepts accepts) {
  Names names;
  for (const TypeRow& row : AllTypes())
    if (IsAccepted(row.id, accepts)) names.push_back(row.text);
  return names;
}

// "quantile(TYPE,Q) with Q from 0 to 1": the form of a call, as messages show it.
std::string Form(const AggregateFunctionRow& row) {
  const std::string name(row.text);
  if (row.id == AggregateFunction::kHost)
    return "host.NAME(TYPE,..) with 0 to " + std::to_string(kMaxHostArguments) + " types";
  if (row.id == AggregateFunction::kQuantile) return name + "(TYPE,Q) with Q from 0 to 1";
  if (row.id == AggregateFunction::kStringAgg) return name + "(TYPE,x'HEX')";
  if (row.num_arguments == 0) return name;
  return name + (row.num_arguments == 1 ? "(TYPE)" : "(TYPE,TYPE)");
}

// Whether a constant follows the columns among the arguments.
bool HasConstant(AggregateFunction function) {
  return function == AggregateFunction::kQuantile || function == AggregateFunction::kStringAgg;
}

bool IsNumArguments(const AggregateFunctionRow& row, size_t num_arguments) {
  return row.id == AggregateFunction::kHost ? num_arguments <= kMaxHostArguments : num_arguments == row.num_arguments;
}

// ---- constants ----

std::string PrintQuantile(double quantile) {
  char text[32];
  // -0 prints as 0, which it equals.
  const auto end = std::to_chars(std::begin(text), std::end(text), quantile == 0 ? 0.0 : quantile);
  return {text, end.ptr};
}

absl::Status QuantileOutOfRange(std::string_view text) {
  return Wrong("quantile out of range", text, "a number from 0 to 1");
}

bool IsQuantile(double quantile) { return quantile >= 0 && quantile <= 1; }  // NaN is not

absl::StatusOr<double> ParseQuantile(std::string_view text) {
  double quantile = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), quantile);
  if (error != std::errc() || rest != text.data() + text.size() || !IsQuantile(quantile))
    return QuantileOutOfRange(text);
  return quantile;
}

int DigitOf(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

std::string PrintBytes(std::string_view bytes) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string text = "x'";
  for (char c : bytes) text += {kHex[static_cast<unsigned char>(c) >> 4], kHex[static_cast<unsigned char>(c) & 15]};
  return text + "'";
}

absl::StatusOr<std::string> ParseBytes(std::string_view text) {
  const auto wrong = [&] {
    return Wrong("bytes that are no hexadecimal text", text, "x'HEX' with two digits a byte, as x'2c20'");
  };
  if (text.size() < 3 || text.substr(0, 2) != "x'" || text.back() != '\'' || text.size() % 2 == 0) return wrong();
  std::string bytes;
  for (size_t i = 2; i + 1 < text.size(); i += 2) {
    const int high = DigitOf(text[i]), low = DigitOf(text[i + 1]);
    if (high < 0 || low < 0) return wrong();
    bytes += static_cast<char>(high << 4 | low);
  }
  return bytes;
}

absl::Status ParseConstant(std::string_view text, AggregateSpec* aggregate) {
  if (aggregate->function == AggregateFunction::kQuantile) {
    QUERN_ASSIGN_OR_RETURN(aggregate->quantile, ParseQuantile(text));
  } else {
    QUERN_ASSIGN_OR_RETURN(aggregate->separator, ParseBytes(text));
  }
  return absl::OkStatus();
}

// ---- functions and arguments ----

Names FunctionNames() {
  Names names;
  for (const AggregateFunctionRow& row : kFunctions)
    names.push_back(row.id == AggregateFunction::kHost ? "host.NAME" : row.text);
  return names;
}

absl::Status ParseFunction(std::string_view name, AggregateSpec* aggregate) {
  if (name.substr(0, kHostPrefix.size()) == kHostPrefix) {
    aggregate->function = AggregateFunction::kHost;
    aggregate->host_name = name.substr(kHostPrefix.size());
    return absl::OkStatus();
  }
  for (const AggregateFunctionRow& row : kFunctions) {
    if (row.text != name || row.id == AggregateFunction::kHost) continue;
    aggregate->function = row.id;
    return absl::OkStatus();
  }
  return Unknown("aggregate", name, FunctionNames());
}

absl::Status ParseArguments(const NamedText& text, AggregateSpec* aggregate) {
  const AggregateFunctionRow& row = RowOf(aggregate->function);
  const bool takes_none = row.num_arguments == 0 && row.id != AggregateFunction::kHost;
  if (takes_none && text.has_parameter) return Wrong("aggregate takes no arguments", text.whole, Form(row));
  if (takes_none) return absl::OkStatus();
  if (!text.has_parameter) return Wrong("aggregate without arguments", text.whole, Form(row));
  std::vector<std::string_view> parts;
  if (!text.parameter.empty()) parts = Split(text.parameter, ',');
  const size_t num_constants = HasConstant(row.id) ? 1 : 0;
  if (parts.size() < num_constants || !IsNumArguments(row, parts.size() - num_constants))
    return Wrong("wrong number of arguments", text.whole, Form(row));
  for (size_t i = 0; i + num_constants < parts.size(); ++i) {
    QUERN_ASSIGN_OR_RETURN(const Item item, ParseItem(parts[i], Role::kArgument));
    aggregate->arguments.push_back(item.key.type);
  }
  return num_constants == 0 ? absl::OkStatus() : ParseConstant(parts.back(), aggregate);
}

// "sum" or "host.area": the text before the parenthesis.
std::string PrintName(const AggregateSpec& aggregate) {
  return std::string(RowOf(aggregate.function).text) +
         (aggregate.function == AggregateFunction::kHost ? "." + aggregate.host_name : "");
}

// ---- specs filled by a caller ----

absl::Status CheckArgument(const AggregateSpec& aggregate, const ColumnType& type, const std::string& where) {
  QUERN_RETURN_IF_ERROR(CheckType(type, where));
  const AggregateFunctionRow& row = RowOf(aggregate.function);
  const std::string call = PrintName(aggregate) + "(" + PrintType(type) + ")";
  if (!IsAccepted(type.id, row.accepts))
    return Wrong("aggregate of a type that it does not take", call, Listed(AcceptedTypes(row.accepts)));
  if (type.collation == kCollationBinary || TakesCollation(row.id)) return absl::OkStatus();
  ColumnType plain = type;
  plain.collation = kCollationBinary;
  return Wrong("collation where nothing is compared", call, PrintName(aggregate) + "(" + PrintType(plain) + ")");
}

bool IsLetterOfAName(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// A constant must be one that the function's text can express, or AggregateSpec's default if the function has none.
absl::Status CheckConstants(const AggregateSpec& aggregate, const std::string& where) {
  const bool is_host = aggregate.function == AggregateFunction::kHost;
  const std::string& name = aggregate.host_name;
  if (is_host && (name.empty() || !std::all_of(name.begin(), name.end(), IsLetterOfAName)))
    return Wrong("bad name of a host's aggregate", name, "letters, digits and '_'");
  if (!is_host && !name.empty()) return Wrong("host's name without meaning in " + where, name, "none");
  const bool is_quantile = aggregate.function == AggregateFunction::kQuantile;
  if (is_quantile && !IsQuantile(aggregate.quantile)) return QuantileOutOfRange(PrintQuantile(aggregate.quantile));
  if (!is_quantile && aggregate.quantile != AggregateSpec().quantile)
    return Wrong("quantile without meaning in " + where, PrintQuantile(aggregate.quantile),
                 PrintQuantile(AggregateSpec().quantile));
  if (aggregate.function != AggregateFunction::kStringAgg && !aggregate.separator.empty())
    return Wrong("separator without meaning in " + where, PrintBytes(aggregate.separator), "none");
  if (aggregate.separator.size() <= kMaxSeparatorBytes) return absl::OkStatus();
  return Wrong("separator too long", std::to_string(aggregate.separator.size()) + " bytes",
               "up to " + std::to_string(kMaxSeparatorBytes));
}

// ---- results ----

bool IsAlwaysNullable(AggregateFunction function) {
  constexpr AggregateFunction kNullable[] = {AggregateFunction::kVarSamp,  AggregateFunction::kStddevSamp,
                                             AggregateFunction::kCovarPop, AggregateFunction::kCovarSamp,
                                             AggregateFunction::kCorr,     AggregateFunction::kHost};
  return std::find(std::begin(kNullable), std::end(kNullable), function) != std::end(kNullable);
}

bool IsResultNullable(const AggregateSpec& aggregate, bool has_keys) {
  if (RowOf(aggregate.function).result == ResultRule::kCount) return false;
  const auto is_nullable = [](const ColumnType& type) { return type.nullable; };
  return IsAlwaysNullable(aggregate.function) || aggregate.filtered || !has_keys ||
         std::any_of(aggregate.arguments.begin(), aggregate.arguments.end(), is_nullable);
}

TypeId SumOf(TypeId id) {
  if (IsDecimal(id)) return TypeId::kDecimal128;
  if (IsFloat(id)) return TypeId::kF64;
  return IsSigned(id) ? TypeId::kI64 : TypeId::kU64;
}

ColumnType HostResult(const std::string& name) {
  const HostAggregate* host = FindHostAggregate(name);
  return host == nullptr ? ColumnType{.id = TypeId::kI64} : host->result;
}

ColumnType ResultByRule(const AggregateSpec& aggregate) {
  const auto argument = [&] { return aggregate.arguments.front(); };
  switch (RowOf(aggregate.function).result) {
    case ResultRule::kCount: return {.id = TypeId::kI64};
    case ResultRule::kSumOf: return {.id = SumOf(argument().id)};
    case ResultRule::kAverageOf: return {.id = IsDecimal(argument().id) ? TypeId::kDecimal128 : TypeId::kF64};
    case ResultRule::kSame: return {.id = argument().id, .width_bytes = argument().width_bytes};
    case ResultRule::kDecimal: return {.id = TypeId::kDecimal128};
    case ResultRule::kDouble: return {.id = TypeId::kF64};
    case ResultRule::kOfHost: return HostResult(aggregate.host_name);
  }
  return {};
}

}  // namespace

std::span<const AggregateFunctionRow> AllAggregateFunctions() { return kFunctions; }
const AggregateFunctionRow& RowOf(AggregateFunction function) { return kFunctions[static_cast<size_t>(function)]; }

ColumnType AggregateResultType(const AggregateSpec& aggregate, bool has_keys) {
  ColumnType type = ResultByRule(aggregate);
  type.nullable = IsResultNullable(aggregate, has_keys);
  return type;
}

bool HasComputedArguments(const AggregateSpec& aggregate) {
  return std::any_of(aggregate.expressions.begin(), aggregate.expressions.end(),
                     [](const Expression& e) { return e.kind != ExpressionKind::kColumn; });
}

std::vector<ColumnType> AggregateInputTypes(const std::vector<AggregateSpec>& aggregates) {
  std::vector<ColumnType> types;
  for (const AggregateSpec& aggregate : aggregates) {
    types.insert(types.end(), aggregate.arguments.begin(), aggregate.arguments.end());
    if (aggregate.filtered) types.push_back({.id = TypeId::kBool, .nullable = true});
  }
  return types;
}

absl::StatusOr<AggregateSpec> ParseAggregate(std::string_view text) {
  const std::vector<std::string_view> parts = Split(text, ':');
  QUERN_ASSIGN_OR_RETURN(const NamedText call, SplitName(parts[0], kForm));
  AggregateSpec aggregate;
  QUERN_RETURN_IF_ERROR(ParseFunction(call.name, &aggregate));
  QUERN_RETURN_IF_ERROR(ParseArguments(call, &aggregate));
  Item flags;
  QUERN_RETURN_IF_ERROR(ParseFlags(parts, Role::kAggregate, &flags));
  aggregate.filtered = flags.filtered;
  return aggregate;
}

namespace {

void SkipBlanks(std::string_view* text) {
  text->remove_prefix(std::min(text->find_first_not_of(" \t\n"), text->size()));
}

absl::Status Expect(char c, std::string_view* text) {
  SkipBlanks(text);
  if (!text->starts_with(c)) return Wrong("text in an aggregate", text->empty() ? "end of the spec" : *text, kFormOf);
  text->remove_prefix(1);
  return absl::OkStatus();
}

absl::Status ParseArgumentsOf(std::span<const ValueType> columns, std::string_view* text, AggregateSpec* aggregate) {
  const AggregateFunctionRow& row = RowOf(aggregate->function);
  const bool is_host = row.id == AggregateFunction::kHost;
  if (row.num_arguments == 0 && !is_host) return absl::OkStatus();
  QUERN_RETURN_IF_ERROR(Expect('(', text));
  SkipBlanks(text);
  const size_t most = is_host ? kMaxHostArguments : row.num_arguments;
  for (bool more = !text->starts_with(')'); more && aggregate->expressions.size() < most;) {
    QUERN_ASSIGN_OR_RETURN(Expression argument, ParseExpression(*text, columns, text));
    aggregate->arguments.push_back(ColumnTypeOf(argument.type));
    aggregate->expressions.push_back(std::move(argument));
    SkipBlanks(text);
    more = text->starts_with(',');
    if (more) text->remove_prefix(1);
  }
  if (HasConstant(row.id)) {
    SkipBlanks(text);
    const size_t end = std::min(text->find_first_of(") \t\n"), text->size());
    QUERN_RETURN_IF_ERROR(ParseConstant(text->substr(0, end), aggregate));
    text->remove_prefix(end);
  }
  return Expect(')', text);
}

}  // namespace

absl::StatusOr<AggregateSpec> ParseAggregateOf(std::span<const ValueType> columns, std::string_view text,
                                               std::string_view* rest) {
  SkipBlanks(&text);
  const size_t end = std::min(text.find_first_of("(:, \t\n"), text.size());
  AggregateSpec aggregate;
  QUERN_RETURN_IF_ERROR(ParseFunction(text.substr(0, end), &aggregate));
  text.remove_prefix(end);
  QUERN_RETURN_IF_ERROR(ParseArgumentsOf(columns, &text, &aggregate));
  constexpr std::string_view kFilter = ":filter";
  if (text.starts_with(kFilter)) {
    text.remove_prefix(kFilter.size());
    QUERN_RETURN_IF_ERROR(Expect('(', &text));
    QUERN_ASSIGN_OR_RETURN(aggregate.filter, ParseExpression(text, columns, &text));
    QUERN_RETURN_IF_ERROR(Expect(')', &text));
    aggregate.filtered = true;
  }
  SkipBlanks(&text);
  *rest = text;
  return aggregate;
}

std::string PrintItem(const AggregateSpec& aggregate) {
  std::string inside;
  for (size_t i = 0; i < aggregate.arguments.size(); ++i) {
    inside += i == 0 ? "" : ",";
    inside +=
        aggregate.expressions.empty() ? PrintItem(aggregate.arguments[i]) : PrintExpression(aggregate.expressions[i]);
  }
  if (aggregate.function == AggregateFunction::kQuantile) inside += "," + PrintQuantile(aggregate.quantile);
  if (aggregate.function == AggregateFunction::kStringAgg) inside += "," + PrintBytes(aggregate.separator);
  std::string flags = aggregate.filtered ? ":filter" : "";
  if (aggregate.filter.has_value()) flags += "(" + PrintExpression(*aggregate.filter) + ")";
  if (aggregate.function == AggregateFunction::kCountStar) return PrintName(aggregate) + flags;
  return PrintName(aggregate) + "(" + inside + ")" + flags;
}

namespace {

// The expression is of the type that the aggregate says, and no string unless it is a column.
absl::Status CheckExpression(const Expression& expression, std::span<const ValueType> columns, const ColumnType& type,
                             const std::string& where) {
  QUERN_RETURN_IF_ERROR(ValidateExpression(expression, columns));
  if (ColumnTypeOf(expression.type) != type)
    return Wrong("expression of another type than " + where, PrintExpression(expression), PrintType(type));
  if (expression.kind == ExpressionKind::kColumn || !IsStringType(expression.type.id)) return absl::OkStatus();
  return Wrong("aggregate of an expression that is a string", PrintExpression(expression),
               "a column, as $0; a map computes it");
}

absl::Status CheckExpressions(const AggregateSpec& aggregate, std::span<const ValueType> columns,
                              const std::string& where) {
  const size_t wanted = columns.empty() ? 0 : aggregate.arguments.size();
  if (aggregate.expressions.size() != wanted)
    return Wrong("number of expressions in " + where, std::to_string(aggregate.expressions.size()),
                 std::to_string(wanted));
  if (aggregate.filter.has_value() != (!columns.empty() && aggregate.filtered))
    return Wrong("expression of a filter in " + where, aggregate.filter.has_value() ? "one" : "none",
                 "one where there are columns `in` and a filter");
  for (size_t i = 0; i < wanted; ++i)
    QUERN_RETURN_IF_ERROR(CheckExpression(aggregate.expressions[i], columns, aggregate.arguments[i], where));
  const auto is_text = [](const ColumnType& type) { return IsVariable(RowOf(type.id).storage); };
  if (HasComputedArguments(aggregate) && std::any_of(aggregate.arguments.begin(), aggregate.arguments.end(), is_text))
    return Wrong("aggregate of texts and of expressions", PrintItem(aggregate), "columns alone, or no texts");
  if (!aggregate.filter.has_value()) return absl::OkStatus();
  const ColumnType type = ColumnTypeOf(aggregate.filter->type);
  if (type.id != TypeId::kBool)
    return Wrong("filter that is no bool", PrintExpression(*aggregate.filter), "an expression of type bool");
  return CheckExpression(*aggregate.filter, columns, type, where);
}

}  // namespace

absl::Status CheckAggregate(const AggregateSpec& aggregate, std::span<const ValueType> columns,
                            const std::string& where) {
  if (const size_t last = std::size(kFunctions) - 1, number = static_cast<size_t>(aggregate.function); number > last)
    return Wrong("aggregate function number out of range in " + where, std::to_string(number),
                 "0 to " + std::to_string(last));
  const AggregateFunctionRow& row = RowOf(aggregate.function);
  if (!IsNumArguments(row, aggregate.arguments.size()))
    return Wrong("wrong number of arguments in " + where, std::to_string(aggregate.arguments.size()), Form(row));
  QUERN_RETURN_IF_ERROR(CheckConstants(aggregate, where));
  for (size_t i = 0; i < aggregate.arguments.size(); ++i) {
    const std::string argument = where + ".arguments[" + std::to_string(i) + "]";
    QUERN_RETURN_IF_ERROR(CheckArgument(aggregate, aggregate.arguments[i], argument));
  }
  return CheckExpressions(aggregate, columns, where);
}

}  // namespace quern
