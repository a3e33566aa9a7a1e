// SPDX-License-Identifier: Apache-2.0
// Imports Arrow C data: checks a struct array, so that an invalid array cannot pass silently, and turns it into the
// columns that kernels read.
#ifndef QUERN_RUNTIME_ROWS_ARROW_IMPORT_H_
#define QUERN_RUNTIME_ROWS_ARROW_IMPORT_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/abi/arrow_abi.h"
#include "runtime/rows/batch_view.h"
#include "runtime/spec/column_type.h"
#include "runtime/spec/spec.h"

namespace quern {

// The column type that reads an Arrow field. *Errors*: Unimplemented, naming the field, its format and what is
// accepted.
absl::StatusOr<ColumnType> TypeOfArrow(const ArrowSchema& field);

// Which children of a struct array are the keys of one side and which its payload, in the spec's order. A child may be
// both. A `rowid` payload needs no child: its entry is -1.
struct ColumnBinding {
  std::vector<int> keys;
  std::vector<int> payload;
};

// Checks that a struct schema can feed one side of a spec: each bound field must have its column's type. A nullable
// field needs a nullable column only when nulls really occur, so that is checked batch by batch.
// *Errors*: InvalidArgument, naming the side, the column, the field and both types.
absl::Status CheckSchema(const ArrowSchema& schema, const ColumnBinding& binding, const std::vector<ColumnType>& keys,
                         const std::vector<ColumnType>& payload, std::string_view side);

// Checks what an array says of itself, without a look at any row: release callback, length, offset, null count, buffers
// and dictionary. `name` names the column in errors. *Cost*: O(1). *Errors*: InvalidArgument.
absl::Status CheckArrowArray(const ArrowArray& array, const ColumnType& type, const std::string& name);

// Takes over a struct array and returns its columns. The array is moved; its release callback runs when the last reader
// is gone, also on error.
// *Cost* of the checks: lengths, offsets, numbers of buffers and null counts: O(columns), and one population count of
// each bitmap (rows / 8 bytes read). String offsets: one pass (4 or 8 bytes a row); the first must not be negative,
// none may fall. Views: one pass; each must lie inside its buffer. Dictionary indices: one pass; each must lie inside
// its dictionary. Fixed width: nothing per row. *Errors*: InvalidArgument, naming the column, the row and the value.
absl::StatusOr<BatchView> ImportArrow(ArrowArray* array, const ColumnBinding& binding,
                                      const std::vector<ColumnType>& keys, const std::vector<ColumnType>& payload);

}  // namespace quern

#endif  // QUERN_RUNTIME_ROWS_ARROW_IMPORT_H_
