// SPDX-License-Identifier: Apache-2.0
// A request to stop a job, which its loops look at every few milliseconds.
#ifndef QUERN_RUNTIME_BASE_STOP_FLAG_H_
#define QUERN_RUNTIME_BASE_STOP_FLAG_H_

#include <atomic>

#include "absl/status/status.h"

namespace quern {

// *Threads*: any.
class StopFlag {
 public:
  // hosts_flag: null, or a number that the host, perhaps its signal handler, makes non-zero; not owned.
  explicit StopFlag(const volatile int* hosts_flag = nullptr) : hosts_flag_(hosts_flag) {}

  // May be called by a signal handler. There is no way back.
  void Stop() noexcept { stopped_.store(true, std::memory_order_relaxed); }

  bool is_set() const noexcept {
    return stopped_.load(std::memory_order_relaxed) ||
           (hosts_flag_ != nullptr && __atomic_load_n(hosts_flag_, __ATOMIC_RELAXED) != 0);
  }

  // Cancelled where the job is to stop.
  absl::Status Check() const {
    return is_set() ? absl::CancelledError("job cancelled: the host has stopped it; accepted: a new job")
                    : absl::OkStatus();
  }

 private:
  std::atomic<bool> stopped_{false};
  const volatile int* const hosts_flag_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_BASE_STOP_FLAG_H_
