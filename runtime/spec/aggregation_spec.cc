// SPDX-License-Identifier: Apache-2.0
// The text form of aggregations: keys and aggs, at least one of them. Where there are columns `in`, these stand in
// front of the aggregates, and the aggregates at the end: their expressions may contain blanks.
#include "runtime/spec/aggregation_spec.h"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/spec/spec_fields.h"

namespace quern {
namespace {

absl::Status AppendAggregate(std::string_view text, AggregationSpec* spec) {
  QUERN_ASSIGN_OR_RETURN(AggregateSpec aggregate, ParseAggregate(text));
  spec->aggregates.push_back(std::move(aggregate));
  return absl::OkStatus();
}

// Of a spec without `in`.
constexpr Field<AggregationSpec> kFields[] = {
    {"keys", "TYPE", "types", AppendKey<Role::kAggregateKey>},
    {"aggs", "AGGREGATE", "aggregates", AppendAggregate},
};

absl::Status CheckFieldsGiven(const AggregationSpec& spec) {
  if (!spec.keys.empty() || !spec.aggregates.empty()) return absl::OkStatus();
  return Wrong("missing field", "keys or aggs", "one of them at least: " + kFields[0].Form() + " " + kFields[1].Form());
}

constexpr char kForm[] = "aggregate [keys=TYPE,..] in=TYPE,.. aggs=AGGREGATE,..";
constexpr std::string_view kIn = "in=", kAggs = "aggs=";

// The word at the beginning of `text`, which loses it.
std::string_view TakeWord(std::string_view* text) {
  text->remove_prefix(std::min(text->find_first_not_of(" \t\n"), text->size()));
  const std::string_view word = text->substr(0, text->find_first_of(" \t\n"));
  text->remove_prefix(word.size());
  return word;
}

// Where the aggregates begin, behind `in`; npos where there is no `in`.
size_t BehindColumns(std::string_view fields) {
  bool has_columns = false;
  for (std::string_view rest = fields; !rest.empty();) {
    const std::string_view word = TakeWord(&rest);
    if (has_columns && word.starts_with(kAggs)) return static_cast<size_t>(word.data() - fields.data());
    has_columns |= word.starts_with(kIn);
    if (word.starts_with(kAggs)) break;
  }
  return has_columns ? fields.size() : std::string_view::npos;
}

absl::Status ParseAggregatesOf(std::string_view text, AggregationSpec* spec) {
  while (true) {
    QUERN_ASSIGN_OR_RETURN(AggregateSpec aggregate, ParseAggregateOf(spec->columns, text, &text));
    spec->aggregates.push_back(std::move(aggregate));
    if (text.empty()) return absl::OkStatus();
    if (!text.starts_with(',')) return Wrong("text behind an aggregate", text, "',' and an aggregate");
    text.remove_prefix(1);
  }
}

// `begin`: of the aggregates.
absl::StatusOr<AggregationSpec> ParseWithColumns(std::string_view fields, size_t begin) {
  AggregationSpec spec;
  bool has_keys = false;
  for (std::string_view rest = fields.substr(0, begin); !rest.empty();) {
    const std::string_view word = TakeWord(&rest);
    if (word.starts_with(kIn)) {
      if (!spec.columns.empty()) return Wrong("field given twice", "in", "each field once");
      QUERN_RETURN_IF_ERROR(ParseValueColumns(word.substr(kIn.size()), &spec.columns));
    } else if (!word.empty()) {
      if (std::exchange(has_keys, true)) return Wrong("field given twice or out of place", word, kForm);
      QUERN_RETURN_IF_ERROR(ParseFields<AggregationSpec>(word, std::span(kFields).first(1), &spec));
    }
  }
  if (begin == fields.size() || spec.columns.empty()) return Wrong("columns without aggregates", fields, kForm);
  QUERN_RETURN_IF_ERROR(ParseAggregatesOf(fields.substr(begin + kAggs.size()), &spec));
  return spec;
}

}  // namespace

Names AggregationSpec::Names() { return {"aggregate"}; }

absl::StatusOr<AggregationSpec> AggregationSpec::Parse(std::string_view, std::string_view fields) {
  if (const size_t begin = BehindColumns(fields); begin != std::string_view::npos)
    return ParseWithColumns(fields, begin);
  AggregationSpec spec;
  if (const size_t in = fields.find(" in="); in != std::string_view::npos)
    return Wrong("field out of place", fields.substr(in + 1), kForm);
  QUERN_RETURN_IF_ERROR(ParseFields<AggregationSpec>(fields, kFields, &spec));
  QUERN_RETURN_IF_ERROR(CheckFieldsGiven(spec));
  return spec;
}

absl::Status AggregationSpec::Validate() const {
  QUERN_RETURN_IF_ERROR(CheckCount("keys", keys.size(), 0, kMaxKeys));
  QUERN_RETURN_IF_ERROR(CheckCount("aggregates", aggregates.size(), 0, kMaxAggregates));
  QUERN_RETURN_IF_ERROR(CheckFieldsGiven(*this));
  QUERN_RETURN_IF_ERROR(CheckEach(keys, "keys", CheckAggregateKey));
  QUERN_RETURN_IF_ERROR(CheckCount("in", columns.size(), 0, kMaxMapColumns));
  QUERN_RETURN_IF_ERROR(CheckValueColumns(columns));
  size_t num_nodes = 0;
  for (size_t i = 0; i < aggregates.size(); ++i) {
    QUERN_RETURN_IF_ERROR(CheckAggregate(aggregates[i], columns, "aggs[" + std::to_string(i) + "]"));
    for (const Expression& expression : aggregates[i].expressions) num_nodes += SizeOf(expression);
    if (aggregates[i].filter.has_value()) num_nodes += SizeOf(*aggregates[i].filter);
  }
  if (num_nodes <= kMaxExpressionNodes) return absl::OkStatus();
  return Wrong("expressions of too many parts", std::to_string(num_nodes),
               "up to " + std::to_string(kMaxExpressionNodes));
}

// Keys print without :nullequal: in a group, nulls are always equal.
std::string AggregationSpec::Print() const {
  std::vector<ColumnType> types;
  for (const KeySpec& key : keys) types.push_back(key.type);
  std::string text = "aggregate";
  AppendField(" keys=", types, &text);
  for (size_t i = 0; i < columns.size(); ++i) text += (i == 0 ? " in=" : ",") + PrintValueType(columns[i]);
  AppendField(" aggs=", aggregates, &text);
  return text;
}

std::vector<ColumnType> AggregateInputTypes(const AggregationSpec& spec) {
  if (spec.columns.empty()) return AggregateInputTypes(spec.aggregates);
  std::vector<ColumnType> types;
  for (const ValueType& type : spec.columns) types.push_back(ColumnTypeOf(type));
  return types;
}

MapSpec ComputedArguments(const AggregationSpec& spec) {
  MapSpec map;
  map.columns = spec.columns;
  const auto add = [&](const Expression& expression) {
    if (std::find(map.results.begin(), map.results.end(), expression) == map.results.end())
      map.results.push_back(expression);
  };
  for (const AggregateSpec& aggregate : spec.aggregates) {
    if (HasComputedArguments(aggregate))
      for (const Expression& expression : aggregate.expressions) add(expression);
    if (aggregate.filter.has_value() && aggregate.filter->kind != ExpressionKind::kColumn) add(*aggregate.filter);
  }
  return map;
}

std::vector<ColumnType> AggregateOutputTypes(const AggregationSpec& spec) {
  std::vector<ColumnType> types;
  for (const KeySpec& key : spec.keys) types.push_back(ResultTypeOf(key));
  for (const AggregateSpec& aggregate : spec.aggregates)
    types.push_back(AggregateResultType(aggregate, !spec.keys.empty()));
  return types;
}

}  // namespace quern
