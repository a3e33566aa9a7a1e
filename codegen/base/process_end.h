// SPDX-License-Identifier: Apache-2.0
// When the process ends while threads compile, no static object of Quern or LLVM is destroyed.
#ifndef QUERN_CODEGEN_BASE_PROCESS_END_H_
#define QUERN_CODEGEN_BASE_PROCESS_END_H_

namespace quern {

// Makes exit() call `handler`, even where std::atexit would be dropped (process_end.cc). *Threads*: any.
void AtProcessEnd(void (*handler)());

}  // namespace quern

#endif  // QUERN_CODEGEN_BASE_PROCESS_END_H_
