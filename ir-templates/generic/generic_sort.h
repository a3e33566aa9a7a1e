// SPDX-License-Identifier: Apache-2.0
// The sort kernel that needs no compilation (generic_sort.cc).
#ifndef QUERN_IR_TEMPLATES_GENERIC_GENERIC_SORT_H_
#define QUERN_IR_TEMPLATES_GENERIC_GENERIC_SORT_H_

#include "runtime/abi/sort_abi.h"

namespace quern {

// Entry points that read everything from the descriptor, tuning included.
QuernSortEntryPoints GenericSortKernel();

}  // namespace quern

#endif  // QUERN_IR_TEMPLATES_GENERIC_GENERIC_SORT_H_
