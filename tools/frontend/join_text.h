// SPDX-License-Identifier: Apache-2.0
// The grammars of --on and --residual, and of `on` in a query: comparisons of the two sides of a join.
#ifndef QUERN_TOOLS_FRONTEND_JOIN_TEXT_H_
#define QUERN_TOOLS_FRONTEND_JOIN_TEXT_H_

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/spec/spec.h"
#include "tools/frontend/column_names.h"

namespace quern::cli {

class ListParser;

// L OP R: L is a column or an expression of the probe side's columns, R of the build side's.
struct JoinTermText {
  KeyText probe, build;  // without their collations
  Comparison op = Comparison::kEqual;
  std::string collation = {};  // named after either; "": none was
  // The term as an expression, where it is one. Without a comparison the rest is not set.
  std::shared_ptr<const ExpressionText> whole = nullptr;
  bool is_comparison = true;
};

// "a = b collate utf8mb4_bin", "x * 2 < y + 1", within another text, up to ',' or one of these words or the end.
// *Errors*: InvalidArgument with the text and the grammar, or with what is wrong in an expression.
absl::StatusOr<JoinTermText> ParseJoinTerm(std::string_view what, ListParser* parser,
                                           std::initializer_list<std::string_view> words);

// "a=b,\"odd name\" collate utf8mb4_bin=c,k,year(day)=y": a key without a sign is of that name on both sides.
absl::StatusOr<std::vector<JoinTermText>> ParseKeyPairs(std::string_view what, std::string_view text);

// "a<b,\"odd name\" >= c * 2".
absl::StatusOr<std::vector<JoinTermText>> ParseComparisons(std::string_view what, std::string_view text);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FRONTEND_JOIN_TEXT_H_
