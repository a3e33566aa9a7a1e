// SPDX-License-Identifier: Apache-2.0
// Arrow C data in: from a struct array to the columns that kernels read, after a check that a wrong array cannot pass
// silently.
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

// The column type that reads an Arrow field. *Errors*: Unimplemented that names the field, its format and what is
// accepted.
absl::StatusOr<ColumnType> TypeOfArrow(const ArrowSchema& field);

// Which children of a struct array are a side's keys and which its payload, in the spec's order. The columns of one
// side; a child may stand in both. A `rowid` payload takes no child: its entry is -1.
struct ColumnBinding {
  std::vector<int> keys;
  std::vector<int> payload;
};

// Whether a struct schema can feed one side of a spec: each bound field has its column's type; a nullable field needs a
// nullable column only when nulls really come, so that is checked batch by batch.
// *Errors*: InvalidArgument that names side, column, field and both types.
absl::Status CheckSchema(const ArrowSchema& schema, const ColumnBinding& binding, const std::vector<ColumnType>& keys,
                         const std::vector<ColumnType>& payload, std::string_view side);

// Takes over a struct array (it is moved; release is called when the last reader is gone, also on error) and answers
// its columns.
// *Checks and their cost*: lengths, offsets, numbers of buffers, null counts: O(columns), and where a bitmap is present
// one population count of it (rows / 8 bytes read). String offsets: one pass (4 or 8 bytes a row), first one not
// negative, none falling. Views: one pass, each inside its buffer. Dictionary indices: one pass, each inside its
// dictionary. Fixed width: nothing per row. *Errors*: InvalidArgument that names the column, the row and the value.
absl::StatusOr<BatchView> ImportArrow(ArrowArray* array, const ColumnBinding& binding,
                                      const std::vector<ColumnType>& keys, const std::vector<ColumnType>& payload);

}  // namespace quern

#endif  // QUERN_RUNTIME_ROWS_ARROW_IMPORT_H_
