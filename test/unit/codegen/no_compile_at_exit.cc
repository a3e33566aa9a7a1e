// SPDX-License-Identifier: Apache-2.0
// Waits for the compile thread before the program ends. libquern.so and the command line tool never run LLVM's
// destructors (codegen/base/process_end.cc); this program is linked without that, so that leaks are still looked for.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "codegen/tier/compile_queue.h"

namespace quern {
namespace {

class NoCompileAtExit : public testing::Environment {
 public:
  void TearDown() override {
    CompileQueue& queue = CompileQueue::OfProcess();
    queue.SetThread(CompileThread::kOwn);
    while (!queue.IsIdle()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
};

const testing::Environment* const environment = testing::AddGlobalTestEnvironment(new NoCompileAtExit);

}  // namespace
}  // namespace quern
