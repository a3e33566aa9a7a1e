// SPDX-License-Identifier: Apache-2.0
#include "runtime/spill/io_threads.h"

#include <pthread.h>
#include <signal.h>

#include <system_error>
#include <utility>

namespace quern {

std::unique_ptr<IoThreads> IoThreads::Start(uint32_t num_threads) {
  std::unique_ptr<IoThreads> threads(new IoThreads);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    for (uint32_t i = 0; i < num_threads; ++i) threads->threads_.emplace_back([io = threads.get()] { io->Run(); });
  } catch (const std::system_error&) {  // fewer are enough
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (threads->threads_.empty()) return nullptr;
  return threads;
}

IoThreads::~IoThreads() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void IoThreads::Ask(std::function<void()> run) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    asked_.push_back(std::move(run));
  }
  changed_.notify_one();
}

void IoThreads::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ends_ || !asked_.empty(); });
    if (asked_.empty()) return;
    const std::function<void()> run = std::move(asked_.front());
    asked_.pop_front();
    lock.unlock();
    run();
    lock.lock();
  }
}

}  // namespace quern
