// SPDX-License-Identifier: Apache-2.0
// Merges states and makes results, accumulator by accumulator over many groups: a switch per batch, then a loop.
// Suppose that two threads have each aggregated part of a group, (count 3, mean 2.0, squares 6.0) and (count 1, mean
// 6.0, squares 0.0). Merging gives
//
//     count 4, mean 2.0 + 4.0 * 1/4 = 3.0, squares 6.0 + 0.0 + 4.0^2 * 3*1/4 = 18.0
//
// which is what one thread would have found (Chan, Golub, LeVeque 1983). Minima and maxima are encoded as numbers of
// which the greater one stays; states of no rows are 0 and add nothing, so no special case is needed.
#include "runtime/aggregate/group_states.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/base/status.h"
#include "runtime/blocks/accumulators.h"

namespace quern {
namespace {

using blocks::int128_t;
using blocks::Load;
using blocks::Store;
using blocks::uint128_t;

constexpr uint32_t kSavedRows = 64;  // saved states that are merged at a time

const QuernAccumulator& AccumulatorOf(const AggregateDescriptor& descriptor, size_t aggregate) {
  return descriptor.get()->accumulators[aggregate];
}

bool HasSeen(const QuernAccumulator& a, const uint8_t* tuple) {
  return a.seen_mask == 0 || (tuple[a.seen_offset] & a.seen_mask) != 0;
}

// ---- merging ------------------------------------------------------------------------------------------------------

void MergeMoments(const uint8_t* from, uint8_t* into) {
  const blocks::Moments a = Load<blocks::Moments>(into), b = Load<blocks::Moments>(from);
  if (b.count == 0) return;
  blocks::Moments sum;
  sum.count = a.count + b.count;
  const double distance = b.mean - a.mean;
  sum.mean = a.mean + distance * (b.count / sum.count);
  sum.squares = a.squares + b.squares + distance * distance * (a.count * (b.count / sum.count));
  Store(into, a.count == 0 ? b : sum);
}

// For both kinds: a correlation begins with the members of comoments.
template <class State>
void MergeComoments(const uint8_t* from, uint8_t* into) {
  const State a = Load<State>(into), b = Load<State>(from);
  if (b.count == 0) return;
  State sum = a;
  sum.count = a.count + b.count;
  const double x = b.mean_x - a.mean_x, y = b.mean_y - a.mean_y, weight = b.count / sum.count;
  sum.mean_x = a.mean_x + x * weight;
  sum.mean_y = a.mean_y + y * weight;
  sum.products = a.products + b.products + x * y * (a.count * weight);
  if constexpr (requires { sum.squares_x; }) {
    sum.squares_x = a.squares_x + b.squares_x + x * x * (a.count * weight);
    sum.squares_y = a.squares_y + b.squares_y + y * y * (a.count * weight);
  }
  Store(into, a.count == 0 ? b : sum);
}

// Adds one state of an update function to another. `seen`: whether `from` has a value.
template <Step kStep>
void MergeOne(const uint8_t* from, bool seen, bool is_signed, uint8_t* into, uint8_t* overflowed) {
  using namespace blocks;  // NOLINT: the update functions
  const auto word = [&](uint32_t offset) { return Load<uint64_t>(from + offset); };
  if constexpr (kStep == kUpdateRows) AddTo<uint64_t>(into, word(0));
  if constexpr (kStep == kUpdateSum) UpdateSum(Load<int64_t>(from), into, is_signed, overflowed);
  if constexpr (kStep == kUpdateSum128) AddTo<int128_t>(into, Load<int128_t>(from));
  if constexpr (kStep == kUpdateSumFloat) AddTo<double>(into, Load<double>(from));
  if constexpr (kStep == kUpdateSumDecimal) UpdateSumWide(Load<int128_t>(from), into, overflowed);
  if constexpr (kStep == kUpdateAvgSmall) {
    AddTo<uint64_t>(into, word(0));
    AddTo<uint64_t>(into + 8, word(8));
  }
  if constexpr (kStep == kUpdateAvg) AddTo<int128_t>(into, Load<int128_t>(from));
  if constexpr (kStep == kUpdateAvgDecimal) UpdateSumWide(Load<int128_t>(from), into, overflowed);
  if constexpr (kStep == kUpdateAvg || kStep == kUpdateAvgDecimal) AddTo<uint64_t>(into + 16, word(16));
  if constexpr (kStep == kUpdateAvgFloat) {
    AddTo<double>(into, Load<double>(from));
    AddTo<uint64_t>(into + 8, word(8));
  }
  if constexpr (kStep == kUpdateMin || kStep == kUpdateMax) UpdateExtreme(word(0), into);
  if constexpr (kStep == kUpdateMinWide || kStep == kUpdateMaxWide) UpdateExtremeWide(Load<uint128_t>(from), into);
  if constexpr (kStep == kUpdateAny) {
    if (seen) Store(into, word(0));
  }
  if constexpr (kStep == kUpdateAnyWide) {
    if (seen) Store(into, Load<int128_t>(from));
  }
  if constexpr (kStep == kUpdateFirst || kStep == kUpdateLast) UpdatePick(word(8), word(0), into);
  if constexpr (kStep == kUpdateFirstWide || kStep == kUpdateLastWide)
    UpdatePickWide(Load<int128_t>(from + 8), word(0), into);
  if constexpr (kStep == kUpdateBitAnd || kStep == kUpdateBitOr) UpdateBitOr(word(0), into);
  if constexpr (kStep == kUpdateBitXor) UpdateBitXor(word(0), into);
  if constexpr (kStep == kUpdateMoments) MergeMoments(from, into);
  if constexpr (kStep == kUpdateComoments) MergeComoments<Comoments>(from, into);
  if constexpr (kStep == kUpdateCorrelation) MergeComoments<Correlation>(from, into);
}

template <Step kStep>
void MergeAll(const QuernAccumulator& a, uint8_t* const* into, uint8_t* const* from, uint32_t n, uint8_t* overflowed) {
  const uint32_t offset = a.state_offset;
  const bool is_signed = a.arguments[0].is_signed;
  for (uint32_t i = 0; i < n; ++i)
    MergeOne<kStep>(from[i] + offset, HasSeen(a, from[i]), is_signed, into[i] + offset, overflowed);
  if (a.seen_mask == 0) return;
  for (uint32_t i = 0; i < n; ++i) {
    uint8_t* seen = into[i] + a.seen_offset;
    *seen = static_cast<uint8_t>(*seen | (from[i][a.seen_offset] & a.seen_mask));
  }
}

void MergeFused(const QuernAccumulator& a, uint8_t* const* into, uint8_t* const* from, uint32_t n,
                uint8_t* overflowed) {
  switch (a.step) {
#define QUERN_UPDATE_FUNCTION(Id, text, reads, state_bytes) \
  case Id: return MergeAll<Id>(a, into, from, n, overflowed);
#include "runtime/abi/update_functions.def"
  }
}

// ---- results ------------------------------------------------------------------------------------------------------

void WriteNull(QuernOutColumn* out, uint64_t row, bool valid) {
  if (out->validity == nullptr) return;
  blocks::SetBitTo(out->validity, row, valid);
  out->null_count += !valid;
}

// Writes n values of T; value(i) is called only where has(i).
template <class T, class Has, class Value>
void WriteFixed(uint32_t n, QuernOutColumn* out, uint64_t out_row, Has&& has, Value&& value) {
  uint8_t* const values =
      static_cast<uint8_t*>(out->values) + out_row * sizeof(T);  // read once: a store might change it
  if (out->validity == nullptr) {
    for (uint32_t i = 0; i < n; ++i) Store(values + i * sizeof(T), has(i) ? static_cast<T>(value(i)) : T{0});
    return;
  }
  for (uint32_t i = 0; i < n; ++i) {
    const bool valid = has(i);
    WriteNull(out, out_row + i, valid);
    Store(values + i * sizeof(T), valid ? static_cast<T>(value(i)) : T{0});
  }
}

template <class Has, class Value>
void WriteBits(Storage storage, uint32_t n, QuernOutColumn* out, uint64_t out_row, Has&& has, Value&& value) {
  if (storage == k8) return WriteFixed<uint8_t>(n, out, out_row, has, value);
  if (storage == k16) return WriteFixed<uint16_t>(n, out, out_row, has, value);
  if (storage == k32 || storage == kF32) return WriteFixed<uint32_t>(n, out, out_row, has, value);
  if (storage == k64 || storage == kF64) return WriteFixed<uint64_t>(n, out, out_row, has, value);
  for (uint32_t i = 0; i < n; ++i) {  // kBit
    const bool valid = has(i);
    WriteNull(out, out_row + i, valid);
    blocks::SetBitTo(static_cast<uint8_t*>(out->values), out_row + i, valid && (value(i) & 1) != 0);
  }
}

// Rounds half away from zero.
int128_t RoundedQuotient(int128_t sum, uint64_t count) {
  const int128_t divisor = static_cast<int128_t>(count), quotient = sum / divisor, rest = sum % divisor;
  const int128_t magnitude = rest < 0 ? -rest : rest;
  if (magnitude < divisor - magnitude) return quotient;
  return quotient + (sum < 0 ? -1 : 1);
}

// Groups of one aggregate.
struct GroupStates {
  const QuernAccumulator& accumulator;
  uint8_t* const* tuples;

  bool HasSeen(uint32_t i) const { return quern::HasSeen(accumulator, tuples[i]); }
  template <class T>
  T At(uint32_t i, uint32_t offset = 0) const {
    return Load<T>(tuples[i] + accumulator.state_offset + offset);
  }
};

double Spread(AggregateFunction function, const blocks::Moments& m) {
  const bool is_sample = function == AggregateFunction::kVarSamp || function == AggregateFunction::kStddevSamp;
  const bool is_root = function == AggregateFunction::kStddevPop || function == AggregateFunction::kStddevSamp;
  const double variance = m.squares / (is_sample ? m.count - 1 : m.count);
  return is_root ? std::sqrt(variance) : variance;
}

void WriteMoments(AggregateFunction function, const GroupStates& s, uint32_t n, QuernOutColumn* out, uint64_t out_row) {
  const bool is_sample = function == AggregateFunction::kVarSamp || function == AggregateFunction::kStddevSamp;
  WriteFixed<double>(
      n, out, out_row, [&](uint32_t i) { return s.At<double>(i) > (is_sample ? 1 : 0); },
      [&](uint32_t i) { return Spread(function, s.At<blocks::Moments>(i)); });
}

void WriteComoments(AggregateFunction function, const GroupStates& s, uint32_t n, QuernOutColumn* out,
                    uint64_t out_row) {
  const double fewest = function == AggregateFunction::kCovarSamp ? 1 : 0;
  WriteFixed<double>(
      n, out, out_row, [&](uint32_t i) { return s.At<double>(i) > fewest; },
      [&](uint32_t i) {
        const auto m = s.At<blocks::Comoments>(i);
        return m.products / (m.count - fewest);
      });
}

void WriteCorrelations(const GroupStates& s, uint32_t n, QuernOutColumn* out, uint64_t out_row) {
  const auto varies = [](double squares) { return squares > 0 || std::isnan(squares); };
  WriteFixed<double>(
      n, out, out_row,
      [&](uint32_t i) {
        const auto m = s.At<blocks::Correlation>(i);
        return m.count > 0 && varies(m.squares_x) && varies(m.squares_y);
      },
      [&](uint32_t i) {
        const auto m = s.At<blocks::Correlation>(i);
        return m.products / std::sqrt(m.squares_x) / std::sqrt(m.squares_y);
      });
}

void WriteAverages(const AggregateSpec& aggregate, const GroupStates& s, uint32_t n, QuernOutColumn* out,
                   uint64_t out_row) {
  const Step step = s.accumulator.step;
  const uint32_t count_at = step == kUpdateAvgSmall || step == kUpdateAvgFloat ? 8 : 16;
  const auto count = [&](uint32_t i) { return s.At<uint64_t>(i, count_at); };
  const auto has = [&](uint32_t i) { return count(i) != 0; };
  if (IsDecimal(aggregate.arguments[0].id)) {
    return WriteFixed<int128_t>(n, out, out_row, has, [&](uint32_t i) {
      const int128_t sum = step == kUpdateAvgSmall ? s.At<int64_t>(i) : s.At<int128_t>(i);
      return RoundedQuotient(sum, count(i));
    });
  }
  WriteFixed<double>(n, out, out_row, has, [&](uint32_t i) {
    const double sum = step == kUpdateAvgFloat                ? s.At<double>(i)
                       : step == kUpdateAvg                   ? static_cast<double>(s.At<int128_t>(i))
                       : s.accumulator.arguments[0].is_signed ? static_cast<double>(s.At<int64_t>(i))
                                                              : static_cast<double>(s.At<uint64_t>(i));
    return sum / static_cast<double>(count(i));
  });
}

void WriteExtremes(const GroupStates& s, uint32_t n, QuernOutColumn* out, uint64_t out_row) {
  const QuernAccumulator& a = s.accumulator;
  const auto has = [&](uint32_t i) { return s.HasSeen(i); };
  const uint64_t turned = blocks::TurnedBits(a.step, false);
  const Storage storage = a.arguments[0].storage;
  WriteBits(storage, n, out, out_row, has, [&](uint32_t i) {
    return blocks::BitsOfOrdered(s.At<uint64_t>(i) ^ turned, storage, a.arguments[0].is_signed);
  });
}

void WriteWide(const GroupStates& s, uint32_t n, QuernOutColumn* out, uint64_t out_row) {
  const Step step = s.accumulator.step;
  const bool picks = step == kUpdateFirstWide || step == kUpdateLastWide;
  const auto has = [&](uint32_t i) { return picks ? s.At<uint64_t>(i) != 0 : s.HasSeen(i); };
  WriteFixed<int128_t>(n, out, out_row, has, [&](uint32_t i) {
    if (picks) return s.At<int128_t>(i, 8);
    const uint128_t ordered = s.At<uint128_t>(i);
    if (step == kUpdateMinWide) return static_cast<int128_t>(blocks::OrderedWide(static_cast<int128_t>(~ordered)));
    if (step == kUpdateMaxWide) return static_cast<int128_t>(blocks::OrderedWide(static_cast<int128_t>(ordered)));
    return static_cast<int128_t>(ordered);
  });
}

void WriteBitStates(const GroupStates& s, uint32_t n, QuernOutColumn* out, uint64_t out_row) {
  const QuernAccumulator& a = s.accumulator;
  const bool picks = a.step == kUpdateFirst || a.step == kUpdateLast;
  const uint64_t turned = blocks::TurnedBits(a.step, a.negated);
  const auto has = [&](uint32_t i) { return picks ? s.At<uint64_t>(i) != 0 : s.HasSeen(i); };
  WriteBits(a.arguments[0].storage, n, out, out_row, has,
            [&](uint32_t i) { return s.At<uint64_t>(i, picks ? 8 : 0) ^ turned; });
}

void WriteFused(const AggregateSpec& aggregate, const GroupStates& s, uint32_t n, QuernOutColumn* out,
                uint64_t out_row) {
  const AggregateFunction function = aggregate.function;
  switch (s.accumulator.step) {
    case kUpdateRows:
      return WriteFixed<uint64_t>(
          n, out, out_row, [](uint32_t) { return true; }, [&](uint32_t i) { return s.At<uint64_t>(i); });
    case kUpdateSum:
    case kUpdateSumFloat:
      return WriteFixed<uint64_t>(
          n, out, out_row, [&](uint32_t i) { return s.HasSeen(i); }, [&](uint32_t i) { return s.At<uint64_t>(i); });
    case kUpdateAvgSmall:
    case kUpdateAvg:
    case kUpdateAvgFloat:
    case kUpdateAvgDecimal: return WriteAverages(aggregate, s, n, out, out_row);
    case kUpdateMin:
    case kUpdateMax: return WriteExtremes(s, n, out, out_row);
    case kUpdateSum128:
    case kUpdateSumDecimal:
    case kUpdateMinWide:
    case kUpdateMaxWide:
    case kUpdateAnyWide:
    case kUpdateFirstWide:
    case kUpdateLastWide: return WriteWide(s, n, out, out_row);
    case kUpdateAny:
    case kUpdateFirst:
    case kUpdateLast:
    case kUpdateBitAnd:
    case kUpdateBitOr:
    case kUpdateBitXor: return WriteBitStates(s, n, out, out_row);
    case kUpdateMoments: return WriteMoments(function, s, n, out, out_row);
    case kUpdateComoments: return WriteComoments(function, s, n, out, out_row);
    case kUpdateCorrelation: return WriteCorrelations(s, n, out, out_row);
    case kUpdateOutOfLine: return;
  }
}

std::string TextOf(const AggregateSpec& aggregate) {
  std::string text(RowOf(aggregate.function).text);
  for (size_t i = 0; i < aggregate.arguments.size(); ++i)
    text += (i == 0 ? "(" : ",") + PrintType(aggregate.arguments[i]);
  return aggregate.arguments.empty() ? text : text + ")";
}

template <class Out>
void StatesOf(const QuernAccumulator& a, uint8_t* const* tuples, uint32_t n, Out* states) {
  for (uint32_t i = 0; i < n; ++i) states[i] = tuples[i] + a.state_offset;
}

// Makes the states of an aggregate what they are before the first value, unless adding them once more changes nothing.
void ClearState(const QuernAccumulator& a, uint8_t* const* tuples, uint32_t n) {
  if (a.step == kUpdateAny || a.step == kUpdateAnyWide) return;  // those that cannot be null have no bit for "no value"
  for (uint32_t i = 0; i < n; ++i) {
    std::memset(tuples[i] + a.state_offset, 0, a.state_bytes);
    if (a.seen_mask != 0) tuples[i][a.seen_offset] = static_cast<uint8_t>(tuples[i][a.seen_offset] & ~a.seen_mask);
  }
}

absl::Status ReserveStates(uint64_t num_bytes, QuernOutColumn* out) {
  if (out->num_bytes + num_bytes <= out->bytes_capacity || quern_rt_reserve_bytes(out, num_bytes) == 0)
    return absl::OkStatus();
  return absl::ResourceExhaustedError("memory limit exceeded: saved states; accepted: a higher memory limit");
}

absl::Status WriteSaved(const std::string& saved, QuernOutColumn* out, uint64_t out_row) {
  QUERN_RETURN_IF_ERROR(ReserveStates(saved.size(), out));
  const auto* const bytes = reinterpret_cast<const uint8_t*>(saved.data());
  blocks::WriteString<kVar32>({bytes, static_cast<uint32_t>(saved.size())}, out, out_row);
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> WriteCalledStates(const OutOfLineAggregate& called, const QuernAccumulator& a,
                                           uint8_t* const* tuples, uint32_t n, QuernOutColumn* out, uint64_t out_row) {
  std::string saved;
  for (uint32_t i = 0; i < n; ++i) {
    saved.clear();
    called.Save(tuples[i] + a.state_offset, &saved);
    if (out->num_bytes + saved.size() > INT32_MAX) return i;
    QUERN_RETURN_IF_ERROR(WriteSaved(saved, out, out_row + i));
  }
  return n;
}

absl::Status DamagedState(const AggregateDescriptor& descriptor, size_t aggregate, uint64_t num_bytes) {
  return InvalidArgument("saved state of " + TextOf(descriptor.spec().aggregates[aggregate]) + " is damaged: " +
                         std::to_string(num_bytes) + " bytes; accepted: bytes that this version wrote");
}

}  // namespace

absl::Status SumOutOfRange(const AggregateSpec& aggregate) {
  const bool is_decimal = !aggregate.arguments.empty() && IsDecimal(aggregate.arguments[0].id);
  return absl::OutOfRangeError("sum out of range: " + TextOf(aggregate) + "; accepted: sums within " +
                               (is_decimal ? "128 bits" : "64 bits, or sum128"));
}

absl::Status MergeState(const AggregateDescriptor& descriptor, size_t aggregate, uint8_t* const* into,
                        uint8_t* const* from, uint32_t n, AccumulatorMemory* memory) {
  const QuernAccumulator& a = AccumulatorOf(descriptor, aggregate);
  if (a.step != kUpdateOutOfLine) {
    uint8_t overflowed = 0;
    MergeFused(a, into, from, n, &overflowed);
    return overflowed != 0 ? SumOutOfRange(descriptor.spec().aggregates[aggregate]) : absl::OkStatus();
  }
  uint8_t *into_states[kMaxBatchRows], *from_states[kMaxBatchRows];
  StatesOf(a, into, n, into_states);
  StatesOf(a, from, n, from_states);
  return descriptor.called(aggregate)->Merge(into_states, from_states, n, memory);
}

absl::Status MergeStates(const AggregateDescriptor& descriptor, uint8_t* const* into, uint8_t* const* from, uint32_t n,
                         AccumulatorMemory* memory) {
  for (size_t a = 0; a < descriptor.spec().aggregates.size(); ++a) {
    const absl::Status status = WithoutBadAlloc([&] { return MergeState(descriptor, a, into, from, n, memory); });
    if (status.ok()) continue;
    for (size_t merged = 0; merged < a; ++merged) ClearState(AccumulatorOf(descriptor, merged), from, n);
    return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> WriteResults(const AggregateDescriptor& descriptor, size_t aggregate, uint8_t* const* tuples,
                                      uint32_t n, QuernOutColumn* out, uint64_t out_row, void* host) {
  const QuernAccumulator& a = AccumulatorOf(descriptor, aggregate);
  if (a.step != kUpdateOutOfLine) {
    WriteFused(descriptor.spec().aggregates[aggregate], {a, tuples}, n, out, out_row);
    return n;
  }
  const uint8_t* states[kMaxBatchRows];
  StatesOf(a, tuples, n, states);
  return descriptor.called(aggregate)->Finalise(states, n, out, out_row, host);
}

void SaveState(const AggregateDescriptor& descriptor, size_t aggregate, const uint8_t* tuple, std::string* bytes) {
  const QuernAccumulator& a = AccumulatorOf(descriptor, aggregate);
  const uint8_t* state = tuple + a.state_offset;
  if (a.step == kUpdateOutOfLine) return descriptor.called(aggregate)->Save(state, bytes);
  bytes->append(reinterpret_cast<const char*>(state), a.state_bytes);
  bytes->push_back(HasSeen(a, tuple) ? 1 : 0);
}

absl::StatusOr<uint32_t> WriteStates(const AggregateDescriptor& descriptor, size_t aggregate, uint8_t* const* tuples,
                                     uint32_t n, QuernOutColumn* out, uint64_t out_row) {
  const QuernAccumulator& a = AccumulatorOf(descriptor, aggregate);
  if (a.step == kUpdateOutOfLine) return WriteCalledStates(*descriptor.called(aggregate), a, tuples, n, out, out_row);
  const uint32_t bytes = a.state_bytes + 1;
  const auto fit = static_cast<uint32_t>(std::min<uint64_t>(n, (INT32_MAX - out->num_bytes) / bytes));
  QUERN_RETURN_IF_ERROR(ReserveStates(uint64_t{fit} * bytes, out));
  uint8_t* to = out->bytes + out->num_bytes;
  auto* const ends = static_cast<int32_t*>(out->offsets) + out_row + 1;
  for (uint32_t i = 0; i < fit; ++i, to += bytes) {
    std::memcpy(to, tuples[i] + a.state_offset, a.state_bytes);
    to[a.state_bytes] = HasSeen(a, tuples[i]) ? 1 : 0;
    out->num_bytes += bytes;
    ends[i] = static_cast<int32_t>(out->num_bytes);
  }
  return fit;
}

absl::Status WritePartOfState(const AggregateDescriptor& descriptor, size_t aggregate, const uint8_t* tuple,
                              uint64_t most_bytes, uint64_t* next, QuernOutColumn* out, uint64_t out_row) {
  const QuernAccumulator& a = AccumulatorOf(descriptor, aggregate);
  std::string saved;
  if (*next == UINT64_MAX) {
    SaveNoValues(descriptor, aggregate, &saved);
  } else if (!descriptor.called(aggregate)->SavePart(tuple + a.state_offset, next, most_bytes, &saved)) {
    *next = UINT64_MAX;
  }
  return WriteSaved(saved, out, out_row);
}

void SaveNoValues(const AggregateDescriptor& descriptor, size_t aggregate, std::string* bytes) {
  const std::vector<uint64_t> state(AccumulatorOf(descriptor, aggregate).state_bytes / sizeof(uint64_t));
  descriptor.called(aggregate)->Save(reinterpret_cast<const uint8_t*>(state.data()), bytes);
}

void ClearStates(const AggregateDescriptor& descriptor, uint8_t* tuple) {
  for (size_t a = 0; a < descriptor.spec().aggregates.size(); ++a) ClearState(AccumulatorOf(descriptor, a), &tuple, 1);
}

// States are laid into tuples of their own, as far as their fields are read. The seen bit may lie before or behind the
// state.
absl::Status MergeSavedStates(const AggregateDescriptor& descriptor, size_t aggregate, const std::string_view* saved,
                              uint8_t* const* tuples, uint32_t n, std::vector<uint8_t>* scratch) {
  const QuernAccumulator& a = AccumulatorOf(descriptor, aggregate);
  const uint32_t tuple_bytes = descriptor.get()->group.tuple_bytes;
  uint8_t* from[kSavedRows];
  scratch->resize(kSavedRows * uint64_t{tuple_bytes});
  for (uint32_t i = 0; i < kSavedRows; ++i) from[i] = scratch->data() + uint64_t{i} * tuple_bytes;
  for (uint32_t done = 0, some = 0; done < n; done += some) {
    some = std::min(kSavedRows, n - done);
    for (uint32_t i = 0; i < some; ++i) {
      const std::string_view bytes = saved[done + i];
      if (bytes.size() != a.state_bytes + 1u || static_cast<uint8_t>(bytes.back()) > 1)
        return DamagedState(descriptor, aggregate, bytes.size());
      if (a.seen_mask != 0) from[i][a.seen_offset] = bytes.back() != 0 ? a.seen_mask : uint8_t{0};
      std::memcpy(from[i] + a.state_offset, bytes.data(), a.state_bytes);
    }
    uint8_t overflowed = 0;
    MergeFused(a, tuples + done, from, some, &overflowed);
    if (overflowed != 0) return SumOutOfRange(descriptor.spec().aggregates[aggregate]);
  }
  return absl::OkStatus();
}

absl::Status MergeSavedState(const AggregateDescriptor& descriptor, size_t aggregate, std::string_view bytes,
                             uint8_t* tuple, AccumulatorMemory* memory) {
  const QuernAccumulator& a = AccumulatorOf(descriptor, aggregate);
  if (a.step == kUpdateOutOfLine)
    return descriptor.called(aggregate)->MergeSaved(tuple + a.state_offset, bytes, memory);
  std::vector<uint8_t> scratch;
  return MergeSavedStates(descriptor, aggregate, &bytes, &tuple, 1, &scratch);
}

}  // namespace quern
