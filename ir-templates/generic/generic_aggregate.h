// SPDX-License-Identifier: Apache-2.0
// The aggregation kernel that needs no compilation (generic_aggregate.cc).
#ifndef QUERN_IR_TEMPLATES_GENERIC_GENERIC_AGGREGATE_H_
#define QUERN_IR_TEMPLATES_GENERIC_GENERIC_AGGREGATE_H_

#include "runtime/abi/aggregate_abi.h"

namespace quern {

// Entry points that read everything from the descriptor, tuning included.
QuernAggregateEntryPoints GenericAggregateKernel();

}  // namespace quern

#endif  // QUERN_IR_TEMPLATES_GENERIC_GENERIC_AGGREGATE_H_
