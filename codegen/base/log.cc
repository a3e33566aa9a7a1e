// SPDX-License-Identifier: Apache-2.0
// Lines of two threads must not mix, so one lock is held while a line is said. It is not a ForkSafeMutex: the host's
// function may wait for something that another thread holds while it forks, as Python's GIL, and the fork would wait
// for the line. So a child makes the lock anew, and a line within a NoFork is said after it:
//
//     Compile begins    [plan, optimise, "quern: warning: .." is kept, load] line is said    Compile returns
#include "codegen/base/log.h"

#include <cstdio>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <utility>
#include <vector>

#include "runtime/base/fork_safety.h"
#include "runtime/base/thread_local.h"

namespace quern {
namespace {

struct LogState {
  ForkSafeMutex mutex;  // for callback and said
  std::shared_ptr<const LogCallback> callback;
  std::set<std::string> said;
  std::mutex says;  // held while a line is said
};

QUERN_THREAD_LOCAL bool says_line = false;

// Never destroyed: a compile thread may log while the process ends.
LogState& State() {
  const NoFork no_fork;  // the first call makes it
  static auto* state = [] {
    CallInForkedChild(ForkReset::kLog, [] {
      if (!says_line) new (&State().says) std::mutex;  // else this thread holds it, and forks in its callback
    });
    return new LogState;
  }();
  return *state;
}

struct Line {
  LogLevel level;
  std::string text;
};

void Say(const Line& line) {
  LogState& state = State();
  const std::lock_guard<std::mutex> one_line(state.says);
  std::shared_ptr<const LogCallback> callback;
  {
    const std::lock_guard<ForkSafeMutex> lock(state.mutex);
    callback = state.callback;
  }
  says_line = true;
  if (callback != nullptr) (*callback)(line.level, line.text);
  else std::fprintf(stderr, "%s%s\n", line.level == LogLevel::kWarning ? "quern: warning: " : "", line.text.c_str());
  says_line = false;
}

// Lines of this thread that are kept until its NoFork ends; null if there are none.
QUERN_THREAD_LOCAL std::vector<Line>* kept = nullptr;

void SayKept() {
  const std::unique_ptr<std::vector<Line>> lines(std::exchange(kept, nullptr));
  if (lines == nullptr) return;
  for (const Line& line : *lines) Say(line);
}

void SayOrKeep(LogLevel level, std::string_view text) {
  Line line = {level, OneLine(text)};
  if (!NoFork::Exists()) return Say(line);
  if (kept == nullptr) kept = new std::vector<Line>;
  kept->push_back(std::move(line));
  NoFork::CallAfterwards(&SayKept);
}

}  // namespace

std::string OneLine(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n' || c == '\r' || c == '\t') {
      if (!line.empty() && line.back() != ' ') line += ' ';
    } else if (byte < 0x20 || byte == 0x7f) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\x%02x", byte);
      line += escaped;
    } else {
      line += c;
    }
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

void SetLogCallback(LogCallback callback) {
  LogState& state = State();
  auto made = callback ? std::make_shared<const LogCallback>(std::move(callback)) : nullptr;
  const std::lock_guard<std::mutex> one_line(state.says);  // afterwards nobody runs the earlier one
  const std::lock_guard<ForkSafeMutex> lock(state.mutex);
  state.callback.swap(made);
}

void Log(LogLevel level, std::string_view line) { SayOrKeep(level, line); }

void WarnOnce(const std::string& line) {
  constexpr size_t kMaxLines = 1000;  // bounds the memory of a process that keeps finding new warnings
  {
    LogState& state = State();
    const std::lock_guard<ForkSafeMutex> lock(state.mutex);
    if (state.said.size() >= kMaxLines || !state.said.insert(line).second) return;
  }
  SayOrKeep(LogLevel::kWarning, line);
}

}  // namespace quern
