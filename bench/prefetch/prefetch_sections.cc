// SPDX-License-Identifier: Apache-2.0
// The sections that sweep: the article's loops one by one, over 64 MiB of descriptors and 256 MiB of payloads, then the
// loops of our operators over tables of 96 to 128 MiB, with all distances that they take. A table has a row for each
// distance and a column for each kind of prefetch; a line computed from the figures follows it.
//
//     payload       0     10.21   10.19   10.24   10.20   10.23   10.22   10.20   10.21
//     payload      64      4.81    4.79*   4.83    5.02    4.90    4.91    4.90    4.92
#include "bench/prefetch/prefetch_sections.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/common/memory_floor.h"
#include "bench/common/timing.h"
#include "bench/prefetch/descriptor_loops.h"
#include "bench/prefetch/prefetch_sweep.h"
#include "codegen/tuning/job.h"
#include "runtime/base/status.h"
#include "runtime/rows/prefetch.h"

namespace quern::bench {
namespace {

// ---- the article's loops ---------------------------------------------------------------------------------------

constexpr uint64_t kDescriptors = 4'000'000;

// Each run covers one slice of the rows, never the slice of the run before, whose lines are in the caches. It takes 1
// to 10 ms, so most runs are not interrupted.
uint32_t NumSlices(DescriptorLoop loop) { return loop == DescriptorLoop::kWork ? 128 : 16; }

// The names of the table's columns, one for each pair of arguments of __builtin_prefetch.
const std::vector<std::string>& PrefetchKindNames() {
  static const std::vector<std::string> names = {"read 3",  "read 2",  "read 1",  "read 0",
                                                 "write 3", "write 2", "write 1", "write 0"};
  return names;
}

PrefetchKind PrefetchKindOf(size_t way) { return {way >= 4, 3 - static_cast<int>(way % 4)}; }

// The time of a random line, measured once.
const MemoryFloor& FloorOf(const DescriptorArray& array) {
  static const MemoryFloor floor = MeasureFloor(array.payload_bytes(), array.rows() / 4);
  return floor;
}

absl::StatusOr<const DescriptorArray*> TheDescriptors(const Settings& settings) {
  static std::optional<DescriptorArray> array;
  if (!array.has_value()) {
    QUERN_ASSIGN_OR_RETURN(array, DescriptorArray::Make(static_cast<uint32_t>(settings.Rows(kDescriptors))));
  }
  return &*array;
}

absl::Status DescriptorsCell(const Settings& settings, DescriptorLoop loop, Section* section) {
  QUERN_ASSIGN_OR_RETURN(const DescriptorArray* const array, TheDescriptors(settings));
  const uint32_t num_slices = NumSlices(loop), rows = std::max(array->rows() / num_slices, 1U);
  std::vector<uint64_t> sums(num_slices);
  const auto run_slice = [&](uint32_t slice, PrefetchKind how, uint32_t distance) {
    return RunDescriptorLoop(loop, how, distance, array->descriptors() + uint64_t{slice} * rows, rows);
  };
  for (uint32_t slice = 0; slice < num_slices; ++slice) sums[slice] = run_slice(slice, {}, 0);
  uint32_t slice = 0;
  const auto run = [&](size_t way, uint32_t distance) -> absl::StatusOr<double> {
    slice = (slice + 1) % num_slices;
    const double start = Now();
    const uint64_t sum = run_slice(slice, PrefetchKindOf(way), distance);
    const double ns = (Now() - start) / rows * 1e9;
    if (sum == sums[slice]) return ns;
    return Internal("wrong sum at distance " + std::to_string(distance) + ": " + std::to_string(sum) +
                    "; accepted: " + std::to_string(sums[slice]));
  };
  PrefetchSweep sweep(PrefetchKindNames(), {0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024});
  QUERN_RETURN_IF_ERROR(sweep.Measure(settings.Turns(11), run));
  sweep.Print(LoopName(loop), *section);
#if defined(__x86_64__)
  sweep.PrintReading(LoopName(loop), 4);
#else
  sweep.PrintReading(LoopName(loop), PrefetchKindNames().size());
#endif
  if (loop == DescriptorLoop::kDescriptors) return absl::OkStatus();
  const MemoryFloor& floor = FloorOf(*array);
  std::printf("floor: a random line of %s costs %s ns (prefetched %d lines ahead)\n",
              Bytes(array->payload_bytes()).c_str(), Fixed(floor.line_ns).c_str(), floor.distance);
  return absl::OkStatus();
}

const char* QuestionOf(DescriptorLoop loop) {
  switch (loop) {
    case DescriptorLoop::kDescriptors:
      return "descriptors one after the other, no payload: does prefetching gain anything? ns a row";
    case DescriptorLoop::kPayload:
      return "a word of each payload, at random: what do distance, locality and read or write gain? ns a row";
    case DescriptorLoop::kBranch: return "and a branch on that word, as in a comparison of keys; ns a row";
    case DescriptorLoop::kWork:
      return "and 48 dependent steps of a hash of that word: work that hides a line; ns a row";
    case DescriptorLoop::kUpdate:
      return "a word of each payload is written: does a prefetch for writing gain more? ns a row";
  }
  return "";
}

void AddDescriptors(Cells* cells) {
  for (const DescriptorLoop loop : kDescriptorLoops) {
    std::vector<TextColumn> columns = {{"loop", -13}, {"distance", 9}};
    for (const std::string& name : PrefetchKindNames())
      columns.push_back({name.substr(name.find(' ') + 1) + " ", 9, name.substr(0, name.find(' ')) + ", locality"});
    cells->Begin(LoopName(loop), QuestionOf(loop), std::move(columns));
    cells->Add("sweep", [settings = cells->settings(), loop](Section* section) {
      return DescriptorsCell(settings, loop, section);
    });
  }
}

// ---- our operators' loops --------------------------------------------------------------------------------------

constexpr uint32_t kDramClass = 27;  // 64 to 128 MiB

struct OperatorCase {
  PrefetchLoop loop;
  KeyClass keys;
};

uint32_t ScaledClass(const Settings& settings) {
  const double size_class = kDramClass + std::floor(std::log2(settings.rows_scale));
  return static_cast<uint32_t>(std::max<double>(size_class, kSmallestSizeClass));
}

absl::Status OperatorCell(const Settings& settings, const OperatorCase& which, Section* section) {
  const TuningCell cell = {which.loop, which.keys, 1, ScaledClass(settings), 1};
  TuningData data;
  data.slice_ms = std::min(2.0, 200 * settings.rows_scale);
  QUERN_ASSIGN_OR_RETURN(const std::unique_ptr<TuningJob> job, MakeTuningJob(cell, data));
  const auto run = [&](size_t way, uint32_t distance) {
    PrefetchSetting setting;
    setting.distance = static_cast<uint16_t>(distance);
    setting.hint = static_cast<PrefetchHint>(way);
    return job->Run(setting);
  };
  std::vector<std::string> hints;
  for (size_t hint = 0; hint <= static_cast<size_t>(PrefetchHint::kWrite); ++hint)
    hints.emplace_back(HintText(static_cast<PrefetchHint>(hint)));
  PrefetchSweep sweep(hints, {0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, kWholeBatch});
  QUERN_RETURN_IF_ERROR(sweep.Measure(settings.Turns(9), run));
  sweep.Print(LoopText(which.loop), *section);
  sweep.PrintReading(std::string(LoopText(which.loop)) + " over " + Bytes(job->table_bytes()), hints.size());
  std::printf("without a profile a plan takes %s\n\n", PrintSetting(job->Default(), DefaultHint(which.loop)).c_str());
  return absl::OkStatus();
}

void AddOperators(Cells* cells) {
  static const OperatorCase cases[] = {{PrefetchLoop::kBuildOpen, KeyClass::kPacked},
                                       {PrefetchLoop::kProbeOpen, KeyClass::kPacked},
                                       {PrefetchLoop::kProbeUnchained, KeyClass::kPacked},
                                       {PrefetchLoop::kUpdateOpen, KeyClass::kPacked},
                                       {PrefetchLoop::kGather, KeyClass::kFixed}};
  cells->Begin("operators",
               "the same for the main loops of joins, aggregations and sorts, in compiled kernels; ns a row",
               {{"loop", -17},
                {"distance", 9},
                {"t0 ", 9, "hint"},
                {"t1 ", 9, "hint"},
                {"t2 ", 9, "hint"},
                {"nta ", 9, "hint"},
                {"w ", 9, "hint"}});
  for (const OperatorCase& which : cases)
    cells->Add(LoopText(which.loop), [settings = cells->settings(), &which](Section* section) {
      return OperatorCell(settings, which, section);
    });
}

}  // namespace

std::vector<NamedCell> AllPrefetchCells(const Settings& settings) {
  std::vector<NamedCell> all;
  Cells cells(settings, &all);
  AddDescriptors(&cells);
  AddOperators(&cells);
  AddPartitionedJoins(&cells);
  AddCounts(&cells);
  return all;
}

}  // namespace quern::bench
