// SPDX-License-Identifier: Apache-2.0
// What a tuner times: a loop of a real operator over a table of one size, which can be told another prefetch setting
// between two runs.
#ifndef QUERN_CODEGEN_TUNING_JOB_H_
#define QUERN_CODEGEN_TUNING_JOB_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/machine/profile.h"

namespace quern {

// *Threads*: one at a time; a job of several threads starts its own.
class TuningJob {
 public:
  virtual ~TuningJob() = default;

  // Nanoseconds a row of one run with this setting. A run takes about SliceMs(). *Errors*: the operator's.
  virtual absl::StatusOr<double> Run(const PrefetchSetting& setting) = 0;
  // What the plan would take where nothing has been tuned; what is compared to.
  virtual PrefetchSetting Default() const = 0;
  // Bytes of the table that the loop touches, once it is there.
  virtual uint64_t table_bytes() const = 0;
};

// The rows of a job.
struct TuningData {
  uint64_t build_rows = 0;   // or groups, or rows to sort; 0: as many as make a table of the cell's size class
  uint64_t group_bytes = 0;  // a table of groups should not grow beyond, where there are build_rows; 0: any
  uint32_t hits_percent = 100;
  double zipf = 0;                                          // exponent by which probe rows choose keys; 0: all alike
  uint32_t rows_per_key = 1;                                // of the build side
  uint32_t key_bytes = 0;                                   // of strings; 0: 16
  double slice_ms = 2;                                      // of one run
  std::string spec;                                         // to run instead of the cell's own; "": that
  std::vector<std::pair<std::string, std::string>> params;  // of its plan, but for the layout, which is the loop's
  const Profile* facts = nullptr;  // by whose facts the default is estimated; null: by the caches
};

// Builds the table; compiles (or finds) one kernel, whatever is tried with it. *Cost*: of the table. *Errors*:
// ResourceExhausted where it does not fit the memory; Unimplemented for a cell that no job has (a loop that does not
// exist for these keys).
absl::StatusOr<std::unique_ptr<TuningJob>> MakeTuningJob(const TuningCell& cell, const TuningData& data);

// The cells that an effort tunes, most useful first, on a machine of these facts: loops x key classes x size classes x
// pipelines.
enum class TuningEffort : uint8_t { kEstimate, kMeasure, kPatient };
std::vector<TuningCell> CellsToTune(TuningEffort effort, const MachineFacts& facts, uint64_t max_bytes);

}  // namespace quern

#endif  // QUERN_CODEGEN_TUNING_JOB_H_
