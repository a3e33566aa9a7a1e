// SPDX-License-Identifier: Apache-2.0
// Threads that compile, join, dump and clear the cache at the same time, and probers that share one table. Also run
// under ThreadSanitizer.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "codegen/compiler.h"
#include "codegen/inspect/dump.h"
#include "codegen/operators.h"
#include "test/unit/runtime/join/number_join.h"

namespace quern {
namespace {

using test::Batch;
using test::NestedLoops;
using test::Pairs;
using test::Probe;
using test::RowNumbers;
using test::SomeKeys;

constexpr int kThreads = 8;
constexpr const char* kNumbers = "join.inner keys=i64 build=i64 probe=i64";

void OnThreads(int num_threads, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < num_threads; ++i) threads.emplace_back([&body, i] { body(i); });
  for (std::thread& thread : threads) thread.join();
}

// Joins 64-bit columns whatever they are called.
void ExpectJoins(const std::shared_ptr<const Kernel>& kernel, uint64_t seed) {
  const auto build = SomeKeys(400, 100, seed), probe = SomeKeys(600, 120, seed + 1);
  const auto build_rows = RowNumbers(400), probe_rows = RowNumbers(600);
  const auto join = MakeHashJoin(kernel, std::make_shared<MemoryBudget>());
  ASSERT_TRUE(join->Append(Batch(build, build_rows)).ok());
  ASSERT_TRUE(join->Finalise().ok());
  EXPECT_EQ(Probe(join, Batch(probe, probe_rows), 250), NestedLoops(build, probe));
}

TEST(Concurrency, ThreadsThatCompileTheSameSpecGetOneKernel) {
  ClearKernelCache();
  const KernelCacheStats before = GetKernelCacheStats();
  std::vector<std::shared_ptr<const Kernel>> kernels(kThreads);
  OnThreads(kThreads, [&](int i) {
    const auto compiled = Compile(*ParseSpec(kNumbers));
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    kernels[static_cast<size_t>(i)] = compiled->kernel;
    ExpectJoins(compiled->kernel, static_cast<uint64_t>(i));
  });
  for (const auto& kernel : kernels) EXPECT_EQ(kernel, kernels[0]);
  EXPECT_EQ(GetKernelCacheStats().misses - before.misses, 1u);
  EXPECT_EQ(GetKernelCacheStats().hits - before.hits, static_cast<uint64_t>(kThreads - 1));
}

TEST(Concurrency, ThreadsCompileDifferentSpecsAndJoin) {
  const char* const types[] = {"i64",    "u64",      "timestamp",    "date64",
                               "time64", "duration", "i64:nullable", "u64:nullable:nullequal"};
  OnThreads(kThreads, [&](int i) {
    for (const Engine engine : {Engine::kJit, Engine::kGeneric}) {
      for (const char* batch_size : {"3", "1024"}) {
        CompileOptions options;
        options.engine = engine;
        options.overrides = {{"batch_size", batch_size}};
        const auto compiled = CompileText(std::string("join.inner keys=") + types[i] + " build=i64 probe=i64", options);
        ASSERT_TRUE(compiled.ok()) << compiled.status();
        EXPECT_EQ(compiled->warning, "");
        ExpectJoins(compiled->kernel, static_cast<uint64_t>(i));
      }
    }
  });
}

// Kernels are compiled, found, evicted and cleared while others of them are running.
TEST(Concurrency, NoRunningKernelIsHarmedByTheCache) {
  SetKernelCacheLimit(3 * 4096);
  std::atomic<int> running{kThreads - 1};
  OnThreads(kThreads, [&](int i) {
    if (i == kThreads - 1) {
      while (running.load() > 0) {
        ClearKernelCache();
        std::this_thread::yield();
      }
      return;
    }
    for (int round = 0; round < 4; ++round) {
      CompileOptions options;
      options.overrides = {{"batch_size", std::to_string(1 + (i + round) % 4)}};
      const auto compiled = CompileText(kNumbers, options);
      EXPECT_TRUE(compiled.ok()) << compiled.status();
      if (compiled.ok()) ExpectJoins(compiled->kernel, static_cast<uint64_t>(round));
    }
    --running;
  });
  SetKernelCacheLimit(uint64_t{64} << 20);
}

TEST(Concurrency, DumpsForOtherMachinesGoOnBesideCompilations) {
  OnThreads(4, [](int i) {
    CompileOptions options;
    options.use_cache = false;
    if (i % 2 == 0) {
      EXPECT_TRUE(CompileText(kNumbers, options).ok());
    } else {
      const auto machine = MachineByName("aarch64:neoverse-n1");
      ASSERT_TRUE(machine.ok());
      EXPECT_TRUE(Dump("asm", *ParseSpec(kNumbers), *machine, {}).ok());
    }
  });
}

TEST(Concurrency, ProbersShareATable) {
  const auto build = SomeKeys(3000, 1000, 1), build_rows = RowNumbers(3000);
  for (const Engine engine : {Engine::kJit, Engine::kGeneric}) {
    CompileOptions options;
    options.engine = engine;
    const auto compiled = CompileText(kNumbers, options);
    ASSERT_TRUE(compiled.ok());
    const auto join = MakeHashJoin(compiled->kernel, std::make_shared<MemoryBudget>());
    ASSERT_TRUE(join->Append(Batch(build, build_rows)).ok());
    ASSERT_TRUE(join->Finalise().ok());
    OnThreads(kThreads, [&](int i) {
      const auto probe = SomeKeys(500, 1200, static_cast<uint64_t>(i)), probe_rows = RowNumbers(500);
      EXPECT_EQ(Probe(join, Batch(probe, probe_rows), 100), NestedLoops(build, probe));
    });
  }
}

}  // namespace
}  // namespace quern
