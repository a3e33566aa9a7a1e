// SPDX-License-Identifier: Apache-2.0
// Runs a prepared set operation with threads: append both sides, finalise, read the rows.
#ifndef QUERN_TOOLS_SET_SET_RUN_H_
#define QUERN_TOOLS_SET_SET_RUN_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "codegen/compiler.h"
#include "codegen/operators.h"
#include "runtime/base/memory.h"
#include "tools/quern/files/progress.h"
#include "tools/quern/files/result_stream.h"
#include "tools/quern/run/run_command.h"
#include "tools/quern/set/set_columns.h"
#include "tools/quern/stream/append_batches.h"

namespace quern::cli {

struct SetResult {
  OperatorResult result;
  AggregateStats stats;  // of the groups
};

// count: only the number of rows. *Threads*: up to `threads`, at most one for each batch. *Errors*: over the budget;
// data that does not match its Arrow type.
absl::StatusOr<SetResult> RunPreparedSet(const PreparedSet& set, const CompiledKernel& compiled, bool count,
                                         const std::shared_ptr<MemoryBudget>& budget, uint32_t threads,
                                         Progress* progress);

// The same with inputs that are read piece by piece, LEFT then RIGHT; groups that may be spilled; and results that go
// to a stream.
absl::StatusOr<SetResult> StreamSet(const PreparedSet& set, const StreamedInput (&inputs)[2],
                                    const CompiledKernel& compiled, bool count, const StreamRun& run,
                                    ResultStream* results);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_SET_SET_RUN_H_
