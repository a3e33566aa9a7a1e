// SPDX-License-Identifier: Apache-2.0
// The last map goes first: an argument that names one of its results becomes the expression of that result, whose
// columns may be results of the map before it. A result that is a key stays, and so does its map. So does a result that
// may be an error, unless an argument computes it for all rows: fusing changes no result, and hides no error.
#include "runtime/pipeline/fused_maps.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "runtime/pipeline/fused_arguments.h"

namespace quern {
namespace {

Expression ColumnOf(uint32_t number, const ValueType& type) {
  Expression column;
  column.type = type;
  column.column = number;
  return column;
}

// Every column that the aggregation reads behind its keys, as an expression. nullopt: some type is none of expressions.
std::optional<std::vector<Expression>> AsExpressions(const std::vector<std::optional<ValueType>>& columns,
                                                     const AggregationSpec& spec,
                                                     const std::vector<uint32_t>& payload) {
  std::vector<Expression> expressions;
  // wanted: null for a filter
  const auto add = [&](const ColumnType* wanted) {
    const uint32_t number = payload[expressions.size()];
    std::optional<ValueType> type = columns[number];
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

// Whether a row may make it an error. Decimals do where their digits reach the most that there are.
bool MayFail(const Expression& e) {
  if (e.kind == ExpressionKind::kCall) {
    if (RowOf(e.function).errors == RowErrors::kFail) return true;
    if (IsDecimal(e.type.id) && e.type.digits == kMaxDecimalDigits) return true;
  }
  return std::any_of(e.arguments.begin(), e.arguments.end(), MayFail);
}

// Whether the function computes its first argument for all rows, and others only where the first ones do not decide.
bool StopsEarly(ExpressionFunction function) {
  return function == ExpressionFunction::kAnd || function == ExpressionFunction::kOr ||
         function == ExpressionFunction::kCaseWhen || function == ExpressionFunction::kCoalesce;
}

// Whether a column is read for all rows.
bool ReadsAlways(const Expression& e, uint32_t column) {
  if (e.kind == ExpressionKind::kColumn) return e.column == column;
  const size_t num_always = e.arguments.empty() || !StopsEarly(e.function) ? e.arguments.size() : 1;
  return std::any_of(e.arguments.begin(), e.arguments.begin() + static_cast<ptrdiff_t>(num_always),
                     [&](const Expression& argument) { return ReadsAlways(argument, column); });
}

class Fusion {
 public:
  Fusion(std::vector<MapStep> maps, size_t num_columns, std::vector<uint32_t> keys, std::vector<Expression> arguments)
      : maps(std::move(maps)), keys(std::move(keys)), arguments(std::move(arguments)), kept(num_columns) {
    std::iota(kept.begin(), kept.end(), 0);
  }

  // Replaces columns by results of the last map that no key is. Returns whether the map is gone.
  bool FuseLast();

  std::vector<MapStep> maps;
  std::vector<uint32_t> keys;
  std::vector<Expression> arguments;
  std::vector<uint32_t> kept;

 private:
  bool IsKey(uint32_t number) const { return std::find(keys.begin(), keys.end(), number) != keys.end(); }
  bool IsReadAlways(uint32_t number) const {
    return std::any_of(arguments.begin(), arguments.end(),
                       [&](const Expression& argument) { return ReadsAlways(argument, number); });
  }
};

bool Fusion::FuseLast() {
  if (maps.empty()) return false;
  MapStep& map = maps.back();
  const auto base = static_cast<uint32_t>(kept.size() - map.spec.results.size());
  // The map's result with numbers of the columns in front of it in place of those of its own.
  const auto result = [&](uint32_t number) {
    Expression expression = map.spec.results[number - base];
    VisitColumns(&expression, [&](Expression* column) { column->column = map.columns[column->column]; });
    return expression;
  };
  std::vector<bool> stays(kept.size());
  for (uint32_t number = base; number < kept.size(); ++number)
    stays[number] = IsKey(number) || (MayFail(map.spec.results[number - base]) && !IsReadAlways(number));
  bool any = false;
  for (Expression& argument : arguments) {
    VisitColumns(&argument, [&](Expression* column) {
      if (column->column < base || stays[column->column]) return;
      *column = result(column->column);
      any = true;
    });
  }
  if (!any) return false;
  // The map keeps the results that stay, under numbers without gaps.
  std::map<uint32_t, uint32_t> renumbered;
  std::vector<Expression> results;
  std::vector<uint32_t> left(kept.begin(), kept.begin() + base);
  for (uint32_t number = base; number < kept.size(); ++number) {
    if (!stays[number]) continue;
    renumbered[number] = static_cast<uint32_t>(left.size());
    left.push_back(kept[number]);
    results.push_back(std::move(map.spec.results[number - base]));
  }
  const auto renumber = [&](uint32_t* number) {
    if (*number >= base) *number = renumbered.at(*number);
  };
  for (uint32_t& key : keys) renumber(&key);
  for (Expression& argument : arguments)
    VisitColumns(&argument, [&](Expression* column) { renumber(&column->column); });
  kept = std::move(left);
  const bool is_gone = results.empty();
  if (is_gone) maps.pop_back();
  else map.spec.results = std::move(results);
  return is_gone;
}

}  // namespace

std::optional<FusedMaps> FuseMaps(std::vector<MapStep> maps, std::vector<std::optional<ValueType>> columns,
                                  const AggregationSpec& spec, const StepColumns& read) {
  if (maps.empty() || !spec.columns.empty()) return std::nullopt;
  std::optional<std::vector<Expression>> arguments = AsExpressions(columns, spec, read.payload);
  if (!arguments.has_value()) return std::nullopt;
  Fusion fusion(std::move(maps), columns.size(), read.keys, *std::move(arguments));
  while (fusion.FuseLast()) continue;
  if (fusion.kept.size() == columns.size()) return std::nullopt;
  std::optional<FusedAggregation> fused = FuseArguments(spec, std::move(fusion.arguments));
  if (!fused.has_value()) return std::nullopt;
  return FusedMaps{.maps = std::move(fusion.maps),
                   .spec = std::move(fused->spec),
                   .read = {.keys = std::move(fusion.keys), .payload = std::move(fused->columns)},
                   .kept = std::move(fusion.kept)};
}

}  // namespace quern
