// SPDX-License-Identifier: Apache-2.0
// What happens when the process ends while threads compile: nothing of ours or of LLVM's is destroyed.
#ifndef QUERN_CODEGEN_BASE_PROCESS_END_H_
#define QUERN_CODEGEN_BASE_PROCESS_END_H_

namespace quern {

// Has `handler` called by exit(), also where std::atexit would be left out (process_end.cc). *Threads*: any.
void AtProcessEnd(void (*handler)());

}  // namespace quern

#endif  // QUERN_CODEGEN_BASE_PROCESS_END_H_
