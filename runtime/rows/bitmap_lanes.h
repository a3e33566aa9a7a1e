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
  // Two vectors of eight words.
  struct Words {
    __m512i low, high;
  };
  // Of bits, and which of them are below the range.
  struct Numbers {
    __m512i numbers;
    __mmask16 inside;
  };

  // Word w has the bit (w ^ sign_bit) - base, where that is below the range, which is below 2^31.
  QUERN_AVX512_INLINE BitmapLanes(const uint64_t* bitmap, uint64_t base, uint64_t sign_bit, uint64_t range)
      : bitmap_(bitmap), base_(base), sign_bit_(sign_bit), range_(range) {}

  static constexpr __mmask16 kAllLanes = 0xffff;

  // The first n of the lanes.
  static __mmask16 FirstOf(uint32_t n) { return static_cast<__mmask16>(n >= kBitmapLanes ? kAllLanes : (1u << n) - 1); }

  // Whole vectors without their mask: loads with one do not train the hardware prefetchers of AMD Zen 5, so that a
  // column which is read in order would come line by line, in two to three times the time.
  static QUERN_AVX512_INLINE Words Load(const void* words, __mmask16 lanes) {
    const auto* const at = static_cast<const uint8_t*>(words);
    if (lanes == kAllLanes) return {_mm512_loadu_si512(at), _mm512_loadu_si512(at + 64)};
    return {_mm512_maskz_loadu_epi64(static_cast<__mmask8>(lanes), words),
            _mm512_maskz_loadu_epi64(static_cast<__mmask8>(lanes >> 8), at + 64)};
  }
  // The same of words of 32 bits.
  static QUERN_AVX512_INLINE __m512i LoadHalfWords(const void* words, __mmask16 lanes) {
    return lanes == kAllLanes ? _mm512_loadu_si512(words) : _mm512_maskz_loadu_epi32(lanes, words);
  }

  QUERN_AVX512_INLINE Numbers OfWords(const Words& words, __mmask16 lanes) const {
    const __m512i sign_bit = AllEight(sign_bit_), base = AllEight(base_), range = AllEight(range_);
    const __m512i low = _mm512_sub_epi64(_mm512_xor_si512(words.low, sign_bit), base),
                  high = _mm512_sub_epi64(_mm512_xor_si512(words.high, sign_bit), base);
    const __mmask16 inside = _mm512_kunpackb(_mm512_cmplt_epu64_mask(high, range), _mm512_cmplt_epu64_mask(low, range));
    const __m512i numbers =
        _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi64_epi32(low)), _mm512_cvtepi64_epi32(high), 1);
    return {numbers, static_cast<__mmask16>(inside & lanes)};
  }

  // Of words of 32 bits: base and sign bit have no more. A word below the base becomes a number above the range, or one
  // behind the last key, whose bit is 0.
  QUERN_AVX512_INLINE Numbers OfHalfWords(__m512i words, __mmask16 lanes) const {
    const __m512i numbers = _mm512_sub_epi32(_mm512_xor_si512(words, AllSixteen(sign_bit_)), AllSixteen(base_));
    return {numbers, _mm512_mask_cmplt_epu32_mask(lanes, numbers, AllSixteen(range_))};
  }

  // Which of them have their bit.
  QUERN_AVX512_INLINE __mmask16 Find(const Numbers& of) const {
    const __m512i halves = _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), of.inside,
                                                       _mm512_srli_epi32(of.numbers, 5), bitmap_, sizeof(uint32_t));
    const __m512i bit = _mm512_sllv_epi32(_mm512_set1_epi32(1), _mm512_and_si512(of.numbers, _mm512_set1_epi32(31)));
    return _mm512_test_epi32_mask(halves, bit);
  }

 private:
  static QUERN_AVX512_INLINE __m512i AllSixteen(uint64_t value) {
    return _mm512_set1_epi32(static_cast<int32_t>(static_cast<uint32_t>(value)));
  }

  const uint64_t* const bitmap_;
  const uint64_t base_, sign_bit_, range_;
};

// The lanes of a mask, together, at the front of `to`; returns their number.
QUERN_AVX512_INLINE uint32_t StoreKept(__m512i values, __mmask16 kept, uint32_t* to) {
  const uint32_t n = static_cast<uint32_t>(std::popcount(static_cast<unsigned>(kept)));
  _mm512_mask_storeu_epi32(to, BitmapLanes::FirstOf(n), _mm512_maskz_compress_epi32(kept, values));
  return n;
}

// The same lanes as products with `factor`, which has 32 bits.
QUERN_AVX512_INLINE void StoreKeptProducts(__m512i values, __mmask16 kept, uint64_t factor, uint64_t* to) {
  const __mmask16 stored = BitmapLanes::FirstOf(static_cast<uint32_t>(std::popcount(static_cast<unsigned>(kept))));
  const __m512i factors = AllEight(factor), together = _mm512_maskz_compress_epi32(kept, values),
                low = _mm512_cvtepu32_epi64(_mm512_castsi512_si256(together)),
                high = _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(together, 1));
  _mm512_mask_storeu_epi64(to, static_cast<__mmask8>(stored), _mm512_mul_epu32(low, factors));
  _mm512_mask_storeu_epi64(to + 8, static_cast<__mmask8>(stored >> 8), _mm512_mul_epu32(high, factors));
}

// 0 .. 15, plus `first` in each.
QUERN_AVX512_INLINE __m512i SixteenFrom(uint32_t first) {
  return _mm512_add_epi32(_mm512_set1_epi32(static_cast<int32_t>(first)),
                          _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}

}  // namespace quern
#endif

#endif  // QUERN_RUNTIME_ROWS_BITMAP_LANES_H_
