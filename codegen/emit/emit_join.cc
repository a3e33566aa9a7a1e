// SPDX-License-Identifier: Apache-2.0
// Emits the holes of the join template for one descriptor: calls of blocks with constants, key by key and column by
// column. The C++ equivalent stands above each piece. For keys i64,utf8 the hash stage becomes
//
//     void quern_hole_hash_rows(descriptor, keys, first, rows, n, hashes) {
//       quern_block_hash_64(&keys[0], first, rows, n, hashes, /*combine=*/false, /*nullable=*/false, /*rule=*/0, 0);
//       quern_block_hash_var32(&keys[1], first, rows, n, hashes, /*combine=*/true, /*nullable=*/false, /*rule=*/0, 0);
//     }
//
// and inlining folds the constants away. Rows of a dictionary column are first translated to rows of its values, so
// that no block has to handle dictionaries:
//
//       uint32_t translated[kMaxBatchRows];
//       quern_block_dictionary_rows_32(&keys[0], first, rows, n, translated);
//       quern_block_hash_64(keys[0].dictionary, first, translated, n, hashes, ..);
//
// This file reads the descriptor as ir-templates/generic/generic_join.cc does, hole by hole; change both together. The
// differential tests check that they agree.
#include <cstddef>

#include "codegen/emit/emitter.h"
#include "runtime/spec/column_type.h"

namespace quern {
namespace {

using llvm::Value;

std::string Text(Storage storage) { return std::string(StorageText(storage)); }
bool IsDictionary(const QuernField& field) { return field.index_storage != kNoStorage; }

class JoinEmitter {
 public:
  JoinEmitter(const QuernJoinDescriptor& descriptor, Emitter* emitter) : descriptor_(descriptor), e_(*emitter) {}

  void EmitAll() {
    EmitConstant("tuple_bytes", descriptor_.tuple_bytes);
    EmitConstant("matched_offset", descriptor_.matched_offset);
    EmitFlag("prefetches", descriptor_.prefetches);
    EmitFlag("stops_at_first", descriptor_.stops_at_first);
    EmitFlag("stops_at_matched", descriptor_.stops_at_matched);
    EmitFilterRows();
    EmitPackRows();
    EmitHashRows();
    EmitStoreRows();
    EmitPrefetchKeys();
    EmitEqualRow();
    EmitResidualRow();
    EmitReserveMatches();
    EmitEmitMatches();
  }

 private:
  // The column that a block reads: the column itself, or its dictionary with translated rows.
  struct Source {
    Value* column;
    Value* rows;
  };

  void EmitConstant(const char* name, uint32_t value) {
    if (e_.Begin(name, {"descriptor"}).empty()) return;
    e_.ir().CreateRet(e_.I32(value));
  }

  void EmitFlag(const char* name, bool value) {
    if (e_.Begin(name, {"descriptor"}).empty()) return;
    e_.ir().CreateRet(e_.Bool(value));
  }

  Value* Column(Value* columns, uint32_t i, const char* side) {
    return e_.Element(columns, i, sizeof(QuernColumn), llvm::Twine(side) + llvm::Twine(i));
  }

  Value* OutColumn(Value* columns, uint32_t i) {
    return e_.Element(columns, i, sizeof(QuernOutColumn), "out" + llvm::Twine(i));
  }

  // One buffer serves all dictionaries of a body in turn.
  void BeginBody() { translated_ = nullptr; }

  Value* Translated() {
    if (translated_ == nullptr) {
      llvm::IRBuilder<> at_entry(&e_.function()->getEntryBlock(), e_.function()->getEntryBlock().begin());
      translated_ =
          at_entry.CreateAlloca(llvm::ArrayType::get(at_entry.getInt32Ty(), kMaxBatchRows), nullptr, "translated");
    }
    return translated_;
  }

  Source Translate(const QuernField& field, Value* column, Value* first, Value* rows, Value* n) {
    if (!IsDictionary(field)) return {column, rows};
    e_.Call("dictionary_rows_" + Text(field.index_storage), {column, first, rows, n, Translated()});
    return {e_.LoadPointer(column, offsetof(QuernColumn, dictionary), "dictionary"), Translated()};
  }

  // bool filtered = false;
  // for each nullable key k:
  //   if (keys[k].validity) {
  //     n = quern_block_filter_valid(&keys[k], first, rows, n, out);
  //     rows = out;
  //     filtered = true;
  //   }
  // return filtered ? n : kAllRows;
  void EmitFilterRows() {
    auto p = e_.Begin("filter_rows", {"descriptor", "keys", "first", "rows", "n", "out"});
    if (p.empty()) return;
    Value *keys = p[1], *first = p[2], *rows = p[3], *n = p[4], *out = p[5], *filtered = e_.Bool(false);
    for (uint32_t k = 0; k < descriptor_.num_keys; ++k) {
      if (!descriptor_.keys[k].nullable || descriptor_.keys[k].null_equal) continue;
      Value* key = Column(keys, k, "key");
      Value* has_nulls =
          e_.ir().CreateIsNotNull(e_.LoadPointer(key, offsetof(QuernColumn, validity), "validity"), "has_nulls");
      llvm::BasicBlock *before = e_.ir().GetInsertBlock(), *filter = e_.NewBlock("filter"),
                       *next = e_.NewBlock("next_key");
      e_.ir().CreateCondBr(has_nulls, filter, next);
      e_.ir().SetInsertPoint(filter);
      Value* kept = e_.Call("filter_valid", {key, first, rows, n, out}, "kept", 32);
      e_.ir().CreateBr(next);
      e_.ir().SetInsertPoint(next);
      rows = Merge(rows, before, out, filter, "rows");
      n = Merge(n, before, kept, filter, "n");
      filtered = Merge(filtered, before, e_.Bool(true), filter, "filtered");
    }
    e_.ir().CreateRet(e_.ir().CreateSelect(filtered, n, e_.I32(kAllRows), "answer"));
  }

  Value* Merge(Value* a, llvm::BasicBlock* from_a, Value* b, llvm::BasicBlock* from_b, const char* name) {
    llvm::PHINode* phi = e_.ir().CreatePHI(a->getType(), 2, name);
    phi->addIncoming(a, from_a);
    phi->addIncoming(b, from_b);
    return phi;
  }

  // for each k:
  //   quern_block_pack_<storage>(&keys[k], first, rows, n, words, combine, nullable, packed_shift, packed_null_bit);
  void EmitPackRows() {
    auto p = e_.Begin("pack_rows", {"descriptor", "keys", "first", "rows", "n", "words"});
    if (p.empty()) return;
    BeginBody();
    Value *keys = p[1], *first = p[2], *rows = p[3], *n = p[4], *words = p[5];
    for (uint32_t k = 0; k < descriptor_.num_keys; ++k) {
      const QuernField& key = descriptor_.keys[k];
      Source source = Translate(key, Column(keys, k, "key"), first, rows, n);
      e_.Call("pack_" + Text(key.storage),
              {source.column, first, source.rows, n, words, e_.Bool(k > 0), e_.Bool(IsNullEqual(key)),
               e_.I32(key.packed_shift), e_.I32(key.packed_null_bit)});
    }
    e_.ir().CreateRetVoid();
  }

  // for each k:
  //   quern_block_hash_<storage>(&keys[k], first, rows, n, hashes, combine, nullable, rule, width);
  void EmitHashRows() {
    auto p = e_.Begin("hash_rows", {"descriptor", "keys", "first", "rows", "n", "hashes"});
    if (p.empty()) return;
    BeginBody();
    Value *keys = p[1], *first = p[2], *rows = p[3], *n = p[4], *hashes = p[5];
    if (descriptor_.zero_hashes) {
      Value* bytes = e_.ir().CreateShl(e_.ir().CreateZExt(n, e_.ir().getInt64Ty()), 3, "bytes");
      e_.ir().CreateMemSet(hashes, e_.I8(0), bytes, llvm::MaybeAlign(8));
    }
    for (uint32_t k = 0; k < descriptor_.num_keys && !descriptor_.zero_hashes; ++k) {
      const QuernField& key = descriptor_.keys[k];
      Source source = Translate(key, Column(keys, k, "key"), first, rows, n);
      e_.Call("hash_" + Text(key.storage),
              {source.column, first, source.rows, n, hashes, e_.Bool(k > 0), e_.Bool(IsNullEqual(key)),
               e_.I32(key.rule), IsVariable(key.storage) ? PrefetchDistance(p[0]) : e_.I32(key.width_bytes)});
    }
    e_.ir().CreateRetVoid();
  }

  Value* PrefetchDistance(Value* descriptor) {
    return e_.LoadI32(descriptor, offsetof(QuernJoinDescriptor, prefetch_string_bytes), "prefetch_string_bytes");
  }

  // if there are null bits:
  //   quern_block_zero_null_bits(tuples, n, tuple_bytes, null_bits_offset, null_bits_bytes);
  // for each k, then for each payload column:
  //   quern_block_store_<storage>(&keys[k], first, rows, n, tuples, tuple_bytes, field_offset, ..);
  void EmitStoreRows() {
    auto p = e_.Begin("store_rows", {"descriptor", "keys", "payload", "first", "rows", "n", "first_row_id", "tuples"});
    if (p.empty()) return;
    BeginBody();
    Value *n = p[5], *tuples = p[7];
    if (descriptor_.null_bits_bytes != 0) {
      e_.Call("zero_null_bits", {tuples, n, e_.I32(descriptor_.tuple_bytes), e_.I32(descriptor_.null_bits_offset),
                                 e_.I32(descriptor_.null_bits_bytes)});
    }
    for (uint32_t k = 0; k < descriptor_.num_keys && descriptor_.packed_bytes == 0; ++k)
      StoreField(descriptor_.keys[k], Column(p[1], k, "key"), p);
    for (uint32_t c = 0; c < descriptor_.num_build; ++c)
      StoreField(descriptor_.build[c], Column(p[2], c, "payload"), p);
    for (uint32_t r = 0; r < descriptor_.num_residual; ++r)
      StoreField(descriptor_.build_residual[r], Column(p[2], descriptor_.num_build + r, "residual"), p);
    if (descriptor_.host_row != nullptr) StoreField(*descriptor_.host_row, nullptr, p);
    e_.ir().CreateRetVoid();
  }

  void StoreField(const QuernField& field, Value* column, const std::vector<Value*>& p) {
    Value *first = p[3], *rows = p[4], *n = p[5], *first_row_id = p[6], *tuples = p[7];
    if (field.storage == kRowId) {
      e_.Call("store_rowid",
              {first, rows, n, tuples, first_row_id, e_.I32(descriptor_.tuple_bytes), e_.I32(field.tuple_offset)});
      return;
    }
    Source source = Translate(field, column, first, rows, n);
    e_.Call("store_" + Text(field.storage),
            {source.column, first, source.rows, n, tuples, e_.I32(descriptor_.tuple_bytes), e_.I32(field.tuple_offset),
             e_.I32(field.null_offset), e_.I8(field.null_mask), e_.I32(field.rule), e_.I32(field.width_bytes)});
  }

  // for each key of variable length:
  //   quern_block_prefetch_string(tuple + offset, width);
  void EmitPrefetchKeys() {
    auto p = e_.Begin("prefetch_keys", {"descriptor", "tuple"});
    if (p.empty()) return;
    for (uint32_t k = 0; k < descriptor_.num_keys; ++k) {
      const QuernField& key = descriptor_.keys[k];
      if (!IsVariable(key.storage)) continue;
      e_.Call("prefetch_string", {e_.Element(p[1], key.tuple_offset, 1, "field"), e_.I32(key.width_bytes)});
    }
    e_.ir().CreateRetVoid();
  }

  // Keys that are compared as one machine word each and have no nulls come first, without branches between them. The
  // others follow, each only if all before it are equal:
  //
  // return (keys[0] == tuple.key0 & keys[2] == tuple.key2) &&
  //        quern_block_equal_var32(&keys[1], row, tuple + offset, ..) && ..;
  void EmitEqualRow() {
    auto p = e_.Begin("equal_row", {"descriptor", "keys", "row", "tuple"});
    if (p.empty()) return;
    Value* words_equal = nullptr;
    for (uint32_t k = 0; k < descriptor_.num_keys; ++k) {
      if (!IsMachineWord(descriptor_.keys[k])) continue;
      Value* equal = EqualValue(descriptor_.keys[k], Column(p[1], k, "key"), p[2], p[3]);
      words_equal = words_equal ? e_.ir().CreateAnd(words_equal, equal, "words_equal") : equal;
    }
    llvm::BasicBlock* unequal = nullptr;
    if (words_equal != nullptr) unequal = ContinueIf(words_equal, unequal);
    for (uint32_t k = 0; k < descriptor_.num_keys; ++k) {
      if (IsMachineWord(descriptor_.keys[k])) continue;
      unequal = ContinueIf(EqualKey(descriptor_.keys[k], Column(p[1], k, "key"), p[2], p[3]), unequal);
    }
    e_.ir().CreateRet(e_.Bool(true));
    e_.ir().SetInsertPoint(unequal);
    e_.ir().CreateRet(e_.Bool(false));
  }

  static bool IsNullEqual(const QuernField& key) { return key.nullable && key.null_equal; }

  static bool IsMachineWord(const QuernField& key) {
    return !IsNullEqual(key) && !IsDictionary(key) && !IsVariable(key.storage) && key.storage != kFixed;
  }

  // if (!condition) return false;
  llvm::BasicBlock* ContinueIf(Value* condition, llvm::BasicBlock* unequal) {
    if (unequal == nullptr) unequal = e_.NewBlock("unequal");
    llvm::BasicBlock* next = e_.NewBlock("next_key");
    e_.ir().CreateCondBr(condition, next, unequal);
    e_.ir().SetInsertPoint(next);
    return unequal;
  }

  // quern_block_equal_<storage>(column, row, tuple + offset, rule, width), through the dictionary if there is one;
  // under a rule that weighs strings, quern_block_equal_collated_<storage>.
  Value* EqualValue(const QuernField& key, Value* column, Value* row, Value* tuple) {
    if (IsDictionary(key)) {
      row = e_.Call("dictionary_row_" + Text(key.index_storage), {column, row}, "value_row", 32);
      column = e_.LoadPointer(column, offsetof(QuernColumn, dictionary), "dictionary");
    }
    Value* field = e_.Element(tuple, key.tuple_offset, 1, "field");
    const std::string block = (key.rule & kWeighsEquality) != 0 ? "equal_collated_" : "equal_";
    return e_.Call(block + Text(key.storage), {column, row, field, e_.I32(key.rule), e_.I32(key.width_bytes)}, "equal",
                   1);
  }

  // Null equals null and no value:
  //
  // bool stored_null = tuple[null_offset] & null_mask, is_null = !quern_block_valid(column, row);
  // return stored_null || is_null ? stored_null && is_null : EqualValue;
  Value* EqualKey(const QuernField& key, Value* column, Value* row, Value* tuple) {
    if (!IsNullEqual(key)) return EqualValue(key, column, row, tuple);
    Value* stored_null = StoredNull(key, tuple);
    Value* is_null = e_.ir().CreateNot(e_.Call("valid", {column, row}, "valid", 1), "is_null");
    Value* both_null = e_.ir().CreateAnd(stored_null, is_null, "both_null");
    llvm::BasicBlock *before = e_.ir().GetInsertBlock(), *values = e_.NewBlock("values"),
                     *compared = e_.NewBlock("compared");
    e_.ir().CreateCondBr(e_.ir().CreateOr(stored_null, is_null, "any_null"), compared, values);
    e_.ir().SetInsertPoint(values);
    Value* equal = EqualValue(key, column, row, tuple);
    llvm::BasicBlock* values_end = e_.ir().GetInsertBlock();
    e_.ir().CreateBr(compared);
    e_.ir().SetInsertPoint(compared);
    return Merge(both_null, before, equal, values_end, "equal");
  }

  // return quern_block_compare_<storage>(&payload[num_probe + r], row, tuple + offset, comparison, is_signed) && ..;
  // for each r; where its columns may be null, preceded by quern_block_valid(..) && !(tuple[null_offset] & null_mask).
  void EmitResidualRow() {
    auto p = e_.Begin("residual_row", {"descriptor", "payload", "row", "tuple"});
    if (p.empty()) return;
    Value *row = p[2], *tuple = p[3];
    llvm::BasicBlock* fails = nullptr;
    for (uint32_t r = 0; r < descriptor_.num_residual; ++r) {
      const QuernField& field = descriptor_.build_residual[r];
      Value* column = Column(p[1], descriptor_.num_probe + r, "residual");
      if (field.nullable) {
        Value* valid = e_.ir().CreateAnd(e_.Call("valid", {column, row}, "valid", 1),
                                         e_.ir().CreateNot(StoredNull(field, tuple)), "valid");
        fails = ContinueIf(valid, fails);
      }
      Value* at = e_.Element(tuple, field.tuple_offset, 1, "field");
      Value* holds = e_.Call("compare_" + Text(field.storage),
                             {column, row, at, e_.I8(field.comparison), e_.Bool(field.is_signed)}, "holds", 1);
      fails = ContinueIf(holds, fails);
    }
    e_.ir().CreateRet(e_.Bool(true));
    e_.ir().SetInsertPoint(fails);
    e_.ir().CreateRet(e_.Bool(false));
  }

  // tuple[null_offset] & null_mask
  Value* StoredNull(const QuernField& field, Value* tuple) {
    Value* null_byte =
        e_.ir().CreateLoad(e_.ir().getInt8Ty(), e_.Element(tuple, field.null_offset, 1, "null_byte_at"), "null_byte");
    return e_.ir().CreateICmpNE(e_.ir().CreateAnd(null_byte, e_.I8(field.null_mask)), e_.I8(0), "stored_null");
  }

  // int64_t fit = n;
  // for each string column c of the probe side:
  //   fit = quern_block_reserve_probe_<storage>(&payload[c], rows, fit, &out_probe[c], nullable);
  //   if (fit <= 0) return fit;
  // for each string column c of the build side:
  //   fit = quern_block_reserve_build_<storage>(base, tuples, fit, &out_build[c], ..);
  //   if (fit <= 0) return fit;
  // return fit;
  void EmitReserveMatches() {
    auto p = e_.Begin("reserve_matches", {"args", "rows", "tuples", "n"});
    if (p.empty()) return;
    BeginBody();
    Value *args = p[0], *n = p[3], *fit = e_.ir().CreateZExt(n, e_.ir().getInt64Ty(), "fit");
    for (uint32_t c = 0; c < descriptor_.num_probe; ++c) {
      const QuernField& field = descriptor_.probe[c];
      if (!IsVariable(field.storage)) continue;
      Source source = Translate(field, Column(Payload(args), c, "payload"), e_.I64(0), p[1], n);
      fit = e_.Call("reserve_probe_" + Text(field.storage),
                    {source.column, source.rows, n, OutColumn(OutProbe(args), c), e_.Bool(field.nullable)}, "fit", 64);
      n = ReturnUnlessPositive(fit);
    }
    for (uint32_t c = 0; c < descriptor_.num_build; ++c) {
      const QuernField& field = descriptor_.build[c];
      if (!IsVariable(field.storage)) continue;
      fit = e_.Call("reserve_build_" + Text(field.storage),
                    {Base(args), p[2], n, OutColumn(OutBuild(args), c), e_.I32(field.tuple_offset),
                     e_.I32(field.null_offset), e_.I8(field.null_mask)},
                    "fit", 64);
      n = ReturnUnlessPositive(fit);
    }
    e_.ir().CreateRet(fit);
  }

  Value* ReturnUnlessPositive(Value* fit) {
    llvm::BasicBlock *stop = e_.NewBlock("stop"), *next = e_.NewBlock("next_column");
    e_.ir().CreateCondBr(e_.ir().CreateICmpSGT(fit, e_.I64(0), "fits"), next, stop);
    e_.ir().SetInsertPoint(stop);
    e_.ir().CreateRet(fit);
    e_.ir().SetInsertPoint(next);
    return e_.ir().CreateTrunc(fit, e_.ir().getInt32Ty(), "n");
  }

  // for each c of the probe side:
  //   quern_block_emit_probe_<storage>(&payload[c], rows, n, &out_probe[c], out_rows, nullable, width);
  // for each c of the build side:
  //   quern_block_emit_build_<storage>(base, tuples, n, &out_build[c], out_rows, field_offset, null_offset, null_mask,
  //                                    width);
  void EmitEmitMatches() {
    auto p = e_.Begin("emit_matches", {"args", "rows", "tuples", "n"});
    if (p.empty()) return;
    BeginBody();
    Value *args = p[0], *rows = p[1], *tuples = p[2], *n = p[3];
    Value* out_row = e_.LoadI64(args, offsetof(QuernJoinProbeArgs, out_rows), "out_row");
    for (uint32_t c = 0; c < descriptor_.num_probe; ++c) {
      const QuernField& field = descriptor_.probe[c];
      Value* out = OutColumn(OutProbe(args), c);
      if (field.storage == kRowId) {
        e_.Call("emit_rowid",
                {rows, n, out, out_row, e_.LoadI64(args, offsetof(QuernJoinProbeArgs, first_row_id), "first_row_id"),
                 e_.Bool(field.nullable)});
        continue;
      }
      Source source = Translate(field, Column(Payload(args), c, "payload"), e_.I64(0), rows, n);
      e_.Call("emit_probe_" + Text(field.storage),
              {source.column, source.rows, n, out, out_row, e_.Bool(field.nullable), e_.I32(field.width_bytes)});
    }
    for (uint32_t c = 0; c < descriptor_.num_build; ++c) {
      const QuernField& field = descriptor_.build[c];
      e_.Call("emit_build_" + Text(field.storage == kRowId ? k64 : field.storage),
              {Base(args), tuples, n, OutColumn(OutBuild(args), c), out_row, e_.I32(field.tuple_offset),
               e_.I32(field.null_offset), e_.I8(field.null_mask), e_.I32(field.width_bytes)});
    }
    e_.ir().CreateRetVoid();
  }

  Value* Payload(Value* args) { return e_.LoadPointer(args, offsetof(QuernJoinProbeArgs, payload), "payload"); }
  Value* Base(Value* args) { return e_.LoadPointer(args, offsetof(QuernJoinProbeArgs, tuples), "base"); }
  Value* OutProbe(Value* args) { return e_.LoadPointer(args, offsetof(QuernJoinProbeArgs, out_probe), "out_probe"); }
  Value* OutBuild(Value* args) { return e_.LoadPointer(args, offsetof(QuernJoinProbeArgs, out_build), "out_build"); }

  const QuernJoinDescriptor& descriptor_;
  Emitter& e_;
  Value* translated_ = nullptr;
};

}  // namespace

void EmitHoles(const KernelPlan&, const QuernJoinDescriptor& descriptor, Emitter* emitter) {
  JoinEmitter(descriptor, emitter).EmitAll();
}

}  // namespace quern
