// SPDX-License-Identifier: Apache-2.0
// Places the keys, states and bits of a group in its tuple. For keys=i32 aggs=count_star,sum(i32),max(f64:nullable) the
// tuple is
//
//     offset  bytes  field     type    state
//          0      4  word      32 bits
//          4      1  bits      of aggs[2]
//          8      8  aggs[0]   count_star
//         16      8  aggs[1]   sum
//         24      8  aggs[2]   max
//     tuple_bytes 32
//
// The bits fill the gap behind a narrow word where they fit. Tuples with packed keys are slots of a table, so their
// size is rounded up to a power of two where that wastes at most a quarter: no tuple of up to 64 bytes then crosses a
// cache line.
//
// A dictionary key is the number of its value (u32) and fits a word, whatever the value's type (key_dictionaries.h).
#include "runtime/aggregate/aggregate_descriptor.h"

#include <algorithm>
#include <bit>
#include <set>
#include <tuple>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/base/thresholds.h"
#include "runtime/blocks/lane_steps.h"
#include "runtime/rows/selected_rows.h"

namespace quern {
namespace {

struct StepRow {
  UpdateReads reads;
  uint32_t state_bytes;
  const char* text;
};

constexpr StepRow kUpdateFunctions[] = {
#define QUERN_UPDATE_FUNCTION(Id, text, reads, state_bytes) {reads, state_bytes, #text},
#include "runtime/abi/update_functions.def"
};

bool IsFloat(Storage storage) { return storage == kF32 || storage == kF64; }

// No number of rows overflows 128 bits with values of up to 64.
Step SumStep(TypeId id) {
  if (id == TypeId::kDecimal128) return kUpdateSumDecimal;
  if (IsDecimal(id)) return kUpdateSum128;
  return quern::IsFloat(id) ? kUpdateSumFloat : kUpdateSum;
}

Step AverageStep(Storage storage) {
  if (storage == k128) return kUpdateAvgDecimal;
  if (IsFloat(storage)) return kUpdateAvgFloat;
  return storage == k64 ? kUpdateAvg : kUpdateAvgSmall;
}

Step StepOf(const AggregateSpec& aggregate) {
  const Storage storage = aggregate.arguments.empty() ? kNoStorage : RowOf(aggregate.arguments[0].id).key_storage;
  const bool wide = storage == k128;
  if (IsOutOfLine(aggregate)) return kUpdateOutOfLine;
  switch (aggregate.function) {
    case AggregateFunction::kCountStar:
    case AggregateFunction::kCount: return kUpdateRows;
    case AggregateFunction::kSum: return SumStep(aggregate.arguments[0].id);
    case AggregateFunction::kSum128: return kUpdateSum128;
    case AggregateFunction::kAvg: return AverageStep(storage);
    case AggregateFunction::kMin: return wide ? kUpdateMinWide : kUpdateMin;
    case AggregateFunction::kMax: return wide ? kUpdateMaxWide : kUpdateMax;
    case AggregateFunction::kAny: return wide ? kUpdateAnyWide : kUpdateAny;
    case AggregateFunction::kFirst: return wide ? kUpdateFirstWide : kUpdateFirst;
    case AggregateFunction::kLast: return wide ? kUpdateLastWide : kUpdateLast;
    case AggregateFunction::kBoolAnd:
    case AggregateFunction::kBoolOr: return kUpdateBitOr;
    case AggregateFunction::kBitAnd: return kUpdateBitAnd;
    case AggregateFunction::kBitOr: return kUpdateBitOr;
    case AggregateFunction::kBitXor: return kUpdateBitXor;
    case AggregateFunction::kVarPop:
    case AggregateFunction::kVarSamp:
    case AggregateFunction::kStddevPop:
    case AggregateFunction::kStddevSamp: return kUpdateMoments;
    case AggregateFunction::kCovarPop:
    case AggregateFunction::kCovarSamp: return kUpdateComoments;
    case AggregateFunction::kCorr: return kUpdateCorrelation;
    case AggregateFunction::kCountDistinct:
    case AggregateFunction::kSumDistinct:
    case AggregateFunction::kMedian:
    case AggregateFunction::kQuantile:
    case AggregateFunction::kApproxCountDistinct:
    case AggregateFunction::kStringAgg:
    case AggregateFunction::kHost: return kUpdateOutOfLine;
  }
  return kUpdateOutOfLine;
}

// Whether a separate bit must record that there were values, because the state does not show it.
bool NeedsSeenBit(Step step) {
  switch (kUpdateFunctions[step].reads) {
    case kReadsNothing:
    case kReadsNumbers: return false;
    case kReadsInteger: return step == kUpdateSum || step == kUpdateSum128;
    case kReadsNumber: return step == kUpdateSumFloat;
    case kReadsWide: return step != kUpdateAvgDecimal && step != kUpdateFirstWide && step != kUpdateLastWide;
    case kReadsOrdered: return true;
    case kReadsBits: return step != kUpdateFirst && step != kUpdateLast;
  }
  return true;
}

QuernArgument MakeArgument(const ColumnType& type, uint32_t column) {
  QuernArgument argument = {};
  argument.column = column;
  argument.storage = RowOf(type.id).key_storage;
  argument.index_storage = type.is_dictionary ? RowOf(type.index).storage : kNoStorage;
  argument.nullable = type.nullable;
  argument.is_signed = !IsUnsigned(type.id);
  return argument;
}

}  // namespace

bool CanAddLanes(const QuernAggregateDescriptor& descriptor) {
  // What maps take from strings is not adjacent to the rows of a block.
  for (uint32_t k = 0; descriptor.computed != nullptr && k < descriptor.computed->num_instructions; ++k)
    if (IsOfStrings(descriptor.computed->instructions[k].function)) return false;
  bool any = false;
  for (uint32_t k = 0; k < descriptor.num_accumulators; ++k) {
    const QuernAccumulator& a = descriptor.accumulators[k];
    if (a.step == kUpdateOutOfLine) continue;
    any |= a.step != kUpdateRows || a.filtered || a.num_arguments > 0;
    if (!blocks::HasLaneTotal(a.step)) return false;
    if (a.num_arguments > 0 && a.arguments[0].index_storage != kNoStorage) return false;
  }
  return any;
}

namespace {

// Accumulators of the same values, as sum and avg of a column, have one total.
uint32_t LaneGroupsOf(const QuernAggregateDescriptor& descriptor) {
  using Total = std::tuple<bool, uint32_t, bool, bool, uint32_t, int>;
  std::set<Total> totals;
  for (uint32_t k = 0; k < descriptor.num_accumulators; ++k) {
    const QuernAccumulator& a = descriptor.accumulators[k];
    if (a.step == kUpdateOutOfLine || a.step == kUpdateRows) continue;
    totals.insert({a.arguments[0].is_computed, a.arguments[0].column, a.filtered, a.is_filter_computed, a.filter_column,
                   blocks::IsLaneSum(a.step) ? -1 : static_cast<int>(a.step)});
  }
  const auto n = static_cast<uint32_t>(std::max<size_t>(totals.size(), 1));
  return descriptor.group.num_keys == 0 ? 1 : std::clamp(thresholds::kLaneTotals / n, 1u, thresholds::kLaneGroups);
}

}  // namespace

KeySpec KernelKey(const KeySpec& key) {
  if (!key.type.is_dictionary) return key;
  KeySpec code;
  code.type.id = TypeId::kU32;
  code.type.nullable = key.type.nullable;
  code.null_equal = key.type.nullable;
  return code;
}

NeededAggregateEntryPoints EntryPointsOf(const QuernAggregateDescriptor& descriptor) {
  const auto any = [&](auto&& is) {
    return std::any_of(descriptor.accumulators, descriptor.accumulators + descriptor.num_accumulators, is);
  };
  const bool wide = descriptor.group.num_keys != 0 && descriptor.group.packed_bytes == 0;
  NeededAggregateEntryPoints needed = {};
  needed.pack = descriptor.group.packed_bytes != 0;
  needed.hash = needed.store = needed.compare = wide;
  needed.update = any([](const QuernAccumulator& a) { return a.step != kUpdateOutOfLine; });
  needed.update_runs = needed.update;
  needed.update_lanes = descriptor.has_lanes;
  needed.compute = descriptor.computed != nullptr;
  needed.update_valid = any([](const QuernAccumulator& a) {
    return a.step != kUpdateOutOfLine &&
           ((a.num_arguments > 0 && a.arguments[0].nullable) || (a.num_arguments > 1 && a.arguments[1].nullable));
  });
  return needed;
}

AggregateDescriptor::AggregateDescriptor(const AggregationSpec& spec)
    : spec_(spec), descriptor_(), group_(&descriptor_.group) {
  for (const KeySpec& key : spec.keys) {
    key_row_bytes_.push_back(ColumnRowBytes(key.type));
    has_dictionaries_ |= key.type.is_dictionary;
  }
  for (const ColumnType& type : AggregateInputTypes(spec)) input_row_bytes_.push_back(ColumnRowBytes(type));
}

absl::StatusOr<std::shared_ptr<AggregateDescriptor>> AggregateDescriptor::Make(const AggregationSpec& spec,
                                                                               uint32_t inline_key_bytes) {
  std::shared_ptr<AggregateDescriptor> descriptor(new AggregateDescriptor(spec));
  QUERN_RETURN_IF_ERROR(descriptor->AddAccumulators());
  descriptor->PlaceTuple(inline_key_bytes);
  return descriptor;
}

absl::Status AggregateDescriptor::AddAccumulators() {
  PlaceColumns();
  for (const AggregateSpec& aggregate : spec_.aggregates) {
    out_of_line_.emplace_back();
    if (IsOutOfLine(aggregate)) {
      QUERN_ASSIGN_OR_RETURN(out_of_line_.back(), MakeOutOfLineAggregate(aggregate));
      has_out_of_line_ = true;
      has_parts_ |= out_of_line_.back()->has_parts();
    }
    AddAccumulator(aggregate, columns_[out_of_line_.size() - 1]);
  }
  return absl::OkStatus();
}

// Says where each aggregate finds its arguments.
void AggregateDescriptor::PlaceColumns() {
  MapSpec map = ComputedArguments(spec_);
  const auto number_of = [&](const Expression& expression, bool is_computed) {
    if (!is_computed) return expression.column;
    return static_cast<uint32_t>(std::find(map.results.begin(), map.results.end(), expression) - map.results.begin());
  };
  uint32_t next = 0;  // without `in`
  for (const AggregateSpec& aggregate : spec_.aggregates) {
    Columns columns;
    columns.is_computed = HasComputedArguments(aggregate);
    for (size_t i = 0; i < aggregate.arguments.size(); ++i)
      columns.arguments.push_back(spec_.columns.empty() ? next++
                                                        : number_of(aggregate.expressions[i], columns.is_computed));
    if (aggregate.filter.has_value()) {
      columns.is_filter_computed = aggregate.filter->kind != ExpressionKind::kColumn;
      columns.filter = number_of(*aggregate.filter, columns.is_filter_computed);
    } else if (aggregate.filtered) {
      columns.filter = next++;
    }
    columns_.push_back(std::move(columns));
  }
  descriptor_.num_columns = spec_.columns.empty() ? next : static_cast<uint32_t>(spec_.columns.size());
  if (map.results.empty()) return;
  computed_ = std::make_unique<const MapDescriptor>(std::move(map));
  descriptor_.computed = computed_->get();
}

void AggregateDescriptor::AddAccumulator(const AggregateSpec& aggregate, const Columns& columns) {
  QuernAccumulator a = {};
  a.step = StepOf(aggregate);
  a.filtered = aggregate.filtered;
  a.negated = aggregate.function == AggregateFunction::kBoolAnd;
  a.filter_column = columns.filter;
  a.is_filter_computed = columns.is_filter_computed;
  a.state_bytes =
      a.step == kUpdateOutOfLine ? out_of_line_.back()->state_bytes() : kUpdateFunctions[a.step].state_bytes;
  if (a.step != kUpdateOutOfLine) {
    for (const ColumnType& type : aggregate.arguments) {
      a.arguments[a.num_arguments] = MakeArgument(type, columns.arguments[a.num_arguments]);
      a.arguments[a.num_arguments++].is_computed = columns.is_computed;
    }
  }
  // Raw bits, so that values come out unchanged.
  if (kUpdateFunctions[a.step].reads == kReadsBits) a.arguments[0].storage = RowOf(aggregate.arguments[0].id).storage;
  accumulators_.push_back(a);
}

std::vector<KeySpec> AggregateDescriptor::KernelKeys() const {
  std::vector<KeySpec> keys;
  for (const KeySpec& key : spec_.keys) keys.push_back(KernelKey(key));
  return keys;
}

void AggregateDescriptor::PlaceKeys(uint32_t inline_key_bytes, TuplePlacer* placer) {
  group_.PlaceKeys(KernelKeys(), inline_key_bytes, placer);
  for (const QuernField& key : group_.keys()) {
    spaces_offsets_.push_back((key.rule & kTrimsSpaces) != 0 ? RoundUp(placer->end, 4) : 0);
    if ((key.rule & kTrimsSpaces) != 0) placer->end = spaces_offsets_.back() + 4;
  }
}

void AggregateDescriptor::PlaceBits(TuplePlacer* placer) {
  descriptor_.bits_offset = placer->end;
  group_.PlaceNullBits(/*of_unequal_nulls=*/true, placer);
  for (size_t i = 0; i < accumulators_.size(); ++i) {
    QuernAccumulator& a = accumulators_[i];
    if (a.step == kUpdateOutOfLine || !NeedsSeenBit(a.step) ||
        !AggregateResultType(spec_.aggregates[i], !spec_.keys.empty()).nullable)
      continue;
    QuernField bit = {};
    placer->PlaceNullBit(&bit);
    a.seen_offset = bit.null_offset;
    a.seen_mask = bit.null_mask;
  }
  descriptor_.bits_bytes = placer->num_null_bit_bytes();
}

void AggregateDescriptor::PlaceTuple(uint32_t inline_key_bytes) {
  TuplePlacer placer;
  PlaceKeys(inline_key_bytes, &placer);
  TuplePlacer bits = placer;
  PlaceBits(&bits);
  const bool bits_fit_gap = placer.end % 8 != 0 && placer.end + descriptor_.bits_bytes <= RoundUp(placer.end, 8);
  descriptor_.states_offset = RoundUp(placer.end, 8);
  uint32_t end = descriptor_.states_offset;
  for (QuernAccumulator& a : accumulators_) {
    a.state_offset = end;
    end += a.state_bytes;
  }
  descriptor_.states_bytes = end - descriptor_.states_offset;
  if (!bits_fit_gap) {
    placer.end = end;
    PlaceBits(&placer);
    end += descriptor_.bits_bytes;
  }
  end = std::max(RoundUp(end, 8), 8u);
  const uint32_t power = std::bit_ceil(end);
  QuernRowLayout& group = descriptor_.group;
  if (group.packed_bytes != 0 && power <= 64 && 4 * end >= 3 * power) end = power;
  group_.Finish(placer);
  group.tuple_bytes = end;
  group.null_bits_offset = descriptor_.bits_offset;
  group.null_bits_bytes = descriptor_.bits_bytes;
  group.prefetches = true;
  descriptor_.num_accumulators = static_cast<uint32_t>(accumulators_.size());
  descriptor_.accumulators = accumulators_.data();
  descriptor_.batch_rows = kDefaultBatchRows;
  descriptor_.has_lanes = CanAddLanes(descriptor_);
  descriptor_.lane_groups = LaneGroupsOf(descriptor_);
}

std::string AggregateDescriptor::Print() const {
  std::vector<LayoutLine> lines;
  LayoutLine bits = {descriptor_.bits_offset, descriptor_.bits_bytes, "bits", "", ""};
  group_.AddKeyLines(KernelKeys(), &lines, &bits);
  for (size_t i = 0; i < spaces_offsets_.size(); ++i) {
    if (spaces_offsets_[i] != 0)
      lines.push_back({spaces_offsets_[i], 4, "spaces", "cut off " + Numbered("keys", i), ""});
  }
  for (size_t i = 0; i < accumulators_.size(); ++i) {
    const QuernAccumulator& a = accumulators_[i];
    const std::string name = Numbered("aggs", i);
    lines.push_back({a.state_offset, a.state_bytes, name, std::string(RowOf(spec_.aggregates[i].function).text),
                     kUpdateFunctions[a.step].text});
    if (a.seen_mask != 0) bits.type += (bits.type.empty() ? "of " : ", ") + name;
  }
  std::sort(lines.begin(), lines.end(), [](const LayoutLine& a, const LayoutLine& b) { return a.offset < b.offset; });
  if (bits.bytes > 0) lines.push_back(bits);
  std::string text = PrintTable(lines) + "tuple_bytes " + std::to_string(descriptor_.group.tuple_bytes) + "\n";
  if (computed_ != nullptr) text += "\narguments that are computed\n" + computed_->Print();
  return text;
}

}  // namespace quern
