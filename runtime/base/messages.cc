// SPDX-License-Identifier: Apache-2.0
// A message names the wrong value and lists what is accepted instead. For a misspelt name it also suggests the nearest
// accepted one, by the number of letters inserted, deleted, replaced or swapped with a neighbour: `kyes` is 1 from
// `keys`.
#include "runtime/base/messages.h"

#include <algorithm>

#include "runtime/base/status.h"

namespace quern {
namespace {

char LowerCase(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Damerau-Levenshtein distance (optimal string alignment), ignoring case.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = LowerCase(a[i - 1]) == LowerCase(b[j - 1]);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (same ? 0 : 1)});
      const bool swapped =
          i > 1 && j > 1 && LowerCase(a[i - 1]) == LowerCase(b[j - 2]) && LowerCase(a[i - 2]) == LowerCase(b[j - 1]);
      if (swapped) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

// The accepted name that `value` probably stands for: at most a third of its letters away. Empty if none is that near.
std::string_view Nearest(std::string_view value, const Names& accepted) {
  constexpr size_t kMaxNameBytes = 40;
  if (value.size() < 2 || value.size() > kMaxNameBytes) return {};
  size_t best = std::max<size_t>(value.size() / 3, 1) + 1;
  std::string_view nearest;
  for (std::string_view name : accepted) {
    const size_t distance = Distance(value, name);
    if (distance >= best) continue;
    best = distance;
    nearest = name;
  }
  return nearest;
}

}  // namespace

std::string Listed(const Names& names) {
  std::string text;
  for (std::string_view name : names) {
    if (!text.empty()) text += ", ";
    text += name;
  }
  return text;
}

absl::Status Wrong(std::string_view what, std::string_view value, const std::string& accepted) {
  return InvalidArgument(std::string(what) + ": " + Show(value) + "; accepted: " + accepted);
}

absl::Status Unknown(std::string_view what, std::string_view value, const Names& accepted) {
  const std::string_view nearest = Nearest(value, accepted);
  const std::string hint = nearest.empty() ? "; " : "; did you mean " + std::string(nearest) + "? ";
  return InvalidArgument("unknown " + std::string(what) + ": " + Show(value) + hint + "accepted: " + Listed(accepted));
}

}  // namespace quern
