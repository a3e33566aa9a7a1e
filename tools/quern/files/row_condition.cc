// SPDX-License-Identifier: Apache-2.0
// The columns of an input determine the spec of a condition. For
//
//     quern sort --by id --filter "name collate utf8mb4_general_ci = 'ada' and due < shipped" sales.parquet
//
// with name a string in which nulls were read and due and shipped dates, it is
//
//     filter utf8(utf8mb4_general_ci):nullable = 'ada' and date32 < date32
//
// and its kernel reads three columns of the table that the operator runs over. Two columns that are compared are first
// cast to one type, like keys of joins (key_types.h). The kernel tests a batch just before the operator reads it: its
// answer is a selection of the batch's rows, or one more column of the batch for an aggregate with a filter.
#include "tools/quern/files/row_condition.h"

#include <arrow/api.h>
#include <arrow/c/bridge.h>
#include <arrow/util/bit_util.h>

#include <algorithm>
#include <utility>

#include "codegen/compiler.h"
#include "codegen/operators.h"
#include "runtime/base/status.h"
#include "tools/frontend/errors.h"
#include "tools/frontend/list_parser.h"
#include "tools/frontend/where_leaf.h"
#include "tools/quern/files/batches.h"
#include "tools/quern/files/key_types.h"
#include "tools/quern/files/select_rows.h"

namespace quern::cli {
namespace {

// The type's format in the Arrow C data interface; "" for one that has none, which no kernel reads.
std::string FormatOf(const arrow::DataType& type) {
  ArrowSchema schema;
  if (!arrow::ExportType(type, &schema).ok()) return "";
  std::string format = schema.format;
  schema.release(&schema);
  return format;
}

// Builds a RowCondition leaf by leaf.
class Conversion {
 public:
  Conversion(const std::string& option, InputColumns* columns) : option_(option), columns_(columns) {}

  absl::Status Convert(const WhereText& where);
  absl::Status Compute(const std::vector<ExpressionText>& expressions);
  RowCondition Take() { return std::move(condition_); }

 private:
  absl::StatusOr<Predicate> Condition(const WhereText& where);
  absl::StatusOr<Predicate> Leaf(const WhereText& where);
  absl::StatusOr<Predicate> LeafWithoutValues(const WhereText& where);
  absl::StatusOr<Predicate> Columns(const WhereText& where);
  absl::StatusOr<ColumnType> AddKey(const std::string& name, const std::shared_ptr<arrow::DataType>& type);

  const std::string& option_;
  InputColumns* columns_;
  RowCondition condition_;
};

absl::StatusOr<ColumnType> Conversion::AddKey(const std::string& name, const std::shared_ptr<arrow::DataType>& type) {
  QUERN_ASSIGN_OR_RETURN(ColumnType read, KernelType(columns_->Text(name), *type));
  QUERN_ASSIGN_OR_RETURN(const int place, columns_->Add(name, type));
  read.nullable = HasNulls(*columns_->Find(name));
  condition_.binding.keys.push_back(place);
  condition_.keys.push_back(read);
  return read;
}

absl::StatusOr<Predicate> Conversion::Condition(const WhereText& where) {
  if (where.children.empty()) return where.kind == PredicateKind::kCompareColumns ? Columns(where) : Leaf(where);
  Predicate whole{.kind = where.kind};
  for (const WhereText& child : where.children) {
    QUERN_ASSIGN_OR_RETURN(Predicate part, Condition(child));
    whole.children.push_back(std::move(part));
  }
  return whole;
}

// Null everywhere, so that no comparison is true and none is false.
absl::StatusOr<Predicate> Conversion::LeafWithoutValues(const WhereText& where) {
  QUERN_ASSIGN_OR_RETURN(const ColumnType type, AddKey(where.column.name, arrow::boolean()));
  if (where.kind == PredicateKind::kIsNull)
    return Predicate{.kind = where.kind, .column = type, .negated = where.negated};
  return Predicate{
      .kind = PredicateKind::kCompare, .column = type, .op = Comparison::kEqual, .values = {{.number = 1}}};
}

absl::StatusOr<Predicate> Conversion::Leaf(const WhereText& where) {
  const std::string& name = where.column.name;
  const auto values = columns_->Find(name);
  if (values->type()->id() == arrow::Type::NA) return LeafWithoutValues(where);
  const auto decoded = DecodedType(values->type());
  WhereColumn column{option_, columns_->Text(name), decoded->ToString(), FormatOf(*decoded), {}};
  QUERN_ASSIGN_OR_RETURN(column.type, AddKey(name, values->type()));
  QUERN_ASSIGN_OR_RETURN(const Collation collation, CollationByName(where.column.collation));
  QUERN_RETURN_IF_ERROR(SetCollation(collation, column.text, *values->type(), &column.type));
  condition_.keys.back() = column.type;
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

absl::StatusOr<Predicate> Conversion::Columns(const WhereText& where) {
  const auto left = columns_->Find(where.column.name), right = columns_->Find(where.other.name);
  const std::string text = columns_->Text(where.column.name);
  std::shared_ptr<arrow::DataType> type = CommonKeyType(left->type(), right->type());
  if (type == nullptr) {
    return CommandError("columns of types that do not compare: " + text + " is " + left->type()->ToString() + ", " +
                        columns_->Text(where.other.name) + " is " + right->type()->ToString() +
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
  std::vector<ColumnType>& keys = condition_.keys;
  keys[keys.size() - 2] = leaf.column;
  keys.back() = leaf.other;
  return leaf;
}

absl::Status Conversion::Convert(const WhereText& where) {
  FilterSpec spec;
  QUERN_ASSIGN_OR_RETURN(spec.where, Condition(where));
  QUERN_RETURN_IF_ERROR(ValidateSpec(spec));
  condition_.spec = std::move(spec);
  return absl::OkStatus();
}

absl::Status Conversion::Compute(const std::vector<ExpressionText>& expressions) {
  ExpressionPreparation preparation(columns_);
  for (const ExpressionText& expression : expressions) {
    QUERN_ASSIGN_OR_RETURN(const size_t result, preparation.Add(option_, expression, expression.shown));
    if (preparation.type(result).id == TypeId::kBool) continue;
    return CommandError("bad condition in " + option_ + ": " + expression.shown + " is " +
                        preparation.field(result)->type()->ToString() +
                        "; accepted: a comparison, or an expression that is true or false");
  }
  preparation.Truncate(0, preparation.num_columns());
  QUERN_RETURN_IF_ERROR(preparation.Add(option_, AllOf(expressions), "").status());
  QUERN_ASSIGN_OR_RETURN(RowExpressions finished, preparation.Finish());
  condition_.expressions = std::make_shared<RowMap>(std::move(finished));
  return absl::OkStatus();
}

}  // namespace

absl::Status ResolveName(const TableInput& input, std::string* name) {
  return ResolveName(input.what(), input.column_names(), name);
}

absl::Status ResolveName(const std::string& what, const std::vector<std::string>& names, std::string* name) {
  if (std::find(names.begin(), names.end(), *name) != names.end()) return CheckColumn(names, what, *name);
  std::vector<std::string> alike;
  for (const std::string& column : names)
    if (LowerCase(column) == LowerCase(*name)) alike.push_back(column);
  if (alike.empty()) return CheckColumn(names, what, *name);
  if (alike.size() > 1) {
    return CommandError("column of " + what + " that is meant is not clear: " + QuoteName(*name) +
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

absl::Status ResolveNames(const TableInput& input, ConditionText* condition) {
  for (ConditionTerm& term : condition->terms) {
    absl::Status compared = absl::OkStatus();
    if (term.comparison.has_value()) {
      compared = ResolveNames(input, &*term.comparison);
      if (compared.ok()) term.expression.reset();
    }
    if (!term.expression.has_value()) {
      QUERN_RETURN_IF_ERROR(compared);
      continue;
    }
    const absl::Status computed = ResolveNames(input, &*term.expression);
    if (!computed.ok()) return compared.ok() ? computed : compared;
    term.comparison.reset();
  }
  return absl::OkStatus();
}

absl::StatusOr<RowCondition> PrepareCondition(const std::string& option, const WhereText& where,
                                              InputColumns* columns) {
  Conversion conversion(option, columns);
  QUERN_RETURN_IF_ERROR(conversion.Convert(where));
  return conversion.Take();
}

absl::StatusOr<RowCondition> PrepareCondition(const std::string& option, const ConditionText& condition,
                                              InputColumns* columns) {
  WhereText comparisons{.kind = PredicateKind::kAnd};
  std::vector<ExpressionText> expressions;
  for (const ConditionTerm& term : condition.terms) {
    if (term.expression.has_value()) expressions.push_back(*term.expression);
    else AddPart(*term.comparison, &comparisons);
  }
  Conversion conversion(option, columns);
  if (comparisons.children.size() == 1) comparisons = WhereText(comparisons.children[0]);
  if (expressions.size() < condition.terms.size()) QUERN_RETURN_IF_ERROR(conversion.Convert(comparisons));
  if (!expressions.empty()) QUERN_RETURN_IF_ERROR(conversion.Compute(expressions));
  return conversion.Take();
}

std::vector<KernelSpec> RowCondition::specs() const {
  std::vector<KernelSpec> specs;
  if (spec.has_value()) specs.emplace_back(*spec);
  if (expressions != nullptr) specs.emplace_back(expressions->expressions().spec);
  return specs;
}

std::vector<int> RowCondition::columns() const {
  std::vector<int> places = binding.keys;
  if (expressions == nullptr) return places;
  const std::vector<int>& computed = expressions->expressions().binding.keys;
  places.insert(places.end(), computed.begin(), computed.end());
  return places;
}

absl::Status RowTest::Compile(CompileOptions options) {
  options.overrides = {};
  if (condition_.expressions != nullptr) QUERN_RETURN_IF_ERROR(condition_.expressions->Compile(options));
  if (!condition_.spec.has_value()) return absl::OkStatus();
  QUERN_ASSIGN_OR_RETURN(const CompiledKernel compiled, quern::Compile(*condition_.spec, options));
  filter_ = MakeRowFilter(compiled.kernel);
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> RowTest::Select(const arrow::RecordBatch& batch, uint32_t* rows) const {
  if (condition_.expressions == nullptr) {
    QUERN_ASSIGN_OR_RETURN(const BatchView view, ViewOf(batch, condition_.binding, condition_.keys, {}));
    return filter_->Select(view, rows);
  }
  QUERN_ASSIGN_OR_RETURN(const auto bits, Bits(batch));
  uint64_t n = 0;
  for (int64_t row = 0; row < bits->length(); ++row)
    if (static_cast<const arrow::BooleanArray&>(*bits).Value(row)) rows[n++] = static_cast<uint32_t>(row);
  return n;
}

absl::StatusOr<uint64_t> RowTest::Count(const arrow::RecordBatch& batch) const {
  QUERN_ASSIGN_OR_RETURN(const auto bits, Bits(batch));
  return static_cast<uint64_t>(static_cast<const arrow::BooleanArray&>(*bits).true_count());
}

absl::StatusOr<RecordBatchPointer> RowTest::Rows(const RecordBatchPointer& batch,
                                                 const std::vector<int>& columns) const {
  QUERN_ASSIGN_OR_RETURN(const auto bits, Bits(*batch));
  const bool all_pass = static_cast<const arrow::BooleanArray&>(*bits).true_count() == batch->num_rows();
  return all_pass ? batch : SelectRows(batch, bits, columns);
}

absl::StatusOr<std::shared_ptr<arrow::Array>> RowTest::Bits(const arrow::RecordBatch& batch) const {
  std::shared_ptr<arrow::Array> compared;
  if (filter_ != nullptr) {
    QUERN_ASSIGN_OR_RETURN(compared, Compared(batch));
  }
  if (condition_.expressions == nullptr) return compared;
  return Computed(batch, compared);
}

absl::StatusOr<std::shared_ptr<arrow::Array>> RowTest::Compared(const arrow::RecordBatch& batch) const {
  QUERN_ASSIGN_OR_RETURN(const BatchView view, ViewOf(batch, condition_.binding, condition_.keys, {}));
  QUERN_ASSIGN_OR_RETURN_ARROW(std::shared_ptr<arrow::Buffer> bits, arrow::AllocateBuffer((batch.num_rows() + 7) / 8),
                               "cannot take memory for a bitmap: " + std::to_string(batch.num_rows()) + " rows");
  QUERN_RETURN_IF_ERROR(filter_->Mask(view, bits->mutable_data()).status());
  return std::make_shared<arrow::BooleanArray>(batch.num_rows(), std::move(bits));
}

// Of the rows for which the comparisons hold, copied: no other one may fail.
absl::StatusOr<std::shared_ptr<arrow::Array>> RowTest::Computed(const arrow::RecordBatch& batch,
                                                                const std::shared_ptr<arrow::Array>& compared) const {
  const auto whole = arrow::RecordBatch::Make(batch.schema(), batch.num_rows(), batch.columns());
  RecordBatchPointer taken = whole;
  if (compared != nullptr) {
    QUERN_ASSIGN_OR_RETURN(taken, SelectRows(whole, compared, condition_.expressions->expressions().binding.keys));
  }
  QUERN_ASSIGN_OR_RETURN(const RecordBatchPointer truths,
                         condition_.expressions->Compute(*taken, nullptr, std::nullopt));
  QUERN_ASSIGN_OR_RETURN_ARROW(std::shared_ptr<arrow::Buffer> bits, arrow::AllocateBitmap(batch.num_rows()),
                               "cannot take memory for a bitmap: " + std::to_string(batch.num_rows()) + " rows");
  const auto& truth = static_cast<const arrow::BooleanArray&>(*truths->column(0));
  int64_t next = 0;  // row of it
  for (int64_t row = 0; row < batch.num_rows(); ++row) {
    const bool may_hold = compared == nullptr || static_cast<const arrow::BooleanArray&>(*compared).Value(row);
    const bool holds = may_hold && truth.IsValid(next) && truth.Value(next);
    next += may_hold ? 1 : 0;
    arrow::bit_util::SetBitTo(bits->mutable_data(), row, holds);
  }
  return std::make_shared<arrow::BooleanArray>(batch.num_rows(), std::move(bits));
}

}  // namespace quern::cli
