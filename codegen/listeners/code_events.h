// SPDX-License-Identifier: Apache-2.0
// Announces code to profilers and debuggers: QUERN_JIT_PROFILE=perfmap,jitdump,gdb,vtune.
#ifndef QUERN_CODEGEN_LISTENERS_CODE_EVENTS_H_
#define QUERN_CODEGEN_LISTENERS_CODE_EVENTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace quern {

// One function of a loaded kernel.
struct LoadedFunction {
  std::string symbol;  // "quern_join_probe"
  uint64_t address = 0;
  uint64_t bytes = 0;
};

// A section of a kernel's object and its address, which a debugger's copy of the object needs.
struct LoadedSection {
  std::string name;
  uint64_t address = 0;
};

struct CodeLoaded {
  std::string spec;  // canonical: frames are named after it, "quern_join_probe [join.inner keys=i64]"
  std::string_view object;
  std::vector<LoadedFunction> functions;
  std::vector<LoadedSection> sections;
};

// Whether a listener is active; otherwise nobody needs to fill a CodeLoaded. *Cost*: one load.
bool WantsCodeEvents();
// Whether to use the templates with source lines.
bool WantsSourceLines();

// Announces code that is about to run. Destroying the result withdraws the announcement, if the listener supports that;
// destroy it before the code is unmapped. *Threads*: any. *Errors*: none; a listener that fails (a file that cannot be
// written) is one warning.
std::shared_ptr<const void> AnnounceCode(const CodeLoaded& code);

}  // namespace quern

#endif  // QUERN_CODEGEN_LISTENERS_CODE_EVENTS_H_
