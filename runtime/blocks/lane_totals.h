// SPDX-License-Identifier: Apache-2.0
// Blocks of aggregations that add up adjacent rows eight at a time (aggregate_abi.h, QuernLaneArgs). Each group has a
// *total* of eight lanes for each sum. A mask says which of the eight rows are the group's. At the end of the rows the
// lanes of a total become one number, which the group's state takes:
//
//     value of rows      3  1  4  1  5  9  2  6
//     group              A  A  B  A  B  A  A  -
//     total of A       + 3  1  .  1  .  9  2  .      the next eight rows are added to these lanes, and so on;
//     total of B       + .  .  4  .  5  .  .  .      then A's state takes the sum of its lanes
//
// Integers and decimals may be added in any order as long as nothing overflows on the way. How far values reach is
// known at the end; where they reach too far, the states take no total, and the rows are added one by one. Sums of
// floats depend on the order of their rows, and so lanes do not add them.
#ifndef QUERN_RUNTIME_BLOCKS_LANE_TOTALS_H_
#define QUERN_RUNTIME_BLOCKS_LANE_TOTALS_H_

#include "runtime/blocks/accumulators.h"
#include "runtime/blocks/lane_steps.h"
#include "runtime/blocks/lanes.h"

namespace quern::blocks {

// Values from -2^50 to 2^50 - 1, or unsigned ones below 2^50: sums of kMaxBatchRows of them fit 63 bits.
constexpr uint32_t kTotalBits = 50;
static_assert(kMaxBatchRows <= 1 << (63 - kTotalBits - 1));
// A state that is smaller than 2^62, or 2^126, in size takes any such sum without overflow.
constexpr uint32_t kStateBits = 62;

// ---- eight rows; bits: one a row ----

// Rows at, at + 1, ..; those before `begin` have been added.
QUERN_INLINE uint8_t RowsToAdd(uint32_t at, uint32_t begin) { return static_cast<uint8_t>(255u << (begin - at)); }

QUERN_INLINE uint8_t RowsOfGroup(const uint8_t* numbers, uint8_t group) {
  typedef uint8_t U8x8 __attribute__((vector_size(8)));
  typedef bool Bits __attribute__((ext_vector_type(8)));
  return __builtin_bit_cast(uint8_t, __builtin_convertvector(Load<U8x8>(numbers) == group, Bits));
}

// Has bits above kTotalBits where a value is not one of those.
QUERN_INLINE U64x8 ReachOf(const QuernLanes& x, bool is_signed) {
  const U64x8 shifted = x.low + (uint64_t{1} << kTotalBits);
  return is_signed ? shifted : shifted | x.low;
}

// Values as unsigned numbers of the same order (ReadOrdered); decimals: of 64 bits.
template <Storage kStorage>
QUERN_INLINE U64x8 OrderedLanes(const QuernLanes& x, bool is_signed) {
  if constexpr (kStorage == kF64) {
    const U64x8 negative = (U64x8)((I64x8)x.low >> 63);
    return (x.low ^ (negative | uint64_t{1} << 63)) - kOrderedNegativeInfinity;
  } else if constexpr (kStorage == kF32) {
    typedef uint32_t U32x8 __attribute__((vector_size(32)));
    typedef int32_t I32x8 __attribute__((vector_size(32)));
    const U32x8 b = (U32x8) __builtin_convertvector(AsFloats(x.low), F32x8);
    const U32x8 negative = (U32x8)((I32x8)b >> 31);
    return __builtin_convertvector((b ^ (negative | 0x80000000u)) - 0x007fffffu, U64x8);
  } else if constexpr (kStorage == kBit) {
    return LanesOf(x.truth) & 1;
  } else {
    return x.low ^ (is_signed ? uint64_t{1} << 63 : 0);
  }
}

// The bits of values as they lie in a column (ReadBits).
template <Storage kStorage>
QUERN_INLINE U64x8 BitLanes(const QuernLanes& x) {
  if constexpr (kStorage == kBit) return LanesOf(x.truth) & 1;
  else if constexpr (kStorage == k8) return x.low & 0xff;
  else if constexpr (kStorage == k16) return x.low & 0xffff;
  else if constexpr (kStorage == k32) return x.low & 0xffffffff;
  else return x.low;
}

// ---- from lanes to the state ----

QUERN_INLINE bool IsWithin(uint64_t value, bool is_signed, uint32_t bits) {
  const uint64_t sign = is_signed ? static_cast<uint64_t>(static_cast<int64_t>(value) >> 63) : 0;
  return ((value ^ sign) >> bits) == 0;
}

// reach: of all values, combined by or.
QUERN_INLINE bool IsWithinReach(const U64x8& reach) { return __builtin_reduce_or(reach) >> (kTotalBits + 1) == 0; }

// Whether the state may take a sum of such values: adding row by row would not overflow.
template <Step kStep>
QUERN_INLINE bool StateFits(const uint8_t* state, bool is_signed) {
  if constexpr (kStep == kUpdateSum) return IsWithin(Load<uint64_t>(state), is_signed, kStateBits);
  if constexpr (kStep == kUpdateSumDecimal || kStep == kUpdateAvgDecimal)
    return IsWithin(Load<uint64_t>(state + 8), true, kStateBits);
  return true;
}

// Adds a total to the state. num_taking: how many rows took part; 0 changes nothing.
template <Step kStep>
QUERN_INLINE void TakeTotal(const U64x8& total, uint64_t num_taking, bool is_signed, uint8_t* state) {
  if constexpr (kStep == kUpdateRows) AddTo<uint64_t>(state, num_taking);
  if constexpr (IsLaneSum(kStep)) {
    const uint64_t sum = __builtin_reduce_add(total);
    if constexpr (kStep == kUpdateSum || kStep == kUpdateAvgSmall) AddTo<uint64_t>(state, sum);
    else
      AddTo<int128_t>(state, Widened(static_cast<int64_t>(sum),
                                     is_signed || kStep == kUpdateSumDecimal || kStep == kUpdateAvgDecimal));
  }
  if constexpr (kStep == kUpdateAvgSmall) AddTo<uint64_t>(state + 8, num_taking);
  if constexpr (kStep == kUpdateAvg || kStep == kUpdateAvgDecimal) AddTo<uint64_t>(state + 16, num_taking);
  if constexpr (kStep == kUpdateMin || kStep == kUpdateMax) UpdateExtreme(__builtin_reduce_max(total), state);
  if constexpr (kStep == kUpdateMinWide || kStep == kUpdateMaxWide) {
    if (num_taking == 0) return;
    const uint64_t turned = kStep == kUpdateMinWide ? ~uint64_t{0} : 0;
    const uint64_t ordered = __builtin_reduce_max(total) ^ turned;
    const uint128_t wide = OrderedWide(static_cast<int64_t>(ordered ^ uint64_t{1} << 63));
    UpdateExtremeWide(kStep == kUpdateMinWide ? ~wide : wide, state);
  }
  if constexpr (kStep == kUpdateBitAnd || kStep == kUpdateBitOr) UpdateBitOr(__builtin_reduce_or(total), state);
  if constexpr (kStep == kUpdateBitXor) UpdateBitXor(__builtin_reduce_xor(total), state);
}

}  // namespace quern::blocks

#endif  // QUERN_RUNTIME_BLOCKS_LANE_TOTALS_H_
