// SPDX-License-Identifier: Apache-2.0
// The gain of a profile over a grid of jobs for which it was not tuned one by one: tuned settings compared with none,
// with the 16 rows that engines hard-code, and with the best possible.
#ifndef QUERN_TOOLS_REPORT_PROOF_H_
#define QUERN_TOOLS_REPORT_PROOF_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/machine/profile.h"
#include "codegen/tuning/tuner.h"

namespace quern {

// One job of the grid: table size x key job x hit rate x skew x duplicates.
struct ProofCell {
  std::string job;  // "join i64, open", "aggregate utf8"
  PrefetchLoop loop = PrefetchLoop::kProbeOpen;
  KeyClass keys = KeyClass::kPacked;
  uint32_t log2_rows = 10;  // of the build side, or groups
  uint32_t hits_percent = 100;
  double zipf = 0;
  uint32_t rows_per_key = 1;
};

// A cell with its measurements in ns a row: medians of runs that took turns, separate from the runs that chose the
// best.
struct ProofResult {
  ProofCell cell;
  uint64_t table_bytes = 0;
  PrefetchSetting tuned,
      best;  // the profile's setting, or an estimate if it has none; the best of all distances
  double tuned_ns = 0, off_ns = 0, fixed16_ns = 0, best_ns = 0;
};

struct ProofOptions {
  double budget_seconds = 120;
  uint64_t max_bytes = 0;  // largest table; 0: whatever fits in memory
  std::function<void(const TuningProgress&)> progress;
  const std::atomic<bool>* stop = nullptr;  // set: ends early with the results so far
};

// All cells, in an order in which any part of them is spread over the grid.
std::vector<ProofCell> ProofGrid();

// Measures cells until the budget is spent. *Cost*: the budget. *Errors*: the operators'; a cell without enough memory
// is left out.
absl::StatusOr<std::vector<ProofResult>> Prove(const Profile& profile, const ProofOptions& options);

// A line for each cell, for other programs: the cell, the settings, ns a row.
std::string ProofCsv(const std::vector<ProofResult>& results);

// A line for each job and size; then each target with its measurement and whether it is met.
std::string ProofTable(const std::vector<ProofResult>& results, const MachineSignature& machine);

}  // namespace quern

#endif  // QUERN_TOOLS_REPORT_PROOF_H_
