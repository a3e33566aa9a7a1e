// SPDX-License-Identifier: Apache-2.0
// The spec of a pipeline: the columns of its source, the specs of its steps, and where the rows end. It says what is
// computed, as a kernel spec does for one operator, and has one text form, a line:
//
//     pipeline in=i32,i64,i64,i64                          columns $0, $1, $2, $3 of the source
//       | filter i32 >= 20 [$0]                            the columns that a step reads stand behind its spec
//       | map in=i64,i64 out=multiply_checked($0,$1) [$2,$3]             columns $0 to $3, and a new one, $4
//       | probe join.inner keys=i64 build=i64 probe=i64 [$1; $4]         keys; payload. Behind it: $0 probe, $1 build
//       | aggregate keys=i64 aggs=sum(i64) [$1; $0]
//
// A step is a filter, a map, `probe` or `reduce` and a join; the end is an aggregation, a sort, `build` and a join, or
// `emit`, which hands rows to the host. Steps do with columns what runtime/pipeline/pipeline.h says. A pipeline without
// steps is its end alone, which then is no `emit`.
#ifndef QUERN_RUNTIME_PIPELINE_PIPELINE_SPEC_H_
#define QUERN_RUNTIME_PIPELINE_PIPELINE_SPEC_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/pipeline/pipeline_columns.h"
#include "runtime/spec/spec.h"

namespace quern {

struct PipelineStepSpec {
  KernelSpec spec;  // a filter, a map, or the join that is probed
  StepColumns columns;
  bool is_reduction = false;  // of a join, which is not probed then

  bool operator==(const PipelineStepSpec&) const = default;
};

struct PipelineSpec {
  std::vector<PipelineColumn> source;  // 0 .. kMaxPipelineColumns
  std::vector<PipelineStepSpec> steps;
  std::optional<KernelSpec> end;  // a join that is built, an aggregation, a sort; nullopt: rows are emitted
  StepColumns end_columns;        // of emitted rows `keys` alone

  bool operator==(const PipelineSpec&) const = default;
};
constexpr size_t kMaxPipelineColumns = 1024, kMaxPipelineSteps = 256;
constexpr size_t kMaxPipelineTextBytes = size_t{4} << 20;

// Whether the text's first word is `pipeline`.
bool IsPipelineText(std::string_view text);
// *Errors*: InvalidArgument that names the value and what is accepted, also for columns that are not there or whose
// types do not fit.
absl::StatusOr<PipelineSpec> ParsePipeline(std::string_view text);
// The canonical text: ParsePipeline(PrintPipeline(s)) == s.
std::string PrintPipeline(const PipelineSpec& spec);
// "probe join.inner keys=i64 build=i64 probe=i64 [$1; $4]"; step number steps.size() is the end.
std::string PrintPipelineStep(const PipelineSpec& spec, size_t step);

// The columns in front of each step, and of the end. *Errors*: as ParsePipeline.
absl::StatusOr<std::vector<std::vector<PipelineColumn>>> ColumnsOfPipeline(const PipelineSpec& spec);

// What an end reads besides its keys.
struct EndTypes {
  std::vector<ColumnType> keys, payload;
  std::vector<ValueType> values;  // of the payload, where expressions read it; else empty
  std::vector<bool> only_added;   // of the payload: AddedColumnsOf an aggregation; else empty
  bool reads_row_ids = false;     // besides its row id columns: a stable sort, a join whose host decides about pairs
};
EndTypes EndTypesOf(const KernelSpec& end);

}  // namespace quern

#endif  // QUERN_RUNTIME_PIPELINE_PIPELINE_SPEC_H_
