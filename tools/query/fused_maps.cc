// SPDX-License-Identifier: Apache-2.0
#include "tools/query/fused_maps.h"

#include <optional>
#include <utility>
#include <vector>

#include "runtime/pipeline/fused_maps.h"

namespace quern::query {

void FuseMaps(Flow* flow, AggregationSpec* spec, StepColumns* columns) {
  std::vector<std::optional<ValueType>> types;
  for (const QueryColumn& column : flow->columns) types.push_back(ValueTypeOf(column));
  const auto numbers = FuseLastMaps(std::move(types), &flow->pipeline.steps, spec, columns);
  if (!numbers.has_value()) return;
  std::vector<QueryColumn> kept;
  for (const uint32_t number : *numbers) kept.push_back(std::move(flow->columns[number]));
  flow->columns = std::move(kept);
}

}  // namespace quern::query
