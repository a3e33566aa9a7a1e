// SPDX-License-Identifier: Apache-2.0
// Of 60 MiB that are free, with the tables of 20 M orders and of 1,000 parts and an aggregation behind both probes:
//
//     orders    take 49 MiB where they fit into that; if not, their rows are written and their share is 36
//     parts     take 51 MiB less what the orders have, where they fit into that, as they do
//     groups    take what is left but for an eighth, which is for rows on their way
#include "tools/query/query_memory.h"

#include <algorithm>
#include <variant>

#include "runtime/base/thresholds.h"
#include "runtime/join/spilling_builder.h"

namespace quern::query {
namespace {

constexpr uint64_t kUnknown = UINT64_MAX;
constexpr uint64_t kLeastShareBytes = uint64_t{3} << 20;  // a third of which is set aside
constexpr uint64_t kStringBytes = 64;                     // assumed

// Whether no row comes out of a step more than once.
bool AddsNoRows(const PlannedStep& step) {
  const auto* join = std::get_if<JoinSpec>(&step.spec);
  return join == nullptr || (!RowOf(join->kind).pairs && !RowOf(join->kind).flags_matched_rows());
}

uint64_t Times(uint64_t rows, uint64_t bytes) { return rows > kUnknown / bytes ? kUnknown : rows * bytes; }

// What so many rows take in a sink at most, about.
uint64_t MostBytesOf(const PlannedPipeline& planned, const CompiledKernel& compiled, uint64_t num_rows) {
  uint64_t row_bytes = 0;
  for (const std::vector<uint32_t>* numbers : {&planned.sink_columns.keys, &planned.sink_columns.payload}) {
    for (const uint32_t number : *numbers) {
      const TypeRow& type = RowOf(planned.last_columns[number].type->id);
      row_bytes += IsVariable(type.storage) ? kStringBytes : std::max<uint64_t>(type.width_bytes, 1);
    }
  }
  if (planned.sink != SinkKind::kBuild || num_rows > UINT32_MAX) return Times(num_rows, 2 * (row_bytes + kStringBytes));
  const JoinDescriptor& descriptor = *compiled.kernel->As<JoinSpec>().descriptor;
  return 2 * BuildBytesOf(descriptor, num_rows, num_rows * row_bytes);
}

// What so many rows of the result take at most, about; 0 where their number is unknown.
uint64_t ResultBytesOf(const QueryPlan& plan, uint64_t num_rows) {
  if (num_rows == kUnknown) return 0;
  if (plan.limit != 0) num_rows = std::min(num_rows, plan.limit);
  uint64_t row_bytes = 0;
  for (const uint32_t number : plan.columns) {
    const std::optional<ColumnType>& type = plan.pipelines.back().results[number].type;
    const bool has_width = type.has_value() && !IsVariable(RowOf(type->id).storage);
    row_bytes += has_width ? std::max<uint64_t>(type->width_bytes, 1) : kStringBytes;
  }
  return Times(num_rows, row_bytes);
}

}  // namespace

void SinkMemory::EndBuild(bool has_spilled) const {
  if (reserve == nullptr) return;
  if (!has_spilled) return spill->EndSettingAside();
  const uint64_t used = budget->used_bytes();
  reserve->Open();
  for (uint64_t bytes = share_bytes - std::min(used, share_bytes); bytes >= thresholds::kPartitionSpareBytes;
       bytes /= 2)
    if (reserve->GrowBy(bytes).ok()) break;
}

QueryMemory::QueryMemory(const PreparedQuery& query, const std::vector<TableRows>& tables,
                         const RunQueryOptions& options)
    : plan_(query.plan()), options_(options) {
  if (options.spill != nullptr) options.spill->ShareWithOthers();
  const std::vector<PlannedPipeline>& pipelines = plan_.pipelines;
  std::vector<uint64_t> most_rows;  // that come out of each pipeline's sink
  for (size_t p = 0; p < pipelines.size(); ++p) {
    const PlannedPipeline& planned = pipelines[p];
    last_use_.push_back(p);
    has_joins_ |= planned.sink == SinkKind::kBuild;
    if (!planned.reads_table) last_use_[planned.source] = p;
    for (const PlannedStep& step : planned.steps)
      if (std::holds_alternative<JoinSpec>(step.spec)) last_use_[step.table] = p;
    uint64_t num_rows = planned.reads_table ? tables[planned.source].num_rows : most_rows[planned.source];
    if (!std::all_of(planned.steps.begin(), planned.steps.end(), AddsNoRows)) num_rows = kUnknown;
    most_rows.push_back(num_rows);
    most_bytes_.push_back(num_rows == kUnknown || planned.sink == SinkKind::kResult
                              ? kUnknown
                              : MostBytesOf(planned, query.kernels(p).back(), num_rows));
  }
  result_bytes_ = ResultBytesOf(plan_, most_rows.back());
}

// Whether the rows of a sink are those of the result.
bool QueryMemory::HasResult(size_t pipeline) const {
  const PlannedPipeline& last = plan_.pipelines.back();
  if (last.sink != SinkKind::kResult) return pipeline + 1 == plan_.pipelines.size();
  return !last.reads_table && last.source == pipeline;
}

// What others take that begin while the sink is there, at most `most_each` of them each, or an equal share where that
// is 0.
uint64_t QueryMemory::LeftToLater(size_t pipeline, uint64_t free, uint64_t most_each) const {
  uint64_t most = 0;
  for (size_t now = pipeline + 1; now <= last_use_[pipeline]; ++now) {
    std::vector<size_t> others;
    for (size_t p = pipeline + 1; p <= now; ++p)
      if (plan_.pipelines[p].sink != SinkKind::kResult && last_use_[p] >= now) others.push_back(p);
    uint64_t sum = 0;
    for (const size_t p : others) {
      const uint64_t can_take = std::min(most_bytes_[p], free) + kLeastShareBytes;
      sum += std::min(can_take, most_each != 0 ? most_each : free / (others.size() + 1));
    }
    most = std::max(most, sum);
  }
  return std::min(most, free);
}

SinkMemory QueryMemory::Of(size_t pipeline) const {
  const bool has_limit = options_.budget != nullptr && options_.budget->limit_bytes() != 0;
  const bool is_build = plan_.pipelines[pipeline].sink == SinkKind::kBuild;
  const bool has_result = HasResult(pipeline) && result_bytes_ != 0;
  if (options_.spill == nullptr || !has_limit || (!has_joins_ && !has_result))
    return {options_.budget, is_build ? nullptr : options_.spill, nullptr, 0};
  const uint64_t limit = options_.budget->limit_bytes(), used = options_.budget->used_bytes();
  const uint64_t unused = limit - std::min(limit, used), free = unused - unused / thresholds::kRowsOnTheirWayShare;
  const uint64_t little = kLeastShareBytes + free / thresholds::kLittleShareOfFree;
  // The result stays in memory. A sort, which gives all its rows, leaves it as much as it can take; groups, which may
  // be few, a half at most.
  const bool is_sort = plan_.pipelines[pipeline].sink == SinkKind::kSort;
  const uint64_t most_to_result = is_sort ? free - std::min(free, little) : free / 2;
  const uint64_t to_result = has_result ? std::min(result_bytes_, most_to_result) : 0;
  const auto left = [&](uint64_t most_each) { return std::max(LeftToLater(pipeline, free, most_each), to_result); };
  SinkMemory memory;
  memory.share_bytes = std::max({free - left(0), std::min(kLeastShareBytes, unused), uint64_t{1}});
  const uint64_t most = std::max(free - left(little), memory.share_bytes);
  memory.reserve = std::make_shared<BudgetWithReserve>(options_.budget, most);
  memory.budget = memory.reserve->budget();
  memory.spill = std::make_shared<SpillContext>(options_.spill, memory.budget, memory.share_bytes);
  return memory;
}

}  // namespace quern::query
