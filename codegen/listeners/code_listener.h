// SPDX-License-Identifier: Apache-2.0
// One profiler or debugger that is told of code, and how each of the four is made. Internal to codegen.
#ifndef QUERN_CODEGEN_LISTENERS_CODE_LISTENER_H_
#define QUERN_CODEGEN_LISTENERS_CODE_LISTENER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/listeners/code_events.h"

namespace quern {

// From this address on, up to the next one's, code is of this line.
struct SourceLine {
  uint64_t address = 0;
  std::string file;  // "runtime/blocks/blocks.h", relative to the top folder; of what was inlined here
  uint32_t line = 0;
  std::string outer_file;  // of the function that it was inlined into: "ir-templates/join.cc"
  uint32_t outer_line = 0;
};

// A function as people shall see it.
struct NamedFunction {
  std::string name;  // "quern_join_probe [join.inner keys=i64]", one line of at most kMaxFrameNameBytes
  uint64_t address = 0;
  uint64_t bytes = 0;
  std::vector<SourceLine> lines;  // by address; empty where the object has no source lines, or no listener wants them
};

class CodeListener {
 public:
  virtual ~CodeListener() = default;
  virtual bool WantsLines() const { return false; }
  // Whether it reads source lines out of the object by itself.
  virtual bool ReadsObject() const { return false; }
  // As AnnounceCode of code_events.h; null where this listener cannot forget. *Threads*: any.
  virtual std::shared_ptr<const void> Announce(const CodeLoaded& code, const std::vector<NamedFunction>& functions) = 0;
};

constexpr size_t kMaxFrameNameBytes = 240;  // perf cuts names at 512, and listings of them are read by people

// The name of a frame: control characters of constants are blanks, and what is too long ends with "..]".
std::string FrameName(std::string_view symbol, std::string_view spec);

// Source lines of each of the functions, in their order, read from the object's line table.
std::vector<std::vector<SourceLine>> ReadSourceLines(const CodeLoaded& code);

// FOLDER/perf-PID.map; perf itself looks in /tmp.
std::unique_ptr<CodeListener> MakePerfMap(std::string folder);
// FOLDER/jit-PID.dump.
std::unique_ptr<CodeListener> MakeJitDump(std::string folder);
// The list that GDB and LLDB read through __jit_debug_descriptor.
std::unique_ptr<CodeListener> MakeGdbRegistration();
// The collector is a library: the path that VTune leaves in INTEL_JIT_PROFILER64.
std::unique_ptr<CodeListener> MakeVtune(const std::string& collector);

// What an object for debuggers is: a copy whose loaded sections have their addresses. Empty where `code.object` is no
// ELF64 file.
std::string AddressedObject(const CodeLoaded& code);

}  // namespace quern

#endif  // QUERN_CODEGEN_LISTENERS_CODE_LISTENER_H_
