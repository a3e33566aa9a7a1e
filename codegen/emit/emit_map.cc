// SPDX-License-Identifier: Apache-2.0
// Emits the hole of the map template: one loop over eight rows at a time, with a call of a block for each instruction.
// For out=multiply($0,$1) that is
//
//     QuernColumn column0 = args->columns[0], column1 = args->columns[1];       // copies: stores cannot alias them
//     for (i = 0; i < args->num_rows; i += 8) {
//       quern_block_lanes_rows(selection, first, i, num_rows, buffer, &rows);
//       quern_block_lanes_load_64(&column0, &rows, /*nullable=*/false, /*is_signed=*/true, &v0, &escaped);
//       quern_block_lanes_load_64(&column1, &rows, false, true, &v1, &escaped);
//       quern_block_lanes_multiply(&v0, &v1, &v0, &v2, /*bits=*/64, true, false, kErrorsIgnored, 0, 0, &escaped);
//       failed = quern_block_lanes_store_64(&v2, values0, validity0, &nulls0, out_first + i, num_rows - i, false);
//       if (failed) return the row;
//     }
//
// Values are local structs, which become vector registers once the blocks are inlined.
#include <cstddef>
#include <string>
#include <vector>

#include "codegen/emit/emitter.h"
#include "runtime/abi/map_abi.h"
#include "runtime/base/bytes.h"
#include "runtime/map/map_descriptor.h"
#include "runtime/spec/column_type.h"

namespace quern {
namespace {

using llvm::BasicBlock;
using llvm::Value;

using blocks::kLanes;

class MapEmitter {
 public:
  MapEmitter(const QuernMapDescriptor& descriptor, Emitter* emitter) : d_(descriptor), e_(*emitter) {}

  void EmitAll() {
    const auto p = e_.Begin("map_batch", "(args)");
    if (p.empty()) return;
    args_ = p[0];
    EmitLocals();
    BasicBlock *entry = e_.ir().GetInsertBlock(), *loop = e_.NewBlock("rows"), *next = e_.NewBlock("next");
    BasicBlock *done = e_.NewBlock("done"), *failed = e_.NewBlock("failed");
    e_.ir().CreateCondBr(e_.ir().CreateICmpNE(num_rows_, e_.I32(0), "any"), loop, done);
    e_.ir().SetInsertPoint(loop);
    llvm::PHINode* i = e_.ir().CreatePHI(e_.ir().getInt32Ty(), 2, "i");
    i->addIncoming(e_.I32(0), entry);
    Value* bits = EmitRows(i);
    e_.ir().CreateCondBr(e_.ir().CreateICmpNE(bits, e_.I8(0), "any_failed"), failed, next);
    e_.ir().SetInsertPoint(next);
    Value* more = e_.ir().CreateAdd(i, e_.I32(kLanes), "next_i", /*HasNUW=*/true);
    i->addIncoming(more, next);
    e_.ir().CreateCondBr(e_.ir().CreateICmpULT(more, num_rows_, "more"), loop, done);
    EmitDone(done);
    EmitFailed(failed, i, bits);
  }

 private:
  Value* LoadArg(llvm::Type* type, uint64_t offset, const char* name) { return e_.Load(type, args_, offset, name); }

  void EmitLocals() {
    num_rows_ = e_.LoadI32(args_, offsetof(QuernMapArgs, num_rows), "num_rows");
    selection_ = e_.LoadPointer(args_, offsetof(QuernMapArgs, selection), "selection");
    first_ = e_.LoadI64(args_, offsetof(QuernMapArgs, first), "first");
    out_first_ = e_.LoadI64(args_, offsetof(QuernMapArgs, out_first), "out_first");
    escaped_ = e_.ir().CreateAlloca(e_.ir().getInt8Ty(), nullptr, "escaped");
    e_.ir().CreateStore(e_.I8(0), escaped_);
    buffer_ = e_.Local(llvm::ArrayType::get(e_.ir().getInt32Ty(), kLanes), "last_rows");
    rows_ = e_.Local(llvm::ArrayType::get(e_.ir().getInt64Ty(), 2), "eight_rows");
    string_rows_ = e_.Local(llvm::ArrayType::get(e_.ir().getInt64Ty(), 2), "string_rows");
    CopyColumns(kLoadLanes, offsetof(QuernMapArgs, columns), "column", &columns_);
    CopyColumns(kLoadStringLanes, offsetof(QuernMapArgs, string_values), "string_value", &string_values_);
    CopyResults();
    for (uint32_t k = 0; k < d_.num_instructions; ++k) values_.push_back(NewValue(k));
  }

  // A QuernLanes.
  Value* NewValue(uint32_t k) {
    if (d_.instructions[k].function == kStoreLanes) return nullptr;
    llvm::AllocaInst* value = e_.ir().CreateAlloca(llvm::ArrayType::get(e_.ir().getInt64Ty(), sizeof(QuernLanes) / 8),
                                                   nullptr, "v" + llvm::Twine(k));
    value->setAlignment(llvm::Align(alignof(QuernLanes)));
    return value;
  }

  // QuernColumn column3 = args->columns[3], of the columns that instructions of this function load.
  void CopyColumns(LaneFunction function, uint64_t offset, const char* name, std::vector<Value*>* copies) {
    Value* columns = nullptr;
    for (uint32_t k = 0; k < d_.num_instructions; ++k) {
      const QuernMapInstruction& i = d_.instructions[k];
      if (i.function != function) continue;
      if (columns == nullptr) columns = e_.LoadPointer(args_, offset, name + llvm::Twine("s"));
      if (copies->size() <= i.column) copies->resize(i.column + 1, nullptr);
      if ((*copies)[i.column] != nullptr) continue;
      Value* from = e_.Element(columns, i.column, sizeof(QuernColumn), name + llvm::Twine(i.column));
      Value* local = e_.Local(llvm::ArrayType::get(e_.ir().getInt64Ty(), sizeof(QuernColumn) / 8),
                              llvm::Twine("local_") + name + llvm::Twine(i.column));
      e_.ir().CreateMemCpy(local, llvm::MaybeAlign(8), from, llvm::MaybeAlign(8), sizeof(QuernColumn));
      (*copies)[i.column] = local;
    }
  }

  struct Result {
    Value *column, *values, *validity, *nulls, *nulls_before;
  };

  void CopyResults() {
    Value* results = e_.LoadPointer(args_, offsetof(QuernMapArgs, results), "results");
    for (uint32_t r = 0; r < d_.num_results; ++r) {
      Value* column = e_.Element(results, r, sizeof(QuernOutColumn), "result" + llvm::Twine(r));
      Value* nulls = e_.ir().CreateAlloca(e_.ir().getInt64Ty(), nullptr, "nulls" + llvm::Twine(r));
      Value* before = e_.LoadI64(column, offsetof(QuernOutColumn, null_count), "null_count");
      e_.ir().CreateStore(before, nulls);
      results_.push_back({column, e_.LoadPointer(column, offsetof(QuernOutColumn, values), "values"),
                          e_.LoadPointer(column, offsetof(QuernOutColumn, validity), "validity"), nulls, before});
    }
  }

  // Eight rows; returns the bits of those that have failed.
  Value* EmitRows(Value* i) {
    e_.Call("lanes_rows", {selection_, first_, i, num_rows_, buffer_, rows_});
    if (!string_values_.empty()) EmitStringRows(i);
    Value* row = e_.ir().CreateAdd(out_first_, e_.ir().CreateZExt(i, e_.ir().getInt64Ty()), "out_row");
    Value* left = e_.ir().CreateSub(num_rows_, i, "rows_left");
    Value* failed = e_.I8(0);
    for (uint32_t k = 0; k < d_.num_instructions; ++k) {
      const QuernMapInstruction& instruction = d_.instructions[k];
      if (instruction.function == kLoadLanes) EmitLoad(k, instruction, columns_, rows_);
      else if (instruction.function == kLoadStringLanes) EmitLoad(k, instruction, string_values_, string_rows_);
      else if (instruction.function != kStoreLanes) EmitFunction(k, instruction);
      else failed = e_.ir().CreateOr(failed, EmitStore(instruction, row, left), "failed");
    }
    return failed;
  }

  // EightRows string_rows = {i, nullptr}: string values have the rows of the call alone.
  void EmitStringRows(Value* i) {
    e_.ir().CreateStore(e_.ir().CreateZExt(i, e_.ir().getInt64Ty()), string_rows_);
    e_.ir().CreateStore(llvm::ConstantPointerNull::get(e_.ir().getPtrTy()),
                        e_.Element(string_rows_, 1, sizeof(uint64_t), "no_rows"));
  }

  void EmitLoad(uint32_t k, const QuernMapInstruction& i, const std::vector<Value*>& columns, Value* rows) {
    e_.Call("lanes_load_" + std::string(StorageText(i.storage)),
            {columns[i.column], rows, e_.Bool(i.nullable), e_.Bool(i.parameters.is_signed), values_[k], escaped_});
  }

  void EmitFunction(uint32_t k, const QuernMapInstruction& i) {
    const QuernLaneParameters& p = i.parameters;
    std::vector<Value*> arguments;
    for (uint32_t a = 0; a < 3; ++a) arguments.push_back(a < NumArguments(i) ? values_[i.arguments[a]] : values_[k]);
    arguments.insert(arguments.end(), {values_[k], e_.I8(p.bits), e_.Bool(p.is_signed), e_.Bool(p.from_signed),
                                       e_.I8(p.errors), e_.I64(p.low), e_.I64(p.high), escaped_});
    e_.Call("lanes_" + std::string(LaneFunctionText(i.function)), arguments);
  }

  Value* EmitStore(const QuernMapInstruction& i, Value* row, Value* left) {
    const Result& to = results_[i.column];
    return e_.Call("lanes_store_" + std::string(StorageText(i.storage)),
                   {values_[i.arguments[0]], to.values, to.validity, to.nulls, row, left, e_.Bool(i.nullable)},
                   ("failed" + std::to_string(i.column)).c_str(), 8);
  }

  Value* Escaped() {
    return e_.ir().CreateICmpNE(e_.ir().CreateLoad(e_.ir().getInt8Ty(), escaped_), e_.I8(0), "is_too_wide");
  }

  // Where decimals are too wide the generic kernel counts the nulls, once more from the first row.
  void EmitDone(BasicBlock* done) {
    e_.ir().SetInsertPoint(done);
    Value* escaped = Escaped();
    for (const Result& result : results_) {
      Value* nulls = e_.ir().CreateLoad(e_.ir().getInt64Ty(), result.nulls, "null_count");
      e_.ir().CreateStore(e_.ir().CreateSelect(escaped, result.nulls_before, nulls),
                          e_.Element(result.column, offsetof(QuernOutColumn, null_count), 1, "null_count_at"));
    }
    e_.ir().CreateRet(
        e_.ir().CreateSelect(escaped, e_.ir().getInt32(static_cast<uint32_t>(kQuernTooWide)), e_.I32(kQuernDone)));
  }

  // A row may seem to have failed only because its decimals are too wide.
  void EmitFailed(BasicBlock* failed, Value* i, Value* bits) {
    e_.ir().SetInsertPoint(failed);
    Value* lane = e_.ir().CreateBinaryIntrinsic(llvm::Intrinsic::cttz, e_.ir().CreateZExt(bits, e_.ir().getInt32Ty()),
                                                e_.Bool(true), nullptr, "lane");
    e_.ir().CreateStore(e_.ir().CreateAdd(i, lane, "failed_row"),
                        e_.Element(args_, offsetof(QuernMapArgs, failed_row), 1, "failed_row_at"));
    e_.ir().CreateRet(e_.ir().CreateSelect(Escaped(), e_.ir().getInt32(static_cast<uint32_t>(kQuernTooWide)),
                                           e_.ir().getInt32(static_cast<uint32_t>(kQuernRowFailed))));
  }

  const QuernMapDescriptor& d_;
  Emitter& e_;
  Value *args_ = nullptr, *num_rows_ = nullptr, *selection_ = nullptr, *first_ = nullptr, *out_first_ = nullptr;
  Value *escaped_ = nullptr, *buffer_ = nullptr, *rows_ = nullptr, *string_rows_ = nullptr;
  std::vector<Value*> columns_, string_values_, values_;  // by column, by column; by instruction
  std::vector<Result> results_;
};

}  // namespace

void EmitHoles(const KernelPlan&, const QuernMapDescriptor& descriptor, Emitter* emitter) {
  MapEmitter(descriptor, emitter).EmitAll();
}

}  // namespace quern
