// SPDX-License-Identifier: Apache-2.0
// What was captured of a host's jobs (codegen/inspect/capture.h), as jobs that a tuner can time.
#ifndef QUERN_CODEGEN_TUNING_REPLAY_H_
#define QUERN_CODEGEN_TUNING_REPLAY_H_

#include <cstddef>
#include <vector>

#include "codegen/inspect/capture.h"
#include "codegen/tuning/job.h"

namespace quern {

// A cell, and the rows that it is measured with.
struct CellJob {
  TuningCell cell;
  TuningData data;
  double weight = 1;  // of its share of the time
};

// The loops that these jobs ran, at one thread, those first that took longest; of several in one cell the first. None
// of tables above `max_bytes`, nor of jobs whose plan does not prefetch.
std::vector<CellJob> CellsToReplay(const std::vector<CapturedJob>& jobs, uint64_t max_bytes);

}  // namespace quern

#endif  // QUERN_CODEGEN_TUNING_REPLAY_H_
