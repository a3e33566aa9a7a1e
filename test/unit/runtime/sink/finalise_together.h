// SPDX-License-Identifier: Apache-2.0
// Threads that finalise one sink, each in its own way.
#ifndef QUERN_TEST_UNIT_RUNTIME_SINK_FINALISE_TOGETHER_H_
#define QUERN_TEST_UNIT_RUNTIME_SINK_FINALISE_TOGETHER_H_

#include <cstdint>
#include <thread>

#include "runtime/sink/sink.h"

namespace quern::test {

// Threads of even numbers wait for the others; those of odd numbers never do, like threads of a host's scheduler.
inline absl::Status FinaliseTogether(Sink* sink, uint32_t thread) {
  if (thread % 2 == 0) return sink->Finalise();
  absl::StatusOr<WorkState> state = sink->Work();
  while (state.ok() && *state != WorkState::kDone) {
    if (*state == WorkState::kBusy) std::this_thread::yield();
    state = sink->Work();
  }
  return state.status();
}

}  // namespace quern::test

#endif  // QUERN_TEST_UNIT_RUNTIME_SINK_FINALISE_TOGETHER_H_
