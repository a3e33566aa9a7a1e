// SPDX-License-Identifier: Apache-2.0
// From the text of a query to pipelines: names become numbers of columns, conditions and expressions become specs of
// kernels. Nothing is reordered. For the query of query_text.h, with its two tables, there are three pipelines:
//
//     0  scan orders(o_orderkey, o_orderdate)  ─ filter ──────────────────────>  build of join.inner
//     1  scan lineitem(l_orderkey, ..)         ─ probe 0 ─ map price * .. ─────>  aggregate
//     2  rows of 1                              ───────────────────────────────>  sort limit=10
//
// The rows of the last one are the result.
//
// Each begins where rows were collected and ends where they are collected again. Between the two they pass in pieces
// (runtime/pipeline/pipeline.h). Only columns that a later step mentions are carried along.
#ifndef QUERN_TOOLS_QUERY_QUERY_PLAN_H_
#define QUERN_TOOLS_QUERY_QUERY_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/plan/plan.h"
#include "codegen/plan/plan_choices.h"
#include "runtime/abi/arrow_abi.h"
#include "runtime/pipeline/pipeline.h"
#include "runtime/spec/spec.h"
#include "tools/query/query_text.h"

namespace quern::query {

// A column of a table, or of rows on their way.
struct QueryColumn {
  std::string name;
  std::string format;              // of its values, in the Arrow C data interface
  std::optional<ColumnType> type;  // as kernels read it; nullopt: none does
};

// "decimal128(15,2)", for errors.
std::string TypeText(const QueryColumn& column);

struct QueryTable {
  std::string name;
  std::vector<QueryColumn> columns;
  uint64_t num_rows = 0;  // 0: not known
  // Whether a column, by its number, is unique (key_columns.h); it is asked of columns that a query mentions. Null: of
  // no column is that known.
  std::function<bool(size_t column)> is_key = nullptr;
};

// The columns of a struct schema. Each is nullable as its field says.
std::vector<QueryColumn> ColumnsOf(const ArrowSchema& schema);

struct PlannedStep {
  std::string text;  // the query's step
  KernelSpec spec;   // filter, map, or the join that is probed
  StepColumns columns;
  size_t table = 0;              // joins: the pipeline that builds it
  PlanOverrides overrides = {};  // of the kernel's plan; joins: none
};

enum class SinkKind : uint8_t { kBuild, kAggregate, kSort, kResult };

struct PlannedPipeline {
  std::string relation;

  // The source: a table's columns, or the rows that another pipeline has collected.
  bool reads_table = true;
  size_t source = 0;                 // number of the table, or of the pipeline
  std::vector<uint32_t> children;    // of the table
  std::vector<QueryColumn> columns;  // of the source, as many as children
  uint64_t offset = 0;               // first rows of the source that are left out

  std::vector<PlannedStep> steps;
  std::vector<QueryColumn> last_columns;  // behind the last step

  SinkKind sink = SinkKind::kResult;
  std::string text;                  // the query's step
  std::optional<KernelSpec> spec;    // nullopt: kResult
  StepColumns sink_columns;          // of the last columns
  std::vector<uint32_t> made_views;  // kBuild: which of the payload are texts that become views (text_views.h)
  std::vector<QueryColumn> results;  // of what comes out of the sink; empty: kBuild
  PlanOverrides overrides;           // of the sink's plan
};

struct QueryPlan {
  std::vector<PlannedPipeline> pipelines;  // in an order in which they can run; the last one is the result's
  std::vector<uint32_t> columns;           // of the result: numbers of the last pipeline's results
  std::vector<std::string> names;          // of these
  uint64_t limit = 0;                      // most rows of the result; 0: all
  uint64_t offset = 0;                     // first rows that are left out

  // Parameters (query_parameters.h); 0: not set yet.
  uint32_t piece_rows = 0;        // that pass all steps of a pipeline before the next ones do
  std::string piece_rows_origin;  // for people: "given", "profile", "default"

  // With tables of known rows the plan may rest on what `is_key` says, so that it is a plan for these rows alone.
  // *Cost*: some microseconds a step, and that of is_key. *Errors*: InvalidArgument that names the line and what is
  // accepted: unknown names, types that do not fit, steps that are not possible here.
  static absl::StatusOr<QueryPlan> Make(const QueryText& text, const std::vector<QueryTable>& tables,
                                        Fusion fusion = Fusion::kAuto);

  // The pipelines, a line a step, with the specs of their kernels, and the parameters that are set.
  std::string Explain(const std::vector<QueryTable>& tables) const;
};

}  // namespace quern::query

#endif  // QUERN_TOOLS_QUERY_QUERY_PLAN_H_
