// SPDX-License-Identifier: Apache-2.0
// Expressions in place of the columns that an aggregation reads: its kernel computes them in the loop that adds them up
// (docs/aggregation.md).
#ifndef QUERN_RUNTIME_PIPELINE_FUSED_ARGUMENTS_H_
#define QUERN_RUNTIME_PIPELINE_FUSED_ARGUMENTS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/spec/aggregation_spec.h"
#include "runtime/spec/expression.h"

namespace quern {

// Calls f with each column that an expression, const or not, names.
template <class E, class F>
void VisitColumns(E* expression, const F& f) {
  if (expression->kind == ExpressionKind::kColumn) return f(expression);
  for (auto& argument : expression->arguments) VisitColumns(&argument, f);
}

struct FusedAggregation {
  AggregationSpec spec;           // with `in`
  std::vector<uint32_t> columns;  // of `in`, by the caller's numbers
};

// spec: without `in`. arguments: one expression for each column of a batch that it reads behind the keys, of that
// type; their columns have any numbers. nullopt: none names a column, or a kernel does not take that much.
std::optional<FusedAggregation> FuseArguments(AggregationSpec spec, std::vector<Expression> arguments);

}  // namespace quern

#endif  // QUERN_RUNTIME_PIPELINE_FUSED_ARGUMENTS_H_
