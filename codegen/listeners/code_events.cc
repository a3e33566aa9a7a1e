// SPDX-License-Identifier: Apache-2.0
// Code that a process generates is invisible: a profiler that stops at 0x7f3a00401c finds no file behind that address,
// and a debugger finds no symbol. Each of them has an interface for announcing code, and QUERN_JIT_PROFILE selects some
// of these:
//
//     perfmap    /tmp/perf-PID.map, a line per function         perf top, perf report; many other profilers read it too
//     jitdump    jit-PID.dump with code and source lines        perf record -k mono, perf inject --jit, perf annotate
//     gdb        the object itself, over GDB's JIT interface    gdb, lldb; breakpoints by name, source lines, unwinding
//     vtune      Intel's collector, called for each function    vtune -collect
//
// All use the same names: the entry point and the spec that it was compiled for. Two joins in one profile are then two
// of its rows:
//
//     41.20%  quern_join_compare [join.inner keys=i64,utf8]
//     12.03%  quern_join_compare [join.semi keys=i32]
//
// The variable is read once, before the first kernel is loaded. If it is unset, nothing here costs anything. If it
// selects source lines, kernels are made from a second set of templates that has them (template_library.h), with the
// same code.
#include "codegen/listeners/code_events.h"

#include <algorithm>
#include <utility>

#include "codegen/base/environment.h"
#include "codegen/base/log.h"
#include "codegen/listeners/code_listener.h"
#include "runtime/base/fork_safety.h"
#include "runtime/base/status.h"

namespace quern {
namespace {

struct Listeners {
  std::vector<std::unique_ptr<CodeListener>> all;
  bool wants_lines = false;    // as NamedFunction::lines
  bool has_line_info = false;  // objects contain source lines
};

std::unique_ptr<CodeListener> MakeListener(std::string_view word) {
  if (word == "perfmap") return MakePerfMap("/tmp");
  if (word == "jitdump") return MakeJitDump(ReadVariable(Variable::kJitDumpDir).value);
  if (word == "gdb") return MakeGdbRegistration();
  if (word == "vtune") return MakeVtune(ReadVariable(Variable::kVtuneCollector).value);
  return nullptr;
}

Listeners MakeListeners() {
  Listeners listeners;
  const VariableRow row = ReadVariable(Variable::kJitProfile);
  std::vector<std::string_view> seen;
  for (std::string_view rest = row.value; !rest.empty();) {
    const size_t comma = rest.find(',');
    const std::string_view word = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    if (word.empty() || std::find(seen.begin(), seen.end(), word) != seen.end()) continue;
    seen.push_back(word);
    if (auto listener = MakeListener(word)) listeners.all.push_back(std::move(listener));
    else WarnOnce("bad word of " + row.name + ": " + Show(word) + "; accepted: " + row.accepted);
  }
  for (const auto& listener : listeners.all) {
    listeners.wants_lines |= listener->WantsLines();
    listeners.has_line_info |= listener->WantsLines() || listener->ReadsObject();
  }
  return listeners;
}

// Never destroyed: kernels in a host's static variables are destroyed last.
const Listeners& ListenersOfProcess() {
  const NoFork no_fork;  // the first call makes them
  static const auto* listeners = new Listeners(MakeListeners());
  return *listeners;
}

std::vector<NamedFunction> Name(const CodeLoaded& code, bool with_lines) {
  std::vector<NamedFunction> functions;
  for (const LoadedFunction& function : code.functions) {
    functions.push_back({FrameName(function.symbol, code.spec), function.address, function.bytes, {}});
  }
  if (!with_lines) return functions;
  std::vector<std::vector<SourceLine>> lines = ReadSourceLines(code);
  for (size_t i = 0; i < functions.size(); ++i) functions[i].lines = std::move(lines[i]);
  return functions;
}

}  // namespace

std::string FrameName(std::string_view symbol, std::string_view spec) {
  std::string name = std::string(symbol) + " [" + std::string(spec);
  for (char& c : name)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  constexpr std::string_view kCut = "..]";
  if (name.size() + 1 <= kMaxFrameNameBytes) return name + "]";
  size_t end = kMaxFrameNameBytes - kCut.size();
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80) --end;  // whole UTF-8 characters
  return name.substr(0, end) + std::string(kCut);
}

bool WantsCodeEvents() { return !ListenersOfProcess().all.empty(); }
bool WantsSourceLines() { return ListenersOfProcess().has_line_info; }

std::shared_ptr<const void> AnnounceCode(const CodeLoaded& code) {
  const Listeners& listeners = ListenersOfProcess();
  if (listeners.all.empty()) return nullptr;
  const std::vector<NamedFunction> functions = Name(code, listeners.wants_lines);
  auto taken_back = std::make_shared<std::vector<std::shared_ptr<const void>>>();
  for (const auto& listener : listeners.all) taken_back->push_back(listener->Announce(code, functions));
  return taken_back;
}

}  // namespace quern
