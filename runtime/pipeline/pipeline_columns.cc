// SPDX-License-Identifier: Apache-2.0
#include "runtime/pipeline/pipeline_columns.h"

#include <algorithm>

#include "runtime/base/messages.h"
#include "runtime/base/status.h"
#include "runtime/spec/spec_text.h"

namespace quern {
namespace {

bool IsDecimalWithDigits(std::string_view text) {
  return text.starts_with("decimal") && text.find('(') != std::string_view::npos;
}

std::string ShowType(const ColumnType& type) { return PrintType(type) + (type.nullable ? ":nullable" : ""); }

// Whether a column of the type may be read as one of `wanted`. A collation is the reader's. Row ids are u64.
bool Fits(ColumnType type, const ColumnType& wanted) {
  if (type.nullable && !wanted.nullable) return false;
  if (type.id == TypeId::kRowId) type.id = TypeId::kU64;
  type.nullable = wanted.nullable;
  type.collation = wanted.collation;
  return type == wanted;
}

// The same, and whether decimals of known digits and scale have those of `wanted`, or fewer digits.
bool Fits(const PipelineColumn& column, const PipelineColumn& wanted) {
  if (!Fits(column.type, wanted.type)) return false;
  return column.digits == 0 || wanted.digits == 0 || (column.digits <= wanted.digits && column.scale == wanted.scale);
}

std::vector<PipelineColumn> ColumnsOf(const std::vector<ValueType>& types) {
  std::vector<PipelineColumn> columns;
  for (const ValueType& type : types) columns.push_back(PipelineColumnOf(type));
  return columns;
}

std::vector<ColumnType> TypesOf(const std::vector<KeySpec>& keys) {
  std::vector<ColumnType> types;
  for (const KeySpec& key : keys) types.push_back(key.type);
  return types;
}

std::vector<ColumnType> ProbePayload(const JoinSpec& spec) {
  std::vector<ColumnType> types = spec.probe;
  for (const ResidualSpec& residual : spec.residual) types.push_back(residual.type);
  return types;
}

// The columns behind a probe. Its payload comes first, with the digits that it has.
std::vector<PipelineColumn> ColumnsBehind(const JoinSpec& join, const std::vector<uint32_t>& payload,
                                          const std::vector<PipelineColumn>& before) {
  std::vector<PipelineColumn> columns = PipelineColumnsOf(JoinOutputTypes(join));
  for (size_t i = 0; i < std::min(join.probe.size(), columns.size()); ++i) {
    if (columns[i].type.id == TypeId::kRowId) continue;  // a number, whatever column stands for it
    columns[i].digits = before[payload[i]].digits;
    columns[i].scale = before[payload[i]].scale;
  }
  return columns;
}

}  // namespace

std::vector<PipelineColumn> PipelineColumnsOf(const std::vector<ColumnType>& types) {
  std::vector<PipelineColumn> columns;
  for (const ColumnType& type : types) columns.push_back({type});
  return columns;
}

PipelineColumn PipelineColumnOf(const ValueType& type) { return {ColumnTypeOf(type), type.digits, type.scale}; }

std::optional<ValueType> ValueTypeOf(const PipelineColumn& column) {
  const ColumnType& type = column.type;
  if (type.is_dictionary && !IsStringType(type.id)) return std::nullopt;
  if (IsDecimal(type.id) && column.digits == 0) return std::nullopt;
  const ValueType value = {.id = type.id,
                           .digits = column.digits,
                           .scale = column.scale,
                           .nullable = type.nullable,
                           .is_dictionary = type.is_dictionary,
                           .index = type.is_dictionary ? type.index : ValueType().index,
                           .collation = type.collation};
  return CheckValueColumns({&value, 1}).ok() ? std::optional(value) : std::nullopt;
}

absl::StatusOr<std::vector<PipelineColumn>> ParsePipelineColumns(std::string_view text) {
  std::vector<PipelineColumn> columns;
  if (text.empty()) return columns;
  for (const std::string_view column : Split(text, ',')) {
    if (IsDecimalWithDigits(column)) {
      QUERN_ASSIGN_OR_RETURN(const ValueType type, ParseValueType(column));
      columns.push_back(PipelineColumnOf(type));
      continue;
    }
    QUERN_ASSIGN_OR_RETURN(const Item item, ParseItem(column, Role::kPayload));
    if (item.key.type.id == TypeId::kRowId) return Wrong("type of a pipeline's column", column, "types of columns");
    columns.push_back({item.key.type});
  }
  return columns;
}

std::string PrintPipelineColumn(const PipelineColumn& column) {
  if (column.digits == 0) return ShowType(column.type);
  return PrintValueType({column.type.id, column.digits, column.scale, column.type.nullable});
}

absl::Status CheckColumns(const std::vector<uint32_t>& numbers, const std::vector<PipelineColumn>& wanted,
                          const std::vector<PipelineColumn>& columns, const std::string& what) {
  if (numbers.size() != wanted.size())
    return Wrong("number of " + what, std::to_string(numbers.size()), std::to_string(wanted.size()));
  for (size_t i = 0; i < numbers.size(); ++i) {
    const std::string name = what + "[" + std::to_string(i) + "]";
    if (numbers[i] >= columns.size()) {
      return Wrong(name, "column " + std::to_string(numbers[i]),
                   columns.empty() ? "none" : "0 to " + std::to_string(columns.size() - 1));
    }
    if (wanted[i].type.id != TypeId::kRowId && !Fits(columns[numbers[i]], wanted[i]))
      return Wrong(name, "column " + std::to_string(numbers[i]) + " of " + PrintPipelineColumn(columns[numbers[i]]),
                   PrintPipelineColumn(wanted[i]));
  }
  return absl::OkStatus();
}

absl::Status CheckEndColumns(const StepColumns& read, const std::vector<ColumnType>& keys,
                             const std::vector<ColumnType>& payload, const std::vector<ValueType>& values,
                             const std::vector<PipelineColumn>& columns, const std::string& what) {
  QUERN_RETURN_IF_ERROR(CheckColumns(read.keys, PipelineColumnsOf(keys), columns, "keys of the " + what));
  return CheckColumns(read.payload, values.empty() ? PipelineColumnsOf(payload) : ColumnsOf(values), columns,
                      "payload of the " + what);
}

absl::Status TakeTypes(const std::vector<uint32_t>& numbers, const std::vector<PipelineColumn>& columns,
                       const std::string& what, std::vector<ColumnType>* taken) {
  // Of a row id all that is checked is that the column is there.
  PipelineColumn any;
  any.type.id = TypeId::kRowId;
  QUERN_RETURN_IF_ERROR(CheckColumns(numbers, std::vector<PipelineColumn>(numbers.size(), any), columns, what));
  for (const uint32_t number : numbers) taken->push_back(columns[number].type);
  return absl::OkStatus();
}

absl::Status PassStep(const StepTypes& types, const StepColumns& read, size_t i, std::vector<PipelineColumn>* columns) {
  const std::string of = " of step " + std::to_string(i);
  if (types.filter != nullptr)
    return CheckColumns(read.keys, PipelineColumnsOf(*types.filter), *columns, "columns" + of);
  if (types.map != nullptr) {
    QUERN_RETURN_IF_ERROR(CheckColumns(read.keys, ColumnsOf(types.map->columns), *columns, "columns" + of));
    const std::vector<ColumnType> made = MapOutputTypes(*types.map);
    for (size_t r = 0; r < made.size(); ++r)
      columns->push_back({made[r], types.map->results[r].type.digits, types.map->results[r].type.scale});
    return absl::OkStatus();
  }
  const JoinSpec& join = *types.join;
  QUERN_RETURN_IF_ERROR(CheckColumns(read.keys, PipelineColumnsOf(TypesOf(join.keys)), *columns, "keys" + of));
  if (types.is_reduction) return CheckColumns(read.payload, {}, *columns, "payload" + of);
  QUERN_RETURN_IF_ERROR(CheckColumns(read.payload, PipelineColumnsOf(ProbePayload(join)), *columns, "payload" + of));
  *columns = ColumnsBehind(join, read.payload, *columns);
  return absl::OkStatus();
}

}  // namespace quern
