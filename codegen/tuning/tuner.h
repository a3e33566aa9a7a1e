// SPDX-License-Identifier: Apache-2.0
// The tuner: machine facts, then cell after cell until the budget is spent; gives a profile and all that was measured on the way.
#ifndef QUERN_CODEGEN_TUNING_TUNER_H_
#define QUERN_CODEGEN_TUNING_TUNER_H_

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/machine_facts.h"
#include "codegen/profile.h"
#include "codegen/tuning/search.h"

namespace quern {

struct TuningProgress {
  double share = 0;   // 0 .. 1 of the budget
  std::string doing;  // "probe_open word 16 MiB"
};

struct TuningOptions {
  TuningEffort effort = TuningEffort::kMeasure;
  double budget_seconds = 60;
  uint32_t threads = 1;            // what holds at 1 is checked at so many
  uint64_t max_bytes = 0;          // largest table; 0: half of the memory that is free, at most 2 GiB
  std::vector<std::string> specs;  // tune what these kernels run, at all sizes; empty: every loop
  std::string replay_dir;          // tune the jobs that were captured there, at their sizes and distributions
  const Profile* start = nullptr;  // what is known already: its facts are taken, its entries kept where nothing better is found
  std::function<void(const TuningProgress&)> progress;
  const std::atomic<bool>* stop = nullptr;  // set: ends early with what there is
};

struct TuningResult {
  MachineFacts facts;
  std::vector<CellResult> cells;
  Profile profile;  // ready to be written
  TuningEffort effort = TuningEffort::kMeasure;
  double seconds = 0;
  bool stopped = false;
};

// *Cost*: the budget. *Threads*: one at a time in a process, and nothing else should run. *Errors*: InvalidArgument for a bad spec or
// capture; those of the operators.
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

// ---- proof -----------------------------------------------------------------------------------------------------

// One cell of the grid: table size x key shape x hit rate x skew x duplicates.
struct ProofCell {
  std::string shape;  // "i64", "utf8", "i64,i64": the keys; "agg i64", "sort utf8"
  PrefetchLoop loop = PrefetchLoop::kProbeOpen;
  uint64_t rows = 0;
  uint32_t hits_percent = 100;
  double zipf = 0;
  uint32_t rows_per_key = 1;
  // ns a row, medians of interleaved runs.
  double tuned_ns = 0, off_ns = 0, fixed16_ns = 0, best_ns = 0, noise = 0;
  PrefetchSetting tuned, best;
  uint64_t table_bytes = 0;
};
struct ProofOptions {
  double budget_seconds = 600;
  uint32_t threads = 1;
  uint64_t max_rows = uint64_t{1} << 27;
  std::function<void(const TuningProgress&)> progress;
};
absl::StatusOr<std::vector<ProofCell>> Prove(const Profile& profile, const ProofOptions& options);
// Median and worst regret against the exhaustive best, gains over fixed 16 and off, share of cells that lose, and which targets are met.
std::string ProofTable(const std::vector<ProofCell>& cells);

}  // namespace quern

#endif  // QUERN_CODEGEN_TUNING_TUNER_H_
