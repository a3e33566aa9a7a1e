// SPDX-License-Identifier: Apache-2.0
// Runs the stages of codegen/compiler.cc up to the object. A separate file because it is compiled as LLVM is, without
// RTTI.
#include "test/unit/codegen/llvm/kernel_object.h"

#include <gtest/gtest.h>

#include <memory>

#include "codegen/llvm/diagnostics.h"
#include "codegen/llvm/module.h"

namespace quern::test {

KernelObject MakeKernelObject(const std::string& text) {
  const auto spec = ParseSpec(text);
  const auto host = HostMachine();
  EXPECT_TRUE(spec.ok() && host.ok());
  if (!spec.ok() || !host.ok()) return {};
  const auto plan = MakePlan(*spec, *host, {});
  EXPECT_TRUE(plan.ok()) << plan.status();
  return MakeKernelObject(*plan);
}

KernelObject MakeKernelObject(const KernelPlan& plan) {
  const auto host = HostMachine();
  KernelObject object;
  const auto kernel = DescribeKernel(plan);
  auto target = MakeTargetMachine(*host);
  EXPECT_TRUE(kernel.ok() && target.ok());
  llvm::LLVMContext context;
  context.setDiagnosticHandler(std::make_unique<Diagnostics>());
  CompileTimes times;
  auto module = Instantiate(plan, *kernel, *host, target->get(), "", &context, &times);
  EXPECT_TRUE(module.ok()) << module.status();
  if (!module.ok()) return object;
  llvm::SmallVector<char, 0> bytes;
  EXPECT_TRUE(Optimise(module->get(), target->get(), PassesOf(plan)).ok());
  EXPECT_TRUE(GenerateCode(module->get(), target->get(), CodeFormat::kObject, &bytes, PassesOf(plan)).ok());
  object.bytes.assign(bytes.data(), bytes.size());
  object.symbols = EntryPointSymbols(*kernel);
  return object;
}

}  // namespace quern::test
