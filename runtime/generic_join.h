// SPDX-License-Identifier: Apache-2.0
// The join kernel that needs no compilation (generic_join.cc).
#ifndef QUERN_RUNTIME_GENERIC_JOIN_H_
#define QUERN_RUNTIME_GENERIC_JOIN_H_

#include "runtime/kernel_abi.h"

namespace quern {

// Entry points that read everything from args->shape, tuning included.
QuernJoinEntryPoints GenericJoinKernel();

}  // namespace quern

#endif  // QUERN_RUNTIME_GENERIC_JOIN_H_
