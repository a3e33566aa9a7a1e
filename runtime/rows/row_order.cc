// SPDX-License-Identifier: Apache-2.0
#include "runtime/rows/row_order.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <bit>
#include <cstring>

#include "runtime/base/bytes.h"
#include "runtime/base/cpu.h"

namespace quern {
namespace {

// Without branches, which compilers turn into vector code.
inline __attribute__((always_inline)) bool AscendAll(const uint32_t* rows, uint64_t n) {
  uint32_t descends = 0;
  for (uint64_t i = 1; i < n; ++i) descends |= static_cast<uint32_t>(rows[i] <= rows[i - 1]);
  return descends == 0;
}

#if defined(__x86_64__)
QUERN_WIDE bool AscendWide(const uint32_t* rows, uint64_t n) { return AscendAll(rows, n); }
#endif

constexpr uint32_t kPlaces = 64;  // at a time

// Bit i is byte i, of eight bytes that are 0 or 1: the product has each byte's bit in its highest byte.
uint64_t BitsOfBytes(const uint8_t* bytes) { return blocks::Load<uint64_t>(bytes) * 0x0102'0408'1020'4080 >> 56; }

// The bits of kPlaces bytes, which become 0.
uint64_t TakeBits(uint8_t* places) {
  uint64_t bits = 0;
  for (uint32_t i = 0; i < kPlaces / 8; ++i) bits |= BitsOfBytes(places + 8 * i) << 8 * i;
  std::memset(places, 0, kPlaces);
  return bits;
}

#if defined(__x86_64__)
QUERN_WIDE inline __attribute__((always_inline)) uint64_t TakeBitsWide(uint8_t* places) {
  const __m512i bytes = _mm512_loadu_si512(places);
  _mm512_storeu_si512(places, _mm512_setzero_si512());
  return _mm512_test_epi8_mask(bytes, bytes);
}
#endif

// Writes the numbers of the bytes that are 1, which become 0, and returns how many they are.
uint64_t TakePlaces(uint8_t* places, uint32_t num_places, uint32_t* rows) {
  uint64_t n = 0;
  for (uint32_t first = 0; first < num_places; first += kPlaces) {
    for (uint64_t bits = TakeBits(places + first); bits != 0; bits &= bits - 1)
      rows[n++] = first + static_cast<uint32_t>(std::countr_zero(bits));
  }
  return n;
}

#if defined(__x86_64__)
QUERN_WIDE uint64_t TakePlacesWide(uint8_t* places, uint32_t num_places, uint32_t* rows) {
  uint64_t n = 0;
  for (uint32_t first = 0; first < num_places; first += kPlaces) {
    for (uint64_t bits = TakeBitsWide(places + first); bits != 0; bits &= bits - 1)
      rows[n++] = first + static_cast<uint32_t>(std::countr_zero(bits));
  }
  return n;
}
#endif

}  // namespace

bool Ascend(const uint32_t* rows, uint64_t n) {
#if defined(__x86_64__)
  if (HasAvx512()) return AscendWide(rows, n);
#endif
  return AscendAll(rows, n);
}

RowSorter::RowSorter(uint32_t num_places) : is_there_((num_places + kPlaces - 1) / kPlaces * kPlaces) {}

bool RowSorter::SortDistinct(uint32_t* rows, uint64_t n) {
  if (Ascend(rows, n)) return true;
  uint8_t* const is_there = is_there_.data();
  const auto num_places = static_cast<uint32_t>(is_there_.size());
  for (uint64_t i = 0; i < n; ++i) is_there[rows[i]] = 1;
  uint64_t num_distinct = 0;
#if defined(__x86_64__)
  if (HasAvx512()) num_distinct = TakePlacesWide(is_there, num_places, rows);
  else num_distinct = TakePlaces(is_there, num_places, rows);
#else
  num_distinct = TakePlaces(is_there, num_places, rows);
#endif
  return num_distinct == n;
}

}  // namespace quern
