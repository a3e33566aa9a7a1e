// SPDX-License-Identifier: Apache-2.0
// A profiler or debugger to which code is announced, and functions that make each of the four. Internal to codegen.
#ifndef QUERN_CODEGEN_LISTENERS_CODE_LISTENER_H_
#define QUERN_CODEGEN_LISTENERS_CODE_LISTENER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/listeners/code_events.h"

namespace quern {

// Code from this address up to that of the next entry belongs to this line.
struct SourceLine {
  uint64_t address = 0;
  std::string file;  // of inlined code, as "runtime/blocks/blocks.h", relative to the top folder
  uint32_t line = 0;
  std::string outer_file;  // of the function into which it was inlined: "ir-templates/join.cc"
  uint32_t outer_line = 0;
};

// A function under the name that people see.
struct NamedFunction {
  std::string name;  // "quern_join_probe [join.inner keys=i64]", one line of at most kMaxFrameNameBytes
  uint64_t address = 0;
  uint64_t bytes = 0;
  std::vector<SourceLine> lines;  // by address; empty if the object has none, or no listener wants them
};

class CodeListener {
 public:
  virtual ~CodeListener() = default;
  virtual bool WantsLines() const { return false; }
  // Whether the listener reads source lines from the object itself.
  virtual bool ReadsObject() const { return false; }
  // As AnnounceCode of code_events.h; null if the listener cannot withdraw code. *Threads*: any.
  virtual std::shared_ptr<const void> Announce(const CodeLoaded& code, const std::vector<NamedFunction>& functions) = 0;
};

constexpr size_t kMaxFrameNameBytes = 240;  // perf cuts names at 512, and people read listings of them

// The name of a frame: control characters of constants become blanks, and a name that is too long ends with "..]".
std::string FrameName(std::string_view symbol, std::string_view spec);

// The source lines of each function, in their order, read from the object's line table.
std::vector<std::vector<SourceLine>> ReadSourceLines(const CodeLoaded& code);

// FOLDER/perf-PID.map; perf itself looks in /tmp.
std::unique_ptr<CodeListener> MakePerfMap(std::string folder);
// FOLDER/jit-PID.dump.
std::unique_ptr<CodeListener> MakeJitDump(std::string folder);
// The list that GDB and LLDB read through __jit_debug_descriptor.
std::unique_ptr<CodeListener> MakeGdbRegistration();
// Loads the collector, a library whose path VTune sets in INTEL_JIT_PROFILER64.
std::unique_ptr<CodeListener> MakeVtune(const std::string& collector);

// An object for debuggers: a copy in which loaded sections have their addresses. Empty if `code.object` is not an ELF64
// file.
std::string AddressedObject(const CodeLoaded& code);

}  // namespace quern

#endif  // QUERN_CODEGEN_LISTENERS_CODE_LISTENER_H_
