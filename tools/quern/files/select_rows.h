// SPDX-License-Identifier: Apache-2.0
// Rows of Arrow columns, chosen by a bitmap.
#ifndef QUERN_TOOLS_FILES_SELECT_ROWS_H_
#define QUERN_TOOLS_FILES_SELECT_ROWS_H_

#include <arrow/type_fwd.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/quern/files/batches.h"

namespace quern::cli {

// A copy of the rows whose bits in `passes` are set. The bytes that views point to are shared.
arrow::Result<std::shared_ptr<arrow::Array>> SelectRows(const std::shared_ptr<arrow::Array>& column,
                                                        const std::shared_ptr<arrow::Array>& passes);
// The same of these columns; the others have nulls in their places, which take no memory.
absl::StatusOr<RecordBatchPointer> SelectRows(const RecordBatchPointer& batch,
                                              const std::shared_ptr<arrow::Array>& passes,
                                              const std::vector<int>& columns);

// The bytes of such a copy.
uint64_t BytesOf(const arrow::Array& column);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FILES_SELECT_ROWS_H_
