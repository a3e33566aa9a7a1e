// SPDX-License-Identifier: Apache-2.0
// Runs of jobs in memory and under a limit, timed and in turns.
#ifndef QUERN_BENCH_SPILL_SPILL_RUN_H_
#define QUERN_BENCH_SPILL_SPILL_RUN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/spill/job_rows.h"
#include "codegen/compiler.h"
#include "codegen/operators.h"
#include "runtime/spill/spill_context.h"
#include "runtime/spill/spill_store.h"

namespace quern::bench {

// A job with its rows. *Threads*: any number may run it.
struct SpillJob {
  std::string name;  // "sort i64"
  std::shared_ptr<const Kernel> kernel;
  std::shared_ptr<const JobRows> build;  // null: no join
  std::shared_ptr<const JobRows> rows;   // of the probe side of a join

  uint64_t num_rows() const { return rows->spec().num_rows + (build == nullptr ? 0 : build->spec().num_rows); }
};

// How a job is run.
struct RunSettings {
  unsigned threads = 1;
  uint64_t limit_bytes = 0;  // 0: none
  bool spills = false;
  FileCalls* calls = SystemFileCalls();
  BlockCodec codec = BlockCodec::kNone;
  bool digests = false;  // of the result; on one thread
};

// What a run was like.
struct Measured {
  double seconds = 1e9;
  uint64_t peak_bytes = 0;  // of the job's budget
  uint64_t rows_out = 0;
  uint64_t digest = 0;  // of all result rows; of sorts, also of their order
  SpillStats spill;
  bool is_refused = false;  // the limit was too low; then nothing else is known
};

struct SpillContender {
  RunSettings settings;
  Measured best;
};

// The kinds of jobs, by name: "join i64", "join text", "aggregate", "sort i64", "sort text,i64".
const std::vector<std::string>& SpillJobNames();
// rows: of the larger side. is_stored: of the rows.
absl::StatusOr<SpillJob> MakeSpillJob(const std::string& name, uint64_t rows, bool is_stored);

// The folder of spilled rows, as the command line chooses it.
std::string SpillFolder();

// *Errors*: the job's, except that a refusal of memory is an outcome.
absl::StatusOr<Measured> RunOnce(const SpillJob& job, const RunSettings& settings);

// Runs every contender once with digests, which must be equal, and then by turns; the best turn of each counts. One
// that is refused memory takes part no more. *Errors*: the job's; Internal for different results.
absl::Status TakeTurns(const SpillJob& job, int turns, std::vector<SpillContender>* contenders);

}  // namespace quern::bench

#endif  // QUERN_BENCH_SPILL_SPILL_RUN_H_
