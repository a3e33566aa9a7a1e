// SPDX-License-Identifier: Apache-2.0
// Columns that are made of other columns: cast, gathered, or of bits.
#ifndef QUERN_HOSTS_PYTHON_SRC_COLUMN_MAKING_H_
#define QUERN_HOSTS_PYTHON_SRC_COLUMN_MAKING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "arrow_columns.h"

namespace quern::python {

// The column in another format, every value the same: integers in wider ones and in f64, f32 in f64, strings and
// binaries of any layout in views, decimals with more digits behind the point, dictionaries decoded, nothing but nulls
// (format n) in anything.
// *Errors*: std::invalid_argument for a value that the format does not hold (2^53 + 1 in an f64) and for other formats.
Column CastColumn(const Column& column, const Field& field, const std::string& format);

// Rows rows[0] .. rows[n - 1] of a column. Dictionaries, and bytes of views, are shared with it; all else is copied.
Column GatherColumn(const Column& column, const Field& field, const uint32_t* rows, uint64_t n);

// A bool column without nulls.
Column BitColumn(std::vector<uint8_t> bits, int64_t num_rows);

}  // namespace quern::python

#endif  // QUERN_HOSTS_PYTHON_SRC_COLUMN_MAKING_H_
