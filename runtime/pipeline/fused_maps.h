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
#include <vector>

#include "runtime/pipeline/pipeline_columns.h"
#include "runtime/spec/aggregation_spec.h"
#include "runtime/spec/map_spec.h"

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

}  // namespace quern

#endif  // QUERN_RUNTIME_PIPELINE_FUSED_MAPS_H_
