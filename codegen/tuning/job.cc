// SPDX-License-Identifier: Apache-2.0
// A job is an operator as hosts run it: a spec, a compiled kernel, a table of real rows, and batches that go through
// it. It runs the real loop and not a model of it, so the measured cost includes everything around the loop. Example,
// the cell "probe_open packed 2^24":
//
//     spec    join.inner keys=i64 build=i64          layout=open
//     table   0.75 * 2^24 bytes: 310,000 tuples of 16 bytes in slots of which 40 % are taken
//     run     120,000 probe rows, 2 ms, from where the last run ended; then the setting changes, and nothing else
//
// The table of a class has three quarters of the class's upper bound, the middle of the class; a table whose size is
// always a power of two has that size.
#include "codegen/tuning/job.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "codegen/compiler.h"
#include "codegen/plan/scope.h"
#include "codegen/tuning/job_makers.h"
#include "runtime/base/status.h"

namespace quern {

namespace tuning {
namespace {

constexpr double kPlaceInClass = 0.75;
constexpr double kMostBatches = 1e9;  // in a run

PrefetchSchedule* ScheduleOf(KernelPlan* plan, PrefetchLoop loop) {
  switch (loop) {
#define QUERN_PLAN_SCHEDULE(scope, Loop, name, meaning) \
  case PrefetchLoop::Loop: return &plan->name;
#include "codegen/plan/plan_parameters.def"
  }
  return nullptr;
}

const char* KeysText(KeyClass keys) {
  switch (keys) {
    case KeyClass::kPacked: return "i64";
    case KeyClass::kFixed: return "i64,i64";
    case KeyClass::kString: return "utf8";
  }
  return "i64";
}

absl::Status NoJob(const TuningCell& cell) {
  return absl::UnimplementedError("tuning job of a cell: " + PrintCell(cell) +
                                  "; accepted: loops that these keys have; pipelines of one for builds and sorts");
}

bool IsBuild(PrefetchLoop loop) {
  return loop == PrefetchLoop::kBuildDense || loop == PrefetchLoop::kBuildOpen || loop == PrefetchLoop::kBuildUnchained;
}

// Dense and open tables need packed keys, collisions need strings, and rows that key words give back are not gathered.
bool HasJob(const TuningCell& cell) {
  const bool is_word = cell.keys == KeyClass::kPacked;
  switch (cell.loop) {
    case PrefetchLoop::kBuildDense:
    case PrefetchLoop::kBuildOpen: return is_word && cell.pipeline == 1;
    case PrefetchLoop::kBuildUnchained: return cell.pipeline == 1;
    case PrefetchLoop::kProbeDense:
    case PrefetchLoop::kProbeOpen:
    case PrefetchLoop::kUpdateDense:
    case PrefetchLoop::kUpdateOpen: return is_word;
    case PrefetchLoop::kProbeUnchained:
    case PrefetchLoop::kUpdateDirectory: return true;
    case PrefetchLoop::kGather: return !is_word && cell.pipeline == 1;
    case PrefetchLoop::kCollision: return cell.keys == KeyClass::kString && cell.pipeline == 1;
  }
  return false;
}

std::string SpecOf(const TuningCell& cell) {
  const std::string keys = KeysText(cell.keys);
  switch (cell.loop) {
    case PrefetchLoop::kBuildDense:
    case PrefetchLoop::kBuildOpen:
    case PrefetchLoop::kBuildUnchained:
    case PrefetchLoop::kProbeDense:
    case PrefetchLoop::kProbeOpen:
    case PrefetchLoop::kProbeUnchained: return "join.inner keys=" + keys + " build=i64";
    case PrefetchLoop::kUpdateDense:
    case PrefetchLoop::kUpdateOpen:
    case PrefetchLoop::kUpdateDirectory: return "aggregate keys=" + keys + " aggs=count_star,sum(f64)";
    case PrefetchLoop::kGather:
      return std::string("sort keys=i64 payload=i64,") + (cell.keys == KeyClass::kString ? "utf8" : "i64,i64");
    case PrefetchLoop::kCollision: return "sort keys=utf8 payload=rowid";
  }
  return "";
}

// The layout that has the loop.
PlanOverrides OverridesOf(PrefetchLoop loop) {
  switch (loop) {
    case PrefetchLoop::kBuildDense:
    case PrefetchLoop::kProbeDense: return {{"layout", "dense"}};
    case PrefetchLoop::kBuildOpen:
    case PrefetchLoop::kProbeOpen: return {{"layout", "open"}};
    case PrefetchLoop::kBuildUnchained:
    case PrefetchLoop::kProbeUnchained: return {{"layout", "unchained"}};
    case PrefetchLoop::kUpdateDense: return {{"group_layout", "dense"}};
    case PrefetchLoop::kUpdateOpen: return {{"group_layout", "open"}};
    case PrefetchLoop::kUpdateDirectory: return {{"group_layout", "directory"}};
    case PrefetchLoop::kGather:
    case PrefetchLoop::kCollision: return {};
  }
  return {};
}

absl::StatusOr<JobKernel> MakeKernel(const TuningCell& cell, const TuningData& data) {
  JobKernel job = {cell, data, nullptr, {}};
  QUERN_ASSIGN_OR_RETURN(const KernelSpec spec, ParseSpec(data.spec.empty() ? SpecOf(cell) : data.spec));
  if (!HasLoop(spec, cell.loop) || KeyClassOf(spec) != cell.keys) return NoJob(cell);
  CompileOptions options;
  options.engine = Engine::kJit;
  options.overrides = data.params;
  for (const auto& param : OverridesOf(cell.loop)) options.overrides.push_back(param);
  QUERN_ASSIGN_OR_RETURN(const CompiledKernel compiled, Compile(spec, options));
  job.kernel = compiled.kernel;
  QUERN_ASSIGN_OR_RETURN(const Machine host, HostMachine());
  QUERN_ASSIGN_OR_RETURN(job.plan, MakePlan(spec, host, options.overrides, data.facts));
  job.data.facts = nullptr;  // the caller's, which may not outlive the job
  return job;
}

}  // namespace

uint64_t JobKernel::RowsFor(double bytes_per_row) const {
  if (data.build_rows != 0) return data.build_rows;
  const double bytes = kPlaceInClass * static_cast<double>(uint64_t{1} << cell.size_class);
  return std::max<uint64_t>(static_cast<uint64_t>(bytes / std::max(bytes_per_row, 1.0)), 16);
}

std::shared_ptr<const Kernel> JobKernel::With(const PrefetchSetting& setting) const {
  auto with = std::make_shared<Kernel>(*kernel);
  ScheduleOf(&with->plan, cell.loop)->entries = {{UINT64_MAX, setting}};
  SetOptions(with->plan, &with->of);
  return with;
}

PrefetchSetting JobKernel::Planned(uint64_t table_bytes) const {
  KernelPlan without_profile = plan;
  return ScheduleOf(&without_profile, cell.loop)->For(table_bytes);
}

uint64_t SliceSize::Rows() const {
  const double batches = slice_ns_ / std::max(ns_per_row_, 0.1) / static_cast<double>(batch_rows_);
  return static_cast<uint64_t>(std::llround(std::clamp(batches, 1.0, kMostBatches))) * batch_rows_;
}

std::vector<uint64_t> NumbersInNoOrder(uint64_t first, uint64_t rows, uint64_t num_keys) {
  std::vector<uint64_t> numbers(rows);
  for (uint64_t i = 0; i < rows; ++i) numbers[i] = Permute((first + i) % num_keys, num_keys);
  return numbers;
}

std::vector<uint64_t> NumbersOfPool(uint64_t num_keys, const TuningData& data) {
  std::vector<uint64_t> numbers(std::clamp(num_keys, kLeastPoolRows, kMostPoolRows));
  KeyChooser chooser(num_keys, data.zipf, data.hits_percent);
  for (uint64_t& number : numbers) number = chooser.Next();
  return numbers;
}

}  // namespace tuning

absl::StatusOr<std::unique_ptr<TuningJob>> MakeTuningJob(const TuningCell& cell, const TuningData& data) {
  if (!tuning::HasJob(cell)) return tuning::NoJob(cell);
  QUERN_ASSIGN_OR_RETURN(const tuning::JobKernel kernel, tuning::MakeKernel(cell, data));
  if (cell.loop == PrefetchLoop::kGather) return tuning::MakeGatherJob(kernel);
  if (cell.loop == PrefetchLoop::kCollision) return tuning::MakeCollisionJob(kernel);
  if (Is<AggregationSpec, SetSpec>(kernel.plan.spec)) return tuning::MakeUpdateJob(kernel);
  return tuning::IsBuild(cell.loop) ? tuning::MakeBuildJob(kernel) : tuning::MakeProbeJob(kernel);
}

// ---- what is worth tuning ------------------------------------------------------------------------------------------

namespace {

// Loops in descending order of the time that engines spend in them.
constexpr std::array<PrefetchLoop, kNumPrefetchLoops> kMostUsefulFirst = {
    PrefetchLoop::kProbeOpen,       PrefetchLoop::kUpdateOpen, PrefetchLoop::kProbeUnchained, PrefetchLoop::kProbeDense,
    PrefetchLoop::kUpdateDirectory, PrefetchLoop::kGather,     PrefetchLoop::kBuildUnchained, PrefetchLoop::kBuildOpen,
    PrefetchLoop::kUpdateDense,     PrefetchLoop::kCollision,  PrefetchLoop::kBuildDense,
};

// Building a larger table takes longer than the race over its settings; settings of the classes below stand in.
constexpr uint32_t kLargestBuildClass = 27;

// The sizes for kMeasure: inside the L2 cache, between L2 and L3, near the end of L3, and in memory; sizes between them
// take the nearest one's settings.
std::vector<uint32_t> SizeClasses(TuningEffort effort, const MachineFacts& facts, uint64_t max_bytes) {
  const uint64_t l2_bytes = facts.l2_bytes != 0 ? facts.l2_bytes : facts.signature.l2_bytes;
  const uint64_t l3_bytes = facts.l3_bytes != 0 ? facts.l3_bytes : facts.signature.l3_bytes;
  const uint32_t l2 = SizeClassOf(l2_bytes == 0 ? uint64_t{1} << 20 : l2_bytes);
  const uint32_t l3 = std::max(SizeClassOf(l3_bytes == 0 ? uint64_t{32} << 20 : l3_bytes), l2 + 1);
  const uint32_t largest = std::min<uint32_t>(static_cast<uint32_t>(std::bit_width(max_bytes)) - 1, kLargestSizeClass);
  std::vector<uint32_t> classes = {std::min(l3 + 2, largest), (l2 + l3 + 1) / 2, l3, l2};
  if (effort == TuningEffort::kPatient)
    for (uint32_t c = kSmallestSizeClass; c <= kLargestSizeClass; ++c) classes.push_back(c);
  std::vector<uint32_t> each_once;
  for (const uint32_t c : classes) {
    const bool fits = c >= kSmallestSizeClass && c <= largest;
    if (fits && std::find(each_once.begin(), each_once.end(), c) == each_once.end()) each_once.push_back(c);
  }
  return each_once;
}

bool IsTuned(const TuningCell& cell) {
  return tuning::HasJob(cell) && !(tuning::IsBuild(cell.loop) && cell.size_class > kLargestBuildClass);
}

}  // namespace

std::vector<TuningCell> CellsToTune(TuningEffort effort, const MachineFacts& facts, uint64_t max_bytes) {
  std::vector<TuningCell> cells;
  if (effort == TuningEffort::kEstimate || max_bytes == 0) return cells;
  const auto add = [&](PrefetchLoop loop, KeyClass keys, uint32_t size_class, uint32_t pipeline) {
    const TuningCell cell = {loop, keys, pipeline, size_class, 1};
    if (IsTuned(cell)) cells.push_back(cell);
  };
  const std::vector<uint32_t> classes = SizeClasses(effort, facts, max_bytes);
  for (const uint32_t size_class : classes)
    for (const KeyClass keys : {KeyClass::kPacked, KeyClass::kString, KeyClass::kFixed})
      for (const PrefetchLoop loop : kMostUsefulFirst) add(loop, keys, size_class, 1);
  for (const uint32_t size_class : classes)
    for (const PrefetchLoop loop : {PrefetchLoop::kProbeOpen, PrefetchLoop::kProbeUnchained})
      add(loop, KeyClass::kPacked, size_class, 2);
  return cells;
}

}  // namespace quern
