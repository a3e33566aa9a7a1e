// SPDX-License-Identifier: Apache-2.0
// Four slots, each with one scratch or none. A probe takes what it finds in the first slot that is not empty, and
// leaves it in the first empty one; a fifth scratch is freed. The arrays are written before they are read, but for
// prefetches, so they are not zeroed.
#include "runtime/join/probe_scratch.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>

namespace quern {
namespace {

constinit std::array<std::atomic<QuernProbeScratch*>, 4> kept = {};

}  // namespace

ProbeScratch TakeProbeScratch() {
  QuernProbeScratch* scratch = nullptr;
  for (std::atomic<QuernProbeScratch*>& slot : kept) {
    if (scratch == nullptr) scratch = slot.exchange(nullptr);
  }
  if (scratch == nullptr) scratch = new QuernProbeScratch;
  std::memset(static_cast<void*>(scratch), 0, offsetof(QuernProbeScratch, rows));
  return ProbeScratch(scratch);
}

void GiveScratchBack::operator()(QuernProbeScratch* scratch) const {
  for (std::atomic<QuernProbeScratch*>& slot : kept) {
    QuernProbeScratch* none = nullptr;
    if (slot.compare_exchange_strong(none, scratch)) return;
  }
  delete scratch;
}

}  // namespace quern
