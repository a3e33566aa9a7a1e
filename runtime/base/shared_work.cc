// SPDX-License-Identifier: Apache-2.0
// A phase of 64 tasks with 3 threads: each thread takes the next number under the mutex, runs the task without it, and
// returns. A thread that finds no number left waits, or, if no task is running, begins the next phase. A task takes
// hundreds of microseconds, so contention for the mutex is negligible.
//
// A task that runs out of memory ends the work like one that fails; its status allocates nothing (status.h).
#include "runtime/base/shared_work.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "runtime/base/joined_threads.h"
#include "runtime/base/refused_calls.h"
#include "runtime/base/status.h"

namespace quern {
namespace {

template <class Task>
absl::Status RunTask(const Task& task) {
  const RefusedCalls refused;
  absl::Status status = WithoutBadAlloc(task);
  return status.ok() ? refused.status() : status;
}

}  // namespace

// Called with the mutex held, when no task runs and none is left. Returns whether there is a phase with tasks to take.
bool SharedWork::BeginPhase() {
  while (!ended_ && next_task_ == phase_.num_tasks) {
    absl::StatusOr<std::optional<Phase>> next = std::optional<Phase>();
    status_ = RunTask([&] {
      next = next_();
      return next.status();
    });
    ended_ = !status_.ok() || !next->has_value();
    if (ended_) break;
    phase_ = **std::move(next);
    next_task_ = 0;
  }
  changed_.notify_all();
  return !ended_;
}

absl::Status SharedWork::RunTasks() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ended_) {
    if (next_task_ == phase_.num_tasks) {
      if (num_running_ == 0) BeginPhase();
      else changed_.wait(lock);
      continue;
    }
    const uint64_t task = next_task_++;
    ++num_running_;
    lock.unlock();
    absl::Status status = RunTask([&] { return phase_.run(task); });
    lock.lock();
    --num_running_;
    if (!status.ok() && status_.ok()) {
      status_ = std::move(status);
      next_task_ = phase_.num_tasks;
    }
    if (num_running_ > 0 || next_task_ < phase_.num_tasks) continue;
    if (!status_.ok()) {
      ended_ = true;
      changed_.notify_all();
    } else {
      BeginPhase();
    }
  }
  return status_;
}

absl::Status RunMorsels(uint32_t threads, uint64_t num_tasks,
                        const std::function<absl::Status(uint32_t thread, uint64_t task)>& run) {
  std::atomic<uint64_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  absl::Status first;
  const auto work = [&](uint32_t thread) {
    for (uint64_t task = next++; task < num_tasks && !failed; task = next++) {
      absl::Status status = RunTask([&] { return run(thread, task); });
      if (status.ok()) continue;
      const std::lock_guard<std::mutex> lock(mutex);
      if (!failed.exchange(true)) first = std::move(status);
    }
  };
  const uint64_t wanted = std::min<uint64_t>(std::max(threads, 1u), num_tasks);
  JoinedThreads others;
  while (others.size() + 1 < wanted &&
         others.Start([&work, thread = static_cast<uint32_t>(others.size()) + 1] { work(thread); })) {
  }
  work(0);
  others.Join();
  return first;
}

}  // namespace quern
