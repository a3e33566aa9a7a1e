// SPDX-License-Identifier: Apache-2.0
// count_distinct and sum_distinct, exactly: a set of values per group (distinct_set.h), whose size or sum is the
// result.
//
//     count_distinct(i64)    rows of group a: 7 7 -1 0 7
//                            state: 2 slots taken of 4 {7, -1, -, -}, and the flag that 0 is a value    -> 3
//     count_distinct(utf8)   slots of 16 bytes: {tag of the hash, length, up to 8 bytes, else the address of a copy}
//
// A row costs two random accesses, to its group's state and to a slot of the state's table. Both are prefetched, the
// state twice as far ahead as the slot, because the slot's address is in the state:
//
//     row i: insert value i
//            prefetch the slot of value i + 16, whose state has arrived
//            prefetch the state of value i + 32
//
// Sums are computed from the set, so merging needs no sums: integers are summed in 192 bits, which no set overflows,
// and the result is then checked against its type.
#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "runtime/aggregate/accumulators/distinct_set.h"
#include "runtime/aggregate/accumulators/out_of_line_kinds.h"
#include "runtime/base/refused_calls.h"

namespace quern {
namespace {

namespace b = blocks;

template <Storage kStorage>
using SlotOf =
    std::conditional_t<kStorage == k128, WideSlot,
                       std::conditional_t<kStorage == kFixed || b::IsVariableStorage(kStorage), StringSlot, WordSlot>>;

template <Storage kStorage>
auto ReadCandidate(const QuernColumn& column, uint32_t row, CollationRule rule, uint32_t width, b::HashMemo* cache) {
  using Slot = SlotOf<kStorage>;
  if constexpr (std::is_same_v<Slot, StringSlot>) {
    return StringCandidate::Of(b::ReadBytes<kStorage>(&column, row, rule, width), rule, cache);
  } else if constexpr (std::is_same_v<Slot, WideSlot>) {
    const b::uint128_t value = b::ReaderOf<kStorage>::Read(&column, row);
    return WideCandidate{{static_cast<uint64_t>(value), static_cast<uint64_t>(value >> 64)}};
  } else {
    return WordCandidate{b::ReaderOf<kStorage>::Read(&column, row)};
  }
}

template <class Slot, class Candidate>
__attribute__((always_inline)) inline absl::Status InsertOrFlag(const Candidate& candidate, DistinctSet<Slot>* set,
                                                                AccumulatorMemory* memory) {
  if constexpr (!std::is_same_v<Slot, StringSlot>) {
    if (IsEmpty(candidate.value)) return set->has_zero = 1, absl::OkStatus();
  }
  return set->Insert(candidate, memory);
}

template <Storage kStorage>
absl::Status InsertBlock(const ValueRows& values, CollationRule rule, uint32_t width, AccumulatorMemory* memory) {
  using Set = DistinctSet<SlotOf<kStorage>>;
  decltype(ReadCandidate<kStorage>(values.column, 0, 0, 0, nullptr)) candidates[kBlockRows];
  b::HashMemo cache(&b::quern_hash_secret);
  {
    const RefusedCalls refused;
    for (uint32_t i = 0; i < values.n; ++i)
      candidates[i] = ReadCandidate<kStorage>(values.column, values.rows[i], rule, width, &cache);
    if constexpr (b::IsVariableStorage(kStorage)) QUERN_RETURN_IF_ERROR(refused.status());
  }
  const uint32_t distance = values.prefetch_rows;
  const RowsToCome states(2 * distance, values.n), slots(distance, values.n);
  AddedRows added(values.num_added);
  for (uint32_t& i = added.n; i < values.n; ++i) {
    states.Before(i, [&](uint32_t row) { return values.states[row]; });
    if (slots.Covers(i))
      StateAt<Set>(values.states[i + distance])->Prefetch(candidates[i + distance].Hash(b::quern_hash_secret));
    QUERN_RETURN_IF_ERROR(InsertOrFlag(candidates[i], StateAt<Set>(values.states[i]), memory));
  }
  return absl::OkStatus();
}

// ---- saved sets: 8 bytes for the number of values, and the values -------------------------------------------------

template <class Word>
void SaveSet(const DistinctSet<Word>& set, std::string* bytes) {
  AppendValue<uint64_t>(set.size(), bytes);
  if (set.has_zero != 0) AppendValue(Word{}, bytes);
  set.ForEachSlot([&](const Word& value) { AppendValue(value, bytes); });
}

void SaveSet(const DistinctSet<StringSlot>& set, std::string* bytes) {
  AppendValue<uint64_t>(set.size(), bytes);
  set.ForEachSlot([&](const StringSlot& slot) {
    AppendValue(slot.length, bytes);
    bytes->append(reinterpret_cast<const char*>(slot.bytes().data), slot.length);
  });
}

template <class Slot>
auto ReadSaved(SavedReader* reader, CollationRule rule, b::HashMemo* cache) {
  if constexpr (std::is_same_v<Slot, StringSlot>) {
    const auto length = reader->Read<uint32_t>();
    const uint8_t* const data = reader->ReadBytes(length);
    return StringCandidate::Of(b::Trimmed({data, data != nullptr ? length : 0}, rule), rule, cache);
  } else if constexpr (std::is_same_v<Slot, WideSlot>) {
    return WideCandidate{reader->Read<WideSlot>()};
  } else {
    return WordCandidate{reader->Read<WordSlot>()};
  }
}

// Whether `bytes` are a number of values and as many values, each of which `accepts` accepts.
template <class Slot, class Accepts>
bool IsIntact(std::string_view bytes, CollationRule rule, b::HashMemo* cache, Accepts&& accepts) {
  SavedReader reader(bytes);
  for (auto left = reader.Read<uint64_t>(); left > 0 && reader.ok(); --left)
    if (!accepts(ReadSaved<Slot>(&reader, rule, cache))) return false;
  return reader.IsAtEnd();
}

// ---- accumulators -------------------------------------------------------------------------------------------------

template <class Slot>
class CountDistinct : public SpecAccumulator {
 public:
  using Set = DistinctSet<Slot>;

  explicit CountDistinct(const AggregateSpec& spec) : SpecAccumulator(spec) {}

  uint32_t state_bytes() const override { return sizeof(Set); }

  absl::Status Update(const AccumulatorRows& rows, AccumulatorMemory* memory) const override {
    return DispatchStorage(storage(), [&](auto tag) {
      constexpr Storage kStorage = decltype(tag)::value;
      if constexpr (std::is_same_v<SlotOf<kStorage>, Slot>) {
        return ForEachBlock(type(), rows, [&](const ValueRows& values) {
          return InsertBlock<kStorage>(values, rule(), type().width_bytes, memory);
        });
      } else {
        return absl::OkStatus();  // MakeDistinctAccumulator picks the storage's slot
      }
    });
  }

  absl::Status Merge(uint8_t* const* into, uint8_t* const* from, uint32_t n, AccumulatorMemory* memory) const override {
    for (uint32_t i = 0; i < n; ++i)
      QUERN_RETURN_IF_ERROR(StateAt<Set>(into[i])->Merge(StateAt<Set>(from[i]), rule(), memory));
    return absl::OkStatus();
  }

  absl::StatusOr<uint32_t> Finalise(const uint8_t* const* states, uint32_t n, QuernOutColumn* out, uint64_t out_row,
                                    void* /*host*/) const override {
    auto* const counts = static_cast<int64_t*>(out->values) + out_row;
    for (uint32_t i = 0; i < n; ++i) {
      counts[i] = static_cast<int64_t>(StateAt<Set>(states[i]).size());
      WriteValidity(out, out_row + i, true);
    }
    return n;
  }

  void Save(const uint8_t* state, std::string* bytes) const override { SaveSet(StateAt<Set>(state), bytes); }

  absl::Status MergeSaved(uint8_t* state, std::string_view bytes, AccumulatorMemory* memory) const override {
    b::HashMemo cache(&b::quern_hash_secret);
    if (!IsIntact<Slot>(bytes, rule(), &cache, [&](const auto& candidate) { return IsOfWidth(candidate); }))
      return Damaged(bytes);
    SavedReader reader(bytes);
    auto left = reader.Read<uint64_t>();
    auto* const set = StateAt<Set>(state);
    QUERN_RETURN_IF_ERROR(set->Reserve(set->num_slots_taken + left, memory));
    for (; left > 0; --left) QUERN_RETURN_IF_ERROR(InsertOrFlag(ReadSaved<Slot>(&reader, rule(), &cache), set, memory));
    return absl::OkStatus();
  }

 private:
  bool IsOfWidth(const StringCandidate& candidate) const {
    return storage() != kFixed || candidate.bytes.length == type().width_bytes;
  }
  bool IsOfWidth(const WideCandidate&) const { return true; }
  bool IsOfWidth(const WordCandidate& candidate) const {
    const uint32_t num_bits = storage() == kBit ? 1 : 8 * RowOf(type().id).width_bytes;
    return num_bits == 64 || candidate.value >> num_bits == 0;
  }
};

// A sum of up to 2^64 values of 128 bits.
struct Sum192 {
  b::uint128_t low = 0;
  int64_t high = 0;

  void Add(__int128 value) {
    const b::uint128_t before = low;
    low += static_cast<b::uint128_t>(value);
    high += (low < before) - (value < 0);
  }
  bool FitsIn128() const { return high == (static_cast<__int128>(low) < 0 ? -1 : 0); }
  template <class T>
  bool FitsIn() const {
    return FitsIn128() && static_cast<__int128>(static_cast<T>(low)) == static_cast<__int128>(low);
  }
};

// How to sum values of T, as slots hold them: Sum, Add(slot), Fits() and Result().
template <class T, class Of = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>
struct IntegerSum {
  static constexpr bool kRounds = false;
  using Result = Of;
  Sum192 sum;

  void Add(WordSlot slot) { sum.Add(static_cast<T>(slot)); }
  bool Fits() const { return sum.FitsIn<Result>(); }
  Result Value() const { return static_cast<Result>(sum.low); }
};

template <class T>
struct FloatSum {
  using Result = double;
  static constexpr bool kRounds = true;
  double sum = 0;

  void Add(WordSlot slot) { sum += b::Load<T>(&slot); }  // the low bytes of the word
  bool Fits() const { return true; }
  double Value() const { return sum; }
};

struct DecimalSum {
  static constexpr bool kRounds = false;
  using Result = b::uint128_t;
  Sum192 sum;

  void Add(const WideSlot& slot) {
    sum.Add(static_cast<__int128>(static_cast<b::uint128_t>(slot.high) << 64 | slot.low));
  }
  bool Fits() const { return sum.FitsIn128(); }
  b::uint128_t Value() const { return sum.low; }
};

template <class Slot, class Sum>
class SumDistinct final : public CountDistinct<Slot> {
 public:
  using CountDistinct<Slot>::CountDistinct;

  absl::StatusOr<uint32_t> Finalise(const uint8_t* const* states, uint32_t n, QuernOutColumn* out, uint64_t out_row,
                                    void* /*host*/) const override {
    for (uint32_t i = 0; i < n; ++i) {
      const auto& set = StateAt<DistinctSet<Slot>>(states[i]);
      Sum sum;
      Add(set, &sum);
      if (!sum.Fits()) return OutOfRange();
      b::Store(static_cast<uint8_t*>(out->values) + (out_row + i) * sizeof(typename Sum::Result), sum.Value());
      WriteValidity(out, out_row + i, set.size() > 0);
    }
    return n;
  }

 private:
  static void Add(const DistinctSet<Slot>& set, Sum* sum) {
    if constexpr (Sum::kRounds) {
      if (set.has_secret != 0) return AddInOrder(set, sum);
    }
    set.ForEachSlot([&](const Slot& slot) { sum->Add(slot); });
  }
  // The slots of a table with numbers of its own are in another order each time, which rounding would show.
  static void AddInOrder(const DistinctSet<Slot>& set, Sum* sum) {
    std::vector<Slot> values;
    values.reserve(set.size());
    set.ForEachSlot([&](const Slot& slot) { values.push_back(slot); });
    std::sort(values.begin(), values.end());
    for (const Slot& slot : values) sum->Add(slot);
  }

  absl::Status OutOfRange() const {
    return absl::OutOfRangeError("sum out of range: " + AggregateText(this->spec()) + "; accepted: results within " +
                                 std::to_string(8 * sizeof(typename Sum::Result)) + " bits");
  }
};

template <class T, class... Result>
std::unique_ptr<OutOfLineAggregate> MakeIntegerSum(const AggregateSpec& spec) {
  return std::make_unique<SumDistinct<WordSlot, IntegerSum<T, Result...>>>(spec);
}

std::unique_ptr<OutOfLineAggregate> MakeSumDistinct(const AggregateSpec& spec) {
  const TypeId id = spec.arguments[0].id;
  if (id == TypeId::kI8) return MakeIntegerSum<int8_t>(spec);
  if (id == TypeId::kI16) return MakeIntegerSum<int16_t>(spec);
  if (id == TypeId::kI32) return MakeIntegerSum<int32_t>(spec);
  if (id == TypeId::kI64) return MakeIntegerSum<int64_t>(spec);
  if (id == TypeId::kF32) return std::make_unique<SumDistinct<WordSlot, FloatSum<float>>>(spec);
  if (id == TypeId::kF64) return std::make_unique<SumDistinct<WordSlot, FloatSum<double>>>(spec);
  if (id == TypeId::kDecimal32) return MakeIntegerSum<int32_t, __int128>(spec);
  if (id == TypeId::kDecimal64) return MakeIntegerSum<int64_t, __int128>(spec);
  if (id == TypeId::kDecimal128) return std::make_unique<SumDistinct<WideSlot, DecimalSum>>(spec);
  return MakeIntegerSum<uint64_t>(spec);  // narrower ones are zero-extended
}

}  // namespace

std::unique_ptr<OutOfLineAggregate> MakeDistinctAccumulator(const AggregateSpec& spec) {
  if (spec.function == AggregateFunction::kSumDistinct) return MakeSumDistinct(spec);
  return DispatchStorage(RowOf(spec.arguments[0].id).key_storage, [&](auto tag) -> std::unique_ptr<OutOfLineAggregate> {
    return std::make_unique<CountDistinct<SlotOf<decltype(tag)::value>>>(spec);
  });
}

}  // namespace quern
