// SPDX-License-Identifier: Apache-2.0
// Keys of a sort out of their words.
#ifndef QUERN_RUNTIME_SORT_SORT_DECODE_H_
#define QUERN_RUNTIME_SORT_SORT_DECODE_H_

#include <cstdint>

#include "runtime/abi/sort_abi.h"

namespace quern {

// The bits of one part in rows of one word.
struct PartRows {
  const uint64_t* words;
  uint32_t shift;
  uint64_t flip;

  PartRows(const QuernSortKey* key, const QuernSortPart* part, const uint64_t* const* all_words)
      : words(all_words[part->word]),
        shift(part->shift),
        flip(part->kind == kNullPart ? uint64_t{key->nulls_first} : SortFlip(key, part)) {}

  // The lowest bits of the answer, as many as the part has. The null part: 1 for null.
  uint64_t operator[](uint32_t i) const { return words[i] >> shift ^ flip; }
};

// The number of an ordered one (blocks::OrderedNumber), of a float's width.
template <class T>
T FloatBits(T ordered) {
  constexpr T kSign = T{1} << (sizeof(T) * 8 - 1);
  const T is_negative = static_cast<T>((ordered >> (sizeof(T) * 8 - 1)) - 1);
  return static_cast<T>(ordered ^ ((is_negative & (kSign - 1)) | kSign));
}

// A key's parts: its null bit first, the upper half before the lower. words: of rows, by word.
struct RowParts {
  bool nullable;
  const QuernSortPart* parts;  // of its value
  PartRows nulls, low, high;

  RowParts(const QuernSortDescriptor* descriptor, const QuernSortKey* key, const uint64_t* const* words)
      : nullable(key->nullable),
        parts(descriptor->parts + key->first_part + (key->nullable ? 1 : 0)),
        nulls(key, descriptor->parts + key->first_part, words),
        low(key, parts + (key->storage == k128 ? 1 : 0), words),
        high(key, parts, words) {}

  template <class T>
  T Value(uint32_t i) const {
    if constexpr (sizeof(T) == 16) return static_cast<T>(high[i]) << 64 | low[i];
    else return static_cast<T>(low[i]);
  }
  // Of a float: the bits of the value that came, where it was not odd.
  template <class T>
  T Float(uint32_t i) const {
    return FloatBits(static_cast<T>(low[i]));
  }
  bool Valid(uint32_t i) const { return !nullable || (nulls[i] & 1) == 0; }
};

// Codes or ranks in the place of a string's bytes.
struct RowCodes {
  const uint64_t* words;
  uint32_t shift;
  uint64_t mask;

  RowCodes(const QuernSortDescriptor* descriptor, const QuernSortKey* key, const uint64_t* const* all_words) {
    const QuernSortPart& part = *FirstBytesPart(descriptor, key);
    words = all_words[part.word];
    shift = part.shift;
    mask = ~uint64_t{0} >> (64 - part.bits);
  }
  uint32_t operator[](uint32_t i) const { return static_cast<uint32_t>(words[i] >> shift & mask); }
};

// Whether one of n values, rows as in kernel_abi.h, is a float that its word does not give back: -0, or a NaN that is
// not the one NaN of words. Nulls do not count, but their values may, where rows are neighbours. *Cost*: about 0.1 ns a
// row.
bool HasOddFloat(const QuernSortKey& key, const QuernColumn& column, uint64_t first, const uint32_t* rows, uint32_t n);

}  // namespace quern

#endif  // QUERN_RUNTIME_SORT_SORT_DECODE_H_
