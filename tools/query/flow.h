// SPDX-License-Identifier: Apache-2.0
// Rows on their way, while a query is planned: the columns that pipelines number, and the names that the query's steps
// see. Filters and computed columns are added here.
#ifndef QUERN_TOOLS_QUERY_FLOW_H_
#define QUERN_TOOLS_QUERY_FLOW_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/spec/map_spec.h"
#include "tools/frontend/expression_text.h"
#include "tools/frontend/expression_types.h"
#include "tools/frontend/join_text.h"
#include "tools/frontend/where_text.h"
#include "tools/query/query_plan.h"

namespace quern::query {

struct Flow {
  // A column as the query sees it: after `select n_name as nation` the same column has another name.
  struct Named {
    std::string name;
    uint32_t column;
  };

  PlannedPipeline pipeline;          // open: without a sink
  std::vector<QueryColumn> columns;  // behind the last step
  std::vector<Named> names;          // in the order of the result
  std::vector<std::string> others;   // names that no step mentions, for errors

  // A name that no column has stands for the one that differs only in the case of letters. *Errors*: InvalidArgument.
  absl::StatusOr<Named> Find(const std::string& name) const;
  // The same; also an error for a column of a type that no kernel reads.
  absl::StatusOr<ColumnType> TypeOf(const Named& named) const;
  // "column k", for errors.
  static std::string Text(const Named& named);
};

// Adds the columns that one step of a query computes to a flow, by one map.
class Computation {
 public:
  // what: the step's word, for errors. *Ownership*: `flow` must outlive it.
  Computation(Flow* flow, std::string what, std::string text)
      : flow_(*flow), what_(std::move(what)), text_(std::move(text)) {}

  // The number that the column will have. An expression that is a column alone is that column, and one that is there
  // already keeps its number.
  absl::StatusOr<uint32_t> Add(const cli::ExpressionText& expression);
  // The same for a key or an argument: a text that is the name of a column is that column, and no expression.
  absl::StatusOr<uint32_t> AddKey(const cli::KeyText& key);
  // The column cast to another type, likewise.
  absl::StatusOr<uint32_t> Cast(const Flow::Named& named, const ValueType& type);
  // A comparison of two flows likewise: each side is computed of its own flow's columns. numbers: receives the numbers
  // of the sides.
  friend absl::Status AddSides(const cli::JoinTermText& term, Computation* left, Computation* right,
                               uint32_t (&numbers)[2]);
  // Appends the map to the flow's steps, if there is anything to compute. Until then the flow has not these columns.
  absl::Status Finish();

  // Of a column that was added, or is in the flow.
  const QueryColumn& column(uint32_t number) const;

 private:
  // The expression with names of the flow, which become arguments.
  absl::StatusOr<cli::ExpressionText> Resolved(cli::ExpressionText expression);
  absl::StatusOr<uint32_t> AddTyped(Expression typed);
  absl::StatusOr<uint32_t> AddResult(Expression expression, std::string format);
  absl::StatusOr<uint32_t> Argument(const Flow::Named& named);

  Flow& flow_;
  std::string what_, text_;
  MapSpec spec_;
  std::vector<cli::ExpressionColumn> arguments_;  // $0, $1, ..
  std::vector<uint32_t> numbers_;                 // of these
  std::vector<QueryColumn> results_;
};

// Makes two columns, of one flow or of two, alike: integers and decimals are cast to the type that holds both. what:
// the mistake, for errors. numbers: receives the numbers of the columns, or of their casts. *Errors*: InvalidArgument.
absl::Status MakeAlike(const Flow::Named& left, Computation* left_casts, const Flow::Named& right,
                       Computation* right_casts, const std::string& what, uint32_t (&numbers)[2]);

absl::Status AddSides(const cli::JoinTermText& term, Computation* left, Computation* right, uint32_t (&numbers)[2]);

// Keeps the rows for which all conditions and expressions hold; the conditions are tested first. *Errors*:
// InvalidArgument that names the part and what is accepted.
absl::Status AddFilter(const QueryStep& step, Flow* flow);

// The value type of a column, if expressions have it.
std::optional<ValueType> ValueTypeOf(const QueryColumn& column);

// Sets the collation of a name in a text; "" is binary. *Errors*: an unknown name, a column without text.
absl::Status SetCollation(const std::string& name, const Flow::Named& named, const QueryColumn& column,
                          ColumnType* type);

}  // namespace quern::query

#endif  // QUERN_TOOLS_QUERY_FLOW_H_
