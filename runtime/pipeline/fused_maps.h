// SPDX-License-Identifier: Apache-2.0
// Maps that stand in front of an aggregation become expressions of its spec, which its kernel computes in the loop that
// adds them up: aggregate sum(price * (1 - discount)) by customer, of the columns price, discount, customer:
//
//     map        in=f64,f64 out=multiply($0,subtract(1:f64,$1))  [$0, $1]               one column more, $3
//     aggregate  keys=i64 aggs=sum(f64)  [$2; $3]
//
//     aggregate  keys=i64 in=f64,f64 aggs=sum(multiply($0,subtract(1:f64,$1)))  [$2; $0, $1]
#ifndef QUERN_RUNTIME_PIPELINE_FUSED_MAPS_H_
#define QUERN_RUNTIME_PIPELINE_FUSED_MAPS_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/pipeline/pipeline_columns.h"
#include "runtime/spec/aggregation_spec.h"
#include "runtime/spec/map_spec.h"
#include "runtime/spec/spec.h"

namespace quern {

struct MapStep {
  MapSpec spec;
  std::vector<uint32_t> columns;  // that it reads
};

// What is left of the maps, and the aggregation that reads what is behind them.
struct FusedMaps {
  std::vector<MapStep> maps;  // with the results that are keys
  AggregationSpec spec;
  StepColumns read;
  std::vector<uint32_t> kept;  // the columns behind the maps that are still there, by their numbers before
};

// maps: one after the other, right in front of an aggregation `spec` that reads `read`. columns: those behind the last
// map, as expressions read them; nullopt: of a type that they do not have. Returns nullopt where nothing is fused.
std::optional<FusedMaps> FuseMaps(std::vector<MapStep> maps, std::vector<std::optional<ValueType>> columns,
                                  const AggregationSpec& spec, const StepColumns& read);

// The same for the maps at the end of a list of steps, which have members `spec` and `columns`. Returns the columns
// that are kept; nullopt: nothing has changed.
template <class Step>
std::optional<std::vector<uint32_t>> FuseLastMaps(std::vector<std::optional<ValueType>> columns,
                                                  std::vector<Step>* steps, AggregationSpec* spec, StepColumns* read) {
  size_t first = steps->size();
  while (first != 0 && Is<MapSpec>((*steps)[first - 1].spec)) --first;
  std::vector<MapStep> maps;
  for (size_t s = first; s < steps->size(); ++s)
    maps.push_back({std::get<MapSpec>((*steps)[s].spec), (*steps)[s].columns.keys});
  std::optional<FusedMaps> fused = FuseMaps(std::move(maps), std::move(columns), *spec, *read);
  if (!fused.has_value()) return std::nullopt;
  steps->resize(first + fused->maps.size());
  for (size_t m = 0; m < fused->maps.size(); ++m) (*steps)[first + m].spec = std::move(fused->maps[m].spec);
  *spec = std::move(fused->spec);
  *read = std::move(fused->read);
  return std::move(fused->kept);
}

}  // namespace quern

#endif  // QUERN_RUNTIME_PIPELINE_FUSED_MAPS_H_
