// SPDX-License-Identifier: Apache-2.0
// Under 64 MiB, with a table of 20 M orders, one of 1,000 parts and an aggregation behind both probes:
//
//     orders       at most 27 MiB: 56 without the rows on their way, less 1 for the parts and 28 for the groups
//     parts        at most what is free then, less a half of it for the groups
//     groups       what is free then, less an eighth for the rows on their way
#include "tools/query/query_memory.h"

#include <algorithm>
#include <variant>

#include "runtime/base/thresholds.h"
#include "runtime/join/spilling_builder.h"

namespace quern::query {
namespace {

constexpr uint64_t kUnknown = UINT64_MAX;
constexpr uint64_t kLeastShareBytes = uint64_t{2} << 20;  // of which a half is set aside
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

}  // namespace

void SinkMemory::EndBuild(bool has_spilled) const {
  if (!is_own) return;
  if (!has_spilled) return spill->EndSettingAside();
  const uint64_t limit = budget->limit_bytes(), used = budget->used_bytes();
  reserve->Open();
  for (uint64_t bytes = limit - std::min(used, limit); bytes >= thresholds::kPartitionSpareBytes; bytes /= 2)
    if (reserve->GrowBy(bytes).ok()) break;
}

QueryMemory::QueryMemory(const PreparedQuery& query, const std::vector<TableRows>& tables,
                         const RunQueryOptions& options)
    : plan_(query.plan()), options_(options) {
  const std::vector<PlannedPipeline>& pipelines = plan_.pipelines;
  std::vector<uint64_t> most_rows;  // that come out of each pipeline's sink
  for (size_t p = 0; p < pipelines.size(); ++p) {
    const PlannedPipeline& planned = pipelines[p];
    last_use_.push_back(p);
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
}

// Whether a sink shares the memory with joins.
bool QueryMemory::IsShared(size_t pipeline) const {
  const PlannedPipeline& planned = plan_.pipelines[pipeline];
  const auto probes = [](const PlannedStep& step) { return std::holds_alternative<JoinSpec>(step.spec); };
  bool is_shared = planned.sink == SinkKind::kBuild;
  is_shared |= std::any_of(planned.steps.begin(), planned.steps.end(), probes);
  for (size_t p = pipeline + 1; p <= last_use_[pipeline]; ++p)
    is_shared |= plan_.pipelines[p].sink == SinkKind::kBuild || p == last_use_[pipeline];
  return is_shared;
}

uint64_t QueryMemory::LimitOf(size_t pipeline) const {
  const uint64_t limit = options_.budget->limit_bytes(), used = options_.budget->used_bytes();
  const uint64_t unused = limit - std::min(limit, used), free = unused - unused / thresholds::kRowsOnTheirWayShare;
  uint64_t most_wanted = 0;
  for (size_t now = pipeline + 1; now <= last_use_[pipeline]; ++now) {
    std::vector<size_t> others;
    for (size_t p = pipeline + 1; p <= now; ++p)
      if (plan_.pipelines[p].sink != SinkKind::kResult && last_use_[p] >= now) others.push_back(p);
    uint64_t wanted = 0;
    for (const size_t p : others) {
      const uint64_t most = most_bytes_[p] > free ? free : most_bytes_[p] + kLeastShareBytes;
      wanted += std::min(most, free / (others.size() + 1));
    }
    most_wanted = std::max(most_wanted, wanted);
  }
  return std::max(free - most_wanted, std::min(kLeastShareBytes, unused));
}

SinkMemory QueryMemory::Of(size_t pipeline) const {
  const bool has_limit = options_.budget != nullptr && options_.budget->limit_bytes() != 0;
  const bool is_build = plan_.pipelines[pipeline].sink == SinkKind::kBuild;
  if (options_.spill == nullptr || !has_limit || !IsShared(pipeline))
    return {options_.budget, is_build ? nullptr : options_.spill, nullptr, false};
  SinkMemory memory{nullptr, nullptr, nullptr, true};
  memory.reserve = std::make_shared<BudgetWithReserve>(options_.budget, std::max<uint64_t>(LimitOf(pipeline), 1));
  memory.budget = memory.reserve->budget();
  memory.spill = std::make_shared<SpillContext>(options_.spill, memory.budget);
  return memory;
}

}  // namespace quern::query
