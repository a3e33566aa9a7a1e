// SPDX-License-Identifier: Apache-2.0
// Words and numbers of the line-based files that people may edit: profiles and captures.
#ifndef QUERN_CODEGEN_BASE_TEXT_WORDS_H_
#define QUERN_CODEGEN_BASE_TEXT_WORDS_H_

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

#include "absl/status/status.h"
#include "runtime/base/status.h"

namespace quern {

// Removes the next word from the front of a line and returns it; "" at the end.
inline std::string_view TakeWord(std::string_view* line) {
  const size_t begin = std::min(line->find_first_not_of(" \t"), line->size());
  const size_t end = std::min(line->find_first_of(" \t", begin), line->size());
  const std::string_view word = line->substr(begin, end - begin);
  line->remove_prefix(end);
  return word;
}

// Removes the next line from the front of a text and returns it without its end.
inline std::string_view TakeLine(std::string_view* text) {
  const size_t end = std::min(text->find('\n'), text->size());
  std::string_view line = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

// Passes each line to reader->ReadLine and calls reader->CheckComplete at the end. *Errors*: those of the reader,
// prefixed with "NAME:LINE: ".
template <class Reader>
absl::Status ReadLines(std::string_view text, std::string_view name, Reader* reader) {
  uint64_t line_number = 0;
  const auto at_line = [&](const absl::Status& status) {
    const uint64_t line = std::max<uint64_t>(line_number, 1);
    return InvalidArgument(ShowPath(name) + ":" + std::to_string(line) + ": " + std::string(status.message()));
  };
  while (!text.empty()) {
    const std::string_view line = TakeLine(&text);
    ++line_number;
    if (const absl::Status status = reader->ReadLine(line); !status.ok()) return at_line(status);
  }
  const absl::Status status = reader->CheckComplete();
  return status.ok() ? status : at_line(status);
}

// True if the whole text is a number from min to max.
inline bool ReadCount(std::string_view text, uint64_t min, uint64_t max, uint64_t* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size() && *value >= min && *value <= max;
}

// True if the whole text is a finite number of at least 0.
inline bool ReadReal(std::string_view text, double* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(*value) && *value >= 0;
}

// So many digits behind the point, in any locale; at least 0.
inline std::string PrintFixed(double value, int decimals) {
  constexpr double kLargest = 1e15;  // leaves room for the digits
  char text[64];
  const auto [end, error] =
      std::to_chars(text, text + sizeof text, std::clamp(value, 0.0, kLargest), std::chars_format::fixed, decimals);
  return error == std::errc() ? std::string(text, end) : "0";
}

// Six digits, in any locale.
inline std::string PrintReal(double value) {
  char text[32];
  const auto [end, error] =
      std::to_chars(text, text + sizeof text, std::isfinite(value) ? value : 0, std::chars_format::general, 6);
  return error == std::errc() ? std::string(text, end) : "0";
}

}  // namespace quern

#endif  // QUERN_CODEGEN_BASE_TEXT_WORDS_H_
