// SPDX-License-Identifier: Apache-2.0
// The files that QUERN_DUMP writes for every compilation, and those that QUERN_OVERRIDE reads. Internal to codegen.
//
//     QUERN_DUMP=plan,layout,ir,opt,asm:DIR     DIR/KERNEL.plan, DIR/KERNEL.layout, DIR/KERNEL.ll, DIR/KERNEL.opt.ll,
//                                               DIR/KERNEL.s
//     QUERN_OVERRIDE=DIR                        DIR/KERNEL.ll instead of the module that instantiate made
//
// KERNEL is a file name made from the spec, legible and short, with a hash of the whole key.
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
// read once in a process; a bad value is one warning.
bool HasStageFiles();

// The module in the kernel's file under QUERN_OVERRIDE, finalised and checked like a module of instantiate; `module` if
// there is no such file. A file that does not hold a module of this kernel is one warning, and gives `module`.
std::unique_ptr<llvm::Module> OverrideModule(const KernelPlan& plan, std::string_view key,
                                             const llvm::TargetMachine& target, std::unique_ptr<llvm::Module> module);

// Write the stages that QUERN_DUMP names: the first is called with the module to be compiled (after OverrideModule),
// the second with the optimised one. A file that QUERN_OVERRIDE reads is never overwritten. *Errors*: none; a file that
// cannot be written is one warning.
void DumpInstantiated(const KernelPlan& plan, std::string_view key, const llvm::Module& module);
void DumpOptimised(const KernelPlan& plan, std::string_view key, const llvm::Module& module,
                   llvm::TargetMachine* target);

}  // namespace quern

#endif  // QUERN_CODEGEN_INSPECT_STAGE_FILES_H_
