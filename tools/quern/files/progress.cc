// SPDX-License-Identifier: Apache-2.0
// Nothing is drawn in the first second, so short runs leave a terminal unchanged; then the bar is drawn five times a
// second, at a negligible cost (workers add whole batches to one relaxed counter). The line is redrawn in place ("\r",
// then the escape sequence that clears to the end of the line) and wiped at the end, because the result follows.
#include "tools/quern/files/progress.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <system_error>
#include <utility>

namespace quern::cli {
namespace {

constexpr std::chrono::milliseconds kSilence{1000};
constexpr std::chrono::milliseconds kInterval{200};
constexpr uint64_t kBarWidth = 20;
constexpr const char* kClearLine = "\r\033[K";

}  // namespace

std::string ProgressLine(const std::string& phase, uint64_t done, uint64_t total, const std::string& unit) {
  if (total == 0) return phase + " ...";
  const uint64_t shown = done < total ? done : total;
  const double part = static_cast<double>(shown) / static_cast<double>(total);
  const auto filled = static_cast<uint64_t>(part * static_cast<double>(kBarWidth));
  char percent[16];
  std::snprintf(percent, sizeof percent, "%3d %%", static_cast<int>(part * 100));
  return phase + "  [" + std::string(filled, '#') + std::string(kBarWidth - filled, ' ') + "] " + percent + "  " +
         std::to_string(shown) + " of " + std::to_string(total) + " " + unit;
}

std::string SpilledText(uint64_t bytes) {
  if (bytes == 0) return "";
  return ", " + std::to_string((bytes + (uint64_t{1} << 20) - 1) >> 20) + " MiB spilled";
}

void WipeProgressLine() {
  if (isatty(STDERR_FILENO) != 0) std::fputs(kClearLine, stderr);
}

Progress::Progress(bool wanted) {
  if (!wanted || isatty(STDERR_FILENO) == 0) return;
  try {
    thread_ = std::thread([this] {
      std::unique_lock<std::mutex> lock(mutex_);
      Draw(&lock);
    });
  } catch (const std::system_error&) {
    // No thread can be started: the run continues without a bar.
  }
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Progress::Begin(const std::string& phase, uint64_t total, const std::string& unit) {
  const std::lock_guard<std::mutex> lock(mutex_);
  phase_ = phase;
  unit_ = unit;
  total_ = total;
  done_.store(0, std::memory_order_relaxed);
}

void Progress::ShowSpilled(std::function<uint64_t()> spilled_bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  spilled_bytes_ = std::move(spilled_bytes);
}

void Progress::Draw(std::unique_lock<std::mutex>* lock) {
  if (changed_.wait_for(*lock, kSilence, [this] { return ends_; })) return;
  do {
    std::string line = ProgressLine(phase_, done_.load(std::memory_order_relaxed), total_, unit_);
    if (spilled_bytes_ != nullptr) line += SpilledText(spilled_bytes_());
    std::fprintf(stderr, "%s%s", kClearLine, line.c_str());
    std::fflush(stderr);
  } while (!changed_.wait_for(*lock, kInterval, [this] { return ends_; }));
  std::fputs(kClearLine, stderr);
}

}  // namespace quern::cli
