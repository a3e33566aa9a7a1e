// SPDX-License-Identifier: Apache-2.0
// Whether a column is unique in its table.
#ifndef QUERN_TOOLS_QUERY_KEY_COLUMNS_H_
#define QUERN_TOOLS_QUERY_KEY_COLUMNS_H_

#include <cstdint>

#include "tools/query/query_plan.h"
#include "tools/query/query_run.h"

namespace quern::query {

// Whether the column has whole numbers, all different, and no nulls. Of numbers whose range is wide for so many rows
// the answer is no. *Cost*: about 1 ns a row, and a bit for each number of the range. *Errors*: none; of arrays that
// are not what their schema says the answer is no, too.
bool IsKeyColumn(const TableRows& rows, uint32_t child, const QueryColumn& column);

}  // namespace quern::query

#endif  // QUERN_TOOLS_QUERY_KEY_COLUMNS_H_
