// SPDX-License-Identifier: Apache-2.0
// QUERN_VERBOSE=1: a line for each kernel that is made; its last field can be pasted into a shell.
#ifndef QUERN_CODEGEN_INSPECT_VERBOSE_H_
#define QUERN_CODEGEN_INSPECT_VERBOSE_H_

#include <string>
#include <vector>

#include "codegen/kernel/kernel.h"

namespace quern {

// Whether QUERN_VERBOSE was 1 at the first call; a bad value is one warning and counts as 0. *Cost*: one load.
bool IsVerbose();

// "quern dump plan 'join.inner keys=i64'": the words, quoted for a POSIX shell.
std::string CommandLine(const std::vector<std::string>& words);

// If IsVerbose: logs that a kernel was compiled, loaded from disk, or made as the generic one of a spec. *Threads*:
// any.
void LogCompiled(const Kernel& kernel, CacheOutcome cache, const PlanOverrides& overrides);

}  // namespace quern

#endif  // QUERN_CODEGEN_INSPECT_VERBOSE_H_
