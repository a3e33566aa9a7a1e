// SPDX-License-Identifier: Apache-2.0
// Texts of queries over tables that are always the same: a text is refused with the number of a line, or has a plan
// whose columns and pipelines refer to what there is.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "test/fuzz/targets/fuzz_target.h"
#include "tools/query/query_plan.h"
#include "tools/query/query_text.h"

namespace {

using quern::ColumnType;
using quern::TypeId;
using quern::fuzz::Require;
using quern::query::QueryColumn;
using quern::query::QueryPlan;
using quern::query::QueryTable;
using quern::query::QueryText;

QueryColumn Column(std::string name, std::string format, TypeId id, bool nullable = false) {
  return {std::move(name), std::move(format), ColumnType{.id = id, .nullable = nullable}};
}

const std::vector<QueryTable>& Tables() {
  static const auto* const tables = new std::vector<QueryTable>{
      {"t",
       {Column("a", "i", TypeId::kI32, true), Column("b", "l", TypeId::kI64),
        Column("d", "d:15,2", TypeId::kDecimal128), Column("f", "g", TypeId::kF64),
        Column("s", "u", TypeId::kUtf8, true), Column("day", "tdD", TypeId::kDate32),
        Column("ok", "b", TypeId::kBool, true), Column("odd \"name\"", "L", TypeId::kU64)}},
      {"u",
       {Column("k", "i", TypeId::kI32),
        Column("a", "s", TypeId::kI16),
        Column("v", "vu", TypeId::kUtf8View),
        {"dict", "u", ColumnType{.id = TypeId::kUtf8, .is_dictionary = true}},
        {"list", "+l", std::nullopt}}},
      {"none", {}},
  };
  return *tables;
}

void CheckRefusal(const absl::Status& status, size_t num_lines) {
  quern::fuzz::RequireRefusal(status);
  const std::string message(status.message());
  if (message.starts_with("query: no steps; ")) return;
  Require(message.starts_with("line "), "an error of a query names a line", message);
  const size_t line = std::stoul("0" + message.substr(5, message.find(':') - 5));
  Require(line >= 1 && line <= num_lines, "the line is one of the text", message);
}

void CheckNumbers(const std::vector<uint32_t>& numbers, size_t bound, const std::string& text) {
  for (const uint32_t number : numbers) Require(number < bound, "columns that a step reads are there", text);
}

void CheckPlan(const QueryPlan& plan) {
  Require(!plan.pipelines.empty(), "a plan has a pipeline");
  Require(plan.columns.size() == plan.names.size(), "a column of a result has a name");
  CheckNumbers(plan.columns, plan.pipelines.back().results.size(), "the result");
  for (size_t p = 0; p < plan.pipelines.size(); ++p) {
    const quern::query::PlannedPipeline& pipeline = plan.pipelines[p];
    Require(pipeline.source < (pipeline.reads_table ? Tables().size() : p), "a source comes before what reads it");
    for (const quern::query::PlannedStep& step : pipeline.steps)
      Require(!std::holds_alternative<quern::JoinSpec>(step.spec) || step.table < p, "a table comes before its probes");
    CheckNumbers(pipeline.sink_columns.keys, pipeline.last_columns.size(), pipeline.text);
    CheckNumbers(pipeline.sink_columns.payload, pipeline.last_columns.size(), pipeline.text);
  }
  Require(!plan.Explain(Tables()).empty(), "a plan is explained");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto num_lines = 1 + static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  const absl::StatusOr<QueryText> query = QueryText::Parse(text);
  if (!query.ok()) return CheckRefusal(query.status(), num_lines), 0;
  const absl::StatusOr<QueryPlan> plan = QueryPlan::Make(*query, Tables());
  if (!plan.ok()) return CheckRefusal(plan.status(), num_lines), 0;
  CheckPlan(*plan);
  return 0;
}
