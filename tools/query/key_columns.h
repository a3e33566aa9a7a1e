// SPDX-License-Identifier: Apache-2.0
// Whether a column tells the rows of a table apart.
#ifndef QUERN_TOOLS_QUERY_KEY_COLUMNS_H_
#define QUERN_TOOLS_QUERY_KEY_COLUMNS_H_

#include <cstdint>

#include "tools/query/query_plan.h"
#include "tools/query/query_run.h"

namespace quern::query {

// Whether the column is one of whole numbers without nulls and without two equal ones, as a look at all of them finds
// out. Numbers that lie far apart are not looked at, and are no key. *Cost*: about 1 ns a row, and a bit for each
// number of their range. *Errors*: none; arrays that are not what their schema says are no key either.
bool IsKeyColumn(const TableRows& rows, uint32_t child, const QueryColumn& column);

}  // namespace quern::query

#endif  // QUERN_TOOLS_QUERY_KEY_COLUMNS_H_
