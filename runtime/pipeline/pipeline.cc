// SPDX-License-Identifier: Apache-2.0
// What a pipeline is made of, and the checks when it is made. Types go from step to step: each is compared with what
// the next step reads, and replaced by what it makes.
//
//     pipeline        i64, decimal128            decimal128: digits and scale are the host's matter
//     step 0, a map   + decimal128(31,4)         known from the expression
//     step 1, a map   reads decimal128(31,4) or wider of the same scale; another scale is refused
//
// The rows' way through the steps is in pipeline_input.cc.
#include "runtime/pipeline/pipeline.h"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/base/messages.h"
#include "runtime/base/status.h"

namespace quern {
namespace {

// ---- types ----

// A column on its way. digits: of a decimal; 0: not known.
struct PipelineColumn {
  ColumnType type;
  uint8_t digits = 0, scale = 0;
};

std::string ShowType(const ColumnType& type) { return PrintType(type) + (type.nullable ? ":nullable" : ""); }

std::string ShowType(const PipelineColumn& column) {
  return column.digits == 0 ? ShowType(column.type)
                            : PrintValueType({column.type.id, column.digits, column.scale, column.type.nullable});
}

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

std::vector<PipelineColumn> ColumnsOf(const std::vector<ColumnType>& types) {
  std::vector<PipelineColumn> columns;
  for (const ColumnType& type : types) columns.push_back({type});
  return columns;
}

PipelineColumn ColumnOf(const ValueType& type) { return {ColumnTypeOf(type), type.digits, type.scale}; }

std::vector<PipelineColumn> ColumnsOf(const std::vector<ValueType>& types) {
  std::vector<PipelineColumn> columns;
  for (const ValueType& type : types) columns.push_back(ColumnOf(type));
  return columns;
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
      return Wrong(name, "column " + std::to_string(numbers[i]) + " of " + ShowType(columns[numbers[i]]),
                   ShowType(wanted[i]));
  }
  return absl::OkStatus();
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

// Columns of any type: of a row id all that is checked is that the column is there.
absl::Status TakeTypes(const std::vector<uint32_t>& numbers, const std::vector<PipelineColumn>& columns,
                       const std::string& what, std::vector<ColumnType>* taken) {
  PipelineColumn any;
  any.type.id = TypeId::kRowId;
  QUERN_RETURN_IF_ERROR(CheckColumns(numbers, std::vector<PipelineColumn>(numbers.size(), any), columns, what));
  for (const uint32_t number : numbers) taken->push_back(columns[number].type);
  return absl::OkStatus();
}

// The columns behind a probe. Its payload comes first, with the digits that it has.
std::vector<PipelineColumn> ColumnsBehind(const JoinSpec& join, const std::vector<uint32_t>& payload,
                                          const std::vector<PipelineColumn>& before) {
  std::vector<PipelineColumn> columns = ColumnsOf(JoinOutputTypes(join));
  for (size_t i = 0; i < std::min(join.probe.size(), columns.size()); ++i) {
    columns[i].digits = before[payload[i]].digits;
    columns[i].scale = before[payload[i]].scale;
  }
  return columns;
}

// columns: those before the step; receives those behind it.
absl::Status PassStep(const PipelineStep& step, size_t i, std::vector<PipelineColumn>* columns) {
  const std::string of = " of step " + std::to_string(i);
  if (const auto* filter = std::get_if<std::shared_ptr<const RowFilter>>(&step.op))
    return CheckColumns(step.columns.keys, ColumnsOf((*filter)->descriptor().columns()), *columns, "columns" + of);
  if (const auto* mapper = std::get_if<std::shared_ptr<const RowMapper>>(&step.op)) {
    const MapSpec& map = (*mapper)->descriptor().spec();
    QUERN_RETURN_IF_ERROR(CheckColumns(step.columns.keys, ColumnsOf(map.columns), *columns, "columns" + of));
    const std::vector<ColumnType> types = MapOutputTypes(map);
    for (size_t r = 0; r < types.size(); ++r)
      columns->push_back({types[r], map.results[r].type.digits, map.results[r].type.scale});
    return absl::OkStatus();
  }
  const JoinSpec& join = std::get<std::shared_ptr<const HashJoin>>(step.op)->descriptor().spec();
  QUERN_RETURN_IF_ERROR(CheckColumns(step.columns.keys, ColumnsOf(TypesOf(join.keys)), *columns, "keys" + of));
  if (step.is_reduction) return CheckColumns(step.columns.payload, {}, *columns, "payload" + of);
  QUERN_RETURN_IF_ERROR(CheckColumns(step.columns.payload, ColumnsOf(ProbePayload(join)), *columns, "payload" + of));
  *columns = ColumnsBehind(join, step.columns.payload, *columns);
  return absl::OkStatus();
}

}  // namespace

// ---- making one ----

bool ReadsRowIds(const KernelSpec& spec) {
  if (const auto* join = std::get_if<JoinSpec>(&spec)) return join->host_residual;
  const auto* const sort = std::get_if<SortSpec>(&spec);
  return sort != nullptr && sort->stable;
}

absl::StatusOr<std::shared_ptr<const Pipeline>> Pipeline::Make(std::vector<ColumnType> source,
                                                               std::vector<PipelineStep> steps, PipelineSink sink) {
  auto made = std::shared_ptr<Pipeline>(new Pipeline());
  made->source_ = std::move(source);
  made->steps_ = std::move(steps);
  made->sink_ = std::move(sink);
  QUERN_RETURN_IF_ERROR(made->Check());
  return std::shared_ptr<const Pipeline>(std::move(made));
}

absl::Status Pipeline::Check() {
  std::vector<PipelineColumn> columns = ColumnsOf(source_);
  for (size_t i = 0; i < steps_.size(); ++i) QUERN_RETURN_IF_ERROR(PassStep(steps_[i], i, &columns));
  if (sink_.takes_all_types) {
    QUERN_RETURN_IF_ERROR(TakeTypes(sink_.columns.keys, columns, "keys of the sink", &sink_.keys));
    return TakeTypes(sink_.columns.payload, columns, "payload of the sink", &sink_.payload);
  }
  QUERN_RETURN_IF_ERROR(CheckColumns(sink_.columns.keys, ColumnsOf(sink_.keys), columns, "keys of the sink"));
  const std::vector<PipelineColumn> payload = sink_.values.empty() ? ColumnsOf(sink_.payload) : ColumnsOf(sink_.values);
  return CheckColumns(sink_.columns.payload, payload, columns, "payload of the sink");
}

}  // namespace quern
