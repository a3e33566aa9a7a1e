// SPDX-License-Identifier: Apache-2.0
// What a plan tells the runtime of a join: how, never what.
#ifndef QUERN_RUNTIME_JOIN_OPTIONS_H_
#define QUERN_RUNTIME_JOIN_OPTIONS_H_

#include <cstdint>

namespace quern {

// Distances for the classes of table size. The class of a table is found at Finalise from its own bytes.
struct PrefetchClasses {
  uint64_t l2_bytes = 1 << 20;   // tables up to this size: l2
  uint64_t l3_bytes = 32 << 20;  // up to this size: l3; above: dram
  uint32_t l2_distance = 0;      // rows
  uint32_t l3_distance = 64;
  uint32_t dram_distance = 128;

  uint32_t DistanceFor(uint64_t table_bytes) const;
  // "l2", "l3" or "dram".
  const char* NameFor(uint64_t table_bytes) const;
};

// kAuto: dense where the keys' range allows it, else open where the keys are unique and the tuples narrow, else unchained. The others ask
// for a layout where the data allows it and fall back in the same order.
enum class LayoutChoice : uint8_t { kAuto, kUnchained, kDense, kOpen };

struct JoinOptions {
  PrefetchClasses prefetch;
  LayoutChoice layout = LayoutChoice::kAuto;
  uint32_t open_load_percent = 40;
  uint32_t partition_bits = 6;
  bool huge_pages = true;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_JOIN_OPTIONS_H_
