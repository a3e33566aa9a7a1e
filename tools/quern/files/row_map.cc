// SPDX-License-Identifier: Apache-2.0
// The columns of an input determine the types of an expression. For
//
//     quern map --select "price * (1 - discount) as revenue" sales.parquet
//
// with price and discount decimals of 15 digits, 2 of them behind the point, and no nulls read, the spec is
//
//     map in=decimal128(15,2),decimal128(15,2) out=multiply($0,subtract(1:decimal128(1,0),$1))
//
// A batch of up to 64 Ki rows is computed at once, into buffers of just that many rows.
#include "tools/quern/files/row_map.h"

#include <arrow/api.h>
#include <arrow/c/bridge.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "codegen/compiler.h"
#include "codegen/operators.h"
#include "runtime/base/status.h"
#include "runtime/pipeline/fused_arguments.h"
#include "runtime/rows/output_batch.h"
#include "tools/frontend/errors.h"
#include "tools/quern/files/key_types.h"
#include "tools/quern/files/row_condition.h"

namespace quern::cli {
namespace {

// The type's format in the Arrow C data interface; "" for one that has none.
std::string FormatOfType(const arrow::DataType& type) {
  ArrowSchema schema;
  if (!arrow::ExportType(type, &schema).ok()) return "";
  std::string format = schema.format;
  schema.release(&schema);
  return format;
}

absl::StatusOr<std::shared_ptr<arrow::DataType>> TypeOfFormat(const std::string& format) {
  ArrowSchema schema = {};
  schema.format = format.c_str();
  schema.release = [](ArrowSchema* released) { released->release = nullptr; };
  QUERN_ASSIGN_OR_RETURN_ARROW(auto type, arrow::ImportType(&schema), "cannot make a type: " + format);
  return type;
}

}  // namespace

absl::Status ResolveNames(const TableInput& input, ExpressionText* text) {
  return VisitNames(text, [&input](std::string* name) { return ResolveName(input, name); });
}

absl::Status ResolveColumn(const TableInput& input, KeyText* column) {
  const std::vector<std::string>& names = input.column_names();
  const bool is_column = column->may_be_column && std::find(names.begin(), names.end(), column->name) != names.end();
  if (is_column || column->computed == nullptr) {
    column->computed = nullptr;
    QUERN_RETURN_IF_ERROR(CheckColumn(names, input.what(), column->name));
    return CollationByName(column->collation).status();
  }
  ExpressionText expression = *column->computed;
  const absl::Status resolved = ResolveNames(input, &expression);
  if (!resolved.ok()) return column->may_be_column ? CheckColumn(names, input.what(), column->name) : resolved;
  column->computed = std::make_shared<const ExpressionText>(std::move(expression));
  return absl::OkStatus();
}

absl::StatusOr<ReadColumn> ExpressionPreparation::Read(const std::string& option, const KeyText& column,
                                                       const std::shared_ptr<arrow::DataType>& without_values) {
  if (column.computed == nullptr) return columns_->Add(column, without_values);
  QUERN_ASSIGN_OR_RETURN(const size_t result, Add(option, *column.computed, column.result_name()));
  ReadColumn read{-1 - static_cast<int>(result), ColumnTypeOf(type(result)), field(result)->type()};
  QUERN_ASSIGN_OR_RETURN(const Collation collation, CollationByName(column.collation));
  QUERN_RETURN_IF_ERROR(SetCollation(collation, column.name, *read.arrow, &read.type));
  return read;
}

absl::Status FinishInput(const InputColumns& columns, ExpressionPreparation* expressions, KernelInput* input) {
  for (std::vector<int>* places : {&input->binding.keys, &input->binding.payload})
    for (int& place : *places)
      if (place < 0) place = columns.size() - 1 - place;
  input->table = columns.Finish();
  if (expressions->size() == 0) return absl::OkStatus();
  QUERN_ASSIGN_OR_RETURN(RowExpressions finished, expressions->Finish());
  input->map = std::make_shared<RowMap>(std::move(finished));
  return absl::OkStatus();
}

absl::Status ExpressionPreparation::AddColumn(const std::string& name) {
  const auto is_name = [&name](const ExpressionColumn& column) { return column.name == name; };
  if (std::any_of(names_.begin(), names_.end(), is_name)) return absl::OkStatus();
  const auto values = columns_->Find(name);
  const auto type = DecodedType(values->type());
  const std::string text = columns_->Text(name);
  ExpressionColumn column = MakeExpressionColumn(name, text, type->ToString(), FormatOfType(*type),
                                                 KernelType(text, *type), HasNulls(*values));
  const ValueType in_spec = column.TypeInSpec();
  QUERN_ASSIGN_OR_RETURN(const int place, columns_->Add(name, column.has_values ? type : arrow::boolean()));
  expressions_.spec.columns.push_back(in_spec);
  expressions_.binding.keys.push_back(place);
  expressions_.keys.push_back(ColumnTypeOf(in_spec));
  names_.push_back(std::move(column));
  return absl::OkStatus();
}

absl::Status ExpressionPreparation::AddColumns(const ExpressionText& text) {
  std::vector<std::string> mentioned;
  AddNames(text, &mentioned);
  for (const std::string& column : mentioned) QUERN_RETURN_IF_ERROR(AddColumn(column));
  return absl::OkStatus();
}

absl::StatusOr<size_t> ExpressionPreparation::Add(const std::string& option, const ExpressionText& text,
                                                  const std::string& name) {
  QUERN_RETURN_IF_ERROR(AddColumns(text));
  QUERN_ASSIGN_OR_RETURN(Expression expression, TypedExpression(option, text, names_));
  return AddTyped(std::move(expression), name);
}

absl::StatusOr<size_t> ExpressionPreparation::AddTyped(Expression expression, const std::string& name) {
  std::vector<Expression>& results = expressions_.spec.results;
  const auto same = std::find(results.begin(), results.end(), expression);
  if (same != results.end()) return static_cast<size_t>(same - results.begin());
  QUERN_ASSIGN_OR_RETURN(auto type, TypeOfFormat(FormatOf(expression, names_)));
  expressions_.fields.push_back(arrow::field(name, std::move(type), expression.type.nullable));
  results.push_back(std::move(expression));
  return results.size() - 1;
}

absl::StatusOr<ReadColumn> ExpressionPreparation::ReadTyped(Expression expression, const std::string& name) {
  if (expression.kind == ExpressionKind::kColumn) {
    QUERN_ASSIGN_OR_RETURN(auto type, TypeOfFormat(FormatOf(expression, names_)));
    return ReadColumn{expressions_.binding.keys[expression.column], ColumnTypeOf(expression.type), std::move(type)};
  }
  QUERN_ASSIGN_OR_RETURN(const size_t result, AddTyped(std::move(expression), name));
  return ReadColumn{-1 - static_cast<int>(result), ColumnTypeOf(type(result)), field(result)->type()};
}

void ExpressionPreparation::Truncate(size_t results, size_t columns) {
  expressions_.spec.results.resize(results);
  expressions_.fields.resize(results);
  expressions_.spec.columns.resize(columns);
  expressions_.binding.keys.resize(columns);
  expressions_.keys.resize(columns);
  names_.resize(columns);
}

Expression ExpressionPreparation::OverTable(size_t result) const {
  Expression expression = expressions_.spec.results[result];
  VisitColumns(&expression, [this](Expression* column) {
    column->column = static_cast<uint32_t>(expressions_.binding.keys[column->column]);
  });
  return expression;
}

std::optional<ValueType> ValueTypeOf(const ReadColumn& column) {
  const ExpressionColumn named =
      MakeExpressionColumn("", "", "", FormatOfType(*column.arrow), column.type, column.type.nullable);
  if (!named.type.has_value()) return std::nullopt;
  ValueType type = *named.type;
  type.collation = column.type.collation;
  return ColumnTypeOf(type) == column.type ? std::optional(type) : std::nullopt;
}

absl::StatusOr<std::array<ReadColumn, 2>> ReadSides(const std::string& option, const KeyText& left,
                                                    ExpressionPreparation* left_side, const KeyText& right,
                                                    ExpressionPreparation* right_side) {
  const auto text_of = [](const KeyText& side) {
    if (side.computed != nullptr) return *side.computed;
    return ExpressionText{.form = ExpressionText::Form::kColumn, .text = side.name, .shown = QuoteName(side.name)};
  };
  const ExpressionText left_text = text_of(left), right_text = text_of(right);
  QUERN_RETURN_IF_ERROR(left_side->AddColumns(left_text));
  QUERN_RETURN_IF_ERROR(right_side->AddColumns(right_text));
  QUERN_ASSIGN_OR_RETURN(TypedSides sides, TypedComparison(option, left_text, left_side->arguments(), right_text,
                                                           right_side->arguments()));
  QUERN_ASSIGN_OR_RETURN(ReadColumn on_left, left_side->ReadTyped(std::move(sides.left), left.name));
  QUERN_ASSIGN_OR_RETURN(ReadColumn on_right, right_side->ReadTyped(std::move(sides.right), right.name));
  return std::array<ReadColumn, 2>{std::move(on_left), std::move(on_right)};
}

absl::StatusOr<RowExpressions> ExpressionPreparation::Finish() {
  if (expressions_.spec.results.empty()) {  // a map has at least one
    QUERN_ASSIGN_OR_RETURN(Expression nothing, MakeConstant(Literal{.number = 1}, {.id = TypeId::kBool}));
    expressions_.spec.results.push_back(std::move(nothing));
    expressions_.fields.push_back(arrow::field("", arrow::boolean(), false));
  }
  QUERN_RETURN_IF_ERROR(ValidateSpec(expressions_.spec));
  return std::move(expressions_);
}

RowMap::RowMap(RowExpressions expressions)
    : expressions_(std::move(expressions)), schema_(arrow::schema(expressions_.fields)) {}

absl::Status RowMap::Compile(CompileOptions options) {
  options.overrides = {};
  QUERN_ASSIGN_OR_RETURN(const CompiledKernel compiled, quern::Compile(expressions_.spec, options));
  Use(compiled.kernel);
  return absl::OkStatus();
}

void RowMap::Use(const std::shared_ptr<const Kernel>& kernel) { mapper_ = MakeRowMapper(kernel); }

absl::StatusOr<RecordBatchPointer> RowMap::Compute(const arrow::RecordBatch& batch,
                                                   const std::shared_ptr<MemoryBudget>& budget,
                                                   std::optional<uint64_t> first_row) const {
  QUERN_ASSIGN_OR_RETURN(BatchView view, ViewOf(batch, expressions_.binding, expressions_.keys, {}));
  OutputBatch out(MapOutputTypes(expressions_.spec), std::max<uint64_t>(view.num_rows, 1), budget);
  MapReader reader(mapper_, budget);
  QUERN_RETURN_IF_ERROR(reader.SetInput(std::move(view), first_row));
  QUERN_ASSIGN_OR_RETURN(const bool has_more, reader.Next(&out));
  if (has_more)
    return CommandError("computed strings of 2 GiB and more in " + std::to_string(batch.num_rows()) +
                        " rows; accepted: fewer, or large ones, as x::large_utf8");
  return TakeRows(schema_, &out);
}

}  // namespace quern::cli
