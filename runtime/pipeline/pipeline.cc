// SPDX-License-Identifier: Apache-2.0
// What a pipeline is made of, and the checks when it is made. The rows' way through the steps is in pipeline_input.cc.
#include "runtime/pipeline/pipeline.h"

#include <utility>

#include "runtime/base/status.h"
#include "runtime/pipeline/pipeline_spec.h"
#include "runtime/pipeline/row_numbers.h"

namespace quern {
namespace {

StepTypes TypesOf(const PipelineStep& step) {
  StepTypes types{.is_reduction = step.is_reduction};
  if (const auto* filter = std::get_if<std::shared_ptr<const RowFilter>>(&step.op))
    types.filter = &(*filter)->descriptor().columns();
  else if (const auto* mapper = std::get_if<std::shared_ptr<const RowMapper>>(&step.op))
    types.map = &(*mapper)->descriptor().spec();
  else types.join = &std::get<std::shared_ptr<const HashJoin>>(step.op)->descriptor().spec();
  return types;
}

}  // namespace

PipelineSink SinkOf(const KernelSpec& spec, StepColumns columns) {
  EndTypes types = EndTypesOf(spec);
  return {.keys = std::move(types.keys),
          .payload = std::move(types.payload),
          .values = std::move(types.values),
          .only_added = std::move(types.only_added),
          .columns = std::move(columns),
          .keeps_strings = !Is<AggregationSpec>(spec),
          .reads_row_ids = types.reads_row_ids};
}

absl::StatusOr<std::shared_ptr<const Pipeline>> Pipeline::Make(const std::vector<PipelineColumn>& source,
                                                               std::vector<PipelineStep> steps, PipelineSink sink) {
  auto made = std::shared_ptr<Pipeline>(new Pipeline());
  for (const PipelineColumn& column : source) made->source_.push_back(column.type);
  made->steps_ = std::move(steps);
  made->sink_ = std::move(sink);
  QUERN_RETURN_IF_ERROR(made->Check(source));
  QUERN_RETURN_IF_ERROR(CheckRowIds(*made));
  return std::shared_ptr<const Pipeline>(std::move(made));
}

absl::Status Pipeline::Check(std::vector<PipelineColumn> columns) {
  for (size_t i = 0; i < steps_.size(); ++i)
    QUERN_RETURN_IF_ERROR(PassStep(TypesOf(steps_[i]), steps_[i].columns, i, &columns));
  if (sink_.takes_all_types) {
    QUERN_RETURN_IF_ERROR(TakeTypes(sink_.columns.keys, columns, "keys of the sink", &sink_.keys));
    return TakeTypes(sink_.columns.payload, columns, "payload of the sink", &sink_.payload);
  }
  return CheckEndColumns(sink_.columns, sink_.keys, sink_.payload, sink_.values, columns, "sink");
}

}  // namespace quern
