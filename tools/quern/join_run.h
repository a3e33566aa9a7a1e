// SPDX-License-Identifier: Apache-2.0
// Running one prepared join with threads: build, probe, and the rows of the build side that come out on their own.
#ifndef QUERN_TOOLS_QUERN_JOIN_RUN_H_
#define QUERN_TOOLS_QUERN_JOIN_RUN_H_

#include <arrow/type_fwd.h>

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "codegen/compiler.h"
#include "runtime/memory.h"
#include "tools/quern/join_columns.h"
#include "tools/quern/progress.h"

namespace quern::cli {

struct JoinResult {
  std::shared_ptr<arrow::Table> table;  // nullptr where the spec has no payload: rows were counted
  uint64_t num_rows = 0;
  double build_ms = 0;
  double probe_ms = 0;
  uint32_t threads = 1;  // the most of any phase
  JoinStats stats;
};

// *Threads*: up to `threads` in each phase; one builds and drains where the build side is small. *Errors*: over the budget; data that is
// not what its Arrow type says; a second match in a single join.
absl::StatusOr<JoinResult> RunPreparedJoin(const PreparedJoin& join, const CompiledKernel& compiled,
                                           const std::shared_ptr<MemoryBudget>& budget, uint32_t threads, Progress* progress);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_QUERN_JOIN_RUN_H_
