// SPDX-License-Identifier: Apache-2.0
// Functions of strings in lanes: which rows they are computed for, and what becomes of those without a result. The rows
// themselves are string_functions.h's.
#ifndef QUERN_RUNTIME_BLOCKS_STRING_LANES_H_
#define QUERN_RUNTIME_BLOCKS_STRING_LANES_H_

#include "runtime/blocks/lanes.h"
#include "runtime/blocks/string_functions.h"

namespace quern::blocks {

// quern_rt_concat and those beside it.
typedef uint8_t StringFunction(const QuernLanes* a, const QuernLanes* b, const QuernLanes* c, uint8_t rows,
                               uint64_t low, uint64_t high, QuernLanes* out);

// The rows of `out` are those that have a value and have not failed: no other lane has an address to read from.
QUERN_INLINE void CallStrings(const LaneCall& call, StringFunction* function, const QuernLanes& a) {
  const auto rows = static_cast<uint8_t>(call.out->valid & ~call.out->failed);
  Refuse(call, function(&a, &call.b, &call.c, rows, call.p.low, call.p.high, call.out));
}

#define QUERN_STRING_LANES_1(name, function)         \
  QUERN_INLINE void name(const LaneCall& call) {     \
    Pass(call, call.a);                              \
    CallStrings(call, &quern_rt_##function, call.a); \
  }
#define QUERN_STRING_LANES_2(name, function)         \
  QUERN_INLINE void name(const LaneCall& call) {     \
    Pass(call, call.a, call.b);                      \
    CallStrings(call, &quern_rt_##function, call.a); \
  }
#define QUERN_STRING_LANES_3(name, function)                                   \
  QUERN_INLINE void name(const LaneCall& call) {                               \
    Pass(call, call.a, call.b);                                                \
    call.out->valid = static_cast<uint8_t>(call.out->valid & call.c.valid);    \
    call.out->failed = static_cast<uint8_t>(call.out->failed | call.c.failed); \
    CallStrings(call, &quern_rt_##function, call.a);                           \
  }
QUERN_STRING_LANES_2(StringEqual, string_equal)
QUERN_STRING_LANES_2(StringLess, string_less)
QUERN_STRING_LANES_2(StringLike, string_like)
QUERN_STRING_LANES_1(CharLength, char_length)
QUERN_STRING_LANES_3(Substring, substring)
QUERN_STRING_LANES_2(Concat, concat)
QUERN_STRING_LANES_1(AsciiLower, ascii_lower)
QUERN_STRING_LANES_1(AsciiUpper, ascii_upper)
QUERN_STRING_LANES_1(Trim, trim)
QUERN_STRING_LANES_3(Replace, replace)
QUERN_STRING_LANES_1(IntegerToString, integer_to_string)
QUERN_STRING_LANES_1(FloatToString, float_to_string)
QUERN_STRING_LANES_1(TruthToString, truth_to_string)
QUERN_STRING_LANES_1(DateToString, date_to_string)
QUERN_STRING_LANES_1(StringToInteger, string_to_integer)
QUERN_STRING_LANES_1(StringToTruth, string_to_truth)
QUERN_STRING_LANES_1(StringToFloat, string_to_float)
QUERN_STRING_LANES_1(StringToDate, string_to_date)
#undef QUERN_STRING_LANES_1
#undef QUERN_STRING_LANES_2
#undef QUERN_STRING_LANES_3

QUERN_INLINE void OctetLength(const LaneCall& call) {
  Pass(call, call.a);
  call.out->low = call.a.high;
}

// Decimals of 64 bits have no upper halves yet.
template <bool kWide>
QUERN_INLINE void DecimalToString(const LaneCall& call) {
  Pass(call, call.a);
  QuernLanes wide = call.a;
  if constexpr (!kWide) wide.high = (U64x8)((I64x8)wide.low >> 63);
  CallStrings(call, &quern_rt_decimal_to_string, wide);
}

template <bool kWide>
QUERN_INLINE void StringToDecimal(const LaneCall& call) {
  Pass(call, call.a);
  call.out->low = call.out->high = U64x8{};
  CallStrings(call, &quern_rt_string_to_decimal, call.a);
  const I64x8 is_wide = (I64x8)(call.out->high != (U64x8)((I64x8)call.out->low >> 63));
  if constexpr (!kWide) *call.escaped = static_cast<uint8_t>(*call.escaped | (LaneBits(is_wide) & call.out->valid));
}

}  // namespace quern::blocks

#endif  // QUERN_RUNTIME_BLOCKS_STRING_LANES_H_
