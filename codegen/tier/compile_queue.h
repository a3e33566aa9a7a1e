// SPDX-License-Identifier: Apache-2.0
// Compilations in the background: a queue, and the thread that works through it.
#ifndef QUERN_CODEGEN_TIER_COMPILE_QUEUE_H_
#define QUERN_CODEGEN_TIER_COMPILE_QUEUE_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

namespace quern {

// One compilation. The queue does not keep it alive: a job that has no owner left when its turn comes is skipped.
class CompileJob {
 public:
  virtual ~CompileJob() = default;
  // Returns soon after `stop` becomes true, without a result. Does not throw.
  virtual void Run(const std::atomic<bool>& stop) = 0;
  // Called in the child of a fork for a job that was waiting; the queue of the child is empty.
  virtual void Forgotten() = 0;
};

// Which thread compiles.
enum class CompileThread : uint8_t {
  kOwn,   // a thread of the library, started with the first job
  kHost,  // threads of the host, by RunOne
};

enum class Added : uint8_t {
  kWaiting,
  kNoThread,  // none could be started
  kEnding,    // the process is ending: nothing is compiled any more
};

// *Threads*: any.
class CompileQueue {
 public:
  // *Ownership*: belongs to the process and is never destroyed; a forked child has another one.
  static CompileQueue& OfProcess();

  // Appends a job. *Cost*: one lock and one wake-up; the first call starts the thread.
  Added Add(const std::shared_ptr<CompileJob>& job);

  // Runs the job that has waited longest, or else the next one that arrives within `timeout`. Returns whether it ran
  // one.
  bool RunOne(std::chrono::milliseconds timeout);
  // Runs this job now, on this thread, if it still waits. Returns whether it did.
  bool RunIfWaiting(const CompileJob& job);

  // Whether no job waits and none runs.
  bool IsIdle();

  // The library's thread finishes its present job first.
  void SetThread(CompileThread thread);
  CompileThread thread();

  // Drops the jobs that wait, stops the one that runs and waits for it, and accepts no more. Called at the end of the
  // process, so that our thread does not run while static objects are destroyed.
  void Stop();

 private:
  CompileQueue() = default;
  struct State;
  State* state_ = nullptr;
  State* spare_ = nullptr;  // of a child that is forked, which should not allocate; null in it until a job is added
  static CompileQueue* MakeForProcess();
  static void AfterForkInChild();
  static void Loop(State* state);
};

// The CPUs that this process may use.
unsigned NumUsableCpus();

}  // namespace quern

#endif  // QUERN_CODEGEN_TIER_COMPILE_QUEUE_H_
