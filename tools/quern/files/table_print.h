// SPDX-License-Identifier: Apache-2.0
// Prints a table on a terminal.
#ifndef QUERN_TOOLS_FILES_TABLE_PRINT_H_
#define QUERN_TOOLS_FILES_TABLE_PRINT_H_

#include <cstdint>
#include <string>

namespace arrow {
class Table;
}  // namespace arrow

namespace quern::cli {

// The first `max_rows` rows with aligned columns under their names, then the number of rows:
//
//     id  name
//      1  ada
//     12  NULL
//     2 rows
// num_rows: of the result, where the table has only its first rows.
std::string PrintTable(const arrow::Table& table, int64_t max_rows, uint64_t num_rows);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FILES_TABLE_PRINT_H_
