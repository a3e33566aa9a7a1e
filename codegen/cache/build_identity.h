// SPDX-License-Identifier: Apache-2.0
// Identifies the build of Quern; a kernel on disk is used only by the build that compiled it.
#ifndef QUERN_CODEGEN_CACHE_BUILD_IDENTITY_H_
#define QUERN_CODEGEN_CACHE_BUILD_IDENTITY_H_

#include <string_view>

namespace quern {

// "quern=0.1.0 sources=<hash>": the version, and a hash of all sources that decide generated code. Defined in a file
// that the build generates (tools/hash_sources.py).
std::string_view BuildIdentity();

}  // namespace quern

#endif  // QUERN_CODEGEN_CACHE_BUILD_IDENTITY_H_
