// SPDX-License-Identifier: Apache-2.0
// From the names on the command line to the columns, types and spec of one sort.
#ifndef QUERN_TOOLS_SORT_SORT_REQUEST_H_
#define QUERN_TOOLS_SORT_SORT_REQUEST_H_

#include <arrow/type_fwd.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/spec/spec.h"
#include "tools/frontend/column_names.h"
#include "tools/frontend/condition_text.h"
#include "tools/frontend/sort_text.h"
#include "tools/quern/files/batches.h"
#include "tools/quern/files/table_io.h"

namespace quern::cli {

// The values of the options of a sort.
struct SortRequest {
  std::vector<SortKeyText> keys;  // those of --partition-by, then those of --by
  uint32_t num_partition_keys = 0;
  std::vector<WindowText> windows;
  std::optional<std::vector<std::string>> select;  // nullopt: all columns
  std::optional<ConditionText> where;              // the rows that take part; nullopt: all
  uint64_t limit = 0;                              // 0: all rows
  bool stable = false;
};

// The columns of the file that the result has, in order; none with `count`. Replaces the names in the condition and
// in keys that are expressions by the file's (ResolveNames). *Errors*: unknown and repeated columns, keys and window
// functions, unknown collations.
absl::StatusOr<std::vector<std::string>> SelectColumns(const TableInput& input, bool count, SortRequest* request);

// The columns that must be read, each once.
std::vector<std::string> ColumnsToRead(const SortRequest& request, const std::vector<std::string>& selected);

struct PreparedSort {
  SortSpec spec;
  KernelInput input;
  std::shared_ptr<arrow::Schema> kernel_schema;  // of what the kernel writes (SortOutputTypes), dictionaries decoded
  std::vector<int> order;                        // kernel's column of each result column
};

// Finds the types, prepares the condition and writes the spec. A column is nullable in the spec if nulls were read.
// *Cost*: one pass over the bitmaps. *Errors*: types that cannot be sorted by or carried, and those of
// PrepareCondition.
absl::StatusOr<PreparedSort> PrepareSort(const SortRequest& request, const std::vector<std::string>& selected,
                                         const TableInput& input, const std::shared_ptr<arrow::Table>& table);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_SORT_SORT_REQUEST_H_
