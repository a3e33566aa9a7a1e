// SPDX-License-Identifier: Apache-2.0
#include "codegen/stage_files.h"

#include <utility>

namespace quern {

bool HasStageFiles() { return false; }

std::unique_ptr<llvm::Module> OverrideModule(const KernelPlan&, std::string_view, const llvm::TargetMachine&,
                                             std::unique_ptr<llvm::Module> module) {
  return module;
}

void DumpInstantiated(const KernelPlan&, std::string_view, const llvm::Module&) {}
void DumpOptimised(const KernelPlan&, std::string_view, const llvm::Module&, llvm::TargetMachine*) {}

}  // namespace quern
