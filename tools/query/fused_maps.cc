// SPDX-License-Identifier: Apache-2.0
#include "tools/query/fused_maps.h"

#include <iterator>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/pipeline/fused_maps.h"

namespace quern::query {

void FuseMaps(Flow* flow, AggregationSpec* spec, StepColumns* columns) {
  std::vector<PlannedStep>& steps = flow->pipeline.steps;
  size_t first = steps.size();
  while (first != 0 && std::holds_alternative<MapSpec>(steps[first - 1].spec)) --first;
  std::vector<MapStep> maps;
  for (size_t s = first; s < steps.size(); ++s)
    maps.push_back({std::get<MapSpec>(steps[s].spec), steps[s].columns.keys});
  std::vector<std::optional<ValueType>> types;
  for (const QueryColumn& column : flow->columns) types.push_back(ValueTypeOf(column));
  std::optional<FusedMaps> fused = FuseMaps(std::move(maps), std::move(types), *spec, *columns);
  if (!fused.has_value()) return;
  steps.resize(first + fused->maps.size());
  for (size_t m = 0; m < fused->maps.size(); ++m) steps[first + m].spec = std::move(fused->maps[m].spec);
  std::vector<QueryColumn> kept;
  for (const uint32_t number : fused->kept) kept.push_back(std::move(flow->columns[number]));
  flow->columns = std::move(kept);
  *spec = std::move(fused->spec);
  *columns = std::move(fused->read);
}

}  // namespace quern::query
