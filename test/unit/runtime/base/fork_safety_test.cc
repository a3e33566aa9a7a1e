// SPDX-License-Identifier: Apache-2.0
// fork while other threads hold locks and are in the middle of something.
#include "runtime/base/fork_safety.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

namespace quern {
namespace {

constexpr unsigned kWatchdogSeconds = 300;  // ends a child that hangs

template <class Body>
int StatusOfChild(const Body& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(kWatchdogSeconds);
    _exit(body());
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

class Threads {
 public:
  template <class Body>
  explicit Threads(const Body& body) {
    for (int i = 0; i < 3; ++i)
      threads_.emplace_back([this, body] {
        while (!stop_) body();
      });
  }
  ~Threads() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

TEST(ForkSafety, AChildFindsMutexesUnlocked) {
  ForkSafeMutex outer, inner;
  const Threads threads([&] {
    outer.lock();
    inner.lock();
    std::this_thread::yield();
    inner.unlock();
    outer.unlock();
  });
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(StatusOfChild([&] {
                outer.lock();
                inner.lock();
                inner.unlock();
                outer.unlock();
                return 0;
              }),
              0);
  }
}

TEST(ForkSafety, AChildFindsNothingHalfDone) {
  std::atomic<int> num_begun{0}, num_ended{0};
  const Threads threads([&] {
    const NoFork no_fork, once_more;
    ++num_begun;
    std::this_thread::yield();
    ++num_ended;
  });
  for (int i = 0; i < 100; ++i) EXPECT_EQ(StatusOfChild([&] { return num_begun == num_ended ? 0 : 1; }), 0);
}

TEST(ForkSafety, ManyThreadsForkAtOnce) {
  std::atomic<int> num_bad{0};
  {
    ForkSafeMutex mutex;
    std::atomic<int> num_forks{0};
    const Threads threads([&] {
      mutex.lock();
      mutex.unlock();
      if (num_forks++ >= 60) return;
      if (StatusOfChild([&] { return mutex.lock(), mutex.unlock(), 0; }) != 0) ++num_bad;
    });
    while (num_forks < 60) std::this_thread::yield();
  }
  EXPECT_EQ(num_bad, 0);
}

// As a callback that is called within one may do.
TEST(ForkSafety, AThreadForksWithinItsOwn) {
  const NoFork no_fork;
  EXPECT_EQ(StatusOfChild([] { return NoFork::Exists() ? 0 : 1; }), 0);
  EXPECT_TRUE(NoFork::Exists());
}

TEST(ForkSafety, AForkPassesAThreadThatAllowsIt) {
  std::atomic<bool> waits{false}, has_forked{false};
  std::thread thread([&] {
    const NoFork no_fork;
    const ForkAllowed while_waiting;
    EXPECT_FALSE(NoFork::Exists());
    waits = true;
    while (!has_forked) std::this_thread::yield();
  });
  while (!waits) std::this_thread::yield();
  EXPECT_EQ(StatusOfChild([] { return 0; }), 0);
  has_forked = true;
  thread.join();
}

int num_calls = 0;

TEST(ForkSafety, AFunctionIsCalledAfterwards) {
  num_calls = 0;
  const auto call = [] { num_calls += NoFork::Exists() ? 100 : 1; };
  NoFork::CallAfterwards(call);
  EXPECT_EQ(num_calls, 1);
  ForkSafeMutex mutex;
  {
    const NoFork no_fork;
    NoFork::CallAfterwards(call);
    mutex.lock();
    mutex.unlock();
    EXPECT_EQ(num_calls, 1);
  }
  EXPECT_EQ(num_calls, 2);
  mutex.lock();
  NoFork::CallAfterwards(call);
  EXPECT_EQ(num_calls, 2);
  mutex.unlock();
  EXPECT_EQ(num_calls, 3);
}

TEST(ForkSafety, OnlyAChildIsReset) {
  static int num_resets;
  num_resets = 0;
  CallInForkedChild(ForkReset::kTuning, [] { num_resets += NoFork::Exists() ? 100 : 1; });
  EXPECT_EQ(StatusOfChild([] { return num_resets == 1 ? 0 : 1; }), 0);
  EXPECT_EQ(num_resets, 0);
}

}  // namespace
}  // namespace quern
