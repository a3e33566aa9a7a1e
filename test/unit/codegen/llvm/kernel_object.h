// SPDX-License-Identifier: Apache-2.0
// The object file of a kernel, between the stages that make it and the loader.
#ifndef QUERN_TEST_UNIT_CODEGEN_LLVM_KERNEL_OBJECT_H_
#define QUERN_TEST_UNIT_CODEGEN_LLVM_KERNEL_OBJECT_H_

#include <string>
#include <vector>

#include "codegen/plan/plan.h"

namespace quern::test {

struct KernelObject {
  std::string bytes;                 // empty after a failure, which has been reported as a test failure
  std::vector<std::string> symbols;  // entry points
};

KernelObject MakeKernelObject(const std::string& text);
// The object of a plan for this machine.
KernelObject MakeKernelObject(const KernelPlan& plan);

}  // namespace quern::test

#endif  // QUERN_TEST_UNIT_CODEGEN_LLVM_KERNEL_OBJECT_H_
