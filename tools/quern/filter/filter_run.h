// SPDX-License-Identifier: Apache-2.0
// Runs a prepared filter with threads.
#ifndef QUERN_TOOLS_FILTER_FILTER_RUN_H_
#define QUERN_TOOLS_FILTER_FILTER_RUN_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "codegen/compiler.h"
#include "codegen/operators.h"
#include "runtime/base/memory.h"
#include "tools/quern/files/progress.h"
#include "tools/quern/filter/filter_request.h"
#include "tools/quern/run/run_command.h"

namespace quern::cli {

// The rows that pass, in the order of the input. count: their number alone. *Threads*: up to `threads`, and one for
// each batch at most.
// *Errors*: over the budget; data that is not what its Arrow type says.
absl::StatusOr<OperatorResult> RunPreparedFilter(const PreparedFilter& prepared, const CompiledKernel& compiled,
                                                 bool count, const std::shared_ptr<MemoryBudget>& budget,
                                                 uint32_t threads, Progress* progress);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_FILTER_FILTER_RUN_H_
