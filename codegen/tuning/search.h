// SPDX-License-Identifier: Apache-2.0
// Finds the best prefetch setting of one cell: candidates take turns, losers leave early, and what does not beat the
// default by more than the noise is not taken.
#ifndef QUERN_CODEGEN_TUNING_SEARCH_H_
#define QUERN_CODEGEN_TUNING_SEARCH_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/machine/profile.h"
#include "codegen/tuning/job.h"

namespace quern {

// Seconds; a test has one that no real time passes on.
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
  size_t best = 0, by_default = 0, off = 0;  // places in candidates
  double noise = 0;            // share of ns by which two measurements (medians) of the same setting may differ
  bool beats_default = false;  // beyond the noise: the only ones that go to a profile as settings
  double seconds = 0;

  ProfileEntry Entry() const;
};

struct SearchOptions {
  TuningEffort effort = TuningEffort::kMeasure;
  double seconds = 1;  // at most
  TuningClock clock = SteadyClock();
};

// Sweeps distances first, then (what the loop has of) stages, hints, group, batch at the best distance; kPatient tries
// more of each.
// *Errors*: the job's.
absl::StatusOr<CellResult> SearchCell(const TuningCell& cell, TuningJob* job, const SearchOptions& options);

}  // namespace quern

#endif  // QUERN_CODEGEN_TUNING_SEARCH_H_
