// SPDX-License-Identifier: Apache-2.0
// The filter kernel that needs no compilation (generic_filter.cc).
#ifndef QUERN_IR_TEMPLATES_GENERIC_GENERIC_FILTER_H_
#define QUERN_IR_TEMPLATES_GENERIC_GENERIC_FILTER_H_

#include "runtime/abi/filter_abi.h"

namespace quern {

// Entry points that read everything from the descriptor.
QuernFilterEntryPoints GenericFilterKernel();

}  // namespace quern

#endif  // QUERN_IR_TEMPLATES_GENERIC_GENERIC_FILTER_H_
