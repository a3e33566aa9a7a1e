// SPDX-License-Identifier: Apache-2.0
// The aggregation kernel that needs no compilation (generic_aggregate.cc).
#ifndef QUERN_RUNTIME_GENERIC_AGGREGATE_H_
#define QUERN_RUNTIME_GENERIC_AGGREGATE_H_

#include "runtime/aggregate_abi.h"

namespace quern {

// Entry points that read everything from the shape, tuning included.
QuernAggregateEntryPoints GenericAggregateKernel();

}  // namespace quern

#endif  // QUERN_RUNTIME_GENERIC_AGGREGATE_H_
