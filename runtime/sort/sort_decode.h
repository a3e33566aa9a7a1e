// SPDX-License-Identifier: Apache-2.0
// Decodes the keys of a sort from their words.
#ifndef QUERN_RUNTIME_SORT_SORT_DECODE_H_
#define QUERN_RUNTIME_SORT_SORT_DECODE_H_

#include <cstdint>

#include "runtime/abi/sort_abi.h"

namespace quern {

// The bits of one part, for rows given by their words.
struct PartRows {
  const uint64_t* words;
  uint32_t shift;
  uint64_t flip;

  PartRows(const QuernSortKey* key, const QuernSortPart* part, const uint64_t* const* all_words)
      : words(all_words[part->word]),
        shift(part->shift),
        flip(part->kind == kNullPart ? uint64_t{key->nulls_first} : SortFlip(key, part)) {}

  // The part's bits are the lowest ones of the result. The null part: 1 for null.
  uint64_t operator[](uint32_t i) const { return words[i] >> shift ^ flip; }
};

// The bits of a float from its ordered number (blocks::OrderedNumber) of the same width.
template <class T>
T FloatBits(T ordered) {
  constexpr T kSign = T{1} << (sizeof(T) * 8 - 1);
  const T is_negative = static_cast<T>((ordered >> (sizeof(T) * 8 - 1)) - 1);
  return static_cast<T>(ordered ^ ((is_negative & (kSign - 1)) | kSign));
}

// A key's parts: its null bit first, the upper half before the lower. words: the rows' words, by word.
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
  // The bits of the original float, unless that was odd (HasOddFloat).
  template <class T>
  T Float(uint32_t i) const {
    return FloatBits(static_cast<T>(low[i]));
  }
  bool Valid(uint32_t i) const { return !nullable || (nulls[i] & 1) == 0; }
};

// Dictionary codes or ranks in place of a string's bytes.
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

// Whether one of n values, rows as in kernel_abi.h, is a float that cannot be decoded from its word: -0, or a NaN other
// than the one NaN of words. Nulls are ignored, except that their values may count where rows are consecutive.
// *Cost*: about 0.1 ns a row.
bool HasOddFloat(const QuernSortKey& key, const QuernColumn& column, uint64_t first, const uint32_t* rows, uint32_t n);

}  // namespace quern

#endif  // QUERN_RUNTIME_SORT_SORT_DECODE_H_
