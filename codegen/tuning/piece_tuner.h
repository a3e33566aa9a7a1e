// SPDX-License-Identifier: Apache-2.0
// Finds how many rows of a pipeline should pass all of its steps before the next ones do.
#ifndef QUERN_CODEGEN_TUNING_PIECE_TUNER_H_
#define QUERN_CODEGEN_TUNING_PIECE_TUNER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/machine/profile.h"
#include "codegen/plan/plan.h"
#include "codegen/tuning/turns.h"

namespace quern {

// A pipeline to measure.
struct GivenPipeline {
  std::string spec;
  PlanOverrides params = {};  // of its plan
  uint64_t num_rows = 0;      // of the source, if it has fewer than the tuner would make; 0: unknown
};

struct PieceTuningOptions {
  std::vector<GivenPipeline> pipelines;              // empty: two of the tuner's own
  bool skips_errors = false;                         // leave out pipelines with any error: those of another host
  double seconds = 3;                                // approximate limit, compiling and making rows included
  uint64_t num_rows = uint64_t{1} << 20;             // of a source, at most; few seconds have fewer
  uint64_t max_bytes = 0;                            // of a table; 0: any
  std::function<void(const std::string&)> progress;  // called with the current measurement; may be empty
  const std::atomic<bool>* stop = nullptr;           // set: ends early; what was not decided keeps its default
};

// A size with its median, in ns a row of the source.
struct PieceCandidate {
  uint32_t rows = 0;
  double ns = 0;
  size_t num_runs = 0;
};

// A pipeline that was to be measured.
struct MeasuredPipeline {
  std::string spec;
  bool is_given = true;          // else the tuner's own
  double share_of_rows_out = 0;  // rows at the end by rows of the source
  std::string why_not;           // it could not run over generated rows; "": it was measured
};

struct PieceTuning {
  ProfilePieces found;  // default_ns is 0 where there was no time, or no pipeline that could run
  std::vector<PieceCandidate> candidates;
  std::vector<MeasuredPipeline> pipelines;
  bool beats_default = false;
};

// Sends generated rows through the pipelines, with compiled kernels, on one thread. A pipeline whose rows cannot be
// made, or have no result, is left out. *Cost*: options.seconds. *Threads*: one at a time; nothing else should run.
// *Errors*: InvalidArgument for a bad spec; those of the operators.
absl::StatusOr<PieceTuning> TunePieces(const PieceTuningOptions& options);

// The default and a size in turns, for about so many seconds, at least three times. *Errors*: as above; Unimplemented
// where no pipeline can run.
struct PieceProof {
  double default_ns = 0, chosen_ns = 0;  // medians
  double noise = 0;                      // of their ratio
  size_t num_pairs = 0;
};
absl::StatusOr<PieceProof> ProvePieces(const PieceTuningOptions& options, uint32_t rows);

// The search itself, over any way to run a size and any clock. run: ns a row, by pipeline.
using RunPieces = std::function<absl::StatusOr<tuning::Costs>(uint32_t rows)>;
absl::StatusOr<PieceTuning> SearchPieces(const tuning::TurnClock& clock, const RunPieces& run);

// For people: the sizes that were tried and the one that was taken.
std::string PrintPieceTuning(const PieceTuning& tuning);

}  // namespace quern

#endif  // QUERN_CODEGEN_TUNING_PIECE_TUNER_H_
