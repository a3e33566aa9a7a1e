// SPDX-License-Identifier: Apache-2.0
// VTune starts a program with the path of its collector in INTEL_JIT_PROFILER64. The collector is a library with two
// functions: Initialize, which returns whether a collection is active, and NotifyEvent. This file does all that Intel's
// libjitprofiling.a does (github.com/intel/ittapi, jitprofiling.h and .c), so that neither it nor VTune is needed for
// the build.
//
// VTune shows a function in one source file. Lines are therefore those of the template, ir-templates/join.cc, and a
// block that was inlined there counts for the line that called it.
#include <dlfcn.h>

#include <atomic>
#include <utility>

#include "codegen/base/log.h"
#include "codegen/listeners/code_listener.h"
#include "runtime/base/status.h"

namespace quern {
namespace {

// Layouts and numbers as in jitprofiling.h.
enum Event : unsigned { kMethodLoadFinished = 13, kMethodUnloadStart = 14 };
constexpr unsigned kSamplingOn = 1;

struct LineNumber {
  unsigned offset;  // the end of the code of this line
  unsigned line;
};

struct Method {
  unsigned id;
  const char* name;
  const void* address;
  unsigned bytes;
  unsigned num_lines;
  const LineNumber* lines;
  unsigned class_id;
  const char* class_file;
  const char* source_file;
};

using Initialize = unsigned();
using NotifyEvent = unsigned(unsigned, void*);

// VTune's entries say where a line ends, ours where it begins.
std::vector<LineNumber> LinesOf(const NamedFunction& function) {
  std::vector<LineNumber> lines;
  for (size_t i = 0; i < function.lines.size(); ++i) {
    const uint64_t end =
        i + 1 < function.lines.size() ? function.lines[i + 1].address : function.address + function.bytes;
    const unsigned offset = static_cast<unsigned>(end - function.address), line = function.lines[i].outer_line;
    if (!lines.empty() && lines.back().line == line) lines.back().offset = offset;
    else if (offset != 0) lines.push_back({offset, line});
  }
  return lines;
}

class Vtune : public CodeListener {
 public:
  explicit Vtune(NotifyEvent* notify) : notify_(notify) {}

  bool WantsLines() const override { return true; }

  std::shared_ptr<const void> Announce(const CodeLoaded& code, const std::vector<NamedFunction>& functions) override {
    auto methods = std::make_unique<std::vector<Method>>();
    for (const NamedFunction& function : functions) {
      const std::vector<LineNumber> lines = LinesOf(function);
      const char* file = function.lines.empty() ? nullptr : function.lines.front().outer_file.c_str();
      Method method = {next_id_++,
                       function.name.c_str(),
                       reinterpret_cast<const void*>(function.address),
                       static_cast<unsigned>(function.bytes),
                       static_cast<unsigned>(lines.size()),
                       lines.data(),
                       0,
                       code.spec.c_str(),
                       file};
      notify_(kMethodLoadFinished, &method);
      methods->push_back({method.id, nullptr, method.address, method.bytes, 0, nullptr, 0, nullptr, nullptr});
    }
    return std::shared_ptr<const void>(methods.release(), [notify = notify_](const void* p) {
      const std::unique_ptr<const std::vector<Method>> gone(static_cast<const std::vector<Method>*>(p));
      for (Method method : *gone) notify(kMethodUnloadStart, &method);
    });
  }

 private:
  NotifyEvent* const notify_;
  std::atomic<unsigned> next_id_{1};
};

// Used when VTune is selected but not listening.
class NoVtune : public CodeListener {
 public:
  std::shared_ptr<const void> Announce(const CodeLoaded&, const std::vector<NamedFunction>&) override {
    return nullptr;
  }
};

std::unique_ptr<CodeListener> Fail(const std::string& what) {
  WarnOnce("cannot tell VTune of kernels: " + what + "; accepted: INTEL_JIT_PROFILER64 as vtune sets it");
  return std::make_unique<NoVtune>();
}

}  // namespace

std::unique_ptr<CodeListener> MakeVtune(const std::string& collector) {
  if (collector.empty()) return Fail("INTEL_JIT_PROFILER64 is not set");
  void* library = dlopen(collector.c_str(), RTLD_LAZY);  // never closed: kernels are unloaded until the process ends
  if (library == nullptr) return Fail("cannot load " + ShowPath(collector));
  auto* const initialize = reinterpret_cast<Initialize*>(dlsym(library, "Initialize"));
  auto* const notify = reinterpret_cast<NotifyEvent*>(dlsym(library, "NotifyEvent"));
  if (initialize == nullptr || notify == nullptr) return Fail("no collector: " + ShowPath(collector));
  if (initialize() != kSamplingOn) return std::make_unique<NoVtune>();  // VTune's own decision: paused
  return std::make_unique<Vtune>(notify);
}

}  // namespace quern
