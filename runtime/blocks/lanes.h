// SPDX-License-Identifier: Apache-2.0
// Blocks of maps: functions of eight rows (map_abi.h). Compiled and generic kernels call the same ones, with the same
// constants, so that both agree to the bit.
//
//     valid     a row of the result has a value where all arguments have one
//     failed    a row of the result failed where an argument did, or where it has a value that the type has not
//
// Lanes without a value are computed like all others, from whatever they hold, and masked: nothing here traps.
// Arithmetic is written without branches, on vectors that LLVM splits as the machine needs; only divisions, 128-bit
// products and functions of the C library go lane by lane. kWide: whether decimals have 128 bits; if not, `escaped`
// gets the rows whose decimals do not fit 64.
#ifndef QUERN_RUNTIME_BLOCKS_LANES_H_
#define QUERN_RUNTIME_BLOCKS_LANES_H_

#include "runtime/abi/map_abi.h"
#include "runtime/blocks/blocks.h"
#include "runtime/blocks/filter_blocks.h"
#include "runtime/blocks/real_functions.h"

namespace quern::blocks {

static_assert(sizeof(QuernLanes::Words) == kLanes * sizeof(uint64_t));

typedef int64_t I64x8 __attribute__((vector_size(64)));
typedef double F64x8 __attribute__((vector_size(64)));
typedef float F32x8 __attribute__((vector_size(32)));
using int128_t = __int128;

QUERN_INLINE uint8_t LaneBits(I64x8 truth) { return static_cast<uint8_t>(MaskBits((U64x8)truth)); }

// Lanes of all ones where the bit is set.
QUERN_INLINE U64x8 LanesOf(uint8_t bits) {
  constexpr U64x8 kBits = {1, 2, 4, 8, 16, 32, 64, 128};
  const U64x8 all = U64x8{} + bits;
  return (U64x8)((all & kBits) != 0);
}

QUERN_INLINE F64x8 AsFloats(U64x8 v) { return (F64x8)v; }
QUERN_INLINE U64x8 AsWords(F64x8 v) { return (U64x8)v; }

// The arguments of a function, and its result.
struct LaneCall {
  const QuernLanes& a;
  const QuernLanes& b;
  const QuernLanes& c;
  QuernLanes* out;
  const QuernLaneParameters& p;
  uint8_t* escaped;
};

// The rows that have a value and those that have failed, of one argument and of two.
QUERN_INLINE void Pass(const LaneCall& call, const QuernLanes& a) {
  call.out->valid = a.valid;
  call.out->failed = a.failed;
}
QUERN_INLINE void Pass(const LaneCall& call, const QuernLanes& a, const QuernLanes& b) {
  call.out->valid = a.valid & b.valid;
  call.out->failed = a.failed | b.failed;
}

// Rows without a result, as `errors` says.
QUERN_INLINE void Refuse(const LaneCall& call, uint8_t rows) {
  if (call.p.errors == kErrorsFail)
    call.out->failed = static_cast<uint8_t>(call.out->failed | (rows & call.out->valid));
  if (call.p.errors == kErrorsAreNull) call.out->valid = static_cast<uint8_t>(call.out->valid & ~rows);
}

// ---- integers ----

// The lowest `bits` bits, extended as the type says.
QUERN_INLINE U64x8 Wrapped(U64x8 v, uint8_t bits, bool is_signed) {
  if (bits == 64) return v;
  const uint64_t shift = 64 - bits;
  v <<= shift;
  return is_signed ? (U64x8)((I64x8)v >> static_cast<int64_t>(shift)) : v >> shift;
}

// overflows: rows whose result is not right in 64 bits.
QUERN_INLINE void SetInteger(const LaneCall& call, U64x8 result, I64x8 overflows) {
  const U64x8 wrapped = Wrapped(result, call.p.bits, call.p.is_signed);
  if (call.p.errors != kErrorsIgnored) Refuse(call, LaneBits(overflows | (I64x8)(wrapped != result)));
  call.out->low = wrapped;
}

QUERN_INLINE void Add(const LaneCall& call) {
  Pass(call, call.a, call.b);
  const U64x8 x = call.a.low, y = call.b.low, sum = x + y;
  I64x8 overflows = {};
  if (call.p.bits == 64) overflows = call.p.is_signed ? (I64x8)((x ^ sum) & (y ^ sum)) < 0 : (I64x8)(sum < x);
  SetInteger(call, sum, overflows);
}

QUERN_INLINE void Subtract(const LaneCall& call) {
  Pass(call, call.a, call.b);
  const U64x8 x = call.a.low, y = call.b.low, difference = x - y;
  I64x8 overflows = {};
  if (call.p.bits == 64) overflows = call.p.is_signed ? (I64x8)((x ^ y) & (x ^ difference)) < 0 : (I64x8)(x < y);
  SetInteger(call, difference, overflows);
}

QUERN_INLINE void Multiply(const LaneCall& call) {
  Pass(call, call.a, call.b);
  U64x8 product = call.a.low * call.b.low;
  I64x8 overflows = {};
  if (call.p.bits == 64 && call.p.errors != kErrorsIgnored) {
    for (uint32_t i = 0; i < kLanes; ++i) {
      int64_t exact = 0;
      uint64_t exact_unsigned = 0;
      overflows[i] = call.p.is_signed ? -__builtin_mul_overflow(static_cast<int64_t>(call.a.low[i]),
                                                                static_cast<int64_t>(call.b.low[i]), &exact)
                                      : -__builtin_mul_overflow(call.a.low[i], call.b.low[i], &exact_unsigned);
    }
  }
  SetInteger(call, product, overflows);
}

// Quotients, and remainders with the sign of the dividend.
template <bool kQuotient>
QUERN_INLINE void DivideIntegers(const LaneCall& call) {
  Pass(call, call.a, call.b);
  const U64x8 x = call.a.low, y = call.b.low;
  I64x8 refused = (I64x8)(y == 0);
  const int64_t lowest = static_cast<int64_t>(~uint64_t{0} << (call.p.bits - 1));
  if (call.p.is_signed && kQuotient) refused |= ((I64x8)x == lowest) & ((I64x8)y == -1);
  U64x8 result = {};
  for (uint32_t i = 0; i < kLanes; ++i) {
    const uint64_t divisor = y[i] == 0 ? 1 : y[i];
    if (call.p.is_signed) {
      // The quotient by -1 is a difference, which does not trap.
      const auto n = static_cast<int64_t>(x[i]), d = static_cast<int64_t>(divisor);
      const int64_t safe = d == -1 ? 1 : d;
      const uint64_t by_minus_one = kQuotient ? 0 - x[i] : 0;
      result[i] = d == -1 ? by_minus_one : static_cast<uint64_t>(kQuotient ? n / safe : n % safe);
    } else {
      result[i] = kQuotient ? x[i] / divisor : x[i] % divisor;
    }
  }
  Refuse(call, LaneBits(refused));
  call.out->low = result;
}
QUERN_INLINE void Divide(const LaneCall& call) { DivideIntegers<true>(call); }
QUERN_INLINE void Modulo(const LaneCall& call) { DivideIntegers<false>(call); }

QUERN_INLINE void Negate(const LaneCall& call) {
  Pass(call, call.a);
  const U64x8 x = call.a.low;
  const I64x8 lowest = (I64x8)x == INT64_MIN, positive = (I64x8)(x != 0);
  SetInteger(call, 0 - x, call.p.is_signed ? lowest : positive);
}

QUERN_INLINE void Abs(const LaneCall& call) {
  Pass(call, call.a);
  const U64x8 x = call.a.low, negative = (U64x8)((I64x8)x < 0);
  if (!call.p.is_signed) return SetInteger(call, x, I64x8{});
  SetInteger(call, (x ^ negative) - negative, (I64x8)x == INT64_MIN);
}

QUERN_INLINE void BitAnd(const LaneCall& call) {
  Pass(call, call.a, call.b);
  call.out->low = call.a.low & call.b.low;
}
QUERN_INLINE void BitOr(const LaneCall& call) {
  Pass(call, call.a, call.b);
  call.out->low = call.a.low | call.b.low;
}
QUERN_INLINE void BitXor(const LaneCall& call) {
  Pass(call, call.a, call.b);
  call.out->low = call.a.low ^ call.b.low;
}
QUERN_INLINE void BitNot(const LaneCall& call) {
  Pass(call, call.a);
  call.out->low = Wrapped(~call.a.low, call.p.bits, call.p.is_signed);
}

// From 64 bits, signed or not, to any integer.
QUERN_INLINE void CastInteger(const LaneCall& call) {
  Pass(call, call.a);
  const I64x8 changes_sign = (I64x8)call.a.low < 0;
  SetInteger(call, call.a.low, call.p.is_signed != call.p.from_signed ? changes_sign : I64x8{});
}

// ---- floats ----

QUERN_INLINE void SetFloat(const LaneCall& call, F64x8 result) {
  if (call.p.bits == 32) result = __builtin_convertvector(__builtin_convertvector(result, F32x8), F64x8);
  call.out->low = AsWords(result);
}

QUERN_INLINE void FloatAdd(const LaneCall& call) {
  Pass(call, call.a, call.b);
  SetFloat(call, AsFloats(call.a.low) + AsFloats(call.b.low));
}
QUERN_INLINE void FloatSubtract(const LaneCall& call) {
  Pass(call, call.a, call.b);
  SetFloat(call, AsFloats(call.a.low) - AsFloats(call.b.low));
}
QUERN_INLINE void FloatMultiply(const LaneCall& call) {
  Pass(call, call.a, call.b);
  SetFloat(call, AsFloats(call.a.low) * AsFloats(call.b.low));
}
QUERN_INLINE void FloatDivide(const LaneCall& call) {
  Pass(call, call.a, call.b);
  if (call.p.errors != kErrorsIgnored) Refuse(call, LaneBits(AsFloats(call.b.low) == 0));
  SetFloat(call, AsFloats(call.a.low) / AsFloats(call.b.low));
}
QUERN_INLINE void FloatNegate(const LaneCall& call) {
  Pass(call, call.a);
  call.out->low = call.a.low ^ (uint64_t{1} << 63);
}
QUERN_INLINE void FloatAbs(const LaneCall& call) {
  Pass(call, call.a);
  call.out->low = call.a.low & ~(uint64_t{1} << 63);
}

#if defined(__clang__)
#define QUERN_EACH_LANE(name, clang_function, function)   \
  QUERN_INLINE void name(const LaneCall& call) {          \
    Pass(call, call.a);                                   \
    SetFloat(call, clang_function(AsFloats(call.a.low))); \
  }
#else
#define QUERN_EACH_LANE(name, clang_function, function)                    \
  QUERN_INLINE void name(const LaneCall& call) {                           \
    Pass(call, call.a);                                                    \
    F64x8 result = AsFloats(call.a.low);                                   \
    for (uint32_t i = 0; i < kLanes; ++i) result[i] = function(result[i]); \
    SetFloat(call, result);                                                \
  }
#endif
QUERN_EACH_LANE(FloatFloor, __builtin_elementwise_floor, __builtin_floor)
QUERN_EACH_LANE(FloatCeil, __builtin_elementwise_ceil, __builtin_ceil)
QUERN_EACH_LANE(FloatTrunc, __builtin_elementwise_trunc, __builtin_trunc)
QUERN_EACH_LANE(FloatRound, __builtin_elementwise_roundeven, __builtin_roundeven)
QUERN_EACH_LANE(FloatSqrt, __builtin_elementwise_sqrt, __builtin_sqrt)
#undef QUERN_EACH_LANE

QUERN_INLINE I64x8 AreFinite(F64x8 v) { return (I64x8)((AsWords(v) << 1) < (uint64_t{0x7ff} << 53)); }

// A function of the C library, for eight rows at a time. A result that is not finite is refused, unless an argument is
// infinite or NaN and has such a result.
QUERN_INLINE void CallLibrary(const LaneCall& call, F64x8 x, F64x8 y,
                              void (*function)(const double*, const double*, double*)) {
  alignas(64) double from_x[kLanes], from_y[kLanes], to[kLanes];
  __builtin_memcpy(from_x, &x, sizeof x);
  __builtin_memcpy(from_y, &y, sizeof y);
  function(from_x, from_y, to);
  F64x8 result;
  __builtin_memcpy(&result, to, sizeof result);
  if (call.p.bits == 32) result = __builtin_convertvector(__builtin_convertvector(result, F32x8), F64x8);
  if (call.p.errors != kErrorsIgnored) {
    const I64x8 are_numbers = (I64x8)(x == x) & (I64x8)(y == y);
    const I64x8 are_finite = AreFinite(x) & AreFinite(y);
    const I64x8 is_nan = (I64x8)(result != result), is_finite = AreFinite(result);
    Refuse(call, LaneBits((is_nan & are_numbers) | (~is_finite & are_finite)));
  }
  call.out->low = AsWords(result);
}

#define QUERN_LIBRARY_LANES(name, function)                                   \
  QUERN_INLINE void name(const LaneCall& call) {                              \
    Pass(call, call.a);                                                       \
    CallLibrary(call, AsFloats(call.a.low), AsFloats(call.a.low), &function); \
  }
QUERN_LIBRARY_LANES(FloatLn, quern_rt_ln)
QUERN_LIBRARY_LANES(FloatLog10, quern_rt_log10)
QUERN_LIBRARY_LANES(FloatExp, quern_rt_exp)
#undef QUERN_LIBRARY_LANES
QUERN_INLINE void FloatPower(const LaneCall& call) {
  Pass(call, call.a, call.b);
  CallLibrary(call, AsFloats(call.a.low), AsFloats(call.b.low), &quern_rt_power);
}

// Signed integers in the order of the floats: NaN greatest, -0 as 0.
QUERN_INLINE void FloatOrder(const LaneCall& call) {
  Pass(call, call.a);
  call.out->low = OrderedLanes<kF64>(call.a.low);
}

QUERN_INLINE void FloatToFloat(const LaneCall& call) {
  Pass(call, call.a);
  SetFloat(call, AsFloats(call.a.low));
}

QUERN_INLINE void FloatToInteger(const LaneCall& call) {
  Pass(call, call.a);
  const F64x8 x = AsFloats(call.a.low);
  // Beyond the lowest and the highest integer there is a double, but for the lowest i64, which is one itself.
  const double half = static_cast<double>(uint64_t{1} << (call.p.bits - 1)), end = call.p.is_signed ? half : 2 * half;
  const bool includes_begin = call.p.is_signed && call.p.bits == 64;
  const double begin = includes_begin ? -half : call.p.is_signed ? -half - 1 : -1;
  const I64x8 fits = (includes_begin ? (I64x8)(x >= begin) : (I64x8)(x > begin)) & (I64x8)(x < end);
  const F64x8 safe = AsFloats(call.a.low & (U64x8)fits);
  call.out->low =
      call.p.is_signed ? (U64x8) __builtin_convertvector(safe, I64x8) : __builtin_convertvector(safe, U64x8);
  Refuse(call, LaneBits(~fits));
}

QUERN_INLINE void IntegerToFloat(const LaneCall& call) {
  Pass(call, call.a);
  const U64x8 x = call.a.low;
  F64x8 result = {};
  if (call.p.bits == 32) {  // one rounding, not two
    const F32x8 narrow =
        call.p.from_signed ? __builtin_convertvector((I64x8)x, F32x8) : __builtin_convertvector(x, F32x8);
    result = __builtin_convertvector(narrow, F64x8);
  } else {
    result = call.p.from_signed ? __builtin_convertvector((I64x8)x, F64x8) : __builtin_convertvector(x, F64x8);
  }
  call.out->low = AsWords(result);
}

// ---- truths ----

QUERN_INLINE void Equal(const LaneCall& call) {
  Pass(call, call.a, call.b);
  call.out->truth = LaneBits((I64x8)(call.a.low == call.b.low));
}
QUERN_INLINE void Less(const LaneCall& call) {
  Pass(call, call.a, call.b);
  call.out->truth =
      LaneBits(call.p.is_signed ? (I64x8)call.a.low < (I64x8)call.b.low : (I64x8)(call.a.low < call.b.low));
}
QUERN_INLINE void TruthEqual(const LaneCall& call) {
  Pass(call, call.a, call.b);
  call.out->truth = static_cast<uint8_t>(~(call.a.truth ^ call.b.truth));
}
QUERN_INLINE void TruthLess(const LaneCall& call) {
  Pass(call, call.a, call.b);
  call.out->truth = static_cast<uint8_t>(~call.a.truth & call.b.truth);
}
QUERN_INLINE void TruthToInteger(const LaneCall& call) {
  Pass(call, call.a);
  call.out->low = LanesOf(call.a.truth) & 1;
}
QUERN_INLINE void Not(const LaneCall& call) {
  Pass(call, call.a);
  call.out->truth = static_cast<uint8_t>(~call.a.truth);
}

// decides: the rows in which the first argument alone decides; wins: those in which either does.
QUERN_INLINE void Kleene(const LaneCall& call, uint8_t decides, uint8_t wins) {
  const auto all = static_cast<uint8_t>(call.a.valid & call.b.valid);
  call.out->valid = static_cast<uint8_t>(all | wins);
  call.out->failed = static_cast<uint8_t>(call.a.failed | (call.b.failed & ~decides));
}
QUERN_INLINE void And(const LaneCall& call) {
  const auto a_false = static_cast<uint8_t>(call.a.valid & ~call.a.truth & ~call.a.failed);
  const auto b_false = static_cast<uint8_t>(call.b.valid & ~call.b.truth);
  Kleene(call, a_false, a_false | b_false);
  call.out->truth = static_cast<uint8_t>(call.a.truth & call.b.truth & ~a_false & ~b_false);
}
QUERN_INLINE void Or(const LaneCall& call) {
  const auto a_true = static_cast<uint8_t>(call.a.valid & call.a.truth & ~call.a.failed);
  const auto b_true = static_cast<uint8_t>(call.b.valid & call.b.truth);
  Kleene(call, a_true, a_true | b_true);
  call.out->truth = static_cast<uint8_t>(a_true | b_true);
}
QUERN_INLINE void IsNull(const LaneCall& call) {
  call.out->truth = static_cast<uint8_t>(~call.a.valid);
  call.out->valid = 255;
  call.out->failed = call.a.failed;
}
QUERN_INLINE void NotDistinct(const LaneCall& call) {
  const auto both_null = static_cast<uint8_t>(~call.a.valid & ~call.b.valid);
  call.out->truth = static_cast<uint8_t>(both_null | (call.c.valid & call.c.truth));
  call.out->valid = 255;
  call.out->failed = static_cast<uint8_t>(call.a.failed | call.b.failed);
}

// ---- values of any kind ----

// The bits of x where `first` is set, else those of y.
QUERN_INLINE uint8_t PickBits(uint8_t x, uint8_t y, uint8_t first) {
  return static_cast<uint8_t>((x & first) | (y & ~first));
}

template <bool kWide>
QUERN_INLINE void TakeFirst(const LaneCall& call, const QuernLanes& a, const QuernLanes& b, uint8_t first) {
  const U64x8 mask = LanesOf(first);
  QuernLanes* out = call.out;
  if (call.p.bits == 1) out->truth = PickBits(a.truth, b.truth, first);
  else out->low = (a.low & mask) | (b.low & ~mask);
  if (kWide && call.p.bits == 128) out->high = (a.high & mask) | (b.high & ~mask);
  out->valid = PickBits(a.valid, b.valid, first);
  out->failed = PickBits(a.failed, b.failed, first);
}

template <bool kWide>
QUERN_INLINE void Select(const LaneCall& call) {
  const uint8_t failed = call.a.failed;
  TakeFirst<kWide>(call, call.b, call.c, static_cast<uint8_t>(call.a.valid & call.a.truth));
  call.out->failed = static_cast<uint8_t>(call.out->failed | failed);
}

template <bool kWide>
QUERN_INLINE void Coalesce(const LaneCall& call) {
  TakeFirst<kWide>(call, call.a, call.b, static_cast<uint8_t>(call.a.valid | call.a.failed));
}

}  // namespace quern::blocks

#endif  // QUERN_RUNTIME_BLOCKS_LANES_H_
