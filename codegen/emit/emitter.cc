// SPDX-License-Identifier: Apache-2.0
// Opens bodies of holes and calls blocks.
//
// A body is made in the template's own module, so that data layout and types agree by construction. A call of a block
// copies the block's function type and its parameter attributes (a C++ bool is `i1 zeroext`) from the block module: a
// caller that disagreed about an ABI detail would have undefined behaviour that no verifier detects.
#include "codegen/emit/emitter.h"

#include "llvm/ADT/SmallVector.h"

namespace quern {

std::vector<llvm::Value*> Emitter::Begin(std::string_view name, std::string_view parameters) {
  llvm::SmallVector<llvm::StringRef> names;
  llvm::StringRef(parameters).trim("()").split(names, ", ");
  llvm::Function* hole = module_->getFunction("quern_hole_" + std::string(name));
  if (hole == nullptr) return {};
  if (!hole->isDeclaration() || hole->arg_size() != names.size()) {
    errors_ += "hole of another form than its emitter: " + std::string(name) + "; accepted: as in holes.def. ";
    return {};
  }
  std::vector<llvm::Value*> values;
  for (llvm::Argument& argument : hole->args()) {
    argument.setName(names[argument.getArgNo()]);
    values.push_back(&argument);
  }
  ir_.SetInsertPoint(llvm::BasicBlock::Create(module_->getContext(), "entry", hole));
  return values;
}

bool Emitter::Fits(const llvm::Function& block, llvm::ArrayRef<llvm::Value*> arguments, const llvm::Type* result) {
  if (block.arg_size() != arguments.size() || block.getReturnType() != result) return false;
  for (unsigned i = 0; i < arguments.size(); ++i)
    if (block.getArg(i)->getType() != arguments[i]->getType()) return false;
  return true;
}

const llvm::Function* Emitter::FindBlock(const std::string& symbol) const {
  for (const llvm::Module* blocks : block_modules_)
    if (const llvm::Function* block = blocks->getFunction(symbol)) return block;
  return nullptr;
}

llvm::Value* Emitter::Call(const std::string& name, llvm::ArrayRef<llvm::Value*> arguments,
                           const llvm::Twine& result_name, unsigned result_bits) {
  const std::string symbol = "quern_block_" + name;
  const llvm::Function* block = FindBlock(symbol);
  llvm::Type* result = result_bits == 0 ? ir_.getVoidTy() : static_cast<llvm::Type*>(ir_.getIntNTy(result_bits));
  if (block == nullptr || !Fits(*block, arguments, result)) {
    errors_ += "no such block: " + symbol + " with " + std::to_string(arguments.size()) +
               " arguments; accepted: as in the modules of blocks. ";
    return llvm::PoisonValue::get(result);
  }
  llvm::Function* declared = module_->getFunction(symbol);
  if (declared == nullptr) {
    declared = llvm::Function::Create(block->getFunctionType(), llvm::GlobalValue::ExternalLinkage, symbol, module_);
    for (unsigned i = 0; i < block->arg_size(); ++i)
      if (block->hasParamAttribute(i, llvm::Attribute::ZExt)) declared->addParamAttr(i, llvm::Attribute::ZExt);
    if (block->hasRetAttribute(llvm::Attribute::ZExt)) declared->addRetAttr(llvm::Attribute::ZExt);
    declared->setDoesNotThrow();
  }
  llvm::CallInst* call = ir_.CreateCall(declared, arguments);
  call->setAttributes(declared->getAttributes());
  if (!call->getType()->isVoidTy()) call->setName(result_name);
  return call;
}

llvm::Value* Emitter::Element(llvm::Value* base, uint64_t index, uint64_t bytes, const llvm::Twine& name) {
  if (index == 0) return base;
  return ir_.CreateConstInBoundsGEP1_64(ir_.getInt8Ty(), base, index * bytes, name);
}

llvm::Value* Emitter::ElementAt(llvm::Value* base, llvm::Value* index, uint64_t bytes, const llvm::Twine& name) {
  llvm::Value* offset = ir_.CreateMul(ir_.CreateZExt(index, ir_.getInt64Ty()), I64(bytes), "offset", /*HasNUW=*/true);
  return ir_.CreateInBoundsGEP(ir_.getInt8Ty(), base, offset, name);
}

llvm::Value* Emitter::CopyOfColumn(llvm::Value* column, const llvm::Twine& name) {
  llvm::Value* copy = Local(llvm::ArrayType::get(ir_.getInt64Ty(), sizeof(QuernColumn) / 8), name);
  ir_.CreateMemCpy(copy, llvm::MaybeAlign(8), column, llvm::MaybeAlign(8), sizeof(QuernColumn));
  return copy;
}

llvm::Value* Emitter::Local(llvm::Type* type, const llvm::Twine& name) {
  llvm::BasicBlock& entry = function()->getEntryBlock();
  return llvm::IRBuilder<>(&entry, entry.begin()).CreateAlloca(type, nullptr, name);
}

llvm::Value* Emitter::Load(llvm::Type* type, llvm::Value* base, uint64_t offset, const llvm::Twine& name) {
  return ir_.CreateLoad(type, Element(base, offset, 1, name + "_at"), name);
}

llvm::Value* Emitter::LoadPointer(llvm::Value* base, uint64_t offset, const llvm::Twine& name) {
  return Load(ir_.getPtrTy(), base, offset, name);
}

llvm::Value* Emitter::LoadI64(llvm::Value* base, uint64_t offset, const llvm::Twine& name) {
  return Load(ir_.getInt64Ty(), base, offset, name);
}

llvm::Value* Emitter::LoadI32(llvm::Value* base, uint64_t offset, const llvm::Twine& name) {
  return Load(ir_.getInt32Ty(), base, offset, name);
}

}  // namespace quern
