// SPDX-License-Identifier: Apache-2.0
// The unit that a tuner times: a loop of a real operator over a table of one size, whose prefetch setting can change
// between runs.
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

  // Runs once with this setting, for about TuningData::slice_ms, and returns ns a row. *Errors*: the operator's.
  virtual absl::StatusOr<double> Run(const PrefetchSetting& setting) = 0;
  // The setting that an untuned plan takes; the baseline of comparisons.
  virtual PrefetchSetting Default() const = 0;
  // Bytes of the table that the loop touches, as built.
  virtual uint64_t table_bytes() const = 0;
};

// The rows of a job.
struct TuningData {
  uint64_t build_rows = 0;   // or groups, or rows to sort; 0: enough for a table of the cell's size class
  uint64_t group_bytes = 0;  // limit of a table of groups if build_rows is given; 0: none
  uint32_t hits_percent = 100;
  double zipf = 0;                                          // exponent by which probe rows choose keys; 0: uniform
  uint32_t rows_per_key = 1;                                // of the build side
  uint32_t key_bytes = 0;                                   // of strings; 0: 16
  double slice_ms = 2;                                      // of one run
  std::string spec;                                         // replaces the cell's own spec; "": that one
  std::vector<std::pair<std::string, std::string>> params;  // of its plan, except the layout, which the loop decides
  const Profile* facts = nullptr;  // its facts give the estimated default; null: the cache sizes do
};

// Builds the table and compiles (or finds) one kernel for all settings. *Cost*: of the table. *Errors*:
// ResourceExhausted if it does not fit in memory; Unimplemented for a cell without a job (a loop that does not exist
// for these keys).
absl::StatusOr<std::unique_ptr<TuningJob>> MakeTuningJob(const TuningCell& cell, const TuningData& data);

// The cells that an effort tunes on a machine with these facts, most useful first: loops x key classes x size classes x
// pipelines.
enum class TuningEffort : uint8_t { kEstimate, kMeasure, kPatient };
std::vector<TuningCell> CellsToTune(TuningEffort effort, const MachineFacts& facts, uint64_t max_bytes);

}  // namespace quern

#endif  // QUERN_CODEGEN_TUNING_JOB_H_
