// SPDX-License-Identifier: Apache-2.0
// One step of a query adds at most one map and one filter:
//
//     filter price * qty > 100 and name like 'a%' and due < shipped
//
//     filter utf8 like 'a%' and date32 < date32          name, due, shipped
//     map in=f64,f64 out=greater(multiply($0,$1),..)     price, qty       one column more
//     filter bool = true                                 that column
#include "tools/query/flow.h"

#include <algorithm>
#include <utility>

#include "runtime/base/messages.h"
#include "runtime/base/status.h"
#include "runtime/collation/collation.h"
#include "runtime/rows/arrow_format.h"
#include "runtime/spec/spec_text.h"
#include "tools/frontend/column_names.h"
#include "tools/frontend/condition_text.h"
#include "tools/frontend/errors.h"
#include "tools/frontend/list_parser.h"
#include "tools/frontend/value_types.h"
#include "tools/frontend/where_leaf.h"

namespace quern::query {
namespace {

constexpr const char* kComparable = "the same type, two integers, integers with decimals";

// Builds the condition of a filter leaf by leaf.
class Conversion {
 public:
  explicit Conversion(Flow* flow, const std::string& text) : flow_(*flow), casts_(flow, "filter", text) {}

  absl::StatusOr<Predicate> Convert(const cli::WhereText& where);
  // The casts of compared columns, which come before the filter.
  absl::Status FinishCasts() { return casts_.Finish(); }
  StepColumns TakeColumns() { return std::move(columns_); }

 private:
  absl::StatusOr<Predicate> Leaf(const cli::WhereText& where);
  absl::StatusOr<Predicate> Columns(const cli::WhereText& where);

  Flow& flow_;
  Computation casts_;
  StepColumns columns_;
};

absl::StatusOr<Predicate> Conversion::Convert(const cli::WhereText& where) {
  if (where.children.empty()) return where.kind == PredicateKind::kCompareColumns ? Columns(where) : Leaf(where);
  Predicate whole{.kind = where.kind};
  for (const cli::WhereText& child : where.children) {
    QUERN_ASSIGN_OR_RETURN(Predicate part, Convert(child));
    whole.children.push_back(std::move(part));
  }
  return whole;
}

absl::StatusOr<Predicate> Conversion::Leaf(const cli::WhereText& where) {
  QUERN_ASSIGN_OR_RETURN(const Flow::Named named, flow_.Find(where.column.name));
  const QueryColumn& column = flow_.columns[named.column];
  cli::WhereColumn leaf{"filter", Flow::Text(named), TypeText(column), column.format, {}};
  QUERN_ASSIGN_OR_RETURN(leaf.type, flow_.TypeOf(named));
  QUERN_RETURN_IF_ERROR(SetCollation(where.column.collation, named, column, &leaf.type));
  columns_.keys.push_back(named.column);
  return cli::LeafOf(where, leaf);
}

absl::StatusOr<Predicate> Conversion::Columns(const cli::WhereText& where) {
  QUERN_ASSIGN_OR_RETURN(const Flow::Named left, flow_.Find(where.column.name));
  QUERN_ASSIGN_OR_RETURN(const Flow::Named right, flow_.Find(where.other.name));
  const auto& [left_collation, right_collation] = std::pair(where.column.collation, where.other.collation);
  if (!left_collation.empty() && !right_collation.empty() && left_collation != right_collation)
    return Wrong("two collations in one comparison", left_collation + ", " + right_collation, "the same, or one");
  uint32_t numbers[2];
  QUERN_RETURN_IF_ERROR(MakeAlike(left, &casts_, right, &casts_, "columns of types that do not compare", numbers));
  Predicate leaf{.kind = where.kind, .op = where.op};
  leaf.column = *casts_.column(numbers[0]).type;
  leaf.other = *casts_.column(numbers[1]).type;
  const std::string& collation = left_collation.empty() ? right_collation : left_collation;
  QUERN_RETURN_IF_ERROR(SetCollation(collation, left, casts_.column(numbers[0]), &leaf.column));
  leaf.other.collation = leaf.column.collation;
  columns_.keys.insert(columns_.keys.end(), {numbers[0], numbers[1]});
  return leaf;
}

absl::Status AddConditions(const QueryStep& step, Flow* flow) {
  if (step.conditions.empty()) return absl::OkStatus();
  Conversion conversion(flow, step.text);
  FilterSpec spec{.where = {.kind = PredicateKind::kAnd}};
  for (const cli::WhereText& condition : step.conditions) {
    QUERN_ASSIGN_OR_RETURN(Predicate part, conversion.Convert(condition));
    // No `and` has a child that is one.
    if (part.kind != PredicateKind::kAnd) spec.where.children.push_back(std::move(part));
    else
      for (Predicate& child : part.children) spec.where.children.push_back(std::move(child));
  }
  if (spec.where.children.size() == 1) spec.where = Predicate(std::move(spec.where.children.front()));
  QUERN_RETURN_IF_ERROR(conversion.FinishCasts());
  QUERN_RETURN_IF_ERROR(ValidateSpec(spec));
  flow->pipeline.steps.push_back({step.text, std::move(spec), conversion.TakeColumns()});
  return absl::OkStatus();
}

absl::Status AddExpressions(const QueryStep& step, Flow* flow) {
  if (step.expressions.empty()) return absl::OkStatus();
  Computation each(flow, "filter", step.text), computation(flow, "filter", step.text);
  for (const cli::ExpressionText& expression : step.expressions) {
    QUERN_ASSIGN_OR_RETURN(const uint32_t number, each.Add(expression));
    if (each.column(number).type->id != TypeId::kBool)
      return Wrong("filter that is no condition", expression.shown + " of " + TypeText(each.column(number)), "a bool");
  }
  // One truth, so that no term fails in a row that an earlier one has taken away.
  QUERN_ASSIGN_OR_RETURN(const uint32_t number, computation.Add(cli::AllOf(step.expressions)));
  QUERN_RETURN_IF_ERROR(computation.Finish());
  FilterSpec spec{.where = {.kind = PredicateKind::kCompare,
                            .column = *flow->columns[number].type,
                            .op = Comparison::kEqual,
                            .values = {{.number = 1}}}};
  flow->pipeline.steps.push_back({step.text, std::move(spec), {.keys = {number}, .payload = {}}});
  return absl::OkStatus();
}

}  // namespace

// ---- names ----

std::string Flow::Text(const Named& named) { return "column " + cli::QuoteName(named.name); }

absl::StatusOr<Flow::Named> Flow::Find(const std::string& name) const {
  std::vector<Named> same, alike;
  std::vector<std::string> accepted;
  for (const Named& named : names) {
    if (named.name == name) same.push_back(named);
    if (cli::LowerCase(named.name) == cli::LowerCase(name)) alike.push_back(named);
    accepted.push_back(cli::QuoteName(named.name));
  }
  for (const std::string& other : others) accepted.push_back(cli::QuoteName(other));
  const std::vector<Named>& found = same.empty() ? alike : same;
  if (found.size() == 1) return found.front();
  if (found.empty()) return absl::InvalidArgumentError(cli::UnknownWord("column", cli::QuoteName(name), accepted));
  return Wrong("column that is meant is not clear", cli::QuoteName(name),
               "one of that name: select .. as gives another to the other one");
}

absl::StatusOr<ColumnType> Flow::TypeOf(const Named& named) const {
  const QueryColumn& column = columns[named.column];
  if (column.type.has_value()) return *column.type;
  return Wrong("unsupported type of " + Text(named), TypeText(column), "types of docs/spec.md");
}

absl::Status SetCollation(const std::string& name, const Flow::Named& named, const QueryColumn& column,
                          ColumnType* type) {
  if (name.empty()) return absl::OkStatus();
  QUERN_ASSIGN_OR_RETURN(const Collation collation, CollationNamed(name));
  if (collation != kCollationBinary && !IsVariable(RowOf(type->id).storage))
    return Wrong("collation on a column without text", Flow::Text(named) + " is " + TypeText(column), "utf8 columns");
  type->collation = collation;
  return absl::OkStatus();
}

// ---- computed columns ----

std::optional<ValueType> ValueTypeOf(const QueryColumn& column) {
  if (!column.type.has_value()) return std::nullopt;
  const bool is_string = IsStringType(column.type->id);
  if (column.type->is_dictionary && !is_string) return std::nullopt;
  std::optional<ValueType> type = cli::ValueTypeOf(column.type->id, column.format, column.type->nullable);
  if (!type.has_value() || !is_string) return type;
  type->is_dictionary = column.type->is_dictionary;
  if (type->is_dictionary) type->index = column.type->index;
  return type;
}

const QueryColumn& Computation::column(uint32_t number) const {
  return number < flow_.columns.size() ? flow_.columns[number] : results_[number - flow_.columns.size()];
}

absl::StatusOr<uint32_t> Computation::Argument(const Flow::Named& named) {
  const auto known = std::find(numbers_.begin(), numbers_.end(), named.column);
  const auto place = static_cast<size_t>(known - numbers_.begin());
  if (known != numbers_.end() && arguments_[place].name == named.name) return static_cast<uint32_t>(place);
  const QueryColumn& column = flow_.columns[named.column];
  cli::ExpressionColumn argument{named.name, Flow::Text(named), TypeText(column), column.format};
  argument.type = ValueTypeOf(column);
  spec_.columns.push_back(argument.TypeInSpec());
  arguments_.push_back(std::move(argument));
  numbers_.push_back(named.column);
  return static_cast<uint32_t>(numbers_.size() - 1);
}

absl::StatusOr<uint32_t> Computation::AddResult(Expression expression, std::string format) {
  const auto base = static_cast<uint32_t>(flow_.columns.size());
  const auto same = std::find(spec_.results.begin(), spec_.results.end(), expression);
  if (same != spec_.results.end()) return base + static_cast<uint32_t>(same - spec_.results.begin());
  results_.push_back({"", std::move(format), ColumnTypeOf(expression.type)});
  spec_.results.push_back(std::move(expression));
  return base + static_cast<uint32_t>(spec_.results.size() - 1);
}

absl::StatusOr<uint32_t> Computation::Add(const cli::ExpressionText& expression) {
  if (expression.form == cli::ExpressionText::Form::kColumn) {
    QUERN_ASSIGN_OR_RETURN(const Flow::Named named, flow_.Find(expression.text));
    return named.column;
  }
  QUERN_ASSIGN_OR_RETURN(const cli::ExpressionText resolved, Resolved(expression));
  QUERN_ASSIGN_OR_RETURN(Expression typed, cli::TypedExpression(what_, resolved, arguments_));
  return AddTyped(std::move(typed));
}

absl::StatusOr<cli::ExpressionText> Computation::Resolved(cli::ExpressionText expression) {
  QUERN_RETURN_IF_ERROR(cli::VisitNames(&expression, [this](std::string* name) {
    QUERN_ASSIGN_OR_RETURN(const Flow::Named named, flow_.Find(*name));
    *name = named.name;
    return Argument(named).status();
  }));
  return expression;
}

absl::StatusOr<uint32_t> Computation::AddTyped(Expression typed) {
  if (typed.kind == ExpressionKind::kColumn) return numbers_[typed.column];
  std::string format = cli::FormatOf(typed, arguments_);
  return AddResult(std::move(typed), std::move(format));
}

absl::Status AddSides(const cli::JoinTermText& term, Computation* left, Computation* right, uint32_t (&numbers)[2]) {
  const auto text_of = [](const cli::KeyText& side, const Computation& columns) {
    const bool is_column = side.computed == nullptr || (side.may_be_column && columns.flow_.Find(side.name).ok());
    if (!is_column) return *side.computed;
    return cli::ExpressionText{
        .form = cli::ExpressionText::Form::kColumn, .text = side.name, .shown = cli::QuoteName(side.name)};
  };
  QUERN_ASSIGN_OR_RETURN(const auto left_text, left->Resolved(text_of(term.probe, *left)));
  QUERN_ASSIGN_OR_RETURN(const auto right_text, right->Resolved(text_of(term.build, *right)));
  QUERN_ASSIGN_OR_RETURN(cli::TypedSides sides,
                         cli::TypedComparison(left->what_, left_text, left->arguments_, right_text, right->arguments_));
  QUERN_ASSIGN_OR_RETURN(numbers[0], left->AddTyped(std::move(sides.left)));
  QUERN_ASSIGN_OR_RETURN(numbers[1], right->AddTyped(std::move(sides.right)));
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> Computation::AddKey(const cli::KeyText& key) {
  if (key.computed != nullptr && !(key.may_be_column && flow_.Find(key.name).ok())) return Add(*key.computed);
  QUERN_ASSIGN_OR_RETURN(const Flow::Named named, flow_.Find(key.name));
  return named.column;
}

absl::StatusOr<uint32_t> Computation::Cast(const Flow::Named& named, const ValueType& type) {
  QUERN_ASSIGN_OR_RETURN(const uint32_t place, Argument(named));
  QUERN_ASSIGN_OR_RETURN(Expression value, MakeColumn(place, spec_.columns));
  QUERN_ASSIGN_OR_RETURN(Expression cast, MakeCall(ExpressionFunction::kCast, {std::move(value)}, type));
  std::string format = cli::FormatOf(cast, arguments_);
  return AddResult(std::move(cast), std::move(format));
}

absl::Status Computation::Finish() {
  if (spec_.results.empty()) return absl::OkStatus();
  QUERN_RETURN_IF_ERROR(ValidateSpec(spec_));
  flow_.pipeline.steps.push_back({text_, std::move(spec_), {.keys = std::move(numbers_), .payload = {}}});
  flow_.columns.insert(flow_.columns.end(), results_.begin(), results_.end());
  return absl::OkStatus();
}

absl::Status MakeAlike(const Flow::Named& left, Computation* left_casts, const Flow::Named& right,
                       Computation* right_casts, const std::string& what, uint32_t (&numbers)[2]) {
  const QueryColumn &a = left_casts->column(left.column), &b = right_casts->column(right.column);
  numbers[0] = left.column;
  numbers[1] = right.column;
  if (a.type.has_value() && b.type.has_value() && UnitOf(a.format) == UnitOf(b.format)) {
    ColumnType type = *a.type;
    type.nullable = b.type->nullable;
    if (type == *b.type) return absl::OkStatus();
  }
  const std::optional<ValueType> first = ValueTypeOf(a), second = ValueTypeOf(b);
  const auto is_exact = [](const std::optional<ValueType>& type) {
    return type.has_value() && (IsInteger(type->id) || IsDecimal(type->id));
  };
  const std::optional<ValueType> common =
      is_exact(first) && is_exact(second) ? cli::CommonType(*first, *second) : std::nullopt;
  if (!common.has_value())
    return Wrong(what, Flow::Text(left) + " is " + TypeText(a) + ", " + Flow::Text(right) + " is " + TypeText(b),
                 kComparable);
  const auto is_common = [&](const ValueType& type) { return type.id == common->id && AreAlike(type, *common); };
  if (!is_common(*first)) {
    QUERN_ASSIGN_OR_RETURN(numbers[0], left_casts->Cast(left, *common));
  }
  if (!is_common(*second)) {
    QUERN_ASSIGN_OR_RETURN(numbers[1], right_casts->Cast(right, *common));
  }
  return absl::OkStatus();
}

absl::Status AddFilter(const QueryStep& step, Flow* flow) {
  QUERN_RETURN_IF_ERROR(AddConditions(step, flow));
  return AddExpressions(step, flow);
}

}  // namespace quern::query
