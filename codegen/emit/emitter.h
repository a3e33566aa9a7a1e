// SPDX-License-Identifier: Apache-2.0
// Functions that all hole emitters share: opening the body of a hole, and calling blocks with constants.
#ifndef QUERN_CODEGEN_EMIT_EMITTER_H_
#define QUERN_CODEGEN_EMIT_EMITTER_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/plan/plan.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "runtime/abi/aggregate_abi.h"
#include "runtime/abi/filter_abi.h"
#include "runtime/abi/join_abi.h"
#include "runtime/abi/kernel_abi.h"
#include "runtime/abi/map_abi.h"
#include "runtime/abi/sort_abi.h"

namespace quern {

// Defines the holes of one template module. Blocks are declared in it when they are called, with the types of their
// module; the linker supplies their bodies. An unknown name is recorded, not fatal: see `errors`.
class Emitter {
 public:
  Emitter(llvm::Module* module, std::vector<const llvm::Module*> block_modules)
      : module_(module), block_modules_(std::move(block_modules)), ir_(module->getContext()) {}

  // Starts the body of quern_hole_<name> and gives its parameters these names: "(descriptor, tuple)". Returns the
  // parameters; empty if the template has no such hole, so that there is nothing to emit.
  std::vector<llvm::Value*> Begin(std::string_view name, std::string_view parameters);

  // quern_block_<name>(arguments). Integers among `arguments` have the widths of the block's parameters, or are
  // constants made by the functions below. The result has `result_bits`; 0: no result.
  llvm::Value* Call(const std::string& name, llvm::ArrayRef<llvm::Value*> arguments,
                    const llvm::Twine& result_name = "", unsigned result_bits = 0);

  llvm::IRBuilder<>& ir() { return ir_; }
  llvm::Function* function() { return ir_.GetInsertBlock()->getParent(); }
  llvm::BasicBlock* NewBlock(const llvm::Twine& name) {
    return llvm::BasicBlock::Create(module_->getContext(), name, function());
  }

  llvm::Value* I64(uint64_t value) { return ir_.getInt64(value); }
  llvm::Value* I32(uint32_t value) { return ir_.getInt32(value); }
  llvm::Value* I8(uint8_t value) { return ir_.getInt8(value); }
  llvm::Value* Bool(bool value) { return ir_.getInt1(value); }

  // &base[index] for elements of `bytes` bytes.
  llvm::Value* Element(llvm::Value* base, uint64_t index, uint64_t bytes, const llvm::Twine& name);
  // The same where the index, of 32 bits, is known at run time alone.
  llvm::Value* ElementAt(llvm::Value* base, llvm::Value* index, uint64_t bytes, const llvm::Twine& name);
  // A copy of a QuernColumn on the stack, which stores into memory cannot alias.
  llvm::Value* CopyOfColumn(llvm::Value* column, const llvm::Twine& name);
  // An array or struct on the stack.
  llvm::Value* Local(llvm::Type* type, const llvm::Twine& name);
  // The pointer or number at `offset` bytes into a struct.
  llvm::Value* Load(llvm::Type* type, llvm::Value* base, uint64_t offset, const llvm::Twine& name);
  llvm::Value* LoadPointer(llvm::Value* base, uint64_t offset, const llvm::Twine& name);
  llvm::Value* LoadI64(llvm::Value* base, uint64_t offset, const llvm::Twine& name);
  llvm::Value* LoadI32(llvm::Value* base, uint64_t offset, const llvm::Twine& name);

  const std::string& errors() const { return errors_; }

 private:
  const llvm::Function* FindBlock(const std::string& symbol) const;
  // Whether the arguments match the block: a template from a folder may have other types than this build.
  static bool Fits(const llvm::Function& block, llvm::ArrayRef<llvm::Value*> arguments, const llvm::Type* result);

  llvm::Module* module_;
  const std::vector<const llvm::Module*> block_modules_;
  llvm::IRBuilder<> ir_;
  std::string errors_;
};

// Emits the holes that read keys and tuples, of all templates.
void EmitTupleHoles(const QuernRowLayout& layout, Emitter* emitter);
// Emits every hole of an operator's template for one descriptor.
void EmitHoles(const KernelPlan& plan, const QuernJoinDescriptor& descriptor, Emitter* emitter);
void EmitHoles(const KernelPlan& plan, const QuernAggregateDescriptor& descriptor, Emitter* emitter);
void EmitHoles(const KernelPlan& plan, const QuernSortDescriptor& descriptor, Emitter* emitter);
void EmitHoles(const KernelPlan& plan, const QuernFilterDescriptor& descriptor, Emitter* emitter);
void EmitHoles(const KernelPlan& plan, const QuernMapDescriptor& descriptor, Emitter* emitter);

}  // namespace quern

#endif  // QUERN_CODEGEN_EMIT_EMITTER_H_
