// SPDX-License-Identifier: Apache-2.0
// The words of adjacent rows that have one integer as their key. Its column has them already, so that a test that few
// rows pass need not pack all of them first:
//
//     column     7 900 12 5 ..        words from row 1 on    900 12 5 .., of 4 or 8 bytes
//
// Words of rows that lie apart are packed: a loop that does nothing but load them has more cache misses on their way.
#ifndef QUERN_RUNTIME_ROWS_KEY_WORDS_H_
#define QUERN_RUNTIME_ROWS_KEY_WORDS_H_

#include <cstdint>

#include "runtime/abi/kernel_abi.h"
#include "runtime/base/bytes.h"
#include "runtime/base/prefetch_line.h"
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
  uint32_t value_bytes;         // 4 or 8
  uint64_t prefetch_bytes = 0;  // how far ahead their column is prefetched; 0: not, or they lie in none

  static KeyWords Packed(const uint64_t* words) { return {words, sizeof(uint64_t)}; }
  // Of the rows from `first` on. HasWords(key). prefetch_rows: PrefetchDistances::input_rows.
  static KeyWords Of(const QuernField& key, const QuernColumn& column, uint64_t first, uint32_t prefetch_rows) {
    const auto value_bytes = static_cast<uint32_t>(key.storage == k32 ? sizeof(uint32_t) : sizeof(uint64_t));
    return {static_cast<const uint8_t*>(column.values) + first * value_bytes, value_bytes,
            uint64_t{prefetch_rows} * value_bytes};
  }
};

template <class Value>
class WordReader {
 public:
  explicit WordReader(const KeyWords& words)
      : values_(static_cast<const uint8_t*>(words.values)), prefetch_bytes_(words.prefetch_bytes) {}

  uint64_t At(uint32_t i) const { return blocks::Load<Value>(values_ + uint64_t{i} * sizeof(Value)); }

#if defined(__x86_64__)
  // The numbers of the bits of words i .. i+15, up to n.
  QUERN_AVX512_INLINE BitmapLanes::Numbers NumbersOf(const BitmapLanes& bitmap, uint32_t i, uint32_t n) const {
    const __mmask16 lanes = BitmapLanes::FirstOf(n - i);
    const uint8_t* const at = values_ + uint64_t{i} * sizeof(Value);
    // Into the L1 cache, where no groups are evicted: into L2, TPC-H 5 and 9 took 2 % longer.
    for (uint32_t line = 0; line < kBitmapLanes * sizeof(Value); line += 64)
      PrefetchIf(prefetch_bytes_, at + prefetch_bytes_ + line);
    if constexpr (sizeof(Value) == sizeof(uint32_t))
      return bitmap.OfHalfWords(BitmapLanes::LoadHalfWords(at, lanes), lanes);
    else return bitmap.OfWords(BitmapLanes::Load(at, lanes), lanes);
  }
#endif

 private:
  const uint8_t* const values_;
  const uint64_t prefetch_bytes_;
};

// Calls f with the reader of these words.
template <class F>
auto WithReader(const KeyWords& words, F&& f) {
  return words.value_bytes == sizeof(uint32_t) ? f(WordReader<uint32_t>(words)) : f(WordReader<uint64_t>(words));
}

}  // namespace quern

#endif  // QUERN_RUNTIME_ROWS_KEY_WORDS_H_
