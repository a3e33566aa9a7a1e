// SPDX-License-Identifier: Apache-2.0
// Which of sixteen key words have their bit in a bitmap, on machines with AVX-512:
//
//     words 7 900 12 5 ..    base 5, range 16    numbers 2 - 7 0 ..    bits 1 - 0 1 ..    mask ..1001
//
// The bits are gathered as halves of the bitmap's words. Numbers of kept rows are moved together in a register: no
// branch and no address depends on how many were kept until all sixteen are done, where a loop over single rows knows
// the place of each only when the one before it has been tested.
#ifndef QUERN_RUNTIME_ROWS_BITMAP_LANES_H_
#define QUERN_RUNTIME_ROWS_BITMAP_LANES_H_

#if defined(__x86_64__)
#include <algorithm>
#include <bit>
#include <cstdint>

#include "runtime/rows/packed_key_lanes.h"

namespace quern {

constexpr uint32_t kBitmapLanes = 16;

class BitmapLanes {
 public:
  // Two vectors of eight words, or of their numbers.
  struct Words {
    __m512i low, high;
  };

  // Word w has the bit (w ^ sign_bit) - base, where that is below the range, which is below 2^31.
  QUERN_AVX512_INLINE BitmapLanes(const uint64_t* bitmap, uint64_t base, uint64_t sign_bit, uint64_t range)
      : bitmap_(bitmap), base_(AllEight(base)), sign_bit_(AllEight(sign_bit)), range_(AllEight(range)) {}

  // The first n of the lanes.
  static __mmask16 FirstOf(uint32_t n) { return static_cast<__mmask16>(n >= kBitmapLanes ? 0xffffu : (1u << n) - 1); }

  static QUERN_AVX512_INLINE Words Load(const uint64_t* words, __mmask16 lanes) {
    return {_mm512_maskz_loadu_epi64(static_cast<__mmask8>(lanes), words),
            _mm512_maskz_loadu_epi64(static_cast<__mmask8>(lanes >> 8), words + 8)};
  }

  // The numbers of their bits, some beyond the range.
  QUERN_AVX512_INLINE Words NumbersOf(const Words& words) const {
    return {_mm512_sub_epi64(_mm512_xor_si512(words.low, sign_bit_), base_),
            _mm512_sub_epi64(_mm512_xor_si512(words.high, sign_bit_), base_)};
  }

  // Which of these lanes have their bit.
  QUERN_AVX512_INLINE __mmask16 Find(const Words& numbers, __mmask16 lanes) const {
    const __mmask16 inside =
        _mm512_kunpackb(_mm512_cmplt_epu64_mask(numbers.high, range_), _mm512_cmplt_epu64_mask(numbers.low, range_)) &
        lanes;
    const __m512i number = _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi64_epi32(numbers.low)),
                                              _mm512_cvtepi64_epi32(numbers.high), 1);
    const __m512i halves = _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), inside, _mm512_srli_epi32(number, 5),
                                                       bitmap_, sizeof(uint32_t));
    const __m512i bit = _mm512_sllv_epi32(_mm512_set1_epi32(1), _mm512_and_si512(number, _mm512_set1_epi32(31)));
    return _mm512_test_epi32_mask(halves, bit);
  }

 private:
  const uint64_t* const bitmap_;
  const __m512i base_, sign_bit_, range_;
};

// The lanes of a mask, together, at the front of `to`; returns their number.
QUERN_AVX512_INLINE uint32_t StoreKept(__m512i values, __mmask16 kept, uint32_t* to) {
  const uint32_t n = static_cast<uint32_t>(std::popcount(static_cast<unsigned>(kept)));
  _mm512_mask_storeu_epi32(to, BitmapLanes::FirstOf(n), _mm512_maskz_compress_epi32(kept, values));
  return n;
}

// 0 .. 15, plus `first` in each.
QUERN_AVX512_INLINE __m512i SixteenFrom(uint32_t first) {
  return _mm512_add_epi32(_mm512_set1_epi32(static_cast<int32_t>(first)),
                          _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}

}  // namespace quern
#endif

#endif  // QUERN_RUNTIME_ROWS_BITMAP_LANES_H_
