// SPDX-License-Identifier: Apache-2.0
// Finds the best prefetch setting of one cell: candidates take turns, losers leave early, and a setting must beat the
// default by more than the noise.
#ifndef QUERN_CODEGEN_TUNING_SEARCH_H_
#define QUERN_CODEGEN_TUNING_SEARCH_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/machine/profile.h"
#include "codegen/tuning/job.h"

namespace quern {

// Seconds; tests substitute a clock on which no real time passes.
using TuningClock = std::function<double()>;
TuningClock SteadyClock();

struct CandidateResult {
  PrefetchSetting setting;
  double ns = 0;                   // a row: median of its runs
  double low_ns = 0, high_ns = 0;  // quartiles
  uint32_t runs = 0;
  bool dropped = false;  // left the race early
};

struct CellResult {
  TuningCell cell;
  uint64_t table_bytes = 0;
  std::vector<CandidateResult> candidates;   // in the order tried; the default and "off" are among them
  size_t best = 0, by_default = 0, off = 0;  // indices in candidates
  double noise = 0;            // share of ns by which two measurements (medians) of the same setting may differ
  bool beats_default = false;  // beyond the noise; otherwise the profile keeps the default
  double seconds = 0;

  ProfileEntry Entry() const;
};

struct SearchOptions {
  TuningEffort effort = TuningEffort::kMeasure;
  double seconds = 1;  // at most
  TuningClock clock = SteadyClock();
};

// Sweeps distances first; then, at the best distance, those of stages, hints, group and batch that the loop has.
// kPatient tries more of each.
// *Errors*: the job's.
absl::StatusOr<CellResult> SearchCell(const TuningCell& cell, TuningJob* job, const SearchOptions& options);

}  // namespace quern

#endif  // QUERN_CODEGEN_TUNING_SEARCH_H_
