// SPDX-License-Identifier: Apache-2.0
// The columns of sorts and merges, which have the same input and output. Internal.
#ifndef QUERN_HOSTS_C_JOBS_ROW_COLUMNS_H_
#define QUERN_HOSTS_C_JOBS_ROW_COLUMNS_H_

#include <vector>

#include "hosts/c/job.h"
#include "runtime/spec/sort_spec.h"

namespace quern::c_abi {

PortColumns RowColumns(const SortSpec& spec);

// The fields of the output. Example: spec `sort keys=decimal128:desc:out,dictionary(i32,utf8) payload=rowid,f64
// window=rank`, with columns {price: d:12,2, name: i -> u} and {-, tax: g}:
//
//     {price: d:12,2, rowid: L, tax: g, rank: L}    without the name, whose key is not flagged `out`
std::vector<ResultField> RowFields(const SortSpec& spec, const PortBinding& binding);

}  // namespace quern::c_abi

#endif  // QUERN_HOSTS_C_JOBS_ROW_COLUMNS_H_
