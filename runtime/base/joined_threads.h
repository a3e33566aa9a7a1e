// SPDX-License-Identifier: Apache-2.0
// Threads of one scope.
#ifndef QUERN_RUNTIME_BASE_JOINED_THREADS_H_
#define QUERN_RUNTIME_BASE_JOINED_THREADS_H_

#include <cstddef>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace quern {

// Joins its threads when the scope is left, by an exception too: the destructor of a thread that runs ends the process.
class JoinedThreads {
 public:
  JoinedThreads() = default;
  JoinedThreads(const JoinedThreads&) = delete;
  JoinedThreads& operator=(const JoinedThreads&) = delete;
  ~JoinedThreads() { Join(); }

  // Starts a thread. False, and nothing is changed, where the system has no more threads or no memory for one.
  template <class Run>
  bool Start(Run run) {
    try {
      threads_.emplace_back(std::move(run));
      return true;
    } catch (const std::system_error&) {
      return false;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }
  void Join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  size_t size() const { return threads_.size(); }

 private:
  std::vector<std::thread> threads_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_BASE_JOINED_THREADS_H_
