// SPDX-License-Identifier: Apache-2.0
// What the library has to say beside the answers of its calls: warnings, and with QUERN_VERBOSE=1 a line per
// compilation.
#ifndef QUERN_CODEGEN_BASE_LOG_H_
#define QUERN_CODEGEN_BASE_LOG_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace quern {

enum class LogLevel : uint8_t {
  kWarning,  // something is not as it should be; results are right all the same
  kInfo,     // asked for, by QUERN_VERBOSE or QUERN_OVERRIDE
};

// The text on one line: line ends become blanks, other control characters are escaped.
std::string OneLine(std::string_view text);

// One line, without its end. Called by any thread, one line at a time; must not call the library.
using LogCallback = std::function<void(LogLevel, std::string_view)>;

// Who hears the lines from now on; null: stderr, as "quern: warning: .." and the bare line. *Threads*: any.
void SetLogCallback(LogCallback callback);

void Log(LogLevel level, std::string_view line);
// A warning that the process has not heard yet; the same text is not said twice.
void WarnOnce(const std::string& line);

}  // namespace quern

#endif  // QUERN_CODEGEN_BASE_LOG_H_
