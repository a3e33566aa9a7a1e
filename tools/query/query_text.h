// SPDX-License-Identifier: Apache-2.0
// The text of a query: relations, each a list of steps in the caller's order.
//
//     open_orders:
//       scan orders
//       filter o_orderdate < date '1995-03-15'
//     result:
//       scan lineitem
//       join open_orders on l_orderkey = o_orderkey
//       aggregate sum(l_extendedprice * (1 - l_discount)) as revenue by o_orderdate
//       sort revenue desc limit 10
//
//     query     :=  [relation] relation*       the last relation is the result; the name of the first may be left out
//     relation  :=  NAME ':' step*
//     step      :=  scan NAME
//                |  filter CONDITION | filter EXPRESSION
//                |  select EXPRESSION [as NAME], .. | select *, ..
//                |  join[.KIND] NAME on SIDE OP SIDE [and ..]            OP: = (a key), < <= > >= != (a residual)
//                |  aggregate [CALLS] [by KEYS]
//                |  sort KEY [desc] [nulls first], .. [limit N [offset N]]
//                |  limit N [offset N]
//
// A step stands on a line of its own; lines that begin with no word of a step continue the one before them. `--` and
// `#` begin comments. The grammars of conditions, expressions and calls are those of the command line.
#ifndef QUERN_TOOLS_QUERY_QUERY_TEXT_H_
#define QUERN_TOOLS_QUERY_QUERY_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/spec/join_spec.h"
#include "tools/frontend/aggregate_text.h"
#include "tools/frontend/column_names.h"
#include "tools/frontend/expression_text.h"
#include "tools/frontend/join_text.h"
#include "tools/frontend/select_text.h"
#include "tools/frontend/sort_text.h"
#include "tools/frontend/where_text.h"

namespace quern::query {

enum class StepKind : uint8_t { kScan, kFilter, kSelect, kJoin, kAggregate, kSort, kLimit };

// The members that belong to the kind are set.
struct QueryStep {
  StepKind kind = StepKind::kScan;
  size_t line = 0;                               // of the text, from 1
  std::string text;                              // the step as it was written, with normalised blanks
  std::string relation;                          // scan, join
  std::vector<cli::WhereText> conditions;        // filter: comparisons that all hold ..
  std::vector<cli::ExpressionText> expressions;  // .. and expressions, which are computed after them
  std::vector<cli::SelectText> select;
  JoinKind join = JoinKind::kInner;
  std::vector<cli::JoinTermText> on;
  std::vector<cli::AggregateText> aggregates;
  std::vector<cli::KeyText> keys;  // aggregate
  std::vector<cli::SortKeyText> sort_keys;
  uint64_t limit = 0;  // sort, limit; 0: none
  uint64_t offset = 0;
};

struct QueryRelation {
  std::string name;
  size_t line = 0;
  std::vector<QueryStep> steps;  // the first is a scan, and no other
};

struct QueryText {
  std::vector<QueryRelation> relations;  // one or more, with different names

  // *Errors*: InvalidArgument that begins with "line N: " and names the text and what is accepted.
  static absl::StatusOr<QueryText> Parse(std::string_view text);
};

// The line of a step in an error, "line 3: ..", unless it has one.
absl::Status AtLine(size_t line, const absl::Status& status);

}  // namespace quern::query

#endif  // QUERN_TOOLS_QUERY_QUERY_TEXT_H_
