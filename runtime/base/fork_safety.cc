// SPDX-License-Identifier: Apache-2.0
// A forked child has one thread, the one that called fork, and a copy of the memory as other threads left it at that
// moment: a mutex that one of them had locked stays locked for ever, an initialisation that one of them had begun never
// ends, and LLVM has locks of its own that nobody else can see. So a fork waits until no thread is at such a place:
//
//     thread 1   ..job.. [take kept pages] ..job.. [end of job: add counters]  waits  ..job..
//     thread 2   [compile                             ]  ..job..
//     thread 3              fork() -> closes the gate .. waits for thread 2 .. fork, opens the gate
//
// Everything in brackets is within a NoFork. Each thread is counted in one of 16 counters while it has one. fork first
// closes the gate, so that no thread begins another, and then waits until all counters are zero: a few microseconds, or
// the rest of a compilation. All counters are zero at the fork, so no lock of Quern is held, in whichever order threads
// take them. That is why locks need no order for the sake of fork; where a thread takes several, these are their
// orders: capture's write lock, then its log; compile queue, then code memory (a job that nobody owns is destroyed).
//
// All of Quern's handlers of fork are these three, registered when the library is loaded. Handlers that a host
// registers later run before ours in the parent and after ours in the child; they may use the library. What a child
// has to put right is a ForkReset. posix_spawn, vfork and _Fork do not get here.
//
// A callback of the host (a log line) may fork, or wait for a lock that another thread holds while it forks, as
// Python's GIL. So callbacks are called outside of any NoFork (CallAfterwards).
//
// Locks of a single job or operator are not handled: a child cannot continue a job that other threads were running.
#include "runtime/base/fork_safety.h"

#include <pthread.h>

#include <array>
#include <atomic>
#include <utility>

#include "runtime/base/thread_local.h"

namespace quern {
namespace {

constexpr uint32_t kNumCounters = 16;

struct alignas(64) Counter {
  std::atomic<uint32_t> num_threads{0};
};

constinit std::array<Counter, kNumCounters> counters;
constinit std::atomic<uint32_t> is_closed{0};  // 1 from before a fork until after it
constinit std::atomic<uint32_t> num_left{0};   // raised when a thread leaves while the gate is closed
constinit std::atomic<uint32_t> next_counter{0};
constinit std::mutex fork_mutex;  // one fork at a time
constinit std::array<std::atomic<void (*)()>, kNumForkResets> resets;

QUERN_THREAD_LOCAL uint32_t depth = 0;
QUERN_THREAD_LOCAL void (*call_afterwards)() = nullptr;

std::atomic<uint32_t>& CounterOfThread() {
  static QUERN_THREAD_LOCAL const uint32_t mine = next_counter.fetch_add(1, std::memory_order_relaxed) % kNumCounters;
  return counters[mine].num_threads;
}

void Leave() {
  CounterOfThread().fetch_sub(1);
  if (is_closed.load() == 0) return;
  num_left.fetch_add(1);
  num_left.notify_all();
}

// Counts first and looks at the gate then, where a fork closes the gate first and looks at the counters then: one of
// the two sees the other.
void Enter() {
  while (true) {
    CounterOfThread().fetch_add(1);
    if (is_closed.load() == 0) return;
    Leave();
    is_closed.wait(1);
  }
}

bool IsAnyInside() {
  for (const Counter& counter : counters)
    if (counter.num_threads.load() != 0) return true;
  return false;
}

void BeforeFork() {
  // A thread may fork within a NoFork of its own; two such threads must not wait for each other.
  if (depth > 0) Leave();
  ++depth;  // it may enter while the gate is closed
  fork_mutex.lock();
  is_closed.store(1);
  while (true) {
    const uint32_t seen = num_left.load();
    if (!IsAnyInside()) return;
    num_left.wait(seen);
  }
}

void AfterForkInParent() {
  is_closed.store(0);
  is_closed.notify_all();
  fork_mutex.unlock();
  if (--depth > 0) Enter();
}

void AfterForkInChild() {
  for (Counter& counter : counters) counter.num_threads.store(0);
  is_closed.store(0);
  fork_mutex.unlock();
  if (--depth > 0) Enter();
  for (const auto& reset : resets) {
    if (void (*const call)() = reset.load()) call();
  }
}

const int kRegistered = pthread_atfork(&BeforeFork, &AfterForkInParent, &AfterForkInChild);

}  // namespace

NoFork::NoFork() {
  if (depth++ == 0) Enter();
}

NoFork::~NoFork() {
  if (--depth > 0) return;
  Leave();
  if (call_afterwards != nullptr) std::exchange(call_afterwards, nullptr)();
}

bool NoFork::Exists() { return depth > 0; }

void NoFork::CallAfterwards(void (*function)()) {
  if (depth == 0) return function();
  call_afterwards = function;
}

ForkAllowed::ForkAllowed() : depth_(std::exchange(depth, 0)) {
  if (depth_ > 0) Leave();
}

ForkAllowed::~ForkAllowed() {
  if (depth_ > 0) Enter();
  depth = depth_;
}

// A thread that waits for the mutex is counted already, and so is the one that holds it.
void ForkSafeMutex::lock() {
  if (depth++ == 0) Enter();
  mutex_.lock();
}

void ForkSafeMutex::unlock() {
  mutex_.unlock();
  if (--depth > 0) return;
  Leave();
  if (call_afterwards != nullptr) std::exchange(call_afterwards, nullptr)();
}

void CallInForkedChild(ForkReset which, void (*reset)()) {
  static_cast<void>(kRegistered);
  resets[static_cast<uint32_t>(which)].store(reset);
}

}  // namespace quern
