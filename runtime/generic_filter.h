// SPDX-License-Identifier: Apache-2.0
// The filter kernel that needs no compilation (generic_filter.cc).
#ifndef QUERN_RUNTIME_GENERIC_FILTER_H_
#define QUERN_RUNTIME_GENERIC_FILTER_H_

#include "runtime/filter_abi.h"

namespace quern {

// Entry points that read everything from the shape.
QuernFilterEntryPoints GenericFilterKernel();

}  // namespace quern

#endif  // QUERN_RUNTIME_GENERIC_FILTER_H_
