// SPDX-License-Identifier: Apache-2.0
// The hole of the aggregation template that adds up runs of rows eight rows at a time.
#ifndef QUERN_CODEGEN_EMIT_EMIT_LANE_TOTALS_H_
#define QUERN_CODEGEN_EMIT_EMIT_LANE_TOTALS_H_

#include <cstdint>

#include "codegen/emit/emitter.h"

namespace quern {

// prefetch_rows: the distance for columns of the batch; 0: none.
void EmitLaneTotals(const QuernAggregateDescriptor& descriptor, uint32_t prefetch_rows, Emitter* emitter);

}  // namespace quern

#endif  // QUERN_CODEGEN_EMIT_EMIT_LANE_TOTALS_H_
