// SPDX-License-Identifier: Apache-2.0
// Threads for one piece of work. The calling Python thread waits for them without the GIL and ends them at Ctrl-C.
#ifndef QUERN_HOSTS_PYTHON_SRC_WORKERS_H_
#define QUERN_HOSTS_PYTHON_SRC_WORKERS_H_

#include <nanobind/nanobind.h>

#include <chrono>
#include <cstdint>
#include <functional>

namespace quern::python {

// Returns false when the work is to end early: a thread failed, or the user pressed Ctrl-C. Work asks it between two
// calls of the library.
using GoOn = std::function<bool()>;
using Work = std::function<void(uint32_t thread, const GoOn& go_on)>;

// Calls work(thread, go_on) by `threads` threads at once, or by as many as the system starts, and waits for all; 0: by
// the calling thread, which then sees signals where it calls go_on. When the work is to end early, `cancel` is called
// too, perhaps more than once. *Threads*: called with the GIL, which is released meanwhile.
// *Errors*: the first exception of a thread that is no consequence of another one, or what a signal handler of Python
// raised; all threads have ended then.
void RunWorkers(uint32_t threads, const Work& work, const std::function<void()>& cancel = nullptr);

// While it lives, waiting for work on this thread calls `tick` every 20 ms with the GIL. An exception of tick ends the
// work, as Ctrl-C does. tick itself may start work, which is not watched. *Threads*: made and destroyed with the GIL.
// Not owned: tick.
class Ticks {
 public:
  explicit Ticks(nanobind::handle tick);
  Ticks(const Ticks&) = delete;
  Ticks& operator=(const Ticks&) = delete;
  ~Ticks();

 private:
  nanobind::handle outer_;
};

// Lets Python look at signals, every 20 ms at most from its making on. Called without the GIL, on a Python thread.
// *Errors*: as RunWorkers.
class SignalCheck {
 public:
  void operator()();

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace quern::python

#endif  // QUERN_HOSTS_PYTHON_SRC_WORKERS_H_
