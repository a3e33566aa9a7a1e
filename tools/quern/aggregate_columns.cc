// SPDX-License-Identifier: Apache-2.0
// Names are checked before columns are read; then the columns say what the spec is. For
//
//     quern aggregate --by flag --agg 'sum(price), count(price) filter (where qty>=10)' --filter ok sales.parquet
//
// with flag a string, price a decimal(15, 2) in which nulls were read, qty an integer and ok a bool, the kernel's table has four columns,
//
//     0 flag    1 price    2 whether qty>=10    3 ok            keys: 0    payload: 1, 1, 2    filter: 3
//     aggregate keys=utf8 aggs=sum(decimal128:nullable),count(decimal128:nullable):filter
//
// of which 2 was made here. Column 3 is no column of the kernel's: its true rows become the selection of each batch. The result has the
// columns flag: string, sum(price): decimal(38, 2), count(..): int64. A kernel knows of decimals that they have 128 bits; precision and
// scale, the units and zones of times are put back here, since sums, averages, least and largest values keep them.
//
// A CSV column without values has type null. It counts as one of the first type that its function takes: its sum is null, not an error.
#include "tools/quern/aggregate_columns.h"

#include <arrow/api.h>
#include <arrow/compute/api.h>

#include <algorithm>
#include <set>
#include <utility>

#include "runtime/status.h"
#include "tools/quern/errors.h"
#include "tools/quern/input_columns.h"
#include "tools/quern/key_types.h"
#include "tools/quern/row_condition.h"

namespace quern::cli {
namespace {

using TypePointer = std::shared_ptr<arrow::DataType>;

constexpr int kMaxDecimalDigits = 38;  // of decimal128

// ---- names ----

// All columns that a request speaks of.
std::vector<KeyText> AllColumns(const AggregateRequest& request) {
  std::vector<KeyText> columns = request.keys;
  for (const AggregateText& aggregate : request.aggregates) {
    columns.insert(columns.end(), aggregate.arguments.begin(), aggregate.arguments.end());
    if (aggregate.filter.has_value()) columns.push_back({aggregate.filter->column, ""});
  }
  for (const ConditionText& filter : request.filters) columns.push_back({filter.column, ""});
  return columns;
}

absl::Status CheckResultNames(const AggregateRequest& request) {
  std::set<std::string> names;
  const auto check = [&names](const std::string& name) {
    if (names.insert(name).second) return absl::OkStatus();
    return CommandError("two result columns of one name: " + name + "; accepted: different names, as by FUNCTION(COLUMN) as NAME");
  };
  for (const KeyText& key : request.keys) QUERN_RETURN_IF_ERROR(check(key.name));
  for (const AggregateText& aggregate : request.aggregates) QUERN_RETURN_IF_ERROR(check(aggregate.name));
  return absl::OkStatus();
}

// ---- types ----

TypePointer TypeWithoutValues(Accepts accepts) {
  switch (accepts) {
    case Accepts::kNumbers:
    case Accepts::kPlainNumbers:
    case Accepts::kIntegers: return arrow::int64();
    case Accepts::kBooleans: return arrow::boolean();
    case Accepts::kAnything:
    case Accepts::kTexts: return arrow::utf8();
  }
  return arrow::utf8();
}

TypePointer SumType(const ColumnType& result, const TypePointer& argument) {
  if (result.id == TypeId::kDecimal128) {
    return arrow::decimal128(kMaxDecimalDigits, static_cast<const arrow::DecimalType&>(*argument).scale());
  }
  if (result.id == TypeId::kF64) return arrow::float64();
  return result.id == TypeId::kU64 ? arrow::uint64() : arrow::int64();
}

// `argument`: the first one's type, decoded.
TypePointer ResultType(const AggregateSpec& aggregate, const ColumnType& result, const TypePointer& argument) {
  switch (RowOf(aggregate.function).result) {
    case ResultRule::kSumOf:
    case ResultRule::kAverageOf: return SumType(result, argument);
    case ResultRule::kSame: return argument;
    case ResultRule::kDecimal: return arrow::decimal128(kMaxDecimalDigits, 0);
    case ResultRule::kDouble: return arrow::float64();
    case ResultRule::kCount:
    case ResultRule::kOfHost: return arrow::int64();
  }
  return arrow::int64();
}

// ---- preparing ----

// Builds a PreparedAggregate column by column.
class Preparation {
 public:
  Preparation(const TableInput& input, const std::shared_ptr<arrow::Table>& table) : columns_(input.what(), table) {
    prepared_.spec.op = Operator::kAggregate;
  }

  absl::Status AddKey(const KeyText& key);
  absl::Status AddAggregate(const AggregateText& text);
  absl::Status AddFilters(const std::vector<ConditionText>& filters);
  absl::StatusOr<PreparedAggregate> Finish();

 private:
  absl::StatusOr<ColumnType> TypeOf(const KeyText& text, const TypePointer& without_values, TypePointer* type, int* place);
  absl::StatusOr<int> AddCondition(const ConditionText& condition);

  InputColumns columns_;
  PreparedAggregate prepared_;
  arrow::FieldVector fields_;           // of the keys' results
  std::vector<TypePointer> arguments_;  // the first of each aggregate, decoded; null: it has none
  std::vector<std::string> names_;      // of the aggregates' results
};

// The type that the kernel reads a column by, and its place in the table.
absl::StatusOr<ColumnType> Preparation::TypeOf(const KeyText& text, const TypePointer& without_values, TypePointer* type, int* place) {
  const auto column = columns_.Find(text.name);
  *type = column->type()->id() == arrow::Type::NA ? without_values : column->type();
  QUERN_ASSIGN_OR_RETURN(ColumnType kernel_type, KernelType(columns_.Text(text.name), **type));
  QUERN_ASSIGN_OR_RETURN(const Collation collation, CollationByName(text.collation));
  QUERN_RETURN_IF_ERROR(SetCollation(collation, columns_.Text(text.name), *column->type(), &kernel_type));
  kernel_type.nullable = HasNulls(*column);
  QUERN_ASSIGN_OR_RETURN(*place, columns_.Add(text.name, *type));
  return kernel_type;
}

absl::Status Preparation::AddKey(const KeyText& key) {
  TypePointer type;
  int place = 0;
  QUERN_ASSIGN_OR_RETURN(const ColumnType kernel_type, TypeOf(key, arrow::utf8(), &type, &place));
  prepared_.spec.keys.push_back({.type = kernel_type, .null_equal = kernel_type.nullable});
  prepared_.input.keys.push_back(kernel_type);
  prepared_.input.binding.keys.push_back(place);
  fields_.push_back(arrow::field(key.name, DecodedType(type)));
  return absl::OkStatus();
}

absl::StatusOr<int> Preparation::AddCondition(const ConditionText& condition) {
  const auto column = columns_.Find(condition.column);
  QUERN_ASSIGN_OR_RETURN(auto rows, RowsThatMeet(condition, columns_.Text(condition.column), column));
  if (!condition.op.has_value()) return columns_.Add(condition.column, arrow::boolean());
  return columns_.AddMade(std::move(rows));
}

absl::Status Preparation::AddAggregate(const AggregateText& text) {
  AggregateSpec aggregate;
  aggregate.function = text.function;
  aggregate.quantile = text.quantile;
  aggregate.separator = text.separator;
  TypePointer first;
  for (const KeyText& argument : text.arguments) {
    TypePointer type;
    int place = 0;
    QUERN_ASSIGN_OR_RETURN(const ColumnType kernel_type, TypeOf(argument, TypeWithoutValues(RowOf(text.function).accepts), &type, &place));
    aggregate.arguments.push_back(kernel_type);
    prepared_.input.binding.payload.push_back(place);
    if (first == nullptr) first = DecodedType(type);
  }
  if (text.filter.has_value()) {
    QUERN_ASSIGN_OR_RETURN(const int place, AddCondition(*text.filter));
    aggregate.filtered = true;
    prepared_.input.binding.payload.push_back(place);
  }
  prepared_.spec.aggregates.push_back(std::move(aggregate));
  arguments_.push_back(std::move(first));
  names_.push_back(text.name);
  return absl::OkStatus();
}

absl::Status Preparation::AddFilters(const std::vector<ConditionText>& filters) {
  arrow::Datum all;
  for (const ConditionText& filter : filters) {
    QUERN_ASSIGN_OR_RETURN(const auto rows, RowsThatMeet(filter, columns_.Text(filter.column), columns_.Find(filter.column)));
    if (!all.is_value()) {
      all = rows;
      continue;
    }
    QUERN_ASSIGN_OR_RETURN_ARROW(all, arrow::compute::CallFunction("and_kleene", {all, rows}),
                                 "cannot put together filters: " + std::to_string(filters.size()));
  }
  if (all.is_value()) prepared_.filter = columns_.AddMade(all.chunked_array());
  return absl::OkStatus();
}

absl::StatusOr<PreparedAggregate> Preparation::Finish() {
  const KernelSpec& spec = prepared_.spec;
  QUERN_RETURN_IF_ERROR(ValidateSpec(spec));
  const std::vector<ColumnType> types = AggregateOutputTypes(spec);
  for (size_t i = 0; i < spec.aggregates.size(); ++i) {
    fields_.push_back(arrow::field(names_[i], ResultType(spec.aggregates[i], types[spec.keys.size() + i], arguments_[i])));
  }
  for (size_t i = 0; i < fields_.size(); ++i) fields_[i] = fields_[i]->WithNullable(types[i].nullable);
  prepared_.schema = arrow::schema(std::move(fields_));
  prepared_.input.payload = AggregateInputTypes(spec.aggregates);
  prepared_.input.table = columns_.Finish();
  return std::move(prepared_);
}

}  // namespace

absl::Status CheckRequest(const AggregateRequest& request, const TableInput& input) {
  for (const KeyText& column : AllColumns(request)) {
    QUERN_RETURN_IF_ERROR(CheckColumn(input.column_names(), input.what(), column.name));
    QUERN_RETURN_IF_ERROR(CollationByName(column.collation).status());
  }
  return CheckResultNames(request);
}

std::vector<std::string> ColumnsToRead(const AggregateRequest& request, const TableInput& input) {
  std::vector<std::string> names;
  for (const KeyText& column : AllColumns(request)) {
    if (std::find(names.begin(), names.end(), column.name) == names.end()) names.push_back(column.name);
  }
  if (names.empty()) names.push_back(input.column_names().front());
  return names;
}

absl::StatusOr<PreparedAggregate> PrepareAggregate(const AggregateRequest& request, const TableInput& input,
                                                   const std::shared_ptr<arrow::Table>& table) {
  Preparation preparation(input, table);
  for (const KeyText& key : request.keys) QUERN_RETURN_IF_ERROR(preparation.AddKey(key));
  for (const AggregateText& aggregate : request.aggregates) QUERN_RETURN_IF_ERROR(preparation.AddAggregate(aggregate));
  QUERN_RETURN_IF_ERROR(preparation.AddFilters(request.filters));
  return preparation.Finish();
}

}  // namespace quern::cli
