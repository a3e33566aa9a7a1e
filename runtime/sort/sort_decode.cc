// SPDX-License-Identifier: Apache-2.0
// Encoding maps -0 to 0 and all NaNs to one, so that words order them as equal. Any other float can be decoded from its
// word bit by bit. Whether all can is found by testing each float once, while it is in the cache for encoding:
//
//     2.5, 0, inf, 0x7ff8000000000000     are decoded from their words
//     -0, 0xfff8000000000000              are "odd": tuples keep the original
#include "runtime/sort/sort_decode.h"

#include "runtime/base/cpu.h"
#include "runtime/blocks/blocks.h"

namespace quern {
namespace {

template <class T>
inline constexpr T kInfinity = sizeof(T) == 4 ? T{0x7f800000u} : static_cast<T>(0x7ff0000000000000u);
template <class T>
inline constexpr T kOneNan = sizeof(T) == 4 ? T{0x7fc00000u} : static_cast<T>(0x7ff8000000000000u);

// All ones, or zero. There is no branch, so that it processes a vector of values at a time.
template <class T>
inline __attribute__((always_inline)) T IsOdd(T v) {
  const T magnitude = static_cast<T>(v << 1);
  const bool is_minus_zero = magnitude == 0 && v != 0, is_nan = magnitude > static_cast<T>(kInfinity<T> << 1);
  return static_cast<T>(-static_cast<T>(is_minus_zero | (is_nan & (v != kOneNan<T>))));
}

template <class T>
inline __attribute__((always_inline)) bool AnyOddOf(const T* values, uint32_t n) {
  T odd = 0;
  for (uint32_t i = 0; i < n; ++i) odd |= IsOdd(values[i]);
  return odd != 0;
}

struct OddLoops {
  bool (*of_f32)(const uint32_t* values, uint32_t n);
  bool (*of_f64)(const uint64_t* values, uint32_t n);
};

#define QUERN_ODD_LOOPS(suffix, target)                                                            \
  target bool AnyOdd32##suffix(const uint32_t* values, uint32_t n) { return AnyOddOf(values, n); } \
  target bool AnyOdd64##suffix(const uint64_t* values, uint32_t n) { return AnyOddOf(values, n); } \
  constexpr OddLoops kOddLoops##suffix = {AnyOdd32##suffix, AnyOdd64##suffix};

QUERN_ODD_LOOPS(Baseline, )
#if defined(__x86_64__)
QUERN_ODD_LOOPS(Avx2, __attribute__((target("avx2"))))
QUERN_ODD_LOOPS(Avx512, __attribute__((target("avx512f,avx512dq,avx512vl"))))
#endif

OddLoops LoopsOfMachine() {
#if defined(__x86_64__)
  if (HasAvx512()) return kOddLoopsAvx512;
  if (HasAvx2()) return kOddLoopsAvx2;
#endif
  return kOddLoopsBaseline;
}

template <class T>
bool AnyOddPicked(const QuernColumn& column, const uint32_t* rows, uint32_t n) {
  bool odd = false;
  for (uint32_t i = 0; i < n; ++i)
    if (blocks::IsValid(&column, rows[i])) odd |= IsOdd(blocks::LoadAt<T>(column.values, rows[i])) != 0;
  return odd;
}

}  // namespace

bool HasOddFloat(const QuernSortKey& key, const QuernColumn& column, uint64_t first, const uint32_t* rows, uint32_t n) {
  static const OddLoops loops = LoopsOfMachine();
  if (rows != nullptr)
    return key.storage == kF32 ? AnyOddPicked<uint32_t>(column, rows, n) : AnyOddPicked<uint64_t>(column, rows, n);
  if (key.storage == kF32) return loops.of_f32(static_cast<const uint32_t*>(column.values) + first, n);
  return loops.of_f64(static_cast<const uint64_t*>(column.values) + first, n);
}

}  // namespace quern
