// SPDX-License-Identifier: Apache-2.0
// Names are checked before columns are read; then the columns determine the spec. For
//
//     quern aggregate --by flag --agg 'sum(price), count(price) filter (where qty>=10)' --filter ok sales.parquet
//
// with flag a string, price a decimal(15, 2) in which nulls were read, qty an integer and ok a bool, the kernel's table
// has four columns,
//
//     0 flag    1 price    2 qty    3 ok            keys: 0    payload: 1, 1, 4    where: 3
//     aggregate keys=utf8 aggs=sum(decimal128:nullable),count(decimal128:nullable):filter
//
// Column 4 is made of each batch, by the kernel of the condition qty>=10 (row_condition.h). Columns 2 and 3 are not
// read by the aggregation's kernel: the condition on 3 chooses the rows of a batch. A bool column alone, as in `filter
// (where ok)`, is read as it is. Equal conditions are made once. The
// result has the columns flag: string, sum(price): decimal(38, 2), count(..): int64. A kernel sees decimals only as
// 128-bit numbers; precision and scale, and the units and zones of times, are restored here, since sums, averages,
// minima and maxima keep them.
//
// Arguments and filters that are expressions become part of the spec, with all others (fused_arguments.h). Keys that
// are expressions, and arguments beside columns of types that no expression has, are computed of each batch by a map,
// whose columns stand between those of the table and those of the conditions.
//
// A CSV column without values has type null. It counts as the first type that its function accepts: its sum is null,
// not an error.
#include "tools/quern/aggregate/aggregate_columns.h"

#include <arrow/api.h>

#include <algorithm>
#include <set>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/pipeline/fused_arguments.h"
#include "runtime/spec/expression.h"
#include "tools/frontend/computed_key.h"
#include "tools/frontend/errors.h"
#include "tools/frontend/expression_text.h"
#include "tools/quern/files/input_columns.h"
#include "tools/quern/files/key_types.h"
#include "tools/quern/files/row_condition.h"
#include "tools/quern/files/row_map.h"

namespace quern::cli {
namespace {

using TypePointer = std::shared_ptr<arrow::DataType>;

// ---- names ----

// All columns and expressions that a request mentions outside of conditions.
std::vector<KeyText*> AllColumns(AggregateRequest* request) {
  std::vector<KeyText*> columns;
  for (KeyText& key : request->keys) columns.push_back(&key);
  for (AggregateText& aggregate : request->aggregates)
    for (KeyText& argument : aggregate.arguments) columns.push_back(&argument);
  return columns;
}

// Keeps one of the condition's readings: that over columns where they are there.
absl::Status ResolveFilter(const TableInput& input, AggregateText* aggregate) {
  absl::Status resolved;
  if (aggregate->filter.has_value()) {
    resolved = ResolveNames(input, &*aggregate->filter);
    if (resolved.ok()) aggregate->computed_filter = nullptr;
  }
  if (aggregate->computed_filter == nullptr) return resolved;
  ExpressionText expression = *aggregate->computed_filter;
  const absl::Status computed = ResolveNames(input, &expression);
  if (!computed.ok()) return resolved.ok() ? computed : resolved;
  aggregate->filter.reset();
  aggregate->computed_filter = std::make_shared<const ExpressionText>(std::move(expression));
  return absl::OkStatus();
}

absl::Status CheckResultNames(const AggregateRequest& request) {
  std::set<std::string> names;
  const auto check = [&names](const std::string& name) {
    if (names.insert(name).second) return absl::OkStatus();
    return CommandError("two result columns of one name: " + name +
                        "; accepted: different names, as by FUNCTION(COLUMN) as NAME");
  };
  for (const KeyText& key : request.keys) QUERN_RETURN_IF_ERROR(check(key.result_name()));
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
  if (IsDecimal(result.id)) {
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
  Preparation(const TableInput& input, const std::shared_ptr<arrow::Table>& table)
      : columns_(input.what(), table), expressions_(&columns_) {}

  absl::Status AddKey(const KeyText& key);
  absl::Status AddAggregate(const AggregateText& text);
  absl::Status AddWhere(const ConditionText& where);
  absl::StatusOr<PreparedAggregate> Finish();

 private:
  absl::Status AddFilter(const WhereText& filter);
  absl::Status AddFilter(const ExpressionText& filter);
  void AddPayload(const ReadColumn& column);
  void Fuse();
  absl::Status FinishPlaces();

  InputColumns columns_;
  ExpressionPreparation expressions_;
  PreparedAggregate prepared_;
  arrow::FieldVector fields_;           // of the keys' results
  std::vector<TypePointer> arguments_;  // the first of each aggregate, decoded; null: it has none
  std::vector<std::string> names_;      // of the aggregates' results
  std::vector<size_t> made_payload_;    // places of the binding's payload that count from the first made column
  std::vector<std::optional<ValueType>> payload_types_;  // in expressions; nullopt: none has it
  size_t num_key_results_ = 0, num_key_columns_ = 0;     // of expressions_: those of keys are the first
};

absl::Status Preparation::AddKey(const KeyText& key) {
  QUERN_ASSIGN_OR_RETURN(const ReadColumn column, expressions_.Read("--by", key, arrow::utf8()));
  prepared_.spec.keys.push_back({.type = column.type, .null_equal = column.type.nullable});
  prepared_.input.keys.push_back(column.type);
  prepared_.input.binding.keys.push_back(column.place);
  fields_.push_back(arrow::field(key.result_name(), DecodedType(column.arrow)));
  num_key_results_ = expressions_.size();
  num_key_columns_ = expressions_.num_columns();
  return absl::OkStatus();
}

void Preparation::AddPayload(const ReadColumn& column) {
  prepared_.input.binding.payload.push_back(column.place);
  payload_types_.push_back(ValueTypeOf(column));
}

absl::Status Preparation::AddAggregate(const AggregateText& text) {
  AggregateSpec aggregate;
  aggregate.function = text.function;
  aggregate.quantile = text.quantile;
  aggregate.separator = text.separator;
  TypePointer first;
  for (const KeyText& argument : text.arguments) {
    QUERN_ASSIGN_OR_RETURN(const ReadColumn column,
                           expressions_.Read("--agg", argument, TypeWithoutValues(RowOf(text.function).accepts)));
    aggregate.arguments.push_back(column.type);
    AddPayload(column);
    if (first == nullptr) first = DecodedType(column.arrow);
  }
  aggregate.filtered = !text.filter_text.empty();
  if (text.filter.has_value()) QUERN_RETURN_IF_ERROR(AddFilter(*text.filter));
  if (text.computed_filter != nullptr) QUERN_RETURN_IF_ERROR(AddFilter(*text.computed_filter));
  prepared_.spec.aggregates.push_back(std::move(aggregate));
  arguments_.push_back(std::move(first));
  names_.push_back(text.name);
  return absl::OkStatus();
}

absl::Status Preparation::AddWhere(const ConditionText& where) {
  QUERN_ASSIGN_OR_RETURN(RowCondition condition, PrepareCondition("--filter", where, &columns_));
  prepared_.input.where = std::make_shared<RowTest>(std::move(condition));
  return absl::OkStatus();
}

absl::Status Preparation::AddFilter(const WhereText& filter) {
  std::vector<int>& payload = prepared_.input.binding.payload;
  if (filter.is_bare && columns_.Find(filter.column.name)->type()->id() == arrow::Type::BOOL) {
    QUERN_ASSIGN_OR_RETURN(const int place, columns_.Add(filter.column.name, arrow::boolean()));
    AddPayload({place, ColumnType{.id = TypeId::kBool, .nullable = true}, arrow::boolean()});
    return absl::OkStatus();
  }
  QUERN_ASSIGN_OR_RETURN(RowCondition condition, PrepareCondition("--agg", filter, &columns_));
  std::vector<std::shared_ptr<RowTest>>& made = prepared_.input.made_columns;
  const auto same = std::find_if(made.begin(), made.end(), [&condition](const std::shared_ptr<RowTest>& test) {
    return test->condition().spec == condition.spec && test->condition().binding.keys == condition.binding.keys;
  });
  made_payload_.push_back(payload.size());
  AddPayload({static_cast<int>(same - made.begin()), ColumnType{.id = TypeId::kBool}, arrow::boolean()});
  if (same == made.end()) made.push_back(std::make_shared<RowTest>(std::move(condition)));
  return absl::OkStatus();
}

absl::Status Preparation::AddFilter(const ExpressionText& filter) {
  KeyText key{.name = filter.shown, .computed = std::make_shared<const ExpressionText>(filter)};
  QUERN_ASSIGN_OR_RETURN(const ReadColumn column, expressions_.Read("--agg", key, arrow::boolean()));
  AddPayload(column);
  if (column.type.id == TypeId::kBool) return absl::OkStatus();
  return CommandError("filter of an aggregate that is no condition: " + filter.shown + " is " +
                      column.arrow->ToString() + "; accepted: a bool");
}

// Where arguments are expressions, they leave the map for the spec; results that are keys, too, stay in the map.
void Preparation::Fuse() {
  std::vector<int>& payload = prepared_.input.binding.payload;
  const auto result_of = [](int place) { return static_cast<size_t>(-1 - place); };
  const auto is_argument_alone = [&](int place) { return place < 0 && result_of(place) >= num_key_results_; };
  if (std::none_of(payload.begin(), payload.end(), is_argument_alone)) return;
  const size_t first_result = static_cast<size_t>(columns_.size()), first_made = first_result + num_key_results_;
  std::vector<Expression> arguments;
  for (size_t i = 0; i < payload.size(); ++i) {
    if (is_argument_alone(payload[i])) {
      arguments.push_back(expressions_.OverTable(result_of(payload[i])));
      continue;
    }
    if (!payload_types_[i].has_value()) return;
    const bool is_made = std::find(made_payload_.begin(), made_payload_.end(), i) != made_payload_.end();
    const size_t place = payload[i] < 0 ? first_result + result_of(payload[i])
                                        : static_cast<size_t>(payload[i]) + (is_made ? first_made : 0);
    Expression column;
    column.type = *payload_types_[i];
    column.column = static_cast<uint32_t>(place);
    arguments.push_back(std::move(column));
  }
  std::optional<FusedAggregation> fused = FuseArguments(prepared_.spec, std::move(arguments));
  if (!fused.has_value()) return;
  prepared_.spec = std::move(fused->spec);
  payload.assign(fused->columns.begin(), fused->columns.end());
  made_payload_.clear();
  expressions_.Truncate(num_key_results_, num_key_columns_);
}

// The kernel's table, behind it the computed columns, behind these the filters' bools.
absl::Status Preparation::FinishPlaces() {
  KernelInput& input = prepared_.input;
  const int num_columns = columns_.size(), num_computed = static_cast<int>(expressions_.size());
  for (const size_t i : made_payload_) input.binding.payload[i] += num_columns + num_computed;
  return FinishInput(columns_, &expressions_, &input);
}

absl::StatusOr<PreparedAggregate> Preparation::Finish() {
  const AggregationSpec& spec = prepared_.spec;
  QUERN_RETURN_IF_ERROR(ValidateSpec(spec));
  Fuse();
  const std::vector<ColumnType> types = AggregateOutputTypes(spec);
  for (size_t i = 0; i < spec.aggregates.size(); ++i) {
    fields_.push_back(
        arrow::field(names_[i], ResultType(spec.aggregates[i], types[spec.keys.size() + i], arguments_[i])));
  }
  for (size_t i = 0; i < fields_.size(); ++i) fields_[i] = fields_[i]->WithNullable(types[i].nullable);
  prepared_.schema = arrow::schema(std::move(fields_));
  prepared_.input.payload = AggregateInputTypes(spec);
  QUERN_RETURN_IF_ERROR(FinishPlaces());
  return std::move(prepared_);
}

}  // namespace

absl::Status ResolveRequest(const TableInput& input, AggregateRequest* request) {
  for (KeyText* column : AllColumns(request)) QUERN_RETURN_IF_ERROR(ResolveColumn(input, column));
  for (const KeyText& key : request->keys) QUERN_RETURN_IF_ERROR(CheckNoConstant("--by", key));
  for (AggregateText& aggregate : request->aggregates) QUERN_RETURN_IF_ERROR(ResolveFilter(input, &aggregate));
  if (request->where.has_value()) QUERN_RETURN_IF_ERROR(ResolveNames(input, &*request->where));
  return CheckResultNames(*request);
}

std::vector<std::string> ColumnsToRead(const AggregateRequest& request, const TableInput& input) {
  std::vector<std::string> wanted, names;
  const auto add = [&wanted](const KeyText& column) {
    if (column.computed != nullptr) AddNames(*column.computed, &wanted);
    else wanted.push_back(column.name);
  };
  for (const KeyText& key : request.keys) add(key);
  for (const AggregateText& aggregate : request.aggregates)
    for (const KeyText& argument : aggregate.arguments) add(argument);
  for (const AggregateText& aggregate : request.aggregates)
    if (aggregate.filter.has_value()) AddNames(*aggregate.filter, &wanted);
    else if (aggregate.computed_filter != nullptr) AddNames(*aggregate.computed_filter, &wanted);
  if (request.where.has_value()) AddNames(*request.where, &wanted);
  for (const std::string& name : wanted)
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  if (names.empty() && !input.column_names().empty()) names.push_back(input.column_names().front());
  return names;
}

absl::StatusOr<PreparedAggregate> PrepareAggregate(const AggregateRequest& request, const TableInput& input,
                                                   const std::shared_ptr<arrow::Table>& table) {
  Preparation preparation(input, table);
  for (const KeyText& key : request.keys) QUERN_RETURN_IF_ERROR(preparation.AddKey(key));
  for (const AggregateText& aggregate : request.aggregates) QUERN_RETURN_IF_ERROR(preparation.AddAggregate(aggregate));
  if (request.where.has_value()) QUERN_RETURN_IF_ERROR(preparation.AddWhere(*request.where));
  return preparation.Finish();
}

}  // namespace quern::cli
