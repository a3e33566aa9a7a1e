// SPDX-License-Identifier: Apache-2.0
// A join of many rows with few tuples, of which a query wants sums alone, needs no column of the build side:
//
//     tuples of item    2: price 30, weight 4      7: price 50, weight 1
//     rows meet         2, 7, 7, 2, 2
//     sums of           30 + 50 + 50 + 30 + 30     4 + 1 + 1 + 4 + 4        one vector addition a row
//
// Writing the columns and adding them up afterwards stores and loads each value once more.
#include "runtime/rows/add_up_fields.h"

#include <algorithm>
#include <bit>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "runtime/base/cpu.h"
#include "runtime/blocks/blocks.h"

namespace quern {
namespace {

constexpr uint64_t kBias = uint64_t{1} << kAddedBits;

// reach: the sums of each value and kBias, combined by or.
bool IsWithinReach(uint64_t reach) { return reach >> (kAddedBits + 1) == 0; }

bool AddUpWord(uint32_t tuple_offset, const PlacedTuples& placed, int64_t* total) {
  const uint8_t* const base = placed.base + tuple_offset;
  uint64_t sum = 0, reach = 0;
  for (uint32_t i = 0; i < placed.n; ++i) {
    const auto value = blocks::Load<uint64_t>(base + placed.tuples[i]);
    sum += value;
    reach |= value + kBias;
  }
  *total += static_cast<int64_t>(sum);
  return IsWithinReach(reach);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) bool AddUpFourWords(uint32_t tuple_offset, const PlacedTuples& placed,
                                                    int64_t* totals) {
  const uint8_t* const base = placed.base + tuple_offset;
  const uint64_t* const tuples = placed.tuples;
  const __m256i bias = _mm256_set1_epi64x(static_cast<int64_t>(kBias));
  __m256i sums = _mm256_setzero_si256(), reach = _mm256_setzero_si256();
  for (uint64_t i = 0, n = placed.n; i < n; ++i) {
    const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(base + tuples[i]));
    sums = _mm256_add_epi64(sums, words);
    reach = _mm256_or_si256(reach, _mm256_add_epi64(words, bias));
  }
  uint64_t of_rows[4], reaches[4];
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(of_rows), sums);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(reaches), reach);
  for (uint32_t f = 0; f < 4; ++f) totals[f] += static_cast<int64_t>(of_rows[f]);
  return IsWithinReach(reaches[0] | reaches[1] | reaches[2] | reaches[3]);
}

// Whether fields f to f + 3 are wanted, and their words follow one another.
bool AreFourWords(const QuernRowLayout& layout, uint64_t fields, uint32_t f) {
  if ((fields >> f & 15) != 15) return false;
  for (uint32_t g = 1; g < 4; ++g)
    if (layout.fields[f + g].tuple_offset != layout.fields[f].tuple_offset + 8 * g) return false;
  return true;
}
#endif

bool AddUpSome(const QuernRowLayout& layout, uint64_t fields, const PlacedTuples& some, int64_t* totals) {
  PrefetchTuples(layout, some);
  bool are_within = true;
  while (fields != 0) {
    const auto f = static_cast<uint32_t>(std::countr_zero(fields));
    uint32_t width = 1;
#if defined(__x86_64__)
    if (AreFourWords(layout, fields, f) && HasAvx2()) width = 4;
    if (width == 4) are_within &= AddUpFourWords(layout.fields[f].tuple_offset, some, totals + f);
    else
#endif
      are_within &= AddUpWord(layout.fields[f].tuple_offset, some, totals + f);
    fields &= ~(((uint64_t{1} << width) - 1) << f);
  }
  return are_within;
}

}  // namespace

bool AddUpFields(const QuernRowLayout& layout, uint64_t fields, const PlacedTuples& placed, int64_t* totals) {
  for (uint64_t left = fields; left != 0; left &= left - 1) totals[std::countr_zero(left)] = 0;
  for (uint32_t done = 0; done < placed.n;) {
    const PlacedTuples some = SomeOf(placed, done);
    if (!AddUpSome(layout, fields, some, totals)) return false;
    done += some.n;
  }
  return true;
}

}  // namespace quern
