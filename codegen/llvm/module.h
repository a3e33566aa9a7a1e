// SPDX-License-Identifier: Apache-2.0
// The stages between plan and machine code, each on its own. Internal to codegen: LLVM types from here on.
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
#include "runtime/filter/filter_descriptor.h"
#include "runtime/join/join_descriptor.h"
#include "runtime/sort/sort_descriptor.h"

namespace quern {

// Milliseconds since some fixed point, for stage times.
double NowMs();

// What a kernel is specialised for: one of the four.
struct KernelDescriptor {
  std::shared_ptr<const JoinDescriptor> join;
  std::shared_ptr<const AggregateDescriptor> aggregate;
  std::shared_ptr<const SortDescriptor> sort;
  std::shared_ptr<const FilterDescriptor> filter;
};
// *Errors*: as MakePlannedGroups.
absl::StatusOr<KernelDescriptor> MakeKernelDescriptor(const KernelPlan& plan);

// The name of an operator's template.
const char* TemplateName(Operator op);

// The entry points that a kernel of this descriptor has, by their symbols, in the order of its struct.
std::vector<std::string> EntryPointSymbols(const KernelDescriptor& descriptor);

// A kernel's fields as `dump layout` prints them, a module as `dump ir` does.
std::string PrintLayout(const KernelDescriptor& descriptor);
std::string PrintModule(const llvm::Module& module);

// The template of an operator as it was built, holes open.
absl::StatusOr<std::unique_ptr<llvm::Module>> LoadTemplate(Operator op, const Machine& machine,
                                                           const std::string& template_dir, llvm::LLVMContext* context);

// Loads the template, defines its holes for `descriptor`, links the blocks in, gives every function the machine's
// attributes, makes all but the entry points internal, and checks the invariants (CheckInstantiated). Fills load, emit
// and link of `times`.
absl::StatusOr<std::unique_ptr<llvm::Module>> Instantiate(const KernelPlan& plan, const KernelDescriptor& descriptor,
                                                          const Machine& machine, llvm::TargetMachine* target,
                                                          const std::string& template_dir, llvm::LLVMContext* context,
                                                          CompileTimes* times);

// Gives every function the machine's attributes; entry points stay visible, all else becomes internal and is inlined.
void FinaliseModule(llvm::Module* module, const llvm::TargetMachine& target);

// No unfilled hole, no unused body, undefined symbols only from the allow-list, the machine's attributes on every
// function, module verified.
absl::Status CheckInstantiated(const llvm::Module& module, const llvm::TargetMachine& target);

// Which passes make a kernel; what a plan says by `passes`, `codegen_level` and `test.toggled_pass`.
struct PassChoice {
  bool is_stock = false;       // LLVM's own lists instead of passes.def
  uint32_t codegen_level = 1;  // of code generation, 0 to 3 as -O has them
  uint32_t toggled_pass = 0;   // the row of passes.def, counted from 1, that is turned round; 0: none
};
PassChoice PassesOf(const KernelPlan& plan);

// Runs our own pass list, then checks that no hole or block is left.
absl::Status Optimise(llvm::Module* module, llvm::TargetMachine* target, const PassChoice& choice = {});

enum class CodeFormat { kObject, kAssembly };

// Machine code of an optimised module. *Errors*: Internal where LLVM cannot.
absl::Status GenerateCode(llvm::Module* module, llvm::TargetMachine* target, CodeFormat format,
                          llvm::SmallVectorImpl<char>* out, const PassChoice& choice = {});

}  // namespace quern

#endif  // QUERN_CODEGEN_LLVM_MODULE_H_
