// SPDX-License-Identifier: Apache-2.0
// Kernels that start as the generic one: who gets which, when and on whose thread they are compiled, and what can fail
// there.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "codegen/base/log.h"
#include "codegen/compiler.h"
#include "codegen/operators.h"
#include "codegen/tier/compile_queue.h"
#include "codegen/tier/tier.h"
#include "codegen/tier/tier_policy.h"
#include "test/unit/runtime/join/number_join.h"

namespace quern {
namespace {

using test::Batch;
using test::NestedLoops;
using test::Pairs;
using test::Probe;
using test::RowNumbers;
using test::SomeKeys;

constexpr const char* kNumbers = "join.inner keys=i64 build=i64 probe=i64";
constexpr const char* kGreater = "filter i64 > 41";

CompileOptions InBackground() {
  CompileOptions options;
  options.when = CompileWhen::kBackground;
  return options;
}

// Compiles after that many rows and waits for the kernel.
CompileOptions After(uint64_t rows) {
  CompileOptions options = InBackground();
  options.compile_after_rows = rows;
  options.swap_waits = true;
  return options;
}

CompiledKernel CompileOrDie(const std::string& spec, const CompileOptions& options) {
  auto compiled = CompileText(spec, options);
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  return *std::move(compiled);
}

bool Eventually(const std::function<bool()>& holds) {
  for (int i = 0; i < 6000 && !holds(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return holds();
}

// How many of the rows 0, 1, .. pass `i64 > 41`.
uint64_t CountGreater(const RowFilter& filter, uint64_t num_rows) {
  const std::vector<int64_t> values = RowNumbers(num_rows);
  BatchView batch;
  batch.keys.push_back(test::Column(values));
  batch.num_rows = num_rows;
  std::vector<uint8_t> bits((num_rows + 7) / 8);
  const auto passed = filter.Mask(batch, bits.data());
  EXPECT_TRUE(passed.ok()) << passed.status();
  return passed.ok() ? *passed : 0;
}

class Tiers : public testing::Test {
 protected:
  void SetUp() override {
    ClearKernelCache();
    SetLogCallback([this](LogLevel, std::string_view line) {
      std::lock_guard<std::mutex> lock(mutex_);
      lines_.emplace_back(line);
    });
  }
  void TearDown() override {
    CompileQueue::OfProcess().SetThread(CompileThread::kOwn);
    SetLogCallback(nullptr);
    ClearKernelCache();
  }
  std::vector<std::string> Lines() {
    std::lock_guard<std::mutex> lock(mutex_);
    return lines_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

TEST_F(Tiers, ASmallJobIsNeverCompiled) {
  const uint64_t misses = GetKernelCacheStats().misses;
  const CompiledKernel compiled = CompileOrDie(kGreater, InBackground());
  EXPECT_EQ(compiled.kernel->engine, Engine::kGeneric);
  EXPECT_EQ(compiled.cache, CacheOutcome::kOff);
  ASSERT_NE(compiled.kernel->tier, nullptr);
  EXPECT_EQ(CountGreater(*MakeRowFilter(compiled.kernel), 1000), 958u);
  EXPECT_EQ(GetKernelCacheStats().misses, misses);
  EXPECT_EQ(compiled.kernel->tier->Compiled(), nullptr);
  EXPECT_EQ(compiled.kernel->tier->cache(), CacheOutcome::kOff);
  EXPECT_EQ(compiled.kernel->tier->Failure(), "");
}

TEST_F(Tiers, JobsOfOneTextShareATier) {
  const auto first = CompileOrDie("join.inner keys=i64 build=i64 probe=i64", InBackground()).kernel;
  EXPECT_EQ(CompileOrDie("join.inner keys=i64 build=i64 probe=i64", InBackground()).kernel, first);
  EXPECT_EQ(Compile(*ParseSpec("join.inner keys=i64 build=i64 probe=i64"), InBackground())->kernel, first);
  EXPECT_NE(CompileOrDie("join.inner keys=i64 build=i64 probe=u64", InBackground()).kernel, first);
  CompileOptions other_plan = InBackground();
  other_plan.overrides = {{"batch_size", "512"}};
  EXPECT_NE(CompileOrDie("join.inner keys=i64 build=i64 probe=i64", other_plan).kernel, first);
  CompileOptions uncached = InBackground();
  uncached.use_cache = false;
  EXPECT_NE(CompileOrDie("join.inner keys=i64 build=i64 probe=i64", uncached).kernel, first);
  EXPECT_NE(CompileOrDie("join.inner keys=i64 build=i64 probe=i64", After(10)).kernel, first);
}

TEST_F(Tiers, AKernelThatIsThereIsUsedAtOnce) {
  const auto compiled = CompileOrDie(kNumbers, {}).kernel;
  const CompiledKernel found = CompileOrDie(kNumbers, InBackground());
  EXPECT_EQ(found.kernel, compiled);
  EXPECT_EQ(found.cache, CacheOutcome::kMemory);
  EXPECT_EQ(Compile(*ParseSpec(kNumbers), InBackground())->kernel, compiled);
}

// Under another spelling, the kernel is found once a lookup is worthwhile, and immediately from then on.
TEST_F(Tiers, AKernelThatIsThereIsFoundInAnotherSpelling) {
  const auto compiled = CompileOrDie(kNumbers, {}).kernel;
  const char* const other = "join.inner  probe=i64 build=i64 keys=i64";
  const auto kernel = CompileOrDie(other, InBackground()).kernel;
  ASSERT_NE(kernel->tier, nullptr);
  kernel->tier->Expect(uint64_t{1} << 40);
  EXPECT_EQ(kernel->tier->Compiled(), compiled);
  EXPECT_EQ(kernel->tier->cache(), CacheOutcome::kMemory);
  EXPECT_EQ(CompileOrDie(other, InBackground()).kernel, compiled);
}

// ---- when ----

TEST_F(Tiers, RowsOfManySmallJobsAddUp) {
  const auto kernel = CompileOrDie(kGreater, InBackground()).kernel;
  bool swapped = false;
  for (int job = 0; job < 200'000 && !swapped; ++job) {
    const CompiledKernel mine = CompileOrDie(kGreater, InBackground());
    EXPECT_EQ(CountGreater(*MakeRowFilter(mine.kernel), 10'000), 9958u);
    swapped = mine.kernel->engine == Engine::kJit;
  }
  ASSERT_TRUE(swapped);
  // The last job may have found the kernel in the cache just before the tier has it.
  ASSERT_TRUE(Eventually([&] { return kernel->tier->Compiled() != nullptr; }));
  EXPECT_NE(kernel->tier->cache(), CacheOutcome::kOff);
  EXPECT_EQ(CompileOrDie(kGreater, InBackground()).kernel, kernel->tier->Compiled());
  EXPECT_TRUE(Eventually([] { return TierTable::OfProcess().size() == 0; }));
}

TEST_F(Tiers, WhereManyRowsAreExpectedCompilingBeginsAtOnce) {
  CompileOptions options = InBackground();
  options.expected_rows = 1000;
  const auto kernel = CompileOrDie(kGreater, options).kernel;
  EXPECT_EQ(kernel->tier->Compiled(), nullptr);
  options.expected_rows = uint64_t{1} << 40;
  CompileOrDie(kGreater, options);  // another job of the same kernel
  EXPECT_TRUE(Eventually([&] { return kernel->tier->Compiled() != nullptr; }));
  EXPECT_EQ(CountGreater(*MakeRowFilter(kernel), 1000), 958u);
}

// The compile thread may be done before the call that gave it the work returns; swap_waits makes sure that it is.
TEST_F(Tiers, AKernelThatIsReadyWithinTheCallIsReturnedByIt) {
  CompileOptions options = InBackground();
  options.expected_rows = uint64_t{1} << 40;
  options.swap_waits = true;
  const CompiledKernel ready = CompileOrDie(kGreater, options);
  EXPECT_EQ(ready.kernel->engine, Engine::kJit);
  EXPECT_EQ(ready.kernel->tier, nullptr);
  EXPECT_EQ(ready.cache, CacheOutcome::kMemory);
  EXPECT_EQ(CountGreater(*MakeRowFilter(ready.kernel), 1000), 958u);
}

TEST_F(Tiers, CompilesAfterTheRowsThatWereAskedFor) {
  const auto kernel = CompileOrDie(kGreater, After(2500)).kernel;
  const auto filter = MakeRowFilter(kernel);
  EXPECT_EQ(CountGreater(*filter, 1000), 958u);
  EXPECT_EQ(CountGreater(*filter, 1000), 958u);
  EXPECT_EQ(kernel->tier->Compiled(), nullptr);
  EXPECT_EQ(CountGreater(*filter, 1000), 958u);
  ASSERT_NE(kernel->tier->Compiled(), nullptr);
  EXPECT_EQ(kernel->tier->Compiled()->engine, Engine::kJit);
  EXPECT_EQ(kernel->tier->Compiled()->plan, kernel->plan);
  EXPECT_EQ(CountGreater(*filter, 1000), 958u);
  // Another caller's request counts from zero, although the process now has the kernel.
  const auto again = CompileOrDie(kGreater, After(2500)).kernel;
  EXPECT_EQ(again->tier->Compiled(), nullptr);
  CountGreater(*MakeRowFilter(again), 3000);
  EXPECT_EQ(again->tier->Compiled(), kernel->tier->Compiled());
  EXPECT_EQ(again->tier->cache(), CacheOutcome::kMemory);
}

// ---- many threads ----

TEST_F(Tiers, ThreadsShareATableWhileTheKernelIsSwapped) {
  const auto build = SomeKeys(3000, 1000, 1), build_rows = RowNumbers(3000);
  for (uint64_t rows = 1; rows < 20'000; rows = rows * 3 + 101) {
    CompileOptions options = After(rows);
    options.swap_waits = rows % 2 == 0;
    options.overrides = {{"layout", "unchained"}, {"batch_size", "64"}};
    const auto kernel = CompileOrDie("join.inner keys=i64,i64 build=i64 probe=i64", options).kernel;
    const auto join = MakeHashJoin(kernel, std::make_shared<MemoryBudget>());
    BatchView side = Batch(build, build_rows);
    side.keys.push_back(side.keys[0]);
    ASSERT_TRUE(join->Append(side).ok());
    ASSERT_TRUE(join->Finalise().ok());
    std::vector<std::thread> threads;
    for (uint64_t i = 0; i < 8; ++i) {
      threads.emplace_back([&, i] {
        const auto probe = SomeKeys(500, 1200, i), probe_rows = RowNumbers(500);
        BatchView probe_side = Batch(probe, probe_rows);
        probe_side.keys.push_back(probe_side.keys[0]);
        EXPECT_EQ(Probe(join, probe_side, 100), NestedLoops(build, probe));
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(kernel->tier->Failure(), "");
  }
}

TEST_F(Tiers, ThreadsThatCompileGetOneTier) {
  std::vector<std::shared_ptr<const Kernel>> kernels(8);
  std::vector<std::thread> threads;
  for (auto& kernel : kernels)
    threads.emplace_back([&kernel] { kernel = CompileOrDie(kNumbers, InBackground()).kernel; });
  for (std::thread& thread : threads) thread.join();
  for (const auto& kernel : kernels) EXPECT_EQ(kernel, kernels[0]);
}

TEST_F(Tiers, AnEvictedKernelLivesAsLongAsItsJobs) {
  SetKernelCacheLimit(0);
  const auto kernel = CompileOrDie(kGreater, After(10)).kernel;
  const auto filter = MakeRowFilter(kernel);
  CountGreater(*filter, 10);
  std::weak_ptr<const Kernel> compiled = kernel->tier->Compiled();
  EXPECT_EQ(GetKernelCacheStats().kernels, 0u);
  EXPECT_EQ(CountGreater(*filter, 1000), 958u);
  SetKernelCacheLimit(uint64_t{64} << 20);
  EXPECT_FALSE(compiled.expired());
}

TEST_F(Tiers, AnEvictedKernelIsGoneWithItsLastJob) {
  SetKernelCacheLimit(0);
  std::weak_ptr<const Kernel> compiled;
  {
    const auto kernel = CompileOrDie(kGreater, InBackground()).kernel;
    ASSERT_NE(kernel->tier, nullptr);
    kernel->tier->Expect(uint64_t{1} << 40);
    ASSERT_TRUE(Eventually([&] { return kernel->tier->Compiled() != nullptr; }));
    compiled = kernel->tier->Compiled();
    EXPECT_FALSE(compiled.expired());
  }
  EXPECT_TRUE(Eventually([&] { return compiled.expired(); }));
  SetKernelCacheLimit(uint64_t{64} << 20);
}

// ---- whose thread ----

TEST_F(Tiers, AHostCompilesOnAThreadOfItsOwn) {
  CompileQueue& queue = CompileQueue::OfProcess();
  queue.SetThread(CompileThread::kHost);
  EXPECT_EQ(queue.thread(), CompileThread::kHost);
  EXPECT_FALSE(queue.RunOne(std::chrono::milliseconds(0)));
  CompileOptions options = After(10);
  options.swap_waits = false;
  const auto kernel = CompileOrDie(kGreater, options).kernel;
  const auto filter = MakeRowFilter(kernel);
  EXPECT_EQ(CountGreater(*filter, 1000), 958u);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(kernel->tier->Compiled(), nullptr);
  EXPECT_TRUE(queue.RunOne(std::chrono::milliseconds(0)));
  EXPECT_NE(kernel->tier->Compiled(), nullptr);
  EXPECT_EQ(CountGreater(*filter, 1000), 958u);
  EXPECT_FALSE(queue.RunOne(std::chrono::milliseconds(1)));
}

TEST_F(Tiers, AThreadOfTheHostsWaitsForWork) {
  CompileQueue& queue = CompileQueue::OfProcess();
  queue.SetThread(CompileThread::kHost);
  CompileOptions options = After(10);
  options.swap_waits = false;
  const auto kernel = CompileOrDie(kGreater, options).kernel;
  std::atomic<bool> worked{false};
  std::thread thread([&] { worked = queue.RunOne(std::chrono::seconds(30)); });
  CountGreater(*MakeRowFilter(kernel), 1000);
  thread.join();
  EXPECT_TRUE(worked);
  EXPECT_NE(kernel->tier->Compiled(), nullptr);
}

// A kernel that nobody waits for any more is not compiled.
TEST_F(Tiers, AJobThatIsOverIsNotCompiledFor) {
  CompileQueue& queue = CompileQueue::OfProcess();
  queue.SetThread(CompileThread::kHost);
  CompileOptions options = After(10);
  options.swap_waits = false;
  const uint64_t misses = GetKernelCacheStats().misses;
  CountGreater(*MakeRowFilter(CompileOrDie(kGreater, options).kernel), 1000);
  EXPECT_FALSE(queue.RunOne(std::chrono::milliseconds(0)));
  EXPECT_EQ(GetKernelCacheStats().misses, misses);
}

TEST_F(Tiers, WhoWaitsForTheSwapCompilesWhereTheHostDoesNot) {
  CompileQueue::OfProcess().SetThread(CompileThread::kHost);
  const auto kernel = CompileOrDie(kGreater, After(10)).kernel;
  EXPECT_EQ(CountGreater(*MakeRowFilter(kernel), 1000), 958u);
  EXPECT_NE(kernel->tier->Compiled(), nullptr);
}

TEST_F(Tiers, OurThreadGoesOnWhereTheHostsLeftOff) {
  CompileQueue::OfProcess().SetThread(CompileThread::kHost);
  CompileOptions options = After(10);
  options.swap_waits = false;
  const auto kernel = CompileOrDie(kGreater, options).kernel;
  CountGreater(*MakeRowFilter(kernel), 1000);
  CompileQueue::OfProcess().SetThread(CompileThread::kOwn);
  EXPECT_TRUE(Eventually([&] { return kernel->tier->Compiled() != nullptr; }));
}

// ---- what goes wrong ----

TEST_F(Tiers, AFailureIsOneWarningAndTheJobGoesOn) {
  CompileOptions options = After(10);
  options.template_dir = "/nowhere/of/tiers";
  const std::string text = "not compiled, running the generic kernel: cannot read template: /nowhere/of/tiers/filter." +
                           HostMachine()->arch + ".bc; accepted: a folder with NAME.ARCH.bc for every template";
  for (int i = 0; i < 3; ++i) {
    const CompiledKernel compiled = CompileOrDie(kGreater, options);
    EXPECT_EQ(compiled.warning, "");
    const auto filter = MakeRowFilter(compiled.kernel);
    EXPECT_EQ(CountGreater(*filter, 1000), 958u);
    EXPECT_EQ(compiled.kernel->tier->Compiled(), nullptr);
    EXPECT_EQ(compiled.kernel->tier->Failure(), text);
    EXPECT_EQ(CountGreater(*filter, 1000), 958u);
  }
  EXPECT_EQ(Lines(), std::vector<std::string>{text});
}

TEST_F(Tiers, ACallersMistakeIsAnErrorAtOnce) {
  CompileOptions options = InBackground();
  options.overrides = {{"batch_size", "0"}};
  EXPECT_EQ(CompileText(kGreater, options).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Compile(KernelSpec{}, InBackground()).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CompileText("filter", InBackground()).status().code(), absl::StatusCode::kInvalidArgument);
}

// ---- the table ----

TEST_F(Tiers, TheTableIsBounded) {
  for (int rows = 1; rows <= 1100; ++rows) {
    CompileOptions options = InBackground();
    options.overrides = {{"batch_size", std::to_string(rows)}};
    CompileOrDie(kGreater, options);
  }
  EXPECT_EQ(TierTable::OfProcess().size(), 1024u);
  ClearKernelCache();
  EXPECT_EQ(TierTable::OfProcess().size(), 0u);
}

}  // namespace
}  // namespace quern
