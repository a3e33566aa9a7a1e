// SPDX-License-Identifier: Apache-2.0
// Every diagnostic of the CLI is one line of one form,
//
//     quern: error: unknown command: jion; did you mean join? accepted: join, aggregate, sort, .., doctor, env
//     ^program      ^what is wrong   ^value ^help
//
// so that scripts can cut it and tests can compare it whole. The nearest word is the one with the smallest number of
// characters to insert, delete, replace or swap with their neighbour (Damerau-Levenshtein distance): "jion" -> "join"
// takes 1 swap. A word is near when at most a third of the longer one changes, or one character of a word of two or
// three: "jti" is near "jit", "odd" is not near "id".
//
// InvalidArgument is the code of an error in the command, all others are errors in data or environment.
#include "tools/frontend/errors.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <utility>

namespace quern::cli {
namespace {

constexpr size_t kWordsShown = 20;

// By rows of the usual table: row[j] is the distance of the first i characters of `a` and the first j of `b`. A swap
// looks two rows back.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> before, above, row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    before = std::exchange(above, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1), above[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

// The nearest word, or "" when none is near.
std::string NearestWord(std::string_view value, const std::vector<std::string>& words) {
  std::string nearest;
  size_t best = SIZE_MAX;
  for (const std::string& word : words) {
    const size_t longer = std::max(word.size(), value.size());
    const size_t distance = EditDistance(value, word);
    if (distance > std::max<size_t>(1, longer / 3) || distance >= longer || distance >= best) continue;
    best = distance;
    nearest = word;
  }
  return nearest;
}

}  // namespace

absl::Status CommandError(const std::string& text) { return absl::InvalidArgumentError(text); }
absl::Status DataError(const std::string& text) { return absl::FailedPreconditionError(text); }

absl::Status AsDataError(const absl::Status& status) {
  return absl::IsInvalidArgument(status) ? DataError(std::string(status.message())) : status;
}

std::string JoinWords(const std::vector<std::string>& words) {
  std::string text;
  for (size_t i = 0; i < std::min(words.size(), kWordsShown); ++i) text += (i == 0 ? "" : ", ") + words[i];
  if (words.size() > kWordsShown) text += ", ... (" + std::to_string(words.size()) + " in all)";
  return text;
}

std::string UnknownWord(std::string_view noun, std::string_view value, const std::vector<std::string>& accepted) {
  const std::string nearest = NearestWord(value, accepted);
  return "unknown " + std::string(noun) + ": " + std::string(value) +
         (nearest.empty() ? "; " : "; did you mean " + nearest + "? ") + "accepted: " + JoinWords(accepted);
}

int ReportError(const absl::Status& status) {
  std::fprintf(stderr, "quern: error: %s\n", OneLine(std::string(status.message())).c_str());
  return absl::IsInvalidArgument(status) ? kExitCommand : kExitData;
}

void ReportWarning(std::string_view text) { std::fprintf(stderr, "quern: warning: %s\n", OneLine(text).c_str()); }

}  // namespace quern::cli
