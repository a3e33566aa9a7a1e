// SPDX-License-Identifier: Apache-2.0
// Blocks of filters that read strings: equality with a constant, order relative to one, and the parts of a LIKE
// pattern. Lengths decide first, since the offsets of adjacent rows are read as vectors; few rows' bytes need to be
// read. For utf8 = 'SHIP':
//
//     offsets      0   4   8  12  15  18 ..       sixteen at a time (AVX-512), and the same one element further
//     lengths        4   4   4   3   3            = 4: mask 00111
//     bytes        4-byte word at `values + offset` against 0x50494853, an immediate of a compiled kernel
//
// If all 64 strings of a word have that length (codes of one letter, numbers of one format), their bytes are adjacent
// like numbers, and are compared like numbers. Constants of 0 to 32 bytes are compared by words that overlap (5 bytes:
// bytes 0 to 3 and 1 to 4), longer ones by blocks of 32. Byte b of a row matches where (b | mask) == byte: masks of
// 0x20 over letters are all that ignoring case costs.
//
// Strings under a collation with weights are compared this way only if all bytes between the first row and the last are
// U+0020 to U+007E, which one vectorised pass finds out; otherwise the rows are left to the runtime.
//
// LIKE '%pending%deposits%' searches the bytes of all rows at once for the first part: 64 positions at a time, by the
// part's two rarest bytes. A hit is then assigned to its row, or dropped if it crosses the row's end, and the rest of
// that row is searched for the other parts.
#ifndef QUERN_RUNTIME_BLOCKS_FILTER_STRINGS_H_
#define QUERN_RUNTIME_BLOCKS_FILTER_STRINGS_H_

#include "runtime/base/thresholds.h"
#include "runtime/blocks/filter_blocks.h"

namespace quern::blocks {

typedef uint8_t U8x64 __attribute__((vector_size(64)));

// A constant: `length` bytes followed by their masks.
struct Constant {
  const uint8_t* bytes;
  uint32_t length;

  QUERN_INLINE const uint8_t* masks() const { return bytes + length; }
};

// Ones where the word of type T at p + at differs from the constant's.
template <class T>
QUERN_INLINE T DifferenceAt(const uint8_t* p, Constant c, uint32_t at) {
  return static_cast<T>((Load<T>(p + at) | Load<T>(c.masks() + at)) ^ Load<T>(c.bytes + at));
}

// Whether the c.length bytes at p equal the constant.
QUERN_INLINE bool EqualConstant(const uint8_t* p, Constant c) {
  const uint32_t n = c.length;
  if (n == 0) return true;
  if (n == 1) return DifferenceAt<uint8_t>(p, c, 0) == 0;
  if (n < 4) return (DifferenceAt<uint16_t>(p, c, 0) | DifferenceAt<uint16_t>(p, c, n - 2)) == 0;
  if (n <= 8) return (DifferenceAt<uint32_t>(p, c, 0) | DifferenceAt<uint32_t>(p, c, n - 4)) == 0;
  if (n <= 16) return (DifferenceAt<uint64_t>(p, c, 0) | DifferenceAt<uint64_t>(p, c, n - 8)) == 0;
  if (n <= 32) {
    return (DifferenceAt<uint64_t>(p, c, 0) | DifferenceAt<uint64_t>(p, c, 8) | DifferenceAt<uint64_t>(p, c, n - 16) |
            DifferenceAt<uint64_t>(p, c, n - 8)) == 0;
  }
  for (uint32_t at = 0;; at = at + 64 <= n ? at + 32 : n - 32) {
    if (AnyBit((Load<U64x4>(p + at) | Load<U64x4>(c.masks() + at)) ^ Load<U64x4>(c.bytes + at))) return false;
    if (at + 32 == n) return true;
  }
}

// Whether all bytes of [p, end) are U+0020 to U+007E.
QUERN_INLINE bool IsPrintable(const uint8_t* p, const uint8_t* end) {
  for (; end - p >= 64; p += 64) {
    if (MaskBits((U8x64)((U8x64)(Load<U8x64>(p) - uint8_t{0x20}) > uint8_t{0x5e})) != 0) return false;
  }
  for (; end - p >= 8; p += 8) {
    const uint64_t word = Load<uint64_t>(p), ones = 0x0101010101010101u;
    // Bytes of 0x80 and above have the highest bit; those below 0x20 borrow, and 0x7f carries.
    if (((word | (word - ones * 0x20) | (word + ones)) & (ones << 7)) != 0) return false;
  }
  for (; p < end; ++p)
    if (static_cast<uint8_t>(*p - 0x20) > 0x5e) return false;
  return true;
}

// The rows of a word whose strings have `length` bytes, or, with kLonger, more.
template <class Offset, bool kLonger>
QUERN_INLINE uint64_t LengthWord(const uint8_t* offsets, uint32_t length) {
  typedef typename SignedOf<Offset>::Type S;
  typedef S V __attribute__((vector_size(64)));
  uint64_t bits = 0;
  QUERN_UNROLLED for (uint32_t b = 0; b < sizeof(Offset); ++b) {
    const V lengths = Load<V>(offsets + b * 64 + sizeof(Offset)) - Load<V>(offsets + b * 64);
    bits |=
        (kLonger ? MaskBits((V)(lengths > static_cast<S>(length))) : MaskBits((V)(lengths == static_cast<S>(length))))
        << (b * (64 / sizeof(Offset)) % 64);
  }
  return bits;
}

// 64 adjacent strings of c.length bytes: 1, 2, 4 or 8.
template <class T>
QUERN_INLINE uint64_t EqualRun(const uint8_t* p, Constant c) {
  typedef T V __attribute__((vector_size(64)));
  uint64_t bits = 0;
  QUERN_UNROLLED for (uint32_t b = 0; b < sizeof(T); ++b) {
    const V v = Load<V>(p + b * 64) | Load<T>(c.masks());
    bits |= MaskBits((V)(v == Load<T>(c.bytes))) << (b * (64 / sizeof(T)) % 64);
  }
  return bits;
}

// A constant to search for, and the positions of two of its bytes, preferably its rarest.
struct Part {
  Constant constant;
  uint32_t first, second;
};

QUERN_INLINE Part PartOf(const uint8_t* constants, uint32_t index) {
  const auto header = Load<QuernLikePart>(constants + index * sizeof(QuernLikePart));
  return {{constants + header.offset, header.length}, header.first, header.second};
}

// See MayReadShort.
QUERN_INLINE bool MayRead64(const uint8_t* p) {
#if defined(QUERN_SANITIZED)
  (void)p;
  return false;
#else
  return (reinterpret_cast<uintptr_t>(p) & 4095) <= 4096 - 64;
#endif
}

// At which of 64 positions from p on the part's two bytes match.
QUERN_INLINE uint64_t Probe64(const uint8_t* p, const Part& part) {
  const Constant& c = part.constant;
  const U8x64 a = Load<U8x64>(p + part.first) | c.masks()[part.first],
              b = Load<U8x64>(p + part.second) | c.masks()[part.second];
  return MaskBits((U8x64)((U8x64)(a == c.bytes[part.first]) & (U8x64)(b == c.bytes[part.second])));
}

// Whether [begin, end) may contain the constant: false if its first and last byte never occur at the right distance.
QUERN_INLINE bool MayContain(const uint8_t* begin, const uint8_t* end, Constant c) {
  const Part part = {c, 0, c.length - 1};
  for (const uint8_t* p = begin; p + c.length <= end; p += 64) {
    const auto left = static_cast<uint64_t>(end - p) - c.length + 1;
    if (left < 64 && !(MayRead64(p) && MayRead64(p + part.second))) return true;
    const uint64_t hits = Probe64(p, part);
    if ((left < 64 ? hits << (64 - left) : hits) != 0) return true;
  }
  return false;
}

// Whether the c.length bytes at p begin as the constant does: compares 8 bytes of it, or all.
QUERN_INLINE bool BeginsLike(const uint8_t* p, Constant c) {
  return c.length > 8 ? DifferenceAt<uint64_t>(p, c, 0) == 0 : EqualConstant(p, c);
}

enum class Affix : uint8_t { kWhole, kBeginning, kEnd };

// Whether a string of `length` bytes at p, at least as long as the constant, has it at its beginning or end, or begins
// with its first 8 bytes.
template <Affix kAffix>
QUERN_INLINE bool HasAffix(const uint8_t* p, Constant c) {
  if constexpr (kAffix == Affix::kBeginning) return BeginsLike(p, c);
  return EqualConstant(p, c);
}

constexpr uint32_t kManyRows = thresholds::kBranchFreeRows;

// Which of the 64 rows' strings contain the constant: at their beginning (kWhole), there as far as 8 bytes show
// (kBeginning), or at their end. `candidates`: rows that are not null and long enough; `alive`: rows whose offsets are
// valid.
template <class Offset, Affix kAffix>
QUERN_INLINE uint64_t AffixWord(const uint8_t* values, const uint8_t* offsets, uint64_t candidates, uint64_t alive,
                                Constant c) {
  constexpr int64_t kFewBytes = thresholds::kScannedTextBytes;
  if (candidates == 0 || c.length == 0) return candidates;
  const bool is_short = kAffix == Affix::kBeginning || c.length <= kShortBytes;
  uint64_t bits = 0;
  if (alive == ~uint64_t{0} && is_short && static_cast<uint32_t>(__builtin_popcountll(candidates)) >= kManyRows) {
    // Rows that are too short read a neighbour's bytes, within those of the word; their results are ignored.
    const auto begin = static_cast<int64_t>(LoadAt<Offset>(offsets, 0)),
               end = static_cast<int64_t>(LoadAt<Offset>(offsets, 64));
    // Short strings: one test of all their bytes comes first, at a fifth of the cost.
    if (kAffix != Affix::kEnd && end - begin <= kFewBytes && !MayContain(values + begin, values + end, c)) return 0;
    const int64_t limit = end - c.length;
    for (uint32_t i = 0; i < 64; ++i) {
      int64_t at = static_cast<int64_t>(LoadAt<Offset>(offsets, kAffix == Affix::kEnd ? i + 1 : i));
      if (kAffix == Affix::kEnd) at = at - c.length < begin ? begin : at - c.length;
      else at = at > limit ? limit : at;
      bits |= uint64_t{HasAffix<kAffix>(values + at, c)} << i;
    }
    return bits & candidates;
  }
  for (uint64_t left = candidates; left != 0; left &= left - 1) {
    const auto i = static_cast<uint32_t>(__builtin_ctzll(left));
    const uint64_t at = kAffix == Affix::kEnd ? static_cast<uint64_t>(LoadAt<Offset>(offsets, i + 1)) - c.length
                                              : LoadAt<Offset>(offsets, i);
    bits |= uint64_t{HasAffix<kAffix>(values + at, c)} << i;
  }
  return bits;
}

QUERN_INLINE bool IsSpaces(const uint8_t* p, const uint8_t* end) {
  while (p < end && *p == ' ') ++p;
  return p == end;
}

// Which of the candidates, at least as long as the constant, equal it with spaces behind. Their first bytes leave few
// candidates.
template <class Offset>
QUERN_INLINE uint64_t PaddedWord(const uint8_t* values, const uint8_t* offsets, uint64_t candidates, uint64_t alive,
                                 Constant c) {
  uint64_t bits = 0;
  for (uint64_t left = AffixWord<Offset, Affix::kBeginning>(values, offsets, candidates, alive, c); left != 0;
       left &= left - 1) {
    const auto i = static_cast<uint32_t>(__builtin_ctzll(left));
    const uint8_t *p = values + LoadAt<Offset>(offsets, i), *end = values + LoadAt<Offset>(offsets, i + 1);
    bits |= uint64_t{EqualConstant(p, c) && IsSpaces(p + c.length, end)} << i;
  }
  return bits;
}

template <class Offset>
QUERN_INLINE uint64_t EqualWord(const uint8_t* values, const uint8_t* offsets, uint64_t alive, Constant c, bool trims) {
  const uint64_t same = LengthWord<Offset, false>(offsets, c.length) & alive;
  if (same == ~uint64_t{0} && (c.length == 1 || c.length == 2 || c.length == 4 || c.length == 8)) {
    const uint8_t* p = values + LoadAt<Offset>(offsets, 0);
    if (c.length == 1) return EqualRun<uint8_t>(p, c);
    if (c.length == 2) return EqualRun<uint16_t>(p, c);
    return c.length == 4 ? EqualRun<uint32_t>(p, c) : EqualRun<uint64_t>(p, c);
  }
  if (!trims) return AffixWord<Offset, Affix::kWhole>(values, offsets, same, alive, c);
  return PaddedWord<Offset>(values, offsets, same | (LengthWord<Offset, true>(offsets, c.length) & alive), alive, c);
}

// Compares 64 views, four at a time, with a constant of up to 12 bytes, whose own view is (low, high). Bytes behind a
// string's end in its view are ignored.
QUERN_INLINE uint64_t EqualViews(const uint8_t* views, uint32_t length, uint64_t low, uint64_t high, uint64_t low_mask,
                                 uint64_t high_mask) {
  const uint64_t low_keep = length >= 4 ? ~uint64_t{0} : (uint64_t{1} << (32 + 8 * length)) - 1;
  const uint64_t high_keep = length >= 12 ? ~uint64_t{0} : length <= 4 ? 0 : (uint64_t{1} << (8 * (length - 4))) - 1;
  const U64x8 constant = {low, high, low, high, low, high, low, high};
  const U64x8 masks = {low_mask, high_mask, low_mask, high_mask, low_mask, high_mask, low_mask, high_mask};
  const U64x8 keep = {low_keep, high_keep, low_keep, high_keep, low_keep, high_keep, low_keep, high_keep};
  uint64_t bits = 0;
  for (uint32_t b = 0; b < 16; ++b) {
    uint64_t halves = MaskBits((U64x8)((((Load<U64x8>(views + b * 64) | masks) ^ constant) & keep) == 0));
    halves &= halves >> 1 & 0x55;  // both halves of a view: bits 0, 2, 4, 6
    halves = (halves | halves >> 1) & 0x33;
    bits |= ((halves | halves >> 2) & 0x0f) << (b * 4);
  }
  return bits;
}

QUERN_INLINE uint64_t EqualViewWord(const QuernColumn* column, uint64_t row, uint64_t alive, Constant c, uint64_t low,
                                    uint64_t high, uint64_t low_mask, uint64_t high_mask) {
  const uint8_t* views = static_cast<const uint8_t*>(column->values) + row * 16;
  if (c.length <= kInlineStringBytes) return EqualViews(views, c.length, low, high, low_mask, high_mask) & alive;
  uint64_t bits = 0;
  for (uint64_t left = alive; left != 0; left &= left - 1) {
    const uint32_t i = static_cast<uint32_t>(__builtin_ctzll(left));
    if ((Load<uint64_t>(views + i * 16) | low_mask) != low) continue;
    const Bytes s = ViewReader::Read(column, static_cast<uint32_t>(row + i));
    bits |= uint64_t{EqualConstant(s.data, c)} << i;
  }
  return bits;
}

template <Storage kStorage>
using OffsetOf = typename ReaderOf<kStorage == kVar64 ? k64 : k32>::Value;

// The bytes from the first row that is left in the mask to the last one.
struct ByteRange {
  const uint8_t *begin, *end;
  uint32_t first_row, last_row;  // in the piece
  bool any;                      // whether a row is left
};

template <class Offset>
QUERN_INLINE ByteRange RangeOf(const QuernColumn* column, uint64_t first, uint32_t num_words, const uint64_t* mask) {
  uint32_t low = 0, high = num_words;
  while (low < high && mask[low] == 0) ++low;
  if (low == high) return {nullptr, nullptr, 0, 0, false};
  while (mask[high - 1] == 0) --high;
  const uint32_t first_row = low * 64 + static_cast<uint32_t>(__builtin_ctzll(mask[low]));
  const uint32_t last_row = high * 64 - 1 - static_cast<uint32_t>(__builtin_clzll(mask[high - 1]));
  const auto* values = static_cast<const uint8_t*>(column->values);
  return {values + LoadAt<Offset>(column->offsets, first + first_row),
          values + LoadAt<Offset>(column->offsets, first + last_row + 1), first_row, last_row, true};
}

// Rows to be tested later, in the order of arrival.
struct LaterRows {
  uint32_t n;
  uint16_t rows[kMaskWords * kManyRows];

  // Prefetches the first bytes of a word's rows.
  template <class Offset, class Prefetch>
  QUERN_INLINE void Add(const uint8_t* values, const uint8_t* offsets, uint32_t word, uint64_t bits) {
    for (; bits != 0; bits &= bits - 1) {
      const auto i = static_cast<uint32_t>(__builtin_ctzll(bits));
      Prefetch::For(values + LoadAt<Offset>(offsets, i));
      rows[n++] = static_cast<uint16_t>(word * 64 + i);
    }
  }
};

// If few rows of a word have the constant's length, they are tested after the lengths of all words, so that their bytes
// are already being loaded.
template <class Offset>
QUERN_INLINE void EqualPiece(const QuernColumn* column, uint64_t first, uint32_t num_words, uint64_t* mask, Constant c,
                             bool trims, bool negated, bool prefetches) {
  const auto* values = static_cast<const uint8_t*>(column->values);
  const auto* offsets = static_cast<const uint8_t*>(column->offsets) + first * sizeof(Offset);
  const bool waits = !trims && c.length > 8;
  LaterRows later;
  later.n = 0;
  uint64_t found[kMaskWords];
  for (uint32_t w = 0; w < num_words; ++w) {
    found[w] = 0;
    if (mask[w] == 0) continue;
    const uint8_t* word_offsets = offsets + w * 64 * sizeof(Offset);
    const uint64_t same = waits ? LengthWord<Offset, false>(word_offsets, c.length) & mask[w] : 0;
    if (waits && static_cast<uint32_t>(__builtin_popcountll(same)) < kManyRows) {
      WithPrefetch(prefetches ? 1 : 0, [&]<class Prefetch>() __attribute__((always_inline)) {
        later.template Add<Offset, Prefetch>(values, word_offsets, w, same);
      });
    } else {
      found[w] = EqualWord<Offset>(values, word_offsets, mask[w], c, trims);
    }
  }
  for (uint32_t k = 0; k < later.n; ++k) {
    const uint32_t i = later.rows[k];
    const uint8_t* p = values + LoadAt<Offset>(offsets, i);
    // The bytes that follow may be in another cache line; few rows get that far.
    if (BeginsLike(p, c)) found[i / 64] |= uint64_t{EqualConstant(p, c)} << i % 64;
  }
  for (uint32_t w = 0; w < num_words; ++w) mask[w] &= negated ? ~found[w] : found[w];
}

// A string column = constant, under a rule that compares bytes or folds their case. `view`: low, high and their masks
// (QuernFilterLeaf).
template <Storage kStorage>
QUERN_INLINE uint32_t TestEqual(const QuernColumn* column, uint64_t first, const uint32_t* rows, uint32_t n,
                                uint64_t* mask, const uint8_t* constants, uint32_t length, uint64_t low, uint64_t high,
                                uint64_t low_mask, uint64_t high_mask, CollationRule rule, bool negated,
                                bool prefetches) {
  const uint32_t num_words = FullWords(rows, n);
  const Constant c = {constants, length};
  if constexpr (kStorage == kView) {
    if ((rule & (kTrimsSpaces | kWeighsEquality)) != 0) return 0;
    for (uint32_t w = 0; w < num_words; ++w) {
      if (mask[w] == 0) continue;
      const uint64_t bits = EqualViewWord(column, first + w * 64, mask[w], c, low, high, low_mask, high_mask);
      mask[w] &= negated ? ~bits : bits;
    }
  } else {
    using Offset = OffsetOf<kStorage>;
    if ((rule & kWeighsEquality) != 0) {
      if ((rule & kFoldsAscii) == 0) return 0;
      const ByteRange range = RangeOf<Offset>(column, first, num_words, mask);
      if (!IsPrintable(range.begin, range.end)) return 0;
    }
    if (length == kNoLength) {
      if (!negated) __builtin_memset(mask, 0, num_words * 8);
      return num_words * 64;
    }
    EqualPiece<Offset>(column, first, num_words, mask, c, (rule & kTrimsSpaces) != 0, negated, prefetches);
  }
  return num_words * 64;
}

// The first 8 bytes as a number of the same order, with zeros behind the string's end, or spaces if these are padding.
QUERN_INLINE uint64_t LeadWord(Bytes s, CollationRule rule) {
  const uint64_t padding = (rule & kPadsSpaces) != 0 ? 0x2020202020202020u : 0;
  const uint32_t held = s.length < 8 ? s.length : 8;
  // No branch depends on the length, except where a string ends at the end of a page.
  if (__builtin_expect(static_cast<int>(MayReadShort(s.data)) & static_cast<int>(held != 0), 1)) {
    const uint64_t mask = Load<uint64_t>(ShortMask(held));
    return __builtin_bswap64((Load<uint64_t>(s.data) & mask) | (padding & ~mask));
  }
  if (held == 8) return __builtin_bswap64(Load<uint64_t>(s.data));
  return __builtin_bswap64(ReadTail(s.data, held) | padding << (8 * held));
}

QUERN_INLINE int32_t SignOf(uint64_t a, uint64_t b) {
  return static_cast<int32_t>(a > b) - static_cast<int32_t>(a < b);
}

// `s OP text`; lead is the LeadWord of `text`.
QUERN_INLINE bool OrderHolds(Bytes s, uint64_t lead, const uint8_t* text, uint32_t text_length, CollationRule rule,
                             uint8_t comparison) {
  if ((rule & kWeighsOrder) == 0) {
    if ((rule & kTrimsSpaces) != 0 && (rule & kPadsSpaces) == 0) s = TrimSpaces(s);
    const uint64_t word = LeadWord(s, rule);
    const int32_t order = SignOf(word, lead);
    // If the text is no longer than its word, and the word is also the string's, then one is a prefix of the other;
    // with padding, up to that point.
    if (text_length <= 8 && (rule & kPadsSpaces) == 0)
      return Holds(order != 0 ? order : SignOf(s.length, text_length), 0, comparison);
    if (text_length <= 8 && s.length <= 8) return Holds(order, 0, comparison);
    if (order != 0) return Holds(order, 0, comparison);
  }
  return Holds(quern_rt_filter_compare(s.data, s.length, text, text_length, rule), 0, comparison);
}

template <Storage kStorage>
QUERN_INLINE uint32_t TestOrder(const QuernColumn* column, uint64_t first, const uint32_t* rows, uint32_t n,
                                uint64_t* mask, uint64_t lead, const uint8_t* text, uint32_t text_length,
                                CollationRule rule, uint8_t comparison) {
  const uint32_t num_words = FullWords(rows, n);
  TestRows(mask, num_words * 64, false, [&](uint32_t i) __attribute__((always_inline)) {
    const Bytes s = ReaderOf<kStorage>::Read(column, static_cast<uint32_t>(first + i));
    return OrderHolds(s, lead, text, text_length, rule, comparison);
  });
  return num_words * 64;
}

// ---- LIKE ----

// The same for n < 64 positions, one by one.
QUERN_INLINE uint64_t ProbeFew(const uint8_t* p, uint64_t n, const Part& part) {
  const Constant& c = part.constant;
  uint64_t hits = 0;
  for (uint64_t i = 0; i < n; ++i) {
    const bool is_first = (p[i + part.first] | c.masks()[part.first]) == c.bytes[part.first];
    const bool is_second = (p[i + part.second] | c.masks()[part.second]) == c.bytes[part.second];
    hits |= uint64_t{is_first && is_second} << i;
  }
  return hits;
}

// The first occurrence of the part in [p, end), or nullptr. *Cost*: about 0.03 ns a byte if its rare bytes are rare.
QUERN_INLINE const uint8_t* FindPart(const uint8_t* p, const uint8_t* end, const Part& part) {
  if (end - p < static_cast<int64_t>(part.constant.length)) return nullptr;
  const uint8_t* last = end - part.constant.length;
  while (true) {
    const uint64_t left = static_cast<uint64_t>(last - p) + 1;
    uint64_t hits;
    if (left >= 64) {
      hits = Probe64(p, part);
    } else if (MayRead64(p + part.first) && MayRead64(p + part.second)) {
      hits = Probe64(p, part) & ((uint64_t{1} << left) - 1);
    } else {
      hits = ProbeFew(p, left, part);
    }
    for (; hits != 0; hits &= hits - 1) {
      const uint8_t* at = p + __builtin_ctzll(hits);
      if (EqualConstant(at, part.constant)) return at;
    }
    if (left <= 64) return nullptr;
    p += 64;
  }
}

// Whether [p, end) contains the inner parts first .. num_parts-1, in order. Two are searched for here; patterns with
// more are few and take a call.
QUERN_INLINE bool FindParts(const uint8_t* p, const uint8_t* end, const uint8_t* constants, uint32_t first,
                            uint32_t num_parts) {
  if (first == num_parts) return true;
  const Part part = PartOf(constants, first + 2);
  const uint8_t* at = FindPart(p, end, part);
  if (at == nullptr || first + 1 == num_parts) return at != nullptr;
  const Part next = PartOf(constants, first + 3);
  at = FindPart(at + part.constant.length, end, next);
  if (at == nullptr || first + 2 == num_parts) return at != nullptr;
  return quern_rt_filter_parts(at + next.constant.length, end, constants, first + 2, num_parts);
}

// Whether a string matches the pattern: prefix, suffix, and the inner parts.
QUERN_INLINE bool MatchesParts(Bytes s, const uint8_t* constants, uint32_t num_parts, uint32_t min_length,
                               bool is_whole) {
  if (is_whole ? s.length != min_length : s.length < min_length) return false;
  const Constant prefix = PartOf(constants, 0).constant, suffix = PartOf(constants, 1).constant;
  if (!EqualConstant(s.data, prefix) || !EqualConstant(s.data + s.length - suffix.length, suffix)) return false;
  return FindParts(s.data + prefix.length, s.data + s.length - suffix.length, constants, 0, num_parts);
}

// For patterns with '%' at both ends: searches the bytes of all rows at once for the first part. `found` gets the rows
// that match.
template <class Offset>
QUERN_INLINE void SearchRows(const QuernColumn* column, uint64_t first, const ByteRange& range, const uint64_t* mask,
                             const uint8_t* constants, uint32_t num_parts, uint64_t* found) {
  constexpr uint32_t kStride = 16;
  const auto* values = static_cast<const uint8_t*>(column->values);
  const auto* offsets = static_cast<const uint8_t*>(column->offsets) + first * sizeof(Offset);
  const Part part = PartOf(constants, 2);
  uint32_t row = range.first_row;
  for (const uint8_t* p = range.begin;;) {
    const uint8_t* at = FindPart(p, range.end, part);
    if (at == nullptr) return;
    const auto offset = static_cast<Offset>(at - values);
    while (row + kStride <= range.last_row && LoadAt<Offset>(offsets, row + kStride) <= offset) row += kStride;
    while (LoadAt<Offset>(offsets, row + 1) <= offset) ++row;
    const uint8_t* row_end = values + LoadAt<Offset>(offsets, row + 1);
    const uint8_t* rest = at + part.constant.length;
    if (rest <= row_end && (mask[row / 64] >> row % 64 & 1) != 0 && FindParts(rest, row_end, constants, 1, num_parts)) {
      found[row / 64] |= uint64_t{1} << row % 64;
    }
    p = row_end;
  }
}

// The rows of a piece that match the pattern's prefix and suffix, if it has any.
template <class Offset>
QUERN_INLINE void TestAffixes(const QuernColumn* column, uint64_t first, uint32_t num_words, const uint64_t* mask,
                              const uint8_t* constants, uint32_t min_length, bool is_whole, uint64_t* found) {
  const auto* values = static_cast<const uint8_t*>(column->values);
  const auto* offsets = static_cast<const uint8_t*>(column->offsets) + first * sizeof(Offset);
  const Constant prefix = PartOf(constants, 0).constant, suffix = PartOf(constants, 1).constant;
  for (uint32_t w = 0; w < num_words; ++w, offsets += 64 * sizeof(Offset)) {
    uint64_t bits = mask[w];
    if (bits != 0 && is_whole) bits &= LengthWord<Offset, false>(offsets, min_length);
    else if (bits != 0 && min_length != 0) bits &= LengthWord<Offset, true>(offsets, min_length - 1);
    bits = AffixWord<Offset, Affix::kWhole>(values, offsets, bits, mask[w], prefix);
    found[w] = AffixWord<Offset, Affix::kEnd>(values, offsets, bits, mask[w], suffix);
  }
}

QUERN_INLINE uint32_t CountRows(const uint64_t* mask, uint32_t num_words) {
  uint32_t rows = 0;
  for (uint32_t w = 0; w < num_words; ++w) rows += static_cast<uint32_t>(__builtin_popcountll(mask[w]));
  return rows;
}

// LIKE with a pattern of literal parts between '%', for views: row by row.
QUERN_INLINE uint32_t TestViewParts(const QuernColumn* column, uint64_t first, uint32_t num_words, uint64_t* mask,
                                    const uint8_t* constants, uint32_t num_parts, uint32_t min_length, bool is_whole,
                                    bool negated) {
  TestRows(mask, num_words * 64, negated, [&](uint32_t i) __attribute__((always_inline)) {
    return MatchesParts(ViewReader::Read(column, static_cast<uint32_t>(first + i)), constants, num_parts, min_length,
                        is_whole);
  });
  return num_words * 64;
}

// The same for adjacent strings.
template <class Offset>
QUERN_INLINE uint32_t TestVarParts(const QuernColumn* column, uint64_t first, uint32_t num_words, uint64_t* mask,
                                   const uint8_t* constants, uint32_t num_parts, uint32_t min_length, bool is_whole,
                                   bool has_affixes, CollationRule rule, bool negated) {
  const ByteRange range = RangeOf<Offset>(column, first, num_words, mask);
  if (!range.any) return num_words * 64;
  if ((rule & kFoldsAscii) != 0 && !IsPrintable(range.begin, range.end)) return 0;
  uint64_t found[kMaskWords];
  if (!has_affixes && num_parts != 0) {
    // If few rows are left, searching the bytes between them would be wasted.
    if (CountRows(mask, num_words) < (range.last_row - range.first_row + 1) / 4) return 0;
    __builtin_memset(found, 0, num_words * 8);
    SearchRows<Offset>(column, first, range, mask, constants, num_parts, found);
  } else {
    TestAffixes<Offset>(column, first, num_words, mask, constants, min_length, is_whole, found);
    const uint32_t prefix = PartOf(constants, 0).constant.length, suffix = PartOf(constants, 1).constant.length;
    if (num_parts != 0) {
      TestRows(found, num_words * 64, false, [&](uint32_t i) __attribute__((always_inline)) {
        const Bytes s = VarReader<Offset>::Read(column, static_cast<uint32_t>(first + i));
        return FindParts(s.data + prefix, s.data + s.length - suffix, constants, 0, num_parts);
      });
    }
  }
  for (uint32_t w = 0; w < num_words; ++w) mask[w] &= negated ? ~found[w] : found[w];
  return num_words * 64;
}

// num_parts, min_length, is_whole, has_affixes and all of `constants` are constants of a kernel.
template <Storage kStorage>
QUERN_INLINE uint32_t TestParts(const QuernColumn* column, uint64_t first, const uint32_t* rows, uint32_t n,
                                uint64_t* mask, const uint8_t* constants, uint32_t num_parts, uint32_t min_length,
                                bool is_whole, bool has_affixes, CollationRule rule, bool negated) {
  const uint32_t num_words = FullWords(rows, n);
  if constexpr (kStorage == kView) {
    if ((rule & kFoldsAscii) != 0) return 0;
    return TestViewParts(column, first, num_words, mask, constants, num_parts, min_length, is_whole, negated);
  } else {
    return TestVarParts<OffsetOf<kStorage>>(column, first, num_words, mask, constants, num_parts, min_length, is_whole,
                                            has_affixes, rule, negated);
  }
}

}  // namespace quern::blocks

#endif  // QUERN_RUNTIME_BLOCKS_FILTER_STRINGS_H_
