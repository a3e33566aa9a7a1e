// SPDX-License-Identifier: Apache-2.0
// From the names on the command line to the columns, types and spec of one map.
#ifndef QUERN_TOOLS_MAP_MAP_REQUEST_H_
#define QUERN_TOOLS_MAP_MAP_REQUEST_H_

#include <arrow/type_fwd.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/frontend/condition_text.h"
#include "tools/frontend/select_text.h"
#include "tools/quern/files/row_condition.h"
#include "tools/quern/files/row_map.h"
#include "tools/quern/files/table_io.h"

namespace quern::cli {

// The values of the options of a map.
struct MapRequest {
  std::vector<SelectText> select;
  std::optional<ConditionText> where;  // the rows that take part; nullopt: all
};

// Replaces every name by that of the input's column, and * by all columns. what: names the input in errors. *Errors*:
// unknown and ambiguous columns, result columns of one name.
absl::Status ResolveRequest(const std::string& what, const std::vector<std::string>& columns, MapRequest* request);

// The columns that must be read, each once. At least one, since a file is counted by its rows.
std::vector<std::string> ColumnsToRead(const MapRequest& request, const TableInput& input);

// A column of the result.
struct MapResult {
  bool is_computed;
  size_t number;  // of the map's result, or the place of the column in the table
};

struct PreparedMap {
  std::shared_ptr<arrow::Table> table;
  std::shared_ptr<RowMap> map;     // without its kernel
  std::shared_ptr<RowTest> where;  // nullptr: all rows; without its kernel
  std::vector<MapResult> results;
  std::shared_ptr<arrow::Schema> schema;  // of the result, dictionaries decoded
};

// Finds the types and writes the specs. *Cost*: a pass over the bitmaps; casts of dictionaries in expressions.
// *Errors*: those of TypedExpression and PrepareCondition.
absl::StatusOr<PreparedMap> PrepareMap(const MapRequest& request, const std::string& what,
                                       const std::shared_ptr<arrow::Table>& table);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_MAP_MAP_REQUEST_H_
