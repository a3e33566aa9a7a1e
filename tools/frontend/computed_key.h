// SPDX-License-Identifier: Apache-2.0
// Where a column or an expression may stand: --by of an aggregation, and arguments of aggregate functions.
#ifndef QUERN_TOOLS_FRONTEND_COMPUTED_KEY_H_
#define QUERN_TOOLS_FRONTEND_COMPUTED_KEY_H_

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/frontend/column_names.h"

namespace quern::cli {

class ListParser;

// "name collate utf8mb4_bin", "price * qty", within another text, up to ',' or ')' or `as` or the end. A text that is
// both, as unit-price, has both readings.
absl::StatusOr<KeyText> ParseComputedKey(std::string_view what, ListParser* parser);

// "flag as f, year(day) as y": an expression without a name is called like its text.
absl::StatusOr<std::vector<KeyText>> ParseComputedKeys(std::string_view what, std::string_view text);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FRONTEND_COMPUTED_KEY_H_
