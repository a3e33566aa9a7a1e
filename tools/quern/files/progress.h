// SPDX-License-Identifier: Apache-2.0
// A progress bar on a terminal for anything longer than a second.
#ifndef QUERN_TOOLS_FILES_PROGRESS_H_
#define QUERN_TOOLS_FILES_PROGRESS_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace quern::cli {

// Draws on stderr from a thread of its own, if stderr is a terminal and `wanted`; wiped when it ends. *Threads*: Add
// from any.
class Progress {
 public:
  explicit Progress(bool wanted);
  ~Progress();

  // Begins a phase of `total` rows, or other units; 0: the total is unknown.
  void Begin(const std::string& phase, uint64_t total, const std::string& unit = "rows");
  // From now on the bar also says how many bytes were spilled. spilled_bytes: called by the bar's thread.
  void ShowSpilled(std::function<uint64_t()> spilled_bytes);
  void Add(uint64_t rows) { done_.fetch_add(rows, std::memory_order_relaxed); }

 private:
  void Draw(std::unique_lock<std::mutex>* lock);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string phase_;
  std::string unit_;
  uint64_t total_ = 0;
  std::atomic<uint64_t> done_{0};
  std::function<uint64_t()> spilled_bytes_;
  bool ends_ = false;
  std::thread thread_;
};

// If stderr is a terminal, wipes the bar, so that a line can be printed in between.
void WipeProgressLine();

// "probe  [#####               ]  25 %  1500000 of 6000000 rows". One line without its end, pure: a test can call it.
std::string ProgressLine(const std::string& phase, uint64_t done, uint64_t total, const std::string& unit = "rows");

// ", 1536 MiB spilled"; "" of 0 bytes.
std::string SpilledText(uint64_t bytes);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FILES_PROGRESS_H_
