// SPDX-License-Identifier: Apache-2.0
// From the names on the command line to the columns, types and spec of one aggregation.
#ifndef QUERN_TOOLS_AGGREGATE_AGGREGATE_COLUMNS_H_
#define QUERN_TOOLS_AGGREGATE_AGGREGATE_COLUMNS_H_

#include <arrow/type_fwd.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/spec/spec.h"
#include "tools/frontend/aggregate_text.h"
#include "tools/frontend/column_names.h"
#include "tools/frontend/condition_text.h"
#include "tools/quern/files/batches.h"
#include "tools/quern/files/table_io.h"

namespace quern::cli {

// The values of --by, --agg and --filter.
struct AggregateRequest {
  std::vector<KeyText> keys;
  std::vector<AggregateText> aggregates;
  std::optional<ConditionText> where;  // the rows that take part; nullopt: all
};

// Checks the names, and replaces those in conditions and expressions by the file's (ResolveNames). *Errors*: unknown
// columns and collations, result columns of one name.
absl::Status ResolveRequest(const TableInput& input, AggregateRequest* request);

// The columns that must be read, each once. At least one, since a file is counted by its rows.
std::vector<std::string> ColumnsToRead(const AggregateRequest& request, const TableInput& input);

struct PreparedAggregate {
  AggregationSpec spec;
  KernelInput input;
  std::shared_ptr<arrow::Schema>
      schema;  // of the result: keys in the order of --by, then aggregates in the order of --agg
};

// Finds the types, prepares the conditions and writes the spec. A column is nullable in the spec if nulls were read.
// *Cost*: one pass over the bitmaps. *Errors*: types that cannot be grouped or that a function does not accept, and
// those of PrepareCondition.
absl::StatusOr<PreparedAggregate> PrepareAggregate(const AggregateRequest& request, const TableInput& input,
                                                   const std::shared_ptr<arrow::Table>& table);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_AGGREGATE_AGGREGATE_COLUMNS_H_
