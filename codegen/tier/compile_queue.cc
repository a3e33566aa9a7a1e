// SPDX-License-Identifier: Apache-2.0
// One thread compiles, first come, first served. A compilation takes 3 to 40 ms and a process needs few of them; more
// threads would only take more of the host's CPUs at the same time.
//
// The thread has a low priority: a nice value of 10, or 19 on a machine with one CPU. An idle CPU runs it at once all
// the same. If all CPUs are busy with the host's threads, Linux gives it a weight of 110 (or 15) against 1024: a job
// that shares its CPU loses a tenth (or one part in seventy) of its speed during a compilation, and no more however
// long that takes.
//
// Threads of a library can harm their process in three ways, which are handled as follows:
//
// * exit: static objects are destroyed while threads still run. Stop therefore runs at exit before that and waits until
//   the present job reaches its next stage, within a few milliseconds, where it sees that it should stop.
// * fork: the child has only the thread that called fork, and locks that other threads held are locked for ever. So
//   fork waits until no job runs (fork_safety.h), and the child begins with a queue of its own.
// * signals: a handler of the host would run on a thread that the host did not create. Our thread blocks all signals
//   except those of a crash.
#include "codegen/tier/compile_queue.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "codegen/base/process_end.h"
#include "runtime/base/fork_safety.h"
#include "runtime/base/thread_local.h"

namespace quern {
namespace {

constexpr int kNice = 10;
constexpr int kNiceOnOneCpu = 19;

// True while this thread runs a job: exit, for example by a log callback, must not wait for its own thread.
QUERN_THREAD_LOCAL bool runs_job = false;

void BePolite() {
  // Applies to the thread, not the process: Linux accepts thread ids here. On failure the thread keeps its priority.
  const auto thread = static_cast<id_t>(syscall(SYS_gettid));
  (void)setpriority(PRIO_PROCESS, thread, NumUsableCpus() == 1 ? kNiceOnOneCpu : kNice);
  pthread_setname_np(pthread_self(), "quern-compile");
}

}  // namespace

struct CompileQueue::State {
  ForkSafeMutex mutex;
  ForkSafeCondition changed;  // of any field below
  std::deque<std::weak_ptr<CompileJob>> waiting;
  unsigned num_running = 0;
  CompileThread whose = CompileThread::kOwn;
  bool has_thread = false;
  std::thread thread;
  std::atomic<bool> stop{false};

  // Callers of the functions below hold the lock.
  std::shared_ptr<CompileJob> TakeFirst() {
    while (!waiting.empty()) {
      std::shared_ptr<CompileJob> job = waiting.front().lock();
      waiting.pop_front();
      if (job != nullptr) return job;
    }
    return nullptr;
  }

  // Releases the lock while the job runs. A job that was taken from the queue is done before the process forks, since a
  // child would forget it.
  void Run(std::shared_ptr<CompileJob> job, std::unique_lock<ForkSafeMutex>* lock) {
    std::optional<NoFork> no_fork(std::in_place);
    ++num_running;
    lock->unlock();
    runs_job = true;
    job->Run(stop);
    job.reset();
    no_fork.reset();  // calls back for what was logged
    runs_job = false;
    lock->lock();
    --num_running;
    changed.notify_all();
  }

  bool StartThread() {
    // Handlers run in the reverse order of their registration: this one before the destructors of objects that the host
    // made before the first job, which its log callback may use. (Destructors of Quern and LLVM never run.)
    static const bool registered = (AtProcessEnd([] { OfProcess().Stop(); }), true);
    (void)registered;
    sigset_t all, before;
    sigfillset(&all);
    for (const int crash : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) sigdelset(&all, crash);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      thread = std::thread([this] { Loop(this); });
      has_thread = true;
    } catch (const std::system_error&) {  // the limit of threads, or no memory for a stack
    } catch (const std::bad_alloc&) {
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return has_thread;
  }
};

CompileQueue* CompileQueue::MakeForProcess() {
  std::unique_ptr<CompileQueue> queue(new CompileQueue);
  auto state = std::make_unique<State>();
  queue->spare_ = new State;
  queue->state_ = state.release();
  return queue.release();
}

CompileQueue& CompileQueue::OfProcess() {
  const NoFork no_fork;  // the first call makes it
  static CompileQueue* queue = [] {
    CompileQueue* made = MakeForProcess();
    CallInForkedChild(ForkReset::kCompileQueue, &AfterForkInChild);
    return made;
  }();
  return *queue;
}

void CompileQueue::Loop(State* state) {
  BePolite();
  std::unique_lock<ForkSafeMutex> lock(state->mutex);
  while (true) {
    state->changed.wait(
        lock, [&] { return state->stop || (state->whose == CompileThread::kOwn && !state->waiting.empty()); });
    if (state->stop) return;
    if (auto job = state->TakeFirst()) state->Run(std::move(job), &lock);
  }
}

Added CompileQueue::Add(const std::shared_ptr<CompileJob>& job) {
  State* state = state_;
  std::lock_guard<ForkSafeMutex> lock(state->mutex);
  if (state->stop) return Added::kEnding;
  if (spare_ == nullptr) spare_ = new State;
  if (state->whose == CompileThread::kOwn && !state->has_thread) {
    if (!state->StartThread()) return Added::kNoThread;
  }
  state->waiting.push_back(job);
  state->changed.notify_all();
  return Added::kWaiting;
}

bool CompileQueue::RunOne(std::chrono::milliseconds timeout) {
  State* state = state_;
  const auto until = std::chrono::steady_clock::now() + timeout;
  std::unique_lock<ForkSafeMutex> lock(state->mutex);
  while (true) {
    state->changed.wait_until(lock, until, [&] { return state->stop || !state->waiting.empty(); });
    if (state->stop || state->waiting.empty()) return false;
    if (auto job = state->TakeFirst()) {
      state->Run(std::move(job), &lock);
      return true;
    }
  }
}

bool CompileQueue::RunIfWaiting(const CompileJob& job) {
  State* state = state_;
  std::unique_lock<ForkSafeMutex> lock(state->mutex);
  for (auto at = state->waiting.begin(); at != state->waiting.end(); ++at) {
    std::shared_ptr<CompileJob> found = at->lock();
    if (found.get() != &job) continue;
    state->waiting.erase(at);
    state->Run(std::move(found), &lock);
    return true;
  }
  return false;
}

bool CompileQueue::IsIdle() {
  std::lock_guard<ForkSafeMutex> lock(state_->mutex);
  return state_->waiting.empty() && state_->num_running == 0;
}

void CompileQueue::SetThread(CompileThread thread) {
  State* state = state_;
  std::lock_guard<ForkSafeMutex> lock(state->mutex);
  state->whose = thread;
  if (thread == CompileThread::kOwn && !state->has_thread && !state->waiting.empty()) state->StartThread();
  state->changed.notify_all();
}

CompileThread CompileQueue::thread() {
  std::lock_guard<ForkSafeMutex> lock(state_->mutex);
  return state_->whose;
}

void CompileQueue::Stop() {
  State* state = state_;
  {
    std::unique_lock<ForkSafeMutex> lock(state->mutex);
    state->stop = true;
    state->waiting.clear();
    state->changed.notify_all();
    // Also waits for jobs on threads of the host.
    const unsigned own = runs_job ? 1 : 0;
    state->changed.wait(lock, [&] { return state->num_running <= own; });
  }
  if (state->has_thread && state->thread.get_id() != std::this_thread::get_id() && state->thread.joinable())
    state->thread.join();
}

// The old state is left alone: its thread does not exist here, and the thread that forks may be within a job of it. The
// spare one takes its place. There is none where the state is that of a child to which no job was added yet; it has
// neither.
void CompileQueue::AfterForkInChild() {
  CompileQueue& queue = OfProcess();
  if (queue.spare_ == nullptr) return queue.state_->changed.MakeAnew();
  State* old = std::exchange(queue.state_, std::exchange(queue.spare_, nullptr));
  queue.state_->whose = old->whose;
  for (const auto& waiting : old->waiting) {
    if (auto job = waiting.lock()) job->Forgotten();
  }
}

unsigned NumUsableCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return std::max(std::thread::hardware_concurrency(), 1u);
  return static_cast<unsigned>(std::max(CPU_COUNT(&set), 1));
}

}  // namespace quern
