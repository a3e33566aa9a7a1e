// SPDX-License-Identifier: Apache-2.0
//     aggregate keys=i64 aggs=sum(f64),max(f64)     read of a batch: price * (1 - discount), discount
//
//     aggregate keys=i64 in=f64,f64 aggs=sum(multiply($0,subtract(1:f64,$1))),max($1)     price, discount
#include "runtime/pipeline/fused_arguments.h"

#include <cstddef>
#include <utility>

namespace quern {
namespace {

// The place of a column in `in`, which it joins if it is not there yet.
uint32_t PlaceOf(const Expression& column, FusedAggregation* fused) {
  std::vector<ValueType>& types = fused->spec.columns;
  for (uint32_t place = 0; place < types.size(); ++place)
    if (fused->columns[place] == column.column && types[place] == column.type) return place;
  fused->columns.push_back(column.column);
  types.push_back(column.type);
  return static_cast<uint32_t>(types.size() - 1);
}

}  // namespace

std::optional<FusedAggregation> FuseArguments(AggregationSpec spec, std::vector<Expression> arguments) {
  FusedAggregation fused{.spec = std::move(spec), .columns = {}};
  size_t next = 0;
  const auto take = [&] {
    Expression expression = std::move(arguments[next++]);
    VisitColumns(&expression, [&](Expression* column) { column->column = PlaceOf(*column, &fused); });
    return expression;
  };
  for (AggregateSpec& aggregate : fused.spec.aggregates) {
    for (size_t i = 0; i < aggregate.arguments.size(); ++i) aggregate.expressions.push_back(take());
    if (aggregate.filtered) aggregate.filter = take();
  }
  if (fused.columns.empty() || !fused.spec.Validate().ok()) return std::nullopt;
  return fused;
}

}  // namespace quern
