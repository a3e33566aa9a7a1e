// SPDX-License-Identifier: Apache-2.0
// Python runs signal handlers in its main thread, between two of its own instructions; a call that computes for a
// minute would delay Ctrl-C for a minute. So the calling thread does not compute: it waits, and every 20 ms it takes
// the GIL and checks for signals.
//
//     caller     wait 20 ms, PyErr_CheckSignals, wait 20 ms, ..
//                    (KeyboardInterrupt: stop = true, cancel the job, wait for the threads, raise)
//     thread 0   morsel, stop?, morsel, stop?, ..
//     thread 1   morsel, stop?, ..
//
// A morsel is 65,536 rows, a few milliseconds at most; a call that takes longer, such as the building of a table, ends
// when its job is cancelled. In threads other than the main one the question is answered with
// no at once. A bar that shows how far the work is (quern/_progress.py) is drawn at the same moments, by the same
// thread.
//
// Where the system starts no further thread, those that there are do all of the work; where it starts none, the calling
// thread does, and checks for signals between two morsels.
#include "workers.h"
#include "errors.h"
#include "without_gil.h"

#include <Python.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace quern::python {
namespace {

constexpr std::chrono::milliseconds kBetweenChecks(20);

// When a thread fails, the calls of the others fail too, and one of these may report first.
bool IsFollowUp(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const FollowUpError&) {
    return true;
  } catch (...) {
    return false;
  }
}

// What the threads of one piece of work share with the thread that waits for them.
struct Team {
  const std::function<void()>& cancel;
  std::mutex mutex;
  std::condition_variable ended;
  uint32_t running = 0;
  std::exception_ptr failure;
  std::atomic<bool> stop = false;

  void Fail(std::exception_ptr exception) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (!failure || (IsFollowUp(failure) && !IsFollowUp(exception))) failure = std::move(exception);
    stop = true;
    if (cancel) cancel();
  }
};

// What the thread's Ticks was made with.
thread_local nanobind::handle current_tick;

void CheckSignals() {
  const nanobind::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
  if (!current_tick) return;
  const nanobind::handle tick = current_tick;
  const Ticks none{nanobind::handle()};
  tick();
}

// Returns false if the system has no further thread; fewer do the work then.
bool Start(Team* team, const std::function<void(uint32_t)>& run, std::vector<std::thread>* workers) {
  {
    const std::lock_guard<std::mutex> lock(team->mutex);
    ++team->running;
  }
  try {
    workers->emplace_back(run, static_cast<uint32_t>(workers->size()));
    return true;
  } catch (const std::system_error&) {
  } catch (...) {
    team->Fail(std::current_exception());
  }
  const std::lock_guard<std::mutex> lock(team->mutex);
  --team->running;
  return false;
}

void Wait(Team* team) {
  std::unique_lock<std::mutex> lock(team->mutex);
  while (team->running > 0) {
    if (team->ended.wait_for(lock, kBetweenChecks, [team] { return team->running == 0; })) return;
    lock.unlock();
    try {
      CheckSignals();
    } catch (...) {
      team->Fail(std::current_exception());
    }
    lock.lock();
  }
}

}  // namespace

Ticks::Ticks(nanobind::handle tick) : outer_(current_tick) { current_tick = tick; }
Ticks::~Ticks() { current_tick = outer_; }

void RunWorkers(uint32_t threads, const Work& work, const std::function<void()>& cancel) {
  Team team{.cancel = cancel};
  std::vector<std::thread> workers;
  {
    const WithoutGil no_gil;
    const auto run = [&team, &work](uint32_t thread) {
      try {
        work(thread, [&team] { return !team.stop; });
      } catch (...) {
        team.Fail(std::current_exception());
      }
      const std::lock_guard<std::mutex> lock(team.mutex);
      --team.running;
      team.ended.notify_all();
    };
    workers.reserve(threads);
    while (workers.size() < threads && Start(&team, run, &workers)) {
    }
    if (workers.empty() && !team.failure) {
      SignalCheck check_signals;
      return work(0, [&check_signals] {
        check_signals();
        return true;
      });
    }
    Wait(&team);
    for (std::thread& worker : workers) worker.join();
  }
  if (team.failure) std::rethrow_exception(team.failure);
}

void SignalCheck::operator()() {
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < kBetweenChecks) return;
  last_ = now;
  CheckSignals();
}

}  // namespace quern::python
