// SPDX-License-Identifier: Apache-2.0
// Key words in vectors of eight, on machines with AVX-512: loading them from eight slots, and hashing them.
#ifndef QUERN_RUNTIME_ROWS_PACKED_KEY_LANES_H_
#define QUERN_RUNTIME_ROWS_PACKED_KEY_LANES_H_

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "runtime/base/bytes.h"
#include "runtime/base/cpu.h"

namespace quern {

#if defined(__x86_64__)
#define QUERN_AVX512 __attribute__((target("avx512f,avx512dq,avx512vl")))
#define QUERN_AVX512_INLINE QUERN_AVX512 inline __attribute__((always_inline))

QUERN_AVX512_INLINE __m512i AllEight(uint64_t value) { return _mm512_set1_epi64(static_cast<int64_t>(value)); }
QUERN_AVX512_INLINE __m512i AllEight(const void* value) { return AllEight(reinterpret_cast<uint64_t>(value)); }

// As blocks::Mix, whose vector types cannot be function arguments on machines without them.
QUERN_AVX512_INLINE __m512i HashEight(__m512i words) {
  const __m512i once = _mm512_mullo_epi64(_mm512_xor_si512(words, _mm512_srli_epi64(words, 32)),
                                          AllEight(blocks::quern_hash_secret[blocks::kMultiplier1]));
  const __m512i twice = _mm512_mullo_epi64(_mm512_xor_si512(once, _mm512_srli_epi64(once, 32)),
                                           AllEight(blocks::quern_hash_secret[blocks::kMultiplier2]));
  return _mm512_xor_si512(twice, _mm512_srli_epi64(twice, 32));
}

QUERN_AVX512_INLINE __m128i TwoWords(const void* low, const void* high) {
  const __m128d first = _mm_castsi128_pd(_mm_loadl_epi64(static_cast<const __m128i*>(low)));
  return _mm_castpd_si128(_mm_loadh_pd(first, static_cast<const double*>(high)));
}

QUERN_AVX512_INLINE __m512i EightWords(__m128i a, __m128i b, __m128i c, __m128i d) {
  const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1);
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), _mm256_inserti128_si256(_mm256_castsi128_si256(c), d, 1), 1);
}

QUERN_AVX512_INLINE __m128i FourHalfWords(uint8_t* const* slots, uint64_t offset) {
  using blocks::Load;
  return _mm_setr_epi32(Load<int32_t>(slots[0] + offset), Load<int32_t>(slots[1] + offset),
                        Load<int32_t>(slots[2] + offset), Load<int32_t>(slots[3] + offset));
}

// The words at `offset` bytes from each of eight addresses. Each is loaded on its own: a gather takes twice as long on
// Zen 5.
template <class Word>
QUERN_AVX512_INLINE __m512i WordsIn(uint8_t* const* slots, uint64_t offset) {
  if constexpr (sizeof(Word) == 4) {
    const __m128i low = FourHalfWords(slots, offset), high = FourHalfWords(slots + 4, offset);
    return _mm512_cvtepu32_epi64(_mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1));
  } else {
    return EightWords(TwoWords(slots[0] + offset, slots[1] + offset), TwoWords(slots[2] + offset, slots[3] + offset),
                      TwoWords(slots[4] + offset, slots[5] + offset), TwoWords(slots[6] + offset, slots[7] + offset));
  }
}

// from[rows[0]] .. from[rows[7]].
template <class T>
QUERN_AVX512_INLINE __m512i OfRows(const T* from, const uint32_t* rows) {
  static_assert(sizeof(T) == 8);
  return EightWords(TwoWords(from + rows[0], from + rows[1]), TwoWords(from + rows[2], from + rows[3]),
                    TwoWords(from + rows[4], from + rows[5]), TwoWords(from + rows[6], from + rows[7]));
}

// Eight words of a batch, in the form in which slots hold them.
template <class Word>
QUERN_AVX512_INLINE __m512i AsInSlots(__m512i words) {
  return _mm512_and_si512(words, AllEight(static_cast<Word>(-1)));
}
template <class Word>
QUERN_AVX512_INLINE __m512i WordsOfRows(const uint64_t* words) {
  return AsInSlots<Word>(_mm512_loadu_si512(words));
}
#endif

}  // namespace quern

#endif  // QUERN_RUNTIME_ROWS_PACKED_KEY_LANES_H_
