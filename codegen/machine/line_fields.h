// SPDX-License-Identifier: Apache-2.0
// Reads the fields "name=value" of a line of a profile, which come in one order.
#ifndef QUERN_CODEGEN_MACHINE_LINE_FIELDS_H_
#define QUERN_CODEGEN_MACHINE_LINE_FIELDS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/base/text_words.h"
#include "runtime/base/status.h"

namespace quern {

// *Errors* of all: InvalidArgument "bad field of a LINE line: WORD; accepted: ..", or "an".
class LineFields {
 public:
  // line: its first word. form: of the whole line, for errors. rest: the line without its first word. Not owned.
  LineFields(const char* line, const char* form, std::string_view rest) : line_(line), form_(form), rest_(rest) {}

  absl::Status Bad(std::string_view word, const std::string& accepted) const {
    const char* const article = std::string_view("aeiou").find(line_[0]) == std::string_view::npos ? "a " : "an ";
    return InvalidArgument("bad field of " + (article + std::string(line_)) + " line: " + Show(word) +
                           "; accepted: " + accepted);
  }

  // The value of the next word, which has this name.
  absl::StatusOr<std::string_view> Take(std::string_view name) {
    const std::string_view word = TakeWord(&rest_);
    std::string_view value;
    if (!ValueOf(word, name, &value)) return Bad(word, form_);
    return value;
  }
  // The same where the next word has this name; else it stays.
  bool TakeIf(std::string_view name, std::string_view* value) {
    std::string_view after = rest_;
    if (!ValueOf(TakeWord(&after), name, value)) return false;
    rest_ = after;
    return true;
  }

  absl::Status TakeCount(std::string_view name, uint32_t min, uint32_t max, uint32_t* count) {
    QUERN_ASSIGN_OR_RETURN(const std::string_view value, Take(name));
    uint64_t number = 0;
    if (!ReadCount(value, min, max, &number))
      return Bad(std::string(name) + "=" + std::string(value), std::to_string(min) + " to " + std::to_string(max));
    *count = static_cast<uint32_t>(number);
    return absl::OkStatus();
  }
  absl::Status TakeReal(std::string_view name, double* real) {
    QUERN_ASSIGN_OR_RETURN(const std::string_view value, Take(name));
    return ReadReal(value, real) ? absl::OkStatus()
                                 : Bad(std::string(name) + "=" + std::string(value), "a number of 0 or more");
  }
  // "ns=5.1 default_ns=5.6 noise=0.012", the last fields of a choice: what it costs, the default's cost, and the noise.
  absl::Status TakeCosts(double* ns, double* default_ns, double* noise) {
    QUERN_RETURN_IF_ERROR(TakeReal("ns", ns));
    QUERN_RETURN_IF_ERROR(TakeReal("default_ns", default_ns));
    QUERN_RETURN_IF_ERROR(TakeReal("noise", noise));
    return CheckEnd();
  }
  absl::Status CheckEnd() {
    const std::string_view word = TakeWord(&rest_);
    return word.empty() ? absl::OkStatus() : Bad(word, form_);
  }

 private:
  static bool ValueOf(std::string_view word, std::string_view name, std::string_view* value) {
    if (word.substr(0, name.size()) != name || word.substr(name.size(), 1) != "=") return false;
    *value = word.substr(name.size() + 1);
    return true;
  }

  const char* const line_;
  const char* const form_;
  std::string_view rest_;
};

// The fields of TakeCosts.
inline std::string PrintCosts(double ns, double default_ns, double noise) {
  return "ns=" + PrintReal(ns) + " default_ns=" + PrintReal(default_ns) + " noise=" + PrintReal(noise);
}

}  // namespace quern

#endif  // QUERN_CODEGEN_MACHINE_LINE_FIELDS_H_
