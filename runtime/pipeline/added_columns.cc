// SPDX-License-Identifier: Apache-2.0
#include "runtime/pipeline/added_columns.h"

#include <cstddef>

#include "runtime/pipeline/fused_arguments.h"

namespace quern {
namespace {

// Whether values are signed words.
bool IsWord(TypeId id) { return id == TypeId::kI64 || id == TypeId::kDecimal64; }

bool AddsUp(const AggregateSpec& aggregate) {
  switch (aggregate.function) {
    case AggregateFunction::kSum:
    case AggregateFunction::kSum128:
    case AggregateFunction::kAvg: return !aggregate.filtered && IsWord(aggregate.arguments[0].id);
    default: return false;
  }
}

}  // namespace

std::vector<bool> AddedColumnsOf(const AggregationSpec& spec) {
  std::vector<bool> added(AggregateInputTypes(spec).size(), spec.keys.empty());
  const auto read = [&added](size_t column, bool is_added) { added[column] = added[column] && is_added; };
  size_t next = 0;
  for (const AggregateSpec& aggregate : spec.aggregates) {
    const bool adds_up = AddsUp(aggregate);
    if (spec.columns.empty()) {  // each argument is a column, and so is a filter
      for (const size_t end = next + aggregate.arguments.size() + (aggregate.filtered ? 1 : 0); next < end; ++next)
        read(next, adds_up);
      continue;
    }
    for (const Expression& expression : aggregate.expressions) {
      const bool is_column = expression.kind == ExpressionKind::kColumn;
      VisitColumns(&expression, [&](const Expression* column) { read(column->column, adds_up && is_column); });
    }
    if (!aggregate.filter.has_value()) continue;
    VisitColumns(&*aggregate.filter, [&](const Expression* column) { read(column->column, false); });
  }
  return added;
}

}  // namespace quern
