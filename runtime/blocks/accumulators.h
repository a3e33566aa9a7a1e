// SPDX-License-Identifier: Apache-2.0
// Accumulator blocks: functions that read an argument in the form that an update function expects, and the update
// functions themselves (update_functions.def). As with all blocks, a compiled kernel calls them with constants and
// inlines them, and the generic kernel calls the same ones in loops of its own.
//
// The update functions of sums, counts and extremes have a parameter `one`, which says whether the row takes part: 0
// adds nothing to any of them, since every state is 0 for no rows, so that a null costs no unpredictable branch. The
// other update functions are called only for rows that take part.
#ifndef QUERN_RUNTIME_BLOCKS_ACCUMULATORS_H_
#define QUERN_RUNTIME_BLOCKS_ACCUMULATORS_H_

#include "runtime/abi/aggregate_abi.h"
#include "runtime/blocks/blocks.h"

namespace quern::blocks {

using int128_t = __int128;

// ---- reading ----

template <Storage kStorage>
QUERN_INLINE int64_t ReadInteger(const QuernColumn* column, uint32_t row, bool is_signed) {
  const auto v = ReaderOf<kStorage>::Read(column, row);
  if constexpr (kStorage == k8) return is_signed ? int64_t{static_cast<int8_t>(v)} : int64_t{v};
  else if constexpr (kStorage == k16) return is_signed ? int64_t{static_cast<int16_t>(v)} : int64_t{v};
  else if constexpr (kStorage == k32) return is_signed ? int64_t{static_cast<int32_t>(v)} : int64_t{v};
  else return static_cast<int64_t>(v);
}

// A value as f64; floats are read unchanged.
template <Storage kStorage>
QUERN_INLINE double ReadNumber(const QuernColumn* column, uint32_t row, bool is_signed) {
  if constexpr (kStorage == kF32) return static_cast<double>(LoadAt<float>(column->values, row));
  else if constexpr (kStorage == kF64) return LoadAt<double>(column->values, row);
  else {
    const int64_t v = ReadInteger<kStorage>(column, row, is_signed);
    return is_signed ? static_cast<double>(v) : static_cast<double>(static_cast<uint64_t>(v));
  }
}

// A value as an unsigned number of the same order, in which every NaN is greater than all numbers. For floats, all bits
// of negative values are inverted, and the sign bit of the others. NaNs with a sign bit are then below -inf, from 0 on;
// counted from -inf they wrap around and come last. No comparison, no branch.
constexpr uint64_t kOrderedNegativeInfinity = 0x000fffffffffffffu;  // -inf as an f64, before values are counted from it

QUERN_INLINE uint64_t OrderedBits(uint64_t bits, Storage storage) {
  if (storage == kF32) {
    const uint32_t b = static_cast<uint32_t>(bits);
    const uint32_t negative = static_cast<uint32_t>(static_cast<int32_t>(b) >> 31);
    return static_cast<uint32_t>((b ^ (negative | 0x80000000u)) - 0x007fffffu);
  }
  const uint64_t negative = static_cast<uint64_t>(static_cast<int64_t>(bits) >> 63);
  return (bits ^ (negative | uint64_t{1} << 63)) - kOrderedNegativeInfinity;
}

template <Storage kStorage>
QUERN_INLINE uint64_t ReadOrdered(const QuernColumn* column, uint32_t row, bool is_signed) {
  if constexpr (kStorage == kF32) return OrderedBits(LoadAt<uint32_t>(column->values, row), kF32);
  else if constexpr (kStorage == kF64) return OrderedBits(LoadAt<uint64_t>(column->values, row), kF64);
  else
    return static_cast<uint64_t>(ReadInteger<kStorage>(column, row, is_signed)) ^ (is_signed ? uint64_t{1} << 63 : 0);
}

// The value's bits as they lie in the column.
template <Storage kStorage>
QUERN_INLINE uint64_t ReadBits(const QuernColumn* column, uint32_t row) {
  if constexpr (kStorage == kF32) return LoadAt<uint32_t>(column->values, row);
  else if constexpr (kStorage == kF64) return LoadAt<uint64_t>(column->values, row);
  else return static_cast<uint64_t>(ReaderOf<kStorage>::Read(column, row));
}

// The inverse of ReadOrdered: the bits of a column. All NaNs become one.
QUERN_INLINE uint64_t BitsOfOrdered(uint64_t ordered, Storage storage, bool is_signed) {
  if (storage == kF32) {
    const uint32_t turned = static_cast<uint32_t>(ordered) + 0x007fffffu;
    const uint32_t bits = turned ^ ((turned >> 31) != 0 ? 0x80000000u : 0xffffffffu);
    return (bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc00000u : bits;
  }
  if (storage == kF64) {
    const uint64_t turned = ordered + kOrderedNegativeInfinity;
    const uint64_t bits = turned ^ ((turned >> 63) != 0 ? uint64_t{1} << 63 : ~uint64_t{0});
    return (bits & ~(uint64_t{1} << 63)) > 0x7ff0000000000000u ? 0x7ff8000000000000u : bits;
  }
  return ordered ^ (is_signed ? uint64_t{1} << 63 : 0);
}

// ---- update functions of 64-bit states ----

template <class T>
QUERN_INLINE void AddTo(uint8_t* state, T value) {
  Store(state, static_cast<T>(Load<T>(state) + value));
}

QUERN_INLINE void StepRows(uint8_t* state, uint64_t one) { AddTo<uint64_t>(state, one); }

QUERN_INLINE void UpdateSum(int64_t v, uint8_t* state, bool is_signed, uint8_t* overflowed) {
  const int64_t before = Load<int64_t>(state);
  int64_t signed_sum = 0;
  uint64_t unsigned_sum = 0;
  const bool does_not_fit =
      is_signed ? __builtin_add_overflow(before, v, &signed_sum)
                : __builtin_add_overflow(static_cast<uint64_t>(before), static_cast<uint64_t>(v), &unsigned_sum);
  if (__builtin_expect(does_not_fit, 0)) *overflowed = 1;
  Store(state, is_signed ? static_cast<uint64_t>(signed_sum) : unsigned_sum);
}

QUERN_INLINE int128_t Widened(int64_t v, bool is_signed) {
  return is_signed ? int128_t{v} : static_cast<int128_t>(static_cast<uint64_t>(v));
}

QUERN_INLINE void StepSum128(int64_t v, uint8_t* state, bool is_signed) {
  AddTo<int128_t>(state, Widened(v, is_signed));
}
QUERN_INLINE void UpdateSumFloat(double v, uint8_t* state) { AddTo<double>(state, v); }

QUERN_INLINE void StepAvgSmall(int64_t v, uint8_t* state, uint64_t one) {
  AddTo<uint64_t>(state, static_cast<uint64_t>(v));
  AddTo<uint64_t>(state + 8, one);
}

QUERN_INLINE void StepAvg(int64_t v, uint8_t* state, bool is_signed, uint64_t one) {
  AddTo<int128_t>(state, Widened(v, is_signed));
  AddTo<uint64_t>(state + 16, one);
}

QUERN_INLINE void StepAvgFloat(double v, uint8_t* state, uint64_t one) {
  AddTo<double>(state, v);
  AddTo<uint64_t>(state + 8, one);
}

// ordered: the value of ReadOrdered, or for a minimum its complement; 0 for a row that does not take part.
QUERN_INLINE void UpdateExtreme(uint64_t ordered, uint8_t* state) {
  const uint64_t before = Load<uint64_t>(state);
  Store(state, before < ordered ? ordered : before);
}

QUERN_INLINE void StepAny(uint64_t bits, uint8_t* state) { Store(state, bits); }

// order: ~row_id for the first, row_id + 1 for the last; never 0.
QUERN_INLINE void UpdatePick(uint64_t bits, uint64_t order, uint8_t* state) {
  if (order <= Load<uint64_t>(state)) return;
  Store(state, order);
  Store(state + 8, bits);
}

QUERN_INLINE void UpdateBitOr(uint64_t bits, uint8_t* state) { Store(state, Load<uint64_t>(state) | bits); }
QUERN_INLINE void UpdateBitXor(uint64_t bits, uint8_t* state) { Store(state, Load<uint64_t>(state) ^ bits); }

// ---- update functions of 128-bit values ----

QUERN_INLINE void UpdateSumWide(int128_t v, uint8_t* state, uint8_t* overflowed) {
  int128_t sum = 0;
  if (__builtin_add_overflow(Load<int128_t>(state), v, &sum)) *overflowed = 1;
  Store(state, sum);
}

QUERN_INLINE uint128_t OrderedWide(int128_t v) {
  return static_cast<uint128_t>(v) ^ uint128_t { 1 } << 127;
}

QUERN_INLINE void UpdateExtremeWide(uint128_t ordered, uint8_t* state) {
  if (Load<uint128_t>(state) < ordered) Store(state, ordered);
}

QUERN_INLINE void UpdatePickWide(int128_t v, uint64_t order, uint8_t* state) {
  if (order <= Load<uint64_t>(state)) return;
  Store(state, order);
  Store(state + 8, v);
}

// Updates a state with a value of 128 bits.
template <Step kStep>
QUERN_INLINE void StepWide(const QuernColumn* column, uint32_t row, uint8_t* state, uint64_t row_id,
                           uint8_t* overflowed) {
  const int128_t v = static_cast<int128_t>(WideReader::Read(column, row));
  if constexpr (kStep == kUpdateSumDecimal) UpdateSumWide(v, state, overflowed);
  if constexpr (kStep == kUpdateAvgDecimal) {
    UpdateSumWide(v, state, overflowed);
    AddTo<uint64_t>(state + 16, 1);
  }
  if constexpr (kStep == kUpdateMinWide) UpdateExtremeWide(~OrderedWide(v), state);
  if constexpr (kStep == kUpdateMaxWide) UpdateExtremeWide(OrderedWide(v), state);
  if constexpr (kStep == kUpdateAnyWide) Store(state, v);
  if constexpr (kStep == kUpdateFirstWide) UpdatePickWide(v, ~row_id, state);
  if constexpr (kStep == kUpdateLastWide) UpdatePickWide(v, row_id + 1, state);
}

// ---- moments (Welford 1962; pairwise merges: Chan, Golub, LeVeque 1983) ----

struct Moments {
  double count, mean, squares;
};
struct Comoments {
  double count, mean_x, mean_y, products;
};
struct Correlation {
  double count, mean_x, mean_y, products, squares_x, squares_y;
};

QUERN_INLINE void UpdateMoments(double v, uint8_t* state) {
  Moments m = Load<Moments>(state);
  m.count += 1;
  const double distance = v - m.mean;
  m.mean += distance / m.count;
  m.squares += distance * (v - m.mean);
  Store(state, m);
}

QUERN_INLINE void UpdateComoments(double x, double y, uint8_t* state) {
  Comoments m = Load<Comoments>(state);
  m.count += 1;
  const double distance_x = x - m.mean_x;
  m.mean_x += distance_x / m.count;
  m.mean_y += (y - m.mean_y) / m.count;
  m.products += distance_x * (y - m.mean_y);
  Store(state, m);
}

QUERN_INLINE void UpdateCorrelation(double x, double y, uint8_t* state) {
  Correlation m = Load<Correlation>(state);
  m.count += 1;
  const double distance_x = x - m.mean_x, distance_y = y - m.mean_y;
  m.mean_x += distance_x / m.count;
  m.mean_y += distance_y / m.count;
  m.products += distance_x * (y - m.mean_y);
  m.squares_x += distance_x * (x - m.mean_x);
  m.squares_y += distance_y * (y - m.mean_y);
  Store(state, m);
}

// ---- dispatch by update function ----

// Whether a row that does not take part can be passed to the update function, as a value of 0 with `one` = 0.
constexpr bool IsMasked(Step step) {
  switch (step) {
    case kUpdateRows:
    case kUpdateSum:
    case kUpdateSum128:
    case kUpdateSumFloat:
    case kUpdateAvgSmall:
    case kUpdateAvg:
    case kUpdateAvgFloat:
    case kUpdateMin:
    case kUpdateMax:
    case kUpdateBitAnd:
    case kUpdateBitOr:
    case kUpdateBitXor: return true;
    case kUpdateSumDecimal:
    case kUpdateAvgDecimal:
    case kUpdateMinWide:
    case kUpdateMaxWide:
    case kUpdateAny:
    case kUpdateAnyWide:
    case kUpdateFirst:
    case kUpdateLast:
    case kUpdateFirstWide:
    case kUpdateLastWide:
    case kUpdateMoments:
    case kUpdateComoments:
    case kUpdateCorrelation:
    case kUpdateOutOfLine: return false;
  }
  return false;
}

// Whether an accumulator counts rows whatever they hold, so that it takes those of a run in one step.
inline bool CountsAllRows(const QuernAccumulator& a) {
  bool reads_row = a.filtered;
  for (uint32_t i = 0; i < a.num_arguments; ++i) reads_row |= a.arguments[i].nullable;
  return a.step == kUpdateRows && !reads_row;
}

// The bits that are xor-ed to a value before its update function: a minimum is the complement of a maximum of
// complements, and bool_and is the complement of bool_or of complements.
constexpr uint64_t TurnedBits(Step step, bool negated) {
  return step == kUpdateMin || step == kUpdateBitAnd ? ~uint64_t{0} : negated ? 1 : 0;
}

// value: 64 bits in the form that the update function reads (a number as the bits of an f64), with the bits above
// xor-ed.
template <Step kStep>
QUERN_INLINE void Step64(uint64_t value, uint8_t* state, uint64_t one, bool is_signed, uint64_t row_id,
                         uint8_t* overflowed) {
  const int64_t integer = static_cast<int64_t>(value);
  if constexpr (kStep == kUpdateRows) StepRows(state, one);
  if constexpr (kStep == kUpdateSum) UpdateSum(integer, state, is_signed, overflowed);
  if constexpr (kStep == kUpdateSum128) StepSum128(integer, state, is_signed);
  if constexpr (kStep == kUpdateSumFloat) UpdateSumFloat(__builtin_bit_cast(double, value), state);
  if constexpr (kStep == kUpdateAvgSmall) StepAvgSmall(integer, state, one);
  if constexpr (kStep == kUpdateAvg) StepAvg(integer, state, is_signed, one);
  if constexpr (kStep == kUpdateAvgFloat) StepAvgFloat(__builtin_bit_cast(double, value), state, one);
  if constexpr (kStep == kUpdateMin || kStep == kUpdateMax) UpdateExtreme(value, state);
  if constexpr (kStep == kUpdateAny) StepAny(value, state);
  if constexpr (kStep == kUpdateFirst) UpdatePick(value, ~row_id, state);
  if constexpr (kStep == kUpdateLast) UpdatePick(value, row_id + 1, state);
  if constexpr (kStep == kUpdateBitAnd || kStep == kUpdateBitOr) UpdateBitOr(value, state);
  if constexpr (kStep == kUpdateBitXor) UpdateBitXor(value, state);
  if constexpr (kStep == kUpdateMoments) UpdateMoments(__builtin_bit_cast(double, value), state);
}

template <Step kStep>
QUERN_INLINE void StepTwo(uint64_t x, uint64_t y, uint8_t* state) {
  if constexpr (kStep == kUpdateComoments)
    UpdateComoments(__builtin_bit_cast(double, x), __builtin_bit_cast(double, y), state);
  else UpdateCorrelation(__builtin_bit_cast(double, x), __builtin_bit_cast(double, y), state);
}

}  // namespace quern::blocks

#endif  // QUERN_RUNTIME_BLOCKS_ACCUMULATORS_H_
