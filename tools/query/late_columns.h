// SPDX-License-Identifier: Apache-2.0
// Columns that are fetched when few rows are left: late materialisation (Abadi, Myers, DeWitt and Madden, ICDE 2007) of
// the keys of groups that another key decides.
//
//     result:                                             result, keys:
//       scan orders                                         scan orders
//       join customer on o_custkey = c_custkey              join customer on o_custkey = c_custkey
//       aggregate sum(o_price) as paid                      aggregate sum(o_price) as paid by c_custkey
//                 by c_custkey, c_name, c_address           sort paid desc limit 20
//       sort paid desc limit 20                           result, customer:
//                                                           scan customer
//                                                           join result, keys on c_custkey = c_custkey
//                                                         result:
//                                                           scan result, customer
//                                                           sort paid desc limit 20
//                                                           select c_custkey, c_name, c_address, paid
//
// c_custkey is a key of customer: no two of its rows have the same, as a look at the column has shown. So it decides
// the other columns of customer, and the texts of 20 rows are read in place of those of every order. Where the key of
// another table is joined with a column of customer, as n_nationkey with c_nationkey, the columns of that table are
// decided, too.
#ifndef QUERN_TOOLS_QUERY_LATE_COLUMNS_H_
#define QUERN_TOOLS_QUERY_LATE_COLUMNS_H_

#include <optional>
#include <vector>

#include "tools/query/query_plan.h"
#include "tools/query/query_text.h"

namespace quern::query {

// The query with late columns; its rows are the same, in the order of the same sort. nullopt: it has none, or they
// would save little: the result's groups need a sort with a limit, and a string among the keys that are decided; the
// tables that are read again must have few rows beside the largest one. *Cost*: some microseconds, and IsKeyColumn of
// the columns that may be keys.
std::optional<QueryText> WithLateColumns(const QueryText& text, const std::vector<QueryTable>& tables);

}  // namespace quern::query

#endif  // QUERN_TOOLS_QUERY_LATE_COLUMNS_H_
