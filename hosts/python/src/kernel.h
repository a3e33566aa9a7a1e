// SPDX-License-Identifier: Apache-2.0
// A kernel of the library as a Python object.
#ifndef QUERN_HOSTS_PYTHON_SRC_KERNEL_H_
#define QUERN_HOSTS_PYTHON_SRC_KERNEL_H_

#include <memory>
#include <string>

#include "codegen/plan/plan.h"
#include "hosts/c/quern.h"

namespace quern::python {

// Of "name=value name=value". *Errors*: ValueError for a word without an equals sign.
PlanOverrides OverridesOf(const std::string& params);

// *Threads*: any.
class KernelHandle {
 public:
  // engine: "auto", "jit", "generic". params: "name=value name=value". *Cost*: quern_compile's; called with the GIL,
  // which is released. now: of the engine auto: compiled before the constructor returns, where that can be; else beside
  // its jobs once it pays.
  KernelHandle(const std::string& spec, const std::string& engine, const std::string& params, bool now);

  quern_kernel* get() const { return kernel_.get(); }
  // quern_kernel_text. *Errors*: ValueError for another name.
  std::string Text(const std::string& name) const;
  // One stage of `quern dump`, for a machine by its name. *Errors*: ValueError with the accepted stages.
  std::string Dump(const std::string& stage, const std::string& machine) const;

 private:
  std::unique_ptr<quern_kernel, void (*)(quern_kernel*)> kernel_;
  std::string params_;
};

}  // namespace quern::python

#endif  // QUERN_HOSTS_PYTHON_SRC_KERNEL_H_
