// SPDX-License-Identifier: Apache-2.0
// aggregate sum(price * (1 - discount)) by customer, of the columns price, discount, customer of a flow:
//
//     map        in=f64,f64 out=multiply($0,subtract(1:f64,$1))                 [0, 1]     one column more, 3
//     aggregate  keys=i64 aggs=sum(f64)                                         [2; 3]
//
//     aggregate  keys=i64 in=f64,f64 aggs=sum(multiply($0,subtract(1:f64,$1)))  [2; 0, 1]
#include "tools/query/fused_maps.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "tools/frontend/fused_arguments.h"

namespace quern::query {
namespace {

Expression ColumnOf(uint32_t number, const ValueType& type) {
  Expression column;
  column.type = type;
  column.column = number;
  return column;
}

// Every column that the aggregation reads, as an expression. nullopt: some type is none of expressions.
std::optional<std::vector<Expression>> AsExpressions(const Flow& flow, const AggregationSpec& spec,
                                                     const std::vector<uint32_t>& payload) {
  std::vector<Expression> expressions;
  // wanted: null for a filter
  const auto add = [&](const ColumnType* wanted) {
    const uint32_t number = payload[expressions.size()];
    std::optional<ValueType> type = ValueTypeOf(flow.columns[number]);
    if (!type.has_value()) return false;
    if (wanted != nullptr) type->collation = wanted->collation;
    if (wanted != nullptr && ColumnTypeOf(*type) != *wanted) return false;
    expressions.push_back(ColumnOf(number, *type));
    return true;
  };
  for (const AggregateSpec& aggregate : spec.aggregates) {
    for (const ColumnType& argument : aggregate.arguments)
      if (!add(&argument)) return std::nullopt;
    if (aggregate.filtered && !add(nullptr)) return std::nullopt;
  }
  return expressions;
}

// The map's result with numbers of the flow in place of those of the map's columns.
Expression InFlow(Expression result, const StepColumns& map) {
  cli::VisitColumns(&result, [&](Expression* column) { column->column = map.keys[column->column]; });
  return result;
}

// Replaces columns by results of the flow's last map that no key is. Returns whether the map is gone.
bool FuseLast(Flow* flow, std::vector<uint32_t>* keys, std::vector<Expression>* arguments) {
  if (flow->pipeline.steps.empty()) return false;
  PlannedStep& step = flow->pipeline.steps.back();
  auto* const map = std::get_if<MapSpec>(&step.spec);
  if (map == nullptr) return false;
  const auto base = static_cast<uint32_t>(flow->columns.size() - map->results.size());
  const auto is_key = [&](uint32_t number) { return std::find(keys->begin(), keys->end(), number) != keys->end(); };
  bool any = false;
  std::vector<bool> stays(map->results.size());
  for (size_t r = 0; r < stays.size(); ++r) stays[r] = is_key(base + static_cast<uint32_t>(r));
  for (Expression& argument : *arguments) {
    cli::VisitColumns(&argument, [&](Expression* column) {
      if (column->column < base || stays[column->column - base]) return;
      *column = InFlow(map->results[column->column - base], step.columns);
      any = true;
    });
  }
  if (!any) return false;
  // The map keeps the results that are keys, under numbers without gaps.
  std::map<uint32_t, uint32_t> renumbered;
  std::vector<Expression> results;
  std::vector<QueryColumn> columns(flow->columns.begin(), flow->columns.begin() + base);
  for (size_t r = 0; r < stays.size(); ++r) {
    if (!stays[r]) continue;
    renumbered[base + static_cast<uint32_t>(r)] = static_cast<uint32_t>(columns.size());
    columns.push_back(flow->columns[base + r]);
    results.push_back(std::move(map->results[r]));
  }
  const auto renumber = [&](uint32_t* number) {
    if (*number >= base) *number = renumbered.at(*number);
  };
  for (uint32_t& key : *keys) renumber(&key);
  for (Expression& argument : *arguments)
    cli::VisitColumns(&argument, [&](Expression* column) { renumber(&column->column); });
  flow->columns = std::move(columns);
  const bool is_left = !results.empty();
  if (is_left) map->results = std::move(results);
  else flow->pipeline.steps.pop_back();
  return !is_left;
}

}  // namespace

void FuseMaps(Flow* flow, AggregationSpec* spec, StepColumns* columns) {
  if (flow->pipeline.steps.empty() || !std::holds_alternative<MapSpec>(flow->pipeline.steps.back().spec)) return;
  std::optional<std::vector<Expression>> arguments = AsExpressions(*flow, *spec, columns->payload);
  if (!arguments.has_value()) return;
  Flow changed = *flow;
  std::vector<uint32_t> keys = columns->keys;
  while (FuseLast(&changed, &keys, &*arguments)) continue;
  if (changed.columns.size() == flow->columns.size()) return;
  std::optional<cli::FusedAggregation> fused = cli::FuseArguments(*spec, *std::move(arguments));
  if (!fused.has_value()) return;
  *flow = std::move(changed);
  *spec = std::move(fused->spec);
  *columns = {.keys = std::move(keys), .payload = std::move(fused->columns)};
}

}  // namespace quern::query
