// SPDX-License-Identifier: Apache-2.0
// Runs a planned query: its kernels are made once, and run any number of times.
//
//     PreparedQuery::Make(plan, tables, compile options)  ->  Run(tables, ..)  ->  rows, as Arrow arrays
#ifndef QUERN_TOOLS_QUERY_QUERY_RUN_H_
#define QUERN_TOOLS_QUERY_QUERY_RUN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/compiler.h"
#include "codegen/machine/profile.h"
#include "runtime/abi/arrow_abi.h"
#include "runtime/base/counters.h"
#include "runtime/base/memory.h"
#include "runtime/base/stop_flag.h"
#include "runtime/spill/spill_context.h"
#include "tools/query/query_plan.h"

namespace quern::query {

// The rows of a table: struct arrays of its schema. Not owned; they stay as they are while the query runs.
struct TableRows {
  std::vector<const ArrowArray*> batches;
  uint64_t num_rows = 0;
};

// Rows that came out, in struct arrays with the columns of the plan.
class QueryRows {
 public:
  QueryRows() = default;
  QueryRows(QueryRows&& other) noexcept { *this = std::move(other); }
  QueryRows& operator=(QueryRows&& other) noexcept;
  ~QueryRows();

  std::vector<QueryColumn> columns;
  std::vector<ArrowArray> batches;  // none is empty; whoever moves one out clears its release
  uint64_t num_rows = 0;
};

struct RunQueryOptions {
  uint32_t threads = 1;                  // most of them; a pipeline has one for 65,536 rows
  std::shared_ptr<MemoryBudget> budget;  // of tables, groups, sorted rows and results
  std::shared_ptr<StopFlag> stop;        // ends the query with Cancelled; may be null
  // Where joins, aggregates and sorts leave rows beyond the budget; null: they fail. The result stays in memory, and
  // the tables of joins do where the budget has no limit of its own.
  std::shared_ptr<SpillContext> spill;
};

// What a pipeline did in a run.
struct PipelineStats {
  uint64_t rows_in = 0;   // of the source
  uint64_t rows_out = 0;  // that reached the sink
  double milliseconds = 0;
};

// What a kernel of a query has counted.
struct StepCounters {
  size_t pipeline, step;  // as QueryPlan::Explain numbers them; the end comes last
  std::string spec;
  Counters counters;
};

// How many rows one thread will send to each kernel, as CompileOptions::expected_rows, by pipeline: those of its steps,
// then its sink's. Rows that steps take away are counted; 0: unknown. A join's rows, of both sides, are those of the
// sink that builds it.
std::vector<std::vector<uint64_t>> ExpectedRows(const QueryPlan& plan, const std::vector<TableRows>& tables,
                                                uint32_t threads);

// How many tables the pipeline that probes it probes by turns, by the pipeline that builds a table, as its kernel's
// parameter `pipeline`: 1 where the profile, which may be null, has no settings for several; others than builds have 1.
std::vector<uint32_t> TablesInTurn(const QueryPlan& plan, const Profile* profile);

// A query with its kernels. *Threads*: any may run it, also at the same time.
class PreparedQuery {
 public:
  // Requests all kernels. tables: those that the plan was made for, with about as many rows as they will have in Run;
  // of each only num_rows is read. The plan's overrides and the rows that are expected take the place of those of
  // `compile`. Without parameters, the plan has the rows of a piece that the profile or the default says. *Cost*: as
  // Compile,
  // for each kernel, on up to `threads` threads. *Errors*: those of Compile.
  static absl::StatusOr<PreparedQuery> Make(QueryPlan plan, const std::vector<TableRows>& tables,
                                            const CompileOptions& compile, uint32_t threads);

  const QueryPlan& plan() const { return plan_; }
  // Of a pipeline's steps, then of its sink; null for the result's.
  const std::vector<CompiledKernel>& kernels(size_t pipeline) const { return kernels_[pipeline]; }
  // Rows that pass all steps of a pipeline before the next ones do: as a pipeline's plan has them (pipeline_plan.h).
  uint32_t piece_rows() const { return plan_.piece_rows; }

  // Of the kernels of steps and ends, in the order of Explain, since they were made; those of a join are where its
  // table is built, and have both sides. Kernels stay in the process, and equal ones count together. *Threads*: any.
  std::vector<StepCounters> counters() const;

  // kJit if any of the kernels is compiled by now, else kGeneric.
  Engine engine() const;

  // tables: those that the plan was made for. stats: null, or receives one for each pipeline. The rows of a sort come
  // in its order, those of pipelines without a sort in that of the source, with one thread or several; groups in any.
  // *Ownership*: the rows do not refer to the tables. *Errors*: ResourceExhausted, OutOfRange for rows without a
  // result, InvalidArgument for arrays that are not what the schema says.
  absl::StatusOr<QueryRows> Run(const std::vector<TableRows>& tables, const RunQueryOptions& options,
                                std::vector<PipelineStats>* stats = nullptr) const;

 private:
  QueryPlan plan_;
  std::vector<std::vector<CompiledKernel>> kernels_;
};

}  // namespace quern::query

#endif  // QUERN_TOOLS_QUERY_QUERY_RUN_H_
