// SPDX-License-Identifier: Apache-2.0
// Runs a prepared aggregation with threads: append, finalise, read the groups.
#ifndef QUERN_TOOLS_AGGREGATE_AGGREGATE_RUN_H_
#define QUERN_TOOLS_AGGREGATE_AGGREGATE_RUN_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "codegen/compiler.h"
#include "codegen/operators.h"
#include "runtime/base/memory.h"
#include "tools/quern/aggregate/aggregate_columns.h"
#include "tools/quern/files/progress.h"
#include "tools/quern/run/run_command.h"
#include "tools/quern/stream/append_batches.h"

namespace quern::cli {

struct AggregateResult {
  OperatorResult result;
  AggregateStats stats;
};

// count: only the number of groups. *Threads*: up to `threads`, at most one for each batch. *Errors*: over the budget;
// sums that do not fit; data that does not match its Arrow type.
absl::StatusOr<AggregateResult> RunPreparedAggregate(const PreparedAggregate& prepared, const CompiledKernel& compiled,
                                                     bool count, const std::shared_ptr<MemoryBudget>& budget,
                                                     uint32_t threads, Progress* progress);

// The same with an input that is read piece by piece, groups that may be spilled, and results that go to a stream.
absl::StatusOr<AggregateResult> StreamAggregate(const PreparedAggregate& prepared, const StreamedInput& input,
                                                const CompiledKernel& compiled, bool count, const StreamRun& run,
                                                ResultStream* results);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_AGGREGATE_AGGREGATE_RUN_H_
