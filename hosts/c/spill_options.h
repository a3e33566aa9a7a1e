// SPDX-License-Identifier: Apache-2.0
// Where a job writes rows, by a host's options. Internal.
#ifndef QUERN_HOSTS_C_SPILL_OPTIONS_H_
#define QUERN_HOSTS_C_SPILL_OPTIONS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "hosts/c/quern.h"
#include "runtime/base/memory.h"
#include "runtime/spill/spill_context.h"

namespace quern::c_abi {

// planned: of the kernel's plan; options of the host come first. host: passed to the host's functions. *Errors*:
// InvalidArgument for options that are not accepted.
absl::StatusOr<std::shared_ptr<SpillContext>> SpillOf(const quern_spill_options& given, void* host,
                                                      const std::shared_ptr<MemoryBudget>& budget,
                                                      const SpillSettings& planned);

}  // namespace quern::c_abi

#endif  // QUERN_HOSTS_C_SPILL_OPTIONS_H_
