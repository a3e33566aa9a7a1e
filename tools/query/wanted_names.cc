// SPDX-License-Identifier: Apache-2.0
#include "tools/query/wanted_names.h"

#include "tools/frontend/expression_text.h"
#include "tools/frontend/list_parser.h"

namespace quern::query {
namespace {

void AddKey(const cli::KeyText& key, WantedNames* wanted) {
  if (key.computed == nullptr || key.may_be_column) wanted->Add(key.name);
  if (key.computed != nullptr) wanted->Add(*key.computed);
}

void AddConditions(const QueryStep& step, WantedNames* wanted) {
  std::vector<std::string> names;
  for (const cli::WhereText& condition : step.conditions) cli::AddNames(condition, &names);
  for (const cli::ExpressionText& expression : step.expressions) cli::AddNames(expression, &names);
  for (const std::string& name : names) wanted->Add(name);
}

// Of what is wanted behind a select: the names that compute it.
WantedNames BeforeSelect(const QueryStep& step, const WantedNames& behind) {
  WantedNames wanted;
  for (const cli::SelectText& selected : step.select) {
    if (selected.is_all) wanted.Add(behind);
    if (selected.is_all || !behind.Has(selected.name)) continue;
    std::vector<std::string> names;
    cli::AddNames(selected.expression, &names);
    for (const std::string& name : names) wanted.Add(name);
  }
  return wanted;
}

WantedNames BeforeAggregate(const QueryStep& step) {
  WantedNames wanted;
  for (const cli::KeyText& key : step.keys) AddKey(key, &wanted);
  for (const cli::AggregateText& call : step.aggregates) {
    for (const cli::KeyText& argument : call.arguments) AddKey(argument, &wanted);
    if (call.computed_filter != nullptr) wanted.Add(*call.computed_filter);
  }
  return wanted;
}

// What is wanted of the rows before a step. A join also wants columns of the relation that it names;
// a side that does not come out has only its columns in `on` read.
WantedNames Before(const QueryStep& step, const WantedNames& behind, WantedNames* of_relation) {
  WantedNames wanted = behind;
  switch (step.kind) {
    case StepKind::kScan: of_relation->Add(behind); break;
    case StepKind::kFilter: AddConditions(step, &wanted); break;
    case StepKind::kSelect: return BeforeSelect(step, behind);
    case StepKind::kAggregate: return BeforeAggregate(step);
    case StepKind::kJoin:
      if (!RowOf(step.join).has_probe_columns()) wanted = {};
      if (RowOf(step.join).has_build_columns()) of_relation->Add(behind);
      AddJoinNames(step, &wanted, of_relation);
      break;
    case StepKind::kSort:
      for (const cli::SortKeyText& key : step.sort_keys) AddKey(key.column, &wanted);
      break;
    case StepKind::kLimit: break;
  }
  return wanted;
}

}  // namespace

bool WantedNames::Has(const std::string& name) const { return all || names.count(cli::LowerCase(name)) > 0; }
void WantedNames::Add(const std::string& name) { names.insert(cli::LowerCase(name)); }
void WantedNames::Add(const WantedNames& other) {
  all = all || other.all;
  names.insert(other.names.begin(), other.names.end());
}

void WantedNames::Add(const cli::ExpressionText& expression) {
  std::vector<std::string> mentioned;
  cli::AddNames(expression, &mentioned);
  for (const std::string& name : mentioned) Add(name);
}

void AddJoinNames(const QueryStep& step, WantedNames* of_probe, WantedNames* of_build) {
  for (const cli::JoinTermText& term : step.on) {
    AddKey(term.probe, of_probe);
    AddKey(term.build, of_build);
    if (term.probe.computed == nullptr && term.build.computed == nullptr) continue;
    of_probe->Add(*term.whole);
    of_build->Add(*term.whole);
  }
}

size_t FindRelation(const QueryText& text, const std::string& name, size_t before) {
  for (size_t i = 0; i < before; ++i)
    if (text.relations[i].name == name) return i;
  return std::string::npos;
}

namespace {

// Also adds what is wanted of one table.
std::vector<std::vector<WantedNames>> Find(const QueryText& text, const std::string& table, WantedNames* of_table) {
  std::vector<WantedNames> of_relations(text.relations.size());
  of_relations.back().all = true;
  std::vector<std::vector<WantedNames>> wanted(text.relations.size());
  for (size_t r = text.relations.size(); r-- > 0;) {
    const std::vector<QueryStep>& steps = text.relations[r].steps;
    wanted[r].resize(steps.size());
    WantedNames behind = of_relations[r];
    for (size_t s = steps.size(); s-- > 0;) {
      wanted[r][s] = behind;
      const size_t relation = FindRelation(text, steps[s].relation, r);
      WantedNames of_other;
      WantedNames* const of_named = relation != std::string::npos ? &of_relations[relation]
                                    : steps[s].relation == table  ? of_table
                                                                  : &of_other;
      behind = Before(steps[s], behind, of_named);
    }
  }
  return wanted;
}

}  // namespace

std::vector<std::vector<WantedNames>> FindWantedNames(const QueryText& text) {
  WantedNames of_table;
  return Find(text, "", &of_table);
}

WantedNames WantedOfTable(const QueryText& text, const std::string& table) {
  WantedNames wanted;
  Find(text, table, &wanted);
  return wanted;
}

}  // namespace quern::query
