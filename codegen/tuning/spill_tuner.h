// SPDX-License-Identifier: Apache-2.0
// Finds how rows are best spilled to a folder: the size of blocks, and how many are read ahead and written behind.
#ifndef QUERN_CODEGEN_TUNING_SPILL_TUNER_H_
#define QUERN_CODEGEN_TUNING_SPILL_TUNER_H_

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/machine/profile.h"

namespace quern {

struct SpillTuningOptions {
  std::string folder;
  double seconds = 6;                                // approximate limit
  uint64_t num_bytes = uint64_t{32} << 20;           // of rows in one run
  std::function<void(const std::string&)> progress;  // called with the current measurement; may be empty
  const std::atomic<bool>* stop = nullptr;           // set: ends early; what was not decided keeps its default
};

// A choice with its medians.
struct SpillCandidate {
  SpillChoice choice;
  SpillSpeed speed;
  size_t num_runs = 0;
};

struct SpillTuning {
  ProfileSpill found;
  std::vector<SpillCandidate> candidates;  // in the order in which they were tried
  bool beats_default = false;
};

// Writes rows with a RowWriter and reads them with a RowReader, in nameless files of the folder. *Cost*:
// options.seconds. *Threads*: one at a time; nothing else should run. *Errors*: those of the writer and the reader.
absl::StatusOr<SpillTuning> TuneSpilling(const SpillTuningOptions& options);

// One run with a choice: what TuneSpilling measures. *Errors*: as above.
absl::StatusOr<SpillSpeed> MeasureSpilling(const std::string& folder, const SpillChoice& choice, uint64_t num_bytes);

// The default and a choice in turns, for about so many seconds, at least three times: medians.
struct SpillProof {
  SpillSpeed by_default, chosen;
  size_t num_pairs = 0;
};
absl::StatusOr<SpillProof> ProveSpilling(const SpillTuningOptions& options, const SpillChoice& choice);

// The search itself, over any way to run a choice and any clock.
struct SpillSearch {
  std::function<absl::StatusOr<SpillSpeed>(const SpillChoice&)> run;
  std::function<double()> now;  // seconds
  double end = 0;
  std::function<bool()> stops;  // may be empty
};
absl::StatusOr<SpillTuning> SearchSpilling(const SpillSearch& search);

// For people: the choices that were tried and the one that was taken.
std::string PrintSpillTuning(const SpillTuning& tuning);

}  // namespace quern

#endif  // QUERN_CODEGEN_TUNING_SPILL_TUNER_H_
