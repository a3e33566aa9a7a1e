// SPDX-License-Identifier: Apache-2.0
// Moves expressions that an aggregation alone reads from the map in front of it into the aggregation's own kernel.
#ifndef QUERN_TOOLS_QUERY_FUSED_MAPS_H_
#define QUERN_TOOLS_QUERY_FUSED_MAPS_H_

#include "runtime/spec/aggregation_spec.h"
#include "tools/query/flow.h"

namespace quern::query {

// The aggregation is what comes next in the flow, whose last steps may be maps. columns: of the flow, as the
// aggregation reads them. Where a map has results that are arguments or filters of aggregates, and no keys, these
// become expressions of the spec, and the map is left with the others or goes. Changes nothing where a column of the
// aggregation has a type that no expression has.
void FuseMaps(Flow* flow, AggregationSpec* spec, StepColumns* columns);

}  // namespace quern::query

#endif  // QUERN_TOOLS_QUERY_FUSED_MAPS_H_
