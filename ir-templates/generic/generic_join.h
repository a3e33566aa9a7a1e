// SPDX-License-Identifier: Apache-2.0
// The join kernel that needs no compilation (generic_join.cc).
#ifndef QUERN_IR_TEMPLATES_GENERIC_GENERIC_JOIN_H_
#define QUERN_IR_TEMPLATES_GENERIC_GENERIC_JOIN_H_

#include "runtime/abi/join_abi.h"

namespace quern {

// Entry points that read everything from args->descriptor, tuning included.
QuernJoinEntryPoints GenericJoinKernel();

}  // namespace quern

#endif  // QUERN_IR_TEMPLATES_GENERIC_GENERIC_JOIN_H_
