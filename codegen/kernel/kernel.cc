// SPDX-License-Identifier: Apache-2.0
#include "codegen/kernel/kernel.h"

namespace quern {

const char* CacheText(CacheOutcome outcome) {
  switch (outcome) {
    case CacheOutcome::kOff: return "off";
    case CacheOutcome::kMiss: return "miss";
    case CacheOutcome::kMemory: return "memory";
    case CacheOutcome::kDisk: return "disk";
  }
  return "off";
}

}  // namespace quern
