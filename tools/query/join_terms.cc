// SPDX-License-Identifier: Apache-2.0
// Each side of a comparison is computed on its own side of the join, in front of it. For lineitem joined to orders:
//
//     l_orderkey = o_orderkey            a key of two columns
//     year(l_shipdate) + 1 = o_year      a key; a map over lineitem
//     l_price * 2 < o_total              a residual; a map over lineitem
//     l_price + o_tax > 100              both sides in one expression: a filter behind the join
//
// A pair of an inner join that fails a term is no pair, so that a filter leaves the same rows. Other joins have rows
// without a partner, which a filter would leave out.
#include "tools/query/join_terms.h"

#include <algorithm>
#include <utility>

#include "runtime/base/messages.h"
#include "runtime/base/status.h"
#include "tools/frontend/column_names.h"

namespace quern::query {
namespace {

bool IsColumn(const Flow& flow, const cli::KeyText& side) {
  return side.computed == nullptr || (side.may_be_column && flow.Find(side.name).ok());
}

// Whether a side of a term has no other columns than those of the flow.
bool IsOf(const Flow& flow, const cli::KeyText& side) {
  if (IsColumn(flow, side)) return flow.Find(side.name).ok();
  std::vector<std::string> names;
  cli::AddNames(*side.computed, &names);
  return std::all_of(names.begin(), names.end(), [&flow](const std::string& name) { return flow.Find(name).ok(); });
}

bool IsConstant(const cli::KeyText& side) {
  std::vector<std::string> names;
  if (side.computed != nullptr) cli::AddNames(*side.computed, &names);
  return side.computed != nullptr && names.empty();
}

class Terms {
 public:
  Terms(const QueryStep& step, Flow* probe, Flow* build)
      : step_(step),
        probe_(*probe),
        build_(*build),
        probe_columns_(probe, "join", step.text),
        build_columns_(build, "join", step.text) {}

  absl::Status Add(const cli::JoinTermText& term);
  absl::StatusOr<JoinTerms> Finish();

 private:
  absl::Status AddBehind(const cli::ExpressionText& condition);

  const QueryStep& step_;
  const Flow &probe_, &build_;
  Computation probe_columns_, build_columns_;
  JoinTerms terms_;
};

absl::Status Terms::AddBehind(const cli::ExpressionText& condition) {
  std::vector<std::string> names;
  cli::AddNames(condition, &names);
  for (const std::string& name : names)
    if (!build_.Find(name).ok()) QUERN_RETURN_IF_ERROR(probe_.Find(name).status());
  if (step_.join != JoinKind::kInner)
    return Wrong("condition of join." + std::string(RowOf(step_.join).text), condition.shown,
                 "comparisons of an expression over the rows so far with one over " + step_.relation +
                     "; any condition in on of an inner join, and in a filter behind a join");
  terms_.behind_join.push_back(condition);
  return absl::OkStatus();
}

absl::Status Terms::Add(const cli::JoinTermText& term) {
  const bool is_computed = !IsColumn(probe_, term.probe) || !IsColumn(build_, term.build);
  const bool is_of_sides = term.is_comparison && IsOf(probe_, term.probe) && IsOf(build_, term.build);
  const bool is_filter = step_.join == JoinKind::kInner && (IsConstant(term.probe) || IsConstant(term.build));
  if (is_computed && (!is_of_sides || is_filter)) return AddBehind(*term.whole);
  uint32_t numbers[2];
  const bool is_key = term.op == Comparison::kEqual;
  const std::string what = is_key ? "keys of types that do not compare" : "columns that do not compare";
  if (is_computed) {
    QUERN_RETURN_IF_ERROR(AddSides(term, &probe_columns_, &build_columns_, numbers));
  } else {
    QUERN_ASSIGN_OR_RETURN(const Flow::Named probe, probe_.Find(term.probe.name));
    QUERN_ASSIGN_OR_RETURN(const Flow::Named build, build_.Find(term.build.name));
    QUERN_RETURN_IF_ERROR(MakeAlike(probe, &probe_columns_, build, &build_columns_, what, numbers));
    if (is_key && probe.name == build.name) terms_.same_names.push_back(probe.name);
  }
  const QueryColumn& column = probe_columns_.column(numbers[0]);
  ColumnType type = *column.type;
  type.nullable = type.nullable || build_columns_.column(numbers[1]).type->nullable;
  QUERN_RETURN_IF_ERROR(SetCollation(term.collation, {term.probe.name, numbers[0]}, column, &type));
  if (is_key) terms_.keys.push_back({.type = type});
  else terms_.residual.push_back({.type = type, .op = term.op});
  (is_key ? terms_.probe_keys : terms_.probe_residual).push_back(numbers[0]);
  (is_key ? terms_.build_keys : terms_.build_residual).push_back(numbers[1]);
  return absl::OkStatus();
}

absl::StatusOr<JoinTerms> Terms::Finish() {
  if (terms_.keys.empty())
    return Wrong("join without a key", step_.text, "one SIDE = SIDE or more in on, each of one side's columns");
  QUERN_RETURN_IF_ERROR(probe_columns_.Finish());
  QUERN_RETURN_IF_ERROR(build_columns_.Finish());
  return std::move(terms_);
}

}  // namespace

absl::StatusOr<JoinTerms> AddJoinTerms(const QueryStep& step, Flow* probe, Flow* build) {
  Terms terms(step, probe, build);
  for (const cli::JoinTermText& term : step.on) QUERN_RETURN_IF_ERROR(terms.Add(term));
  return terms.Finish();
}

}  // namespace quern::query
