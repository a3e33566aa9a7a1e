// SPDX-License-Identifier: Apache-2.0
// Lists of column names on the command line: --by, --select, --null-equal.
#ifndef QUERN_TOOLS_FRONTEND_COLUMN_NAMES_H_
#define QUERN_TOOLS_FRONTEND_COLUMN_NAMES_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/spec/spec.h"

namespace quern::cli {

class ListParser;
struct ExpressionText;

// One name. `whole` is the text as a name ("probe.x"). If the text has a side before its first point, `side` and `name`
// are its two parts. For probe."a.b" only the parts are set, and `whole` is nullopt; for "a.b" only `whole` is, and
// `side` is empty. A name may be empty: "" in quotes.
struct NameText {
  std::optional<std::string> whole;
  std::string side;  // "probe", "build" or ""
  std::string name;
};

// A column, with the collation named after it.
struct KeyText {
  std::string name = {};
  std::string collation = {};  // "": none was named
  // Where expressions are accepted (computed_key.h): the text as an expression, and whether it may be a name as well.
  std::shared_ptr<const ExpressionText> computed = nullptr;
  bool may_be_column = true;
  std::optional<std::string> as = std::nullopt;  // the name that the user gave the result

  const std::string& result_name() const { return as.has_value() ? *as : name; }
};

// "a,build.b,\"odd, name\"". *Errors*: InvalidArgument with `what` (the option), the text and the grammar.
absl::StatusOr<std::vector<NameText>> ParseNames(std::string_view what, std::string_view text);

// The same for a command with one input, where probe.x is a column of that name.
absl::StatusOr<std::vector<std::string>> ParsePlainNames(std::string_view what, std::string_view text);

// "a,\"odd name\" collate utf8mb4_bin".
absl::StatusOr<std::vector<KeyText>> ParseKeys(std::string_view what, std::string_view text);
// One of these, within another list.
absl::StatusOr<KeyText> ParseKey(ListParser* parser);

// The name as it is written in a list: in double quotes if it needs them.
std::string QuoteName(std::string_view name);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FRONTEND_COLUMN_NAMES_H_
