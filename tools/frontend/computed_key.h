// SPDX-License-Identifier: Apache-2.0
// Where a column or an expression may stand: --by of an aggregation or a sort, and arguments of aggregate functions.
#ifndef QUERN_TOOLS_FRONTEND_COMPUTED_KEY_H_
#define QUERN_TOOLS_FRONTEND_COMPUTED_KEY_H_

#include <initializer_list>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/frontend/column_names.h"

namespace quern::cli {

class ListParser;

// "name collate utf8mb4_bin", "price * qty", within another text, up to ',' or ')' or one of these words or the end. A
// text that is both, as unit-price, has both readings. Where the text ends in none of these, the caller finds out.
absl::StatusOr<KeyText> ParseComputedKey(std::string_view what, ListParser* parser,
                                         std::initializer_list<std::string_view> words);

// "flag as f, year(day) as y": an expression without a name is called like its text.
absl::StatusOr<std::vector<KeyText>> ParseComputedKeys(std::string_view what, std::string_view text);

// `by 1` would make one group of all rows, and is in SQL the first column. key: resolved, with an expression if it is
// no column. *Errors*: the expression names no column.
absl::Status CheckNoConstant(std::string_view what, const KeyText& key);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FRONTEND_COMPUTED_KEY_H_
