// SPDX-License-Identifier: Apache-2.0
// Hashing and comparing strings under a collation with weights: what kernels and loops over batches do themselves,
// before they use the weights (collation.h). For strings of U+0020 to U+007E such a collation ignores only the case of
// letters. So these are read as they are, 32 bytes at once, and turned into capitals in the register:
//
//     'Air '   41 69 72 20 00 .. 00       (c + 5) > 101, signed: c is one of 'a' .. 'z'        41 49 52 20 00 .. 00
//     'rök'    72 c3 b6 6b 00 .. 00       (c + 1) > 32, signed: c is one of U+0020 .. U+007E; c3, b6 are not: weights
//
// The hash of such a string is that of its capitals. The hash of any other string is HashBytes of its equality key,
// which for the former is the same. In a column with few distinct strings each is weighed once per batch (HashMemo),
// and strings with the same bytes are equal without further tests.
#ifndef QUERN_RUNTIME_COLLATION_COLLATE_H_
#define QUERN_RUNTIME_COLLATION_COLLATE_H_

#include "runtime/base/bytes.h"

// HashString and EqualStrings of collation.h, for kernels.
extern "C" {
uint64_t quern_rt_hash_collated(const uint8_t* data, uint32_t length, CollationRule rule,
                                const quern::blocks::HashSecret* secret);
bool quern_rt_equal_collated(const uint8_t* a, uint32_t a_length, const uint8_t* b, uint32_t b_length,
                             CollationRule rule);
}

namespace quern::blocks {

typedef int8_t I8x16 __attribute__((vector_size(16)));
typedef int8_t I8x32 __attribute__((vector_size(32)));
typedef uint64_t U64x2 __attribute__((vector_size(16)));
typedef uint64_t U64x4 __attribute__((vector_size(32)));
static_assert(sizeof(I8x32) == kShortBytes);

// The bytes of a string that are compared: what trimming leaves.
QUERN_INLINE Bytes Trimmed(Bytes s, CollationRule rule) { return (rule & kTrimsSpaces) != 0 ? TrimSpaces(s) : s; }

// Letters as capitals; all other bytes as they are. V: I8x16 or I8x32.
template <class V>
QUERN_INLINE V Capitals(V bytes) {
  return bytes ^ ((V)(bytes + int8_t{5} > int8_t{101}) & int8_t{0x20});
}

// Ones where a byte is not one of U+0020 to U+007E.
template <class V>
QUERN_INLINE V OtherThanPrintable(V bytes) {
  return ~(V)(bytes + int8_t{1} > int8_t{32});
}

QUERN_INLINE bool AnyBit(U64x2 v) { return (v[0] | v[1]) != 0; }
QUERN_INLINE bool AnyBit(U64x4 v) { return (v[0] | v[1] | v[2] | v[3]) != 0; }

// Up to kShortBytes bytes, zero behind the last byte.
QUERN_INLINE I8x32 ReadShortBytes(const uint8_t* p, uint32_t n) {
  if (__builtin_expect(static_cast<int>(MayReadShort(p)) & static_cast<int>(n != 0), 1))
    return Load<I8x32>(p) & Load<I8x32>(ShortMask(n));
  const ShortWords s = ReadShort(p, n);
  return Load<I8x32>(&s);
}

// HashBytes of n bytes after turning letters into capitals; false if they are not all of U+0020 to U+007E.
QUERN_INLINE bool HashPrintable(const uint8_t* p, uint64_t n, const HashSecret& secret, uint64_t* hash) {
  uint64_t seed = secret[kMultiplier2] ^ n, rest = n;
  I8x16 others = {};
  for (; rest > kShortBytes; rest -= 16, p += 16) {
    const I8x16 bytes = Load<I8x16>(p);
    const U64x2 words = (U64x2)Capitals(bytes);
    others |= OtherThanPrintable(bytes);
    seed = FoldedMultiply(words[0] ^ secret[kMultiplier1], words[1] ^ seed);
  }
  const I8x32 last = ReadShortBytes(p, static_cast<uint32_t>(rest));
  const I8x32 last_others = OtherThanPrintable(last) & Load<I8x32>(ShortMask(static_cast<uint32_t>(rest)));
  const U64x4 words = (U64x4)Capitals(last);
  const uint64_t front = FoldedMultiply(words[0] ^ secret[kMultiplier1], words[1] ^ seed);
  *hash = FoldedMultiply(words[2] ^ secret[kCombine], words[3] ^ front);
  return !AnyBit((U64x4)last_others) && (n <= kShortBytes || !AnyBit((U64x2)others));
}

// The hash of a string under a rule with weights for equality, with spaces trimmed.
QUERN_INLINE uint64_t HashCollated(Bytes s, CollationRule rule, const HashSecret& secret) {
  uint64_t hash;
  if ((rule & kFoldsAscii) != 0 && __builtin_expect(HashPrintable(s.data, s.length, secret, &hash), 1)) return hash;
  return quern_rt_hash_collated(s.data, s.length, rule, &secret);
}

// HashCollated for the strings of one batch and rule. It remembers strings that were weighed: up to kNumEntries, each
// in one of two places. It points to the batch's bytes. *Cost*: for a string that it remembers, HashBytes and
// EqualBytes; the first string that is weighed also clears 6 KB.
class HashMemo {
 public:
  explicit HashMemo(const HashSecret* secret) : secret_(secret) {}

  uint64_t Hash(Bytes s, CollationRule rule) {
    uint64_t hash;
    if ((rule & kFoldsAscii) != 0 && __builtin_expect(HashPrintable(s.data, s.length, *secret_, &hash), 1)) return hash;
    return Weighed(s, rule);
  }

 private:
  static constexpr uint32_t kNumEntriesLog2 = 8, kNumEntries = 1u << kNumEntriesLog2;
  struct Entry {
    const uint8_t* data;
    uint64_t length;  // 0: empty
    uint64_t hash;

    bool Holds(Bytes s) const { return length == s.length && EqualBytes(data, s.data, s.length); }
  };

  __attribute__((noinline)) uint64_t Weighed(Bytes s, CollationRule rule) {
    if (s.length == 0) return quern_rt_hash_collated(s.data, 0, rule, secret_);
    if (!is_clear_) __builtin_memset(entries_, 0, sizeof(entries_));
    is_clear_ = true;
    const uint64_t place = HashBytes(s.data, s.length, *secret_) >> (64 - kNumEntriesLog2);
    Entry *entry = &entries_[place], *other = &entries_[place ^ 1];
    if (entry->Holds(s)) return entry->hash;
    if (other->Holds(s)) return other->hash;
    if (entry->length != 0 && other->length == 0) entry = other;
    *entry = {s.data, s.length, quern_rt_hash_collated(s.data, s.length, rule, secret_)};
    return entry->hash;
  }

  const HashSecret* secret_;
  bool is_clear_ = false;
  Entry entries_[kNumEntries];
};

// Compares strings of up to kShortBytes bytes, with spaces trimmed: first as bytes, then as capitals, then by their
// weights. Strings of U+0020 to U+007E have no byte 0, so that strings of different lengths differ in the zeros behind
// the shorter one.
QUERN_INLINE bool EqualCollated(Bytes a, Bytes b, CollationRule rule) {
  const int both_short = static_cast<int>(a.length - 1 < kShortBytes) & static_cast<int>(b.length - 1 < kShortBytes);
  if ((rule & kFoldsAscii) != 0 &&
      (both_short & static_cast<int>(MayReadShort(a.data)) & static_cast<int>(MayReadShort(b.data))) != 0) {
    const I8x32 a_mask = Load<I8x32>(ShortMask(a.length)), b_mask = Load<I8x32>(ShortMask(b.length));
    const I8x32 x = Load<I8x32>(a.data) & a_mask, y = Load<I8x32>(b.data) & b_mask;
    if (!AnyBit((U64x4)(x ^ y)) && a.length == b.length) return true;
    const I8x32 others = (OtherThanPrintable(x) & a_mask) | (OtherThanPrintable(y) & b_mask);
    if (!AnyBit((U64x4)others)) return !AnyBit((U64x4)(Capitals(x) ^ Capitals(y)));
  }
  return quern_rt_equal_collated(a.data, a.length, b.data, b.length, rule);
}

}  // namespace quern::blocks

#endif  // QUERN_RUNTIME_COLLATION_COLLATE_H_
