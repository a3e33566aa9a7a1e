// SPDX-License-Identifier: Apache-2.0
// A process ends whenever it likes: while threads of it compile, while they run kernels that are evicted. It ends with
// the status that it gave. (After the library was closed: Inputs/closed_library.c.)
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "hosts/c/quern.h"
#include "test/unit/seed.h"

namespace {

constexpr int kStatus = 42;

// Runs one of the tests below in a process of its own, since they end it.
int StatusOf(const std::string& test, int round = 0) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("QUERN_TEST_ROUND", std::to_string(round).c_str(), 1);
    // A thread that is stopped in the middle of its work looks like a leak to a sanitizer.
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
    const std::string filter = "--gtest_filter=Ends.DISABLED_" + test;
    execl("/proc/self/exe", "host_tests", filter.c_str(), "--gtest_also_run_disabled_tests", "--gtest_brief=1",
          nullptr);
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Ends the process while the threads are at it: after 20 to 60 ms, another time in each round.
[[noreturn]] void ExitWhile(void (*work)(int thread)) {
  for (int i = 0; i < 3; ++i) std::thread(work, i).detach();
  std::mt19937_64 random(quern::test::SeedOfTest() + std::strtoull(std::getenv("QUERN_TEST_ROUND"), nullptr, 10));
  std::this_thread::sleep_for(std::chrono::milliseconds(20 + random() % 40));
  std::exit(kStatus);
}

quern_kernel* Compile(const std::string& spec, quern_engine engine) {
  quern_kernel* kernel = nullptr;
  quern_error error = {};
  quern_compile(spec.c_str(), engine, nullptr, &kernel, &error);
  return kernel;
}

void CompileForEver(int thread) {
  for (int i = 0;; ++i)
    quern_kernel_destroy(Compile("filter i64 >= " + std::to_string(thread * 1'000'000 + i), QUERN_ENGINE_JIT));
}

void RunForEver(int) {
  const std::vector<int64_t> values(4096, 7);
  quern_column column = {};
  column.values = values.data();
  quern_batch batch = {};
  batch.keys = &column;
  batch.num_rows = values.size();
  for (;;) {
    quern_kernel* kernel = Compile("filter i64 >= 5", QUERN_ENGINE_JIT);
    quern_job* filter = nullptr;
    quern_error error = {};
    uint64_t rows = 0;
    if (quern_job_create(kernel, nullptr, &filter, &error) != QUERN_OK) return;
    for (int i = 0; i < 1000; ++i) quern_job_filter(filter, &batch, nullptr, nullptr, &rows, &error);
    quern_job_destroy(filter);
    quern_kernel_destroy(kernel);
    quern_cache_clear();
  }
}

// Each meant for a process of its own.
TEST(Ends, DISABLED_WhileThreadsCompile) { ExitWhile(CompileForEver); }
TEST(Ends, DISABLED_WhileThreadsRun) { ExitWhile(RunForEver); }
// In the background, where no thread of the host takes part.
TEST(Ends, DISABLED_WhileKernelsAreCompiledInTheBackground) {
  quern_compile_options options = {};
  options.struct_size = sizeof(options);
  options.expected_rows = uint64_t{1} << 40;
  for (int i = 0; i < 20; ++i) {
    quern_kernel* kernel = nullptr;
    quern_error error = {};
    quern_compile_with(("aggregate keys=i64 aggs=quantile(i64,0." + std::to_string(10 + i) + ")").c_str(), &options,
                       &kernel, &error);
    quern_kernel_destroy(kernel);
  }
  std::exit(kStatus);
}

TEST(Ends, WhileThreadsCompile) {
  for (int i = 0; i < 5; ++i) EXPECT_EQ(StatusOf("WhileThreadsCompile", i), kStatus);
}
TEST(Ends, WhileThreadsRun) {
  for (int i = 0; i < 5; ++i) EXPECT_EQ(StatusOf("WhileThreadsRun", i), kStatus);
}
TEST(Ends, WhileKernelsAreCompiledInTheBackground) {
  EXPECT_EQ(StatusOf("WhileKernelsAreCompiledInTheBackground"), kStatus);
}

}  // namespace
