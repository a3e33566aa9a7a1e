// SPDX-License-Identifier: Apache-2.0
// A query is planned when it is made, against the columns of its tables, so that mistakes are found before anything
// runs. Whether a column has nulls is looked at only where the query mentions it.
//
// One thread runs the query and starts the others; the caller waits for it and looks for Ctrl-C (workers.h).
#include "query.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arrow_columns.h"
#include "codegen/base/environment.h"
#include "codegen/compiler.h"
#include "codegen/machine/profile.h"
#include "errors.h"
#include "handles.h"
#include "kernel.h"
#include "operators.h"
#include "results.h"
#include "runtime/base/memory.h"
#include "runtime/spill/spill_context.h"
#include "runtime/spill/spill_store.h"
#include "source.h"
#include "tools/query/key_columns.h"
#include "tools/query/query_parameters.h"
#include "tools/query/query_plan.h"
#include "tools/query/query_run.h"
#include "tools/query/query_text.h"
#include "tools/query/wanted_names.h"
#include "without_gil.h"
#include "workers.h"

namespace quern::python {
namespace {

// A table's batches as Arrow arrays.
struct ExportedRows {
  std::vector<ArrowArray> arrays;
  query::TableRows rows;

  explicit ExportedRows(const Source& source) {
    arrays.resize(source.batches().size());
    for (size_t i = 0; i < arrays.size(); ++i) {
      ExportBatch(source.batches()[i], &arrays[i]);
      rows.batches.push_back(&arrays[i]);
    }
    rows.num_rows = source.num_rows();
  }
  ExportedRows(const ExportedRows&) = delete;
  ExportedRows& operator=(const ExportedRows&) = delete;
  ~ExportedRows() {
    for (ArrowArray& array : arrays)
      if (array.release != nullptr) array.release(&array);
  }
};

query::QueryTable TableOf(const std::string& name, const Source& source, const query::WantedNames& wanted) {
  ArrowSchema schema = {};
  ExportSchema(source.fields(), &schema);
  query::QueryTable table{name, query::ColumnsOf(schema)};
  schema.release(&schema);
  for (size_t c = 0; c < table.columns.size(); ++c) {
    std::optional<ColumnType>& type = table.columns[c].type;
    if (type.has_value() && wanted.Has(table.columns[c].name)) type->nullable = source.HasNulls(c);
  }
  return table;
}

// As OverridesOf reads it.
std::string TextOf(const PlanOverrides& overrides) {
  std::string text;
  for (const auto& [name, value] : overrides) text += (text.empty() ? "" : " ") + name + "=" + value;
  return text;
}

class Query {
 public:
  Query(const std::string& text, const std::vector<std::pair<std::string, std::shared_ptr<Source>>>& tables) {
    parsed_ = Value(query::QueryText::Parse(text));
    for (const auto& [name, source] : tables) {
      query::QueryTable table = TableOf(name, *source, query::WantedOfTable(parsed_, name));
      table.num_rows = source->num_rows();
      table.is_key = [source, columns = table.columns](size_t column) {
        const ExportedRows exported(*source);
        return query::IsKeyColumn(exported.rows, static_cast<uint32_t>(column), columns[column]);
      };
      tables_.push_back(std::move(table));
      sources_.push_back(source);
    }
    plan_ = Value(query::QueryPlan::Make(parsed_, tables_));
  }

  std::string Explain(const std::string& params) const { return PlanWith(params).Explain(tables_); }

  // (spec, parameters) of each kernel, in the order in which rows meet them. A step that probes has none of its own.
  std::vector<std::pair<std::string, std::string>> Specs(const std::string& params) const {
    std::vector<std::pair<std::string, std::string>> specs;
    const query::QueryPlan plan = PlanWith(params);
    for (const query::PlannedPipeline& pipeline : plan.pipelines) {
      for (const query::PlannedStep& step : pipeline.steps)
        if (!std::holds_alternative<JoinSpec>(step.spec))
          specs.emplace_back(PrintSpec(step.spec), TextOf(step.overrides));
      if (pipeline.spec.has_value()) specs.emplace_back(PrintSpec(*pipeline.spec), TextOf(pipeline.overrides));
    }
    return specs;
  }

  const std::vector<std::string>& names() const { return plan_.names; }

  // What a kernel has counted meanwhile: number of the step, spec, and numbers by name.
  using Step = std::tuple<size_t, std::string, std::map<std::string, uint64_t>>;
  // The rows, "jit" or "generic", and (relation, rows in, rows out, milliseconds, steps) of each pipeline.
  using Stats = std::tuple<std::string, uint64_t, uint64_t, double, std::vector<Step>>;
  using Ran = std::tuple<PyTable, std::string, std::vector<Stats>>;
  Ran Run(const std::string& engine, const std::string& params, const RunOptions& options) const;

 private:
  query::QueryPlan PlanWith(const std::string& params) const {
    const PlanOverrides given = OverridesOf(params);
    const Fusion fusion = Value(query::FusionOf(given));
    query::QueryPlan plan = fusion == Fusion::kAuto ? plan_ : Value(query::QueryPlan::Make(parsed_, tables_, fusion));
    Check(query::SetParameters(given, ProfileOfProcess().get(), &plan));
    return plan;
  }

  query::QueryText parsed_;
  std::vector<query::QueryTable> tables_;
  std::vector<std::shared_ptr<Source>> sources_;
  query::QueryPlan plan_;
};

Table TableOfRows(query::QueryRows rows) {
  std::vector<Field> fields;
  for (const query::QueryColumn& column : rows.columns)
    fields.push_back({column.name, column.format, "", column.type->nullable, false});
  std::vector<Batch> batches;
  for (ArrowArray& batch : rows.batches) batches.push_back(ImportBatch(&batch, fields.size()));
  return MakeTable(std::move(fields), std::move(batches));
}

// Null where rows stay in memory.
std::shared_ptr<SpillContext> SpillOf(const RunOptions& options, const std::shared_ptr<MemoryBudget>& budget) {
  if (!options.spills) return nullptr;
  const std::string folder = options.spill_dir.empty() ? ReadVariable(Variable::kSpillDir).value : options.spill_dir;
  return std::make_shared<SpillContext>(std::make_unique<TemporaryFiles>(folder, options.spill_bytes), budget);
}

Query::Ran Query::Run(const std::string& engine, const std::string& params, const RunOptions& given) const {
  std::vector<std::unique_ptr<ExportedRows>> exported;
  std::vector<query::TableRows> tables;
  CompileOptions compile;
  compile.engine = engine == "jit" ? Engine::kJit : engine == "generic" ? Engine::kGeneric : Engine::kAuto;
  compile.when = CompileWhen::kBackground;
  for (const auto& source : sources_) {
    exported.push_back(std::make_unique<ExportedRows>(*source));
    tables.push_back(exported.back()->rows);
  }
  const auto stop = std::make_shared<StopFlag>();
  auto budget = std::make_shared<MemoryBudget>(given.memory_limit);
  const query::RunQueryOptions options{given.threads, budget, stop, SpillOf(given, budget)};
  const query::QueryPlan plan = PlanWith(params);
  std::vector<query::PipelineStats> stats;
  std::vector<query::StepCounters> before, after;
  query::QueryRows rows;
  std::string ran;
  RunWorkers(
      1,
      [&](uint32_t, const GoOn&) {
        const query::PreparedQuery prepared = Value(query::PreparedQuery::Make(plan, tables, compile, given.threads));
        before = prepared.counters();
        absl::StatusOr<query::QueryRows> made = prepared.Run(tables, options, &stats);
        after = prepared.counters();
        if (absl::IsCancelled(made.status())) throw FollowUpError(std::string(made.status().message()));
        rows = Value(std::move(made));
        ran = prepared.engine() == Engine::kJit ? "jit" : "generic";
      },
      [&] { stop->Stop(); });
  std::vector<Stats> of_pipelines;
  for (size_t i = 0; i < stats.size(); ++i)
    of_pipelines.emplace_back(plan.pipelines[i].relation, stats[i].rows_in, stats[i].rows_out, stats[i].milliseconds,
                              std::vector<Step>());
  for (size_t i = 0; i < after.size(); ++i) {
    std::map<std::string, uint64_t> counted;
#define QUERN_COUNTER(id, name, meaning) counted[#name] = after[i].counters.name - before[i].counters.name;
#include "runtime/base/counters.def"
    std::get<4>(of_pipelines[after[i].pipeline]).emplace_back(after[i].step, after[i].spec, std::move(counted));
  }
  return {PyTable{TableOfRows(std::move(rows))}, std::move(ran), std::move(of_pipelines)};
}

std::vector<size_t> MentionedColumns(const std::string& text, const std::string& table,
                                     const std::vector<std::string>& columns) {
  const query::WantedNames wanted = query::WantedOfTable(Value(query::QueryText::Parse(text)), table);
  std::vector<size_t> numbers;
  for (size_t c = 0; c < columns.size(); ++c)
    if (wanted.Has(columns[c])) numbers.push_back(c);
  return numbers;
}

}  // namespace

void DefineQueries(nb::module_* module) {
  module->def("mentioned_columns", &MentionedColumns, nb::arg("text"), nb::arg("table"), nb::arg("columns"),
              "The numbers of a table's columns that a query mentions.");
  nb::class_<Query>(*module, "Query", "A query of several steps, planned for its tables.")
      .def(
          "__init__",
          [](Query* self, const std::string& text, const std::vector<std::pair<std::string, const PySource*>>& tables) {
            std::vector<std::pair<std::string, std::shared_ptr<Source>>> sources;
            for (const auto& [name, source] : tables) sources.emplace_back(name, source->source);
            new (self) Query(text, sources);
          },
          nb::arg("text"), nb::arg("tables"))
      .def_prop_ro("names", &Query::names)
      .def("explain", &Query::Explain, nb::arg("params"))
      .def("specs", &Query::Specs, nb::arg("params"))
      .def("run", &Query::Run, nb::arg("engine"), nb::arg("params"), nb::arg("options"));
}

}  // namespace quern::python
