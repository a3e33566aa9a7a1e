// SPDX-License-Identifier: Apache-2.0
// From the names on the command line to the columns, types and spec of one filter.
#ifndef QUERN_TOOLS_FILTER_FILTER_REQUEST_H_
#define QUERN_TOOLS_FILTER_FILTER_REQUEST_H_

#include <arrow/type_fwd.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/spec/spec.h"
#include "tools/frontend/condition_text.h"
#include "tools/quern/files/batches.h"
#include "tools/quern/files/row_condition.h"
#include "tools/quern/files/table_io.h"

namespace quern::cli {

// The values of the options of a filter.
struct FilterRequest {
  ConditionText where;
  std::optional<std::vector<std::string>> select;  // nullopt: all columns
  bool may_repeat = false;                         // `select`: names that expressions mention, in any letters
};

// Replaces every name by the file's: a name that no column has stands for the one that differs only in case. Returns
// the columns of the result, in order; none with `count`. *Errors*: unknown, ambiguous and repeated columns.
absl::StatusOr<std::vector<std::string>> ResolveColumns(const TableInput& input, bool count, FilterRequest* request);

// The columns that must be read, each once.
std::vector<std::string> ColumnsToRead(const FilterRequest& request, const std::vector<std::string>& selected);

struct PreparedFilter {
  std::shared_ptr<RowTest> where;         // without its kernels
  KernelInput input;                      // the columns of the condition, then those of the result
  std::shared_ptr<arrow::Schema> schema;  // of the result, dictionaries decoded
  std::vector<int> result;                // of each column its place in the input's table
};

// Finds the types, reads the constants and writes the spec. A column is nullable in the spec if nulls were read.
// *Cost*: casts if two columns of different types are compared, and a pass over the bitmaps. *Errors*: types that have
// no comparison, constants that are not of their column's type; those of expressions.
absl::StatusOr<PreparedFilter> PrepareFilter(const FilterRequest& request, const std::vector<std::string>& selected,
                                             const TableInput& input, const std::shared_ptr<arrow::Table>& table);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FILTER_FILTER_REQUEST_H_
