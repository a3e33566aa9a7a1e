// SPDX-License-Identifier: Apache-2.0
// QUERN_VERBOSE=1: a line for each kernel that is made, whose last field can be pasted into a shell.
#ifndef QUERN_CODEGEN_INSPECT_VERBOSE_H_
#define QUERN_CODEGEN_INSPECT_VERBOSE_H_

#include <string>
#include <vector>

#include "codegen/kernel/kernel.h"

namespace quern {

// Whether QUERN_VERBOSE is 1, as it was at the first call; a bad value is one warning and no. *Cost*: one load.
bool IsVerbose();

// "quern dump plan 'join.inner keys=i64'": the words as a POSIX shell reads them back.
std::string CommandLine(const std::vector<std::string>& words);

// Says, if IsVerbose, that a kernel was made: compiled, loaded from disk, or the generic one of a spec. *Threads*: any.
void LogCompiled(const Kernel& kernel, CacheOutcome cache, const PlanOverrides& overrides);

}  // namespace quern

#endif  // QUERN_CODEGEN_INSPECT_VERBOSE_H_
