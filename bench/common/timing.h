// SPDX-License-Identifier: Apache-2.0
// The clock of the benches, threads for what they run, and runs that take turns.
#ifndef QUERN_BENCH_COMMON_TIMING_H_
#define QUERN_BENCH_COMMON_TIMING_H_

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/status.h"

namespace quern::bench {

// The time in seconds.
inline double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Runs `work` on that many threads, the calling one included, and waits for all of them.
template <class Work>
absl::Status OnThreads(unsigned threads, const Work& work) {
  std::vector<absl::Status> outcomes(threads);
  std::vector<std::thread> others;
  for (unsigned i = 1; i < threads; ++i) others.emplace_back([&, i] { outcomes[i] = work(); });
  outcomes[0] = work();
  for (std::thread& other : others) other.join();
  for (const absl::Status& outcome : outcomes) QUERN_RETURN_IF_ERROR(outcome);
  return absl::OkStatus();
}

// A run that is timed as a whole.
struct Timed {
  std::function<absl::Status()> run;
  double best_s = 1e9;
};

// Runs each once, then each again, and so on; the best turn of each counts.
inline absl::Status TakeTurns(int turns, std::vector<Timed>* all) {
  for (int turn = 0; turn < turns; ++turn) {
    for (Timed& timed : *all) {
      const double start = Now();
      QUERN_RETURN_IF_ERROR(timed.run());
      timed.best_s = std::min(timed.best_s, Now() - start);
    }
  }
  return absl::OkStatus();
}

}  // namespace quern::bench

#endif  // QUERN_BENCH_COMMON_TIMING_H_
