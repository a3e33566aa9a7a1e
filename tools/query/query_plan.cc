// SPDX-License-Identifier: Apache-2.0
// A relation is planned where it is used: its steps go on in the pipeline of the relation that scans it, unless they
// end in an aggregation or a sort, or it is the build side of a join. A relation that is used twice is computed twice.
#include "tools/query/query_plan.h"

#include <algorithm>
#include <utility>

#include "runtime/base/messages.h"
#include "runtime/base/status.h"
#include "runtime/rows/arrow_format.h"
#include "runtime/rows/arrow_import.h"
#include "runtime/spec/spec_text.h"
#include "tools/frontend/column_names.h"
#include "tools/frontend/computed_key.h"
#include "tools/frontend/errors.h"
#include "tools/query/flow.h"
#include "tools/query/fused_maps.h"
#include "tools/query/join_terms.h"
#include "tools/query/late_columns.h"
#include "tools/query/text_views.h"
#include "tools/query/wanted_names.h"

namespace quern::query {
namespace {

// A relation is computed anew for each use: 20 relations that use the one before them twice make a million pipelines.
constexpr size_t kMaxUses = 256;

class Planner {
 public:
  // passes_views: texts of a join's table that are none of its terms pass as views (text_views.h).
  Planner(const QueryText& text, const std::vector<QueryTable>& tables, Fusion fusion, bool passes_views)
      : text_(text), tables_(tables), fusion_(fusion), passes_views_(passes_views), wanted_(FindWantedNames(text)) {}

  absl::StatusOr<QueryPlan> Make();

 private:
  absl::StatusOr<Flow> PlanRelation(size_t number);
  absl::Status CountUse();
  absl::StatusOr<Flow> Source(const QueryStep& step, size_t before, const WantedNames& wanted);
  absl::StatusOr<Flow> ScanTable(size_t number, const WantedNames& wanted) const;
  absl::Status AddStep(const QueryStep& step, size_t relation, const WantedNames& wanted, Flow* flow);
  absl::Status AddSelect(const QueryStep& step, const WantedNames& wanted, Flow* flow);
  absl::Status AddJoin(const QueryStep& step, size_t relation, const WantedNames& wanted, Flow* flow);
  absl::Status AddAggregate(const QueryStep& step, Flow* flow);
  absl::Status AddSort(const QueryStep& step, const WantedNames& wanted, Flow* flow);
  absl::Status AddLimit(const QueryStep& step, size_t relation);

  // Ends the flow's pipeline; returns its number.
  size_t Close(Flow flow, SinkKind sink, const QueryStep& step, std::optional<KernelSpec> spec, StepColumns columns,
               std::vector<QueryColumn> results);
  // The same, and a flow that reads the results under these names.
  void Collect(SinkKind sink, const QueryStep& step, KernelSpec spec, StepColumns columns,
               std::vector<QueryColumn> results, std::vector<Flow::Named> names, Flow* flow);

  const QueryText& text_;
  const std::vector<QueryTable>& tables_;
  const Fusion fusion_;
  const bool passes_views_;
  const std::vector<std::vector<WantedNames>> wanted_;
  QueryPlan plan_;
  size_t num_uses_ = 0;  // of relations
};

size_t Planner::Close(Flow flow, SinkKind sink, const QueryStep& step, std::optional<KernelSpec> spec,
                      StepColumns columns, std::vector<QueryColumn> results) {
  PlannedPipeline& pipeline = flow.pipeline;
  pipeline.last_columns = std::move(flow.columns);
  pipeline.sink = sink;
  pipeline.text = step.text;
  pipeline.spec = std::move(spec);
  pipeline.sink_columns = std::move(columns);
  pipeline.results = std::move(results);
  plan_.pipelines.push_back(std::move(pipeline));
  return plan_.pipelines.size() - 1;
}

void Planner::Collect(SinkKind sink, const QueryStep& step, KernelSpec spec, StepColumns columns,
                      std::vector<QueryColumn> results, std::vector<Flow::Named> names, Flow* flow) {
  const std::string relation = flow->pipeline.relation;
  const size_t number = Close(std::move(*flow), sink, step, std::move(spec), std::move(columns), results);
  *flow = {};
  flow->pipeline.relation = relation;
  flow->pipeline.reads_table = false;
  flow->pipeline.source = number;
  flow->pipeline.columns = results;
  flow->columns = std::move(results);
  flow->names = std::move(names);
}

// ---- sources ----

absl::StatusOr<Flow> Planner::ScanTable(size_t number, const WantedNames& wanted) const {
  Flow flow;
  flow.pipeline.source = number;
  const std::vector<QueryColumn>& all = tables_[number].columns;
  std::vector<uint32_t> children;
  for (size_t c = 0; c < all.size(); ++c)
    if (wanted.Has(all[c].name)) children.push_back(static_cast<uint32_t>(c));
    else flow.others.push_back(all[c].name);
  for (const uint32_t child : children) {
    QueryColumn column = all[child];
    if (!column.type.has_value())
      return Wrong("unsupported type of column " + cli::QuoteName(column.name) + " of table " + tables_[number].name,
                   TypeText(column), "types of docs/spec.md");
    flow.names.push_back({column.name, static_cast<uint32_t>(flow.columns.size())});
    flow.columns.push_back(std::move(column));
  }
  flow.pipeline.children = std::move(children);
  flow.pipeline.columns = flow.columns;
  return flow;
}

// The rows that a scan or a join names.
absl::StatusOr<Flow> Planner::Source(const QueryStep& step, size_t before, const WantedNames& wanted) {
  const size_t relation = FindRelation(text_, step.relation, before);
  if (relation != std::string::npos) return PlanRelation(relation);
  std::vector<std::string> accepted;
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (tables_[t].name == step.relation) return ScanTable(t, wanted);
    accepted.push_back(cli::QuoteName(tables_[t].name));
  }
  for (size_t r = 0; r < before; ++r) accepted.push_back(cli::QuoteName(text_.relations[r].name));
  return absl::InvalidArgumentError(cli::UnknownWord("table", cli::QuoteName(step.relation), accepted));
}

// ---- steps ----

absl::Status Planner::AddSelect(const QueryStep& step, const WantedNames& wanted, Flow* flow) {
  Computation computation(flow, "select", step.text);
  std::vector<Flow::Named> names;
  const auto add = [&names](Flow::Named named) -> absl::Status {
    for (const Flow::Named& other : names)
      if (other.name == named.name)
        return Wrong("two columns of one name", cli::QuoteName(named.name),
                     "different names, as by EXPRESSION as NAME");
    names.push_back(std::move(named));
    return absl::OkStatus();
  };
  for (const cli::SelectText& selected : step.select) {
    if (selected.is_all) {
      for (const Flow::Named& named : flow->names) QUERN_RETURN_IF_ERROR(add(named));
      continue;
    }
    if (!wanted.Has(selected.name)) continue;
    QUERN_ASSIGN_OR_RETURN(const uint32_t number, computation.Add(selected.expression));
    QUERN_RETURN_IF_ERROR(add({selected.name, number}));
  }
  QUERN_RETURN_IF_ERROR(computation.Finish());
  flow->names = std::move(names);
  flow->others.clear();
  return absl::OkStatus();
}

// The columns of a side that later steps want.
void AddPayload(const Flow& flow, const WantedNames& wanted, const std::vector<std::string>& left_out,
                std::vector<Flow::Named>* names, StepColumns* columns, std::vector<ColumnType>* types) {
  for (const Flow::Named& named : flow.names) {
    if (!wanted.Has(named.name) || std::count(left_out.begin(), left_out.end(), named.name) > 0) continue;
    names->push_back(named);
    columns->payload.push_back(named.column);
    types->push_back(*flow.columns[named.column].type);
  }
}

// Makes views of the payload of a join's table, of texts with offsets that are none of its terms.
void PassViews(const QueryStep& step, const Flow& build, const std::vector<Flow::Named>& names,
               std::vector<ColumnType>* types, std::vector<uint32_t>* made_views) {
  WantedNames of_probe, of_terms;
  AddJoinNames(step, &of_probe, &of_terms);
  for (size_t i = 0; i < names.size(); ++i) {
    QueryColumn column = build.columns[names[i].column];
    if (of_terms.Has(names[i].name) || !MayBeViews(column)) continue;
    PassAsViews(&column);
    (*types)[i] = *column.type;
    made_views->push_back(static_cast<uint32_t>(i));
  }
}

absl::Status CheckNames(const std::vector<Flow::Named>& probe, bool has_mark, const std::vector<Flow::Named>& build) {
  for (const Flow::Named& named : probe)
    if (has_mark && named.name == "mark")
      return Wrong("column of the name that a join gives", "mark",
                   "another name: select .. as before the join gives the column another");
  for (const Flow::Named& named : build)
    for (const Flow::Named& other : probe)
      if (other.name == named.name)
        return Wrong("column of both sides of a join", cli::QuoteName(named.name),
                     "different names: select .. as before the join gives one side another");
  return absl::OkStatus();
}

// Columns of this result type, with the formats of those that they came from.
std::vector<QueryColumn> Typed(const std::vector<ColumnType>& types, std::vector<QueryColumn> from) {
  for (size_t i = 0; i < from.size(); ++i) {
    from[i].name.clear();
    from[i].type = types[i];
  }
  return from;
}

absl::Status Planner::AddJoin(const QueryStep& step, size_t relation, const WantedNames& wanted_behind, Flow* flow) {
  const JoinKindRow& kind = RowOf(step.join);
  WantedNames of_probe, of_build = kind.has_build_columns() ? wanted_behind : WantedNames();
  AddJoinNames(step, &of_probe, &of_build);
  QUERN_ASSIGN_OR_RETURN(Flow build, Source(step, relation, of_build));
  build.pipeline.relation = step.relation;
  QUERN_ASSIGN_OR_RETURN(JoinTerms terms, AddJoinTerms(step, flow, &build));
  WantedNames wanted = wanted_behind;
  for (const cli::ExpressionText& condition : terms.behind_join) wanted.Add(condition);
  JoinSpec spec;
  spec.kind = step.join;
  spec.keys = std::move(terms.keys);
  spec.residual = std::move(terms.residual);
  StepColumns probe_columns{.keys = std::move(terms.probe_keys), .payload = {}};
  StepColumns build_columns{.keys = std::move(terms.build_keys), .payload = {}};

  std::vector<Flow::Named> probe_names, build_names;
  if (kind.has_probe_columns()) AddPayload(*flow, wanted, {}, &probe_names, &probe_columns, &spec.probe);
  if (kind.has_build_columns())
    AddPayload(build, wanted,
               kind.nulls_probe_columns() || !kind.has_probe_columns() ? std::vector<std::string>() : terms.same_names,
               &build_names, &build_columns, &spec.build);
  std::vector<uint32_t> made_views;
  if (passes_views_) PassViews(step, build, build_names, &spec.build, &made_views);
  const bool has_mark = kind.probe_row == RowsOut::kAlways;
  QUERN_RETURN_IF_ERROR(CheckNames(probe_names, has_mark, build_names));
  std::vector<QueryColumn> results;
  for (const uint32_t number : probe_columns.payload) results.push_back(flow->columns[number]);
  if (has_mark) results.push_back({"", "b", std::nullopt});
  for (const uint32_t number : build_columns.payload) results.push_back(build.columns[number]);
  const auto append = [](const std::vector<uint32_t>& from, StepColumns* to) {
    to->payload.insert(to->payload.end(), from.begin(), from.end());
  };
  append(terms.probe_residual, &probe_columns);
  append(terms.build_residual, &build_columns);
  QUERN_RETURN_IF_ERROR(ValidateSpec(spec));

  const std::vector<std::string> build_others = kind.has_build_columns() ? build.others : std::vector<std::string>();
  build.pipeline.made_views = std::move(made_views);
  const size_t table = Close(std::move(build), SinkKind::kBuild, step, spec, std::move(build_columns), {});
  flow->columns = Typed(JoinOutputTypes(spec), std::move(results));
  flow->pipeline.steps.push_back({step.text, std::move(spec), std::move(probe_columns), table});
  flow->names.clear();
  if (!kind.has_probe_columns()) flow->others.clear();
  flow->others.insert(flow->others.end(), build_others.begin(), build_others.end());
  uint32_t next = 0;
  for (const Flow::Named& named : probe_names) flow->names.push_back({named.name, next++});
  if (has_mark) flow->names.push_back({"mark", next++});
  for (const Flow::Named& named : build_names) flow->names.push_back({named.name, next++});
  QueryStep behind_join;
  behind_join.text = step.text;
  behind_join.expressions = std::move(terms.behind_join);
  return AddFilter(behind_join, flow);
}

absl::Status Planner::AddAggregate(const QueryStep& step, Flow* flow) {
  Computation computation(flow, "aggregate", step.text);
  AggregationSpec spec;
  StepColumns columns;
  std::vector<QueryColumn> results;
  std::vector<Flow::Named> names;
  const auto add_result = [&](const std::string& name, std::string format) -> absl::Status {
    for (const Flow::Named& other : names)
      if (other.name == name)
        return Wrong("two result columns of one name", cli::QuoteName(name), "different names, as by CALL as NAME");
    names.push_back({name, static_cast<uint32_t>(results.size())});
    results.push_back({"", std::move(format), std::nullopt});
    return absl::OkStatus();
  };
  for (const cli::KeyText& key : step.keys) {
    QUERN_ASSIGN_OR_RETURN(const uint32_t number, computation.AddKey(key));
    const QueryColumn& column = computation.column(number);
    ColumnType type = *column.type;
    QUERN_RETURN_IF_ERROR(SetCollation(key.collation, {key.name, number}, column, &type));
    spec.keys.push_back({.type = type, .null_equal = type.nullable});
    columns.keys.push_back(number);
    QUERN_RETURN_IF_ERROR(add_result(key.result_name(), column.format));
  }
  for (const cli::AggregateText& call : step.aggregates) {
    AggregateSpec aggregate;
    aggregate.function = call.function;
    aggregate.quantile = call.quantile;
    aggregate.separator = call.separator;
    std::string format;
    for (const cli::KeyText& argument : call.arguments) {
      QUERN_ASSIGN_OR_RETURN(const uint32_t number, computation.AddKey(argument));
      const QueryColumn& column = computation.column(number);
      ColumnType type = *column.type;
      QUERN_RETURN_IF_ERROR(SetCollation(argument.collation, {argument.name, number}, column, &type));
      aggregate.arguments.push_back(type);
      columns.payload.push_back(number);
      if (format.empty()) format = column.format;
    }
    if (!call.filter_text.empty()) {
      if (call.computed_filter == nullptr) return cli::ParseExpressionText("aggregate", call.filter_text).status();
      QUERN_ASSIGN_OR_RETURN(const uint32_t number, computation.Add(*call.computed_filter));
      if (computation.column(number).type->id != TypeId::kBool)
        return Wrong("filter that is no condition", call.filter_text, "a bool");
      columns.payload.push_back(number);
      aggregate.filtered = true;
    }
    QUERN_RETURN_IF_ERROR(
        add_result(call.name, FormatOfResult(aggregate, AggregateResultType(aggregate, !step.keys.empty()), format)));
    spec.aggregates.push_back(std::move(aggregate));
  }
  QUERN_RETURN_IF_ERROR(computation.Finish());
  if (fusion_ == Fusion::kAuto) FuseMaps(flow, &spec, &columns);
  QUERN_RETURN_IF_ERROR(ValidateSpec(spec));
  results = Typed(AggregateOutputTypes(spec), std::move(results));
  Collect(SinkKind::kAggregate, step, std::move(spec), std::move(columns), std::move(results), std::move(names), flow);
  return absl::OkStatus();
}

absl::Status Planner::AddSort(const QueryStep& step, const WantedNames& wanted, Flow* flow) {
  SortSpec spec;
  // More rows than sorts have are no limit.
  const bool is_limited = step.limit <= INT64_MAX && step.offset <= INT64_MAX - step.limit;
  spec.limit = step.limit == 0 || !is_limited ? 0 : step.limit + step.offset;
  StepColumns columns;
  std::vector<QueryColumn> results;
  std::vector<Flow::Named> names;
  const auto add_result = [&](uint32_t number) {
    for (const Flow::Named& named : flow->names)
      if (named.column == number) names.push_back({named.name, static_cast<uint32_t>(results.size())});
    results.push_back(flow->columns[number]);
  };
  const auto is_wanted = [&](uint32_t number) {
    return std::any_of(flow->names.begin(), flow->names.end(),
                       [&](const Flow::Named& named) { return named.column == number && wanted.Has(named.name); });
  };
  Computation computation(flow, "sort", step.text);
  for (const cli::SortKeyText& text : step.sort_keys) {
    QUERN_ASSIGN_OR_RETURN(const uint32_t number, computation.AddKey(text.column));
    if (number >= flow->columns.size()) QUERN_RETURN_IF_ERROR(cli::CheckNoConstant("sort", text.column));
    const QueryColumn& column = computation.column(number);
    KeySpec key{.type = *column.type, .descending = text.descending};
    QUERN_RETURN_IF_ERROR(SetCollation(text.column.collation, {text.column.name, number}, column, &key.type));
    key.nulls_first = text.nulls_first && key.type.nullable;
    key.out = is_wanted(number) && std::count(columns.keys.begin(), columns.keys.end(), number) == 0;
    if (key.out) add_result(number);
    columns.keys.push_back(number);
    spec.keys.push_back(key);
  }
  for (const Flow::Named& named : flow->names) {
    const bool comes_out = std::count(columns.keys.begin(), columns.keys.end(), named.column) > 0 ||
                           std::count(columns.payload.begin(), columns.payload.end(), named.column) > 0;
    if (comes_out || !is_wanted(named.column)) continue;
    columns.payload.push_back(named.column);
    spec.payload.push_back(*flow->columns[named.column].type);
    add_result(named.column);
  }
  QUERN_RETURN_IF_ERROR(computation.Finish());
  QUERN_RETURN_IF_ERROR(ValidateSpec(spec));
  // Names stay in the order in which the query has them.
  std::vector<Flow::Named> ordered;
  for (const Flow::Named& named : flow->names)
    for (const Flow::Named& result : names)
      if (result.name == named.name) ordered.push_back(result);
  results = Typed(SortOutputTypes(spec), std::move(results));
  Collect(SinkKind::kSort, step, std::move(spec), std::move(columns), std::move(results), std::move(ordered), flow);
  flow->pipeline.offset = step.offset;
  return absl::OkStatus();
}

absl::Status Planner::AddLimit(const QueryStep& step, size_t relation) {
  const QueryRelation& result = text_.relations.back();
  if (relation + 1 != text_.relations.size() || &step != &result.steps.back())
    return Wrong("limit within a query", step.text, "the last step of the result, or sort .. limit N");
  plan_.limit = step.limit;
  plan_.offset = step.offset;
  return absl::OkStatus();
}

absl::Status Planner::AddStep(const QueryStep& step, size_t relation, const WantedNames& wanted, Flow* flow) {
  switch (step.kind) {
    case StepKind::kScan: return absl::OkStatus();
    case StepKind::kFilter: return AddFilter(step, flow);
    case StepKind::kSelect: return AddSelect(step, wanted, flow);
    case StepKind::kJoin: return AddJoin(step, relation, wanted, flow);
    case StepKind::kAggregate: return AddAggregate(step, flow);
    case StepKind::kSort: return AddSort(step, wanted, flow);
    case StepKind::kLimit: return AddLimit(step, relation);
  }
  return absl::OkStatus();
}

absl::Status Planner::CountUse() {
  if (++num_uses_ <= kMaxUses) return absl::OkStatus();
  return Wrong("relations that are used too often", std::to_string(num_uses_) + " uses",
               "up to " + std::to_string(kMaxUses) + "; a relation that is used twice uses what it names twice");
}

absl::StatusOr<Flow> Planner::PlanRelation(size_t number) {
  const QueryRelation& relation = text_.relations[number];
  QUERN_RETURN_IF_ERROR(CountUse());
  absl::StatusOr<Flow> flow = Source(relation.steps.front(), number, wanted_[number].front());
  if (!flow.ok()) return AtLine(relation.steps.front().line, flow.status());
  flow->pipeline.relation = relation.name;
  for (size_t s = 1; s < relation.steps.size(); ++s) {
    const absl::Status status = AddStep(relation.steps[s], number, wanted_[number][s], &*flow);
    if (!status.ok()) return AtLine(relation.steps[s].line, status);
  }
  return flow;
}

absl::StatusOr<QueryPlan> Planner::Make() {
  QUERN_ASSIGN_OR_RETURN(Flow flow, PlanRelation(text_.relations.size() - 1));
  for (const Flow::Named& named : flow.names) plan_.names.push_back(named.name);
  std::vector<uint32_t> numbers;
  for (const Flow::Named& named : flow.names) numbers.push_back(named.column);
  std::sort(numbers.begin(), numbers.end());
  const bool has_twice = std::adjacent_find(numbers.begin(), numbers.end()) != numbers.end();
  const bool is_collected = !flow.pipeline.reads_table && flow.pipeline.steps.empty() && !has_twice;
  if (is_collected) {
    plan_.offset += std::min(flow.pipeline.offset, UINT64_MAX - plan_.offset);
    for (const Flow::Named& named : flow.names) plan_.columns.push_back(named.column);
    return std::move(plan_);
  }
  StepColumns columns;
  std::vector<QueryColumn> results;
  for (const Flow::Named& named : flow.names) {
    plan_.columns.push_back(static_cast<uint32_t>(results.size()));
    columns.keys.push_back(named.column);
    results.push_back(flow.columns[named.column]);
    results.back().type->is_dictionary = false;
    results.back().type->collation = kCollationBinary;
  }
  Close(std::move(flow), SinkKind::kResult, {}, std::nullopt, std::move(columns), std::move(results));
  return std::move(plan_);
}

}  // namespace

std::string TypeText(const QueryColumn& column) {
  if (!column.type.has_value()) return "of the Arrow format " + column.format;
  const std::optional<ValueType> value = ValueTypeOf(column);
  if (!value.has_value() || IsStringType(value->id)) return PrintType(*column.type);
  return PrintValueType({value->id, value->digits, value->scale});
}

std::vector<QueryColumn> ColumnsOf(const ArrowSchema& schema) {
  std::vector<QueryColumn> columns;
  for (int64_t i = 0; i < schema.n_children; ++i) {
    const ArrowSchema& field = *schema.children[i];
    const ArrowSchema& values = field.dictionary == nullptr ? field : *field.dictionary;
    QueryColumn column{field.name == nullptr ? "" : field.name, values.format, std::nullopt};
    absl::StatusOr<ColumnType> type = TypeOfArrow(field);
    if (type.ok()) {
      column.type = *type;
      column.type->nullable = (field.flags & ARROW_FLAG_NULLABLE) != 0;
    }
    columns.push_back(std::move(column));
  }
  return columns;
}

absl::StatusOr<QueryPlan> QueryPlan::Make(const QueryText& text, const std::vector<QueryTable>& tables, Fusion fusion) {
  if (const std::optional<QueryText> late = WithLateColumns(text, tables); late.has_value()) {
    absl::StatusOr<QueryPlan> plan = Planner(*late, tables, fusion, true).Make();
    if (plan.ok()) return plan;
  }
  // Texts that are compared must be of one type, and so a plan may need them as they are.
  absl::StatusOr<QueryPlan> plan = Planner(text, tables, fusion, true).Make();
  return plan.ok() ? std::move(plan) : Planner(text, tables, fusion, false).Make();
}

}  // namespace quern::query
