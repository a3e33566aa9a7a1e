// SPDX-License-Identifier: Apache-2.0
// A phase of 64 tasks with 3 threads: each thread takes the next number under the mutex, runs the task without it, and
// returns. A thread that finds no number left is told so, or, if no task is running, begins the next phase, also
// without the mutex: nobody waits for it longer than for a few instructions. A task takes hundreds of microseconds, so
// contention is negligible.
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

// No exception, such as one of a host's function, leaves the thread, where it would end the process.
template <class Task>
absl::Status RunTask(const Task& task) {
  const RefusedCalls refused;
  try {
    absl::Status status = task();
    return status.ok() ? refused.status() : status;
  } catch (...) {
    return StatusOfException();
  }
}

}  // namespace

// Called with the mutex held, and returns with it; without it in between.
WorkState SharedWork::StepLocked(std::unique_lock<std::mutex>* lock) {
  if (ended_) return WorkState::kDone;
  const bool has_task = next_task_ < phase_.num_tasks;
  if (!has_task && num_running_ > 0) return WorkState::kBusy;
  const uint64_t task = has_task ? next_task_++ : 0;
  std::optional<Phase> next;
  ++num_running_;
  lock->unlock();
  absl::Status status = RunTask([&]() -> absl::Status {
    if (stop_flag_ != nullptr) QUERN_RETURN_IF_ERROR(stop_flag_->Check());
    if (has_task) return phase_.run(task);
    QUERN_ASSIGN_OR_RETURN(next, next_());
    return absl::OkStatus();
  });
  lock->lock();
  --num_running_;
  const bool is_last = !has_task && !next.has_value();
  if (!status.ok()) {
    if (status_.ok()) status_ = std::move(status);
    next_task_ = phase_.num_tasks;
  } else if (!has_task && next.has_value()) {
    phase_ = *std::move(next);
    next_task_ = 0;
  }
  ended_ = num_running_ == 0 && (is_last || !status_.ok());
  if (num_running_ == 0) changed_.notify_all();
  return ended_ ? WorkState::kDone : WorkState::kMore;
}

absl::StatusOr<WorkState> SharedWork::Step() {
  std::unique_lock<std::mutex> lock(mutex_);
  const WorkState state = StepLocked(&lock);
  if (state == WorkState::kDone) QUERN_RETURN_IF_ERROR(status_);
  return state;
}

absl::Status SharedWork::RunTasks() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    switch (StepLocked(&lock)) {
      case WorkState::kMore: break;
      case WorkState::kBusy: changed_.wait(lock); break;
      case WorkState::kDone: return status_;
    }
  }
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
