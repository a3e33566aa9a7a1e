// SPDX-License-Identifier: Apache-2.0
// Thousands of kernels come and go: nothing remains of them in pages, mappings or the heap, and eviction does not harm
// threads that run an evicted kernel.
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "codegen/compiler.h"
#include "codegen/llvm/jit.h"
#include "codegen/operators.h"
#include "test/unit/codegen/llvm/kernel_object.h"
#include "test/unit/runtime/base/process_memory.h"
#include "test/unit/runtime/base/sanitized.h"
#include "test/unit/runtime/join/number_join.h"

namespace quern {
namespace {

// What a process occupies: pages, mappings, bytes of the heap.
struct Footprint {
  uint64_t resident_bytes = 0, mappings = 0, heap_bytes = 0;

  static Footprint Now() {
    const struct mallinfo2 heap = mallinfo2();
    return {test::ResidentBytes(), test::Mappings().size(), heap.uordblks + heap.hblkhd};
  }
};

// A sanitizer retains freed memory and makes mappings of its own.
void ExpectNoMoreThan(const Footprint& before, uint64_t resident_bytes, uint64_t heap_bytes) {
  if (kSanitized) return;
  const Footprint now = Footprint::Now();
  EXPECT_LE(now.resident_bytes, before.resident_bytes + resident_bytes);
  EXPECT_LE(now.mappings, before.mappings + 8);
  EXPECT_LE(now.heap_bytes, before.heap_bytes + heap_bytes);
}

// Ten thousand kernels under distinct names, 50 of which are alive at a time.
TEST(Churn, TenThousandLoadedKernelsLeaveNothing) {
  const int num_kernels = kSanitized ? 1000 : 10000;
  const test::KernelObject object = test::MakeKernelObject("join.inner keys=i64,utf8 build=f64");
  ASSERT_FALSE(object.symbols.empty());
  const uint64_t live_before = GetKernelCacheStats().live_kernels;
  std::deque<LoadedCode> live;
  Footprint before;
  for (int i = 0; i < num_kernels; ++i) {
    if (i == 500) before = Footprint::Now();
    auto code = LoadObject(object.bytes, object.symbols, "join.inner keys=i64,utf8 build=f64 #" + std::to_string(i));
    ASSERT_TRUE(code.ok()) << code.status();
    live.push_back(*std::move(code));
    if (live.size() > 50) live.pop_front();
    if (i % 1000 == 0) {
      EXPECT_FALSE(test::AnyMappingIsWritableAndExecutable());
    }
  }
  ExpectNoMoreThan(before, 512 << 10, 64 << 10);
  const KernelCacheStats stats = GetKernelCacheStats();
  EXPECT_EQ(stats.live_kernels, live_before + 50);
  EXPECT_LE(stats.mappings, 64u);
  live.clear();
  EXPECT_EQ(GetKernelCacheStats().live_kernels, live_before);
}

// All stages, with different code each time: a cache that holds few kernels, and more specs than that.
void CompileAndEvict(int num_kernels) {
  ClearKernelCache();
  SetKernelCacheLimit(uint64_t{20} * 4096);
  const KernelCacheStats at_first = GetKernelCacheStats();
  CompileOptions options;
  options.engine = Engine::kJit;
  Footprint before;
  for (int i = 0; i < num_kernels; ++i) {
    if (i == num_kernels / 3) before = Footprint::Now();
    const auto compiled = CompileText("filter i64 >= " + std::to_string(1000 + i), options);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
  }
  // LLVM's own pools grow for a while; the memory of the kernels themselves would be 160 times 10 KiB.
  ExpectNoMoreThan(before, 2 << 20, 256 << 10);
  const KernelCacheStats stats = GetKernelCacheStats();
  EXPECT_EQ(stats.kernels, 20u);
  EXPECT_EQ(stats.code_bytes, 20u * 4096);
  EXPECT_EQ(stats.evictions - at_first.evictions, static_cast<uint64_t>(num_kernels) - 20);
  EXPECT_EQ(stats.live_kernels, at_first.live_kernels + 20);
  SetKernelCacheLimit(uint64_t{64} << 20);
  ClearKernelCache();
}

TEST(Churn, CompiledAndEvictedKernelsLeaveNothing) { CompileAndEvict(kSanitized ? 30 : 240); }
// Takes a minute; churn_nightly.test runs it.
TEST(Churn, DISABLED_TenThousandCompiledKernelsLeaveNothing) { CompileAndEvict(10000); }

// Threads join with kernels that the other threads' compilations evict: a join keeps its own, and in the end all pages
// are free again.
TEST(Churn, KernelsAreEvictedWhileTheyRun) {
  ClearKernelCache();
  SetKernelCacheLimit(2 * 4096);
  const KernelCacheStats before = GetKernelCacheStats();
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      const auto build = test::SomeKeys(300, 100, t), probe = test::SomeKeys(400, 120, t + 100);
      const auto build_rows = test::RowNumbers(300), probe_rows = test::RowNumbers(400);
      for (uint64_t round = 0; round < 12; ++round) {
        CompileOptions options;
        options.engine = Engine::kJit;
        options.overrides = {{"batch_size", std::to_string(16 + (t + round) % 8)}};
        std::shared_ptr<HashJoin> join;
        {
          const auto compiled = CompileText("join.inner keys=i64 build=i64 probe=i64", options);
          ASSERT_TRUE(compiled.ok()) << compiled.status();
          join = MakeHashJoin(compiled->kernel, std::make_shared<MemoryBudget>());
        }
        ASSERT_TRUE(join->Append(test::Batch(build, build_rows)).ok());
        ASSERT_TRUE(join->Finalise().ok());
        EXPECT_EQ(test::Probe(join, test::Batch(probe, probe_rows), 100), test::NestedLoops(build, probe));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(GetKernelCacheStats().evictions, before.evictions);
  ClearKernelCache();
  EXPECT_EQ(GetKernelCacheStats().live_kernels, before.live_kernels);
  SetKernelCacheLimit(uint64_t{64} << 20);
}

}  // namespace
}  // namespace quern
