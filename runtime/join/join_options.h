// SPDX-License-Identifier: Apache-2.0
// What a plan tells the runtime of a join: how, never what.
#ifndef QUERN_RUNTIME_JOIN_JOIN_OPTIONS_H_
#define QUERN_RUNTIME_JOIN_JOIN_OPTIONS_H_

#include <cstdint>

#include "runtime/rows/prefetch.h"

namespace quern {

// kAuto: dense where the keys' range allows it, else open where the keys are unique and the tuples narrow, else
// unchained. The others ask for a layout where the data allows it and fall back in the same order.
enum class LayoutChoice : uint8_t { kAuto, kUnchained, kDense, kOpen };

struct JoinOptions {
  PrefetchSchedules prefetch;  // looked at when the table is complete, by its bytes
  CacheSizes caches;
  LayoutChoice layout = LayoutChoice::kAuto;
  uint32_t open_load_percent = 40;
  uint32_t partition_bits = 6;
  bool huge_pages = true;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_JOIN_JOIN_OPTIONS_H_
