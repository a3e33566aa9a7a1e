// SPDX-License-Identifier: Apache-2.0
// The versions that the CLI names; set by its CMakeLists.txt.
#ifndef QUERN_TOOLS_RUN_VERSION_H_
#define QUERN_TOOLS_RUN_VERSION_H_

#ifndef QUERN_VERSION
#define QUERN_VERSION "unknown"
#endif
#ifndef QUERN_LLVM_VERSION
#define QUERN_LLVM_VERSION "unknown"
#endif

namespace quern::cli {

constexpr const char* kVersion = QUERN_VERSION;
constexpr const char* kLlvmVersion = QUERN_LLVM_VERSION;

}  // namespace quern::cli

#endif  // QUERN_TOOLS_RUN_VERSION_H_
