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
void SaveSlot(const Word& value, std::string* bytes) {
  AppendValue(value, bytes);
}

void SaveSlot(const StringSlot& slot, std::string* bytes) {
  AppendValue(slot.length, bytes);
  bytes->append(reinterpret_cast<const char*>(slot.bytes().data), slot.length);
}

template <class Slot>
void SaveSet(const DistinctSet<Slot>& set, std::string* bytes) {
  AppendValue<uint64_t>(set.size(), bytes);
  if (set.has_zero != 0) SaveSlot(Slot{}, bytes);
  set.ForEachSlot([&](const Slot& slot) { SaveSlot(slot, bytes); });
}

// Those of a set from slot *next on, about most_bytes; returns whether there are more.
template <class Slot>
bool SavePartOfSet(const DistinctSet<Slot>& set, uint64_t* next, uint64_t most_bytes, std::string* bytes) {
  const size_t begin = bytes->size();
  uint64_t num_values = 0;
  AppendValue(num_values, bytes);
  if (*next == 0 && set.has_zero != 0) {
    SaveSlot(Slot{}, bytes);
    ++num_values;
  }
  *next = set.ForEachSlotFrom(*next, [&](const Slot& slot) {
    SaveSlot(slot, bytes);
    ++num_values;
    return bytes->size() - begin < most_bytes;
  });
  std::memcpy(bytes->data() + begin, &num_values, sizeof(num_values));
  return *next < set.num_slots();
}

template <class Slot>
uint64_t SavedBytesOf(const DistinctSet<Slot>& set) {
  uint64_t bytes = sizeof(uint64_t) + set.size() * sizeof(Slot);
  if constexpr (std::is_same_v<Slot, StringSlot>) set.ForEachSlot([&](const Slot& slot) { bytes += slot.length; });
  return bytes;
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

// ---- values in parts: more than a set has room for ----------------------------------------------------------------

// Which of `num_slices` a value belongs to. Sets use the top bits of the hash, so that these are mixed once more.
template <class Candidate>
uint64_t SliceOf(const Candidate& candidate, uint64_t num_slices) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
  return (candidate.Hash(b::quern_hash_secret) * kOdd >> 32) * num_slices >> 32;
}

// Fills a set with those of the parts' values that belong to a slice, of which there may be `most_values`.
template <class Slot>
absl::Status FillSlice(SavedParts* parts, CollationRule rule, uint64_t slice, uint64_t num_slices, uint64_t most_values,
                       DistinctSet<Slot>* set, AccumulatorMemory* memory) {
  b::HashMemo cache(&b::quern_hash_secret);
  QUERN_RETURN_IF_ERROR(set->Reserve(most_values, memory));
  return parts->ForEach([&](std::string_view bytes) -> absl::Status {
    SavedReader reader(bytes);
    for (auto left = reader.Read<uint64_t>(); left > 0; --left) {
      const auto candidate = ReadSaved<Slot>(&reader, rule, &cache);
      if (!reader.ok()) return InvalidArgument("a part of a set of values is damaged; accepted: what was saved");
      if (SliceOf(candidate, num_slices) == slice) QUERN_RETURN_IF_ERROR(InsertOrFlag(candidate, set, memory));
    }
    return absl::OkStatus();
  });
}

struct PartTotals {
  uint64_t num_values = 0, num_bytes = 0;

  // What a set of all of them may take: slots, of which three eighths are taken at least, and strings.
  template <class Slot>
  uint64_t SetBytes() const {
    return num_values * sizeof(Slot) * 8 / 3 + (std::is_same_v<Slot, StringSlot> ? 2 * num_bytes : 0);
  }
};

// *Errors*: those of reading.
absl::StatusOr<PartTotals> TotalsOf(SavedParts* parts) {
  PartTotals totals;
  QUERN_RETURN_IF_ERROR(parts->ForEach([&](std::string_view bytes) {
    totals.num_values += SavedReader(bytes).Read<uint64_t>();
    totals.num_bytes += bytes.size();
    return absl::OkStatus();
  }));
  return totals;
}

// Calls f(set) for sets that have each value of the parts once, all together.
template <class Slot, class F>
absl::Status ForEachSlice(SavedParts* parts, CollationRule rule, const std::shared_ptr<MemoryBudget>& budget, F&& f) {
  constexpr uint64_t kMostSlices = 1 << 16, kShare = 2, kDefaultBytes = 64 << 20;
  QUERN_ASSIGN_OR_RETURN(const PartTotals totals, TotalsOf(parts));
  const uint64_t limit = budget->limit_bytes(), used = budget->used_bytes();
  const uint64_t slice_bytes = limit == 0 ? kDefaultBytes : (limit - std::min(limit, used)) / kShare + 1;
  uint64_t num_slices = std::min(totals.SetBytes<Slot>() / slice_bytes + 1, kMostSlices);
  for (uint64_t slice = 0; slice < num_slices;) {
    AccumulatorMemory memory(budget);
    DistinctSet<Slot> set;
    std::memset(static_cast<void*>(&set), 0, sizeof(set));
    const absl::Status filled =
        FillSlice(parts, rule, slice, num_slices, totals.num_values / num_slices + 1, &set, &memory);
    if (absl::IsResourceExhausted(filled) && num_slices < kMostSlices) {
      num_slices *= 2;  // slice i becomes slices 2i and 2i + 1
      slice *= 2;
      continue;
    }
    QUERN_RETURN_IF_ERROR(filled);
    f(set);
    ++slice;
  }
  return absl::OkStatus();
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

  bool has_parts() const override { return true; }
  uint64_t SavedBytes(const uint8_t* state) const override { return SavedBytesOf(StateAt<Set>(state)); }
  bool SavePart(const uint8_t* state, uint64_t* next, uint64_t most_bytes, std::string* bytes) const override {
    return SavePartOfSet(StateAt<Set>(state), next, most_bytes, bytes);
  }

  absl::Status FinaliseParts(SavedParts* parts, const std::shared_ptr<MemoryBudget>& budget, QuernOutColumn* out,
                             uint64_t out_row) const override {
    uint64_t count = 0;
    QUERN_RETURN_IF_ERROR(ForEachSlice<Slot>(parts, rule(), budget, [&](const Set& set) { count += set.size(); }));
    static_cast<int64_t*>(out->values)[out_row] = static_cast<int64_t>(count);
    WriteValidity(out, out_row, true);
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
      QUERN_RETURN_IF_ERROR(Write(sum, set.size() > 0, out, out_row + i));
    }
    return n;
  }

  absl::Status FinaliseParts(SavedParts* parts, const std::shared_ptr<MemoryBudget>& budget, QuernOutColumn* out,
                             uint64_t out_row) const override {
    Sum sum;
    uint64_t count = 0;
    QUERN_RETURN_IF_ERROR(ForEachSlice<Slot>(parts, this->rule(), budget, [&](const DistinctSet<Slot>& set) {
      Add(set, &sum);
      count += set.size();
    }));
    return Write(sum, count > 0, out, out_row);
  }

 private:
  absl::Status Write(const Sum& sum, bool valid, QuernOutColumn* out, uint64_t row) const {
    if (!sum.Fits()) return OutOfRange();
    b::Store(static_cast<uint8_t*>(out->values) + row * sizeof(typename Sum::Result), sum.Value());
    WriteValidity(out, row, valid);
    return absl::OkStatus();
  }
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
