// SPDX-License-Identifier: Apache-2.0
// The types of a pipeline's columns, from step to step: each is compared with what the next step reads, and replaced by
// what it makes.
//
//     pipeline        i64, decimal128            decimal128: digits and scale are not known
//     step 0, a map   + decimal128(31,4)         known from the expression
//     step 1, a map   reads decimal128(31,4) or wider of the same scale; another scale is refused
#ifndef QUERN_RUNTIME_PIPELINE_PIPELINE_COLUMNS_H_
#define QUERN_RUNTIME_PIPELINE_PIPELINE_COLUMNS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/spec/column_type.h"
#include "runtime/spec/expression.h"
#include "runtime/spec/spec.h"

namespace quern {

// Numbers of columns: of those that are there before the step.
struct StepColumns {
  std::vector<uint32_t> keys;     // filters and maps: all that they read
  std::vector<uint32_t> payload;  // probes, sinks

  bool operator==(const StepColumns&) const = default;
};

// A column on its way. digits: of a decimal; 0: not known.
struct PipelineColumn {
  ColumnType type;
  uint8_t digits = 0, scale = 0;

  bool operator==(const PipelineColumn&) const = default;
};

std::vector<PipelineColumn> PipelineColumnsOf(const std::vector<ColumnType>& types);
PipelineColumn PipelineColumnOf(const ValueType& type);
// As expressions read it. nullopt: a type that they do not have, or a decimal of unknown digits.
std::optional<ValueType> ValueTypeOf(const PipelineColumn& column);

// "i64,utf8:nullable,decimal128(15,2)"; a decimal may stand without digits. An empty text has no columns. *Errors*:
// InvalidArgument that names the type and what is accepted.
absl::StatusOr<std::vector<PipelineColumn>> ParsePipelineColumns(std::string_view text);
std::string PrintPipelineColumn(const PipelineColumn& column);

// What a step of a pipeline reads: the columns of a filter, or a map, or a join.
struct StepTypes {
  const std::vector<ColumnType>* filter = nullptr;
  const MapSpec* map = nullptr;
  const JoinSpec* join = nullptr;
  bool is_reduction = false;  // of a join
};

// columns: those before step number i; receives those behind it. *Errors*: InvalidArgument for a column that is not
// there or has another type: step, column and types are named.
absl::Status PassStep(const StepTypes& types, const StepColumns& read, size_t i, std::vector<PipelineColumn>* columns);

// *Errors*: InvalidArgument for columns that are not `wanted`; `what` names them: "keys of the sink".
absl::Status CheckColumns(const std::vector<uint32_t>& numbers, const std::vector<PipelineColumn>& wanted,
                          const std::vector<PipelineColumn>& columns, const std::string& what);
// The same for what stands at the end: its keys, and its payload, which expressions read where `values` is not empty.
absl::Status CheckEndColumns(const StepColumns& read, const std::vector<ColumnType>& keys,
                             const std::vector<ColumnType>& payload, const std::vector<ValueType>& values,
                             const std::vector<PipelineColumn>& columns, const std::string& what);
// Appends the types of the columns. *Errors*: InvalidArgument for one that is not there.
absl::Status TakeTypes(const std::vector<uint32_t>& numbers, const std::vector<PipelineColumn>& columns,
                       const std::string& what, std::vector<ColumnType>* taken);

}  // namespace quern

#endif  // QUERN_RUNTIME_PIPELINE_PIPELINE_COLUMNS_H_
