// SPDX-License-Identifier: Apache-2.0
// Reads the groups of a finalised aggregation with any number of threads:
//
//     read       A: 64 Ki groups, and again    B: likewise    each group comes out of one of them
//
// Few groups are read by one thread, however many threads there are.
#ifndef QUERN_TOOLS_STREAM_READ_GROUPS_H_
#define QUERN_TOOLS_STREAM_READ_GROUPS_H_

#include <arrow/type_fwd.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/aggregate/hash_aggregate.h"
#include "runtime/base/memory.h"
#include "runtime/spec/column_type.h"
#include "tools/quern/files/result_stream.h"

namespace quern::cli {

// What is read of each group, and how often it comes out.
struct GroupRows {
  GroupColumns columns = GroupColumns::kResults;
  std::vector<ColumnType> types = {};          // of these columns; none: rows are counted
  std::shared_ptr<arrow::Schema> schema = {};  // likewise
  GroupReader::CopiesOf copies_of = nullptr;   // null: once
};

struct ReadRows {
  std::shared_ptr<arrow::Table> table;  // nullptr where rows were counted
  uint64_t num_rows = 0;
};

// *Threads*: up to `threads`. *Errors*: over the budget; results that do not fit.
absl::StatusOr<ReadRows> ReadGroups(const std::shared_ptr<HashAggregate>& aggregate, const GroupRows& rows,
                                    const std::shared_ptr<MemoryBudget>& budget, uint32_t threads);

// The same, written to a stream as they come; the schema of `rows` is not read. budget: of the operator; out_budget:
// for the results of each thread.
absl::Status StreamGroups(const std::shared_ptr<HashAggregate>& aggregate, const GroupRows& rows,
                          const MemoryBudget& budget, const std::shared_ptr<MemoryBudget>& out_budget, uint32_t threads,
                          ResultStream* results);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_STREAM_READ_GROUPS_H_
