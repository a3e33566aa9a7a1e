// SPDX-License-Identifier: Apache-2.0
// What makes the library usable in a child that is forked while other threads run jobs and compile (fork_safety.cc).
#ifndef QUERN_RUNTIME_BASE_FORK_SAFETY_H_
#define QUERN_RUNTIME_BASE_FORK_SAFETY_H_

#include <cstdint>
#include <mutex>

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
// forks. With a std::condition_variable_any, which a ForkReset makes anew in the child: it may remember threads that
// are gone.
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

// What a child has to put right, in this order. The child has one thread, and no ForkSafeMutex is locked.
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
