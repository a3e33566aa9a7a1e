// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <string>

#include "runtime/spec/expression.h"
#include "runtime/spec/spec_text.h"
#include "tools/frontend/column_names.h"
#include "tools/query/query_plan.h"

namespace quern::query {
namespace {

std::string Numbers(const std::vector<uint32_t>& numbers) {
  std::string text;
  for (const uint32_t number : numbers) text += (text.empty() ? "$" : ", $") + std::to_string(number);
  return text;
}

std::string ColumnsText(const StepColumns& columns) {
  std::string text = Numbers(columns.keys);
  if (!columns.payload.empty()) text += (text.empty() ? "" : "; ") + Numbers(columns.payload);
  return text;
}

const char* SinkText(SinkKind kind) {
  switch (kind) {
    case SinkKind::kBuild: return "build";
    case SinkKind::kAggregate: return "aggregate";
    case SinkKind::kSort: return "sort";
    case SinkKind::kResult: return "result";
  }
  return "";
}

// Of a step or an end, a line each.
std::string OverridesText(const PlanOverrides& overrides) {
  std::string text;
  for (const auto& [name, value] : overrides) text += "    " + name + " = " + value + "\n";
  return text;
}

// The expressions that an aggregation computes in its own loop, a line each: they have no step of their own.
std::string FusedText(const std::optional<KernelSpec>& spec) {
  const auto* const aggregation = spec.has_value() ? std::get_if<AggregationSpec>(&*spec) : nullptr;
  if (aggregation == nullptr) return "";
  std::string text;
  const auto add = [&text](const Expression& expression) {
    const std::string line = "    fused: " + PrintExpression(expression) + "\n";
    if (expression.kind != ExpressionKind::kColumn && text.find(line) == std::string::npos) text += line;
  };
  for (const AggregateSpec& aggregate : aggregation->aggregates) {
    for (const Expression& expression : aggregate.expressions) add(expression);
    if (aggregate.filter.has_value()) add(*aggregate.filter);
  }
  return text;
}

std::string SourceText(const PlannedPipeline& pipeline, const std::vector<QueryTable>& tables) {
  if (!pipeline.reads_table) return "rows of pipeline " + std::to_string(pipeline.source);
  std::string text = "scan " + cli::QuoteName(tables[pipeline.source].name) + ":";
  for (size_t i = 0; i < pipeline.columns.size(); ++i)
    text += (i == 0 ? " $" : ", $") + std::to_string(i) + " " + cli::QuoteName(pipeline.columns[i].name);
  return text;
}

}  // namespace

std::string QueryPlan::Explain(const std::vector<QueryTable>& tables) const {
  std::string text;
  if (piece_rows != 0) text += "pieces of " + std::to_string(piece_rows) + " rows: " + piece_rows_origin + "\n";
  for (size_t i = 0; i < pipelines.size(); ++i) {
    const PlannedPipeline& pipeline = pipelines[i];
    text += "pipeline " + std::to_string(i) + ", " + pipeline.relation + "\n  " + SourceText(pipeline, tables) + "\n";
    for (const PlannedStep& step : pipeline.steps) {
      const bool is_probe = std::holds_alternative<JoinSpec>(step.spec);
      text += "  " + (is_probe ? "probe " + std::to_string(step.table) + "  " : std::string()) + PrintSpec(step.spec) +
              "  [" + ColumnsText(step.columns) + "]\n" + OverridesText(step.overrides);
    }
    text += std::string("  ") + SinkText(pipeline.sink);
    if (pipeline.spec.has_value()) text += "  " + PrintSpec(*pipeline.spec);
    text += "  [" + ColumnsText(pipeline.sink_columns) + "]\n" + FusedText(pipeline.spec) +
            OverridesText(pipeline.overrides);
  }
  return text;
}

}  // namespace quern::query
