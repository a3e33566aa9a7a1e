// SPDX-License-Identifier: Apache-2.0
// Flags and codes, which most keys with few groups are, have one length. Their bytes are then contiguous, and a block
// of them is a column of numbers, which needs no offsets and is widened many at a time:
//
//     offsets  7 8 9 10 11      all differ by one        bytes  N N R A      words  02 4e | 02 4e | 02 52 | 02 41
//
// Views hold short strings themselves, so neighbouring ones are a column of 128-bit numbers, whatever their lengths.
#include "runtime/aggregate/tables/short_key_packing.h"

#include <algorithm>
#include <type_traits>

#include "runtime/base/cpu.h"
#include "runtime/base/prefetch_line.h"
#include "runtime/blocks/blocks.h"

namespace quern {
namespace {

constexpr uint32_t kLineBytes = 64;

// Calls f(begin, end) for pieces of a stream, and prefetches as many lines further on before each: between two blocks
// of a column's rows, the processor reads so much else that its own prefetcher misses the stream. Pieces are long
// enough for vector loops.
template <class Prefetch, class F>
QUERN_INLINE void ForEachPiece(const uint8_t* values, uint32_t value_bytes, uint32_t n, uint32_t rows_ahead, F&& f) {
  constexpr uint32_t kRowsAtATime = 128;
  uint32_t i = 0;
  for (; i + kRowsAtATime <= n; i += kRowsAtATime) {
    for (uint32_t at = 0; at < kRowsAtATime * value_bytes; at += kLineBytes)
      Prefetch::For(values + (i + rows_ahead) * value_bytes + at);
    f(i, i + kRowsAtATime);
  }
  f(i, n);
}

template <class Prefetch, class Offset>
QUERN_INLINE bool HaveLength(const Offset* offsets, uint32_t n, uint32_t rows_ahead, Offset length) {
  Offset differing = 0;
  ForEachPiece<Prefetch>(reinterpret_cast<const uint8_t*>(offsets), sizeof(Offset), n, rows_ahead,
                         [&](uint32_t begin, uint32_t end) {
                           for (uint32_t i = begin; i < end; ++i) differing |= (offsets[i + 1] - offsets[i]) ^ length;
                         });
  return differing == 0;
}

template <class Letters, class Prefetch>
QUERN_INLINE void AddLetters(const uint8_t* bytes, uint32_t n, uint32_t rows_ahead, uint32_t shift, uint64_t* words) {
  ForEachPiece<Prefetch>(bytes, sizeof(Letters), n, rows_ahead, [&](uint32_t begin, uint32_t end) {
    for (uint32_t i = begin; i < end; ++i) {
      words[i] |= (static_cast<uint64_t>(blocks::LoadAt<Letters>(bytes, i)) << 8 | (sizeof(Letters) + 1)) << shift;
    }
  });
}

// Adds n neighbouring strings if all have the length of the first, and it is one or two. Returns this length; 0:
// nothing was added.
template <class Prefetch, class Offset>
QUERN_INLINE uint32_t AddEven(const Offset* offsets, const uint8_t* bytes, uint32_t n, const WordPart& part,
                              uint64_t* words) {
  const uint32_t rows_ahead = part.prefetch_bytes / 4, shift = part.shift;
  const Offset length = offsets[1] - offsets[0];
  if ((length != 1 && length != 2) || !HaveLength<Prefetch>(offsets, n, rows_ahead, length)) return 0;
  if (length == 1) AddLetters<uint8_t, Prefetch>(bytes + offsets[0], n, rows_ahead, shift, words);
  else AddLetters<uint16_t, Prefetch>(bytes + offsets[0], n, rows_ahead, shift, words);
  return static_cast<uint32_t>(length);
}

#if defined(__x86_64__)
template <class Prefetch, class Offset>
QUERN_WIDE uint32_t AddEvenWide(const Offset* offsets, const uint8_t* bytes, uint32_t n, const WordPart& part,
                                uint64_t* words) {
  return AddEven<Prefetch>(offsets, bytes, n, part, words);
}
#endif

template <class Offset>
uint32_t AddEvenStrings(const QuernColumn& column, const KeyRows& rows, const WordPart& part, uint64_t* words) {
  const Offset* const offsets = static_cast<const Offset*>(column.offsets) + rows.first;
  const uint8_t* const bytes = static_cast<const uint8_t*>(column.values);
  return WithPrefetch(part.prefetch_bytes, [&]<class Prefetch>() {
#if defined(__x86_64__)
    if (part.uses_vectors && HasAvx512()) return AddEvenWide<Prefetch>(offsets, bytes, rows.n, part, words);
#endif
    return AddEven<Prefetch>(offsets, bytes, rows.n, part, words);
  });
}

// ---- neighbouring views ----

// The word of a string of up to seven bytes: its length plus one, then its text. Nothing is assumed of the view's bytes
// behind the end.
//
//     low   03 00 00 00 'N' 'Y' 'C' ..    high  ..      word  04 'N' 'Y' 'C'
QUERN_INLINE uint64_t WordOfView(uint64_t low, uint64_t high) {
  const uint64_t length = low & 0xffff'ffff, text = low >> 32 | high << 32;
  const uint64_t kept = length < sizeof(text) ? ~(~uint64_t{0} << (length * 8)) : ~uint64_t{0};
  return (text & kept) << 8 | ((length + 1) & 0xff);
}

constexpr uint32_t kViewBytes = 16;

template <class Prefetch>
QUERN_INLINE uint32_t AddViews(const uint8_t* views, uint32_t n, const WordPart& part, uint64_t* words) {
  const uint32_t shift = part.shift;
  uint64_t longest = 0;
  ForEachPiece<Prefetch>(views, kViewBytes, n, part.prefetch_bytes / kViewBytes, [&](uint32_t begin, uint32_t end) {
    for (uint32_t i = begin; i < end; ++i) {
      const uint64_t low = blocks::LoadAt<uint64_t>(views, 2 * i), high = blocks::LoadAt<uint64_t>(views, 2 * i + 1);
      longest = std::max(longest, low & 0xffff'ffff);
      words[i] |= WordOfView(low, high) << shift;
    }
  });
  return static_cast<uint32_t>(longest);
}

#if defined(__x86_64__)
template <class Prefetch>
QUERN_WIDE uint32_t AddViewsWide(const uint8_t* views, uint32_t n, const WordPart& part, uint64_t* words) {
  return AddViews<Prefetch>(views, n, part, words);
}
#endif

uint32_t AddAllViews(const QuernColumn& column, const KeyRows& rows, const WordPart& part, uint64_t* words) {
  const uint8_t* const views = static_cast<const uint8_t*>(column.values) + uint64_t{rows.first} * kViewBytes;
  return WithPrefetch(part.prefetch_bytes, [&]<class Prefetch>() {
#if defined(__x86_64__)
    if (part.uses_vectors && HasAvx512()) return AddViewsWide<Prefetch>(views, rows.n, part, words);
#endif
    return AddViews<Prefetch>(views, rows.n, part, words);
  });
}

// ---- other rows ----

// The first 8 bytes as a number, padded with zeros.
QUERN_INLINE uint64_t FirstBytes(blocks::Bytes s) {
  if (__builtin_expect(static_cast<int>(s.length != 0) & static_cast<int>(blocks::MayReadShort(s.data)), 1))
    return blocks::Load<uint64_t>(s.data) &
           blocks::Load<uint64_t>(blocks::ShortMask(std::min(s.length, blocks::kShortBytes)));
  return blocks::ReadTail(s.data, s.length);
}

template <Storage kStorage>
uint32_t AddKeys(const QuernColumn& column, const KeyRows& rows, const WordPart& part, uint64_t* words) {
  const QuernColumn c = column;  // a copy, so that the compiler need not assume that stores change it
  const uint32_t shift = part.shift;
  uint32_t longest = 0;
  if constexpr (kStorage == kVar32 || kStorage == kVar64) {
    using Offset = std::conditional_t<kStorage == kVar32, int32_t, int64_t>;
    if (rows.rows == nullptr) longest = AddEvenStrings<Offset>(c, rows, part, words);
    if (longest != 0) return longest;
  }
  if constexpr (kStorage == kView) {
    if (rows.rows == nullptr) return AddAllViews(c, rows, part, words);
  }
  for (uint32_t i = 0; i < rows.n; ++i) {
    const uint32_t row = blocks::RowAt(rows.rows, rows.first, i);
    if constexpr (blocks::IsVariableStorage(kStorage)) {
      const blocks::Bytes s = blocks::ReaderOf<kStorage>::Read(&c, row);
      longest = std::max(longest, s.length);
      words[i] |= (FirstBytes(s) << 8 | ((s.length + 1) & 0xff)) << shift;
    } else {
      words[i] |= static_cast<uint64_t>(blocks::ReaderOf<kStorage>::Read(&c, row)) << shift;
    }
  }
  return longest;
}

}  // namespace

uint32_t AddShortKeys(Storage storage, const QuernColumn& column, const KeyRows& rows, const WordPart& part,
                      uint64_t* words) {
  switch (storage) {
    case kBit: return AddKeys<kBit>(column, rows, part, words);
    case k8: return AddKeys<k8>(column, rows, part, words);
    case k16: return AddKeys<k16>(column, rows, part, words);
    case k32:
    case kF32: return AddKeys<k32>(column, rows, part, words);
    case kVar32: return AddKeys<kVar32>(column, rows, part, words);
    case kVar64: return AddKeys<kVar64>(column, rows, part, words);
    case kView: return AddKeys<kView>(column, rows, part, words);
    case k64:
    case k128:
    case kF64:
    case kFixed:
    case kRowId:
    case kNoStorage: break;
  }
  return 0;
}

}  // namespace quern
