// SPDX-License-Identifier: Apache-2.0
// Columns that an aggregation only adds up. Their values may then be added up where they are, before there is a row of
// them: of all rows of a piece one has the sum, and the others have 0 (pipeline_input.cc).
#ifndef QUERN_RUNTIME_PIPELINE_ADDED_COLUMNS_H_
#define QUERN_RUNTIME_PIPELINE_ADDED_COLUMNS_H_

#include <vector>

#include "runtime/spec/aggregation_spec.h"

namespace quern {

// For each column of a batch behind the keys: whether it has i64 or decimal64, and all that reads it are sums and
// averages of all rows, so that rows may have other values of the same sum.
std::vector<bool> AddedColumnsOf(const AggregationSpec& spec);

}  // namespace quern

#endif  // QUERN_RUNTIME_PIPELINE_ADDED_COLUMNS_H_
