// SPDX-License-Identifier: Apache-2.0
// Work that threads share: each task runs once, no phase begins before the previous one is done, and the first failure
// ends the work for all.
#include "runtime/base/shared_work.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace quern {
namespace {

// The statuses of `n` threads that all run tasks.
std::vector<absl::Status> RunTasksBy(SharedWork* work, size_t n) {
  std::vector<absl::Status> statuses(n);
  std::vector<std::thread> threads;
  for (absl::Status& status : statuses) threads.emplace_back([work, &status] { status = work->RunTasks(); });
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

// Phases with that many tasks; each task records that it ran and that all earlier phases are done.
struct CountedPhases {
  std::vector<uint64_t> sizes;
  std::vector<std::vector<std::atomic<int>>> runs;
  std::atomic<uint64_t> num_done{0};
  std::atomic<bool> in_order{true};
  size_t next = 0;

  explicit CountedPhases(std::vector<uint64_t> of) : sizes(std::move(of)) {
    for (const uint64_t n : sizes) runs.emplace_back(n);
  }
  absl::StatusOr<std::optional<SharedWork::Phase>> Next() {
    if (next == sizes.size()) return std::nullopt;
    uint64_t before = 0;
    for (size_t i = 0; i < next; ++i) before += sizes[i];
    in_order = in_order && num_done == before;
    const size_t phase = next++;
    return SharedWork::Phase{sizes[phase], [this, phase, before](uint64_t task) {
                               if (num_done < before) in_order = false;
                               ++runs[phase][task];
                               ++num_done;
                               return absl::OkStatus();
                             }};
  }
};

TEST(SharedWork, EachTaskRunsOnceAndPhasesFollowOneAnother) {
  for (const size_t threads : {1, 2, 4}) {
    CountedPhases phases({3, 0, 1, 200, 0, 7});
    SharedWork work([&] { return phases.Next(); });
    for (const absl::Status& status : RunTasksBy(&work, threads)) EXPECT_TRUE(status.ok()) << status;
    EXPECT_TRUE(phases.in_order);
    EXPECT_EQ(phases.num_done, 211u);
    for (const auto& phase : phases.runs)
      for (const std::atomic<int>& runs : phase) EXPECT_EQ(runs, 1);
  }
}

TEST(SharedWork, NoPhaseIsNoWork) {
  CountedPhases none({}), empty({0, 0});
  SharedWork nothing([&] { return none.Next(); }), no_tasks([&] { return empty.Next(); });
  EXPECT_TRUE(nothing.RunTasks().ok());
  EXPECT_TRUE(no_tasks.RunTasks().ok());
}

TEST(SharedWork, WhoComesLateComesBackAtOnce) {
  CountedPhases phases({5});
  SharedWork work([&] { return phases.Next(); });
  EXPECT_TRUE(work.RunTasks().ok());
  EXPECT_TRUE(work.RunTasks().ok());
  EXPECT_EQ(phases.num_done, 5u);
  SharedWork failed(
      []() -> absl::StatusOr<std::optional<SharedWork::Phase>> { return absl::ResourceExhaustedError("no room"); });
  EXPECT_EQ(failed.RunTasks(), absl::ResourceExhaustedError("no room"));
  EXPECT_EQ(failed.RunTasks(), absl::ResourceExhaustedError("no room"));
}

TEST(SharedWork, ATaskThatFailsEndsItForAll) {
  std::atomic<int> phases{0}, tasks{0};
  SharedWork work([&]() -> absl::StatusOr<std::optional<SharedWork::Phase>> {
    ++phases;
    return SharedWork::Phase{1000, [&](uint64_t task) {
                               ++tasks;
                               return task == 3 ? absl::ResourceExhaustedError("task 3") : absl::OkStatus();
                             }};
  });
  for (const absl::Status& status : RunTasksBy(&work, 4)) EXPECT_EQ(status, absl::ResourceExhaustedError("task 3"));
  EXPECT_EQ(phases, 1);
  EXPECT_LT(tasks, 1000);
}

// ---- steps: for callers that must not wait
// -----------------------------------------------------------------------------

TEST(SharedWork, AStepIsOneTaskOrTheBeginningOfAPhase) {
  CountedPhases phases({2, 0, 1});
  SharedWork work([&] { return phases.Next(); });
  std::vector<uint64_t> done;  // after each step
  while (*work.Step() != WorkState::kDone) done.push_back(phases.num_done);
  EXPECT_EQ(done, (std::vector<uint64_t>{0, 1, 2, 2, 2, 3}));
  EXPECT_EQ(*work.Step(), WorkState::kDone);
}

TEST(SharedWork, AStepDoesNotWaitForATaskOrForAPhase) {
  SharedWork* work = nullptr;
  std::vector<WorkState> while_running;
  int num_phases = 0;
  SharedWork one_task([&]() -> absl::StatusOr<std::optional<SharedWork::Phase>> {
    while_running.push_back(*work->Step());
    if (num_phases++ == 1) return std::nullopt;
    return SharedWork::Phase{1, [&](uint64_t) {
                               while_running.push_back(*work->Step());
                               return absl::OkStatus();
                             }};
  });
  work = &one_task;
  EXPECT_TRUE(work->RunTasks().ok());
  EXPECT_EQ(while_running, std::vector<WorkState>(3, WorkState::kBusy));
}

TEST(SharedWork, AStepReportsAFailureWhenNoTaskRunsAnyMore) {
  SharedWork* work = nullptr;
  absl::StatusOr<WorkState> within = WorkState::kMore;
  SharedWork two_tasks([&]() -> absl::StatusOr<std::optional<SharedWork::Phase>> {
    return SharedWork::Phase{2, [&](uint64_t task) {
                               if (task == 1) return absl::ResourceExhaustedError("task 1");
                               within = work->Step();  // task 1, which fails
                               return absl::OkStatus();
                             }};
  });
  work = &two_tasks;
  EXPECT_EQ(*work->Step(), WorkState::kMore);  // the phase begins
  EXPECT_EQ(work->Step().status(), absl::ResourceExhaustedError("task 1"));
  ASSERT_TRUE(within.ok()) << within.status();
  EXPECT_EQ(*within, WorkState::kMore);
  EXPECT_EQ(work->Step().status(), absl::ResourceExhaustedError("task 1"));
}

TEST(SharedWork, StepsOfManyThreadsDoAllTasks) {
  CountedPhases phases({3, 0, 1, 200, 0, 7});
  SharedWork work([&] { return phases.Next(); });
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&work] {
      while (*work.Step() != WorkState::kDone) std::this_thread::yield();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(phases.in_order);
  EXPECT_EQ(phases.num_done, 211u);
}

TEST(SharedWork, AFailedAllocationIsAStatus) {
  SharedWork in_task([]() -> absl::StatusOr<std::optional<SharedWork::Phase>> {
    return SharedWork::Phase{2, [](uint64_t) -> absl::Status { throw std::bad_alloc(); }};
  });
  SharedWork between([]() -> absl::StatusOr<std::optional<SharedWork::Phase>> { throw std::bad_alloc(); });
  for (SharedWork* work : {&in_task, &between}) {
    EXPECT_EQ(work->RunTasks(),
              absl::ResourceExhaustedError("out of memory: an allocation failed; accepted: what the system has free"));
  }
}

// ---- morsels
// ---------------------------------------------------------------------------------------------------------------------

TEST(RunMorsels, EachTaskRunsOnceOnAThreadBelowTheNumber) {
  for (const uint32_t threads : {0, 1, 3, 100}) {
    for (const uint64_t num_tasks : {0, 1, 2, 500}) {
      std::vector<std::atomic<int>> runs(num_tasks);
      std::atomic<uint32_t> largest{0};
      const absl::Status status = RunMorsels(threads, num_tasks, [&](uint32_t thread, uint64_t task) {
        ++runs[task];
        for (uint32_t seen = largest; seen < thread && !largest.compare_exchange_weak(seen, thread);) {
        }
        return absl::OkStatus();
      });
      EXPECT_TRUE(status.ok());
      EXPECT_LT(largest, std::max(threads, 1u));
      for (const std::atomic<int>& n : runs) EXPECT_EQ(n, 1);
    }
  }
}

TEST(RunMorsels, TheFirstErrorIsTheAnswerAndEndsIt) {
  std::atomic<int> runs{0};
  const auto fails = [&](uint32_t, uint64_t task) {
    ++runs;
    return task < 5 ? absl::OkStatus() : absl::InternalError("task " + std::to_string(task));
  };
  EXPECT_EQ(RunMorsels(1, 100, fails), absl::InternalError("task 5"));
  EXPECT_EQ(runs, 6);
  EXPECT_EQ(RunMorsels(4, 100, fails).code(), absl::StatusCode::kInternal);
  const auto throws = [](uint32_t, uint64_t) -> absl::Status { throw std::bad_alloc(); };
  EXPECT_EQ(RunMorsels(2, 3, throws).code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace quern
