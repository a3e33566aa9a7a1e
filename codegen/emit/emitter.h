// SPDX-License-Identifier: Apache-2.0
// What all hole emitters share: opening a hole's body, and calling blocks with constants.
#ifndef QUERN_CODEGEN_EMIT_EMITTER_H_
#define QUERN_CODEGEN_EMIT_EMITTER_H_

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "runtime/abi/aggregate_abi.h"
#include "runtime/abi/filter_abi.h"
#include "runtime/abi/kernel_abi.h"
#include "runtime/abi/sort_abi.h"

namespace quern {

// Defines holes of one template module. Blocks are declared in it as they are called, with the types of the block
// module; the linker brings their bodies. A name that does not exist is remembered, not fatal: see `errors`.
class Emitter {
 public:
  Emitter(llvm::Module* module, const llvm::Module* block_module)
      : module_(module), block_module_(block_module), ir_(module->getContext()) {}

  // Starts the body of quern_hole_<name>, whose parameters get these names. Answers its parameters, empty if the
  // template has no such hole (then there is nothing to emit).
  std::vector<llvm::Value*> Begin(std::string_view name, std::initializer_list<const char*> parameters);

  // quern_block_<name>(arguments). Integers of `arguments` have the block's widths already, or are constants made by
  // the functions below. Its result has `result_bits`; 0: there is none.
  llvm::Value* Call(const std::string& name, llvm::ArrayRef<llvm::Value*> arguments, const char* result_name = "",
                    unsigned result_bits = 0);

  llvm::IRBuilder<>& ir() { return ir_; }
  llvm::Function* function() { return ir_.GetInsertBlock()->getParent(); }
  llvm::BasicBlock* NewBlock(const llvm::Twine& name) {
    return llvm::BasicBlock::Create(module_->getContext(), name, function());
  }

  llvm::Value* I64(uint64_t value) { return ir_.getInt64(value); }
  llvm::Value* I32(uint32_t value) { return ir_.getInt32(value); }
  llvm::Value* I8(uint8_t value) { return ir_.getInt8(value); }
  llvm::Value* Bool(bool value) { return ir_.getInt1(value); }

  // &base[index] of elements of `bytes`.
  llvm::Value* Element(llvm::Value* base, uint64_t index, uint64_t bytes, const llvm::Twine& name);
  // The pointer or number that lies `offset` bytes into a struct.
  llvm::Value* LoadPointer(llvm::Value* base, uint64_t offset, const llvm::Twine& name);
  llvm::Value* LoadI64(llvm::Value* base, uint64_t offset, const llvm::Twine& name);
  llvm::Value* LoadI32(llvm::Value* base, uint64_t offset, const llvm::Twine& name);

  const std::string& errors() const { return errors_; }

 private:
  // Whether a block can be called so: a template's and its blocks' types need not be those of this build.
  static bool Fits(const llvm::Function& block, llvm::ArrayRef<llvm::Value*> arguments, const llvm::Type* result);

  llvm::Module* module_;
  const llvm::Module* block_module_;
  llvm::IRBuilder<> ir_;
  std::string errors_;
};

// Emits every hole of the join template for one descriptor.
void EmitJoinHoles(const QuernJoinDescriptor& descriptor, Emitter* emitter);
// How groups are brought up to date.
struct UpdateChoices {
  uint32_t input_rows = 0;    // prefetch distance for columns of the input; 0: none
  bool uses_vectors = false;  // a group's states as vectors, where they can be (state_vectors.h)
};

// The same for the aggregation and the sort template.
void EmitAggregateHoles(const QuernAggregateDescriptor& descriptor, const UpdateChoices& choices, Emitter* emitter);
void EmitSortHoles(const QuernSortDescriptor& descriptor, Emitter* emitter);
void EmitFilterHoles(const QuernFilterDescriptor& descriptor, Emitter* emitter);

}  // namespace quern

#endif  // QUERN_CODEGEN_EMIT_EMITTER_H_
