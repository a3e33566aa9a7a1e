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
#include "codegen/emit/lane_emitter.h"
#include "runtime/abi/map_abi.h"
#include "runtime/base/bytes.h"
#include "runtime/spec/column_type.h"

namespace quern {
namespace {

using llvm::BasicBlock;
using llvm::Value;

using blocks::kLanes;

class MapEmitter {
 public:
  MapEmitter(const QuernMapDescriptor& descriptor, Emitter* emitter)
      : d_(descriptor), e_(*emitter), lanes_(&d_, emitter) {}

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
  void EmitLocals() {
    num_rows_ = e_.LoadI32(args_, offsetof(QuernMapArgs, num_rows), "num_rows");
    selection_ = e_.LoadPointer(args_, offsetof(QuernMapArgs, selection), "selection");
    first_ = e_.LoadI64(args_, offsetof(QuernMapArgs, first), "first");
    out_first_ = e_.LoadI64(args_, offsetof(QuernMapArgs, out_first), "out_first");
    lanes_.Begin(e_.LoadPointer(args_, offsetof(QuernMapArgs, columns), "columns"),
                 e_.LoadPointer(args_, offsetof(QuernMapArgs, string_values), "string_values"));
    CopyResults();
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
    lanes_.BeginRows(selection_, first_, i, num_rows_);
    Value* row = e_.ir().CreateAdd(out_first_, e_.ir().CreateZExt(i, e_.ir().getInt64Ty()), "out_row");
    Value* left = e_.ir().CreateSub(num_rows_, i, "rows_left");
    Value* failed = e_.I8(0);
    for (uint32_t k = 0; k < d_.num_instructions; ++k) {
      if (d_.instructions[k].function != kStoreLanes) lanes_.EmitValue(k);
      else failed = e_.ir().CreateOr(failed, EmitStore(d_.instructions[k], row, left), "failed");
    }
    return failed;
  }

  Value* EmitStore(const QuernMapInstruction& i, Value* row, Value* left) {
    const Result& to = results_[i.column];
    if (blocks::IsVariableStorage(i.storage))
      return e_.Call(
          "lanes_store_strings",
          {lanes_.value(i.arguments[0]), to.column, to.nulls, row, left, e_.I8(i.storage), e_.Bool(i.nullable)},
          ("failed" + std::to_string(i.column)).c_str(), 8);
    return e_.Call("lanes_store_" + std::string(StorageText(i.storage)),
                   {lanes_.value(i.arguments[0]), to.values, to.validity, to.nulls, row, left, e_.Bool(i.nullable)},
                   ("failed" + std::to_string(i.column)).c_str(), 8);
  }

  // Where decimals are too wide the generic kernel counts the nulls, once more from the first row.
  void EmitDone(BasicBlock* done) {
    e_.ir().SetInsertPoint(done);
    Value* escaped = lanes_.Escaped();
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
    e_.ir().CreateRet(e_.ir().CreateSelect(lanes_.Escaped(), e_.ir().getInt32(static_cast<uint32_t>(kQuernTooWide)),
                                           e_.ir().getInt32(static_cast<uint32_t>(kQuernRowFailed))));
  }

  const QuernMapDescriptor& d_;
  Emitter& e_;
  LaneEmitter lanes_;
  Value *args_ = nullptr, *num_rows_ = nullptr, *selection_ = nullptr, *first_ = nullptr, *out_first_ = nullptr;
  std::vector<Result> results_;
};

}  // namespace

void EmitHoles(const KernelPlan&, const QuernMapDescriptor& descriptor, Emitter* emitter) {
  MapEmitter(descriptor, emitter).EmitAll();
}

}  // namespace quern
