// SPDX-License-Identifier: Apache-2.0
// Work that any number of threads do together: phases of tasks, each of which begins when the one before is done. The
// threads are the caller's, so that a host's scheduler stays in charge: each calls Step for one task at a time, or
// RunTasks, which returns when all work is done. (Morsels: Leis, Boncz, Kemper, Neumann, Morsel-Driven Parallelism,
// SIGMOD 2014.)
#ifndef QUERN_RUNTIME_BASE_SHARED_WORK_H_
#define QUERN_RUNTIME_BASE_SHARED_WORK_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/stop_flag.h"

namespace quern {

// What a step leaves.
enum class WorkState : uint8_t {
  kMore,  // there may be a further step at once, for any thread
  kBusy,  // other threads run all tasks that are left; there may be more when one of them is done
  kDone,  // all work is done, or it has failed
};

class SharedWork {
 public:
  struct Phase {
    uint64_t num_tasks = 0;
    std::function<absl::Status(uint64_t task)> run;  // called on any thread, once for each task
  };
  // Returns the next phase, or nothing after the last one. Called by one thread at a time, when all earlier tasks are
  // done; no task runs meanwhile.
  using NextPhase = std::function<absl::StatusOr<std::optional<Phase>>()>;

  explicit SharedWork(NextPhase next) : next_(std::move(next)) {}

  // Ends the work with Cancelled, before its next task, when the flag is set. Not owned; null: none. Call it before
  // Step.
  void set_stop_flag(const StopFlag* stop_flag) { stop_flag_ = stop_flag; }

  // Runs one task, or begins the next phase. Never waits for another thread. May be called late.
  // *Threads*: any. *Errors*: those of the first task that failed, the same for all threads, once no task runs any
  // more.
  absl::StatusOr<WorkState> Step();
  // Steps until all work is done; waits while other threads are busy. *Threads*, *Errors*: as Step.
  absl::Status RunTasks();

 private:
  WorkState StepLocked(std::unique_lock<std::mutex>* lock);

  NextPhase next_;
  const StopFlag* stop_flag_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  Phase phase_;
  uint64_t next_task_ = 0;    // under the mutex, as all below
  uint64_t num_running_ = 0;  // tasks, and a call of next_
  bool ended_ = false;
  absl::Status status_;
};

// Runs tasks 0 .. num_tasks-1 on up to `threads` threads, the calling one among them: for callers without threads of
// their own. `run` gets the number of the thread (below `threads`) and of the task. Tasks are taken in order from a
// counter; after an error no further task begins. *Errors*: the first failed task's; an exception is one (Internal with
// its text, std::bad_alloc: ResourceExhausted). Where the system has no more threads, or no memory for one, fewer run.
absl::Status RunMorsels(uint32_t threads, uint64_t num_tasks,
                        const std::function<absl::Status(uint32_t thread, uint64_t task)>& run);

}  // namespace quern

#endif  // QUERN_RUNTIME_BASE_SHARED_WORK_H_
