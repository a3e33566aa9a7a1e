// SPDX-License-Identifier: Apache-2.0
// What QUERN_DUMP leaves of every compilation, and what QUERN_OVERRIDE puts into it. Internal to codegen.
//
//     QUERN_DUMP=plan,layout,ir,opt,asm:DIR     DIR/KERNEL.plan, DIR/KERNEL.layout, DIR/KERNEL.ll, DIR/KERNEL.opt.ll,
//     DIR/KERNEL.s QUERN_OVERRIDE=DIR                        DIR/KERNEL.ll instead of what instantiate made
//
// KERNEL is a file name made of the spec, legible and short, with a hash of the whole key.
#ifndef QUERN_CODEGEN_INSPECT_STAGE_FILES_H_
#define QUERN_CODEGEN_INSPECT_STAGE_FILES_H_

#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "codegen/machine/machine.h"
#include "codegen/plan/plan.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

namespace quern {

// Whether one of the two variables is set: such a process neither reads kernels from disk nor writes them. Both are
// read once per process; a bad value is one warning.
bool HasStageFiles();

// The kernel's module as a file of QUERN_OVERRIDE has it, settled and checked as instantiate's; `module` where there is
// no such file. A file that is no module of this kernel is one warning, and `module`.
std::unique_ptr<llvm::Module> OverrideModule(const KernelPlan& plan, std::string_view key,
                                             const llvm::TargetMachine& target, std::unique_ptr<llvm::Module> module);

// Leaves the stages that QUERN_DUMP asks for: called with the module as it is compiled (after OverrideModule), then as
// optimised. A file that QUERN_OVERRIDE reads is never written. *Errors*: none; a folder that does not take a file is
// one warning.
void DumpInstantiated(const KernelPlan& plan, std::string_view key, const llvm::Module& module);
void DumpOptimised(const KernelPlan& plan, std::string_view key, const llvm::Module& module,
                   llvm::TargetMachine* target);

}  // namespace quern

#endif  // QUERN_CODEGEN_INSPECT_STAGE_FILES_H_
