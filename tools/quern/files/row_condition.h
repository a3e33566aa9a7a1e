// SPDX-License-Identifier: Apache-2.0
// Which rows of a column satisfy a condition of the command line.
#ifndef QUERN_TOOLS_FILES_ROW_CONDITION_H_
#define QUERN_TOOLS_FILES_ROW_CONDITION_H_

#include <arrow/type_fwd.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/frontend/condition_text.h"
#include "tools/quern/files/input_columns.h"

namespace quern::cli {

// A bool column, null where `column` is. `text` names the column ("column k of INPUT"). NaN equals NaN and is greater
// than all numbers; strings compare by their bytes. *Cost*: one pass. *Errors*: a column that is no bool and is
// compared with nothing, types without constants, constants that are not of the column's type.
absl::StatusOr<std::shared_ptr<arrow::ChunkedArray>> RowsThatMeet(const ConditionText& condition,
                                                                  const std::string& text,
                                                                  const std::shared_ptr<arrow::ChunkedArray>& column);

// The same as a column of a kernel's table: its position there.
absl::StatusOr<int> AddCondition(const ConditionText& condition, InputColumns* columns);
// Likewise, true where all of them are satisfied; nullopt: there are none.
absl::StatusOr<std::optional<int>> AddFilters(const std::vector<ConditionText>& filters, InputColumns* columns);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FILES_ROW_CONDITION_H_
