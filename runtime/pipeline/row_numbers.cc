// SPDX-License-Identifier: Apache-2.0
#include "runtime/pipeline/row_numbers.h"

#include <algorithm>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/join/hash_join.h"
#include "runtime/spec/column_type.h"

namespace quern {

bool IsSelection(const JoinSpec& join) {
  const JoinKindRow& kind = RowOf(join.kind);
  const bool takes_away = !kind.pairs && (kind.probe_row == RowsOut::kMatched || kind.probe_row == RowsOut::kUnmatched);
  const auto changes = [](const ColumnType& type) { return type.id == TypeId::kRowId || type.is_dictionary; };
  return takes_away && std::none_of(join.probe.begin(), join.probe.end(), changes);
}

bool ReadsRowIdsBehind(const Pipeline& pipeline, size_t step) {
  const auto is_row_id = [](const ColumnType& type) { return type.id == TypeId::kRowId; };
  const auto has_row_ids = [&](const std::vector<ColumnType>& types) {
    return std::any_of(types.begin(), types.end(), is_row_id);
  };
  for (size_t i = step + 1; i < pipeline.steps().size(); ++i) {
    const auto* const join = std::get_if<std::shared_ptr<const HashJoin>>(&pipeline.steps()[i].op);
    if (join == nullptr || pipeline.steps()[i].is_reduction) continue;
    const JoinSpec& spec = (*join)->descriptor().spec();
    if (spec.host_residual || has_row_ids(spec.probe)) return true;
  }
  const PipelineSink& sink = pipeline.sink();
  return sink.reads_row_ids || has_row_ids(sink.keys) || has_row_ids(sink.payload);
}

absl::Status CheckRowIds(const Pipeline& pipeline) {
  for (size_t i = 0; i < pipeline.steps().size(); ++i) {
    const auto* const join = std::get_if<std::shared_ptr<const HashJoin>>(&pipeline.steps()[i].op);
    if (join == nullptr || pipeline.steps()[i].is_reduction) continue;
    if (!IsSelection((*join)->descriptor().spec())) return absl::OkStatus();  // it numbers its results itself
    if ((*join)->has_spilled() && ReadsRowIdsBehind(pipeline, i)) {
      return InvalidArgument("row ids of a pipeline behind step " + std::to_string(i) +
                             ", whose join has written rows to files; accepted: ids in a column of the source, or a "
                             "table in memory");
    }
  }
  return absl::OkStatus();
}

}  // namespace quern
