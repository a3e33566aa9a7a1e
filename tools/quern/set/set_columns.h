// SPDX-License-Identifier: Apache-2.0
// From the names on the command line to the columns, types and spec of one set operation.
#ifndef QUERN_TOOLS_SET_SET_COLUMNS_H_
#define QUERN_TOOLS_SET_SET_COLUMNS_H_

#include <arrow/type_fwd.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/spec/spec.h"
#include "tools/frontend/column_names.h"
#include "tools/quern/files/batches.h"
#include "tools/quern/files/table_io.h"

namespace quern::cli {

constexpr const char* kSetSideWords[2] = {"LEFT", "RIGHT"};

struct SetRequest {
  SetKind kind = SetKind::kUnion;
  std::vector<KeyText> keys;  // of --by; none: all columns of LEFT
};

// The columns that are compared, by their names in both files. *Errors*: columns that either file does not have exactly
// once, unknown collations, a column that is named twice, and more columns than a spec has keys.
absl::StatusOr<std::vector<KeyText>> ResolveSetKeys(const SetRequest& request, const TableInput& left,
                                                    const TableInput& right);

struct PreparedSet {
  SetSpec spec;
  KernelInput inputs[2];                  // left, right
  std::shared_ptr<arrow::Schema> schema;  // of the result: the columns' names and common types, dictionaries decoded
};

// Finds the types, casts columns to their common types, and writes the spec. A column is nullable in the spec if nulls
// were read on either side. *Cost*: one pass over each column whose type changes, and over the bitmaps. *Errors*: types
// that do not compare or that cannot be grouped.
absl::StatusOr<PreparedSet> PrepareSet(SetKind kind, const std::vector<KeyText>& keys,
                                       const std::shared_ptr<arrow::Table>& left,
                                       const std::shared_ptr<arrow::Table>& right);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_SET_SET_COLUMNS_H_
