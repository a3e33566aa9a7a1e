// SPDX-License-Identifier: Apache-2.0
// Emits the holes of the sort template that read keys; emit_join.cc emits those that read and write tuples. The C++
// equivalent stands above each piece. For keys i32:nullable,i64:desc the encode stage becomes
//
//     void quern_hole_encode_rows(descriptor, keys, first, rows, n, words, incomplete) {
//       quern_block_encode_nulls(&keys[0], first, rows, n, words[0], /*combine=*/false, /*shift=*/63,
//                                /*null_is_one=*/true);
//       quern_block_encode_32(&keys[0], first, rows, n, words[0], /*combine=*/true, /*nullable=*/true, /*shift=*/31,
//                             0x80000000);
//       quern_block_encode_64(&keys[1], first, rows, n, words[1], /*combine=*/false, /*nullable=*/false, 0,
//                             0x7fff'ffff'ffff'ffff);
//     }
//
// and inlining turns the last call into a loop of a load, a xor and a store. Two tuples are compared key by key in
// straight-line code:
//
//     int32_t quern_hole_compare_tuples(descriptor, a, b) {
//       int32_t order = quern_block_order_64(/*descending: swapped*/ b + 8, a + 8, /*is_signed=*/true, false, 0);
//       if (order != 0) return order;
//       ..
//       return 0;
//     }
//
// This file reads the descriptor as ir-templates/generic/generic_sort.cc does, hole by hole; change both together. The
// differential tests check that they agree.
#include <cstddef>

#include "codegen/emit/emitter.h"
#include "runtime/spec/column_type.h"

namespace quern {
namespace {

using llvm::BasicBlock;
using llvm::Value;

std::string Text(Storage storage) { return std::string(StorageText(storage)); }

class SortEmitter {
 public:
  SortEmitter(const QuernSortDescriptor& descriptor, Emitter* emitter) : descriptor_(descriptor), e_(*emitter) {}

  void EmitAll() {
    EmitEncodeRows();
    EmitEncodeLeadingRows();
    EmitCompareTuples();
  }

 private:
  // The rows of a batch, and the arrays that receive their key words.
  struct Batch {
    Value *descriptor, *keys, *first, *rows, *n;
    Value* words;  // array of pointers to the arrays of words
    uint32_t num_words;
    Value* incomplete;
  };

  // The column of a key, and the column of its values: itself, or its dictionary with translated rows.
  struct Source {
    Value *key, *column, *rows;
  };

  // for each part: quern_block_encode_..(..);
  void EmitEncodeRows() {
    auto p = e_.Begin("encode_rows", {"descriptor", "keys", "first", "rows", "n", "words", "incomplete"});
    if (p.empty()) return;
    EmitKeys({p[0], p[1], p[2], p[3], p[4], p[5], descriptor_.num_words, p[6]});
  }

  // uint32_t incomplete = 0;  uint64_t* words[] = {lead};
  // for each part of word 0: quern_block_encode_..(..);
  // If there is only one word, this call does the same:
  // quern_sort_encode(descriptor, keys, first, rows, n, words, &incomplete);
  void EmitEncodeLeadingRows() {
    auto p = e_.Begin("encode_leading_rows", {"descriptor", "keys", "first", "rows", "n", "lead"});
    if (p.empty()) return;
    llvm::Function* encode = e_.function()->getParent()->getFunction("quern_sort_encode");
    Value* incomplete = e_.ir().CreateAlloca(e_.ir().getInt32Ty(), nullptr, "incomplete");
    Value* words = e_.ir().CreateAlloca(e_.ir().getPtrTy(), nullptr, "words");
    e_.ir().CreateStore(e_.I32(0), incomplete);
    e_.ir().CreateStore(p[5], words);
    if (descriptor_.num_words > 1 || encode == nullptr)
      return EmitKeys({p[0], p[1], p[2], p[3], p[4], words, 1, incomplete});
    e_.ir().CreateCall(encode, {p[0], p[1], p[2], p[3], p[4], words, incomplete});
    e_.ir().CreateRetVoid();
  }

  void EmitKeys(const Batch& batch) {
    translated_ = nullptr;
    for (uint32_t k = 0; k < descriptor_.num_keys; ++k) {
      if (descriptor_.parts[descriptor_.keys[k].first_part].word < batch.num_words) EmitKey(batch, k);
    }
    e_.ir().CreateRetVoid();
  }

  void EmitKey(const Batch& batch, uint32_t k) {
    const QuernSortKey& key = descriptor_.keys[k];
    const Source source = Translate(batch, k);
    for (uint32_t p = key.first_part; p < key.first_part + key.num_parts; ++p) {
      const QuernSortPart& part = descriptor_.parts[p];
      if (part.word >= batch.num_words) return;
      if (part.kind == kBytesPart) return EmitBytes(batch, k, source);  // all byte parts at once
      if (part.kind == kNullPart) EmitNulls(batch, key, part, source);
      else EmitNumber(batch, key, part, source);
    }
  }

  // uint32_t translated[kMaxBatchRows];    one buffer for all dictionaries of a body
  // quern_block_dictionary_rows_<index storage>(&keys[k], first, rows, n, translated);
  Source Translate(const Batch& batch, uint32_t k) {
    const QuernSortKey& key = descriptor_.keys[k];
    Value* column = e_.Element(batch.keys, k, sizeof(QuernColumn), "key" + llvm::Twine(k));
    if (key.index_storage == kNoStorage) return {column, column, batch.rows};
    if (translated_ == nullptr) {
      llvm::IRBuilder<> at_entry(&e_.function()->getEntryBlock(), e_.function()->getEntryBlock().begin());
      translated_ =
          at_entry.CreateAlloca(llvm::ArrayType::get(at_entry.getInt32Ty(), kMaxBatchRows), nullptr, "translated");
    }
    e_.Call("dictionary_rows_" + Text(key.index_storage), {column, batch.first, batch.rows, batch.n, translated_});
    return {column, e_.LoadPointer(column, offsetof(QuernColumn, dictionary), "dictionary"), translated_};
  }

  Value* Word(const Batch& batch, uint32_t word) {
    return e_.LoadPointer(batch.words, word * sizeof(uint64_t*), "word");
  }

  // quern_block_encode_nulls(&keys[k], first, rows, n, words[w], combine, shift, null_is_one);
  void EmitNulls(const Batch& batch, const QuernSortKey& key, const QuernSortPart& part, const Source& source) {
    e_.Call("encode_nulls", {source.key, batch.first, batch.rows, batch.n, Word(batch, part.word),
                             e_.Bool(!part.begins_word), e_.I32(part.shift), e_.Bool(!key.nulls_first)});
  }

  // quern_block_encode_<storage>(column, first, rows, n, words[w], combine, nullable, shift, flip);
  // 128 bits take two words: the high half, then the low half.
  void EmitNumber(const Batch& batch, const QuernSortKey& key, const QuernSortPart& part, const Source& source) {
    const std::string half = part.kind == kHighPart ? "high" : "low";
    e_.Call("encode_" + (key.storage == k128 ? half : Text(key.storage)),
            {source.column, batch.first, source.rows, batch.n, Word(batch, part.word), e_.Bool(!part.begins_word),
             e_.Bool(key.nullable), e_.I32(part.shift), e_.I64(SortFlip(&key, &part))});
  }

  // quern_block_encode_<storage>(descriptor, k, column, first, rows, n, words, num_words, incomplete);
  void EmitBytes(const Batch& batch, uint32_t k, const Source& source) {
    e_.Call("encode_" + Text(descriptor_.keys[k].storage),
            {batch.descriptor, e_.I32(k), source.column, batch.first, source.rows, batch.n, batch.words,
             e_.I32(batch.num_words), batch.incomplete});
  }

  // for each key with a field: order = ..;  if (order != 0) return order;
  // return 0;
  void EmitCompareTuples() {
    auto p = e_.Begin("compare_tuples", {"descriptor", "a", "b"});
    if (p.empty()) return;
    for (uint32_t k = 0; k < descriptor_.num_keys; ++k) {
      if (descriptor_.keys[k].field != kNoField) CompareKey(descriptor_.keys[k], p[1], p[2]);
    }
    e_.ir().CreateRet(e_.I32(0));
  }

  void CompareKey(const QuernSortKey& key, Value* a, Value* b) {
    const QuernField& field = *SortFieldOf(&descriptor_, &key);
    BasicBlock* next = e_.NewBlock("next_key");
    if (field.null_mask != 0) CompareNulls(key, field, a, b, next);
    Value* left = e_.Element(key.descending ? b : a, field.tuple_offset, 1, "left");
    Value* right = e_.Element(key.descending ? a : b, field.tuple_offset, 1, "right");
    Value* order =
        e_.Call("order_" + Text(key.storage),
                {left, right, e_.Bool(key.is_signed), e_.I32(key.rule), e_.I32(key.width_bytes)}, "order", 32);
    BasicBlock* differ = e_.NewBlock("differ");
    e_.ir().CreateCondBr(e_.ir().CreateICmpNE(order, e_.I32(0), "differs"), differ, next);
    e_.ir().SetInsertPoint(differ);
    e_.ir().CreateRet(order);
    e_.ir().SetInsertPoint(next);
  }

  // bool a_is_null = a[null_offset] & null_mask, b_is_null = ..;
  // if (a_is_null && b_is_null) goto next;
  // if (a_is_null || b_is_null) return a_is_null == nulls_first ? -1 : 1;
  void CompareNulls(const QuernSortKey& key, const QuernField& field, Value* a, Value* b, BasicBlock* next) {
    Value *a_is_null = IsNull(field, a), *b_is_null = IsNull(field, b);
    BasicBlock *any = e_.NewBlock("any_null"), *one = e_.NewBlock("one_null"), *values = e_.NewBlock("values");
    e_.ir().CreateCondBr(e_.ir().CreateOr(a_is_null, b_is_null, "any"), any, values);
    e_.ir().SetInsertPoint(any);
    e_.ir().CreateCondBr(e_.ir().CreateAnd(a_is_null, b_is_null, "both"), next, one);
    e_.ir().SetInsertPoint(one);
    Value *null_is_a = e_.I32(key.nulls_first ? ~0u : 1u), *null_is_b = e_.I32(key.nulls_first ? 1u : ~0u);
    e_.ir().CreateRet(e_.ir().CreateSelect(a_is_null, null_is_a, null_is_b, "order"));
    e_.ir().SetInsertPoint(values);
  }

  Value* IsNull(const QuernField& field, Value* tuple) {
    Value* null_byte =
        e_.ir().CreateLoad(e_.ir().getInt8Ty(), e_.Element(tuple, field.null_offset, 1, "null_byte_at"), "null_byte");
    return e_.ir().CreateICmpNE(e_.ir().CreateAnd(null_byte, e_.I8(field.null_mask)), e_.I8(0), "is_null");
  }

  const QuernSortDescriptor& descriptor_;
  Emitter& e_;
  Value* translated_ = nullptr;
};

}  // namespace

void EmitHoles(const KernelPlan& plan, const QuernSortDescriptor& descriptor, Emitter* emitter) {
  EmitHoles(plan, descriptor.rows, emitter);
  SortEmitter(descriptor, emitter).EmitAll();
}

}  // namespace quern
