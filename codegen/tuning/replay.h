// SPDX-License-Identifier: Apache-2.0
// Turns the captured jobs of a host (codegen/inspect/capture.h) into jobs that a tuner can time.
#ifndef QUERN_CODEGEN_TUNING_REPLAY_H_
#define QUERN_CODEGEN_TUNING_REPLAY_H_

#include <cstddef>
#include <vector>

#include "codegen/inspect/capture.h"
#include "codegen/tuning/job.h"

namespace quern {

// A cell and the data that it is measured with.
struct CellJob {
  TuningCell cell;
  TuningData data;
  double weight = 1;  // its relative share of the tuning time
};

// The loops that these jobs ran, at one thread, the longest first; of several loops in one cell, only the first. Leaves
// out tables above `max_bytes` and jobs whose plan does not prefetch.
std::vector<CellJob> CellsToReplay(const std::vector<CapturedJob>& jobs, uint64_t max_bytes);

}  // namespace quern

#endif  // QUERN_CODEGEN_TUNING_REPLAY_H_
