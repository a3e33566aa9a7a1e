// SPDX-License-Identifier: Apache-2.0
// Blocks of sorting: encoding a key column as its parts of the words (sort_abi.h), and comparing two tuples' fields. As
// with all blocks, a compiled kernel calls them with constants and inlines them (or calls the runtime:
// out_of_line_blocks.def), and the generic kernel calls the same ones.
//
// Encoding turns a value into an unsigned number of the part's width, and shifts it to its place:
//
//     i32, part at bits 63 to 32 of word 0:    5  ->  0x00000005 ^ flip 0x80000000  ->  << 32, stored
//     f64, descending:                       1.5  ->  0x3ff8.. with its sign inverted: 0xbff8..  ->  ^ flip, all ones
//     null:                                       ->  0, whatever the flip; the null part decides
//
// Numbers are encoded eight lanes at a time if rows are adjacent; the remaining rows, and selected rows, one by one.
#ifndef QUERN_RUNTIME_BLOCKS_ENCODE_H_
#define QUERN_RUNTIME_BLOCKS_ENCODE_H_

#include "runtime/abi/sort_abi.h"
#include "runtime/blocks/blocks.h"
#include "runtime/blocks/string_prefix.h"

// Compares strings of two tuples (their StringRefs): negative, 0 or positive, in the order of the rule.
extern "C" int32_t quern_rt_order_string(const uint8_t* a, const uint8_t* b, CollationRule rule);

namespace quern::blocks {

// The first kSortPrefixBytes bytes by which n strings are ordered (order_prefix.cc), each as a number of 128 bits, the
// first byte highest: bytes of the string, or of its order key if the rule has weights. Behind the end come zeros, or
// padding if the rule pads. Returns whether two different strings may have the same number. Strings must already be
// trimmed if the rule trims.
bool OrderPrefixes(const Bytes* strings, uint32_t n, CollationRule rule, uint64_t* high, uint64_t* low);
// Bytes from .. from + 7 of their order keys, under a rule with weights. Returns whether one of them may have more.
bool OrderWords(const Bytes* strings, uint32_t n, CollationRule rule, uint32_t from, uint64_t* words);

// ---- numbers ----

constexpr bool IsFloatStorage(Storage s) { return s == kF32 || s == kF64; }

// Normalised bits as an unsigned number of the value's width and order. For floats the sign is inverted, and for
// negative ones all bits, since their magnitude counts downwards; the single NaN that normalising leaves is above
// infinity by itself. V: uint64_t or U64x8.
template <Storage kStorage, class V>
QUERN_INLINE V OrderedNumber(V v) {
  if constexpr (!IsFloatStorage(kStorage)) return v;
  else {
    constexpr uint32_t kTopBit = sizeof(typename ReaderOf<kStorage>::Value) * 8 - 1;
    constexpr uint64_t kSign = uint64_t{1} << kTopBit;
    return v ^ ((-(v >> kTopBit) & (kSign - 1)) | kSign);
  }
}

// The half of a 128-bit value that the part encodes.
template <Storage kStorage, SortPartKind kPart>
QUERN_INLINE uint64_t ReadNumber64(const QuernColumn* column, uint32_t row) {
  const auto v = ReaderOf<kStorage>::Read(column, row);
  if constexpr (kPart == kHighPart) return static_cast<uint64_t>(v >> 64);
  else return OrderedNumber<kStorage>(static_cast<uint64_t>(v));
}

template <Storage kStorage, SortPartKind kPart>
QUERN_INLINE U64x8 ReadNumberLanes(const QuernColumn* column, uint64_t first) {
  if constexpr (kStorage == k128) {
    const uint8_t* values = static_cast<const uint8_t*>(column->values) + first * 16;
    const U64x8 front = Load<U64x8>(values), back = Load<U64x8>(values + sizeof(U64x8));
    if constexpr (kPart == kHighPart) return __builtin_shufflevector(front, back, 1, 3, 5, 7, 9, 11, 13, 15);
    else return __builtin_shufflevector(front, back, 0, 2, 4, 6, 8, 10, 12, 14);
  } else {
    return OrderedNumber<kStorage>(ReadLanes<kStorage>(column, first));
  }
}

// All ones in the lanes, out of eight adjacent rows, whose rows have a value. Reads the one or two bytes that hold
// their bits.
QUERN_INLINE U64x8 ValidLanes(const uint8_t* validity, uint64_t first_bit) {
  const uint32_t bytes = validity[first_bit >> 3] | static_cast<uint32_t>(validity[(first_bit + 7) >> 3]) << 8;
  const U64x8 bits = U64x8{} + uint64_t{bytes >> (first_bit & 7)};
  return (U64x8)((bits & U64x8{1, 2, 4, 8, 16, 32, 64, 128}) != 0);
}

// Encodes a column eight rows at a time as far as possible, and returns how many rows it did: none if rows are
// selected. *Cost*: a load, a xor and a store for eight rows, about 0.1 ns a row.
template <Storage kStorage, SortPartKind kPart>
QUERN_INLINE uint32_t EncodeLanes(const QuernColumn* column, uint64_t first, const uint32_t* rows, uint32_t n,
                                  uint64_t* words, bool combine, bool nullable, uint32_t shift, uint64_t flip) {
  if (rows != nullptr) return 0;
  const QuernColumn c = *column;  // a copy, which storing a word cannot alias
  const bool has_nulls = nullable && c.validity != nullptr;
  uint32_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    U64x8 v = ReadNumberLanes<kStorage, kPart>(&c, first + i) ^ flip;
    if (has_nulls) v &= ValidLanes(c.validity, c.bit_offset + first + i);
    v <<= shift;
    Store(words + i, combine ? Load<U64x8>(words + i) | v : v);
  }
  return i;
}

// words[i] = the part of row i in its place; or-ed to the word if `combine` says that the word has been begun.
// `nullable`: the column may have nulls, whose part is 0.
template <Storage kStorage, SortPartKind kPart>
QUERN_INLINE void EncodeColumn(const QuernColumn* column, uint64_t first, const uint32_t* rows, uint32_t n,
                               uint64_t* words, bool combine, bool nullable, uint32_t shift, uint64_t flip) {
  uint32_t i = 0;
  if constexpr (kStorage != kBit)
    i = EncodeLanes<kStorage, kPart>(column, first, rows, n, words, combine, nullable, shift, flip);
  const QuernColumn c = *column;
  for (; i < n; ++i) {
    const uint32_t row = RowAt(rows, first, i);
    const bool is_null = nullable && !IsValid(&c, row);
    const uint64_t v = is_null ? 0 : (ReadNumber64<kStorage, kPart>(&c, row) ^ flip) << shift;
    words[i] = combine ? words[i] | v : v;
  }
}

// ---- nulls ----

// The null part: one bit, which is 1 for null if nulls come last and 1 for a value if they come first. Without a bitmap
// nothing is read.
QUERN_INLINE uint32_t EncodeNullLanes(const QuernColumn* column, uint64_t first, const uint32_t* rows, uint32_t n,
                                      uint64_t* words, bool combine, uint32_t shift, bool null_is_one) {
  const uint8_t* validity = column->validity;
  if (validity == nullptr && combine && null_is_one) return n;
  if (validity != nullptr && rows != nullptr) return 0;
  const uint64_t bit_offset = column->bit_offset + first;
  const uint64_t one = uint64_t{1} << shift;
  uint32_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const U64x8 valid = validity != nullptr ? ValidLanes(validity, bit_offset + i) : ~U64x8{};
    const U64x8 v = (null_is_one ? ~valid : valid) & one;
    Store(words + i, combine ? Load<U64x8>(words + i) | v : v);
  }
  return i;
}

QUERN_INLINE void EncodeNulls(const QuernColumn* column, uint64_t first, const uint32_t* rows, uint32_t n,
                              uint64_t* words, bool combine, uint32_t shift, bool null_is_one) {
  uint32_t i = EncodeNullLanes(column, first, rows, n, words, combine, shift, null_is_one);
  const QuernColumn c = *column;
  for (; i < n; ++i) {
    const bool is_null = !IsValid(&c, RowAt(rows, first, i));
    const uint64_t v = uint64_t{is_null == null_is_one} << shift;
    words[i] = combine ? words[i] | v : v;
  }
}

// ---- bytes ----

// The first kSortPrefixBytes bytes of a string as a number of 128 bits, the first byte highest.
struct BytesPrefix {
  uint64_t high, low;
};

// Eight of the bytes that follow a string's end.
constexpr uint64_t FillOf(CollationRule rule) { return (rule & kPadsSpaces) != 0 ? 0x2020202020202020u : 0; }

// The bytes of `word` where the mask has ones, and those of `fill` elsewhere.
QUERN_INLINE uint64_t Filled(uint64_t word, const uint8_t* mask, uint64_t fill) {
  return ((word ^ fill) & Load<uint64_t>(mask)) ^ fill;
}

// Whether kSortPrefixBytes bytes may be read from p on, given that the first one is readable; see MayReadShort.
QUERN_INLINE bool MayReadPrefix(const uint8_t* p) {
#if defined(QUERN_SANITIZED)
  (void)p;
  return false;
#else
  return (reinterpret_cast<uintptr_t>(p) & 4095) <= 4096 - kSortPrefixBytes;
#endif
}

// Kept out of the loop, which otherwise runs out of registers. n: kSortPrefixBytes at most.
inline __attribute__((noinline, cold)) BytesPrefix ReadPrefixAtPageEnd(const uint8_t* p, uint32_t n, uint64_t fill) {
  const uint8_t* mask = ShortMask(n);
  return {__builtin_bswap64(Filled(ReadTail(p, n), mask, fill)),
          __builtin_bswap64(Filled(n > 8 ? ReadTail(p + 8, n - 8) : 0, mask + 8, fill))};
}

// No branch depends on the length, except where a short string ends at the end of a page.
template <uint64_t kFill>
QUERN_INLINE BytesPrefix ReadPrefix(const uint8_t* p, uint32_t n) {
  const uint32_t held = n < kSortPrefixBytes ? n : kSortPrefixBytes;
  if (__builtin_expect(!MayReadPrefix(p), 0) && held < kSortPrefixBytes) return ReadPrefixAtPageEnd(p, held, kFill);
  const uint8_t* mask = ShortMask(held);
  return {__builtin_bswap64(Filled(Load<uint64_t>(p), mask, kFill)),
          __builtin_bswap64(Filled(Load<uint64_t>(p + 8), mask + 8, kFill))};
}

// Whether another string may have the same prefix. If zeros follow, "a" and "a\0" have the same prefix; if spaces do,
// their prefixes differ. p: as below.
template <CollationRule kRule>
QUERN_INLINE uint32_t IsMoreThanPrefix(Bytes s, const uint8_t* p) {
  uint32_t more = s.length > kSortPrefixBytes;
  if constexpr ((kRule & kPadsSpaces) == 0) more |= p[s.length - (s.length != 0)] == 0;
  return more;
}

// An empty string may point anywhere; these bytes are readable, and the first is not zero.
QUERN_INLINE const uint8_t* PrefixAddress(Bytes s) { return s.length != 0 ? s.data : quern_constant_short_masks; }

// Rows whose prefixes are read before they are moved to their places: 4 KiB of them.
constexpr uint32_t kPrefixRows = 256;

// Rows of a column that belong to one key.
struct KeyRows {
  const QuernSortKey* key;
  const QuernColumn* column;
  uint64_t first;
  const uint32_t* rows;
  uint32_t prefetch_bytes;  // prefetch distance for strings that are read in order; 0: none

  // Whether rows are adjacent and none is null.
  QUERN_INLINE bool IsPlain() const { return rows == nullptr && !(key->nullable && column->validity != nullptr); }
  QUERN_INLINE KeyRows From(uint32_t begin) const {
    return {key, column, first + begin, rows != nullptr ? rows + begin : nullptr, prefetch_bytes};
  }
};

// The offsets of a column's strings, if these are adjacent. Those of views are not.
template <Storage kStorage>
constexpr bool kIsRun = kStorage == kVar32 || kStorage == kVar64;
template <Storage kStorage>
QUERN_INLINE auto RunOf(const QuernColumn& column, uint64_t first, uint32_t n, uint32_t prefetch_bytes) {
  const auto* values = static_cast<const uint8_t*>(column.values);
  if constexpr (kStorage == kVar32)
    return StringRun<int32_t>{values, static_cast<const int32_t*>(column.offsets) + first, n + 1, prefetch_bytes};
  else return StringRun<int64_t>{values, static_cast<const int64_t*>(column.offsets) + first, n + 1, prefetch_bytes};
}

// Reads the prefixes of n rows, inverted if the key is descending and 0 for nulls; returns whether one of them holds
// only a part of its value.
template <Storage kStorage, bool kPlain, CollationRule kRule>
QUERN_INLINE bool ReadPrefixesOf(const KeyRows& from, uint32_t n, uint64_t* high, uint64_t* low) {
  const QuernColumn c = *from.column;  // a copy, which storing a prefix cannot alias
  const uint64_t flip = from.key->descending ? ~uint64_t{0} : 0, first = from.first;
  const bool nullable = from.key->nullable;
  const uint32_t width = from.key->width_bytes;
  const uint32_t* const rows = kPlain ? nullptr : from.rows;
  uint32_t incomplete = 0, i = 0;
  if constexpr (kIsRun<kStorage> && kPlain && kRule == 0) {
    bool more = false;
    i = ReadPrefixes(RunOf<kStorage>(c, first, n, from.prefetch_bytes), n, high, low, &more);
    incomplete = more ? 1 : 0;
    for (uint32_t j = 0; j < i && flip != 0; ++j) high[j] ^= flip, low[j] ^= flip;
  }
  for (; i < n; ++i) {
    const uint32_t row = RowAt(rows, first, i);
    if (!kPlain && nullable && !IsValid(&c, row)) {
      high[i] = low[i] = 0;
      continue;
    }
    const Bytes s = ReadBytes<kStorage>(&c, row, kRule, width);
    const uint8_t* p = PrefixAddress(s);
    const BytesPrefix prefix = ReadPrefix<FillOf(kRule)>(p, s.length);
    high[i] = prefix.high ^ flip;
    low[i] = prefix.low ^ flip;
    if constexpr (kStorage == kFixed) incomplete |= s.length > kSortPrefixBytes;
    else incomplete |= IsMoreThanPrefix<kRule>(s, p);
  }
  return incomplete != 0;
}

// The same for strings with order keys.
template <Storage kStorage>
QUERN_INLINE bool WeighPrefixesOf(const KeyRows& from, uint32_t n, uint64_t* high, uint64_t* low) {
  const QuernColumn c = *from.column;
  const uint64_t flip = from.key->descending ? ~uint64_t{0} : 0;
  const bool plain = from.IsPlain(), nullable = from.key->nullable;
  Bytes strings[kPrefixRows];
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t row = RowAt(from.rows, from.first, i);
    if (!plain && nullable && !IsValid(&c, row)) strings[i] = {nullptr, 0};
    else strings[i] = ReadBytes<kStorage>(&c, row, from.key->rule, 0);
  }
  const bool incomplete = OrderPrefixes(strings, n, from.key->rule, high, low);
  if (plain && flip == 0) return incomplete;
  for (uint32_t i = 0; i < n; ++i) {
    const bool is_null = !plain && nullable && !IsValid(&c, RowAt(from.rows, from.first, i));
    high[i] = is_null ? 0 : high[i] ^ flip;
    low[i] = is_null ? 0 : low[i] ^ flip;
  }
  return incomplete;
}

// A rule for the ends of strings, as a constant.
template <CollationRule kRule>
struct EndRule {
  static constexpr CollationRule value = kRule;
};
template <Storage kStorage, class Visit>
QUERN_INLINE bool WithEndRule(CollationRule rule, Visit&& visit) {
  if constexpr (kStorage != kFixed) {
    if ((rule & kPadsSpaces) != 0) return visit(EndRule<kTrimsSpaces | kPadsSpaces>());
    if ((rule & kTrimsSpaces) != 0) return visit(EndRule<kTrimsSpaces>());
  }
  return visit(EndRule<0>());
}

template <Storage kStorage>
QUERN_INLINE bool ReadPrefixes(const KeyRows& from, uint32_t n, uint64_t* high, uint64_t* low) {
  if constexpr (kStorage != kFixed) {
    if ((from.key->rule & kWeighsOrder) != 0) return WeighPrefixesOf<kStorage>(from, n, high, low);
  }
  return WithEndRule<kStorage>(from.key->rule, [&](auto rule) __attribute__((always_inline)) {
    constexpr CollationRule kRule = decltype(rule)::value;
    if (from.IsPlain()) return ReadPrefixesOf<kStorage, true, kRule>(from, n, high, low);
    return ReadPrefixesOf<kStorage, false, kRule>(from, n, high, low);
  });
}

template <class Read>
QUERN_INLINE void WritePart(const QuernSortPart& part, uint32_t n, uint64_t* words, Read&& read) {
  const uint64_t mask = ~uint64_t{0} >> (64 - part.bits);
  const uint32_t shift = part.shift;
  if (part.begins_word) {
    for (uint32_t i = 0; i < n; ++i) words[i] = (read(i) & mask) << shift;
  } else {
    for (uint32_t i = 0; i < n; ++i) words[i] |= (read(i) & mask) << shift;
  }
}

// Moves the bytes of n prefixes from first_byte on to their place. `below`: the number of the prefix's bits after the
// part.
QUERN_INLINE void WriteBytesPart(const QuernSortPart& part, const uint64_t* high, const uint64_t* low, uint32_t n,
                                 uint64_t* words) {
  const uint32_t below = kSortPrefixBytes * 8 - part.first_byte * 8u - part.bits;
  if (below >= 64) WritePart(part, n, words, [&](uint32_t i) { return high[i] >> (below - 64); });
  else if (below == 0) WritePart(part, n, words, [&](uint32_t i) { return low[i]; });
  else WritePart(part, n, words, [&](uint32_t i) { return high[i] << (64 - below) | low[i] >> below; });
}

// The first eight bytes of a string as a number, the first byte highest.
template <uint64_t kFill>
QUERN_INLINE uint64_t ReadFront(const uint8_t* p, uint32_t n) {
#if defined(QUERN_SANITIZED)
  const bool may_read = false;
#else
  const bool may_read = (reinterpret_cast<uintptr_t>(p) & 4095) <= 4096 - 8;
#endif
  if (__builtin_expect(!may_read, 0)) return ReadPrefixAtPageEnd(p, n < 8 ? n : 8, kFill).high;
  return __builtin_bswap64(Filled(Load<uint64_t>(p), ShortMask(n < 8 ? n : 8), kFill));
}

// Encodes adjacent strings eight at a time, as many as possible, from the first on.
template <Storage kStorage>
QUERN_INLINE uint32_t EncodeFrontRun(const KeyRows& from, const QuernSortPart& part, uint32_t n, uint64_t fill,
                                     uint64_t* words) {
  const uint64_t flip = from.key->descending ? ~uint64_t{0} : 0;
  const uint32_t dropped = 64u - part.bits, shift = part.shift;
  const bool begins_word = part.begins_word;
  uint64_t fronts[kPrefixRows];
  const auto run = RunOf<kStorage>(*from.column, from.first, n, from.prefetch_bytes);
  for (uint32_t begin = 0, done = 0; begin < n; begin += done) {
    const uint32_t some = n - begin < kPrefixRows ? n - begin : kPrefixRows;
    done =
        ReadFronts({run.values, run.offsets + begin, run.num_offsets - begin, run.prefetch_bytes}, some, fill, fronts);
    for (uint32_t i = 0; i < done; ++i) {
      const uint64_t word = (fronts[i] ^ flip) >> dropped << shift;
      words[begin + i] = begins_word ? word : words[begin + i] | word;
    }
    if (done < some) return begin + done;
  }
  return n;
}

// Encodes only those of a key's bytes that are in word 0: `part`.
template <Storage kStorage, bool kPlain, CollationRule kRule>
QUERN_INLINE void EncodeFrontOf(const KeyRows& from, const QuernSortPart& part, uint32_t n, uint64_t* words) {
  const QuernColumn c = *from.column;  // a copy, which storing a word cannot alias
  const uint64_t flip = from.key->descending ? ~uint64_t{0} : 0, first = from.first;
  const bool nullable = from.key->nullable, begins_word = part.begins_word;
  const uint32_t width = from.key->width_bytes, dropped = 64u - part.bits, shift = part.shift;
  const uint32_t* const rows = kPlain ? nullptr : from.rows;
  uint32_t i = 0;
  // Spaces follow the end, so trimming makes no difference.
  if constexpr (kIsRun<kStorage> && kPlain && (kRule == 0 || (kRule & kPadsSpaces) != 0)) {
    i = EncodeFrontRun<kStorage>(from, part, n, FillOf(kRule), words);
  }
  for (; i < n; ++i) {
    const uint32_t row = RowAt(rows, first, i);
    uint64_t word = 0;
    if (kPlain || !nullable || IsValid(&c, row)) {
      const Bytes s = ReadBytes<kStorage>(&c, row, kRule, width);
      word = (ReadFront<FillOf(kRule)>(PrefixAddress(s), s.length) ^ flip) >> dropped << shift;
    }
    words[i] = begins_word ? word : words[i] | word;
  }
}

// The same for strings with order keys.
template <Storage kStorage>
QUERN_INLINE void WeighFront(const KeyRows& from, const QuernSortPart& part, uint32_t n, uint64_t* words) {
  uint64_t high[kPrefixRows], low[kPrefixRows];
  for (uint32_t begin = 0; begin < n; begin += kPrefixRows) {
    const uint32_t chunk = n - begin < kPrefixRows ? n - begin : kPrefixRows;
    WeighPrefixesOf<kStorage>(from.From(begin), chunk, high, low);
    WriteBytesPart(part, high, low, chunk, words + begin);
  }
}

template <Storage kStorage>
QUERN_INLINE void EncodeFront(const KeyRows& from, const QuernSortPart& part, uint32_t n, uint64_t* words) {
  if constexpr (kStorage != kFixed) {
    if ((from.key->rule & kWeighsOrder) != 0) return WeighFront<kStorage>(from, part, n, words);
  }
  WithEndRule<kStorage>(from.key->rule, [&](auto rule) __attribute__((always_inline)) {
    constexpr CollationRule kRule = decltype(rule)::value;
    if (from.IsPlain()) EncodeFrontOf<kStorage, true, kRule>(from, part, n, words);
    else EncodeFrontOf<kStorage, false, kRule>(from, part, n, words);
    return true;
  });
}

// Encodes the bytes of a key, a string or fixed_binary: all of its parts that lie in words below num_words. Sets bit
// `key` of *incomplete if two different values may have the same words; never if num_words is 1. Each value is read
// once. Does nothing if bit kSkipKeyShift + key of *incomplete is set. *Cost*: about 3 ns a row, half of that for word
// 0 alone.
template <Storage kStorage>
QUERN_INLINE void EncodeBytes(const QuernSortDescriptor* descriptor, uint32_t key, const QuernColumn* column,
                              uint64_t first, const uint32_t* rows, uint32_t n, uint64_t* const* words,
                              uint32_t num_words, uint32_t* incomplete) {
  if ((*incomplete >> (kSkipKeyShift + key) & 1) != 0) return;
  const QuernSortKey* k = &descriptor->keys[key];
  const KeyRows from = {k, column, first, rows, descriptor->rows.prefetch_string_bytes};
  if (num_words == 1) {
    for (uint32_t p = k->first_part; p < k->first_part + k->num_parts; ++p) {
      const QuernSortPart part = descriptor->parts[p];
      if (part.kind != kBytesPart || part.word != 0 || IsLeftOutOfLead(descriptor, &part)) continue;
      return EncodeFront<kStorage>(from, part, n, words[0]);
    }
    return;
  }
  uint64_t high[kPrefixRows], low[kPrefixRows];
  for (uint32_t begin = 0; begin < n; begin += kPrefixRows) {
    const uint32_t chunk = n - begin < kPrefixRows ? n - begin : kPrefixRows;
    const bool is_incomplete = ReadPrefixes<kStorage>(from.From(begin), chunk, high, low);
    *incomplete |= uint32_t{is_incomplete} << key;
    for (uint32_t p = k->first_part; p < k->first_part + k->num_parts; ++p) {
      const QuernSortPart part = descriptor->parts[p];
      if (part.kind == kBytesPart && part.word < num_words)
        WriteBytesPart(part, high, low, chunk, words[part.word] + begin);
    }
  }
}

// ---- two tuples ----

// Compares two strings from byte `from` on, under a rule that orders bytes as they are; strings must already be trimmed
// if it trims. Before `from` they are equal, including padding. If the rule pads, spaces follow the end of the shorter
// one for ever: the first other byte of the longer one decides.
inline int32_t OrderBytes(Bytes a, Bytes b, uint32_t from, CollationRule rule) {
  const uint32_t shorter = a.length < b.length ? a.length : b.length;
  const int32_t order = shorter > from ? __builtin_memcmp(a.data + from, b.data + from, shorter - from) : 0;
  if (order != 0 || a.length == b.length) return order;
  const int32_t if_longer_is_greater = a.length > b.length ? 1 : -1;
  if ((rule & kPadsSpaces) == 0) return if_longer_is_greater;
  const Bytes longer = a.length > b.length ? a : b;
  uint32_t i = shorter > from ? shorter : from;
  while (i < longer.length && longer.data[i] == ' ') ++i;
  if (i >= longer.length) return 0;
  return longer.data[i] > ' ' ? if_longer_is_greater : -if_longer_is_greater;
}

// The tuple holds four bytes of each string, with zeros behind the end; if they differ, they decide. If the rule pads,
// that holds only where both strings have all four; under rules that trim it does not hold, since the bytes may be ones
// that are trimmed.
QUERN_INLINE int32_t OrderString(const uint8_t* a, const uint8_t* b, CollationRule rule) {
  const bool pads = (rule & (kPadsSpaces | kWeighsOrder)) == kPadsSpaces;
  if (rule == 0 || (pads && Load<uint32_t>(a) >= 4 && Load<uint32_t>(b) >= 4)) {
    const uint32_t prefix_a = __builtin_bswap32(Load<uint32_t>(a + 4)),
                   prefix_b = __builtin_bswap32(Load<uint32_t>(b + 4));
    if (prefix_a != prefix_b) return prefix_a < prefix_b ? -1 : 1;
  }
  return quern_rt_order_string(a, b, rule);
}

template <class T>
QUERN_INLINE int32_t ThreeWay(T x, T y) {
  return static_cast<int32_t>(x > y) - static_cast<int32_t>(x < y);
}

template <class T>
QUERN_INLINE auto AsSigned(T v) {
  if constexpr (sizeof(T) == 1) return static_cast<int8_t>(v);
  else if constexpr (sizeof(T) == 2) return static_cast<int16_t>(v);
  else if constexpr (sizeof(T) == 4) return static_cast<int32_t>(v);
  else if constexpr (sizeof(T) == 8) return static_cast<int64_t>(v);
  else return static_cast<__int128>(v);
}

// Compares the fields of two tuples that hold a key's value, neither of them null, as it came: negative, 0 or positive.
// kStorage is the key's; floats have all their bits in the field and are normalised here.
template <Storage kStorage>
QUERN_INLINE int32_t OrderField(const uint8_t* a, const uint8_t* b, bool is_signed, CollationRule rule,
                                uint32_t width) {
  if constexpr (IsVariableStorage(kStorage)) return OrderString(a, b, rule);
  else if constexpr (kStorage == kFixed) return __builtin_memcmp(a, b, width);
  else {
    using T = typename ReaderOf<kStorage>::Value;
    const T x = Load<T>(a), y = Load<T>(b);
    if constexpr (IsFloatStorage(kStorage)) {
      return ThreeWay(OrderedNumber<kStorage>(uint64_t{ReaderOf<kStorage>::Normalise(x)}),
                      OrderedNumber<kStorage>(uint64_t{ReaderOf<kStorage>::Normalise(y)}));
    } else {
      return is_signed ? ThreeWay(AsSigned(x), AsSigned(y)) : ThreeWay(x, y);
    }
  }
}

}  // namespace quern::blocks

#endif  // QUERN_RUNTIME_BLOCKS_ENCODE_H_
