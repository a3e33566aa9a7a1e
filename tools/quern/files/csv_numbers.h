// SPDX-License-Identifier: Apache-2.0
// Columns of a CSV file whose values may be numbers, read without losing a digit.
#ifndef QUERN_TOOLS_FILES_CSV_NUMBERS_H_
#define QUERN_TOOLS_FILES_CSV_NUMBERS_H_

#include <arrow/type_fwd.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace quern::cli {

// The column in the first type that holds all of its values: i64, u64, f64, decimal128; utf8 where one of them is no
// number, binary where one is no text either. `texts` is a binary column, `what` names column and file in errors.
// *Errors*: numbers that no type holds.
absl::StatusOr<std::shared_ptr<arrow::ChunkedArray>> ColumnOfTexts(const std::shared_ptr<arrow::ChunkedArray>& texts,
                                                                   const std::string& what);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FILES_CSV_NUMBERS_H_
