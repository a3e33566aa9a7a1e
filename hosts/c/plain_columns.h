// SPDX-License-Identifier: Apache-2.0
// Columns as hosts have them (constants, columns with a selection of their own, strings by pointer, bools as bytes,
// narrow integers) as the plain columns that kernels read. Internal.
#ifndef QUERN_HOSTS_C_PLAIN_COLUMNS_H_
#define QUERN_HOSTS_C_PLAIN_COLUMNS_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "hosts/c/column_memory.h"
#include "hosts/c/quern.h"
#include "runtime/spec/column_type.h"

namespace quern::c_abi {

// Whether kernels can read the column where it is.
inline bool IsPlain(const quern_column& column) {
  return column.selection == nullptr && column.flags == 0 && column.value_bytes == 0;
}

// Copies a column into a plain one, which has an element for each of these rows of the batch, at the row's number.
// name: the column's in errors: "build key 0 (utf8)".
// *Cost*: some ns a row. *Errors*: InvalidArgument for flags or value_bytes that do not fit the type, and for strings
// that outgrow their offsets; ResourceExhausted.
absl::StatusOr<quern_column> MakePlain(const quern_column& column, const ColumnType& type,
                                       std::span<const uint32_t> rows, const std::string& name, ColumnMemory* memory);

}  // namespace quern::c_abi

#endif  // QUERN_HOSTS_C_PLAIN_COLUMNS_H_
