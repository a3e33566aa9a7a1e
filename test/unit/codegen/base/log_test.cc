// SPDX-License-Identifier: Apache-2.0
// Lines of the log while the process forks: in a child, and while a callback waits.
#include "codegen/base/log.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/fork_safety.h"

namespace quern {
namespace {

constexpr unsigned kWatchdogSeconds = 300;  // ends a child that hangs

class LogTest : public testing::Test {
 protected:
  void TearDown() override { SetLogCallback(nullptr); }
};

// The callback waits for a lock that the thread that forks holds, as a Python function waits for the GIL.
TEST_F(LogTest, AForkDoesNotWaitForACallback) {
  std::mutex of_host;
  std::atomic<int> num_calls{0};
  SetLogCallback([&](LogLevel, std::string_view) {
    ++num_calls;
    const std::lock_guard<std::mutex> lock(of_host);
  });
  std::unique_lock<std::mutex> lock(of_host);
  std::thread logs([] {
    const NoFork no_fork;
    WarnOnce("a line of a compilation");
  });
  while (num_calls == 0) std::this_thread::yield();
  const pid_t child = fork();
  if (child == 0) {
    alarm(kWatchdogSeconds);
    lock.unlock();
    Log(LogLevel::kInfo, "a line of the child");
    _exit(num_calls == 2 ? 0 : 1);
  }
  lock.unlock();
  logs.join();
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(LogTest, ACallbackForks) {
  int status = -1;
  SetLogCallback([&](LogLevel, std::string_view line) {
    if (line != "fork") return;
    const pid_t child = fork();
    if (child == 0) alarm(kWatchdogSeconds);
    else waitpid(child, &status, 0);
  });
  const pid_t parent = getpid();
  Log(LogLevel::kInfo, "fork");
  if (getpid() != parent) {
    Log(LogLevel::kInfo, "a line of the child");
    _exit(0);
  }
  EXPECT_EQ(status, 0);
}

TEST_F(LogTest, LinesComeWhenTheCompilationEnds) {
  std::vector<std::string> lines;
  SetLogCallback([&](LogLevel, std::string_view line) { lines.emplace_back(line); });
  {
    const NoFork no_fork;
    Log(LogLevel::kInfo, "first");
    Log(LogLevel::kInfo, "second");
    EXPECT_TRUE(lines.empty());
  }
  EXPECT_EQ(lines, (std::vector<std::string>{"first", "second"}));
}

}  // namespace
}  // namespace quern
