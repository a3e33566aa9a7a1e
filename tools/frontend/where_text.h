// SPDX-License-Identifier: Apache-2.0
// The grammar of conditions on any columns of a file: --where of a filter, --filter of a sort or an aggregation, and
// `filter (where` of an aggregate.
#ifndef QUERN_TOOLS_FRONTEND_WHERE_TEXT_H_
#define QUERN_TOOLS_FRONTEND_WHERE_TEXT_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/spec/condition.h"
#include "runtime/spec/spec.h"
#include "tools/frontend/column_names.h"

namespace quern::cli {

class ListParser;

// A constant as it was written; the column decides as which type it is read.
struct WhereConstant {
  enum class Form : uint8_t { kBare, kText, kBytes };  // 42, 1998-09-02, true; 'text', date 'text'; x'00ff'

  Form form = Form::kBare;
  std::string text;   // without quotes; for kBytes the bytes
  std::string shown;  // all of it, for errors
};

// Like Predicate, with names instead of types. A bool column alone is a comparison with true.
struct WhereText {
  PredicateKind kind = PredicateKind::kAnd;
  std::vector<WhereText> children = {};
  KeyText column = {};
  KeyText other = {};
  Comparison op = Comparison::kEqual;
  bool is_bare = false;  // kCompare: the column alone
  bool negated = false;
  std::vector<WhereConstant> constants = {};
  char32_t escape = U'\\';
};

// "l_shipmode in ('MAIL', 'SHIP') and not (l_tax > 0.05 or name collate utf8mb4_general_ci like 'a%')".
// *Errors*: InvalidArgument with `what` (the option), the text from where it is wrong, and what is accepted there.
absl::StatusOr<WhereText> ParseWhere(std::string_view what, std::string_view text);
// A condition within another text, up to its end.
absl::StatusOr<WhereText> ParseWhere(std::string_view what, ListParser* parser);
// Adds a part to a whole of the kind `and` or `or`: the children of a part of that kind, else itself.
void AddPart(WhereText part, WhereText* whole);
// Appends the names of the columns that a condition mentions, in order.
void AddNames(const WhereText& where, std::vector<std::string>* names);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FRONTEND_WHERE_TEXT_H_
