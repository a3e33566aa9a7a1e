// SPDX-License-Identifier: Apache-2.0
// The generic map kernel, which interprets a descriptor.
#ifndef QUERN_IR_TEMPLATES_GENERIC_GENERIC_MAP_H_
#define QUERN_IR_TEMPLATES_GENERIC_GENERIC_MAP_H_

#include "runtime/abi/map_abi.h"

namespace quern {

QuernMapEntryPoints GenericMapKernel();

}  // namespace quern

#endif  // QUERN_IR_TEMPLATES_GENERIC_GENERIC_MAP_H_
