// SPDX-License-Identifier: Apache-2.0
// Blocks of maps on decimals (lanes.h). A decimal is a 128-bit integer; its scale is in the plan alone. With kWide the
// two halves are in two vectors, and arithmetic goes lane by lane. Otherwise the lower half is the value, a signed
// 64-bit integer, and vectors do the work: of TPC-H's line items all prices, discounts and their products fit.
//
//     price 104949.50 * (1.00 - 0.10)        10494950 * 90 = 944545500, 30 bits
#ifndef QUERN_RUNTIME_BLOCKS_DECIMAL_LANES_H_
#define QUERN_RUNTIME_BLOCKS_DECIMAL_LANES_H_

#include "runtime/blocks/lanes.h"

namespace quern::blocks {

QUERN_INLINE int128_t WideAt(const QuernLanes& x, uint32_t i) {
  return static_cast<int128_t>(static_cast<uint128_t>(x.high[i]) << 64 | x.low[i]);
}
QUERN_INLINE void SetWide(QuernLanes* x, uint32_t i, int128_t value) {
  x->low[i] = static_cast<uint64_t>(value);
  x->high[i] = static_cast<uint64_t>(static_cast<uint128_t>(value) >> 64);
}

// 10^38: a decimal has at most 38 digits.
constexpr int128_t kDecimalLimit = static_cast<int128_t>(10000000000000000000u) * 10000000000000000000u;
QUERN_INLINE bool IsDecimal(int128_t value) { return value > -kDecimalLimit && value < kDecimalLimit; }

QUERN_INLINE void Escape(const LaneCall& call, I64x8 rows) {
  *call.escaped = static_cast<uint8_t>(*call.escaped | (LaneBits(rows) & call.out->valid));
}

// result(i, &overflows): the value of row i. Rows beyond 38 digits fail, or are null.
template <class F>
QUERN_INLINE void EachWide(const LaneCall& call, const F& result) {
  uint32_t refused = 0;
  for (uint32_t i = 0; i < kLanes; ++i) {
    bool overflows = false;
    const int128_t value = result(i, &overflows);
    refused |= static_cast<uint32_t>(overflows || !IsDecimal(value)) << i;
    SetWide(call.out, i, value);
  }
  Refuse(call, static_cast<uint8_t>(refused));
}

template <bool kWide>
QUERN_INLINE void DecimalAdd(const LaneCall& call) {
  Pass(call, call.a, call.b);
  if constexpr (kWide) {
    EachWide(call, [&](uint32_t i, bool* overflows) {
      int128_t sum = 0;
      *overflows = __builtin_add_overflow(WideAt(call.a, i), WideAt(call.b, i), &sum);
      return sum;
    });
  } else {
    const U64x8 x = call.a.low, y = call.b.low, sum = x + y;
    Escape(call, (I64x8)((x ^ sum) & (y ^ sum)) < 0);
    call.out->low = sum;
  }
}

template <bool kWide>
QUERN_INLINE void DecimalSubtract(const LaneCall& call) {
  Pass(call, call.a, call.b);
  if constexpr (kWide) {
    EachWide(call, [&](uint32_t i, bool* overflows) {
      int128_t difference = 0;
      *overflows = __builtin_sub_overflow(WideAt(call.a, i), WideAt(call.b, i), &difference);
      return difference;
    });
  } else {
    const U64x8 x = call.a.low, y = call.b.low, difference = x - y;
    Escape(call, (I64x8)((x ^ y) & (x ^ difference)) < 0);
    call.out->low = difference;
  }
}

// Lanes of all ones where a product is 2^62 or more in size, judged by the product of the rounded factors.
QUERN_INLINE I64x8 IsLargeProduct(U64x8 x, U64x8 y) {
  const F64x8 product = __builtin_convertvector((I64x8)x, F64x8) * __builtin_convertvector((I64x8)y, F64x8);
  constexpr double kLimit = static_cast<double>(uint64_t{1} << 62);
  return (I64x8)(AsFloats(AsWords(product) & ~(uint64_t{1} << 63)) >= kLimit);
}

template <bool kWide>
QUERN_INLINE void DecimalMultiply(const LaneCall& call) {
  Pass(call, call.a, call.b);
  if constexpr (kWide) {
    EachWide(call, [&](uint32_t i, bool* overflows) {
      int128_t product = 0;
      *overflows = __builtin_mul_overflow(WideAt(call.a, i), WideAt(call.b, i), &product);
      return product;
    });
  } else {
    Escape(call, IsLargeProduct(call.a.low, call.b.low));
    call.out->low = call.a.low * call.b.low;
  }
}

template <bool kWide>
QUERN_INLINE void DecimalNegate(const LaneCall& call) {
  Pass(call, call.a);
  if constexpr (kWide) {
    EachWide(call,
             [&](uint32_t i, bool*) { return static_cast<int128_t>(-static_cast<uint128_t>(WideAt(call.a, i))); });
  } else {
    Escape(call, (I64x8)call.a.low == INT64_MIN);
    call.out->low = 0 - call.a.low;
  }
}

template <bool kWide>
QUERN_INLINE void DecimalAbs(const LaneCall& call) {
  Pass(call, call.a);
  if constexpr (kWide) {
    EachWide(call, [&](uint32_t i, bool*) {
      const int128_t value = WideAt(call.a, i);
      return value < 0 ? static_cast<int128_t>(-static_cast<uint128_t>(value)) : value;
    });
  } else {
    const U64x8 x = call.a.low, negative = (U64x8)((I64x8)x < 0);
    Escape(call, (I64x8)x == INT64_MIN);
    call.out->low = (x ^ negative) - negative;
  }
}

QUERN_INLINE int128_t PowerOf(const QuernLaneParameters& p) {
  return static_cast<int128_t>(static_cast<uint128_t>(p.high) << 64 | p.low);
}

// Times a power of ten.
template <bool kWide>
QUERN_INLINE void DecimalScaleUp(const LaneCall& call) {
  Pass(call, call.a);
  if constexpr (kWide) {
    EachWide(call, [&](uint32_t i, bool* overflows) {
      int128_t product = 0;
      *overflows = __builtin_mul_overflow(WideAt(call.a, i), PowerOf(call.p), &product);
      return product;
    });
  } else if (call.p.high != 0 || static_cast<int64_t>(call.p.low) < 0) {  // only 0 has a product
    Escape(call, (I64x8)(call.a.low != 0));
    call.out->low = U64x8{};
  } else {
    const U64x8 power = U64x8{} + call.p.low;
    Escape(call, IsLargeProduct(call.a.low, power));
    call.out->low = call.a.low * power;
  }
}

// The quotient by a power of ten, rounded half away from 0.
template <class T>
QUERN_INLINE T RoundedQuotient(T value, T power) {
  const T quotient = value / power, rest = value % power, half = power / 2;
  if (rest >= half) return quotient + 1;
  return rest <= -half ? quotient - 1 : quotient;
}

template <bool kWide>
QUERN_INLINE void DecimalScaleDown(const LaneCall& call) {
  Pass(call, call.a);
  if constexpr (kWide) {
    EachWide(call, [&](uint32_t i, bool*) { return RoundedQuotient(WideAt(call.a, i), PowerOf(call.p)); });
  } else if (call.p.high != 0 || static_cast<int64_t>(call.p.low) < 0) {  // 10^19 or more: half of it is beyond most
    Escape(call, (I64x8)(call.a.low != 0));
    call.out->low = U64x8{};
  } else {
    U64x8 result = {};
    for (uint32_t i = 0; i < kLanes; ++i) {
      result[i] =
          static_cast<uint64_t>(RoundedQuotient(static_cast<int64_t>(call.a.low[i]), static_cast<int64_t>(call.p.low)));
    }
    call.out->low = result;
  }
}

// ---- quotients ----

// One more digit of a quotient: *rest times ten, by a divisor above *rest, both up to 10^38. Ten times such a rest may
// need more than 128 bits, so that it is made of two doublings and a sum, none of which is above twice the divisor.
QUERN_INLINE uint128_t NextDigit(uint128_t divisor, uint128_t* rest) {
  const uint128_t once = *rest;
  uint128_t digit = 0, sum = 0;
  for (uint32_t bit = 8; bit != 0; bit /= 2) {  // the binary digits of ten
    digit *= 2;
    sum *= 2;
    if (sum >= divisor) {
      sum -= divisor;
      digit += 1;
    }
    if ((10 & bit) == 0) continue;
    sum += once;
    if (sum >= divisor) {
      sum -= divisor;
      digit += 1;
    }
  }
  *rest = sum;
  return digit;
}

// a * 10^digits / b, rounded half away from 0. overflows: beyond 10^38.
QUERN_INLINE int128_t ScaledQuotient(int128_t a, int128_t b, uint64_t digits, bool* overflows) {
  const bool is_negative = (a < 0) != (b < 0);
  const uint128_t divisor = b < 0 ? -static_cast<uint128_t>(b) : static_cast<uint128_t>(b);
  const uint128_t dividend = a < 0 ? -static_cast<uint128_t>(a) : static_cast<uint128_t>(a);
  uint128_t quotient = dividend / divisor, rest = dividend % divisor;
  for (uint64_t i = 0; i < digits; ++i) {
    if (quotient >= static_cast<uint128_t>(kDecimalLimit) / 10) *overflows = true;
    quotient = 10 * quotient + NextDigit(divisor, &rest);
  }
  if (rest >= divisor - rest) quotient += 1;
  *overflows |= quotient >= static_cast<uint128_t>(kDecimalLimit);
  return static_cast<int128_t>(is_negative ? -quotient : quotient);
}

// The quotient of a, which has `high` more digits behind the point in the result, by b: a * 10^high / b. `low` is
// 10^high where 63 bits hold it, and else 0.
template <bool kWide>
QUERN_INLINE void DecimalDivide(const LaneCall& call) {
  Pass(call, call.a, call.b);
  if constexpr (kWide) {
    const U64x8 is_zero = (U64x8)((call.b.low | call.b.high) == 0);
    QuernLanes divisors = call.b;
    divisors.low |= is_zero & 1;
    EachWide(call, [&](uint32_t i, bool* overflows) {
      return ScaledQuotient(WideAt(call.a, i), WideAt(divisors, i), call.p.high, overflows);
    });
    Refuse(call, LaneBits((I64x8)is_zero));
  } else {
    const U64x8 x = call.a.low, y = call.b.low, power = U64x8{} + call.p.low;
    const I64x8 is_large = IsLargeProduct(x, power), is_lowest = (I64x8)(y == uint64_t{1} << 63);
    const I64x8 has_no_power = (I64x8)(power == 0);
    Escape(call, is_large | is_lowest | has_no_power);
    // Dividends below 2^62 and divisors other than 0, whose quotients do not trap.
    const I64x8 is_zero = (I64x8)(y == 0);
    const U64x8 dividends = x * power & ~(U64x8)is_large, divisors = y | ((U64x8)(is_zero | is_lowest) & 1);
    U64x8 result = {};
    for (uint32_t i = 0; i < kLanes; ++i) {
      const auto dividend = static_cast<int64_t>(dividends[i]), divisor = static_cast<int64_t>(divisors[i]);
      const int64_t quotient = dividend / divisor, rest = dividend % divisor;
      const int64_t size = rest < 0 ? -rest : rest, of_divisor = divisor < 0 ? -divisor : divisor;
      const int64_t away = (dividend < 0) != (divisor < 0) ? -1 : 1;
      result[i] = static_cast<uint64_t>(size >= of_divisor - size ? quotient + away : quotient);
    }
    call.out->low = result;
    Refuse(call, LaneBits(is_zero));
  }
}

// Refuses values of more digits than a type has: those from a power of ten on.
template <bool kWide>
QUERN_INLINE void DecimalLimit(const LaneCall& call) {
  Pass(call, call.a);
  call.out->low = call.a.low;
  const int128_t limit = PowerOf(call.p);
  if constexpr (kWide) {
    call.out->high = call.a.high;
    uint32_t refused = 0;
    for (uint32_t i = 0; i < kLanes; ++i) {
      const int128_t value = WideAt(call.a, i);
      refused |= static_cast<uint32_t>(value <= -limit || value >= limit) << i;
    }
    Refuse(call, static_cast<uint8_t>(refused));
  } else if (call.p.high == 0 && static_cast<int64_t>(call.p.low) >= 0) {
    const auto end = static_cast<int64_t>(call.p.low);
    Refuse(call, LaneBits(((I64x8)call.a.low >= end) | ((I64x8)call.a.low <= -end)));
  }
}

template <bool kWide>
QUERN_INLINE void DecimalEqual(const LaneCall& call) {
  Pass(call, call.a, call.b);
  I64x8 equal = (I64x8)(call.a.low == call.b.low);
  if constexpr (kWide) equal &= (I64x8)(call.a.high == call.b.high);
  call.out->truth = LaneBits(equal);
}

template <bool kWide>
QUERN_INLINE void DecimalLess(const LaneCall& call) {
  Pass(call, call.a, call.b);
  if constexpr (kWide) {
    const I64x8 same = (I64x8)(call.a.high == call.b.high), below = (I64x8)call.a.high < (I64x8)call.b.high;
    call.out->truth = LaneBits(below | (same & (I64x8)(call.a.low < call.b.low)));
  } else {
    call.out->truth = LaneBits((I64x8)call.a.low < (I64x8)call.b.low);
  }
}

// ---- conversions ----

template <bool kWide>
QUERN_INLINE void IntegerToDecimal(const LaneCall& call) {
  Pass(call, call.a);
  call.out->low = call.a.low;
  if constexpr (kWide) call.out->high = call.p.from_signed ? (U64x8)((I64x8)call.a.low >> 63) : U64x8{};
  else if (!call.p.from_signed) Escape(call, (I64x8)call.a.low < 0);
}

// Of scale 0.
template <bool kWide>
QUERN_INLINE void DecimalToInteger(const LaneCall& call) {
  Pass(call, call.a);
  const U64x8 x = call.a.low;
  I64x8 refused = (I64x8)(Wrapped(x, call.p.bits, call.p.is_signed) != x);
  if constexpr (kWide) refused |= (I64x8)(call.a.high != (call.p.is_signed ? (U64x8)((I64x8)x >> 63) : U64x8{}));
  else if (!call.p.is_signed) refused |= (I64x8)x < 0;
  call.out->low = Wrapped(x, call.p.bits, call.p.is_signed);
  Refuse(call, LaneBits(refused));
}

// The quotient of two doubles: the number without its point, and a power of ten (`low`: as a double).
template <bool kWide>
QUERN_INLINE void DecimalToFloat(const LaneCall& call) {
  Pass(call, call.a);
  F64x8 value = {};
  if constexpr (kWide) {
    for (uint32_t i = 0; i < kLanes; ++i) value[i] = static_cast<double>(WideAt(call.a, i));
  } else {
    value = __builtin_convertvector((I64x8)call.a.low, F64x8);
  }
  SetFloat(call, value / __builtin_bit_cast(double, call.p.low));
}

}  // namespace quern::blocks

#endif  // QUERN_RUNTIME_BLOCKS_DECIMAL_LANES_H_
