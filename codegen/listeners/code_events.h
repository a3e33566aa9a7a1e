// SPDX-License-Identifier: Apache-2.0
// Tells profilers and debuggers what code is where: QUERN_JIT_PROFILE=perfmap,jitdump,gdb,vtune.
#ifndef QUERN_CODEGEN_LISTENERS_CODE_EVENTS_H_
#define QUERN_CODEGEN_LISTENERS_CODE_EVENTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace quern {

// One function of a kernel that was loaded.
struct LoadedFunction {
  std::string symbol;  // "quern_join_probe"
  uint64_t address = 0;
  uint64_t bytes = 0;
};

// A section of a kernel's object and where it was loaded, so that a debugger's copy of the object can be given its
// addresses.
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

// Whether anyone is to be told: otherwise nobody need gather what CodeLoaded holds. *Cost*: one load.
bool WantsCodeEvents();
// Whether templates with source lines are to be used.
bool WantsSourceLines();

// Announces code that is about to run. Destroying what it answers takes the announcement back, where the listener can
// forget; to be done before the code is unmapped. *Threads*: any. *Errors*: none; a listener that fails (a file that
// cannot be written) is one warning.
std::shared_ptr<const void> AnnounceCode(const CodeLoaded& code);

}  // namespace quern

#endif  // QUERN_CODEGEN_LISTENERS_CODE_EVENTS_H_
