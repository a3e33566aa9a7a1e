// SPDX-License-Identifier: Apache-2.0
// Ten groups need no table in memory: 32 words and the 32 addresses of their groups fit eight registers, where one
// instruction looks up eight rows among sixteen words. A word's place is the top five bits of its product with a
// multiplier that gives each known word a place of its own:
//
//     words   7 9 4             places   7 -> 30, 9 -> 2, 4 -> 17       7 * multiplier >> 59 == 30
//     rows    9 9 7 5 4 ..               2  2  30  4  17 ..             place 4 holds no 5: look in the table
//
// For sixteen words, one odd number in a hundred is such a multiplier; numbers are tried until one is found. A row then
// takes 0.1 ns, compared with 0.4 for the two multiplications of a hash, an address and a load.
#include "runtime/aggregate/tables/register_cache.h"

#include <algorithm>

#include "runtime/base/bytes.h"
#include "runtime/base/cpu.h"
#include "runtime/rows/packed_key_lanes.h"
#include "runtime/rows/prefetch_lines.h"

namespace quern {
namespace {

constexpr uint32_t kSampleRows = 256;  // enough to see which words a block has
constexpr uint64_t kMostTries = 4096;

}  // namespace

bool RegisterCache::Separates(uint64_t multiplier) const {
  uint32_t taken = 0;
  for (uint32_t k = 0; k < num_words_; ++k) {
    const uint32_t place = 1u << PlaceOf(known_[k], multiplier);
    if ((taken & place) != 0) return false;
    taken |= place;
  }
  return true;
}

// Finds a multiplier that gives each known word a place of its own. The public numbers do for drawing multipliers:
// words for which none is found after kMostTries end the cache, and no word is looked for in more than one place.
void RegisterCache::Place() {
  uint64_t tries = 0;
  for (; tries < kMostTries && !Separates(multiplier_); ++tries)
    multiplier_ = blocks::Mix(multiplier_ + tries + 1, blocks::kPublicHash) | 1;
  if (tries == kMostTries) return GiveUp();
  // The word 0 has the first place with any multiplier; where that place is empty, no known word belongs there.
  std::fill_n(words_, kNumPlaces, 0);
  std::fill_n(tuples_, kNumPlaces, nullptr);
  words_[0] = known_[0];
  for (uint32_t k = 0; k < num_words_; ++k) {
    const uint32_t place = PlaceOf(known_[k], multiplier_);
    words_[place] = known_[k];
    tuples_[place] = groups_[k];
  }
}

void RegisterCache::GiveUp() {
  num_words_ = 0;
  gate_.Close();
}

// Returns whether the word is known now.
bool RegisterCache::Add(uint64_t word, uint8_t* tuple) {
  if (std::find(known_, known_ + num_words_, word) != known_ + num_words_) return true;
  if (num_words_ == kMostWords) return false;
  known_[num_words_] = word;
  groups_[num_words_++] = tuple;
  return true;
}

void RegisterCache::Learn(const uint64_t* words, uint32_t num_rows, uint8_t* const* tuples) {
  if (!gate_.TakeTurn() || !HasAvx512()) return;
  for (uint32_t i = 0; i < std::min(num_rows, kSampleRows); ++i)
    if (!Add(words[i], tuples[i])) return GiveUp();
  Place();
}

void RegisterCache::LearnOthers(const uint64_t* words, uint32_t num_rows, const uint32_t* others, uint32_t num_others,
                                uint8_t* const* tuples) {
  gate_.Count(num_rows, num_rows - num_others);
  if (!gate_.is_open()) return GiveUp();
  const uint32_t num_known = num_words_;
  for (uint32_t o = 0; o < num_others && Add(words[others[o]], tuples[others[o]]); ++o) {
  }
  if (num_words_ != num_known) Place();
}

#if defined(__x86_64__)
template <class Prefetch>
QUERN_AVX512 uint32_t RegisterCache::LookAs(const uint64_t* words, uint32_t n, uint32_t packed_keys_ahead,
                                            uint8_t** tuples, uint32_t* others) const {
  constexpr uint32_t kHalf = kNumPlaces / 2;
  const __m512i multiplier = AllEight(multiplier_);
  const __m512i word0 = _mm512_loadu_si512(words_), word1 = _mm512_loadu_si512(words_ + 8);
  const __m512i word2 = _mm512_loadu_si512(words_ + kHalf), word3 = _mm512_loadu_si512(words_ + kHalf + 8);
  const __m512i tuple0 = _mm512_loadu_si512(tuples_), tuple1 = _mm512_loadu_si512(tuples_ + 8);
  const __m512i tuple2 = _mm512_loadu_si512(tuples_ + kHalf), tuple3 = _mm512_loadu_si512(tuples_ + kHalf + 8);
  __m256i rows = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  uint32_t num_others = 0;
  for (uint32_t i = 0; i < n; i += 8) {
    Prefetch::For(words + i + packed_keys_ahead);
    const auto there = static_cast<__mmask8>(n - i < 8 ? (1u << (n - i)) - 1 : 0xff);
    const __m512i word = _mm512_maskz_loadu_epi64(there, words + i), product = _mm512_mullo_epi64(word, multiplier);
    const __mmask8 upper = _mm512_movepi64_mask(product);
    const __m512i place =
        _mm512_srli_epi64(product, 64 - kPlacesLog2);  // of which an instruction reads the lower four bits
    const __m512i known = _mm512_mask_blend_epi64(upper, _mm512_permutex2var_epi64(word0, place, word1),
                                                  _mm512_permutex2var_epi64(word2, place, word3));
    const __m512i tuple = _mm512_mask_blend_epi64(upper, _mm512_permutex2var_epi64(tuple0, place, tuple1),
                                                  _mm512_permutex2var_epi64(tuple2, place, tuple3));
    _mm512_mask_storeu_epi64(tuples + i, there, tuple);
    const __mmask8 is_other = _mm512_mask_cmpneq_epi64_mask(there, known, word);
    if (__builtin_expect(is_other != 0, 0)) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(others + num_others), _mm256_maskz_compress_epi32(is_other, rows));
      num_others += static_cast<uint32_t>(__builtin_popcount(is_other));
    }
    rows = _mm256_add_epi32(rows, _mm256_set1_epi32(8));
  }
  return num_others;
}

uint32_t RegisterCache::Look(const uint64_t* words, uint32_t n, uint32_t packed_keys_ahead, uint8_t** tuples,
                             uint32_t* others) const {
  return WithPrefetch<kInputHint>(packed_keys_ahead, [&]<class Prefetch>() {
    return LookAs<Prefetch>(words, n, packed_keys_ahead, tuples, others);
  });
}
#else
uint32_t RegisterCache::Look(const uint64_t*, uint32_t, uint32_t, uint8_t**, uint32_t*) const { return 0; }
#endif

}  // namespace quern
