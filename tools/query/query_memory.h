// SPDX-License-Identifier: Apache-2.0
// How the operators of a query share its memory limit, where rows may be written.
#ifndef QUERN_TOOLS_QUERY_QUERY_MEMORY_H_
#define QUERN_TOOLS_QUERY_QUERY_MEMORY_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/base/memory.h"
#include "runtime/spill/budget_with_reserve.h"
#include "runtime/spill/spill_context.h"
#include "tools/query/query_plan.h"
#include "tools/query/query_run.h"

namespace quern::query {

// What the sink of a pipeline may take.
struct SinkMemory {
  std::shared_ptr<MemoryBudget> budget;
  std::shared_ptr<SpillContext> spill;         // null: rows stay in memory
  std::shared_ptr<BudgetWithReserve> reserve;  // whose budget it is; null: it is the query's
  uint64_t share_bytes = 0;                    // that a join which has written rows keeps

  // For a join whose table is complete. One that has spilled keeps the rest of its share until its rows are out, as
  // each of its partitions needs a table; another one gives back what was set aside.
  void EndBuild(bool has_spilled) const;
};

// Sinks that are there at the same time have shares of the memory. One whose rows all fit may take more than its share,
// as long as a little is left to those that begin while it is there: these can write rows, too. *Threads*: one at a
// time.
class QueryMemory {
 public:
  // *Ownership*: all arguments must outlive it.
  QueryMemory(const PreparedQuery& query, const std::vector<TableRows>& tables, const RunQueryOptions& options);

  // Of the sink of a pipeline that is about to run.
  SinkMemory Of(size_t pipeline) const;

 private:
  uint64_t LeftToLater(size_t pipeline, uint64_t free, uint64_t most_each) const;
  bool HasResult(size_t pipeline) const;

  const QueryPlan& plan_;
  const RunQueryOptions& options_;
  bool has_joins_ = false;
  std::vector<size_t> last_use_;      // of each pipeline's sink: the pipeline that reads or probes it
  std::vector<uint64_t> most_bytes_;  // that each sink can take; UINT64_MAX: unknown
  uint64_t result_bytes_ = 0;         // the same of the result; 0: unknown
};

}  // namespace quern::query

#endif  // QUERN_TOOLS_QUERY_QUERY_MEMORY_H_
