// SPDX-License-Identifier: Apache-2.0
// The common type in which two key columns are compared.
#ifndef QUERN_TOOLS_FILES_KEY_TYPES_H_
#define QUERN_TOOLS_FILES_KEY_TYPES_H_

#include <arrow/type_fwd.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/spec/column_type.h"

namespace quern::cli {

// The type to which both columns are cast before they are compared, such that different values never become equal:
//
//     the same type                          that type
//     integers                               the narrowest that holds both; u64 and signed: decimal128(20, 0)
//     integer and float, two floats          f64 (a whole number that f64 does not hold is refused when it is met)
//     utf8, large and view twins             the probe column's; likewise binary
//     a dictionary and anything else         as its value type
//     decimals, decimal and integer          the larger scale, with room for the larger integer part
//     null (a column without values)         the other's
//
// nullptr: none.
std::shared_ptr<arrow::DataType> CommonKeyType(const std::shared_ptr<arrow::DataType>& probe,
                                               const std::shared_ptr<arrow::DataType>& build);

// The type of a dictionary's values; any other type as it is.
std::shared_ptr<arrow::DataType> DecodedType(const std::shared_ptr<arrow::DataType>& type);

// The kernel's column type that reads an Arrow type. `column` names the column in the error, as "column k of PROBE".
absl::StatusOr<ColumnType> KernelType(const std::string& column, const arrow::DataType& type);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FILES_KEY_TYPES_H_
