// SPDX-License-Identifier: Apache-2.0
// The tuner: machine facts, then cell after cell until the budget is spent; gives a profile and all that was measured
// on the way.
#ifndef QUERN_CODEGEN_TUNING_TUNER_H_
#define QUERN_CODEGEN_TUNING_TUNER_H_

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/inspect/capture.h"
#include "codegen/machine/machine_facts.h"
#include "codegen/machine/profile.h"
#include "codegen/tuning/search.h"

namespace quern {

struct TuningProgress {
  double share = 0;   // 0 .. 1 of the budget
  std::string doing;  // "probe_open word 16 MiB"
};

struct TuningOptions {
  TuningEffort effort = TuningEffort::kMeasure;
  double budget_seconds = 60;
  uint32_t threads = 1;             // what holds at 1 is checked at so many
  uint64_t max_bytes = 0;           // largest table; 0: half of the memory that is free, at most 2 GiB
  std::vector<std::string> specs;   // tune what these kernels run, at all sizes; empty: every loop
  std::vector<CapturedJob> replay;  // tune what these jobs ran, at their sizes; empty: as above
  const Profile* start =
      nullptr;  // what is known already: its facts are taken, its entries kept where nothing better is found
  std::function<void(const TuningProgress&)> progress;
  const std::atomic<bool>* stop = nullptr;  // set: ends early with what there is
};

struct TuningResult {
  MachineFacts facts;
  std::vector<CellResult> cells;
  size_t replayed = 0;        // of the jobs to replay, those of which a loop was measured
  double replayed_share = 0;  // of the time that all of them took
  Profile profile;            // ready to be written
  TuningEffort effort = TuningEffort::kMeasure;
  double seconds = 0;
  bool stopped = false;
};

// *Cost*: the budget. *Threads*: one at a time in a process, and nothing else should run. *Errors*: InvalidArgument for
// a bad spec; FailedPrecondition while another one runs; those of the operators.
absl::StatusOr<TuningResult> Tune(const TuningOptions& options);

// Re-measures a sample of a profile's entries: what each said and what is now.
struct DriftRow {
  ProfileEntry entry;
  double ns = 0, default_ns = 0;
  bool drifted = false;  // the setting does not beat the default any more, beyond the noise
};
struct DriftReport {
  std::vector<DriftRow> rows;
  std::string machine_difference;  // SignatureDifference
};
absl::StatusOr<DriftReport> CheckProfile(const Profile& profile, double budget_seconds);

}  // namespace quern

#endif  // QUERN_CODEGEN_TUNING_TUNER_H_
