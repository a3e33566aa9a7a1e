// SPDX-License-Identifier: Apache-2.0
#include "tools/quern/map/computed_select.h"

#include <arrow/api.h>

#include <algorithm>
#include <utility>

#include "runtime/base/status.h"
#include "tools/frontend/column_names.h"
#include "tools/quern/map/map_request.h"
#include "tools/quern/map/map_run.h"

namespace quern::cli {

bool IsComputed(const std::string& text) { return !text.empty() && !ParseNames("--select", text).ok(); }

absl::StatusOr<ComputedSelect> ComputedSelect::Parse(const std::string& text) {
  ComputedSelect select;
  select.text_ = text;
  QUERN_ASSIGN_OR_RETURN(select.select_, ParseSelect("--select", text));
  return select;
}

std::optional<std::vector<std::string>> ComputedSelect::Mentioned(const std::vector<std::string>& given) const {
  std::vector<std::string> wanted, names;
  for (const SelectText& selected : select_) {
    if (selected.is_all) return std::nullopt;
    AddNames(selected.expression, &wanted);
  }
  const auto has = [](const std::vector<std::string>& all, const std::string& name) {
    return std::find(all.begin(), all.end(), name) != all.end();
  };
  for (const std::string& name : wanted)
    if (!has(names, name) && !has(given, name)) names.push_back(name);
  return names;
}

absl::StatusOr<OperatorResult> ComputedSelect::Apply(OperatorResult result, const RunOptions& options,
                                                     const std::shared_ptr<MemoryBudget>& budget,
                                                     Progress* progress) const {
  if (result.table == nullptr) return result;
  Stopwatch watch;
  MapRequest request{.select = select_, .where = std::nullopt};
  QUERN_RETURN_IF_ERROR(ResolveRequest("the result", result.table->ColumnNames(), &request));
  QUERN_ASSIGN_OR_RETURN(const PreparedMap prepared, PrepareMap(request, "the result", result.table));
  CompileOptions compile = options.compile;
  compile.expected_rows = result.num_rows / options.threads;
  QUERN_RETURN_IF_ERROR(prepared.map->Compile(compile));
  QUERN_ASSIGN_OR_RETURN(OperatorResult computed,
                         RunPreparedMap(prepared, /*count=*/false, budget, options.threads, progress));
  computed.threads = result.threads;
  computed.run_ms = result.run_ms + watch.Lap();
  return computed;
}

}  // namespace quern::cli
