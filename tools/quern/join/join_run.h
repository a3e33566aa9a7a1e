// SPDX-License-Identifier: Apache-2.0
// Runs a prepared join with threads: build, probe, scan of unmatched build rows.
#ifndef QUERN_TOOLS_JOIN_JOIN_RUN_H_
#define QUERN_TOOLS_JOIN_JOIN_RUN_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "codegen/compiler.h"
#include "codegen/operators.h"
#include "runtime/base/memory.h"
#include "tools/quern/files/progress.h"
#include "tools/quern/join/join_columns.h"
#include "tools/quern/run/run_command.h"
#include "tools/quern/stream/append_batches.h"

namespace quern::cli {

struct JoinResult {
  OperatorResult result;  // run_ms: build_ms + probe_ms; threads: the most of any phase
  double build_ms = 0;
  double probe_ms = 0;
  JoinStats stats;
  bool prefetch_adapted = false;  // HashJoin::prefetch_adapted
};

// *Threads*: up to `threads` in each phase; one builds and scans if the build side is small. *Errors*: over the budget;
// data that does not match its Arrow type; a second match in a single join.
absl::StatusOr<JoinResult> RunPreparedJoin(const PreparedJoin& join, const CompiledKernel& compiled,
                                           const std::shared_ptr<MemoryBudget>& budget, uint32_t threads,
                                           Progress* progress);

// The same with inputs that are read piece by piece, rows that may be spilled, and results that go to a stream, in no
// order.
absl::StatusOr<JoinResult> StreamJoin(const PreparedJoin& join, const StreamedInput (&inputs)[2],
                                      const CompiledKernel& compiled, const StreamRun& run, ResultStream* results);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_JOIN_JOIN_RUN_H_
