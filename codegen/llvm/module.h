// SPDX-License-Identifier: Apache-2.0
// The stages between plan and machine code, one function each. Internal to codegen: LLVM types appear from here on.
//
//     plan -> Instantiate -> Optimise -> GenerateCode -> bytes of an object file (or text of assembly)
#ifndef QUERN_CODEGEN_LLVM_MODULE_H_
#define QUERN_CODEGEN_LLVM_MODULE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/kernel/kernel.h"
#include "codegen/machine/machine.h"
#include "codegen/machine/target_machine.h"
#include "codegen/plan/plan.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

namespace quern {

// Milliseconds since some fixed point, for stage times.
double NowMs();

// The text of `dump ir`.
std::string PrintModule(const llvm::Module& module);

// The template of an operator as it was built, with undefined holes.
absl::StatusOr<std::unique_ptr<llvm::Module>> LoadTemplate(const KernelSpec& spec, const Machine& machine,
                                                           const std::string& template_dir, llvm::LLVMContext* context);

// Loads the template, defines its holes for the descriptor of `kernel`, links the blocks, gives every function the
// machine's attributes, makes all functions except entry points internal, and checks the invariants
// (CheckInstantiated). Fills load, emit and link of `times`.
absl::StatusOr<std::unique_ptr<llvm::Module>> Instantiate(const KernelPlan& plan, const AnyOperatorKernel& kernel,
                                                          const Machine& machine, llvm::TargetMachine* target,
                                                          const std::string& template_dir, llvm::LLVMContext* context,
                                                          CompileTimes* times);

// Gives every function the machine's attributes. Entry points stay visible; all others become internal and are inlined.
void FinaliseModule(llvm::Module* module, const llvm::TargetMachine& target);

// Checks that no hole is undefined, no body is unused, undefined symbols are on the allow-list, every function has the
// machine's attributes, and LLVM's verifier accepts the module.
absl::Status CheckInstantiated(const llvm::Module& module, const llvm::TargetMachine& target);

// The passes for a kernel, from the plan parameters `passes`, `codegen_level` and `test.toggled_pass`.
struct PassChoice {
  bool is_stock = false;       // LLVM's own lists instead of passes.def
  uint32_t codegen_level = 1;  // of code generation, 0 to 3 as in -O
  uint32_t toggled_pass = 0;   // row of passes.def, counted from 1, that is toggled; 0: none
};
PassChoice PassesOf(const KernelPlan& plan);

// Runs our pass list, then checks that no hole or block is left.
absl::Status Optimise(llvm::Module* module, llvm::TargetMachine* target, const PassChoice& choice = {});

enum class CodeFormat { kObject, kAssembly };

// Generates machine code for an optimised module. *Errors*: Internal if LLVM cannot.
absl::Status GenerateCode(llvm::Module* module, llvm::TargetMachine* target, CodeFormat format,
                          llvm::SmallVectorImpl<char>* out, const PassChoice& choice = {});

}  // namespace quern

#endif  // QUERN_CODEGEN_LLVM_MODULE_H_
