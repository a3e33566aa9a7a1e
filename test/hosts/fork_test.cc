// SPDX-License-Identifier: Apache-2.0
// A process forks while its threads run jobs: each child runs jobs of its own to their end, of whatever kind the
// threads run.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "test/hosts/jobs.h"
#include "test/unit/runtime/base/sanitized.h"
#include "test/unit/seed.h"

namespace quern_test {
namespace {

using Random = std::mt19937_64;

constexpr uint32_t kNumThreads = 3;
constexpr unsigned kWatchdogSeconds = 300;  // a child that hangs is ended then, and fails the test

constexpr quern::CompileOptions kGeneric = {.engine = quern::Engine::kGeneric};

std::vector<int64_t> Numbers(uint64_t num_rows, Random* random) {
  std::vector<int64_t> numbers(num_rows);
  for (int64_t& number : numbers) number = static_cast<int64_t>((*random)() >> 8);
  return numbers;
}

bool Builds(quern::Job* job, const Table& table) {
  quern::Result<quern::Input> rows = job->NewInput(QUERN_PORT_ROWS);
  return rows.ok() && rows->Append(table.batch()).ok() && rows->Finish().ok() && job->Finalise().ok();
}

// Takes and gives large pages.
bool AggregatesOnKeptPages(Random* random) {
  const auto kernel = quern::Kernel::Compile("aggregate keys=i64 aggs=count_star", kGeneric);
  if (!kernel.ok()) return false;
  const std::vector<int64_t> keys = Numbers(60'000, random);
  const Table table = {{ColumnOf(keys)}, {}, keys.size()};
  auto aggregate = quern::Aggregate::Create(*kernel);
  return aggregate.ok() && Builds(&*aggregate, table);
}

bool SortsOnKeptPages(Random* random) {
  const auto kernel = quern::Kernel::Compile("sort keys=i64:out", kGeneric);
  if (!kernel.ok()) return false;
  const std::vector<int64_t> keys = Numbers(60'000, random);
  const Table table = {{ColumnOf(keys)}, {}, keys.size()};
  auto sort = quern::Sort::Create(*kernel);
  return sort.ok() && Builds(&*sort, table);
}

bool Filters(const quern::CompileOptions& options, uint64_t num_constants, Random* random) {
  const uint64_t least = (*random)() % num_constants;
  const auto kernel = quern::Kernel::Compile("filter i64 >= " + std::to_string(least), options);
  if (!kernel.ok()) return false;
  const std::vector<int64_t> values = {0, static_cast<int64_t>(least), INT64_MAX};
  const Table table = {{ColumnOf(values)}, {}, values.size()};
  auto filter = quern::Filter::Create(*kernel);
  if (!filter.ok()) return false;
  const auto passed = filter->Count(table.batch());
  return passed.ok() && *passed == (least == 0 ? 3 : 2) && !kernel->Text("engine").empty();
}

// Few kernels, which all threads share.
bool FiltersBySharedKernels(Random* random) { return Filters({}, 4, random); }
// Generic at first; a thread of the library compiles.
bool FiltersInTwoTiers(Random* random) {
  return Filters({.expected_rows = (*random)() % 2 << 40}, uint64_t{1} << 40, random);
}
bool FiltersByCompiledKernels(Random* random) {
  return Filters({.engine = quern::Engine::kJit}, uint64_t{1} << 40, random);
}

// Each tag opens a collator of ICU once.
bool AggregatesUnderCollations(Random* random) {
  static const char* const kLanguages[] = {"de", "fr", "sv", "es", "da", "cs", "pl", "tr", "fi", "et", "hr", "hu"};
  static const char* const kWays[] = {"", "-u-ks-level1", "-u-ks-level2", "-u-kn-true", "-u-kf-upper", "-u-ka-shifted"};
  const std::string tag =
      std::string(kLanguages[(*random)() % std::size(kLanguages)]) + kWays[(*random)() % std::size(kWays)];
  const bool has_icu = quern::Kernel::Compile("aggregate keys=utf8(icu:de) aggs=count_star").ok();
  const std::string collation = has_icu ? "icu:" + tag : "utf8mb4_0900_ai_ci";
  const auto kernel = quern::Kernel::Compile("aggregate keys=utf8(" + collation + ") aggs=count_star", kGeneric);
  if (!kernel.ok()) return false;
  const StringVector<int32_t> names({"\u00e9t\u00e9", "zebra", "\u00c4pfel"});
  const Table table = {{names.column()}, {}, 3};
  auto aggregate = quern::Aggregate::Create(*kernel);
  return aggregate.ok() && Builds(&*aggregate, table);
}

using RunJob = bool(Random*);

// Threads run jobs while this thread forks; each child runs the same kind of job.
void ForkWhileThreadsRun(RunJob* job, int num_forks) {
  std::atomic<bool> stop{false}, good{true};
  std::vector<std::thread> threads;
  const uint64_t seed = quern::test::SeedOfTest();
  for (uint32_t i = 0; i < kNumThreads; ++i) {
    threads.emplace_back([&, i] {
      Random random(seed + i);
      while (!stop)
        if (!job(&random)) good = false;
    });
  }
  Random random(seed + kNumThreads);
  for (int i = 0; i < num_forks && good; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
    const pid_t child = fork();
    if (child == 0) {
      alarm(kWatchdogSeconds);
      Random of_child(seed + 1000 + static_cast<uint64_t>(i));
      _exit(job(&of_child) && job(&of_child) ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    if (status != 0) good = false;
    EXPECT_EQ(status, 0) << "fork " << i << (WIFSIGNALED(status) ? ": the child hung, or crashed" : "");
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(good);
}

class Forks : public testing::TestWithParam<std::pair<const char*, RunJob*>> {
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "sanitizers know no threads of a copy";
  }
};

TEST_P(Forks, WhileThreadsRunJobs) { ForkWhileThreadsRun(GetParam().second, 60); }

INSTANTIATE_TEST_SUITE_P(Jobs, Forks,
                         testing::Values(std::pair("AggregatesOnKeptPages", &AggregatesOnKeptPages),
                                         std::pair("SortsOnKeptPages", &SortsOnKeptPages),
                                         std::pair("FiltersBySharedKernels", &FiltersBySharedKernels),
                                         std::pair("FiltersInTwoTiers", &FiltersInTwoTiers),
                                         std::pair("FiltersByCompiledKernels", &FiltersByCompiledKernels),
                                         std::pair("AggregatesUnderCollations", &AggregatesUnderCollations)),
                         [](const auto& info) { return std::string(info.param.first); });

}  // namespace
}  // namespace quern_test
