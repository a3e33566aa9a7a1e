// SPDX-License-Identifier: Apache-2.0
// The kernel cache: one compilation for any number of simultaneous requests, eviction of the least recently used
// kernel, and no harm to threads that wait or run.
#include "codegen/cache/kernel_cache.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace quern {
namespace {

using Made = absl::StatusOr<std::shared_ptr<const Kernel>>;

std::shared_ptr<const Kernel> KernelOf(uint64_t page_bytes) {
  auto kernel = std::make_shared<Kernel>();
  kernel->page_bytes = page_bytes;
  return kernel;
}

KernelCache::Make Makes(uint64_t page_bytes) {
  return [page_bytes] { return Made(KernelOf(page_bytes)); };
}

KernelCache::Make MustNotMake() {
  return [] {
    ADD_FAILURE() << "made again";
    return Made(absl::InternalError("made again"));
  };
}

void WaitFor(const std::atomic<int>& number, int value) {
  while (number.load() < value) std::this_thread::yield();
}

// Threads that request "key" while the first one makes it. `make` runs once all of them have started.
struct Flight {
  KernelCache cache;
  std::atomic<int> makes{0}, asking{0};
  std::vector<absl::StatusOr<CompiledKernel>> answers;

  void Run(int num_threads, const std::function<Made()>& make) {
    answers.assign(static_cast<size_t>(num_threads), absl::UnknownError("no answer"));
    const auto counted = [&] {
      ++makes;
      WaitFor(asking, num_threads);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));  // by now they are in FindOrMake
      return make();
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < num_threads; ++i) {
      threads.emplace_back([&, i] {
        ++asking;
        answers[static_cast<size_t>(i)] = cache.FindOrMake("key", counted);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
};

TEST(KernelCache, ThreadsThatAskAtOnceShareOneCompilation) {
  Flight flight;
  flight.Run(8, Makes(100));
  EXPECT_EQ(flight.makes, 1);
  int misses = 0;
  for (const auto& answer : flight.answers) {
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(answer->kernel, flight.answers[0]->kernel);
    misses += answer->cache == CacheOutcome::kMiss;
  }
  EXPECT_EQ(misses, 1);
  const KernelCacheStats stats = flight.cache.Stats();
  EXPECT_EQ(stats.misses, 1u);
  EXPECT_EQ(stats.hits, 7u);
  EXPECT_EQ(stats.kernels, 1u);
  EXPECT_EQ(stats.code_bytes, 100u);
}

TEST(KernelCache, AFailureReachesAllWhoWaitAndIsNotKept) {
  Flight flight;
  flight.Run(4, [] { return Made(absl::InternalError("no kernel")); });
  for (const auto& answer : flight.answers) EXPECT_EQ(answer.status(), absl::InternalError("no kernel"));
  EXPECT_EQ(flight.cache.Stats().kernels, 0u);
  const auto again = flight.cache.FindOrMake("key", Makes(1));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->cache, CacheOutcome::kMiss);
}

TEST(KernelCache, AnExceptionIsAFailureToo) {
  Flight flight;
  flight.Run(4, []() -> Made { throw std::bad_alloc(); });
  for (const auto& answer : flight.answers) {
    EXPECT_EQ(answer.status(),
              absl::ResourceExhaustedError("out of memory: an allocation failed; accepted: what the system has free"));
  }
  const auto thrown = flight.cache.FindOrMake("key", []() -> Made { throw std::length_error("vector"); });
  EXPECT_EQ(thrown.status(), absl::InternalError("exception while compiling: vector; accepted: none"));
  EXPECT_TRUE(flight.cache.FindOrMake("key", Makes(1)).ok());
}

TEST(KernelCache, ClearedWhileOneIsMadeThoseWhoWaitGetIt) {
  Flight flight;
  flight.Run(4, [&] {
    flight.cache.Clear();
    return Made(KernelOf(100));
  });
  for (const auto& answer : flight.answers) ASSERT_TRUE(answer.ok());
  const KernelCacheStats stats = flight.cache.Stats();
  EXPECT_EQ(stats.code_bytes, 100 * stats.kernels);  // 0, or 1 if a thread was so late that it made its own
  flight.cache.Clear();
  EXPECT_EQ(flight.cache.Stats().code_bytes, 0u);
}

TEST(KernelCache, NothingStaysUnderALimitOfZeroButAllAreServed) {
  Flight flight;
  flight.cache.SetLimit(0);
  flight.Run(4, Makes(100));
  for (const auto& answer : flight.answers) EXPECT_TRUE(answer.ok() && answer->kernel != nullptr);
  EXPECT_EQ(flight.cache.Stats().kernels, 0u);
  EXPECT_EQ(flight.cache.Stats().code_bytes, 0u);
}

TEST(KernelCache, TheLeastRecentlyUsedGoesFirst) {
  KernelCache cache;
  cache.SetLimit(300);
  for (const char* key : {"a", "b", "c"}) ASSERT_TRUE(cache.FindOrMake(key, Makes(100)).ok());
  ASSERT_TRUE(cache.FindOrMake("a", MustNotMake()).ok());
  ASSERT_TRUE(cache.FindOrMake("d", Makes(150)).ok());  // 450 bytes: b and c are evicted
  EXPECT_EQ(cache.Stats().evictions, 2u);
  EXPECT_EQ(cache.Stats().code_bytes, 250u);
  EXPECT_EQ(cache.FindOrMake("a", MustNotMake())->cache, CacheOutcome::kMemory);
  EXPECT_EQ(cache.FindOrMake("d", MustNotMake())->cache, CacheOutcome::kMemory);
  EXPECT_EQ(cache.FindOrMake("b", Makes(1))->cache, CacheOutcome::kMiss);
  cache.SetLimit(100);
  EXPECT_EQ(cache.Stats().kernels, 1u);
}

TEST(KernelCache, AnEvictedKernelLivesWithItsUser) {
  KernelCache cache;
  bool is_gone = false;
  auto made = std::make_shared<Kernel>();
  made->page_bytes = 10;
  made->code = std::shared_ptr<const void>(&is_gone, [&is_gone](const void*) { is_gone = true; });
  std::shared_ptr<const Kernel> kernel = cache.FindOrMake("key", [&] { return Made(std::move(made)); })->kernel;
  cache.SetLimit(0);
  EXPECT_EQ(cache.Stats().kernels, 0u);
  EXPECT_FALSE(is_gone);
  kernel.reset();
  EXPECT_TRUE(is_gone);
}

// Unmapping code takes longer than many hits, and a kernel's destructor may do anything: it runs outside the cache's
// lock.
TEST(KernelCache, KernelsAreDroppedOutsideTheLock) {
  KernelCache cache;
  int dropped = 0;
  const auto make = [&] {
    auto kernel = std::make_shared<Kernel>();
    kernel->page_bytes = 10;
    kernel->code = std::shared_ptr<const void>(&cache, [&](const void*) {
      cache.Stats();
      ++dropped;
    });
    return Made(std::move(kernel));
  };
  ASSERT_TRUE(cache.FindOrMake("a", make).ok());
  cache.Clear();
  EXPECT_EQ(dropped, 1);
  ASSERT_TRUE(cache.FindOrMake("a", make).ok());
  cache.SetLimit(15);
  ASSERT_TRUE(cache.FindOrMake("b", make).ok());
  EXPECT_EQ(dropped, 2);
  cache.SetLimit(0);
  EXPECT_EQ(dropped, 3);
}

TEST(KernelCache, NamesComeAndGoWithTheirKernel) {
  KernelCache cache;
  cache.AddName("name", "key");
  EXPECT_EQ(cache.FindByName("name"), nullptr);
  const auto kernel = cache.FindOrMake("key", Makes(100))->kernel;
  for (int i = 0; i < 20; ++i) cache.AddName("name" + std::to_string(i), "key");
  EXPECT_EQ(cache.FindByName("name0"), kernel);
  EXPECT_EQ(cache.FindByName("name15"), kernel);
  EXPECT_EQ(cache.FindByName("name16"), nullptr);  // 16 names are enough
  cache.SetLimit(50);
  EXPECT_EQ(cache.FindByName("name0"), nullptr);
  cache.SetLimit(100);
  ASSERT_TRUE(cache.FindOrMake("key", Makes(100)).ok());
  cache.AddName("name0", "key");
  EXPECT_NE(cache.FindByName("name0"), nullptr);
  cache.Clear();
  EXPECT_EQ(cache.FindByName("name0"), nullptr);
}

TEST(KernelCache, AFindByNameIsAUse) {
  KernelCache cache;
  cache.SetLimit(200);
  ASSERT_TRUE(cache.FindOrMake("a", Makes(100)).ok());
  cache.AddName("name of a", "a");
  ASSERT_TRUE(cache.FindOrMake("b", Makes(100)).ok());
  ASSERT_NE(cache.FindByName("name of a"), nullptr);
  ASSERT_TRUE(cache.FindOrMake("c", Makes(100)).ok());
  EXPECT_NE(cache.FindByName("name of a"), nullptr);
  EXPECT_EQ(cache.FindOrMake("b", Makes(100))->cache, CacheOutcome::kMiss);
}

// The thread that makes a kernel does not exist in a forked child: the child makes the kernel anew instead of waiting
// for it.
TEST(KernelCache, AForkedChildDoesNotWaitForItsParentsThreads) {
  std::atomic<int> making{0}, forked{0};
  std::thread maker([&] {
    const auto made = KernelCache::OfProcess().FindOrMake("key of a fork", [&] {
      ++making;
      WaitFor(forked, 1);
      return Made(KernelOf(1));
    });
    EXPECT_TRUE(made.ok());
  });
  WaitFor(making, 1);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // seconds
    const auto made = KernelCache::OfProcess().FindOrMake("key of a fork", Makes(2));
    _exit(made.ok() && made->cache == CacheOutcome::kMiss && made->kernel->page_bytes == 2 ? 0 : 1);
  }
  ++forked;
  maker.join();
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  KernelCache::OfProcess().Clear();
}

// Threads that wait in the parent wait for ever in the memory of the child, where nobody must wait for them in turn.
TEST(KernelCache, AForkedChildDoesNotCountOnThreadsThatWaited) {
  std::atomic<int> making{0}, waiting{0}, forked{0};
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    EXPECT_TRUE(KernelCache::OfProcess()
                    .FindOrMake("key that others wait for",
                                [&] {
                                  ++making;
                                  WaitFor(forked, 1);
                                  return Made(KernelOf(1));
                                })
                    .ok());
  });
  WaitFor(making, 1);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      ++waiting;
      EXPECT_TRUE(KernelCache::OfProcess().FindOrMake("key that others wait for", MustNotMake()).ok());
    });
  }
  WaitFor(waiting, 4);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // seconds
    for (int i = 0; i < 4; ++i) (void)KernelCache::OfProcess().FindOrMake(std::to_string(i), Makes(1));
    _exit(0);
  }
  ++forked;
  for (std::thread& thread : threads) thread.join();
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  KernelCache::OfProcess().Clear();
}

}  // namespace
}  // namespace quern
