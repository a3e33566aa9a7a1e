// SPDX-License-Identifier: Apache-2.0
// Emits the hole of the filter template: the descriptor's mask operations as straight-line calls of blocks with
// constants. For filter i64 >= 5 and utf8 = 'zzzz' that is
//
//     void quern_hole_filter_batch(args, first, n, mask) {
//       quern_block_filter_range_64(args, /*leaf=*/0, &args->columns[0], first, n, mask, /*low=*/5, 0,
//                                   /*span=*/0x7ffffffffffffffa, 0, false);
//       quern_block_filter_equal_var32(args, /*leaf=*/1, &args->columns[1], first, n, mask, constants1,
//                                      /*length=*/4, ..);
//     }
//
// where constants1 is a private constant of the module: 'z' 'z' 'z' 'z' and four masks. Loads from it become
// immediates, so the second leaf becomes a vector comparison of lengths with 4 and of words with 0x7a7a7a7a.
//
// Masks other than the first are arrays on the stack. Leaves without a block (dictionaries, long lists, `_`) call the
// runtime, which finds them in args->descriptor by their number. This file reads the descriptor as
// ir-templates/generic/generic_filter.cc does, operation by operation.
#include <cstddef>
#include <string>
#include <vector>

#include "codegen/emit/emitter.h"
#include "runtime/abi/filter_abi.h"
#include "runtime/blocks/filter_strings.h"
#include "runtime/spec/column_type.h"

namespace quern {
namespace {

using llvm::Value;

class FilterEmitter {
 public:
  FilterEmitter(const QuernFilterDescriptor& descriptor, Emitter* emitter) : descriptor_(descriptor), e_(*emitter) {}

  void EmitAll() {
    auto p = e_.Begin("filter_batch", "(args, first, n, mask)");
    if (p.empty()) return;
    args_ = p[0];
    first_ = p[1];
    n_ = p[2];
    masks_.push_back(p[3]);
    for (uint32_t m = 1; m < descriptor_.num_masks; ++m) {
      masks_.push_back(e_.ir().CreateAlloca(llvm::ArrayType::get(e_.ir().getInt64Ty(), kMaskWords), nullptr,
                                            "mask" + llvm::Twine(m)));
    }
    columns_ = e_.LoadPointer(args_, offsetof(QuernFilterArgs, columns), "columns");
    for (uint32_t s = 0; s < descriptor_.num_steps; ++s) EmitUpdate(descriptor_.steps[s]);
    e_.ir().CreateRetVoid();
  }

 private:
  void EmitUpdate(const QuernMaskOperation& step) {
    Value *to = masks_[step.to], *from = masks_[step.from], *todo = masks_[step.todo];
    switch (step.kind) {
      case kTestValid: EmitValid(step.column, to, false); return;
      case kTestLeaf: EmitLeaf(step.leaf, to); return;
      case kClearMask: e_.Call("filter_clear", {to, n_}); return;
      case kSplitMask: e_.Call("filter_split", {to, from, n_}); return;
      case kCopyMask: e_.Call("filter_copy", {to, from, n_}); return;
      case kKeepMask: e_.Call("filter_keep", {to, from, todo, n_}); return;
      case kMergeMask: e_.Call("filter_merge", {to, from, n_}); return;
    }
  }

  Value* Column(uint32_t column) {
    return e_.Element(columns_, column, sizeof(QuernColumn), "column" + llvm::Twine(column));
  }

  // quern_block_filter_valid(args, &columns[c], first, n, mask, negated);
  void EmitValid(uint32_t column, Value* mask, bool negated) {
    e_.Call("filter_valid", {args_, Column(column), first_, n_, mask, e_.Bool(negated)});
  }

  // quern_block_filter_<kind>_<storage>(args, leaf, &columns[c], first, n, mask, ..);
  void EmitLeaf(uint32_t leaf, Value* mask) {
    const QuernFilterLeaf& l = descriptor_.leaves[leaf];
    if (l.kind == kNullLeaf) return EmitValid(l.column, mask, !l.negated);
    std::vector<Value*> arguments = {args_, e_.I32(leaf), Column(l.column), first_, n_, mask};
    const std::string block = BlockOf(l);
    if (block.empty()) {
      e_.Call("filter_leaf", {args_, e_.I32(leaf), first_, n_, mask});
      return;
    }
    AddConstants(leaf, l, &arguments);
    e_.Call(block, arguments);
  }

  // The block of a leaf; empty if it has none.
  static std::string BlockOf(const QuernFilterLeaf& l) {
    if (l.index_storage != kNoStorage || l.other_index_storage != kNoStorage) return "";
    const std::string storage(StorageText(l.storage));
    switch (l.kind) {
      case kRangeLeaf: return "filter_range_" + storage;
      case kColumnsLeaf: return blocks::HasLanes(l.storage) ? "filter_columns_" + storage : "";
      case kEqualLeaf: return IsVariable(l.storage) && IsDirect(l) ? "filter_equal_" + storage : "";
      case kOrderLeaf: return IsVariable(l.storage) ? "filter_order_" + storage : "";
      case kPartsLeaf:
        return IsVariable(l.storage) && (l.storage != kView || l.rule == 0) ? "filter_parts_" + storage : "";
      case kNullLeaf:
      case kPatternLeaf:
      case kSetLeaf: break;
    }
    return "";
  }

  // Whether bytes decide; not where every row needs its weights, nor where views would have to be trimmed.
  static bool IsDirect(const QuernFilterLeaf& l) {
    if ((l.rule & kWeighsEquality) != 0 && (l.rule & kFoldsAscii) == 0) return false;
    return l.storage != kView || (l.rule & (kWeighsEquality | kTrimsSpaces)) == 0;
  }

  void AddConstants(uint32_t leaf, const QuernFilterLeaf& l, std::vector<Value*>* arguments) {
    const auto add = [&](std::initializer_list<Value*> more) { arguments->insert(arguments->end(), more); };
    const auto words = [&] { add({e_.I64(l.low[0]), e_.I64(l.low[1]), e_.I64(l.span[0]), e_.I64(l.span[1])}); };
    switch (l.kind) {
      case kRangeLeaf: words(); return add({e_.Bool(l.negated)});
      case kColumnsLeaf: return add({Column(l.other_column), e_.I8(l.comparison), e_.Bool(l.is_signed)});
      case kEqualLeaf:
        add({Constants(leaf, l), e_.I32(l.length)});
        words();
        return add({e_.I32(l.rule), e_.Bool(l.negated), e_.Bool(descriptor_.prefetches)});
      case kOrderLeaf:
        return add({Constants(leaf, l), e_.I32(l.text_length), e_.I64(l.low[0]), e_.I32(l.rule), e_.I8(l.comparison)});
      case kPartsLeaf: {
        const bool has_affixes =
            blocks::PartOf(l.constants, 0).constant.length + blocks::PartOf(l.constants, 1).constant.length != 0;
        return add({Constants(leaf, l), e_.I32(l.num_parts), e_.I32(l.min_length), e_.Bool(l.is_whole),
                    e_.Bool(has_affixes), e_.I32(l.rule), e_.Bool(l.negated)});
      }
      case kNullLeaf:
      case kPatternLeaf:
      case kSetLeaf: return;
    }
  }

  // The bytes of a leaf as a constant of the module.
  Value* Constants(uint32_t leaf, const QuernFilterLeaf& l) {
    llvm::Module* module = e_.function()->getParent();
    llvm::Constant* bytes =
        llvm::ConstantDataArray::get(module->getContext(), llvm::ArrayRef<uint8_t>(l.constants, l.constants_bytes));
    return new llvm::GlobalVariable(*module, bytes->getType(), /*isConstant=*/true, llvm::GlobalValue::PrivateLinkage,
                                    bytes, "quern_constant_leaf" + llvm::Twine(leaf));
  }

  const QuernFilterDescriptor& descriptor_;
  Emitter& e_;
  Value *args_ = nullptr, *first_ = nullptr, *n_ = nullptr, *columns_ = nullptr;
  std::vector<Value*> masks_;
};

}  // namespace

void EmitHoles(const KernelPlan&, const QuernFilterDescriptor& descriptor, Emitter* emitter) {
  FilterEmitter(descriptor, emitter).EmitAll();
}

}  // namespace quern
