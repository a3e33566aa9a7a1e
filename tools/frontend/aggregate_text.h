// SPDX-License-Identifier: Apache-2.0
// The grammar of --agg: calls of aggregate functions.
#ifndef QUERN_TOOLS_FRONTEND_AGGREGATE_TEXT_H_
#define QUERN_TOOLS_FRONTEND_AGGREGATE_TEXT_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/spec/aggregate_spec.h"
#include "tools/frontend/column_names.h"
#include "tools/frontend/expression_text.h"
#include "tools/frontend/where_text.h"

namespace quern::cli {

// One call; its constants are in the fields that AggregateSpec has for them.
struct AggregateText {
  AggregateFunction function = AggregateFunction::kCountStar;
  std::vector<KeyText> arguments;
  double quantile = 0.5;
  std::string separator;
  // The condition of the rows that take part: over columns, as an expression, or both, where its text has both
  // readings.
  std::optional<WhereText> filter;
  std::shared_ptr<const ExpressionText> computed_filter;
  std::string filter_text;  // as it was written; "": none
  std::string name;         // of the result column: the user's, or the text of the call with normalised blanks
};

// "count(*), count(x), sum(x), ..": the calls of all functions.
std::string FunctionsText();

// "count(*), sum(x) filter (where b) as total, count(distinct s collate utf8mb4_bin), quantile(x, 0.9), string_agg(s,
// ', ')".
// *Errors*: InvalidArgument with the text and the grammar, or with the one call that is wrong.
absl::StatusOr<std::vector<AggregateText>> ParseAggregates(std::string_view what, std::string_view text);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FRONTEND_AGGREGATE_TEXT_H_
