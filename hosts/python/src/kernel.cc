// SPDX-License-Identifier: Apache-2.0
// Kernels come from quern_compile_with. The C ABI has no function for the stages of `quern dump`, so these come from
// the code generator itself, which is linked into the module. A dump makes the kernel anew: the process's cache keeps
// only machine code.
#include "kernel.h"

#include <nanobind/nanobind.h>

#include <sstream>
#include <stdexcept>
#include <utility>

#include "codegen/compiler.h"
#include "codegen/inspect/dump.h"
#include "codegen/machine/machine.h"
#include "errors.h"
#include "tools/report/mca.h"
#include "without_gil.h"

namespace quern::python {
namespace {

quern_engine EngineOf(const std::string& name) {
  if (name == "auto") return QUERN_ENGINE_AUTO;
  if (name == "jit") return QUERN_ENGINE_JIT;
  if (name == "generic") return QUERN_ENGINE_GENERIC;
  throw std::invalid_argument("unknown engine: " + name + "; accepted: auto, jit, generic");
}

}  // namespace

PlanOverrides OverridesOf(const std::string& params) {
  PlanOverrides overrides;
  std::istringstream words(params);
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos)
      throw std::invalid_argument("bad plan parameter: " + word + "; accepted: name=value");
    overrides.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  return overrides;
}

KernelHandle::KernelHandle(const std::string& spec, const std::string& engine, const std::string& params, bool now)
    : kernel_(nullptr, quern_kernel_destroy), params_(params) {
  quern_compile_options options = {};
  options.struct_size = sizeof(options);
  options.engine = EngineOf(engine);
  options.when = now ? QUERN_COMPILE_NOW : QUERN_COMPILE_BACKGROUND;
  options.params = params.c_str();
  const WithoutGil no_gil;
  quern_error error;
  quern_kernel* kernel = nullptr;
  const quern_status status = quern_compile_with(spec.c_str(), &options, &kernel, &error);
  kernel_.reset(kernel);
  Check(status, error);
}

std::string KernelHandle::Text(const std::string& name) const {
  const char* const text = quern_kernel_text(kernel_.get(), name.c_str());
  if (text != nullptr) return text;
  throw std::invalid_argument("unknown text of a kernel: " + name +
                              "; accepted: spec, plan, layout, engine, cache, compile_ms, code_bytes, warning");
}

std::string KernelHandle::Dump(const std::string& stage, const std::string& machine) const {
  const std::string text = Text("spec");
  const WithoutGil no_gil;
  CompileOptions options;
  options.overrides = OverridesOf(params_);
  const absl::StatusOr<Machine> made_for = MachineByName(machine);
  Check(made_for.status());
  absl::StatusOr<std::string> dump = DumpText(stage, text, *made_for, options);
  Check(dump.status());
  return *std::move(dump);
}

}  // namespace quern::python
