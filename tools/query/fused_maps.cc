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

namespace quern::query {
namespace {

// An aggregation of expressions while it is made. Expressions name columns of the flow by number, not those of `in`.
struct Fused {
  AggregationSpec spec;

  std::vector<Expression*> Expressions() {
    std::vector<Expression*> all;
    for (AggregateSpec& aggregate : spec.aggregates) {
      for (Expression& argument : aggregate.expressions) all.push_back(&argument);
      if (aggregate.filter.has_value()) all.push_back(&*aggregate.filter);
    }
    return all;
  }
};

Expression ColumnOf(uint32_t number, const ValueType& type) {
  Expression column;
  column.type = type;
  column.column = number;
  return column;
}

// Every argument as an expression that is a column. nullopt: some type is none of expressions.
std::optional<Fused> WithExpressions(const Flow& flow, const AggregationSpec& spec,
                                     const std::vector<uint32_t>& payload) {
  Fused fused{.spec = spec};
  size_t next = 0;
  const auto take = [&](const ColumnType& wanted) -> std::optional<Expression> {
    const uint32_t number = payload[next++];
    std::optional<ValueType> type = ValueTypeOf(flow.columns[number]);
    if (!type.has_value()) return std::nullopt;
    type->collation = wanted.collation;
    if (ColumnTypeOf(*type) != wanted) return std::nullopt;
    return ColumnOf(number, *type);
  };
  for (AggregateSpec& aggregate : fused.spec.aggregates) {
    for (const ColumnType& argument : aggregate.arguments) {
      std::optional<Expression> column = take(argument);
      if (!column.has_value()) return std::nullopt;
      aggregate.expressions.push_back(std::move(*column));
    }
    if (!aggregate.filtered) continue;
    aggregate.filter = take(*flow.columns[payload[next]].type);
    if (!aggregate.filter.has_value()) return std::nullopt;
  }
  return fused;
}

// Calls f with each column that an expression names.
template <class F>
void VisitColumns(Expression* expression, const F& f) {
  if (expression->kind == ExpressionKind::kColumn) return f(expression);
  for (Expression& argument : expression->arguments) VisitColumns(&argument, f);
}

// The map's result with numbers of the flow in place of those of the map's columns.
Expression InFlow(Expression result, const StepColumns& map) {
  VisitColumns(&result, [&](Expression* column) { column->column = map.keys[column->column]; });
  return result;
}

// Replaces columns by results of the flow's last map that no key is. Returns whether the map is gone.
bool FuseLast(Flow* flow, std::vector<uint32_t>* keys, Fused* fused) {
  if (flow->pipeline.steps.empty()) return false;
  PlannedStep& step = flow->pipeline.steps.back();
  auto* const map = std::get_if<MapSpec>(&step.spec);
  if (map == nullptr) return false;
  const auto base = static_cast<uint32_t>(flow->columns.size() - map->results.size());
  const auto is_key = [&](uint32_t number) { return std::find(keys->begin(), keys->end(), number) != keys->end(); };
  bool any = false;
  std::vector<bool> stays(map->results.size());
  for (size_t r = 0; r < stays.size(); ++r) stays[r] = is_key(base + static_cast<uint32_t>(r));
  for (Expression* expression : fused->Expressions()) {
    VisitColumns(expression, [&](Expression* column) {
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
  for (Expression* expression : fused->Expressions())
    VisitColumns(expression, [&](Expression* column) { renumber(&column->column); });
  flow->columns = std::move(columns);
  const bool is_left = !results.empty();
  if (is_left) map->results = std::move(results);
  else flow->pipeline.steps.pop_back();
  return !is_left;
}

}  // namespace

void FuseMaps(Flow* flow, AggregationSpec* spec, StepColumns* columns) {
  if (flow->pipeline.steps.empty() || !std::holds_alternative<MapSpec>(flow->pipeline.steps.back().spec)) return;
  std::optional<Fused> fused = WithExpressions(*flow, *spec, columns->payload);
  if (!fused.has_value()) return;
  Flow changed = *flow;
  StepColumns read{.keys = columns->keys, .payload = {}};
  while (FuseLast(&changed, &read.keys, &*fused)) continue;
  if (changed.columns.size() == flow->columns.size()) return;
  // `in`: the columns of the flow that expressions name, in the order of mention.
  std::vector<ValueType>& types = fused->spec.columns;
  for (Expression* expression : fused->Expressions()) {
    VisitColumns(expression, [&](Expression* column) {
      uint32_t place = 0;
      while (place < types.size() && (read.payload[place] != column->column || types[place] != column->type)) ++place;
      if (place == types.size()) {
        read.payload.push_back(column->column);
        types.push_back(column->type);
      }
      column->column = place;
    });
  }
  if (types.empty() || !ValidateSpec(fused->spec).ok()) return;
  *flow = std::move(changed);
  *spec = std::move(fused->spec);
  *columns = std::move(read);
}

}  // namespace quern::query
