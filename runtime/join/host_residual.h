// SPDX-License-Identifier: Apache-2.0
// The part of a join's residual that the host evaluates, over many pairs of rows at once.
#ifndef QUERN_RUNTIME_JOIN_HOST_RESIDUAL_H_
#define QUERN_RUNTIME_JOIN_HOST_RESIDUAL_H_

#include <cstdint>

namespace quern {

// Pairs that a call shows to the host at most.
constexpr uint32_t kMaxHostPairs = 1024;

struct HostResidual {
  // Sets keep[i], 0 at first, where probe row id probe_rows[i] and build row id build_rows[i] match, for i < n.
  // context: the prober's. Returns 0, or else ends the probe. Must not throw. *Threads*: called by each prober.
  int (*keep_pairs)(void* user, void* context, const uint64_t* probe_rows, const uint64_t* build_rows, uint64_t n,
                    uint8_t* keep) = nullptr;
  void* user = nullptr;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_JOIN_HOST_RESIDUAL_H_
