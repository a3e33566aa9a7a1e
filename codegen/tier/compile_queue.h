// SPDX-License-Identifier: Apache-2.0
// Compilations that go on beside the jobs they are for: a queue, and the thread that works through it.
#ifndef QUERN_CODEGEN_TIER_COMPILE_QUEUE_H_
#define QUERN_CODEGEN_TIER_COMPILE_QUEUE_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

namespace quern {

// One compilation. The queue does not keep it alive: one that nobody holds any more when its turn comes is left out.
class CompileJob {
 public:
  virtual ~CompileJob() = default;
  // Ends soon after `stop` has become true, without having done anything. Throws nothing.
  virtual void Run(const std::atomic<bool>& stop) = 0;
  // It was waiting when the process was copied by fork, and this is the copy, whose queue is empty.
  virtual void Forgotten() = 0;
};

// Whose thread compiles.
enum class CompileThread : uint8_t {
  kOwn,   // one of the library's, started with the first job
  kHost,  // the host's, by RunOne
};

enum class Added : uint8_t {
  kWaiting,
  kNoThread,  // none could be started
  kEnding,    // the process is: nothing is compiled any more
};

// *Threads*: any.
class CompileQueue {
 public:
  // *Ownership*: the process's, for good; another one after fork.
  static CompileQueue& OfProcess();

  // Adds a job behind those that wait. *Cost*: a lock and a wake-up; the first starts the thread.
  Added Add(const std::shared_ptr<CompileJob>& job);

  // Runs the job that has waited longest, or else the next one that comes within `timeout`. Answers whether it ran one.
  bool RunOne(std::chrono::milliseconds timeout);
  // Runs this job now, on this thread, if it still waits. Answers whether it did.
  bool RunIfWaiting(const CompileJob& job);

  // Whether nothing waits and nothing runs.
  bool IsIdle();

  // The thread of the library's ends its present job first.
  void SetThread(CompileThread thread);
  CompileThread thread();

  // Jobs that wait are dropped, one that runs is told to stop and waited for, and no more are taken. At the end of the
  // process, which is then safe from a thread of ours that still runs while statics are destroyed.
  void Stop();

 private:
  CompileQueue() = default;
  struct State;
  State* state_ = nullptr;
  static CompileQueue* MakeForProcess();
  static void BeforeFork();
  static void AfterForkInParent();
  static void AfterForkInChild();
  static void Loop(State* state);
};

// The CPUs that this process may use.
unsigned NumUsableCpus();

}  // namespace quern

#endif  // QUERN_CODEGEN_TIER_COMPILE_QUEUE_H_
