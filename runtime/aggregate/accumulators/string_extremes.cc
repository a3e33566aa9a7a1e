// SPDX-License-Identifier: Apache-2.0
// min, max, any, first and last of strings and of fixed_binary. Batches are not kept, so a state keeps a copy of its
// string: up to 8 bytes in the state itself, more in a piece of memory. Most rows change nothing, and the state usually
// decides that without reading the piece: for min and max it holds the first 8 bytes as a big-endian number, whose
// order is the order of the bytes.
//
//     min of "pear", "apricot pie", "apple tart"      the state                                          piece
//     "pear"                                          order 'pear\0\0\0\0'  bytes "pear"                 none
//     "apricot pie"   'apricot ' < 'pear....'         order 'apricot '      piece of 16, length 11       "apricot pie"
//     "apple tart"    'apple ta' < 'apricot '         order 'apple ta'      the same,    length 10       "apple tart"
//     "apple tarte"   'apple ta' is equal: the pieces are compared, and "apple tart" is the shorter one
//
// Strings of a PAD SPACE collation are compared without their trailing spaces and kept with them. Where the order of
// strings is not that of their bytes, the 8 bytes are those of the order key, followed by spaces where the collation
// pads (collation.h): "Pear" has the prefix 'PEAR....' under ascii_ci, and the first of several equal strings stays.
// first and last keep the row id in place of the prefix: rows of many threads come in no order, and the lowest or
// highest id decides, also where states are merged.
#include <bit>
#include <cstring>
#include <utility>

#include "runtime/aggregate/accumulators/out_of_line_kinds.h"
#include "runtime/collation/collation.h"

namespace quern {
namespace {

namespace b = blocks;
using b::Bytes;
using Function = AggregateFunction;

constexpr uint32_t kStateBytes = 8;  // the length of a string that the state itself can hold

struct StringState {
  uint64_t order;  // min, max: the first 8 bytes, big-endian; first, last: the row id
  union {
    uint8_t own[kStateBytes];
    uint8_t* piece;
  };
  uint32_t length;
  uint8_t piece_log2;  // of the piece's size; 0: the bytes are in `own`
  bool has_value;
  uint16_t unused;

  Bytes bytes() const { return {piece_log2 != 0 ? piece : own, length}; }
};
static_assert(sizeof(StringState) == 24);

struct Candidate {
  Bytes bytes;
  uint64_t order;
};

// Whether strings are ordered by their bytes, shorter ones first, with spaces trimmed where the rule says so.
bool IsOrderOfBytes(CollationRule rule) { return (rule & (kPadsSpaces | kWeighsOrder)) == 0; }

uint64_t OrderPrefixOf(Bytes s, CollationRule rule) {
  uint8_t prefix[8];
  OrderKeyBytes(s, rule, 0, sizeof(prefix), prefix);
  return __builtin_bswap64(b::Load<uint64_t>(prefix));
}

uint64_t PrefixOf(Bytes s, CollationRule rule) {
  static_assert(std::endian::native == std::endian::little);
  if (!IsOrderOfBytes(rule)) return OrderPrefixOf(s, rule);
  s = b::Trimmed(s, rule);
  if (s.length >= 8) return __builtin_bswap64(b::Load<uint64_t>(s.data));
  uint64_t prefix = 0;
  for (uint32_t i = 0; i < s.length; ++i) prefix |= uint64_t{s.data[i]} << (56 - 8 * i);
  return prefix;
}

constexpr bool KeepsRowId(Function function) { return function == Function::kFirst || function == Function::kLast; }

template <Function kFunction>
Candidate CandidateOf(Bytes s, uint64_t row_id, CollationRule rule) {
  if constexpr (KeepsRowId(kFunction)) return {s, row_id};
  if constexpr (kFunction == Function::kAny) return {s, 0};
  return {s, PrefixOf(s, rule)};
}

// For strings with equal prefixes: negative where a precedes b.
int CompareBytes(Bytes a, Bytes other, CollationRule rule) {
  if (!IsOrderOfBytes(rule)) return CompareStrings(a, other, rule);
  a = b::Trimmed(a, rule), other = b::Trimmed(other, rule);
  const uint32_t common = a.length < other.length ? a.length : other.length;
  const int difference = common > 8 ? std::memcmp(a.data + 8, other.data + 8, common - 8) : 0;
  if (difference != 0) return difference;
  return a.length < other.length ? -1 : a.length > other.length;
}

template <Function kFunction>
bool Replaces(const Candidate& candidate, const StringState& state, CollationRule rule) {
  if (!state.has_value) return true;
  if constexpr (kFunction == Function::kAny) return false;
  constexpr bool kWantsLower = kFunction == Function::kMin || kFunction == Function::kFirst;
  if (candidate.order != state.order) return (candidate.order < state.order) == kWantsLower;
  if constexpr (KeepsRowId(kFunction)) return false;
  const int comparison = CompareBytes(candidate.bytes, state.bytes(), rule);
  return kWantsLower ? comparison < 0 : comparison > 0;
}

void GiveBackPiece(StringState* state, AccumulatorMemory* memory) {
  if (state->piece_log2 != 0) memory->GiveBack(state->piece, uint64_t{1} << state->piece_log2);
  state->piece_log2 = 0;
}

absl::Status Replace(const Candidate& candidate, StringState* state, AccumulatorMemory* memory) {
  const uint32_t length = candidate.bytes.length;
  const uint64_t piece_bytes = AccumulatorMemory::PieceBytes(length);
  if (length <= kStateBytes) {
    GiveBackPiece(state, memory);
  } else if (state->piece_log2 == 0 || piece_bytes > uint64_t{1} << state->piece_log2) {
    QUERN_ASSIGN_OR_RETURN(uint8_t* const piece, memory->Take(piece_bytes));
    GiveBackPiece(state, memory);
    state->piece = piece;
    state->piece_log2 = static_cast<uint8_t>(std::countr_zero(piece_bytes));
  }
  if (length > 0) std::memcpy(state->piece_log2 != 0 ? state->piece : state->own, candidate.bytes.data, length);
  state->order = candidate.order;
  state->length = length;
  state->has_value = true;
  return absl::OkStatus();
}

template <Storage kStorage, Function kFunction>
absl::Status UpdateBlock(const ValueRows& values, CollationRule rule, uint32_t width, AccumulatorMemory* memory) {
  const RowsToCome states(values.prefetch_rows, values.n);
  AddedRows added(values.num_added);
  for (uint32_t& i = added.n; i < values.n; ++i) {
    states.Before(i, [&](uint32_t row) { return values.states[row]; });
    auto* const state = StateAt<StringState>(values.states[i]);
    const Bytes bytes = b::ReadBytes<kStorage>(&values.column, values.rows[i], 0, width);
    const Candidate candidate = CandidateOf<kFunction>(bytes, values.RowId(i), rule);
    if (Replaces<kFunction>(candidate, *state, rule)) QUERN_RETURN_IF_ERROR(Replace(candidate, state, memory));
  }
  return absl::OkStatus();
}

// States as the source of an output column.
struct StateStrings {
  const uint8_t* const* states;
  uint32_t width;

  const StringState& At(uint32_t i) const { return StateAt<StringState>(states[i]); }
  bool Valid(uint32_t i) const { return At(i).has_value; }
  Bytes ReadString(uint32_t i) const { return At(i).bytes(); }
  const uint8_t* ReadFixed(uint32_t i) const { return At(i).bytes().data; }
};

template <class F>
auto DispatchBytes(Storage storage, F&& f) {
  if (storage == kVar32) return f(StorageTag<kVar32>{});
  if (storage == kVar64) return f(StorageTag<kVar64>{});
  if (storage == kView) return f(StorageTag<kView>{});
  return f(StorageTag<kFixed>{});
}

template <Function kFunction>
class StringAccumulator final : public SpecAccumulator {
 public:
  explicit StringAccumulator(const AggregateSpec& spec) : SpecAccumulator(spec) {}

  uint32_t state_bytes() const override { return sizeof(StringState); }

  absl::Status Update(const AccumulatorRows& rows, AccumulatorMemory* memory) const override {
    return DispatchBytes(storage(), [&](auto tag) {
      return ForEachBlock(type(), rows, [&](const ValueRows& values) {
        return UpdateBlock<decltype(tag)::value, kFunction>(values, rule(), type().width_bytes, memory);
      });
    });
  }

  absl::Status Merge(uint8_t* const* into, uint8_t* const* from, uint32_t n, AccumulatorMemory* memory) const override {
    for (uint32_t i = 0; i < n; ++i) {
      auto *to = StateAt<StringState>(into[i]), *other = StateAt<StringState>(from[i]);
      if (!other->has_value) continue;
      if (Replaces<kFunction>({other->bytes(), other->order}, *to, rule())) std::swap(*to, *other);
      GiveBackPiece(other, memory);
      *other = {};
    }
    return absl::OkStatus();
  }

  absl::StatusOr<uint32_t> Finalise(const uint8_t* const* states, uint32_t n, QuernOutColumn* out, uint64_t out_row,
                                    void* /*host*/) const override {
    const StateStrings source = {states, type().width_bytes};
    return DispatchBytes(storage(), [&](auto tag) -> absl::StatusOr<uint32_t> {
      constexpr Storage kStorage = decltype(tag)::value;
      uint32_t fit = n;
      if constexpr (b::IsVariableStorage(kStorage)) {
        QUERN_ASSIGN_OR_RETURN(fit, FitOf(b::FitStrings<kStorage>(source, n, out)));
      }
      b::EmitColumn<kStorage>(source, fit, out, out_row, out->validity != nullptr);
      return fit;
    });
  }

  // A byte 0 or 1: has a value; then the row id for first and last; 4 bytes of length; the bytes.
  void Save(const uint8_t* state_bytes, std::string* bytes) const override {
    const auto& state = StateAt<StringState>(state_bytes);
    AppendValue<uint8_t>(state.has_value, bytes);
    if (!state.has_value) return;
    if (KeepsRowId(kFunction)) AppendValue(state.order, bytes);
    AppendValue(state.length, bytes);
    bytes->append(reinterpret_cast<const char*>(state.bytes().data), state.length);
  }

  absl::Status MergeSaved(uint8_t* state_bytes, std::string_view bytes, AccumulatorMemory* memory) const override {
    SavedReader reader(bytes);
    const auto has_value = reader.Read<uint8_t>();
    if (has_value == 0 && reader.IsAtEnd()) return absl::OkStatus();
    const uint64_t row_id = KeepsRowId(kFunction) ? reader.Read<uint64_t>() : 0;
    const auto length = reader.Read<uint32_t>();
    const uint8_t* const data = reader.ReadBytes(length);
    if (has_value != 1 || !reader.IsAtEnd() || (storage() == kFixed && length != type().width_bytes))
      return Damaged(bytes);
    const Candidate candidate = CandidateOf<kFunction>({data, length}, row_id, rule());
    auto* const state = StateAt<StringState>(state_bytes);
    return Replaces<kFunction>(candidate, *state, rule()) ? Replace(candidate, state, memory) : absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<OutOfLineAggregate> MakeStringAccumulator(const AggregateSpec& spec) {
  if (spec.function == Function::kMin) return std::make_unique<StringAccumulator<Function::kMin>>(spec);
  if (spec.function == Function::kMax) return std::make_unique<StringAccumulator<Function::kMax>>(spec);
  if (spec.function == Function::kFirst) return std::make_unique<StringAccumulator<Function::kFirst>>(spec);
  if (spec.function == Function::kLast) return std::make_unique<StringAccumulator<Function::kLast>>(spec);
  return std::make_unique<StringAccumulator<Function::kAny>>(spec);
}

}  // namespace quern
