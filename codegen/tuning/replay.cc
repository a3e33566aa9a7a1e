// SPDX-License-Identifier: Apache-2.0
// The spec and layout of a captured job determine the loops that it ran. Each loop is a cell, with the job's own sizes
// instead of the middle of a class. The job's time is divided among its loops by their rows. Example, a captured line
// (here in two) and its cells:
//
//     jobs=12 layout=open build_rows=1000000 probe_rows=59986052 hits=97.5 zipf=0.74 ns=512000000
//         spec=join.inner keys=i64 build=i64
//
//     probe_open packed 2^26    1,000,000 rows, 98 % hits, exponent 0.74     weight 12 * 512 ms * 60 / 61
//     build_open packed 2^26    1,000,000 rows                               weight 12 * 512 ms * 1 / 61
//
// A profile has one setting for a cell, so the most expensive of the jobs that share a cell decides.
#include "codegen/tuning/replay.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "codegen/base/text_words.h"
#include "codegen/machine/prefetch_choice.h"

namespace quern {
namespace {

// A loop of a job and the number of its rows.
struct LoopRows {
  PrefetchLoop loop;
  double rows;
};

std::vector<LoopRows> LoopsOf(const JoinSpec&, const CapturedJob& job) {
  const auto both = [&](PrefetchLoop probe, PrefetchLoop build) {
    return std::vector<LoopRows>{{probe, job.probe_rows}, {build, job.build_rows}};
  };
  if (job.layout == "unchained") return both(PrefetchLoop::kProbeUnchained, PrefetchLoop::kBuildUnchained);
  if (job.layout.starts_with("open")) return both(PrefetchLoop::kProbeOpen, PrefetchLoop::kBuildOpen);
  if (job.layout.starts_with("dense") || job.layout == "bitmap")
    return both(PrefetchLoop::kProbeDense, PrefetchLoop::kBuildDense);
  return {};
}

// Of groups.
std::vector<LoopRows> UpdateLoops(const CapturedJob& job) {
  if (job.layout == "dense") return {{PrefetchLoop::kUpdateDense, job.build_rows}};
  if (job.layout == "open") return {{PrefetchLoop::kUpdateOpen, job.build_rows}};
  if (job.layout == "directory") return {{PrefetchLoop::kUpdateDirectory, job.build_rows}};
  return {};
}

std::vector<LoopRows> LoopsOf(const AggregationSpec&, const CapturedJob& job) { return UpdateLoops(job); }
std::vector<LoopRows> LoopsOf(const SetSpec&, const CapturedJob& job) { return UpdateLoops(job); }

std::vector<LoopRows> LoopsOf(const SortSpec&, const CapturedJob& job) {
  return {{PrefetchLoop::kGather, job.build_rows}, {PrefetchLoop::kCollision, job.collided_rows}};
}

// Filters touch no table.
template <class Spec>
std::vector<LoopRows> LoopsOf(const Spec&, const CapturedJob&) {
  return {};
}

TuningData DataOf(const KernelSpec& spec, const CapturedJob& job) {
  TuningData data;
  const bool is_aggregate = Is<AggregationSpec, SetSpec>(spec);
  data.build_rows = static_cast<uint64_t>(std::llround(is_aggregate ? job.keys : job.build_rows));
  if (Is<JoinSpec>(spec)) {
    data.hits_percent = static_cast<uint32_t>(std::lround(job.hits_percent));
    data.rows_per_key =
        static_cast<uint32_t>(std::max<int64_t>(std::llround(job.build_rows / std::max(job.keys, 1.0)), 1));
  }
  // The rows of the result are gathered.
  if (const auto* sort = std::get_if<SortSpec>(&spec); sort != nullptr && sort->limit != 0)
    data.build_rows = std::min(data.build_rows, sort->limit);
  data.group_bytes = is_aggregate ? static_cast<uint64_t>(job.table_bytes) : 0;
  data.zipf = job.zipf;
  data.key_bytes = static_cast<uint32_t>(std::min(std::llround(job.key_bytes), 65536LL));
  data.spec = job.spec;
  data.params = job.params;
  return data;
}

bool Prefetches(const CapturedJob& job) {
  return std::none_of(job.params.begin(), job.params.end(),
                      [](const auto& param) { return param.first == "prefetch"; });
}

// The number of joins that take turns with this one's probes, as the host gave it at compilation.
uint32_t PipelineOf(PrefetchLoop loop, const CapturedJob& job) {
  const bool probes =
      loop == PrefetchLoop::kProbeDense || loop == PrefetchLoop::kProbeOpen || loop == PrefetchLoop::kProbeUnchained;
  uint64_t pipeline = 1;
  for (const auto& [name, value] : job.params)
    if (probes && name == "pipeline" && !ReadCount(value, 1, UINT32_MAX, &pipeline)) pipeline = 1;
  return static_cast<uint32_t>(pipeline);
}

void AddCellsOf(const CapturedJob& job, std::vector<CellJob>* cells) {
  const absl::StatusOr<KernelSpec> spec = ParseSpec(job.spec);
  if (!spec.ok() || !Prefetches(job)) return;
  const TuningData data = DataOf(*spec, job);
  if (data.build_rows == 0) return;
  const std::vector<LoopRows> loops = std::visit([&](const auto& of) { return LoopsOf(of, job); }, *spec);
  double all_rows = 0;
  for (const LoopRows& loop : loops) all_rows += loop.rows;
  for (const LoopRows& loop : loops) {
    if (loop.rows < 0.5) continue;
    const TuningCell cell = {loop.loop, KeyClassOf(*spec), PipelineOf(loop.loop, job),
                             SizeClassOf(static_cast<uint64_t>(job.table_bytes)), 1};
    cells->push_back({cell, data, std::max(job.total_ns(), 1.0) * loop.rows / all_rows});
  }
}

}  // namespace

std::vector<CellJob> CellsToReplay(const std::vector<CapturedJob>& jobs, uint64_t max_bytes) {
  std::vector<CellJob> all, cells;
  for (const CapturedJob& job : jobs)
    if (job.table_bytes <= static_cast<double>(max_bytes)) AddCellsOf(job, &all);
  std::sort(all.begin(), all.end(), [](const CellJob& a, const CellJob& b) { return a.weight > b.weight; });
  for (const CellJob& job : all) {
    const auto is_it = [&](const CellJob& other) { return other.cell == job.cell; };
    if (std::none_of(cells.begin(), cells.end(), is_it)) cells.push_back(job);
  }
  return cells;
}

}  // namespace quern
