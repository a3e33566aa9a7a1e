// SPDX-License-Identifier: Apache-2.0
// What makes the library usable in a child that is forked while other threads run jobs and compile (fork_safety.cc).
#ifndef QUERN_RUNTIME_BASE_FORK_SAFETY_H_
#define QUERN_RUNTIME_BASE_FORK_SAFETY_H_

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <new>

namespace quern {

// A fork by another thread waits until no NoFork exists, and a new one waits until the fork is over. For work that
// leaves shared state inconsistent until it ends: critical sections, initialisations, compilations. It must end within
// milliseconds, and must not wait for a thread that may be outside of a NoFork, nor for anything that a host's thread
// may hold while it forks. One within another costs nothing. *Cost*: two atomic additions, in a cache line that few
// threads share.
class NoFork {
 public:
  NoFork();
  ~NoFork();
  NoFork(const NoFork&) = delete;
  NoFork& operator=(const NoFork&) = delete;

  // Whether this thread has one.
  static bool Exists();
  // Calls the function on this thread when its outermost NoFork has ended; now if it has none. One function at a time.
  static void CallAfterwards(void (*function)());
};

// Suspends this thread's NoFork, for a wait on a thread that may be outside of one.
class ForkAllowed {
 public:
  ForkAllowed();
  ~ForkAllowed();
  ForkAllowed(const ForkAllowed&) = delete;
  ForkAllowed& operator=(const ForkAllowed&) = delete;

 private:
  const uint32_t depth_;
};

// A mutex for state that jobs of several threads share and that a child inherits: nobody holds it while the process
// forks. Threads wait with a ForkSafeCondition.
class ForkSafeMutex {
 public:
  constexpr ForkSafeMutex() = default;
  ForkSafeMutex(const ForkSafeMutex&) = delete;
  ForkSafeMutex& operator=(const ForkSafeMutex&) = delete;

  void lock();
  void unlock();

 private:
  std::mutex mutex_;
};

// std::condition_variable_any for a ForkSafeMutex, which can be made anew without memory: that of the standard library
// allocates. It may not be destroyed while threads wait.
class ForkSafeCondition {
 public:
  ForkSafeCondition() = default;
  ForkSafeCondition(const ForkSafeCondition&) = delete;
  ForkSafeCondition& operator=(const ForkSafeCondition&) = delete;

  template <class Predicate>
  void wait(std::unique_lock<ForkSafeMutex>& lock, const Predicate& is_over) {
    while (!is_over()) {
      const Unlocked unlocked(&mutex_, &lock);
      condition_.wait(unlocked.inner);
    }
  }
  // Returns what `is_over` returns in the end.
  template <class Time, class Predicate>
  bool wait_until(std::unique_lock<ForkSafeMutex>& lock, const Time& until, const Predicate& is_over) {
    while (!is_over()) {
      const Unlocked unlocked(&mutex_, &lock);
      if (condition_.wait_until(unlocked.inner, until) == std::cv_status::no_timeout) continue;
      unlocked.Relock();
      return is_over();
    }
    return true;
  }
  void notify_all() {
    const std::lock_guard<std::mutex> inner(mutex_);
    condition_.notify_all();
  }

  // In a child: forgets the threads that waited, which are gone.
  void MakeAnew() { new (this) ForkSafeCondition; }

 private:
  // Gives up the lock of the caller once the inner one is held, so that no notification is missed between the two.
  class Unlocked {
   public:
    Unlocked(std::mutex* mutex, std::unique_lock<ForkSafeMutex>* lock) : inner(*mutex), outer_(lock) { lock->unlock(); }
    ~Unlocked() { Relock(); }
    Unlocked(const Unlocked&) = delete;
    Unlocked& operator=(const Unlocked&) = delete;
    void Relock() const {
      if (outer_->owns_lock()) return;
      inner.unlock();
      outer_->lock();
    }
    mutable std::unique_lock<std::mutex> inner;

   private:
    std::unique_lock<ForkSafeMutex>* outer_;
  };

  std::mutex mutex_;
  std::condition_variable condition_;
};

// What a child has to put right, in this order. The child has one thread, and no ForkSafeMutex is locked. It may be
// short of memory, and an exception would end it: a reset allocates nothing.
enum class ForkReset : uint8_t {
  kLog,           // the lock under which a callback runs
  kKernelCache,   // kernels that other threads were compiling
  kCompileQueue,  // the thread, and jobs that waited; returns them to their tiers
  kCapture,       // the file of the process
  kTuning,        // the tuning that another thread ran
};
inline constexpr uint32_t kNumForkResets = static_cast<uint32_t>(ForkReset::kTuning) + 1;

// Calls `reset` in each child from now on.
void CallInForkedChild(ForkReset which, void (*reset)());

}  // namespace quern

#endif  // QUERN_RUNTIME_BASE_FORK_SAFETY_H_
