// SPDX-License-Identifier: Apache-2.0
// Which Quern this is: what a kernel on disk must have been made by.
#ifndef QUERN_CODEGEN_CACHE_BUILD_IDENTITY_H_
#define QUERN_CODEGEN_CACHE_BUILD_IDENTITY_H_

#include <string_view>

namespace quern {

// "quern=0.1.0 sources=<hash>": the version, and a hash of all sources that decide what code comes out. Defined in a
// file that the build makes (tools/hash_sources.py).
std::string_view BuildIdentity();

}  // namespace quern

#endif  // QUERN_CODEGEN_CACHE_BUILD_IDENTITY_H_
