// SPDX-License-Identifier: Apache-2.0
// Reads CSV files.
#ifndef QUERN_TOOLS_FILES_READ_CSV_H_
#define QUERN_TOOLS_FILES_READ_CSV_H_

#include <arrow/type_fwd.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace quern::cli {

absl::StatusOr<std::shared_ptr<arrow::Schema>> CsvSchema(const std::string& path);

// The named columns, with types from their values. *Errors*: numbers that no type holds exactly.
absl::StatusOr<std::shared_ptr<arrow::Table>> ReadCsv(const std::string& path, const std::vector<std::string>& columns);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FILES_READ_CSV_H_
