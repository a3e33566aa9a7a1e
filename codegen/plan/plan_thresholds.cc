// SPDX-License-Identifier: Apache-2.0
// A plan's parameters decide how a kernel is made and run; thresholds decide what its operator does once it sees the
// data. Example:
//
//     # thresholds, which no parameter sets
//     partitioned_build_rows = 131072 rows     # smallest build side that is radix-partitioned, .. (a smaller ..
//     small_key_range = 16384 keys             # key range that counts as dense whatever the number of rows (guess)
#include "codegen/plan/plan_thresholds.h"

#include <charconv>
#include <cstdint>

#include "codegen/plan/scope.h"

namespace quern {
namespace {

std::string Text(uint64_t value) { return std::to_string(value); }
std::string Text(double value) {
  char text[32];
  // Like %.10g, but with a point in any locale of the host's process.
  const auto [end, error] = std::to_chars(text, text + sizeof text, value, std::chars_format::general, 10);
  return error == std::errc() ? std::string(text, end) : "0";
}
template <class Integer>
std::string Text(Integer value) {
  return Text(static_cast<uint64_t>(value));
}

std::string Line(const std::string& setting, const std::string& comment) {
  constexpr size_t kColumn = 40;
  return setting + std::string(setting.size() < kColumn ? kColumn - setting.size() : 1, ' ') + "# " + comment + "\n";
}

}  // namespace

std::string PrintThresholds(const KernelSpec& spec) {
  std::string text = "\n# thresholds, which no parameter sets\n";
  using enum Scope;  // the `operators` column
#define QUERN_THRESHOLD(kName, name, operators, value, unit, meaning, figure) \
  if (IsIn(operators, spec)) text += Line(#name " = " + Text(value) + " " unit, meaning " (" figure ")");
#include "runtime/base/thresholds.def"
  std::string gates;
#define QUERN_ADAPTIVE_GATE(Id, name, operators, window, unit, least, of, closed_for, meaning) \
  if (IsIn(operators, spec)) gates += Line(#name " = " #least " of " #of, meaning " (judged by " #window " " unit ")");
#include "runtime/base/adaptive_gates.def"
  if (!gates.empty()) text += "\n# adaptive gates, all open with adapt=off\n" + gates;
  return text;
}

}  // namespace quern
