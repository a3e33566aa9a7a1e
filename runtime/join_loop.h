// SPDX-License-Identifier: Apache-2.0
// What drives the stages of a join kernel, batch after batch.
#ifndef QUERN_RUNTIME_JOIN_LOOP_H_
#define QUERN_RUNTIME_JOIN_LOOP_H_

#include "runtime/kernel_abi.h"

namespace quern {

// Appends rows to the chunk until the batch (kQuernDone) or the chunk's space ends (kQuernFull).
int32_t AppendRows(const QuernJoinEntryPoints& kernel, QuernJoinAppendArgs* args);

// Fills the output batch until the input ends (kQuernDone) or the output is full (kQuernFull: call again with an emptied one).
int32_t ProbeRows(const QuernJoinEntryPoints& kernel, QuernJoinProbeArgs* args);

}  // namespace quern

#endif  // QUERN_RUNTIME_JOIN_LOOP_H_
