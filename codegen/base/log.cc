// SPDX-License-Identifier: Apache-2.0
// One lock guards everything: lines are rare, and lines of two threads must not mix.
#include "codegen/base/log.h"

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

// Never destroyed: a compile thread may log while the process ends.
LogState& State() {
  static auto* state = new LogState;
  return *state;
}

void Say(const LogState& state, LogLevel level, std::string_view text) {
  const std::string line = OneLine(text);
  if (state.callback) return state.callback(level, line);
  std::fprintf(stderr, "%s%s\n", level == LogLevel::kWarning ? "quern: warning: " : "", line.c_str());
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
  std::lock_guard<std::mutex> lock(state.mutex);
  state.callback = std::move(callback);
}

void Log(LogLevel level, std::string_view line) {
  LogState& state = State();
  std::lock_guard<std::mutex> lock(state.mutex);
  Say(state, level, line);
}

void WarnOnce(const std::string& line) {
  constexpr size_t kMaxLines = 1000;  // bounds the memory of a process that keeps finding new warnings
  LogState& state = State();
  std::lock_guard<std::mutex> lock(state.mutex);
  if (state.said.size() < kMaxLines && state.said.insert(line).second) Say(state, LogLevel::kWarning, line);
}

}  // namespace quern
