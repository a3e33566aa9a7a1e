// SPDX-License-Identifier: Apache-2.0
// One lock around everything: a line is rare, and two threads' lines must not mix.
#include "codegen/log.h"

#include <cstdio>
#include <mutex>
#include <set>
#include <utility>

namespace quern {
namespace {

struct LogState {
  std::mutex mutex;
  LogCallback callback;
  std::set<std::string> said;
};

// Never destroyed: a compile thread may speak while the process ends.
LogState& State() {
  static auto* state = new LogState;
  return *state;
}

void Say(const LogState& state, LogLevel level, std::string_view line) {
  if (state.callback) return state.callback(level, line);
  std::fprintf(stderr, "%s%.*s\n", level == LogLevel::kWarning ? "quern: warning: " : "", static_cast<int>(line.size()), line.data());
}

}  // namespace

void SetLogCallback(LogCallback callback) {
  LogState& state = State();
  std::lock_guard<std::mutex> lock(state.mutex);
  state.callback = std::move(callback);
}

void Log(LogLevel level, std::string_view line) {
  LogState& state = State();
  std::lock_guard<std::mutex> lock(state.mutex);
  Say(state, level, line);
}

void WarnOnce(const std::string& line) {
  constexpr size_t kMaxLines = 1000;  // a process that finds ever new things to warn of is silent one day
  LogState& state = State();
  std::lock_guard<std::mutex> lock(state.mutex);
  if (state.said.size() < kMaxLines && state.said.insert(line).second) Say(state, LogLevel::kWarning, line);
}

}  // namespace quern
