// SPDX-License-Identifier: Apache-2.0
// Threads that wait for a device in place of those that compute.
#ifndef QUERN_RUNTIME_SPILL_IO_THREADS_H_
#define QUERN_RUNTIME_SPILL_IO_THREADS_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace quern {

// *Threads*: any number ask at once.
class IoThreads {
 public:
  // With all signals blocked. Null where the system has no thread.
  static std::unique_ptr<IoThreads> Start(uint32_t num_threads);
  IoThreads(const IoThreads&) = delete;
  IoThreads& operator=(const IoThreads&) = delete;
  // Runs what was asked for before.
  ~IoThreads();

  // `run` must not throw.
  void Ask(std::function<void()> run);

 private:
  IoThreads() = default;
  void Run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> asked_;
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_SPILL_IO_THREADS_H_
