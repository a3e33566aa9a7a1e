// SPDX-License-Identifier: Apache-2.0
// Reads Arrow IPC, files and streams.
#ifndef QUERN_TOOLS_FILES_READ_ARROW_H_
#define QUERN_TOOLS_FILES_READ_ARROW_H_

#include <arrow/type_fwd.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace quern::cli {

absl::StatusOr<std::shared_ptr<arrow::Schema>> ArrowSchemaOf(const std::string& path);

// The named columns, in the order of the file. Their values are not checked yet. *Errors*: a damaged frame; more rows
// without values than such a file has.
absl::StatusOr<std::shared_ptr<arrow::Table>> ReadArrow(const std::string& path,
                                                        const std::vector<std::string>& columns);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FILES_READ_ARROW_H_
