// SPDX-License-Identifier: Apache-2.0
// Messages of the library apart from the results of its calls: warnings, and with QUERN_VERBOSE=1 a line for each
// compilation.
#ifndef QUERN_CODEGEN_BASE_LOG_H_
#define QUERN_CODEGEN_BASE_LOG_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace quern {

enum class LogLevel : uint8_t {
  kWarning,  // something is wrong, but results are correct
  kInfo,     // requested by QUERN_VERBOSE or QUERN_OVERRIDE
};

// The text on one line: line ends become blanks, other control characters are escaped.
std::string OneLine(std::string_view text);

// Receives one line, without its end. Any thread may call it, one line at a time; it must not call the library. A line
// of a compilation comes when the compilation ends.
using LogCallback = std::function<void(LogLevel, std::string_view)>;

// Sets the receiver of all later lines; null: stderr, as "quern: warning: .." and the bare line. *Threads*: any.
void SetLogCallback(LogCallback callback);

void Log(LogLevel level, std::string_view line);
// Logs a warning once: a text that the process has logged before is dropped.
void WarnOnce(const std::string& line);

}  // namespace quern

#endif  // QUERN_CODEGEN_BASE_LOG_H_
