// SPDX-License-Identifier: Apache-2.0
// The words of the rows of a batch that have one integer as their key. Its column has them already, so that a test
// that few rows pass need not pack all of them first:
//
//     column     7 900 12 5 ..        rows 0 2 3        words 7 12 5, of 4 or 8 bytes
#ifndef QUERN_RUNTIME_ROWS_KEY_WORDS_H_
#define QUERN_RUNTIME_ROWS_KEY_WORDS_H_

#include <cstdint>

#include "runtime/abi/kernel_abi.h"
#include "runtime/base/bytes.h"
#include "runtime/rows/bitmap_lanes.h"

namespace quern {

// Whether values of the column are the words of the key, where it is not null.
inline bool HasWords(const QuernField& key) {
  return (key.storage == k32 || key.storage == k64) && key.index_storage == kNoStorage && !key.null_equal;
}

// Whether that holds for packed keys: there is one.
inline bool HasKeyInColumn(const QuernRowLayout& layout) { return layout.num_keys == 1 && HasWords(layout.keys[0]); }

struct KeyWords {
  const void* values;
  uint32_t value_bytes;            // 4 or 8
  const uint32_t* rows = nullptr;  // row of each word; null: first + i
  uint64_t first = 0;

  static KeyWords Packed(const uint64_t* words) { return {words, sizeof(uint64_t)}; }
  // HasWords(key).
  static KeyWords Of(const QuernField& key, const QuernColumn& column, const uint32_t* rows, uint64_t first) {
    return {column.values, static_cast<uint32_t>(key.storage == k32 ? sizeof(uint32_t) : sizeof(uint64_t)), rows,
            first};
  }
};

// Word i, for one width and one way to number rows.
template <class Value, bool kHasRows>
class WordReader {
 public:
  explicit WordReader(const KeyWords& words)
      : values_(static_cast<const uint8_t*>(words.values) + (kHasRows ? 0 : words.first * sizeof(Value))),
        rows_(words.rows) {}

  uint64_t At(uint32_t i) const {
    return blocks::Load<Value>(values_ + uint64_t{kHasRows ? rows_[i] : i} * sizeof(Value));
  }

#if defined(__x86_64__)
  // The numbers of the bits of words i .. i+15, up to n.
  QUERN_AVX512_INLINE BitmapLanes::Numbers NumbersOf(const BitmapLanes& bitmap, uint32_t i, uint32_t n) const {
    const __mmask16 lanes = BitmapLanes::FirstOf(n - i);
    if constexpr (!kHasRows) {
      const uint8_t* const at = values_ + uint64_t{i} * sizeof(Value);
      if constexpr (sizeof(Value) == sizeof(uint32_t))
        return bitmap.OfHalfWords(_mm512_maskz_loadu_epi32(lanes, at), lanes);
      else return bitmap.OfWords(BitmapLanes::Load(at, lanes), lanes);
    }
    if (n - i < kBitmapLanes) {
      Value some[kBitmapLanes] = {};
      for (uint32_t k = i; k < n; ++k) some[k - i] = blocks::Load<Value>(At(rows_ + k));
      if constexpr (sizeof(Value) == sizeof(uint32_t)) return bitmap.OfHalfWords(_mm512_loadu_si512(some), lanes);
      else return bitmap.OfWords(BitmapLanes::Load(some, lanes), lanes);
    }
    const uint32_t* const rows = rows_ + i;
    if constexpr (sizeof(Value) == sizeof(uint32_t)) {
      const __m256i low = EightHalfWords(rows), high = EightHalfWords(rows + 8);
      return bitmap.OfHalfWords(_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1), lanes);
    } else {
      return bitmap.OfWords({Eight(rows), Eight(rows + 8)}, lanes);
    }
  }
#endif

 private:
  const uint8_t* At(const uint32_t* row) const { return values_ + uint64_t{*row} * sizeof(Value); }

#if defined(__x86_64__)
  // Each is loaded on its own, as by WordsIn.
  QUERN_AVX512_INLINE __m128i FourHalfWords(const uint32_t* rows) const {
    using blocks::Load;
    return _mm_setr_epi32(Load<int32_t>(At(rows)), Load<int32_t>(At(rows + 1)), Load<int32_t>(At(rows + 2)),
                          Load<int32_t>(At(rows + 3)));
  }
  QUERN_AVX512_INLINE __m256i EightHalfWords(const uint32_t* rows) const {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(FourHalfWords(rows)), FourHalfWords(rows + 4), 1);
  }
  QUERN_AVX512_INLINE __m512i Eight(const uint32_t* rows) const {
    return EightWords(TwoWords(At(rows), At(rows + 1)), TwoWords(At(rows + 2), At(rows + 3)),
                      TwoWords(At(rows + 4), At(rows + 5)), TwoWords(At(rows + 6), At(rows + 7)));
  }
#endif

  const uint8_t* const values_;
  const uint32_t* const rows_;
};

// Calls f with the reader of these words.
template <class F>
auto WithReader(const KeyWords& words, F&& f) {
  const bool has_rows = words.rows != nullptr;
  if (words.value_bytes == sizeof(uint32_t))
    return has_rows ? f(WordReader<uint32_t, true>(words)) : f(WordReader<uint32_t, false>(words));
  return has_rows ? f(WordReader<uint64_t, true>(words)) : f(WordReader<uint64_t, false>(words));
}

}  // namespace quern

#endif  // QUERN_RUNTIME_ROWS_KEY_WORDS_H_
