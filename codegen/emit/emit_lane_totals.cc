// SPDX-License-Identifier: Apache-2.0
// Emits the hole of the aggregation template that adds up adjacent rows of few groups, eight at a time. For
// aggs=count_star,sum(decimal128),avg(decimal128), the latter two of the same column:
//
//     for (s = 0, begin = 0; s < args->num_segments; begin = end, ++s) {
//       uint8_t* const* tuples = args->tuples + s * num_groups;   uint32_t end = args->ends[s];
//       for (g = 0; g < num_groups; g += 4) {                     // four groups at a time, whose totals are registers
//         U64x8 total0_0 = {}, .. total3_0 = {}, reach = {};   uint64_t count0_0 = 0, .. count3_0 = 0;
//         for (i = begin; i < end; i += 8) {
//           at = min(i, end - 8);                                 // the last eight rows, of which some have been added
//           prefetch(&column0.values[first + at + 2048]);         // and one line more, as a decimal has 16 bytes
//           uint8_t rows = quern_block_total_rows(at, i) & ~quern_block_total_group(numbers + at, kNoLaneGroup);
//           uint8_t takes0 = rows & quern_block_total_group(numbers + at, g);     // and takes1 to takes3
//           count0_0 += quern_block_total_count(takes0);                          // and the other three
//           quern_block_lanes_load_128(&column0, first + at, /*nullable=*/false, true, &v0, &escaped);
//           reach |= rows ? quern_block_total_reach(&v0, /*is_signed=*/true) : 0;
//           total0_0 = takes0 ? total0_0 + v0 : total0_0;         // lane by lane; of sum and avg: they add the same
//           ..                                                    // the other three
//         }
//         if (g == 0 && (escaped || failed || !quern_block_total_is_within_reach(&reach) ||
//                        !quern_block_total_fits_sum_decimal(tuples[..] + 8, true))) return s;
//         quern_block_total_take_rows(&total0_0, count0_0, false, tuples[g]);
//         quern_block_total_take_sum_decimal(&total0_0, count0_0, true, tuples[g] + 8);
//         quern_block_total_take_avg_decimal(&total0_0, count0_0, true, tuples[g] + 24);
//         ..                                                      // the other three, as far as there are so many
//       }
//     }
//     return s;
//
// The states of a segment are written only if none of its rows fails or reaches too far. Arguments that are
// expressions are computed once for all groups, behind the loads of their columns, and stay in registers.
#include "codegen/emit/emit_lane_totals.h"

#include <compare>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "codegen/emit/input_streams.h"
#include "codegen/emit/lane_emitter.h"
#include "codegen/emit/value_names.h"
#include "runtime/base/bytes.h"
#include "runtime/blocks/accumulators.h"
#include "runtime/blocks/lane_steps.h"
#include "runtime/spec/column_type.h"

namespace quern {
namespace {

using llvm::BasicBlock;
using llvm::PHINode;
using llvm::Value;

constexpr const char* kUpdateTexts[] = {
#define QUERN_UPDATE_FUNCTION(Id, text, reads, state_bytes) #text,
#include "runtime/abi/update_functions.def"
};

class TotalsEmitter {
 public:
  TotalsEmitter(const QuernAggregateDescriptor& descriptor, uint32_t prefetch_rows, Emitter* emitter)
      : d_(descriptor), e_(*emitter), lanes_(descriptor.computed, emitter), streams_(prefetch_rows, emitter) {}

  void EmitAll() {
    const auto p = e_.Begin("update_lane_rows", "(args)");
    if (p.empty()) return;
    EmitLocals(p[0]);
    Collect();
    AddStreams();
    NewTotals();
    BasicBlock *entry = e_.ir().GetInsertBlock(), *loop = e_.NewBlock("segment"), *groups = e_.NewBlock("groups");
    BasicBlock *rows = e_.NewBlock("rows"), *rows_end = e_.NewBlock("rows_end"), *check = e_.NewBlock("check");
    BasicBlock *take = e_.NewBlock("take"), *next = e_.NewBlock("next_segment"), *done = e_.NewBlock("done");
    e_.ir().CreateCondBr(e_.ir().CreateICmpNE(num_segments_, e_.I32(0), "any"), loop, done);

    e_.ir().SetInsertPoint(loop);
    PHINode *segment = Counter(entry, e_.I32(0), "s"), *begin = Counter(entry, e_.I32(0), "begin");
    Value* end = e_.ir().CreateLoad(e_.ir().getInt32Ty(), e_.ElementAt(ends_, segment, 4, "end_at"), "end");
    tuples_ = e_.ElementAt(all_tuples_, e_.ir().CreateMul(segment, num_groups_), 8, "tuples");
    e_.ir().CreateBr(groups);

    e_.ir().SetInsertPoint(groups);
    PHINode* g = Counter(loop, e_.I32(0), "g");
    BeginTotals();
    e_.ir().CreateBr(rows);

    e_.ir().SetInsertPoint(rows);
    PHINode* i = Counter(groups, begin, "i");
    EmitRows(i, end, g);
    Value* next_i = e_.ir().CreateAdd(i, e_.I32(blocks::kLanes), "next", /*HasNUW=*/true);
    i->addIncoming(next_i, e_.ir().GetInsertBlock());
    e_.ir().CreateCondBr(e_.ir().CreateICmpULT(next_i, end, "more"), rows, rows_end);

    e_.ir().SetInsertPoint(rows_end);
    e_.ir().CreateCondBr(e_.ir().CreateICmpEQ(g, e_.I32(0), "is_first"), check, take);
    e_.ir().SetInsertPoint(check);
    Value* refused = Refused();
    BasicBlock* refusing = e_.ir().GetInsertBlock();
    e_.ir().CreateCondBr(refused, done, take);

    e_.ir().SetInsertPoint(take);
    TakeAllTotals(g);
    Value* next_g = e_.ir().CreateAdd(g, e_.I32(d_.lane_groups), "next_g", /*HasNUW=*/true);
    g->addIncoming(next_g, e_.ir().GetInsertBlock());
    e_.ir().CreateCondBr(e_.ir().CreateICmpULT(next_g, num_groups_, "more_groups"), groups, next);

    e_.ir().SetInsertPoint(next);
    Value* next_segment = e_.ir().CreateAdd(segment, e_.I32(1), "next_s", /*HasNUW=*/true);
    segment->addIncoming(next_segment, next);
    begin->addIncoming(end, next);
    e_.ir().CreateCondBr(e_.ir().CreateICmpULT(next_segment, num_segments_, "more_segments"), loop, done);

    e_.ir().SetInsertPoint(done);
    PHINode* num_done = e_.ir().CreatePHI(e_.ir().getInt32Ty(), 3, "num_done");
    num_done->addIncoming(e_.I32(0), entry);
    num_done->addIncoming(segment, refusing);
    num_done->addIncoming(next_segment, next);
    e_.ir().CreateRet(num_done);
  }

 private:
  // A value of eight rows: a column of the batch, or an instruction of the map.
  struct Source {
    bool is_computed;
    uint32_t number;
    auto operator<=>(const Source&) const = default;
  };
  // The rows that take part: those where argument and filter, as far as there are any, have a value, the filter true.
  using Taking = std::pair<std::optional<Source>, std::optional<Source>>;
  static constexpr uint32_t kNone = ~0u;

  // What is added up of the same values, by all accumulators that want it.
  struct Total {
    uint32_t accumulator;  // the first of them
    Value* added;          // what eight rows add; null: their values as they are
  };

  void EmitLocals(Value* args) {
    first_ = e_.LoadI64(args, offsetof(QuernLaneArgs, first), "first");
    numbers_ = e_.LoadPointer(args, offsetof(QuernLaneArgs, numbers), "numbers");
    all_tuples_ = e_.LoadPointer(args, offsetof(QuernLaneArgs, tuples), "all_tuples");
    ends_ = e_.LoadPointer(args, offsetof(QuernLaneArgs, ends), "ends");
    num_segments_ = e_.LoadI32(args, offsetof(QuernLaneArgs, num_segments), "num_segments");
    num_groups_ = e_.LoadI32(args, offsetof(QuernLaneArgs, num_groups), "num_groups");
    columns_ = e_.LoadPointer(args, offsetof(QuernLaneArgs, columns), "columns");
    lanes_.Begin(columns_, nullptr);
  }

  // ---- in front of the loops ----

  using TotalKey = std::tuple<Source, std::optional<Source>, std::string, uint64_t>;  // value, filter, block, bits

  void Collect() {
    std::map<TotalKey, uint32_t> known;
    for (uint32_t k = 0; k < d_.num_accumulators; ++k) {
      const QuernAccumulator& a = d_.accumulators[k];
      total_of_.push_back(kNone);
      if (a.step == kUpdateOutOfLine) continue;
      const Taking taking = TakingOf(a);
      if (taking.first.has_value()) AddColumn(a.arguments[0], /*has_value=*/false);
      if (taking.second.has_value()) AddColumn(FilterOf(a), /*has_value=*/true);
      counts_.emplace(taking, static_cast<uint32_t>(counts_.size()));
      if (a.step == kUpdateRows) continue;
      AddColumn(a.arguments[0], /*has_value=*/true);
      const TotalKey key = {SourceOf(a.arguments[0]), taking.second, BlockOf(a), TurnedBits(a)};
      const auto [found, is_new] = known.emplace(key, static_cast<uint32_t>(totals_.size()));
      if (is_new) totals_.push_back({k, BlockOf(a).empty() ? nullptr : NewWords("added")});
      total_of_.back() = found->second;
    }
  }

  Source SourceOf(const QuernArgument& argument) const {
    if (!argument.is_computed) return {false, argument.column};
    for (uint32_t k = 0; k < d_.computed->num_instructions; ++k) {
      const QuernMapInstruction& i = d_.computed->instructions[k];
      if (i.function == kStoreLanes && i.column == argument.column) return {true, i.arguments[0]};
    }
    return {true, 0};  // there is one
  }

  static QuernArgument FilterOf(const QuernAccumulator& a) {
    QuernArgument filter = {};
    filter.column = a.filter_column;
    filter.is_computed = a.is_filter_computed;
    filter.storage = kBit;
    filter.nullable = true;
    return filter;
  }

  Taking TakingOf(const QuernAccumulator& a) const {
    Taking taking;
    if (a.num_arguments > 0 && a.arguments[0].nullable) taking.first = SourceOf(a.arguments[0]);
    if (a.filtered) taking.second = SourceOf(FilterOf(a));
    return taking;
  }

  struct Column {
    QuernArgument argument;
    Value *copy, *value;
    bool has_value;  // else it is known which rows are null, and no more
  };

  void AddColumn(const QuernArgument& argument, bool has_value) {
    if (argument.is_computed) return;
    const auto [found, is_new] = columns_read_.try_emplace(argument.column);
    if (is_new) {
      found->second = {argument, lanes_.CopyColumn(columns_, argument.column, "column"),
                       lanes_.NewValue(NameOfArgument(argument)), false};
    }
    found->second.has_value |= has_value;
  }

  void AddStreams() {
    std::set<uint32_t> columns;
    for (const auto& [column, read] : columns_read_) {
      if (!read.has_value) continue;
      columns.insert(column);
      streams_.Add(e_.Element(columns_, column, sizeof(QuernColumn), "read" + llvm::Twine(column)),
                   read.argument.storage);
    }
    streams_.AddColumnsOf(d_.computed, columns_, columns);
  }

  // A U64x8.
  Value* NewWords(const llvm::Twine& name) {
    Value* words = e_.Local(WordsType(), name);
    llvm::cast<llvm::AllocaInst>(words)->setAlignment(llvm::Align(alignof(QuernLanes::Words)));
    return words;
  }
  llvm::Type* WordsType() { return llvm::FixedVectorType::get(e_.ir().getInt64Ty(), blocks::kLanes); }
  Value* LoadWords(Value* at, const char* name) {
    return e_.ir().CreateAlignedLoad(WordsType(), at, llvm::Align(alignof(QuernLanes::Words)), name);
  }

  // Totals of the groups of one pass.
  void NewTotals() {
    no_words_ = NewWords("no_words");
    reach_ = NewWords("reach");
    reach_of_value_ = NewWords("reach_of_value");
    for (uint32_t j = 0; j < d_.lane_groups; ++j) {
      GroupTotals group;
      for (size_t t = 0; t < totals_.size(); ++t)
        group.totals.push_back(NewWords("total" + llvm::Twine(j) + "_" + llvm::Twine(t)));
      for (size_t c = 0; c < counts_.size(); ++c)
        group.counts.push_back(e_.Local(e_.ir().getInt64Ty(), "count" + llvm::Twine(j) + "_" + llvm::Twine(c)));
      groups_.push_back(std::move(group));
    }
  }

  static bool HasReach(const QuernAccumulator& a) {
    const Storage storage = a.arguments[0].storage;
    return blocks::IsLaneSum(a.step) && (storage == k64 || storage == k128);
  }

  // The block that makes of values what is added to a total; empty: none.
  static std::string BlockOf(const QuernAccumulator& a) {
    const std::string storage(StorageText(a.arguments[0].storage));
    if (blocks::IsLaneSum(a.step)) return "";
    return (blocks::IsLaneExtreme(a.step) ? "total_ordered_" : "total_bits_") + storage;
  }

  // A minimum of decimals is the complement of a maximum of complements, too.
  static uint64_t TurnedBits(const QuernAccumulator& a) {
    return a.step == kUpdateMinWide ? ~uint64_t{0} : blocks::TurnedBits(a.step, a.negated);
  }
  static bool IsSigned(const QuernArgument& argument) { return argument.storage == k128 || argument.is_signed; }

  // ---- in the loops ----

  PHINode* Counter(BasicBlock* from, Value* begin, const char* name) {
    PHINode* phi = e_.ir().CreatePHI(e_.ir().getInt32Ty(), 2, name);
    phi->addIncoming(begin, from);
    return phi;
  }

  Value* StateOf(Value* tuple, const QuernAccumulator& a) {
    return e_.Element(tuple, a.state_offset, 1, NameOfState(a));
  }
  std::string Block(const char* what, Step step) { return std::string("total_") + what + kUpdateTexts[step]; }

  void SetZero(Value* words) { StoreWords(llvm::Constant::getNullValue(WordsType()), words); }

  void BeginTotals() {
    if (failed_ == nullptr) failed_ = e_.Local(e_.ir().getInt8Ty(), "failed");
    e_.ir().CreateStore(e_.I8(0), failed_);
    SetZero(no_words_);
    SetZero(reach_);
    for (const GroupTotals& group : groups_) {
      for (Value* total : group.totals) SetZero(total);
      for (Value* count : group.counts) e_.ir().CreateStore(e_.I64(0), count);
    }
  }

  void EmitRows(Value* i, Value* end, Value* g) {
    Value* at = e_.ir().CreateBinaryIntrinsic(llvm::Intrinsic::umin, i, e_.ir().CreateSub(end, e_.I32(blocks::kLanes)),
                                              nullptr, "at");
    Value* numbers = e_.ElementAt(numbers_, at, 1, "numbers_at");
    Value* none = e_.Call("total_group", {numbers, e_.I8(kNoLaneGroup)}, "none", 8);
    eight_ = {};
    eight_.rows = e_.ir().CreateAnd(e_.Call("total_rows", {at, i}, "to_add", 8), e_.ir().CreateNot(none), "rows");
    for (uint32_t j = 0; j < d_.lane_groups; ++j) {
      Value* number = e_.ir().CreateTrunc(e_.ir().CreateAdd(g, e_.I32(j)), e_.ir().getInt8Ty());
      eight_.of_groups.push_back(e_.Call("total_group", {numbers, number}, "of_group", 8));
    }
    AddReady();
    Value* first = e_.ir().CreateAdd(first_, e_.ir().CreateZExt(at, e_.ir().getInt64Ty()), "first_row");
    streams_.Prefetch(first);
    EmitValues(first);
  }

  // Columns and expressions in eight adjacent rows. Each is added to its totals as soon as it is there, so that few
  // values are in registers at once.
  void EmitValues(Value* first) {
    lanes_.ForgetEscaped();
    lanes_.BeginAdjacentRows(first);
    for (const auto& [column, read] : columns_read_) {
      const QuernArgument& argument = read.argument;
      if (!read.has_value) lanes_.LoadValid(read.copy, read.value);
      else lanes_.Load(read.copy, argument.storage, argument.nullable, argument.is_signed, read.value);
      eight_.known.insert({false, column});
      AddReady();
    }
    for (uint32_t k = 0; d_.computed != nullptr && k < d_.computed->num_instructions; ++k) {
      const QuernMapInstruction& i = d_.computed->instructions[k];
      if (i.function == kStoreLanes) {
        NoteFailed(e_.Call("total_failed", {lanes_.value(i.arguments[0])}, "failed_rows", 8));
        continue;
      }
      lanes_.EmitValue(k);
      eight_.known.insert({true, k});
      AddReady();
    }
    NoteFailed(lanes_.EscapedRows());
  }

  // What eight rows have so far.
  struct EightRows {
    Value* rows = nullptr;                        // to be added: one bit a row
    std::vector<Value*> of_groups;                // likewise; of each group of the pass
    std::set<Source> known;                       // values that have been computed
    std::map<Taking, std::vector<Value*>> takes;  // of each group
    std::set<size_t> added;                       // totals
  };

  bool IsKnown(const std::optional<Source>& source) const {
    return !source.has_value() || eight_.known.count(*source) != 0;
  }

  // Adds the values that are there, and have not been added.
  void AddReady() {
    for (const auto& [taking, count] : counts_)
      if (IsKnown(taking.first) && IsKnown(taking.second) && eight_.takes.count(taking) == 0) CountRows(taking, count);
    for (size_t t = 0; t < totals_.size(); ++t) {
      const QuernAccumulator& a = d_.accumulators[totals_[t].accumulator];
      const bool is_ready = IsKnown(SourceOf(a.arguments[0])) && eight_.takes.count(TakingOf(a)) != 0;
      if (is_ready && eight_.added.insert(t).second) AddTotal(t, a);
    }
  }

  void CountRows(const Taking& taking, uint32_t number) {
    Value* takes = Takes(taking, eight_.rows);
    std::vector<Value*>& of_groups = eight_.takes[taking];
    for (uint32_t j = 0; j < d_.lane_groups; ++j) {
      Value *both = e_.ir().CreateAnd(takes, eight_.of_groups[j], "takes"), *count = groups_[j].counts[number];
      Value* before = e_.ir().CreateLoad(e_.ir().getInt64Ty(), count, "count");
      Value* more = e_.Call("total_count", {both}, "taking", 64);
      e_.ir().CreateStore(e_.ir().CreateAdd(before, more), count);
      of_groups.push_back(MaskOf(both));
    }
  }

  void AddTotal(size_t t, const QuernAccumulator& a) {
    Value *value = ValueOf(a.arguments[0]), *is_signed = e_.Bool(IsSigned(a.arguments[0]));
    if (HasReach(a)) NoteReach(value, is_signed, MaskOf(Takes(TakingOf(a), eight_.rows)));
    if (totals_[t].added != nullptr) e_.Call(BlockOf(a), {value, is_signed, e_.I64(TurnedBits(a)), totals_[t].added});
    Value* added = LoadWords(totals_[t].added == nullptr ? value : totals_[t].added, "added");
    const std::vector<Value*>& masks = eight_.takes.at(TakingOf(a));
    for (uint32_t j = 0; j < d_.lane_groups; ++j) {
      Value* before = LoadWords(groups_[j].totals[t], "total");
      Value* after = e_.ir().CreateSelect(masks[j], Combined(a.step, before, added), before, "total");
      StoreWords(after, groups_[j].totals[t]);
    }
  }

  // Rows that have failed, or have values beyond 64 bits: the segment is refused.
  void NoteFailed(Value* failed) {
    Value* before = e_.ir().CreateLoad(e_.ir().getInt8Ty(), failed_, "failed_before");
    e_.ir().CreateStore(e_.ir().CreateOr(before, e_.ir().CreateAnd(failed, eight_.rows), "failed"), failed_);
  }

  Value* ValueOf(const Source& source) {
    return source.is_computed ? lanes_.value(source.number) : columns_read_[source.number].value;
  }
  Value* ValueOf(const QuernArgument& argument) { return ValueOf(SourceOf(argument)); }

  Value* Takes(const Taking& taking, Value* rows) {
    Value* takes = rows;
    const auto also = [&](const char* block, const Source& source) {
      takes = e_.ir().CreateAnd(takes, e_.Call(block, {ValueOf(source)}, "bits", 8), "takes");
    };
    if (taking.first.has_value()) also("total_valid", *taking.first);
    if (taking.second.has_value()) also("total_valid", *taking.second);
    if (taking.second.has_value()) also("total_true", *taking.second);
    return takes;
  }

  Value* MaskOf(Value* rows) {
    return e_.ir().CreateBitCast(rows, llvm::FixedVectorType::get(e_.ir().getInt1Ty(), blocks::kLanes), "mask");
  }
  void StoreWords(Value* words, Value* at) {
    e_.ir().CreateAlignedStore(words, at, llvm::Align(alignof(QuernLanes::Words)));
  }

  void NoteReach(Value* value, Value* is_signed, Value* mask) {
    e_.Call("total_reach", {value, is_signed, reach_of_value_});
    Value* before = LoadWords(reach_, "reach");
    Value* after = e_.ir().CreateOr(before, LoadWords(reach_of_value_, "reach_of_value"));
    StoreWords(e_.ir().CreateSelect(mask, after, before, "reach"), reach_);
  }

  struct GroupTotals {
    std::vector<Value*> totals, counts;
  };

  Value* Combined(Step step, Value* total, Value* added) {
    if (blocks::IsLaneSum(step)) return e_.ir().CreateAdd(total, added, "sum");
    if (blocks::IsLaneExtreme(step))
      return e_.ir().CreateBinaryIntrinsic(llvm::Intrinsic::umax, total, added, nullptr, "greater");
    return step == kUpdateBitXor ? e_.ir().CreateXor(total, added, "one_of") : e_.ir().CreateOr(total, added, "either");
  }

  Value* LoadTuple(Value* g) {
    return e_.ir().CreateLoad(e_.ir().getPtrTy(), e_.ElementAt(tuples_, g, 8, "tuple_at"), "tuple");
  }

  // Whether the states of some group must not take the totals of this segment: a value reaches too far, or a state is
  // too large already. Values are the same for all groups, and need be looked at once.
  Value* Refused() {
    Value* failed = e_.ir().CreateICmpNE(e_.ir().CreateLoad(e_.ir().getInt8Ty(), failed_), e_.I8(0), "any_failed");
    Value* is_within = e_.Call("total_is_within_reach", {reach_}, "is_within_reach", 1);
    failed = e_.ir().CreateOr(failed, e_.ir().CreateNot(is_within), "reaches_too_far");
    BasicBlock *before = e_.ir().GetInsertBlock(), *loop = e_.NewBlock("group"), *end = e_.NewBlock("groups_end");
    e_.ir().CreateBr(loop);
    e_.ir().SetInsertPoint(loop);
    PHINode* g = Counter(before, e_.I32(0), "g");
    PHINode* refused = e_.ir().CreatePHI(e_.ir().getInt1Ty(), 2, "refused");
    refused->addIncoming(failed, before);
    Value *tuple = LoadTuple(g), *any = refused;
    for (uint32_t k = 0; k < d_.num_accumulators; ++k) {
      const QuernAccumulator& a = d_.accumulators[k];
      if (total_of_[k] == kNone || !blocks::IsLaneSum(a.step)) continue;
      Value* is_signed = e_.Bool(IsSigned(a.arguments[0]));
      Value* fits = e_.Call(Block("fits_", a.step), {StateOf(tuple, a), is_signed}, "fits", 1);
      any = e_.ir().CreateOr(any, e_.ir().CreateNot(fits), "refused");
    }
    Value* next = e_.ir().CreateAdd(g, e_.I32(1), "next_g", /*HasNUW=*/true);
    g->addIncoming(next, e_.ir().GetInsertBlock());
    refused->addIncoming(any, e_.ir().GetInsertBlock());
    e_.ir().CreateCondBr(e_.ir().CreateICmpULT(next, num_groups_, "more_groups"), loop, end);
    e_.ir().SetInsertPoint(end);
    return any;
  }

  void TakeAllTotals(Value* g) {
    for (uint32_t j = 0; j < d_.lane_groups; ++j) {
      Value* number = e_.ir().CreateAdd(g, e_.I32(j), "group_number", /*HasNUW=*/true);
      BasicBlock *take = e_.NewBlock("take" + llvm::Twine(j)), *taken = e_.NewBlock("taken" + llvm::Twine(j));
      e_.ir().CreateCondBr(e_.ir().CreateICmpULT(number, num_groups_, "is_there"), take, taken);
      e_.ir().SetInsertPoint(take);
      TakeTotals(groups_[j], LoadTuple(number));
      e_.ir().CreateBr(taken);
      e_.ir().SetInsertPoint(taken);
    }
  }

  void TakeTotals(const GroupTotals& group, Value* tuple) {
    for (uint32_t k = 0; k < d_.num_accumulators; ++k) {
      const QuernAccumulator& a = d_.accumulators[k];
      if (a.step == kUpdateOutOfLine) continue;
      Value* count = e_.ir().CreateLoad(e_.ir().getInt64Ty(), group.counts[counts_.at(TakingOf(a))], "count");
      Value* total = total_of_[k] == kNone ? no_words_ : group.totals[total_of_[k]];
      e_.Call(Block("take_", a.step), {total, count, e_.Bool(IsSigned(a.arguments[0])), StateOf(tuple, a)});
      if (a.seen_mask == 0) continue;
      Value* seen = e_.ir().CreateSelect(e_.ir().CreateICmpNE(count, e_.I64(0), "any_taking"), e_.I8(a.seen_mask),
                                         e_.I8(0), "seen");
      Value* at = e_.Element(tuple, a.seen_offset, 1, "seen_at");
      e_.ir().CreateStore(e_.ir().CreateOr(e_.ir().CreateLoad(e_.ir().getInt8Ty(), at, "before"), seen), at);
    }
  }

  const QuernAggregateDescriptor& d_;
  Emitter& e_;
  LaneEmitter lanes_;
  InputStreams streams_;
  Value *first_ = nullptr, *numbers_ = nullptr, *all_tuples_ = nullptr, *ends_ = nullptr, *num_segments_ = nullptr;
  Value *num_groups_ = nullptr, *columns_ = nullptr, *failed_ = nullptr;
  Value* tuples_ = nullptr;                                                   // of the segment
  Value *no_words_ = nullptr, *reach_ = nullptr, *reach_of_value_ = nullptr;  // of U64x8; the first one is 0
  std::map<uint32_t, Column> columns_read_;                                   // by column of the batch
  std::map<Taking, uint32_t> counts_;  // of rows that take part: the number among those of a group
  std::vector<Total> totals_;
  std::vector<uint32_t> total_of_;  // by accumulator; kNone: it needs none
  std::vector<GroupTotals> groups_;
  EightRows eight_;
};

}  // namespace

void EmitLaneTotals(const QuernAggregateDescriptor& descriptor, uint32_t prefetch_rows, Emitter* emitter) {
  TotalsEmitter(descriptor, prefetch_rows, emitter).EmitAll();
}

}  // namespace quern
