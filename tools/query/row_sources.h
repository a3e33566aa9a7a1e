// SPDX-License-Identifier: Apache-2.0
// Where the rows of a pipeline come from: a table, the result of another pipeline's sink, or what a join has left when
// all probing is done.
#ifndef QUERN_TOOLS_QUERY_ROW_SOURCES_H_
#define QUERN_TOOLS_QUERY_ROW_SOURCES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "runtime/aggregate/hash_aggregate.h"
#include "runtime/join/hash_join.h"
#include "runtime/rows/batch_view.h"
#include "runtime/rows/output_batch.h"
#include "runtime/sort/row_sort.h"
#include "tools/query/query_run.h"

namespace quern::query {

// Takes the batches of a source, in their order.
class RowTaker {
 public:
  virtual ~RowTaker() = default;
  // The columns are batch.keys.
  virtual absl::Status Take(const BatchView& batch) = 0;
  // For a source that was refused memory: after OK it asks again. *Errors*: `refused` where nothing can be written.
  virtual absl::Status FreeMemory(const absl::Status& refused) { return refused; }
};

// Rows in morsels, each of which one thread sends. *Threads*: any.
class RowSource {
 public:
  virtual ~RowSource() = default;
  virtual uint64_t num_morsels() const = 0;
  virtual absl::Status Send(uint64_t morsel, RowTaker* taker) = 0;
};

// What a source needs to make batches.
struct SourceContext {
  std::vector<ColumnType> types;
  std::shared_ptr<MemoryBudget> budget;
  uint32_t threads = 1;
  bool keeps_strings = false;  // batches own their strings as long as somebody wants them
  uint64_t most_rows = 0;      // of a batch that is made
  // Of a join that has written rows, whose batches are made of memory of its own: where strings are copied that
  // somebody keeps. Null otherwise.
  std::shared_ptr<MemoryBudget> kept_budget = nullptr;
};

// How many of `threads` threads share so many rows: one for each whole 65,536, and one for the rest.
uint64_t Readers(uint64_t num_rows, uint32_t threads);

// The children of a table's batches; its morsels have up to 65,536 rows, with the numbers of the rows as ids.
// *Ownership*: `rows` must outlive it.
std::unique_ptr<RowSource> MakeTableSource(const TableRows& rows, const std::vector<uint32_t>& children,
                                           SourceContext context);
std::unique_ptr<RowSource> MakeGroupSource(std::shared_ptr<HashAggregate> groups, SourceContext context);
// offset: first rows that are left out.
std::unique_ptr<RowSource> MakeSortSource(std::shared_ptr<RowSort> sort, uint64_t offset, SourceContext context);
// The build rows that come out on their own, when all probing is done, and the rows that the join has written.
std::unique_ptr<RowSource> MakeUnmatchedSource(std::shared_ptr<const HashJoin> join, SourceContext context);

}  // namespace quern::query

#endif  // QUERN_TOOLS_QUERY_ROW_SOURCES_H_
