// SPDX-License-Identifier: Apache-2.0
// The tuner: measures machine facts, then cell after cell until the budget is spent. It returns a profile and all of
// its measurements.
#ifndef QUERN_CODEGEN_TUNING_TUNER_H_
#define QUERN_CODEGEN_TUNING_TUNER_H_

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/inspect/capture.h"
#include "codegen/machine/machine_facts.h"
#include "codegen/machine/profile.h"
#include "codegen/tuning/input_tuner.h"
#include "codegen/tuning/piece_tuner.h"
#include "codegen/tuning/replay.h"
#include "codegen/tuning/search.h"
#include "codegen/tuning/spill_tuner.h"

namespace quern {

struct TuningProgress {
  double share = 0;   // 0 .. 1 of the budget
  std::string doing;  // "probe_open packed 16 MiB"
};

struct TuningOptions {
  TuningEffort effort = TuningEffort::kMeasure;
  double budget_seconds = 60;
  uint32_t threads = 1;    // settings that win at 1 are checked at so many
  uint64_t max_bytes = 0;  // largest table; 0: half of the free memory, at most 2 GiB
  // Tune the loops of these kernels, at all sizes, and of the kernels of these pipelines, whose pieces, too; empty:
  // every loop, the pieces of two pipelines of the tuner's own, and how far ahead columns are prefetched.
  std::vector<std::string> specs;
  // Tune the loops of these jobs, at their sizes, and the pieces of the longest pipelines among them; empty: as above.
  std::vector<CapturedJob> replay;
  std::string spill_folder;  // where rows are written and read to tune that, too; empty: nowhere
  bool spill_alone = false;  // tune nothing else
  const Profile* start =
      nullptr;  // supplies known facts, which are not measured again; its entries stay where nothing better is found
  std::function<void(const TuningProgress&)> progress;
  const std::atomic<bool>* stop = nullptr;  // set: ends early with the results so far
};

struct TuningResult {
  MachineFacts facts;
  std::vector<CellResult> cells;
  std::optional<SpillTuning> spill;
  std::optional<PieceTuning> pieces;
  std::optional<InputTuning> input;
  size_t replayed = 0;        // number of jobs to replay of which a loop was measured
  double replayed_share = 0;  // of the time that all of them took
  Profile profile;            // ready to be written
  TuningEffort effort = TuningEffort::kMeasure;
  double seconds = 0;
  bool stopped = false;
};

// *Errors*: InvalidArgument for a text that Tune does not tune: a malformed spec, a filter or a map.
absl::Status CheckTunedSpec(const std::string& spec);

// The cells among these whose loops a kernel of the spec runs, with its keys; those that probe the tables of a pipeline
// are cells of tables that take turns. *Errors*: as CheckTunedSpec.
absl::StatusOr<std::vector<CellJob>> CellsOfSpec(const std::string& text, const std::vector<TuningCell>& all);

// *Cost*: the budget. *Threads*: one call at a time in a process, and nothing else should run. *Errors*:
// InvalidArgument for a malformed spec; FailedPrecondition while another call runs; those of the operators.
absl::StatusOr<TuningResult> Tune(const TuningOptions& options);

// Re-measures a sample of a profile's entries: each entry with its present times.
struct DriftRow {
  ProfileEntry entry;
  double ns = 0, default_ns = 0;
  bool drifted = false;  // the setting no longer beats the default beyond the noise
};
// The same of the size of pieces, with pipelines of the tuner's own.
struct PieceDrift {
  ProfilePieces pieces;
  double ns = 0, default_ns = 0;
  bool drifted = false;
};
// The same of the distances of input columns.
struct InputDrift {
  ProfileInput input;
  double ns = 0, default_ns = 0;
  bool drifted = false;
};
struct DriftReport {
  std::vector<DriftRow> rows;
  std::optional<PieceDrift> pieces;  // none: the profile has the default, or none
  std::optional<InputDrift> input;   // likewise
  std::string machine_difference;    // SignatureDifference
};
absl::StatusOr<DriftReport> CheckProfile(const Profile& profile, double budget_seconds);

}  // namespace quern

#endif  // QUERN_CODEGEN_TUNING_TUNER_H_
