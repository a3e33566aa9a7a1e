// SPDX-License-Identifier: Apache-2.0
// Names are looked up before columns are read; then the columns determine the spec. For
//
//     quern filter --where "name collate utf8mb4_general_ci = 'ada' and due < shipped" --select id,name sales.parquet
//
// with name a string in which nulls were read, due and shipped dates and id an i64, the spec is
//
//     filter utf8(utf8mb4_general_ci):nullable = 'ada' and date32 < date32
//
// The table that the filter runs over has the columns name, due, shipped, id: the first three are the kernel's keys,
// and the result is taken from 3 and 0. Two columns that are compared are first cast to one type, like keys of joins
// (key_types.h).
#include "tools/quern/filter/filter_request.h"

#include <arrow/api.h>

#include <algorithm>
#include <set>
#include <utility>

#include "runtime/base/status.h"
#include "tools/frontend/errors.h"
#include "tools/frontend/list_parser.h"
#include "tools/quern/files/input_columns.h"
#include "tools/quern/files/key_types.h"
#include "tools/quern/filter/where_leaf.h"

namespace quern::cli {
namespace {

constexpr char kOption[] = "--where";

// ---- names ----

absl::Status ResolveName(const TableInput& input, std::string* name) {
  const std::vector<std::string>& names = input.column_names();
  if (std::find(names.begin(), names.end(), *name) != names.end()) return CheckColumn(names, input.what(), *name);
  std::vector<std::string> alike;
  for (const std::string& column : names)
    if (LowerCase(column) == LowerCase(*name)) alike.push_back(column);
  if (alike.empty()) return CheckColumn(names, input.what(), *name);
  if (alike.size() > 1) {
    return CommandError("column of " + input.what() + " that is meant is not clear: " + QuoteName(*name) +
                        "; accepted: " + JoinWords(alike));
  }
  *name = alike[0];
  return absl::OkStatus();
}

absl::Status ResolveNames(const TableInput& input, WhereText* where) {
  for (WhereText& child : where->children) QUERN_RETURN_IF_ERROR(ResolveNames(input, &child));
  if (!where->children.empty()) return absl::OkStatus();
  QUERN_RETURN_IF_ERROR(ResolveName(input, &where->column.name));
  return where->kind == PredicateKind::kCompareColumns ? ResolveName(input, &where->other.name) : absl::OkStatus();
}

void AddNames(const WhereText& where, std::vector<std::string>* names) {
  for (const WhereText& child : where.children) AddNames(child, names);
  if (!where.children.empty()) return;
  names->push_back(where.column.name);
  if (where.kind == PredicateKind::kCompareColumns) names->push_back(where.other.name);
}

// ---- the condition ----

// Builds a PreparedFilter leaf by leaf.
class Preparation {
 public:
  Preparation(const TableInput& input, const std::shared_ptr<arrow::Table>& table) : columns_(input.what(), table) {}

  absl::StatusOr<PreparedFilter> Prepare(const FilterRequest& request, const std::vector<std::string>& selected);

 private:
  absl::StatusOr<Predicate> Condition(const WhereText& where);
  absl::StatusOr<Predicate> Leaf(const WhereText& where);
  absl::StatusOr<Predicate> LeafWithoutValues(const WhereText& where);
  absl::StatusOr<Predicate> Columns(const WhereText& where);
  absl::StatusOr<ColumnType> AddKey(const std::string& name, const std::shared_ptr<arrow::DataType>& type);
  absl::Status AddResult(const std::string& name);

  InputColumns columns_;
  PreparedFilter prepared_;
  arrow::FieldVector fields_;  // of the result
};

absl::StatusOr<ColumnType> Preparation::AddKey(const std::string& name, const std::shared_ptr<arrow::DataType>& type) {
  QUERN_ASSIGN_OR_RETURN(ColumnType read, KernelType(columns_.Text(name), *type));
  QUERN_ASSIGN_OR_RETURN(const int place, columns_.Add(name, type));
  read.nullable = HasNulls(*columns_.Find(name));
  prepared_.input.binding.keys.push_back(place);
  prepared_.input.keys.push_back(read);
  return read;
}

absl::StatusOr<Predicate> Preparation::Condition(const WhereText& where) {
  if (where.children.empty()) return where.kind == PredicateKind::kCompareColumns ? Columns(where) : Leaf(where);
  Predicate whole{.kind = where.kind};
  for (const WhereText& child : where.children) {
    QUERN_ASSIGN_OR_RETURN(Predicate part, Condition(child));
    whole.children.push_back(std::move(part));
  }
  return whole;
}

// Null everywhere, so that no comparison is true and none is false.
absl::StatusOr<Predicate> Preparation::LeafWithoutValues(const WhereText& where) {
  QUERN_ASSIGN_OR_RETURN(const ColumnType type, AddKey(where.column.name, arrow::boolean()));
  if (where.kind == PredicateKind::kIsNull)
    return Predicate{.kind = where.kind, .column = type, .negated = where.negated};
  return Predicate{
      .kind = PredicateKind::kCompare, .column = type, .op = Comparison::kEqual, .values = {{.number = 1}}};
}

absl::StatusOr<Predicate> Preparation::Leaf(const WhereText& where) {
  const std::string& name = where.column.name;
  const auto values = columns_.Find(name);
  if (values->type()->id() == arrow::Type::NA) return LeafWithoutValues(where);
  WhereColumn column{kOption, columns_.Text(name), DecodedType(values->type()), {}};
  QUERN_ASSIGN_OR_RETURN(column.type, AddKey(name, values->type()));
  QUERN_ASSIGN_OR_RETURN(const Collation collation, CollationByName(where.column.collation));
  QUERN_RETURN_IF_ERROR(SetCollation(collation, column.text, *values->type(), &column.type));
  prepared_.input.keys.back() = column.type;
  return LeafOf(where, column);
}

absl::StatusOr<Collation> CollationOf(const WhereText& where) {
  const std::string& left = where.column.collation;
  const std::string& right = where.other.collation;
  if (!left.empty() && !right.empty() && left != right) {
    return CommandError("two collations in one comparison: " + QuoteName(where.column.name) + " collate " + left +
                        ", " + QuoteName(where.other.name) + " collate " + right +
                        "; accepted: the same after both, or one after either");
  }
  return CollationByName(left.empty() ? right : left);
}

absl::StatusOr<Predicate> Preparation::Columns(const WhereText& where) {
  const auto left = columns_.Find(where.column.name), right = columns_.Find(where.other.name);
  const std::string text = columns_.Text(where.column.name);
  std::shared_ptr<arrow::DataType> type = CommonKeyType(left->type(), right->type());
  if (type == nullptr) {
    return CommandError("columns of types that do not compare: " + text + " is " + left->type()->ToString() + ", " +
                        columns_.Text(where.other.name) + " is " + right->type()->ToString() +
                        "; accepted: the same type, integers and decimals, integers and floats, "
                        "strings with strings");
  }
  if (type->id() == arrow::Type::NA) type = arrow::boolean();
  Predicate leaf{.kind = where.kind, .op = where.op};
  QUERN_ASSIGN_OR_RETURN(leaf.column, AddKey(where.column.name, type));
  QUERN_ASSIGN_OR_RETURN(leaf.other, AddKey(where.other.name, type));
  QUERN_ASSIGN_OR_RETURN(const Collation collation, CollationOf(where));
  QUERN_RETURN_IF_ERROR(SetCollation(collation, text, *left->type(), &leaf.column));
  leaf.other.collation = collation;
  std::vector<ColumnType>& keys = prepared_.input.keys;
  keys[keys.size() - 2] = leaf.column;
  keys.back() = leaf.other;
  return leaf;
}

absl::Status Preparation::AddResult(const std::string& name) {
  const auto column = columns_.Find(name);
  const bool has_values = column->type()->id() != arrow::Type::NA;
  QUERN_ASSIGN_OR_RETURN(const int place, columns_.Add(name, has_values ? column->type() : arrow::utf8()));
  prepared_.result.push_back(place);
  fields_.push_back(arrow::field(name, has_values ? DecodedType(column->type()) : arrow::utf8(), HasNulls(*column)));
  return absl::OkStatus();
}

absl::StatusOr<PreparedFilter> Preparation::Prepare(const FilterRequest& request,
                                                    const std::vector<std::string>& selected) {
  prepared_.spec.op = Operator::kFilter;
  QUERN_ASSIGN_OR_RETURN(prepared_.spec.where, Condition(request.where));
  QUERN_RETURN_IF_ERROR(ValidateSpec(prepared_.spec));
  for (const std::string& name : selected) QUERN_RETURN_IF_ERROR(AddResult(name));
  prepared_.schema = arrow::schema(std::move(fields_));
  prepared_.input.table = columns_.Finish();
  return std::move(prepared_);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ResolveColumns(const TableInput& input, bool count, FilterRequest* request) {
  QUERN_RETURN_IF_ERROR(ResolveNames(input, &request->where));
  if (count && !request->select.has_value()) return std::vector<std::string>();
  std::vector<std::string> selected = request->select.value_or(input.column_names());
  std::set<std::string> names;
  for (std::string& name : selected) {
    QUERN_RETURN_IF_ERROR(ResolveName(input, &name));
    if (!names.insert(name).second)
      return CommandError("column selected twice: " + QuoteName(name) + "; accepted: once");
  }
  if (count) selected.clear();  // the names are right, but the columns are not needed
  return selected;
}

std::vector<std::string> ColumnsToRead(const FilterRequest& request, const std::vector<std::string>& selected) {
  std::vector<std::string> wanted, names;
  AddNames(request.where, &wanted);
  wanted.insert(wanted.end(), selected.begin(), selected.end());
  for (const std::string& name : wanted)
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  return names;
}

absl::StatusOr<PreparedFilter> PrepareFilter(const FilterRequest& request, const std::vector<std::string>& selected,
                                             const TableInput& input, const std::shared_ptr<arrow::Table>& table) {
  return Preparation(input, table).Prepare(request, selected);
}

}  // namespace quern::cli
