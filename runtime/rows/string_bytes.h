// SPDX-License-Identifier: Apache-2.0
// How long the strings of a batch are.
#ifndef QUERN_RUNTIME_ROWS_STRING_BYTES_H_
#define QUERN_RUNTIME_ROWS_STRING_BYTES_H_

#include <cstdint>

#include "runtime/abi/kernel_abi.h"
#include "runtime/spec/column_type.h"

namespace quern {

// The bytes of the strings in n rows of a column, which are first + i, or rows[i]; 0 for other types. Nulls may count.
// *Cost*: O(1) for rows that follow one another and strings with offsets, else a read for each row.
uint64_t StringBytesOf(const ColumnType& type, const QuernColumn& column, uint64_t first, const uint32_t* rows,
                       uint32_t n);

}  // namespace quern

#endif  // QUERN_RUNTIME_ROWS_STRING_BYTES_H_
