// SPDX-License-Identifier: Apache-2.0
// Emits the holes of the aggregation template that update accumulators; emit_tuples.cc emits those that read keys. For
// aggs=count_star,sum(i64:nullable) one loop is emitted:
//
//     QuernColumn column0 = args->columns[0];              // a copy: stores into groups cannot alias it
//     for (i = 0; i < args->n; ++i) {
//       uint32_t row = first + rows[i];   uint8_t* tuple = tuples[i];
//       quern_block_update_rows(0, tuple + 8, /*one=*/1, ..);
//       bool takes = quern_block_valid(&column0, row);     // only in the variant that tests for nulls
//       uint64_t value = quern_block_integer_64(&column0, row, /*is_signed=*/true);
//       quern_block_update_sum(takes ? value : 0, tuple + 16, takes, ..);
//       tuple[24] |= takes;                                // the sum has seen a value
//     }
//
// A row that does not take part adds 0 where the update function allows that (IsMasked); otherwise a branch skips it.
// The loop over runs copies the states of a group to local variables, which become registers, and back:
//
//     for (run = 0, i = 0; run < args->n; ++run) {
//       Group local = *tuples[run];
//       do { .. as above, into local .. } while (++i < run_ends[run]);
//       quern_block_update_rows(0, &local + 8, /*one=*/run_ends[run] - begin_of_run, ..);     // not row by row
//       *tuples[run] = local;
//     }
//
// The generic kernel updates one accumulator after the other (ir-templates/generic/generic_aggregate.cc), so that the
// two share blocks but no control, unlike other holes (ir-templates/holes/). The differential tests check that they
// agree.
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "codegen/emit/emit_lane_totals.h"
#include "codegen/emit/emitter.h"
#include "codegen/emit/input_streams.h"
#include "codegen/emit/state_vectors.h"
#include "codegen/emit/value_names.h"
#include "runtime/abi/aggregate_abi.h"
#include "runtime/blocks/accumulators.h"
#include "runtime/spec/column_type.h"

namespace quern {
namespace {

using llvm::BasicBlock;
using llvm::PHINode;
using llvm::Value;

struct StepText {
  UpdateReads reads;
  const char* text;
};

constexpr StepText kUpdateFunctions[] = {
#define QUERN_UPDATE_FUNCTION(Id, text, reads, state_bytes) {reads, #text},
#include "runtime/abi/update_functions.def"
};

const char* ReaderText(UpdateReads reads) {
  switch (reads) {
    case kReadsInteger: return "integer_";
    case kReadsNumber:
    case kReadsNumbers: return "number_";
    case kReadsOrdered: return "ordered_";
    case kReadsBits: return "bits_";
    case kReadsNothing:
    case kReadsWide: break;
  }
  return "";
}

// How the states of groups are updated.
struct UpdateChoices {
  uint32_t input_rows = 0;    // prefetch distance for input columns, in rows; 0: none
  bool uses_vectors = false;  // updates states as vectors, where possible (state_vectors.h)
};

// Emits one of the three loops.
class UpdateEmitter {
 public:
  UpdateEmitter(const QuernAggregateDescriptor& descriptor, const UpdateChoices& choices, Emitter* emitter,
                bool tests_nulls)
      : descriptor_(descriptor),
        choices_(choices),
        e_(*emitter),
        tests_nulls_(tests_nulls),
        streams_(choices.input_rows, emitter),
        key_streams_(choices.input_rows, emitter) {}

  void EmitRows(const char* name) {
    if (!Begin(name)) return;
    if (choices_.uses_vectors) BeginVectors(StateVectorsOf(descriptor_, tests_nulls_));
    BasicBlock *entry = e_.ir().GetInsertBlock(), *rows_loop = e_.NewBlock("rows"), *loop = e_.NewBlock("row");
    BasicBlock *rows_end = e_.NewBlock("rows_end"), *done = e_.NewBlock("done");
    e_.ir().CreateCondBr(e_.ir().CreateICmpNE(n_, e_.I32(0), "any"), rows_loop, done);
    e_.ir().SetInsertPoint(rows_loop);
    PHINode* begin = Counter(entry, e_.I32(0), "begin");
    Value* end = RowsOf(begin, n_);
    BasicBlock* prefetched = e_.ir().GetInsertBlock();
    e_.ir().CreateBr(loop);
    e_.ir().SetInsertPoint(loop);
    PHINode* i = Counter(prefetched, begin, "i");
    EmitRow(i, LoadTuple(i));
    Value* next = Next(i);
    e_.ir().CreateCondBr(e_.ir().CreateICmpULT(next, end, "more"), loop, rows_end);
    e_.ir().SetInsertPoint(rows_end);
    begin->addIncoming(end, rows_end);
    e_.ir().CreateCondBr(e_.ir().CreateICmpULT(end, n_, "more_rows"), rows_loop, done);
    e_.ir().SetInsertPoint(done);
    EndVectors();
    e_.ir().CreateRetVoid();
  }

  void EmitRuns(const char* name) {
    if (!Begin(name)) return;
    Value* run_ends = e_.LoadPointer(args_, offsetof(QuernUpdateArgs, run_ends), "run_ends");
    Value* local = e_.Local(llvm::ArrayType::get(e_.ir().getInt64Ty(), descriptor_.group.tuple_bytes / 8), "local");
    BasicBlock *entry = e_.ir().GetInsertBlock(), *run_loop = e_.NewBlock("run"), *done = e_.NewBlock("done");
    counts_runs_ = true;
    e_.ir().CreateCondBr(e_.ir().CreateICmpNE(n_, e_.I32(0), "any"), run_loop, done);
    e_.ir().SetInsertPoint(run_loop);
    PHINode* run = Counter(entry, e_.I32(0), "run");
    PHINode* run_begin = Counter(entry, e_.I32(0), "run_begin");
    Value* tuple = LoadTuple(run);
    Value* run_end_row = LoadElement(run_ends, run, "run_end_row");
    CopyStates(local, tuple);
    if (ReadsRows()) EmitRunRows(run_begin, run_end_row, local);
    EmitRunCounts(e_.ir().CreateSub(run_end_row, run_begin, "run_rows"), local);
    CopyStates(tuple, local);
    Value* next_run = Next(run);
    run_begin->addIncoming(run_end_row, e_.ir().GetInsertBlock());
    e_.ir().CreateCondBr(e_.ir().CreateICmpULT(next_run, n_, "more_runs"), run_loop, done);
    e_.ir().SetInsertPoint(done);
    e_.ir().CreateRetVoid();
  }

 private:
  // The rows begin .. end-1 of a run.
  void EmitRunRows(Value* run_begin, Value* run_end_row, Value* local) {
    BasicBlock *entry = e_.ir().GetInsertBlock(), *rows_loop = e_.NewBlock("rows"), *row_loop = e_.NewBlock("row");
    BasicBlock *rows_end = e_.NewBlock("rows_end"), *run_end = e_.NewBlock("run_end");
    e_.ir().CreateBr(rows_loop);
    e_.ir().SetInsertPoint(rows_loop);
    PHINode* begin = Counter(entry, run_begin, "begin");
    Value* end = RowsOf(begin, run_end_row);
    BasicBlock* prefetched = e_.ir().GetInsertBlock();
    e_.ir().CreateBr(row_loop);
    e_.ir().SetInsertPoint(row_loop);
    PHINode* i = Counter(prefetched, begin, "i");
    EmitRow(i, local);
    Value* next = Next(i);
    e_.ir().CreateCondBr(e_.ir().CreateICmpULT(next, end, "more"), row_loop, rows_end);
    e_.ir().SetInsertPoint(rows_end);
    begin->addIncoming(end, rows_end);
    e_.ir().CreateCondBr(e_.ir().CreateICmpULT(end, run_end_row, "more_rows"), rows_loop, run_end);
    e_.ir().SetInsertPoint(run_end);
  }

  bool Begin(const char* name) {
    auto p = e_.Begin(name, "(args)");
    if (p.empty()) return false;
    args_ = p[0];
    n_ = e_.ir().CreateLoad(e_.ir().getInt32Ty(), e_.Element(args_, offsetof(QuernUpdateArgs, n), 1, "n_at"), "n");
    rows_ = e_.LoadPointer(args_, offsetof(QuernUpdateArgs, rows), "rows");
    first_ = e_.ir().CreateTrunc(e_.LoadI64(args_, offsetof(QuernUpdateArgs, first), "first"), e_.ir().getInt32Ty(),
                                 "first");
    first_row_id_ = e_.LoadI64(args_, offsetof(QuernUpdateArgs, first_row_id), "first_row_id");
    tuples_ = e_.LoadPointer(args_, offsetof(QuernUpdateArgs, tuples), "tuples");
    overflowed_ = e_.LoadPointer(args_, offsetof(QuernUpdateArgs, overflowed), "overflowed");
    columns_ = e_.LoadPointer(args_, offsetof(QuernUpdateArgs, columns), "columns");
    if (descriptor_.computed != nullptr) {
      computed_ = e_.LoadPointer(args_, offsetof(QuernUpdateArgs, computed), "computed");
      first_computed_ = e_.LoadI32(args_, offsetof(QuernUpdateArgs, first_computed), "first_computed");
    }
    CopyColumns();
    if (choices_.input_rows == 0) return true;
    streams_.AddColumnsOf(descriptor_.computed, columns_, ColumnsRead());  // for the blocks behind this one
    AddKeyStreams();
    prefetch_first_ = e_.LoadI64(args_, offsetof(QuernUpdateArgs, prefetch_first), "prefetch_first");
    prefetch_rows_ = e_.LoadPointer(args_, offsetof(QuernUpdateArgs, prefetch_rows), "prefetch_rows");
    return true;
  }

  // The end of the next kRowsPerPrefetch rows from `begin` on, at most `most`. Also prefetches the input of as many
  // later rows.
  Value* RowsOf(Value* begin, Value* most) {
    PrefetchInput(begin);
    return e_.ir().CreateBinaryIntrinsic(llvm::Intrinsic::umin, e_.ir().CreateAdd(begin, e_.I32(kRowsPerPrefetch)),
                                         most, nullptr, "end");
  }

  // Prefetches one element of each column that is read, prefetch_input_rows rows ahead: one cache line of eight-byte
  // values for every kRowsPerPrefetch rows. Gathered rows are prefetched in the order in which they lie in memory.
  //
  //     uint64_t row = prefetch_first + prefetch_rows[i];   prefetch(&values0[row + 2048]);
  //     if (prefetches_keys) prefetch(&key_values0[row + 2048]);
  void PrefetchInput(Value* i) {
    if (streams_.empty() && key_streams_.empty()) return;
    Value* picked = e_.ir().CreateZExt(LoadElement(prefetch_rows_, i, "prefetch_picked"), e_.ir().getInt64Ty());
    Value* row = e_.ir().CreateAdd(prefetch_first_, picked, "prefetch_row");
    streams_.Prefetch(row);
    if (key_streams_.empty()) return;
    BasicBlock *prefetch_keys = e_.NewBlock("prefetch_keys"), *prefetched = e_.NewBlock("prefetched");
    e_.ir().CreateCondBr(prefetches_keys_, prefetch_keys, prefetched);
    e_.ir().SetInsertPoint(prefetch_keys);
    key_streams_.Prefetch(row);
    e_.ir().CreateBr(prefetched);
    e_.ir().SetInsertPoint(prefetched);
  }

  // Columns of the batch.
  std::set<uint32_t> ColumnsRead() const {
    std::set<uint32_t> columns;
    for (const auto& [key, local] : locals_)
      if (!key.first) columns.insert(key.second);
    return columns;
  }

  void AddKeyStreams() {
    Value* keys = e_.LoadPointer(args_, offsetof(QuernUpdateArgs, keys), "keys");
    for (uint32_t k = 0; k < descriptor_.group.num_keys; ++k) {
      const QuernField& key = descriptor_.group.keys[k];
      key_streams_.Add(e_.Element(keys, k, sizeof(QuernColumn), "key" + llvm::Twine(k)), key.storage);
    }
    Value* prefetches_keys = e_.Element(args_, offsetof(QuernUpdateArgs, prefetches_keys), 1, "prefetches_keys_at");
    prefetches_keys_ =
        e_.ir().CreateICmpNE(e_.ir().CreateLoad(e_.ir().getInt32Ty(), prefetches_keys), e_.I32(0), "prefetches_keys");
  }

  // QuernColumn column3 = args->columns[3];    for each column that an accumulator reads, or its dictionary
  void CopyColumns() {
    for (uint32_t k = 0; k < descriptor_.num_accumulators; ++k) {
      const QuernAccumulator& a = descriptor_.accumulators[k];
      if (a.step == kUpdateOutOfLine) continue;
      for (uint32_t i = 0; i < a.num_arguments; ++i)
        CopyColumn(KeyOf(a.arguments[i]), a.arguments[i].storage, a.arguments[i].index_storage);
      if (a.filtered) CopyColumn(FilterOf(a), kBit, kNoStorage);
    }
  }

  // A column of the batch, or of those that were computed.
  using ColumnKey = std::pair<bool, uint32_t>;
  static ColumnKey KeyOf(const QuernArgument& argument) { return {argument.is_computed, argument.column}; }
  static ColumnKey FilterOf(const QuernAccumulator& a) { return {a.is_filter_computed, a.filter_column}; }

  void CopyColumn(ColumnKey key, Storage storage, Storage index) {
    if (locals_.count(key) != 0) return;
    const auto [is_computed, column] = key;
    const std::string name = (is_computed ? "computed" : "column") + std::to_string(column);
    Value* from = e_.Element(is_computed ? computed_ : columns_, column, sizeof(QuernColumn), name);
    if (!is_computed) streams_.Add(from, index == kNoStorage ? storage : index);
    if (index != kNoStorage) {
      // uint32_t translated3[kMaxBatchRows]; quern_block_dictionary_rows_32(&columns[3], first, rows, n, translated3);
      Value* translated =
          e_.Local(llvm::ArrayType::get(e_.ir().getInt32Ty(), kMaxBatchRows), "translated" + llvm::Twine(column));
      TranslateRows(from, index, translated);
      translated_[key] = translated;
      from = e_.LoadPointer(from, offsetof(QuernColumn, dictionary), "dictionary");
    }
    locals_[key] = e_.CopyOfColumn(from, "local_" + name);
  }

  void TranslateRows(Value* column, Storage index, Value* translated) {
    Value* selection = e_.LoadPointer(args_, offsetof(QuernUpdateArgs, selection), "selection");
    Value* first = e_.LoadI64(args_, offsetof(QuernUpdateArgs, first), "first");
    Value* num_rows = e_.ir().CreateLoad(
        e_.ir().getInt32Ty(), e_.Element(args_, offsetof(QuernUpdateArgs, num_rows), 1, "num_rows_at"), "num_rows");
    e_.Call("dictionary_rows_" + std::string(StorageText(index)), {column, first, selection, num_rows, translated});
  }

  PHINode* Counter(BasicBlock* from, Value* begin, const char* name) {
    PHINode* phi = e_.ir().CreatePHI(e_.ir().getInt32Ty(), 2, name);
    phi->addIncoming(begin, from);
    return phi;
  }

  Value* Next(PHINode* counter) {
    Value* next = e_.ir().CreateAdd(counter, e_.I32(1), "next", /*HasNUW=*/true);
    counter->addIncoming(next, e_.ir().GetInsertBlock());
    return next;
  }

  Value* LoadElement(Value* array, Value* i, const char* name) {
    return e_.ir().CreateLoad(e_.ir().getInt32Ty(), e_.ElementAt(array, i, 4, "at"), name);
  }
  Value* LoadTuple(Value* i) {
    return e_.ir().CreateLoad(e_.ir().getPtrTy(), e_.ElementAt(tuples_, i, 8, "tuple_at"), "tuple");
  }

  // States and seen bits; the key stays in place.
  void CopyStates(Value* to, Value* from) {
    CopyBytes(to, from, descriptor_.states_offset, descriptor_.states_bytes);
    CopyBytes(to, from, descriptor_.bits_offset, descriptor_.bits_bytes);
  }

  void CopyBytes(Value* to, Value* from, uint32_t offset, uint32_t bytes) {
    if (bytes == 0) return;
    e_.ir().CreateMemCpy(e_.Element(to, offset, 1, "to"), llvm::MaybeAlign(1), e_.Element(from, offset, 1, "from"),
                         llvm::MaybeAlign(1), bytes);
  }

  // Whether a row of a run is looked at.
  bool ReadsRows() const {
    for (uint32_t k = 0; k < descriptor_.num_accumulators; ++k) {
      const QuernAccumulator& a = descriptor_.accumulators[k];
      if (a.step != kUpdateOutOfLine && !blocks::CountsAllRows(a)) return true;
    }
    return false;
  }

  void EmitRunCounts(Value* num_rows, Value* tuple) {
    for (uint32_t k = 0; k < descriptor_.num_accumulators; ++k) {
      const QuernAccumulator& a = descriptor_.accumulators[k];
      if (!blocks::CountsAllRows(a)) continue;
      e_.Call("update_rows", {e_.I64(0), e_.Element(tuple, a.state_offset, 1, NameOfState(a)),
                              e_.ir().CreateZExt(num_rows, e_.ir().getInt64Ty(), "run_rows"), e_.Bool(false), e_.I64(0),
                              e_.Element(overflowed_, k, 1, "overflowed")});
    }
  }

  // Updates all accumulators for row i.
  void EmitRow(Value* i, Value* tuple) {
    Value* row = e_.ir().CreateAdd(first_, LoadElement(rows_, i, "picked"), "row");
    for (VectorStates& states : vectors_) EmitVector(states, i, row, tuple);
    if (!vectors_.empty()) return;
    std::map<uint32_t, uint8_t> seen_by_all;  // by byte of the tuple: seen bits that every row of this loop sets
    for (uint32_t k = 0; k < descriptor_.num_accumulators; ++k) {
      const QuernAccumulator& a = descriptor_.accumulators[k];
      if (a.step == kUpdateOutOfLine || (counts_runs_ && blocks::CountsAllRows(a))) continue;
      Value* takes = Takes(a, i, row);
      if (takes == nullptr && a.seen_mask != 0) seen_by_all[a.seen_offset] |= a.seen_mask;
      EmitAccumulator(k, i, row, tuple, takes);
    }
    for (const auto& [offset, mask] : seen_by_all) SetSeen(tuple, offset, e_.I8(mask));
  }

  void SetSeen(Value* tuple, uint32_t offset, Value* mask) {
    Value* at = e_.Element(tuple, offset, 1, "seen_at");
    e_.ir().CreateStore(e_.ir().CreateOr(e_.ir().CreateLoad(e_.ir().getInt8Ty(), at, "seen"), mask), at);
  }

  // Whether the row takes part: its arguments are valid and its filter is true. Null where it always does.
  Value* Takes(const QuernAccumulator& a, Value* i, Value* row) {
    Value* takes = nullptr;
    const auto also = [&](Value* condition) {
      takes = takes == nullptr ? condition : e_.ir().CreateAnd(takes, condition, "takes");
    };
    for (uint32_t k = 0; k < a.num_arguments && tests_nulls_; ++k) {
      // Validity of the indices: the local copy of a dictionary column has the validity of its values.
      const QuernArgument& argument = a.arguments[k];
      Value* at = argument.is_computed ? ComputedRow(i) : row;
      if (argument.nullable) also(e_.Call("valid", {ValidityColumn(argument), at}, "valid", 1));
    }
    if (!a.filtered) return takes;
    Value *filter = locals_[FilterOf(a)], *at = a.is_filter_computed ? ComputedRow(i) : row;
    also(e_.Call("valid", {filter, at}, "filter_valid", 1));
    also(e_.ir().CreateICmpNE(e_.Call("bits_bit", {filter, at, e_.Bool(false)}, "filter", 64), e_.I64(0), "passes"));
    return takes;
  }

  Value* ValidityColumn(const QuernArgument& argument) {
    if (argument.index_storage == kNoStorage) return locals_[KeyOf(argument)];
    return e_.Element(columns_, argument.column, sizeof(QuernColumn), "column" + llvm::Twine(argument.column));
  }

  Value* ComputedRow(Value* i) { return e_.ir().CreateAdd(first_computed_, i, "computed_row"); }

  Value* RowOf(const QuernArgument& argument, Value* i, Value* row) {
    if (argument.is_computed) return ComputedRow(i);
    const auto translated = translated_.find(KeyOf(argument));
    return translated == translated_.end() ? row : LoadElement(translated->second, i, "value_row");
  }

  void EmitAccumulator(uint32_t k, Value* i, Value* row, Value* tuple, Value* takes) {
    const QuernAccumulator& a = descriptor_.accumulators[k];
    const bool is_dictionary = a.num_arguments > 0 && a.arguments[0].index_storage != kNoStorage;
    const bool is_masked = blocks::IsMasked(a.step) && !is_dictionary;
    BasicBlock* next = nullptr;
    if (takes != nullptr && !is_masked) {
      BasicBlock* takes_part = e_.NewBlock("takes_part");
      next = e_.NewBlock("next_accumulator");
      e_.ir().CreateCondBr(takes, takes_part, next);
      e_.ir().SetInsertPoint(takes_part);
    }
    EmitUpdate(k, i, row, tuple, is_masked ? takes : nullptr);
    if (takes != nullptr && a.seen_mask != 0) {
      Value* mask = e_.I8(a.seen_mask);
      SetSeen(tuple, a.seen_offset, is_masked ? e_.ir().CreateSelect(takes, mask, e_.I8(0), "seen_mask") : mask);
    }
    if (next == nullptr) return;
    e_.ir().CreateBr(next);
    e_.ir().SetInsertPoint(next);
  }

  Value* RowId(Value* row) {
    return e_.ir().CreateAdd(first_row_id_, e_.ir().CreateZExt(row, e_.ir().getInt64Ty()), "row_id");
  }

  // quern_block_<reader>_<storage>(&column, row, is_signed)
  Value* Read(const QuernArgument& argument, UpdateReads reads, Value* i, Value* row) {
    return e_.Call(ReaderText(reads) + std::string(StorageText(argument.storage)),
                   {locals_[KeyOf(argument)], RowOf(argument, i, row), e_.Bool(argument.is_signed)},
                   NameOfArgument(argument), 64);
  }

  void EmitUpdate(uint32_t k, Value* i, Value* row, Value* tuple, Value* mask) {
    const QuernAccumulator& a = descriptor_.accumulators[k];
    const UpdateReads reads = kUpdateFunctions[a.step].reads;
    const std::string block = std::string("update_") + kUpdateFunctions[a.step].text;
    Value* state = e_.Element(tuple, a.state_offset, 1, NameOfState(a));
    Value* overflowed = e_.Element(overflowed_, k, 1, "overflowed");
    if (reads == kReadsNumbers) {
      Value *x = Read(a.arguments[0], reads, i, row), *y = Read(a.arguments[1], reads, i, row);
      e_.Call(block, {x, y, state});
    } else if (reads == kReadsWide) {
      e_.Call(block, {locals_[KeyOf(a.arguments[0])], RowOf(a.arguments[0], i, row), state, RowId(row), overflowed});
    } else {
      Value* value = e_.I64(0);
      if (reads != kReadsNothing) {
        value = Read(a.arguments[0], reads, i, row);
        const uint64_t turned = blocks::TurnedBits(a.step, a.negated);
        if (turned != 0) value = e_.ir().CreateXor(value, e_.I64(turned), "turned");
        if (mask != nullptr) value = e_.ir().CreateSelect(mask, value, e_.I64(0), "masked");
      }
      Value* one = mask == nullptr ? e_.I64(1) : e_.ir().CreateZExt(mask, e_.ir().getInt64Ty(), "one");
      e_.Call(block, {value, state, one, e_.Bool(a.arguments[0].is_signed), RowId(row), overflowed});
    }
  }

  // ---- states as vectors (state_vectors.h) ----

  struct VectorStates {
    StateVector states;
    Value* overflows[2];  // local vectors of signed, unsigned sums: sign bit set on overflow; null: none
  };

  static bool Is(const StateLane& lane, LaneStep step) { return lane.step == step; }
  static bool Is(const StateLane& lane, LaneValue value) { return lane.value == value && lane.step != LaneStep::kNone; }

  llvm::Type* VectorType(const StateVector& states) {
    return llvm::FixedVectorType::get(e_.ir().getInt64Ty(), static_cast<unsigned>(states.lanes.size()));
  }

  // <lane 0's, lane 1's, ..>
  template <class F>
  llvm::Constant* EachLane(const StateVector& states, F&& constant_of) {
    std::vector<uint64_t> constants;
    for (const StateLane& lane : states.lanes) constants.push_back(constant_of(lane));
    return llvm::ConstantDataVector::get(e_.ir().getContext(), constants);
  }

  // The lanes that have this operation or value; null where none has.
  template <class T>
  llvm::Constant* LanesOf(const StateVector& states, T which) {
    std::vector<llvm::Constant*> lanes;
    bool any = false;
    for (const StateLane& lane : states.lanes) {
      lanes.push_back(e_.ir().getInt1(Is(lane, which)));
      any |= Is(lane, which);
    }
    return any ? llvm::ConstantVector::get(lanes) : nullptr;
  }

  void BeginVectors(std::vector<StateVector> all) {
    for (StateVector& states : all) {
      VectorStates vector = {std::move(states), {nullptr, nullptr}};
      const LaneStep checked[] = {LaneStep::kAddSigned, LaneStep::kAddUnsigned};
      for (int k = 0; k < 2; ++k) {
        if (LanesOf(vector.states, checked[k]) == nullptr) continue;
        llvm::Type* type = VectorType(vector.states);
        vector.overflows[k] = e_.Local(type, "overflows");
        e_.ir().CreateStore(llvm::Constant::getNullValue(type), vector.overflows[k]);
      }
      vectors_.push_back(std::move(vector));
    }
  }

  // Sets the overflow byte of each aggregate whose sum overflowed in some row.
  void EndVectors() {
    for (const VectorStates& vector : vectors_) {
      for (size_t lane = 0; lane < vector.states.lanes.size(); ++lane) {
        const StateLane& sum = vector.states.lanes[lane];
        const bool is_signed = Is(sum, LaneStep::kAddSigned);
        if (!is_signed && !Is(sum, LaneStep::kAddUnsigned)) continue;
        Value* all = e_.ir().CreateLoad(VectorType(vector.states), vector.overflows[is_signed ? 0 : 1], "overflows");
        Value* does_not_fit =
            e_.ir().CreateICmpSLT(e_.ir().CreateExtractElement(all, lane, "overflow"), e_.I64(0), "does_not_fit");
        Value* at = e_.Element(overflowed_, sum.accumulator, 1, "overflowed");
        Value* before = e_.ir().CreateLoad(e_.ir().getInt8Ty(), at, "before");
        e_.ir().CreateStore(e_.ir().CreateOr(before, e_.ir().CreateZExt(does_not_fit, e_.ir().getInt8Ty())), at);
      }
    }
  }

  // A lane's value before the operations that apply to all lanes at once.
  Value* ReadLane(const StateLane& lane, Value* i, Value* row) {
    const QuernArgument& argument = descriptor_.accumulators[lane.accumulator].arguments[0];
    switch (lane.value) {
      case LaneValue::kInteger: return Read(argument, kReadsInteger, i, row);
      case LaneValue::kNumber: return Read(argument, kReadsNumber, i, row);
      case LaneValue::kOrderedF32: return Read(argument, kReadsOrdered, i, row);
      case LaneValue::kBits: return Read(argument, kReadsBits, i, row);
      case LaneValue::kOrderedF64: return Read(argument, kReadsNumber, i, row);  // the bits of the number
      case LaneValue::kConstant: break;
    }
    return e_.I64(0);
  }

  // The values of one row for all lanes: constants, and each value read, inserted into its lanes.
  Value* RowVector(const StateVector& states, Value* i, Value* row) {
    Value* vector =
        EachLane(states, [](const StateLane& lane) { return Is(lane, LaneValue::kConstant) ? lane.constant : 0; });
    // Lanes that read the same bits share one load and one insertion, even if they use them differently.
    std::map<std::pair<ColumnKey, bool>, std::pair<const StateLane*, std::vector<llvm::Constant*>>> values;
    for (size_t k = 0; k < states.lanes.size(); ++k) {
      const StateLane& lane = states.lanes[k];
      if (Is(lane, LaneStep::kNone) || Is(lane, LaneValue::kConstant)) continue;
      const QuernArgument& argument = descriptor_.accumulators[lane.accumulator].arguments[0];
      const bool is_turned = argument.storage == kF32 && Is(lane, LaneValue::kOrderedF32);
      auto& [first, lanes] = values[{KeyOf(argument), is_turned}];
      if (first == nullptr) first = &lane;
      lanes.resize(states.lanes.size(), e_.ir().getFalse());
      lanes[k] = e_.ir().getTrue();
    }
    for (const auto& [key, value] : values) {
      Value* splat = e_.ir().CreateVectorSplat(static_cast<unsigned>(states.lanes.size()),
                                               ReadLane(*value.first, i, row), "value");
      vector = e_.ir().CreateSelect(llvm::ConstantVector::get(value.second), splat, vector, "row_vector");
    }
    return Turned(states, vector);
  }

  // Encodes floats in the order of blocks::OrderedBits, then inverts what is kept inverted.
  Value* Turned(const StateVector& states, Value* vector) {
    const auto splat = [&](uint64_t bits) {
      return e_.ir().CreateVectorSplat(static_cast<unsigned>(states.lanes.size()), e_.I64(bits));
    };
    if (llvm::Constant* floats = LanesOf(states, LaneValue::kOrderedF64)) {
      Value* negative = e_.ir().CreateAShr(vector, splat(63), "negative");
      Value* turned = e_.ir().CreateXor(vector, e_.ir().CreateOr(negative, splat(uint64_t{1} << 63)), "turned");
      Value* ordered = e_.ir().CreateSub(turned, splat(blocks::kOrderedNegativeInfinity), "ordered");
      vector = e_.ir().CreateSelect(floats, ordered, vector, "row_vector");
    }
    llvm::Constant* turned =
        EachLane(states, [](const StateLane& lane) { return Is(lane, LaneValue::kConstant) ? 0 : lane.constant; });
    return turned->isNullValue() ? vector : e_.ir().CreateXor(vector, turned, "row_vector");
  }

  void EmitVector(const VectorStates& vector, Value* i, Value* row, Value* tuple) {
    const StateVector& states = vector.states;
    llvm::Type* type = VectorType(states);
    Value* values = RowVector(states, i, row);
    Value* at = e_.Element(tuple, states.first_lane, kLaneBytes, "states_at");
    Value* before = e_.ir().CreateAlignedLoad(type, at, llvm::Align(kLaneBytes), "states");
    // Lanes without an operation have the value 0 here.
    Value* sum = e_.ir().CreateAdd(before, values, "sums");
    Value* after = sum;
    const auto step = [&](LaneStep which, auto&& emit) {
      if (llvm::Constant* lanes = LanesOf(states, which)) after = e_.ir().CreateSelect(lanes, emit(), after, "after");
    };
    step(LaneStep::kAddFloat, [&] {
      llvm::Type* floats =
          llvm::FixedVectorType::get(e_.ir().getDoubleTy(), static_cast<unsigned>(states.lanes.size()));
      Value* added = e_.ir().CreateFAdd(e_.ir().CreateBitCast(before, floats), e_.ir().CreateBitCast(values, floats),
                                        "float_sums");
      return e_.ir().CreateBitCast(added, type);
    });
    step(LaneStep::kMax,
         [&] { return e_.ir().CreateBinaryIntrinsic(llvm::Intrinsic::umax, before, values, nullptr, "greater"); });
    step(LaneStep::kOr, [&] { return e_.ir().CreateOr(before, values, "either"); });
    step(LaneStep::kXor, [&] { return e_.ir().CreateXor(before, values, "one_of"); });
    if (vector.overflows[0] != nullptr) {
      // Signed overflow: the sign of the sum differs from both operands.
      Note(vector.overflows[0], type,
           e_.ir().CreateAnd(e_.ir().CreateXor(before, sum), e_.ir().CreateXor(values, sum)));
    }
    if (vector.overflows[1] != nullptr) {
      // Unsigned overflow: both operands have the top bit, or one has it and the sum does not.
      Value* either_not_sum = e_.ir().CreateAnd(e_.ir().CreateOr(before, values), e_.ir().CreateNot(sum));
      Value* carry = e_.ir().CreateOr(e_.ir().CreateAnd(before, values), either_not_sum);
      Note(vector.overflows[1], type, carry);
    }
    e_.ir().CreateAlignedStore(after, at, llvm::Align(kLaneBytes));
  }

  void Note(Value* overflows, llvm::Type* type, Value* now) {
    e_.ir().CreateStore(e_.ir().CreateOr(e_.ir().CreateLoad(type, overflows, "before"), now, "overflows"), overflows);
  }

  const QuernAggregateDescriptor& descriptor_;
  const UpdateChoices choices_;
  Emitter& e_;
  const bool tests_nulls_;
  Value *args_ = nullptr, *n_ = nullptr, *rows_ = nullptr, *first_ = nullptr, *first_row_id_ = nullptr;
  Value *tuples_ = nullptr, *overflowed_ = nullptr, *columns_ = nullptr, *prefetch_first_ = nullptr,
        *prefetch_rows_ = nullptr;
  Value *computed_ = nullptr, *first_computed_ = nullptr;
  std::map<ColumnKey, Value*> locals_, translated_;
  Value* prefetches_keys_ = nullptr;
  InputStreams streams_, key_streams_;
  bool counts_runs_ = false;  // a run at a time: CountsAllRows
  std::vector<VectorStates> vectors_;
};

}  // namespace

void EmitHoles(const KernelPlan& plan, const QuernAggregateDescriptor& descriptor, Emitter* emitter) {
  EmitTupleHoles(descriptor.group, emitter);
  const UpdateChoices choices = {plan.prefetch_input_rows, plan.states == StateLayout::kVectors};
  UpdateEmitter(descriptor, choices, emitter, /*tests_nulls=*/true).EmitRows("update_rows");
  UpdateEmitter(descriptor, choices, emitter, /*tests_nulls=*/false).EmitRows("update_valid_rows");
  UpdateEmitter(descriptor, choices, emitter, /*tests_nulls=*/true).EmitRuns("update_run_rows");
  EmitLaneTotals(descriptor, plan.prefetch_input_rows, emitter);
  if (descriptor.computed != nullptr) EmitHoles(plan, *descriptor.computed, emitter);
}

}  // namespace quern
