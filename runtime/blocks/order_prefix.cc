// SPDX-License-Identifier: Apache-2.0
// The first 16 bytes by which strings are ordered. For "Straße 7", 9 bytes, under three collations:
//
//     binary                53 74 72 61 c3 9f 65 20 37 00 00 00 00 00 00 00      the string; zeros behind its end
//     utf8mb4_bin           53 74 72 61 c3 9f 65 20 37 20 20 20 20 20 20 20      .. spaces behind its end
//     utf8mb4_general_ci    53 54 52 41 53 45 20 37 20 20 20 20 20 20 20 20      its order key (collation.h): ß is S
//
// A character of U+0020 to U+007E is one byte of an order key, whatever its neighbours are. So if the first 16 bytes of
// a string are such characters, their codes are the first 16 bytes of its key, which needs neither a loop over
// characters nor a branch on the length: 16 bytes are looked up at once in a table of 96, in pieces of 16 that fit a
// vector register:
//
//     "hello"     68 65 6c 6c 6f | ..            bytes behind the end are readable, or the string is copied
//     - 0x20      48 45 4c 4c 4f | ..            above 0x5e within the string: not ASCII, its whole key is made
//     looked up   48 45 4c 4c 4f | ..            six look-ups of 16 entries: one has the code and the others give zero
//     filled      48 45 4c 4c 4f | 20 20 ..      the pad byte, or zeros
#include <algorithm>
#include <cstring>

#include "runtime/blocks/encode.h"
#include "runtime/collation/collation.h"
#include "runtime/collation/collation_weights.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace quern::blocks {
namespace {

constexpr uint32_t kFirstAscii = 0x20, kNumAscii = 0x5f;

// The bytes of characters from U+0020 on in order keys.
struct AsciiCodes {
  alignas(16) uint8_t codes[96];
};

// Whether all n bytes are U+0020 to U+007E.
bool IsAscii(const uint8_t* p, uint32_t n) {
  typedef int8_t I8x16 __attribute__((vector_size(16)));
  typedef uint64_t U64x2 __attribute__((vector_size(16)));
  uint32_t i = 0;
  I8x16 others = {};
  for (; i + 16 <= n; i += 16)
    others |= Load<I8x16>(p + i) + int8_t{1} <= int8_t{kFirstAscii};  // then 0x7f and all above are negative
  if (i < n && n >= 16) others |= Load<I8x16>(p + n - 16) + int8_t{1} <= int8_t{kFirstAscii};
  const auto bits = (U64x2)others;
  if ((bits[0] | bits[1]) != 0) return false;
  for (; i < n && n < 16; ++i)
    if (static_cast<uint8_t>(p[i] - kFirstAscii) >= kNumAscii) return false;
  return true;
}

// Whether it is a row of collations.def; collations of ICU, whose keys are not made character by character, are not.
bool IsOfTable(CollationRule rule) { return rule >> kCollationShift < AllCollations().size(); }

AsciiCodes AsciiCodesOf(CollationRule rule) {
  AsciiCodes table;
  const Weights weights = RowOf(static_cast<Collation>(rule >> kCollationShift)).order;
  std::memcpy(table.codes, KeyTable::OfOrder(weights).ascii().data() + kFirstAscii, sizeof(table.codes));
  return table;
}

template <CollationRule kRule>
bool ReadPlain(const Bytes* strings, uint32_t n, uint64_t* high, uint64_t* low) {
  uint32_t more = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const uint8_t* p = PrefixAddress(strings[i]);
    const BytesPrefix prefix = ReadPrefix<FillOf(kRule)>(p, strings[i].length);
    high[i] = prefix.high;
    low[i] = prefix.low;
    more |= IsMoreThanPrefix<kRule>(strings[i], p);
  }
  return more != 0;
}

// Uses the whole key. Returns whether it has more bytes.
__attribute__((noinline)) bool WeighAny(Bytes s, CollationRule rule, uint64_t* high, uint64_t* low) {
  uint8_t bytes[kSortPrefixBytes];
  const uint32_t num_bytes = OrderKeyBytes(s, rule, 0, kSortPrefixBytes, bytes);
  *high = __builtin_bswap64(Load<uint64_t>(bytes));
  *low = __builtin_bswap64(Load<uint64_t>(bytes + 8));
  return num_bytes > kSortPrefixBytes;
}

#if defined(__x86_64__)
#define QUERN_ORDER_PREFIX_TARGET __attribute__((target("sse4.1")))

QUERN_ORDER_PREFIX_TARGET inline __m128i LookUp(const __m128i* tables, __m128i x) {
  const __m128i to_top = _mm_set1_epi8(0x70), sixteen = _mm_set1_epi8(16);
  __m128i found = _mm_shuffle_epi8(tables[0], _mm_adds_epu8(x, to_top));
  for (uint32_t t = 1; t < 6; ++t) {
    x = _mm_sub_epi8(x, sixteen);
    found = _mm_or_si128(found, _mm_shuffle_epi8(tables[t], _mm_adds_epu8(x, to_top)));
  }
  return found;
}

QUERN_ORDER_PREFIX_TARGET bool WeighAscii(const Bytes* strings, uint32_t n, CollationRule rule, uint64_t* high,
                                          uint64_t* low) {
  __m128i tables[6];
  std::memcpy(tables, AsciiCodesOf(rule).codes, sizeof(tables));
  const __m128i fill = _mm_set1_epi8(static_cast<char>((rule & kPadsSpaces) != 0 ? PadByte(rule) : 0));
  const __m128i first = _mm_set1_epi8(kFirstAscii), last = _mm_set1_epi8(kNumAscii - 1);
  const __m128i reverse = _mm_set_epi8(8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
  uint8_t copy[kSortPrefixBytes] = {};
  bool more = false;
  for (uint32_t i = 0; i < n; ++i) {
    const Bytes s = strings[i];
    const uint32_t held = s.length < kSortPrefixBytes ? s.length : kSortPrefixBytes;
    const uint8_t* p = PrefixAddress(s);
    if (__builtin_expect(!MayReadPrefix(p), 0) && held < kSortPrefixBytes)
      p = static_cast<uint8_t*>(std::memcpy(copy, p, held));
    const __m128i mask = _mm_loadu_si128(reinterpret_cast<const __m128i*>(ShortMask(held)));
    const __m128i x = _mm_sub_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)), first);
    const __m128i is_ascii = _mm_cmpeq_epi8(_mm_min_epu8(x, last), x);
    if (__builtin_expect(_mm_testc_si128(is_ascii, mask) == 0, 0)) {
      more |= WeighAny(s, rule, &high[i], &low[i]);
      continue;
    }
    const __m128i word = _mm_shuffle_epi8(_mm_blendv_epi8(fill, LookUp(tables, x), mask), reverse);
    high[i] = static_cast<uint64_t>(_mm_cvtsi128_si64(word));
    low[i] = static_cast<uint64_t>(_mm_extract_epi64(word, 1));
    more |= s.length > kSortPrefixBytes;
  }
  return more;
}
#else
bool WeighAscii(const Bytes* strings, uint32_t n, CollationRule rule, uint64_t* high, uint64_t* low) {
  const AsciiCodes table = AsciiCodesOf(rule);
  const uint8_t fill = (rule & kPadsSpaces) != 0 ? PadByte(rule) : 0;
  bool more = false;
  for (uint32_t i = 0; i < n; ++i) {
    const Bytes s = strings[i];
    const uint32_t held = s.length < kSortPrefixBytes ? s.length : kSortPrefixBytes;
    uint8_t bytes[kSortPrefixBytes];
    std::memset(bytes, fill, sizeof(bytes));
    bool is_ascii = true;
    for (uint32_t b = 0; b < held; ++b) {
      const uint32_t x = static_cast<uint8_t>(s.data[b] - kFirstAscii);
      is_ascii &= x < kNumAscii;
      bytes[b] = table.codes[x < kNumAscii ? x : 0];
    }
    if (!is_ascii) {
      more |= WeighAny(s, rule, &high[i], &low[i]);
      continue;
    }
    high[i] = __builtin_bswap64(Load<uint64_t>(bytes));
    low[i] = __builtin_bswap64(Load<uint64_t>(bytes + 8));
    more |= s.length > kSortPrefixBytes;
  }
  return more;
}
#endif

}  // namespace

bool OrderPrefixes(const Bytes* strings, uint32_t n, CollationRule rule, uint64_t* high, uint64_t* low) {
  if ((rule & kWeighsOrder) == 0) {
    if ((rule & kPadsSpaces) != 0) return ReadPlain<kPadsSpaces>(strings, n, high, low);
    return ReadPlain<0>(strings, n, high, low);
  }
  if (IsOfTable(rule)) return WeighAscii(strings, n, rule, high, low);
  bool more = false;
  for (uint32_t i = 0; i < n; ++i) more |= WeighAny(strings[i], rule, &high[i], &low[i]);
  return more;
}

bool OrderWords(const Bytes* strings, uint32_t n, CollationRule rule, uint32_t from, uint64_t* words) {
  const bool has_table = IsOfTable(rule);
  const AsciiCodes table = has_table ? AsciiCodesOf(rule) : AsciiCodes();
  const uint8_t fill = (rule & kPadsSpaces) != 0 ? PadByte(rule) : 0;
  bool more = false;
  for (uint32_t i = 0; i < n; ++i) {
    const Bytes s = strings[i];
    const uint32_t end = s.length - std::min(s.length, from) > 8 ? from + 8 : s.length;
    if (has_table && IsAscii(s.data, end)) {
      uint64_t word = 0;
      for (uint32_t b = from; b < from + 8; ++b)
        word = word << 8 | (b < end ? table.codes[s.data[b] - kFirstAscii] : fill);
      words[i] = word;
      more |= end < s.length;
      continue;
    }
    uint8_t bytes[8];
    more |= OrderKeyBytes(s, rule, from, 8, bytes) > 8;
    words[i] = __builtin_bswap64(Load<uint64_t>(bytes));
  }
  return more;
}

}  // namespace quern::blocks
