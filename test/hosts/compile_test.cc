// SPDX-License-Identifier: Apache-2.0
// When and where kernels are compiled, as a host says and sees it: options, texts before and after the swap, its own
// thread, its log.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "test/hosts/jobs.h"
#include "test/unit/runtime/base/sanitized.h"
#include "test/unit/seed.h"

namespace quern_test {
namespace {

constexpr const char* kSpec = "filter i64 > 41";

// How many of the rows 0 .. 999 pass.
uint64_t Passed(const quern::Kernel& kernel) {
  std::vector<int64_t> values(1000);
  std::iota(values.begin(), values.end(), 0);
  const Table table = {{ColumnOf(values)}, {}, 1000};
  return Take(Take(quern::Filter::Create(kernel)).Count(table.batch()));
}

quern::Kernel CompileOrDie(const quern::CompileOptions& options) {
  auto kernel = quern::Kernel::Compile(kSpec, options);
  EXPECT_TRUE(kernel.ok()) << kernel.status().text();
  return *std::move(kernel);
}

// Runs a test that ends its process, or changes it for good, in one of its own.
int ExitStatusOf(const std::string& test, int round = 0) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("QUERN_TEST_ROUND", std::to_string(round).c_str(), 1);
    const std::string filter = "--gtest_filter=" + test;
    execl("/proc/self/exe", "host_tests", filter.c_str(), "--gtest_also_run_disabled_tests", "--gtest_brief=1",
          nullptr);
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool Eventually(const std::function<bool()>& holds) {
  for (int i = 0; i < 6000 && !holds(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return holds();
}

TEST(CompileWith, NowAndInTheBackground) {
  quern_cache_clear();
  auto background = quern::Kernel::Compile(kSpec);
  ASSERT_TRUE(background.ok());
  EXPECT_EQ(background->Text("engine"), "generic");
  EXPECT_EQ(background->Text("cache"), "off");
  EXPECT_EQ(background->Text("code_bytes"), "0");
  EXPECT_EQ(background->Text("warning"), "");
  EXPECT_EQ(Passed(*background), 958u);
  const quern::Kernel now = CompileOrDie({.when = quern::CompileWhen::kNow});
  EXPECT_EQ(now.Text("engine"), "jit");
  EXPECT_EQ(Passed(now), 958u);
  EXPECT_EQ(CompileOrDie({}).Text("cache"), "memory");
  EXPECT_EQ(CompileOrDie({.engine = quern::Engine::kGeneric}).Text("engine"), "generic");
}

TEST(CompileWith, TextsSayWhatRunsNow) {
  const quern::Kernel kernel = CompileOrDie({.compile_after_rows = 1500, .swap_waits = true});
  const std::string_view before = kernel.Text("engine");
  EXPECT_EQ(Passed(kernel), 958u);
  EXPECT_EQ(kernel.Text("engine"), "generic");
  EXPECT_EQ(Passed(kernel), 958u);
  EXPECT_EQ(kernel.Text("engine"), "jit");
  EXPECT_NE(kernel.Text("code_bytes"), "0");
  EXPECT_NE(kernel.Text("cache"), "off");
  EXPECT_EQ(kernel.Text("spec"), kSpec);
  EXPECT_EQ(before, "generic") << "a text lives as long as its kernel";
  EXPECT_EQ(Passed(kernel), 958u);
}

TEST(CompileWith, ExpectedRowsBeginAtOnce) {
  quern_cache_clear();
  const quern::Kernel kernel = CompileOrDie({.expected_rows = uint64_t{1} << 40});
  EXPECT_TRUE(Eventually([&] { return kernel.Text("engine") == "jit"; }));
  EXPECT_EQ(Passed(kernel), 958u);
}

TEST(CompileWith, AJobTellsWhatItBrings) {
  quern_cache_clear();
  quern::Kernel kernel = CompileOrDie({});
  kernel.ExpectRows(10);
  EXPECT_EQ(kernel.Text("engine"), "generic");
  kernel.ExpectRows(uint64_t{1} << 40);
  EXPECT_TRUE(Eventually([&] { return kernel.Text("engine") == "jit"; }));
  quern_kernel_expect_rows(nullptr, 1);
}

TEST(CompileWith, AdvisesThreads) {
  const quern::Kernel filter = CompileOrDie({});
  EXPECT_EQ(filter.AdviseThreads(131073, 8), 2u);
  EXPECT_EQ(quern_advise_threads(nullptr, UINT64_MAX, 8, nullptr, 0, nullptr), 8u);
  const auto aggregate = quern::Kernel::Compile("aggregate keys=i64 aggs=count_star", quern::Engine::kGeneric);
  ASSERT_TRUE(aggregate.ok());
  uint64_t look_rows = 0;
  aggregate->AdviseThreads(600'000, 4, {}, &look_rows);
  EXPECT_EQ(look_rows, 65536u);
  const uint64_t few[] = {4}, many[] = {16'384, 65'536};
  EXPECT_EQ(aggregate->AdviseThreads(600'000, 4, few, &look_rows), 4u);
  EXPECT_EQ(look_rows, 0u);
  EXPECT_EQ(aggregate->AdviseThreads(600'000, 4, many, &look_rows), 1u);
}

TEST(CompileWith, RefusesWhatItDoesNotKnow) {
  const auto error = [](const quern_compile_options* options) {
    quern_error error = {};
    quern_kernel* kernel = reinterpret_cast<quern_kernel*>(8);
    EXPECT_EQ(quern_compile_with(kSpec, options, &kernel, &error), QUERN_INVALID_ARGUMENT);
    EXPECT_EQ(kernel, nullptr);
    return std::string(error.text);
  };
  quern_kernel* by_default = nullptr;
  EXPECT_EQ(quern_compile_with(kSpec, nullptr, &by_default, nullptr), QUERN_OK);
  quern_kernel_destroy(by_default);
  struct NewerOptions {
    quern_compile_options known = {};
    uint64_t unknown[8] = {};
  } newer;
  quern_compile_options& options = newer.known;
  EXPECT_EQ(error(&options), "struct_size too small: 0; accepted: " + std::to_string(sizeof(options)) + " or more");
  options.struct_size = sizeof(options);
  options.when = static_cast<quern_compile_when>(2);
  EXPECT_EQ(error(&options),
            "unknown time to compile: 2; accepted: QUERN_COMPILE_BACKGROUND (0), QUERN_COMPILE_NOW (1)");
  options.when = QUERN_COMPILE_NOW;
  options.engine = static_cast<quern_engine>(7);
  EXPECT_EQ(error(&options),
            "unknown engine: 7; accepted: QUERN_ENGINE_AUTO (0), QUERN_ENGINE_JIT (1), QUERN_ENGINE_GENERIC (2)");
  options.engine = QUERN_ENGINE_AUTO;
  options.params = "batch_size";
  EXPECT_EQ(error(&options), "bad parameter: batch_size; accepted: name=value, separated by spaces");
  options.params = nullptr;
  options.struct_size = sizeof(newer);
  quern_kernel* kernel = nullptr;
  EXPECT_EQ(quern_compile_with(kSpec, &options, &kernel, nullptr), QUERN_OK) << "a host with a newer header";
  quern_kernel_destroy(kernel);
  newer.unknown[1] = 1;
  EXPECT_EQ(error(&options), "struct_size too large: " + std::to_string(sizeof(newer)) + ", with a member at byte " +
                                 std::to_string(sizeof(options) + 8) + " that this library does not know; accepted: " +
                                 std::to_string(sizeof(options)) + ", or zeros beyond it");
  EXPECT_EQ(quern_compile_with(nullptr, &options, &kernel, nullptr), QUERN_INVALID_ARGUMENT);
  EXPECT_EQ(quern_compile_with(kSpec, &options, nullptr, nullptr), QUERN_INVALID_ARGUMENT);
}

// ---- the host's thread ----

TEST(CompileThread, OfTheHostsRunsWhatWaits) {
  ASSERT_TRUE(quern::SetCompileThread(quern::CompileThread::kHost).ok());
  EXPECT_FALSE(*quern::CompileWork(0));
  const quern::Kernel kernel = CompileOrDie({.compile_after_rows = 1});
  EXPECT_EQ(Passed(kernel), 958u);
  EXPECT_EQ(kernel.Text("engine"), "generic");
  EXPECT_TRUE(*quern::CompileWork(0));
  EXPECT_EQ(kernel.Text("engine"), "jit");
  EXPECT_EQ(Passed(kernel), 958u);
  EXPECT_FALSE(*quern::CompileWork(1));
  ASSERT_TRUE(quern::SetCompileThread(quern::CompileThread::kOwn).ok());
}

TEST(CompileThread, RefusesWhatItDoesNotKnow) {
  quern_error error = {};
  EXPECT_EQ(quern_compile_thread_mode(static_cast<quern_compile_thread>(5), &error), QUERN_INVALID_ARGUMENT);
  EXPECT_STREQ(error.text, "unknown thread: 5; accepted: QUERN_COMPILE_THREAD_OWN (0), QUERN_COMPILE_THREAD_HOST (1)");
  EXPECT_EQ(quern_compile_work(0, nullptr, &error), QUERN_INVALID_ARGUMENT);
  EXPECT_STREQ(error.text, "null argument: worked; accepted: a pointer");
}

// ---- the log ----

struct Said {
  std::vector<std::string> lines;
  static void Hear(void* context, quern_log_level level, const char* line) {
    static_cast<Said*>(context)->lines.push_back((level == QUERN_LOG_WARNING ? "warning " : "info ") +
                                                 std::string(line));
  }
};

// What is left of the address space for more than there is.
void LeaveMiB(uint64_t mib) {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t bytes = pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) + (mib << 20);
  const rlimit limit = {bytes, bytes};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
}

// In a process of its own, as below.
TEST(Log, DISABLED_OfAProcessWithoutMemory) {
  const std::string text =
      "not compiled, running the generic kernel: out of memory: 64 MiB to compile in; accepted: what the system has "
      "free";
  Said said;
  quern_set_log_callback(&Said::Hear, &said);
  LeaveMiB(48);
  const quern::Kernel now = CompileOrDie({.when = quern::CompileWhen::kNow, .params = "batch_size=77"});
  EXPECT_EQ(now.Text("engine"), "generic");
  EXPECT_EQ(now.Text("warning"), text);
  EXPECT_EQ(Passed(now), 958u);
  const quern::Kernel later = CompileOrDie({.params = "batch_size=78", .compile_after_rows = 10, .swap_waits = true});
  EXPECT_EQ(later.Text("warning"), "");
  EXPECT_EQ(Passed(later), 958u);
  EXPECT_EQ(later.Text("engine"), "generic");
  EXPECT_EQ(later.Text("warning"), text);
  EXPECT_EQ(Passed(later), 958u);
  EXPECT_EQ(quern::Kernel::Compile("filter i64 > 42", quern::Engine::kJit).status().code(), QUERN_RESOURCE_EXHAUSTED);
  EXPECT_EQ(said.lines, std::vector<std::string>{"warning " + text}) << "once, however many kernels there are";
  quern_set_log_callback(nullptr, nullptr);
  CompileOrDie({.when = quern::CompileWhen::kNow, .params = "batch_size=79"});
  EXPECT_EQ(said.lines.size(), 1u);
}

TEST(Log, OfAProcessWithoutMemory) {
  if (kSanitized) GTEST_SKIP() << "sanitizers take the whole address space";
  EXPECT_EQ(ExitStatusOf("Log.DISABLED_OfAProcessWithoutMemory"), 0);
}

// ---- fork and exit ----

// While the library's thread compiles, in a process of its own.
quern::Kernel Compiling(const std::string& params) {
  return CompileOrDie({.params = params, .expected_rows = uint64_t{1} << 40});
}

TEST(Process, DISABLED_IsCopiedWhileItCompiles) {
  for (int i = 0; i < 10; ++i) {
    const std::string params = "batch_size=" + std::to_string(100 + i);
    const quern::Kernel first = Compiling(params),
                        second = Compiling(params + " batch_size=" + std::to_string(200 + i));
    std::this_thread::sleep_for(std::chrono::milliseconds(i));
    const pid_t child = fork();
    if (child == 0) {
      // What waited, and what is new, is compiled by a thread of the copy's own.
      bool good = Passed(first) == 958 && Passed(second) == 958;
      const quern::Kernel third = Compiling(params + " batch_size=" + std::to_string(300 + i));
      good = good && Eventually([&] { return third.Text("engine") == "jit"; });
      Passed(first);
      Passed(second);
      good = good && Eventually([&] { return first.Text("engine") == "jit" && second.Text("engine") == "jit"; });
      _exit(good && Passed(first) == 958 && Passed(second) == 958 ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(Eventually([&] { return first.Text("engine") == "jit" && second.Text("engine") == "jit"; }));
  }
}

TEST(Process, IsCopiedWhileItCompiles) {
  if (kSanitized) GTEST_SKIP() << "sanitizers know no threads of a copy";
  EXPECT_EQ(ExitStatusOf("Process.DISABLED_IsCopiedWhileItCompiles"), 0);
}

TEST(Process, DISABLED_EndsWhileItCompiles) {
  std::mt19937_64 random(quern::test::SeedOfTest() + std::strtoull(std::getenv("QUERN_TEST_ROUND"), nullptr, 10));
  const quern::Kernel first = Compiling("batch_size=91"), second = Compiling("batch_size=92");
  std::this_thread::sleep_for(std::chrono::microseconds(random() % 30'000));
  std::exit(42);
}

TEST(Process, EndsWhileItCompiles) {
  for (int i = 0; i < 10; ++i) EXPECT_EQ(ExitStatusOf("Process.DISABLED_EndsWhileItCompiles", i), 42);
}

}  // namespace
}  // namespace quern_test
