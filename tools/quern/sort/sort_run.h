// SPDX-License-Identifier: Apache-2.0
// Runs a prepared sort with threads: append, sort, read the rows.
#ifndef QUERN_TOOLS_SORT_SORT_RUN_H_
#define QUERN_TOOLS_SORT_SORT_RUN_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "codegen/compiler.h"
#include "codegen/operators.h"
#include "runtime/base/memory.h"
#include "runtime/sort/row_sort.h"
#include "tools/quern/files/progress.h"
#include "tools/quern/run/run_command.h"
#include "tools/quern/sort/sort_request.h"
#include "tools/quern/stream/append_batches.h"

namespace quern::cli {

struct SortResult {
  OperatorResult result;
  SortStats stats;
};

// count: only the number of rows, after all the work but writing them. *Threads*: up to `threads`, at most one for each
// batch. *Errors*: over the budget; data that does not match its Arrow type.
absl::StatusOr<SortResult> RunPreparedSort(const PreparedSort& prepared, const CompiledKernel& compiled, bool count,
                                           const std::shared_ptr<MemoryBudget>& budget, uint32_t threads,
                                           Progress* progress);

// The same with an input that is read piece by piece, rows that may be spilled, and results that go to a stream.
absl::StatusOr<SortResult> StreamSort(const PreparedSort& prepared, const StreamedInput& input,
                                      const CompiledKernel& compiled, bool count, const StreamRun& run,
                                      ResultStream* results);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_SORT_SORT_RUN_H_
