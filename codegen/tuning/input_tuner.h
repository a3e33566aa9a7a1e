// SPDX-License-Identifier: Apache-2.0
// Finds how many rows ahead columns that are read in order should be prefetched: one distance for aggregations without
// keys, and one for all other operators.
#ifndef QUERN_CODEGEN_TUNING_INPUT_TUNER_H_
#define QUERN_CODEGEN_TUNING_INPUT_TUNER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/machine/input_choice.h"
#include "codegen/machine/profile.h"
#include "codegen/tuning/turns.h"

namespace quern {

struct InputTuningOptions {
  double seconds = 3;                                // approximate limit, compiling and making columns included
  uint64_t max_bytes = 0;                            // of the columns; 0: any
  std::function<void(const std::string&)> progress;  // called with the current measurement; may be empty
  const std::atomic<bool>* stop = nullptr;           // set: ends early; what was not decided keeps its default
};

// The two distances of InputRows.
enum class InputKind : uint8_t { kKeyed, kKeyless };

// A distance with its median, in ns a row.
struct InputCandidate {
  uint32_t rows = 0;
  double ns = 0;
  size_t num_runs = 0;
};

// What was found of one distance.
struct InputSearch {
  uint32_t rows = 0;                   // the best; the default where nothing beat it
  tuning::Costs costs, default_costs;  // ns a row, by kernel; empty where there was no time to compare
  double noise = 0;
  bool beats_default = false;
  std::vector<InputCandidate> candidates;
};

struct InputTuning {
  InputSearch keyed, keyless;

  // default_ns is 0 unless there was time for both.
  ProfileInput Found() const;
};

// Reads generated columns with compiled kernels, on one thread. *Cost*: options.seconds. *Threads*: one at a time;
// nothing else should run. *Errors*: ResourceExhausted where memory is short; those of the operators.
absl::StatusOr<InputTuning> TuneInput(const InputTuningOptions& options);

// The defaults and these distances in turns, for about so many seconds, at least three times. *Errors*: as above.
struct InputProof {
  double default_ns = 0, chosen_ns = 0;  // medians
  double noise = 0;                      // of their ratio
  size_t num_pairs = 0;
};
absl::StatusOr<InputProof> ProveInput(const InputTuningOptions& options, const InputRows& rows);

// The search itself, over any way to run a distance and any clock. run: ns a row, by kernel.
using RunInput = std::function<absl::StatusOr<tuning::Costs>(InputKind kind, uint32_t rows)>;
absl::StatusOr<InputTuning> SearchInput(const InputRows& defaults, const tuning::TurnClock& clock, const RunInput& run);

// For people: the distances that were tried and those that were taken.
std::string PrintInputTuning(const InputTuning& tuning);

}  // namespace quern

#endif  // QUERN_CODEGEN_TUNING_INPUT_TUNER_H_
