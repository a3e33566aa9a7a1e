// SPDX-License-Identifier: Apache-2.0
// Parts of the library where a refused request could end the process, leave a lock or an entry behind, or be thrown
// where nothing may be thrown: handlers, destructors, threads, tables of the process.
//
// Each test repeats its steps and refuses request 1, then request 2, and so on, until a round has no refusal left.
#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "codegen/base/log.h"
#include "codegen/cache/kernel_cache.h"
#include "codegen/tier/compile_queue.h"
#include "codegen/tier/tier.h"
#include "ir-templates/generic/generic_filter.h"
#include "runtime/base/counters.h"
#include "runtime/base/kept_pages.h"
#include "runtime/base/memory.h"
#include "runtime/base/refused_calls.h"
#include "runtime/base/shared_work.h"
#include "runtime/base/status.h"
#include "test/refusals/refusing_allocator.h"

namespace quern_test {
namespace {

using namespace quern;  // NOLINT(google-build-using-namespace): tests of its parts

// Runs `steps` once for each of its requests, which is refused; returns how many there were. `steps` may throw
// std::bad_alloc. `check` runs after each round.
template <class Steps, class Check>
uint64_t RefuseEach(Refusing refusing, const Steps& steps, const Check& check) {
  for (uint64_t n = 1;; ++n) {
    StartRefusing(n, refusing);
    try {
      steps();
    } catch (const std::bad_alloc&) {
    }
    const uint64_t count = StopRefusing();
    check();
    if (count < n || testing::Test::HasFailure()) return count;
  }
}

// ---- statuses ----

TEST(RefusedParts, TheStatusOfAFailedAllocationAllocatesNothing) {
  StartRefusing(1, Refusing::kFromThenOn);
  const absl::Status copy = OutOfMemory();
  const absl::StatusOr<int> value = OutOfMemory();
  const absl::Status thrown = WithoutBadAlloc([]() -> absl::Status { throw std::bad_alloc(); });
  const absl::Status again = value.status();
  StopRefusing();
  EXPECT_EQ(copy, absl::ResourceExhaustedError("out of memory: an allocation failed; accepted: what the system has "
                                               "free"));
  EXPECT_EQ(again, copy);
  EXPECT_EQ(thrown, copy);
}

TEST(RefusedParts, ACallOfGeneratedCodeIsNotedForItsScope) {
  const auto fails = []() -> int { throw std::bad_alloc(); };
  EXPECT_EQ(OrNoted(7, fails), 7);  // of an earlier job
  const RefusedCalls outer;
  EXPECT_TRUE(outer.status().ok());
  {
    const RefusedCalls inner;
    EXPECT_EQ(OrNoted(7, [] { return 8; }), 8);
    EXPECT_TRUE(inner.status().ok());
    EXPECT_EQ(OrNoted(7, fails), 7);
    EXPECT_EQ(inner.status(), OutOfMemory());
  }
  EXPECT_TRUE(outer.status().ok());
}

// ---- threads ----

TEST(RefusedParts, MorselsRunOnTheThreadsThatThereAre) {
  std::atomic<uint64_t> sum{0};
  const auto run = [&](uint32_t, uint64_t task) {
    sum += task + 1;
    return absl::OkStatus();
  };
  for (const Refusing refusing : {Refusing::kOnce, Refusing::kFromThenOn}) {
    const auto steps = [&] {
      sum = 0;
      EXPECT_TRUE(RunMorsels(4, 100, run).ok());
    };
    EXPECT_GE(RefuseEach(refusing, steps, [&] { EXPECT_EQ(sum, 5050u); }), 3u);
  }
}

TEST(RefusedParts, AMorselThatRunsOutOfMemoryEndsTheRun) {
  const auto run = [](uint32_t, uint64_t task) -> absl::Status {
    if (task == 3) StartRefusing(1, Refusing::kFromThenOn);
    if (task >= 3) return absl::InternalError(std::string(1000, 'x'));
    return absl::OkStatus();
  };
  const absl::Status status = RunMorsels(2, 100, run);
  StopRefusing();
  EXPECT_EQ(status, OutOfMemory());
}

// A thread that left its task by an exception would be waited for by the others.
TEST(RefusedParts, AllThreadsOfSharedWorkGetTheStatus) {
  bool is_begun = false;
  SharedWork work([&]() -> absl::StatusOr<std::optional<SharedWork::Phase>> {
    if (std::exchange(is_begun, true)) return std::optional<SharedWork::Phase>();
    return SharedWork::Phase{8, [](uint64_t) -> absl::Status {
                               StartRefusing(1, Refusing::kFromThenOn);
                               return absl::InternalError(std::string(1000, 'x'));
                             }};
  });
  absl::Status statuses[2];
  std::thread other([&] { statuses[1] = work.RunTasks(); });
  statuses[0] = work.RunTasks();
  other.join();
  StopRefusing();
  EXPECT_EQ(statuses[0], OutOfMemory());
  EXPECT_EQ(statuses[1], OutOfMemory());
}

// ---- memory ----

// Two buffers of 4 MiB are released, and their pages, which are adjacent or not, taken again.
TEST(RefusedParts, KeptPagesAreNeitherLostNorThrownFor) {
  KeptPages& kept = KeptPages::OfProcess();
  kept.SetMost(uint64_t{64} << 20);
  const auto buffer = [] { return HugeBuffer::Allocate(nullptr, uint64_t{4} << 20, true, Contents::kAnything); };
  const auto steps = [&] {
    absl::StatusOr<HugeBuffer> first = buffer(), second = buffer();
    first = HugeBuffer();
    absl::StatusOr<GrowingBuffer> growing = GrowingBuffer::Reserve(nullptr, uint64_t{8} << 20, true);
    if (growing.ok()) static_cast<void>(growing->Grow(uint64_t{6} << 20));
    second = HugeBuffer();
  };
  steps();
  kept.Clear();
  const int64_t mapped = HeldMappedBytes(), blocks = HeldBlocks();
  for (const Refusing refusing : {Refusing::kOnce, Refusing::kFromThenOn}) {
    EXPECT_GE(RefuseEach(refusing, steps,
                         [&] {
                           EXPECT_LE(kept.bytes(), static_cast<uint64_t>(HeldMappedBytes() - mapped));
                           kept.Clear();
                           EXPECT_EQ(HeldMappedBytes(), mapped);
                           EXPECT_EQ(HeldBlocks(), blocks);
                         }),
              4u);
  }
}

TEST(RefusedParts, ABlockOfCountersEntersAllItsSetsOrNone) {
  for (const Refusing refusing : {Refusing::kOnce, Refusing::kFromThenOn}) {
    std::shared_ptr<CounterSet> kernel, job;
    const auto steps = [&] {
      job = nullptr;
      kernel = std::make_shared<CounterSet>();
      job = std::make_shared<CounterSet>(kernel);
      const ThreadCounters threads(job);
      threads.OfThread()->Add(Counter::kNs, 5);
    };
    // Reads the blocks of the sets: one that is gone must not be among them.
    EXPECT_GE(RefuseEach(refusing, steps, [&] { EXPECT_TRUE(kernel == nullptr || kernel->Sum().ns % 5 == 0); }), 4u);
    EXPECT_EQ(kernel->Sum().ns, 5u);
    EXPECT_EQ(job->Sum().ns, 5u);
  }
}

// ---- tables of the process ----

absl::StatusOr<std::shared_ptr<const Kernel>> MakeKernel() {
  auto kernel = std::make_shared<Kernel>();
  kernel->page_bytes = 4096;
  return std::shared_ptr<const Kernel>(std::move(kernel));
}

TEST(RefusedParts, TheKernelCacheHasAnEntryWholeOrNotAtAll) {
  const std::string keys[] = {"a key too long for its string itself", "another key that is as long as that",
                              "and a third one, for which one must go"};
  for (const Refusing refusing : {Refusing::kOnce, Refusing::kFromThenOn}) {
    std::unique_ptr<KernelCache> cache;
    const auto steps = [&] {
      for (const std::string& key : keys) {
        static_cast<void>(cache->FindOrMake(key, MakeKernel));
        cache->AddName("a name of " + key, key);
        cache->AddAlias("an alias of " + key, "a name of " + key);
      }
    };
    const auto begin = [&] {
      cache = std::make_unique<KernelCache>();
      cache->SetLimit(2 * 4096);
    };
    begin();
    const auto check = [&] {
      for (const std::string& key : keys) {
        EXPECT_TRUE(cache->FindOrMake(key, MakeKernel).ok());
        cache->FindByName("a name of " + key);
        cache->FindByName("an alias of " + key);
      }
      EXPECT_EQ(cache->Stats().kernels, 2u);
      EXPECT_EQ(cache->Stats().code_bytes, 2u * 4096);
      // All names go with the kernels.
      cache->SetLimit(0);
      EXPECT_EQ(cache->Stats().kernels, 0u);
      for (const std::string& key : keys) EXPECT_EQ(cache->FindByName("a name of " + key), nullptr);
      begin();
    };
    EXPECT_GE(RefuseEach(refusing, steps, check), 20u);
  }
}

// A kernel whose compilation fails without the memory for a text that says so.
class FailingMaker final : public KernelMaker {
 public:
  std::shared_ptr<const Kernel> FindInMemory() override {
    delete new std::string(100, 'x');
    return nullptr;
  }
  bool IsOnDisk() override { return false; }
  absl::StatusOr<CompiledKernel> Make(const std::atomic<bool>&) override {
    return absl::InternalError(std::string(100, 'x'));
  }
};

std::shared_ptr<Kernel> FilterWithTier() {
  auto kernel = std::make_shared<Kernel>();
  kernel->plan.spec = FilterSpec();
  kernel->of = OperatorKernel<FilterSpec>{nullptr, {}, GenericFilterKernel()};
  AddTier(std::make_unique<FailingMaker>(), 100, true, kernel.get());
  return kernel;
}

// ---- fork ----

class JobThatWaits final : public CompileJob {
 public:
  void Run(const std::atomic<bool>&) override { has_run = true; }
  void Forgotten() override { is_forgotten = true; }
  bool has_run = false, is_forgotten = false;
};

// Forks while no request is granted; the child ends with what `in_child` returns, 1 if it made a request before.
int StatusOfChild(int (*in_child)()) {
  StartRefusing(1, Refusing::kFromThenOn);
  const pid_t child = fork();
  const uint64_t num_requests = StopRefusing();
  if (child == 0) _exit(num_requests > 0 ? 1 : in_child());
  int status = -1;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::shared_ptr<JobThatWaits> job_of_parent;

int RunAJobInChild() {
  CompileQueue& queue = CompileQueue::OfProcess();
  if (!job_of_parent->is_forgotten || !queue.IsIdle() || queue.thread() != CompileThread::kHost) return 2;
  const auto job = std::make_shared<JobThatWaits>();
  if (queue.Add(job) != Added::kWaiting || !queue.RunOne(std::chrono::milliseconds(0)) || !job->has_run) return 3;
  return 0;
}

TEST(RefusedParts, AForkedChildNeedsNoMemory) {
  CompileQueue& queue = CompileQueue::OfProcess();
  (void)KernelCache::OfProcess();
  queue.SetThread(CompileThread::kHost);
  job_of_parent = std::make_shared<JobThatWaits>();
  ASSERT_EQ(queue.Add(job_of_parent), Added::kWaiting);
  EXPECT_EQ(StatusOfChild(&RunAJobInChild), 0);
  // A child of a child, before and after it has a job of its own.
  EXPECT_EQ(StatusOfChild([] { return StatusOfChild(&RunAJobInChild); }), 0);
  EXPECT_EQ(StatusOfChild([] { return RunAJobInChild() + StatusOfChild(&RunAJobInChild); }), 0);
  EXPECT_FALSE(job_of_parent->is_forgotten);
  EXPECT_TRUE(queue.RunIfWaiting(*job_of_parent));
  job_of_parent.reset();
  queue.SetThread(CompileThread::kOwn);
}

TEST(RefusedParts, TheTableOfTiersHasAnEntryWholeOrNotAtAll) {
  for (const Refusing refusing : {Refusing::kOnce, Refusing::kFromThenOn}) {
    const auto steps = [] {
      const auto kernel = FilterWithTier();
      TierTable::OfProcess().Keep("a name too long for its string itself", kernel);
    };
    const auto check = [] {
      EXPECT_LE(TierTable::OfProcess().size(), 1u);
      const auto other = FilterWithTier();
      TierTable::OfProcess().Drop(*other->tier);  // reads all entries
      TierTable::OfProcess().Clear();
    };
    EXPECT_GE(RefuseEach(refusing, steps, check), 6u);
  }
}

// The batch that makes compiling due is none the worse for it, and the tier either fails for good or decides again.
TEST(RefusedParts, ATierThatCannotCompileStaysGeneric) {
  CompileQueue::OfProcess().SetThread(CompileThread::kHost);  // so that this thread compiles
  SetLogCallback([](LogLevel, std::string_view) {});
  for (const Refusing refusing : {Refusing::kOnce, Refusing::kFromThenOn}) {
    std::shared_ptr<Kernel> kernel = FilterWithTier();
    const auto steps = [&] { kernel->tier->slot<FilterSpec>()->meter()->Count(100); };
    const auto check = [&] {
      EXPECT_EQ(kernel->tier->Compiled(), nullptr);
      if (kernel->tier->Failure().empty()) kernel->tier->slot<FilterSpec>()->meter()->Count(100);
      EXPECT_NE(kernel->tier->Failure(), "");
      EXPECT_TRUE(CompileQueue::OfProcess().IsIdle());
      kernel = FilterWithTier();
    };
    EXPECT_GE(RefuseEach(refusing, steps, check), 2u);
  }
}

}  // namespace
}  // namespace quern_test
