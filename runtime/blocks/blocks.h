// SPDX-License-Identifier: Apache-2.0
// Blocks: the smallest pieces of work of a kernel, one for each storage. A block makes one pass over one column: it
// hashes the column, compares it with tuples' fields, stores it into them, or copies it to an output column. Everything
// above is composition:
//
//     compiled kernel   calls of blocks with constants, key after key, without loops; the blocks come as bitcode
//                       (ir-templates/blocks.cc) and are always inlined, so that constants fold their branches away
//     generic kernel    calls of the same functions in a loop over the descriptor's fields
//
// Hence both agree to the bit on every hash and every tuple, and one can continue with a table that the other has
// begun.
//
// Rows are given in two ways: `rows == nullptr` means the rows first, first+1, ..; otherwise row i is rows[i]. kNullRow
// in `rows` is a null (dictionaries translate rows to rows of their values). Values under nulls are never used: they
// may be anything.
#ifndef QUERN_RUNTIME_BLOCKS_BLOCKS_H_
#define QUERN_RUNTIME_BLOCKS_BLOCKS_H_

#include "runtime/abi/kernel_abi.h"
#include "runtime/base/prefetch_line.h"
#include "runtime/collation/collate.h"

// Also declared in runtime_calls.h, which templates do not include.
// NOLINTNEXTLINE(readability-redundant-declaration)
extern "C" int32_t quern_rt_reserve_bytes(QuernOutColumn* column, uint64_t more);

namespace quern::blocks {

QUERN_INLINE bool Bit(const uint8_t* bitmap, uint64_t i) { return (bitmap[i >> 3] >> (i & 7)) & 1; }

QUERN_INLINE void SetBitTo(uint8_t* zeroed_bitmap, uint64_t i, bool value) {
  zeroed_bitmap[i >> 3] = static_cast<uint8_t>(zeroed_bitmap[i >> 3] | (value ? 1 << (i & 7) : 0));
}

QUERN_INLINE bool IsValid(const QuernColumn* column, uint32_t row) {
  return row != kNullRow && (column->validity == nullptr || Bit(column->validity, column->bit_offset + row));
}

QUERN_INLINE uint32_t RowAt(const uint32_t* rows, uint64_t first, uint32_t i) {
  return rows ? rows[i] : static_cast<uint32_t>(first + i);
}

// ---- readers: one per storage ----
//
// A reader of a fixed-width storage returns the value's bits as an unsigned integer, normalised for equality; a reader
// of strings returns bytes.

template <class T>
struct IntegerReader {
  using Value = T;
  static QUERN_INLINE T Read(const QuernColumn* c, uint32_t row) { return LoadAt<T>(c->values, row); }
  template <class V>
  static QUERN_INLINE V Normalise(V v) {
    return v;
  }
};

// Maps -0 to 0 and every NaN to one value. It works on the bits, so that it is the same for one lane and for eight.
template <class T, T kExponent, T kQuietNan>
struct FloatReader {
  using Value = T;
  static QUERN_INLINE T Read(const QuernColumn* c, uint32_t row) { return Normalise(LoadAt<T>(c->values, row)); }
  static QUERN_INLINE T Normalise(T v) {
    T magnitude = static_cast<T>(v << 1) >> 1;
    if (magnitude > kExponent) return kQuietNan;
    return magnitude == 0 ? 0 : v;
  }
  // The same for zero-extended lanes.
  static QUERN_INLINE U64x8 Normalise(U64x8 v) {
    constexpr uint64_t kSign = uint64_t{1} << (sizeof(T) * 8 - 1);
    U64x8 magnitude = v & ~kSign;
    U64x8 is_nan = (U64x8)(magnitude > static_cast<uint64_t>(kExponent));
    U64x8 is_zero = (U64x8)(magnitude == 0);
    return (v & ~is_nan & ~is_zero) | (is_nan & static_cast<uint64_t>(kQuietNan));
  }
};

struct BitReader {
  using Value = uint8_t;
  static QUERN_INLINE uint8_t Read(const QuernColumn* c, uint32_t row) {
    return Bit(static_cast<const uint8_t*>(c->values), c->bit_offset + row);
  }
};

struct WideReader {
  using Value = uint128_t;
  static QUERN_INLINE uint128_t Read(const QuernColumn* c, uint32_t row) { return LoadAt<uint128_t>(c->values, row); }
};

struct FixedReader {
  static QUERN_INLINE Bytes Read(const QuernColumn* c, uint32_t row, uint32_t width) {
    return {static_cast<const uint8_t*>(c->values) + uint64_t{row} * width, width};
  }
};

template <class Offset>
struct VarReader {
  using OffsetType = Offset;
  static QUERN_INLINE Bytes Read(const QuernColumn* c, uint32_t row) {
    Offset begin = LoadAt<Offset>(c->offsets, row), end = LoadAt<Offset>(c->offsets, uint64_t{row} + 1);
    return {static_cast<const uint8_t*>(c->values) + begin, static_cast<uint32_t>(end - begin)};
  }
};

struct ViewReader {
  static QUERN_INLINE Bytes Read(const QuernColumn* c, uint32_t row) {
    const uint8_t* view = static_cast<const uint8_t*>(c->values) + uint64_t{row} * 16;
    uint32_t length = Load<uint32_t>(view);
    if (length <= kInlineStringBytes) return {view + 4, length};
    return {c->buffers[Load<uint32_t>(view + 8)] + Load<uint32_t>(view + 12), length};
  }
};

template <Storage kStorage>
struct ReaderOf;
template <> struct ReaderOf<kBit> : BitReader {};
template <> struct ReaderOf<k8> : IntegerReader<uint8_t> {};
template <> struct ReaderOf<k16> : IntegerReader<uint16_t> {};
template <> struct ReaderOf<k32> : IntegerReader<uint32_t> {};
template <> struct ReaderOf<k64> : IntegerReader<uint64_t> {};
template <> struct ReaderOf<k128> : WideReader {};
template <> struct ReaderOf<kF32> : FloatReader<uint32_t, 0x7f800000u, 0x7fc00000u> {};
template <> struct ReaderOf<kF64> : FloatReader<uint64_t, 0x7ff0000000000000u, 0x7ff8000000000000u> {};
template <> struct ReaderOf<kFixed> : FixedReader {};
template <> struct ReaderOf<kVar32> : VarReader<int32_t> {};
template <> struct ReaderOf<kVar64> : VarReader<int64_t> {};
template <> struct ReaderOf<kView> : ViewReader {};

constexpr bool IsVariableStorage(Storage s) { return s == kVar32 || s == kVar64 || s == kView; }
constexpr bool HasLanes(Storage s) { return s == k8 || s == k16 || s == k32 || s == k64 || s == kF32 || s == kF64; }

template <Storage kStorage>
QUERN_INLINE Bytes ReadBytes(const QuernColumn* column, uint32_t row, CollationRule rule, uint32_t width) {
  if constexpr (kStorage == kFixed) return FixedReader::Read(column, row, width);
  else {
    return Trimmed(ReaderOf<kStorage>::Read(column, row), rule);
  }
}

// The 64 bits by which one value enters the hash. memo: the batch's, for strings under a rule with weights, and made
// with the same secret.
template <Storage kStorage>
QUERN_INLINE uint64_t HashInput(const QuernColumn* column, uint32_t row, CollationRule rule, uint32_t width,
                                HashMemo* memo, const HashSecret& secret) {
  if constexpr (IsVariableStorage(kStorage) || kStorage == kFixed) {
    Bytes s = ReadBytes<kStorage>(column, row, rule, width);
    if (IsVariableStorage(kStorage) && (rule & kWeighsEquality) != 0) return memo->Hash(s, rule);
    return HashBytes(s.data, s.length, secret);
  } else if constexpr (kStorage == k128) {
    uint128_t v = ReaderOf<kStorage>::Read(column, row);
    return FoldedMultiply(static_cast<uint64_t>(v) ^ secret[kMultiplier1],
                          static_cast<uint64_t>(v >> 64) ^ secret[kMultiplier2]);
  } else {
    return ReaderOf<kStorage>::Read(column, row);
  }
}

// Eight adjacent values, zero-extended and normalised.
template <Storage kStorage>
QUERN_INLINE U64x8 ReadLanes(const QuernColumn* column, uint64_t first) {
  using T = typename ReaderOf<kStorage>::Value;
  typedef T Lanes __attribute__((vector_size(sizeof(T) * kLanes)));
  Lanes lanes = Load<Lanes>(static_cast<const uint8_t*>(column->values) + first * sizeof(T));
  return ReaderOf<kStorage>::Normalise(__builtin_convertvector(lanes, U64x8));
}

// Hashes a column eight rows at a time as far as possible, and returns how many rows it did: none if rows are selected
// or may be null. *Cost*: about 0.5 ns a row.
template <Storage kStorage>
QUERN_INLINE uint32_t HashLanes(const QuernColumn* column, uint64_t first, const uint32_t* rows, uint32_t n,
                                uint64_t* hashes, bool combine, bool nullable) {
  if (rows != nullptr || (nullable && column->validity != nullptr)) return 0;
  const QuernColumn c = *column;  // a copy, which storing a hash cannot alias
  uint32_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    U64x8 v = ReadLanes<kStorage>(&c, first + i);
    Store(hashes + i, combine ? Combine(Load<U64x8>(hashes + i), v, quern_hash_secret) : Mix(v, quern_hash_secret));
  }
  return i;
}

// Values whose own hash multiplies already need no Mix.
constexpr bool IsMixed(Storage s) { return IsVariableStorage(s) || s == kFixed || s == k128; }

// Strings longer than kShortBytes, kept out of the loop over short ones.
inline __attribute__((noinline)) uint64_t HashLong(const uint8_t* p, uint32_t n) {
  return HashBytes(p, n, quern_hash_secret);
}

// Hashes adjacent strings, none of them null, and returns how many it did: all those that are followed by kShortBytes
// bytes of the column from their first byte on, of their own or of other strings, so that only the length needs a test.
// `distance` is the prefetch distance in bytes; offsets are prefetched as if a string had eight: if a table is accessed
// in between, the hardware prefetcher does not recognise the sequential reads.
template <class Offset, bool kCombines, class Prefetch>
QUERN_INLINE uint32_t HashNeighbours(const QuernColumn* column, uint64_t first, uint32_t n, uint64_t* hashes,
                                     uint32_t distance) {
  const uint8_t* const bytes = static_cast<const uint8_t*>(column->values);
  const uint8_t* const offsets = static_cast<const uint8_t*>(column->offsets) + first * sizeof(Offset);
  const uint64_t end = static_cast<uint64_t>(LoadAt<Offset>(offsets, n));
  uint32_t num_rows = n;
  while (num_rows > 0 && end - static_cast<uint64_t>(LoadAt<Offset>(offsets, num_rows - 1)) < kShortBytes) --num_rows;
  const uint8_t* const offsets_ahead = offsets + distance / 8 * sizeof(Offset);
  for (uint32_t i = 0; i < num_rows; ++i) {
    const Offset begin = LoadAt<Offset>(offsets, i);
    const uint32_t length = static_cast<uint32_t>(LoadAt<Offset>(offsets, i + 1) - begin);
    const uint8_t* const p = bytes + begin;
    Prefetch::For(offsets_ahead + uint64_t{i} * sizeof(Offset));
    Prefetch::For(p + distance);
    uint64_t hash;
    if (__builtin_expect(static_cast<int>(length <= kShortBytes), 1))
      hash = HashShort(MaskedShort(p, length), length, quern_hash_secret);
    else hash = HashLong(p, length);
    hashes[i] = kCombines ? Combine(hashes[i], hash, quern_hash_secret) : hash;
  }
  return num_rows;
}

template <Storage kStorage>
QUERN_INLINE void HashRows(const QuernColumn* column, uint64_t first, const uint32_t* rows, uint32_t n,
                           uint64_t* hashes, bool combine, bool nullable, CollationRule rule,
                           uint32_t width_or_distance, HashMemo* memo) {
  const uint32_t width = kStorage == kFixed ? width_or_distance : 0;
  uint32_t i = 0;
  if constexpr (HasLanes(kStorage)) i = HashLanes<kStorage>(column, first, rows, n, hashes, combine, nullable);
  if constexpr (kStorage == kVar32 || kStorage == kVar64) {
    if (rule == 0 && rows == nullptr && n > 0 && !(nullable && column->validity != nullptr)) {
      using Offset = typename ReaderOf<kStorage>::OffsetType;
      i = WithPrefetch(width_or_distance, [&]<class Prefetch>() __attribute__((always_inline)) {
        return combine ? HashNeighbours<Offset, true, Prefetch>(column, first, n, hashes, width_or_distance)
                       : HashNeighbours<Offset, false, Prefetch>(column, first, n, hashes, width_or_distance);
      });
    }
  }
  for (; i < n; ++i) {
    uint32_t row = RowAt(rows, first, i);
    uint64_t v = nullable && !IsValid(column, row)
                     ? kNullInput
                     : HashInput<kStorage>(column, row, rule, width, memo, quern_hash_secret);
    if (combine) hashes[i] = Combine(hashes[i], v, quern_hash_secret);
    else hashes[i] = IsMixed(kStorage) ? v : Mix(v, quern_hash_secret);
  }
}

// Hashes one key column of a batch: hashes[i] = Mix(value), or Combine(hashes[i], value) if a key came before. A null
// (only if `nullable`: keys whose nulls are equal) enters as kNullInput. Strings are weighed, trimmed or taken as they
// are, each in a loop of its own.
template <Storage kStorage>
QUERN_INLINE void HashColumn(const QuernColumn* column, uint64_t first, const uint32_t* rows, uint32_t n,
                             uint64_t* hashes, bool combine, bool nullable, CollationRule rule,
                             uint32_t width_or_distance) {
  if (IsVariableStorage(kStorage) && (rule & kWeighsEquality) != 0) {
    HashMemo memo(&quern_hash_secret);
    HashRows<kStorage>(column, first, rows, n, hashes, combine, nullable, rule, width_or_distance, &memo);
  } else if (IsVariableStorage(kStorage) && (rule & kTrimsSpaces) != 0) {
    HashRows<kStorage>(column, first, rows, n, hashes, combine, nullable, kTrimsSpaces, width_or_distance, nullptr);
  } else {
    HashRows<kStorage>(column, first, rows, n, hashes, combine, nullable, 0, width_or_distance, nullptr);
  }
}

// ---- packed keys ----

// Packs one key column of a batch: words[i] = value << shift, or-ed to the word if a key came before. A null (only if
// `nullable`: keys whose nulls are equal) is bit `null_bit` with a value of 0. *Cost*: about 0.2 ns a row on lanes.
template <Storage kStorage>
QUERN_INLINE uint32_t PackLanes(const QuernColumn* column, uint64_t first, const uint32_t* rows, uint32_t n,
                                uint64_t* words, bool combine, bool nullable, uint32_t shift) {
  if (rows != nullptr || (nullable && column->validity != nullptr)) return 0;
  const QuernColumn c = *column;  // a copy, which storing a word cannot alias
  uint32_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    U64x8 v = ReadLanes<kStorage>(&c, first + i) << shift;
    Store(words + i, combine ? Load<U64x8>(words + i) | v : v);
  }
  return i;
}

template <Storage kStorage>
QUERN_INLINE void PackColumn(const QuernColumn* column, uint64_t first, const uint32_t* rows, uint32_t n,
                             uint64_t* words, bool combine, bool nullable, uint32_t shift, uint32_t null_bit) {
  uint32_t i = 0;
  if constexpr (HasLanes(kStorage)) i = PackLanes<kStorage>(column, first, rows, n, words, combine, nullable, shift);
  for (; i < n; ++i) {
    uint32_t row = RowAt(rows, first, i);
    bool is_null = nullable && !IsValid(column, row);
    uint64_t v =
        is_null ? uint64_t{1} << null_bit : static_cast<uint64_t>(ReaderOf<kStorage>::Read(column, row)) << shift;
    words[i] = combine ? words[i] | v : v;
  }
}

// ---- comparing and storing: a column's value against a tuple's field ----

// No branch depends on the length, except where a string ends at the end of a page. Put together in two words: length
// and prefix, stored one after the other and loaded as a word, would wait for both stores.
QUERN_INLINE StringRef MakeStringRef(Bytes s) {
  uint64_t words[2] = {0, 0};
  const auto address = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(s.data));
  if (__builtin_expect(s.length != 0 && MayReadShort(s.data), 1)) {
    const uint8_t* mask = ShortMask(s.length < kShortBytes ? s.length : kShortBytes);
    const uint64_t rest = Load<uint64_t>(s.data + 4) & Load<uint64_t>(mask + 4);
    words[0] = uint64_t{Load<uint32_t>(s.data) & Load<uint32_t>(mask)} << 32;
    words[1] = s.length > kInlineStringBytes ? address : rest;
  } else if (s.length > kInlineStringBytes) {
    words[0] = uint64_t{Load<uint32_t>(s.data)} << 32;
    words[1] = address;
  } else {
    for (uint32_t i = 0; i < s.length; ++i) words[(i + 4) / 8] |= uint64_t{s.data[i]} << (i + 4) % 8 * 8;
  }
  words[0] |= s.length;
  StringRef ref;
  __builtin_memcpy(&ref, words, sizeof(ref));
  return ref;
}

// A key's field may hold more bytes inline than a StringRef does: `width` of them. With 16-byte keys in a field of 24
// bytes, each comparison saves one random cache line.
QUERN_INLINE uint32_t InlineBytes(uint32_t width) { return width > kInlineStringBytes ? width : kInlineStringBytes; }

// Strings of more than 16 bytes that a field of more than kShortBytes bytes holds: copied and compared by pieces of 16
// bytes that end with the string's last byte, so that nothing beyond the string is read or written. The number of
// pieces follows from `held`, the bytes that the field has for a string, which a kernel knows when it is compiled.
typedef uint64_t HeldPiece __attribute__((vector_size(16)));

QUERN_INLINE void CopyHeld(const uint8_t* from, uint8_t* to, uint32_t n, uint32_t held) {
  if (n <= sizeof(HeldPiece)) {
    __builtin_memcpy(to, from, n);
    return;
  }
  const uint32_t last = n - sizeof(HeldPiece);
  const HeldPiece back = Load<HeldPiece>(from + last);
  for (uint32_t at = 0; at + sizeof(HeldPiece) < held; at += sizeof(HeldPiece)) {
    const uint32_t place = at < last ? at : last;
    Store(to + place, Load<HeldPiece>(from + place));
  }
  Store(to + last, back);
}

QUERN_INLINE bool EqualHeld(const uint8_t* a, const uint8_t* b, uint32_t n, uint32_t held) {
  const uint32_t last = n - sizeof(HeldPiece);
  HeldPiece difference = Load<HeldPiece>(a + last) ^ Load<HeldPiece>(b + last);
  for (uint32_t at = 0; at + sizeof(HeldPiece) < held; at += sizeof(HeldPiece)) {
    const uint32_t place = at < last ? at : last;
    difference |= Load<HeldPiece>(a + place) ^ Load<HeldPiece>(b + place);
  }
  return (difference[0] | difference[1]) == 0;
}

// A string that its field holds inline is copied by two overlapping pieces that cover all of the field, after a mask
// has cleared the bytes behind the string: strings of 4 to 24 letters take 2 ns, where a copy of only their bytes takes
// 6.
QUERN_INLINE void StoreString(Bytes s, uint8_t* field, uint32_t width) {
  typedef uint64_t U64x2 __attribute__((vector_size(16)));
  // The width is tested first, since it is the same for all rows; a branch on the length is unpredictable.
  if (width <= kInlineStringBytes || s.length > width) {
    Store(field, MakeStringRef(s));
    return;
  }
  const uint8_t* mask = ShortMask(s.length < kShortBytes ? s.length : kShortBytes);
  const uint8_t* data = s.length != 0 ? s.data : ShortMask(0);  // an empty string may point anywhere
  Store(field, s.length);
  if (__builtin_expect(static_cast<int>(width <= kShortBytes) & static_cast<int>(MayReadShort(data)), 1)) {
    const uint32_t last = width - 16;
    const U64x2 front = Load<U64x2>(data) & Load<U64x2>(mask),
                back = Load<U64x2>(data + last) & Load<U64x2>(mask + last);
    Store(field + 4, front);
    Store(field + 4 + last, back);
  } else {
    CopyHeld(data, field + 4, s.length, width);
  }
}

QUERN_INLINE Bytes BytesOf(const uint8_t* field, uint32_t width) {
  const uint32_t length = Load<uint32_t>(field);
  const uint8_t* const address = Load<const uint8_t*>(field + 8);
  // An unpredictable choice: a conditional move and no branch.
  return {__builtin_expect_with_probability(length <= InlineBytes(width), 1, 0.5) ? field + 4 : address, length};
}

// A string that is no longer than the field's inline bytes is compared by two overlapping pieces that cover all of
// them, after a mask has cleared the bytes behind it, so that no branch depends on its length. Not by kShortBytes
// bytes: those behind the field may lie in the next cache line, which nothing has prefetched. For an empty string,
// which may point anywhere, the field is compared with itself. If the field's string is not inline, its length differs.
template <class Piece>
QUERN_INLINE Piece MaskedDifference(const uint8_t* a, const uint8_t* b, const uint8_t* mask, uint32_t last) {
  return ((Load<Piece>(a) ^ Load<Piece>(b)) & Load<Piece>(mask)) |
         ((Load<Piece>(a + last) ^ Load<Piece>(b + last)) & Load<Piece>(mask + last));
}

QUERN_INLINE bool EqualShort(Bytes s, const uint8_t* field, uint32_t held_bytes) {
  typedef uint64_t U64x2 __attribute__((vector_size(16)));
  if (Load<uint32_t>(field) != s.length) return false;
  const uint8_t *const held = field + 4, *const data = s.length == 0 ? held : s.data, *const mask = ShortMask(s.length);
  if (__builtin_expect(static_cast<int>(!MayReadShort(data, s.length)), 0))
    return quern_outlined_equal_bytes(data, held, s.length);
  if (held_bytes < sizeof(U64x2)) return MaskedDifference<uint64_t>(data, held, mask, held_bytes - 8) == 0;
  const U64x2 difference = MaskedDifference<U64x2>(data, held, mask, held_bytes - sizeof(U64x2));
  return (difference[0] | difference[1]) == 0;
}

// Compares the length first, which is in the tuple. The prefix has no test of its own: a string that gets here has
// passed the tag and is equal in 99 of 100 cases.
QUERN_INLINE bool EqualString(Bytes s, const uint8_t* field, uint32_t width) {
  const uint32_t held = InlineBytes(width);
  if (held <= kShortBytes && s.length <= held) return EqualShort(s, field, held);
  if (held > kShortBytes && s.length > sizeof(HeldPiece) && s.length <= held)
    return Load<uint32_t>(field) == s.length && EqualHeld(s.data, field + 4, s.length, held);
  Bytes stored = BytesOf(field, width);
  return s.length == stored.length && quern_outlined_equal_bytes(s.data, stored.data, s.length);
}

// Prefetches the bytes of a string that is not inline in the tuple: the lines of its first 64 bytes, after which the
// hardware recognises a stream. For a null, whose field was never written, this prefetches an arbitrary address, which
// is harmless.
QUERN_INLINE void PrefetchString(const uint8_t* field, uint32_t width) {
  uint32_t length = Load<uint32_t>(field);
  if (length <= InlineBytes(width)) return;
  const uint8_t* bytes = Load<const uint8_t*>(field + 8);
  PrefetchLine<PrefetchHint::kT0>(bytes);
  PrefetchLine<PrefetchHint::kT0>(bytes + (length < 64 ? length - 1 : 63));
}

template <Storage kStorage>
QUERN_INLINE bool EqualField(const QuernColumn* column, uint32_t row, const uint8_t* field, CollationRule rule,
                             uint32_t width) {
  if constexpr (IsVariableStorage(kStorage)) {
    const Bytes s = ReadBytes<kStorage>(column, row, rule, width);
    return (rule & kWeighsEquality) != 0 ? EqualCollated(s, BytesOf(field, width), rule) : EqualString(s, field, width);
  } else if constexpr (kStorage == kFixed) return EqualBytes(FixedReader::Read(column, row, width).data, field, width);
  else return ReaderOf<kStorage>::Read(column, row) == Load<typename ReaderOf<kStorage>::Value>(field);
}

template <Storage kStorage>
QUERN_INLINE void StoreField(const QuernColumn* column, uint32_t row, uint8_t* field, CollationRule rule,
                             uint32_t width) {
  if constexpr (IsVariableStorage(kStorage)) StoreString(ReadBytes<kStorage>(column, row, rule, width), field, width);
  else if constexpr (kStorage == kFixed) __builtin_memcpy(field, FixedReader::Read(column, row, width).data, width);
  else Store(field, ReaderOf<kStorage>::Read(column, row));
}

// Values as integers with the same order. Floats are normalised first: NaN is greater than all others, as in
// PostgreSQL.
template <Storage kStorage>
QUERN_INLINE auto Ordered(typename ReaderOf<kStorage>::Value v) {
  if constexpr (kStorage == kF32) {
    int32_t bits = static_cast<int32_t>(v);
    return bits ^ static_cast<int32_t>(static_cast<uint32_t>(bits >> 31) >> 1);
  } else if constexpr (kStorage == kF64) {
    int64_t bits = static_cast<int64_t>(v);
    return bits ^ static_cast<int64_t>(static_cast<uint64_t>(bits >> 63) >> 1);
  } else if constexpr (kStorage == k128) {
    return static_cast<__int128>(v);
  } else {
    return v;
  }
}

template <class T>
QUERN_INLINE bool Holds(T a, T b, uint8_t comparison) {
  switch (comparison) {
    case 0: return a < b;
    case 1: return a <= b;
    case 2: return a > b;
    case 3: return a >= b;
    case 4: return a != b;
    default: return a == b;
  }
}

// Whether `value of the column` OP `value of the tuple's field` holds, where both exist. comparison: a Comparison of
// spec.h.
template <Storage kStorage>
QUERN_INLINE bool CompareField(const QuernColumn* column, uint32_t row, const uint8_t* field, uint8_t comparison,
                               bool is_signed) {
  using T = typename ReaderOf<kStorage>::Value;
  auto a = Ordered<kStorage>(ReaderOf<kStorage>::Read(column, row)), b = Ordered<kStorage>(Load<T>(field));
  if constexpr (kStorage == k8) return is_signed ? Holds<int8_t>(a, b, comparison) : Holds(a, b, comparison);
  else if constexpr (kStorage == k16) return is_signed ? Holds<int16_t>(a, b, comparison) : Holds(a, b, comparison);
  else if constexpr (kStorage == k32) return is_signed ? Holds<int32_t>(a, b, comparison) : Holds(a, b, comparison);
  else if constexpr (kStorage == k64) return is_signed ? Holds<int64_t>(a, b, comparison) : Holds(a, b, comparison);
  else return Holds(a, b, comparison);
}

// Stores one key or payload column of a batch into its field of n adjacent tuples. With a null mask, a null sets its
// bit (zeroed before) and leaves the field unchanged.
template <Storage kStorage>
QUERN_INLINE void StoreColumn(const QuernColumn* column, uint64_t first, const uint32_t* rows, uint32_t n,
                              uint8_t* tuples, uint32_t tuple_bytes, uint32_t field_offset, uint32_t null_offset,
                              uint8_t null_mask, CollationRule rule, uint32_t width) {
  const QuernColumn c = *column;  // a copy, which storing into a tuple cannot alias
  for (uint32_t i = 0; i < n; ++i) {
    uint32_t row = RowAt(rows, first, i);
    uint8_t* tuple = tuples + uint64_t{i} * tuple_bytes;
    if (null_mask != 0 && !IsValid(&c, row)) tuple[null_offset] = static_cast<uint8_t>(tuple[null_offset] | null_mask);
    else StoreField<kStorage>(&c, row, tuple + field_offset, rule, width);
  }
}

QUERN_INLINE void StoreRowIds(uint64_t first, const uint32_t* rows, uint32_t n, uint8_t* tuples, uint64_t first_row_id,
                              uint32_t tuple_bytes, uint32_t field_offset) {
  for (uint32_t i = 0; i < n; ++i)
    Store(tuples + uint64_t{i} * tuple_bytes + field_offset, first_row_id + RowAt(rows, first, i));
}

QUERN_INLINE void ZeroNullBits(uint8_t* tuples, uint32_t n, uint32_t tuple_bytes, uint32_t null_bits_offset,
                               uint32_t null_bits_bytes) {
  if (null_bits_bytes == 0) return;
  for (uint32_t i = 0; i < n; ++i)
    __builtin_memset(tuples + uint64_t{i} * tuple_bytes + null_bits_offset, 0, null_bits_bytes);
}

// ---- rows: nulls and dictionaries ----

// Keeps the rows whose key is not null; `out` may be `rows`. Returns how many.
QUERN_INLINE uint32_t FilterValid(const QuernColumn* column, uint64_t first, const uint32_t* rows, uint32_t n,
                                  uint32_t* out) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < n; ++i) {
    uint32_t row = RowAt(rows, first, i);
    out[kept] = row;
    kept += IsValid(column, row);
  }
  return kept;
}

// The dictionary's row for a column's row. Indices of valid rows are not negative, so zero extension is right for
// signed ones too.
template <class Index>
QUERN_INLINE uint32_t DictionaryRow(const QuernColumn* column, uint32_t row) {
  return static_cast<uint32_t>(LoadAt<Index>(column->values, row));
}

// Rows of a dictionary column as rows of its values; nulls become kNullRow.
template <class Index>
QUERN_INLINE void DictionaryRows(const QuernColumn* column, uint64_t first, const uint32_t* rows, uint32_t n,
                                 uint32_t* out) {
  for (uint32_t i = 0; i < n; ++i) {
    uint32_t row = RowAt(rows, first, i);
    out[i] = IsValid(column, row) ? DictionaryRow<Index>(column, row) : kNullRow;
  }
}

// ---- output ----

constexpr uint64_t kCopySlackBytes = 32;  // an output buffer has this many writable bytes beyond its capacity

// Copies n bytes; may write up to kCopySlackBytes beyond them.
QUERN_INLINE void CopyBytes(uint8_t* to, const uint8_t* from, uint32_t n) {
  typedef uint64_t U64x2 __attribute__((vector_size(16)));
  if (n - 1 < kShortBytes && MayReadShort(from)) {
    // 1 to 32 bytes by four words, which overlap if there are fewer bytes: no branch depends on the number, and reading
    // a string in a tuple's field stays within the field.
    const uint32_t last = n > 8 ? n - 8 : 0, second = last < 8 ? last : 8, third = last < 16 ? last : 16;
    const uint64_t words[4] = {Load<uint64_t>(from), Load<uint64_t>(from + second), Load<uint64_t>(from + third),
                               Load<uint64_t>(from + last)};
    Store(to, words[0]);
    Store(to + second, words[1]);
    Store(to + third, words[2]);
    Store(to + last, words[3]);
  } else if (n > 256) {
    __builtin_memcpy(to, from, n);
  } else if (n > 16) {
    for (uint32_t i = 0; i + 16 < n; i += 16) Store(to + i, Load<U64x2>(from + i));
    Store(to + n - 16, Load<U64x2>(from + n - 16));
  } else if (n >= 8) {
    uint64_t tail = Load<uint64_t>(from + n - 8);
    Store(to, Load<uint64_t>(from));
    Store(to + n - 8, tail);
  } else if (n >= 4) {
    uint32_t tail = Load<uint32_t>(from + n - 4);
    Store(to, Load<uint32_t>(from));
    Store(to + n - 4, tail);
  } else {
    for (uint32_t i = 0; i < n; ++i) to[i] = from[i];
  }
}

// The source of one output column's values: rows of a probe batch ..
template <Storage kStorage>
struct ProbeSource {
  const QuernColumn* column;
  const uint32_t* rows;
  bool nullable;
  uint32_t width;

  QUERN_INLINE bool Valid(uint32_t i) const { return !nullable || IsValid(column, rows[i]); }
  QUERN_INLINE Bytes ReadString(uint32_t i) const { return ReadBytes<kStorage>(column, rows[i], 0, width); }
  template <class T>
  QUERN_INLINE T ReadValue(uint32_t i) const {
    return ReaderOf<kStorage>::Read(column, rows[i]);
  }
  QUERN_INLINE const uint8_t* ReadFixed(uint32_t i) const { return FixedReader::Read(column, rows[i], width).data; }
};

// A sort's tuples are not adjacent: its base is null, and its offsets are addresses. Sanitizers would reject adding
// them.
#define QUERN_ANY_BASE __attribute__((no_sanitize("pointer-overflow")))

// .. or a field of tuples.
template <Storage kStorage>
struct TupleSource {
  const uint8_t* base;
  const uint64_t* tuples;  // byte offsets from base
  uint32_t field_offset;
  uint32_t null_offset;
  uint8_t null_mask;  // 0: not nullable
  uint32_t width;

  QUERN_ANY_BASE QUERN_INLINE bool Valid(uint32_t i) const {
    return null_mask == 0 || (base[tuples[i] + null_offset] & null_mask) == 0;
  }
  QUERN_ANY_BASE QUERN_INLINE Bytes ReadString(uint32_t i) const { return BytesOf(base + tuples[i] + field_offset, 0); }
  template <class T>
  QUERN_ANY_BASE QUERN_INLINE T ReadValue(uint32_t i) const {
    return Load<T>(base + tuples[i] + field_offset);
  }
  QUERN_ANY_BASE QUERN_INLINE const uint8_t* ReadFixed(uint32_t i) const { return base + tuples[i] + field_offset; }
};

// Returns how many of n values fit the output column, after making room for their bytes. Negative: a QuernCode. Fewer
// than n only at the limit of 32-bit offsets. The bytes of a view's short strings take no room.
template <Storage kStorage, class Source>
QUERN_INLINE int64_t FitStrings(const Source& source, uint32_t n, QuernOutColumn* out) {
  const uint64_t limit = (kStorage == kVar64 ? uint64_t{INT64_MAX} : uint64_t{INT32_MAX}) - out->num_bytes;
  uint64_t most = limit;
  if (out->most_bytes != 0) most = out->most_bytes > out->num_bytes ? out->most_bytes - out->num_bytes : 0;
  uint64_t total = 0;
  uint32_t i = 0;
  for (; i < n; ++i) {
    if (!source.Valid(i)) continue;
    uint64_t length = source.ReadString(i).length;
    if (kStorage == kView && length <= kInlineStringBytes) continue;
    if (total + length > limit) break;
    if (total + length > most && total + out->num_bytes > 0) break;
    total += length;
  }
  if (i == 0 && n > 0 && out->num_bytes == 0) return kQuernValueTooLarge;
  if (out->num_bytes + total > out->bytes_capacity) {
    int32_t code = quern_rt_reserve_bytes(out, total);
    if (code != 0) return code;
  }
  return i;
}

template <Storage kStorage>
QUERN_INLINE void WriteString(Bytes s, QuernOutColumn* out, uint64_t row) {
  uint8_t* to = out->bytes + out->num_bytes;
  if constexpr (kStorage == kView) {
    uint8_t* view = static_cast<uint8_t*>(out->values) + row * 16;
    StringRef ref = MakeStringRef(s);
    if (s.length > kInlineStringBytes) {
      ref.bytes =
          reinterpret_cast<const char*>(out->num_bytes << 32);  // buffer 0 in the low half, offset in the high half
      CopyBytes(to, s.data, s.length);
      out->num_bytes += s.length;
    }
    Store(view, ref);
  } else {
    CopyBytes(to, s.data, s.length);
    out->num_bytes += s.length;
    if constexpr (kStorage == kVar32)
      static_cast<int32_t*>(out->offsets)[row + 1] = static_cast<int32_t>(out->num_bytes);
    else static_cast<int64_t*>(out->offsets)[row + 1] = static_cast<int64_t>(out->num_bytes);
  }
}

template <Storage kStorage, class Source>
QUERN_INLINE void WriteValue(const Source& source, uint32_t i, bool valid, QuernOutColumn* out, uint64_t row) {
  if constexpr (IsVariableStorage(kStorage)) {
    WriteString<kStorage>(valid ? source.ReadString(i) : Bytes{nullptr, 0}, out, row);
  } else if constexpr (kStorage == kFixed) {
    uint8_t* to = static_cast<uint8_t*>(out->values) + row * source.width;
    if (valid) __builtin_memcpy(to, source.ReadFixed(i), source.width);
    else __builtin_memset(to, 0, source.width);
  } else {
    using T = typename ReaderOf<kStorage>::Value;
    T value = valid ? source.template ReadValue<T>(i) : T{0};
    if constexpr (kStorage == kBit) SetBitTo(static_cast<uint8_t*>(out->values), row, value != 0);
    else static_cast<T*>(out->values)[row] = value;
  }
}

// Writes n values from out_row on. Nulls are written as zeros or empty strings, so that no byte of a result keeps an
// earlier value.
template <Storage kStorage, class Source>
QUERN_INLINE void EmitColumn(const Source& source, uint32_t n, QuernOutColumn* out, uint64_t out_row, bool nullable) {
  if (!nullable) {
    for (uint32_t i = 0; i < n; ++i) WriteValue<kStorage>(source, i, true, out, out_row + i);
    return;
  }
  for (uint32_t i = 0; i < n; ++i) {
    bool valid = source.Valid(i);
    SetBitTo(out->validity, out_row + i, valid);
    out->null_count += !valid;
    WriteValue<kStorage>(source, i, valid, out, out_row + i);
  }
}

// Row ids are null only if a row of the other side comes out on its own.
QUERN_INLINE void EmitRowIds(const uint32_t* rows, uint32_t n, uint64_t first_row_id, QuernOutColumn* out,
                             uint64_t out_row, bool nullable) {
  uint64_t* to = static_cast<uint64_t*>(out->values) + out_row;
  for (uint32_t i = 0; i < n; ++i) {
    bool valid = !nullable || rows[i] != kNullRow;
    to[i] = valid ? first_row_id + rows[i] : 0;
    if (!nullable) continue;
    SetBitTo(out->validity, out_row + i, valid);
    out->null_count += !valid;
  }
}

}  // namespace quern::blocks

#endif  // QUERN_RUNTIME_BLOCKS_BLOCKS_H_
