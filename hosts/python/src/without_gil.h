// SPDX-License-Identifier: Apache-2.0
// Work without the GIL, and what becomes of a thread that comes back from it when the interpreter is ending.
//
// CPython before 3.14 ends a daemon thread that wants the GIL back by pthread_exit, which unwinds; that cannot pass a
// destructor, and the process aborts. So such a thread sleeps instead, as it does from 3.14 on. It is a daemon's: all
// others were waited for.
#ifndef QUERN_HOSTS_PYTHON_SRC_WITHOUT_GIL_H_
#define QUERN_HOSTS_PYTHON_SRC_WITHOUT_GIL_H_

#include <Python.h>
#include <unistd.h>

#include <atomic>

namespace quern::python {

// Set by a function of Python's `atexit`: before any thread is ended.
inline std::atomic<bool> interpreter_ends{false};

class WithoutGil {
 public:
  WithoutGil() : thread_(PyEval_SaveThread()) {}
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;
  ~WithoutGil() {
    while (interpreter_ends && !is_main_) pause();
    PyEval_RestoreThread(thread_);
  }

 private:
  PyThreadState* const thread_;
  // The thread that ends the interpreter may work on meanwhile.
  const bool is_main_ = getpid() == gettid();
};

}  // namespace quern::python

#endif  // QUERN_HOSTS_PYTHON_SRC_WITHOUT_GIL_H_
