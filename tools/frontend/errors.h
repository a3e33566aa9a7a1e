// SPDX-License-Identifier: Apache-2.0
// How the CLI fails: two kinds of error, one line each, and the exit status that goes with the kind.
#ifndef QUERN_TOOLS_FRONTEND_ERRORS_H_
#define QUERN_TOOLS_FRONTEND_ERRORS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "codegen/base/log.h"

namespace quern::cli {

constexpr int kExitOk = 0;
constexpr int kExitData = 1;     // an error in data or environment
constexpr int kExitCommand = 2;  // an error in the command

// The command is wrong or impossible.
absl::Status CommandError(const std::string& text);
// The command is right; the data or the environment are not.
absl::Status DataError(const std::string& text);
// The library returns InvalidArgument for a bad batch too: if data was the argument, this makes it a DataError.
absl::Status AsDataError(const absl::Status& status);

// "unknown NOUN: VALUE; did you mean N? accepted: A, B, C". Long lists of accepted words are cut.
std::string UnknownWord(std::string_view noun, std::string_view value, const std::vector<std::string>& accepted);

// "a, b, c", cut after 20 words: "a, b, ... (30 in all)".
std::string JoinWords(const std::vector<std::string>& words);

// Prints `quern: error: ...` as one line on stderr and returns the exit status.
int ReportError(const absl::Status& status);

// Prints `quern: warning: ...` as one line on stderr.
void ReportWarning(std::string_view text);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FRONTEND_ERRORS_H_
