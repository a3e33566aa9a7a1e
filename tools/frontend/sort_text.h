// SPDX-License-Identifier: Apache-2.0
// The grammars of --by of a sort and of --window: keys with their orders, and window functions with their names.
#ifndef QUERN_TOOLS_FRONTEND_SORT_TEXT_H_
#define QUERN_TOOLS_FRONTEND_SORT_TEXT_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/spec/spec.h"
#include "tools/frontend/column_names.h"

namespace quern::cli {

// A column, or an expression, and its order: ascending and nulls last by default.
struct SortKeyText {
  KeyText column;
  bool descending = false;
  bool nulls_first = false;  // whatever the direction
};

// A column that a sort adds.
struct WindowText {
  WindowFunction function = WindowFunction::kRowNumber;
  std::string text;  // the function's name
  std::string name;  // of the column: the function's, or the user's
};

// "a desc, s collate utf8mb4_bin nulls first, price * qty desc": a name or an expression, then its words in any order.
// *Errors*: InvalidArgument with the text and the grammar, or with the one word that is wrong.
absl::StatusOr<std::vector<SortKeyText>> ParseSortKeys(std::string_view what, std::string_view text);

// "row_number, rank as place".
absl::StatusOr<std::vector<WindowText>> ParseWindows(std::string_view what, std::string_view text);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FRONTEND_SORT_TEXT_H_
