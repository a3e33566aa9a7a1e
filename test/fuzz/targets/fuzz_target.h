// SPDX-License-Identifier: Apache-2.0
// What the fuzz targets share: rules that end the process where they are broken, and a reader of fuzz input.
#ifndef QUERN_TEST_FUZZ_TARGETS_FUZZ_TARGET_H_
#define QUERN_TEST_FUZZ_TARGETS_FUZZ_TARGET_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace quern::fuzz {

// Ends the process with the broken rule and a value; libFuzzer adds the input.
inline void Require(bool holds, std::string_view rule, std::string_view value = {}) {
  if (holds) return;
  std::fprintf(stderr, "broken rule: %.*s: %.*s\n", static_cast<int>(rule.size()), rule.data(),
               static_cast<int>(value.size()), value.data());
  std::abort();
}

inline void RequireErrorForm(std::string_view message) {
  const bool has_value = message.find(": ") != std::string_view::npos;
  // The C ABI cuts longer messages.
  const bool has_accepted = message.find("; ") != std::string_view::npos || message.size() > 1000;
  Require(has_value && has_accepted, "an error reads `<what>: <value>; <what is accepted>`", message);
}

inline void RequireOneLine(std::string_view message) {
  const auto is_control = [](char c) { return (c >= 0 && c < ' ') || c == '\x7f'; };
  Require(std::none_of(message.begin(), message.end(), is_control), "an error is one line", message);
}

// A refusal of a text: a status that says so in the usual form.
inline void RequireRefusal(const absl::Status& status) {
  const std::string message(status.message());
  Require(absl::IsInvalidArgument(status) || absl::IsUnimplemented(status), "a bad text is an invalid argument",
          message);
  RequireErrorForm(message);
}
inline void RequireRefusalInOneLine(const absl::Status& status) {
  RequireRefusal(status);
  RequireOneLine(std::string(status.message()));
}

// Reads numbers and bytes from the front; zeros after the end.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : next_(data), end_(data + size) {}

  bool AtEnd() const { return next_ == end_; }
  uint8_t Byte() { return AtEnd() ? uint8_t{0} : *next_++; }
  uint32_t Below(uint32_t bound) { return Byte() % bound; }  // bound: 1 to 256
  bool Chance(uint32_t in_256) { return Byte() < in_256; }   // never at the end of the input
  void Fill(void* target, size_t size) {
    const size_t given = std::min(size, static_cast<size_t>(end_ - next_));
    std::memset(target, 0, size);
    if (given != 0) std::memcpy(target, next_, given);
    next_ += given;
  }

 private:
  const uint8_t* next_;
  const uint8_t* const end_;
};

}  // namespace quern::fuzz

#endif  // QUERN_TEST_FUZZ_TARGETS_FUZZ_TARGET_H_
