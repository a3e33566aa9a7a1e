// SPDX-License-Identifier: Apache-2.0
// Runs a prepared map with threads.
#ifndef QUERN_TOOLS_MAP_MAP_RUN_H_
#define QUERN_TOOLS_MAP_MAP_RUN_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "runtime/base/memory.h"
#include "tools/quern/files/progress.h"
#include "tools/quern/map/map_request.h"
#include "tools/quern/run/run_command.h"

namespace quern::cli {

// The results, in the order of the input; map and condition have their kernels. count: the number of rows alone, of
// which none is computed. *Threads*: up to `threads`, and one for each batch at most. *Errors*: over the budget; a row
// without a result; data that is not what its Arrow type says.
absl::StatusOr<OperatorResult> RunPreparedMap(const PreparedMap& prepared, bool count,
                                              const std::shared_ptr<MemoryBudget>& budget, uint32_t threads,
                                              Progress* progress);

}  // namespace quern::cli

#endif  // QUERN_TOOLS_MAP_MAP_RUN_H_
