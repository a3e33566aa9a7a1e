// SPDX-License-Identifier: Apache-2.0
// Blocks of filters that read numbers and bitmaps: the results of a leaf for 64 adjacent rows at a time, as a word of
// the mask. Compiled and generic kernels call the same functions (blocks.h); those for strings are in filter_strings.h.
//
// Every block returns how many of the n rows it has tested: only whole words, and none if rows are selected. The other
// rows are tested one by one by quern_rt_filter_leaf. A comparison of a number with a constant is a range test, which
// takes two instructions for every operator:
//
//     v >= 5 and v < 10       v - 5 <= 4, unsigned            v < 10 (i32)     v - (-2147483648) <= 2147483657
//     v = 7                   v - 7 <= 0                      v <> 7           not (v - 7 <= 0)
//
// With AVX-512, 64 numbers of 32 bits are four registers, each with one subtraction and one comparison, and their 4 x
// 16 mask bits are one word. Floats are first turned into integers of the same order (-0 = 0, NaN greatest).
#ifndef QUERN_RUNTIME_BLOCKS_FILTER_BLOCKS_H_
#define QUERN_RUNTIME_BLOCKS_FILTER_BLOCKS_H_

#include "runtime/abi/filter_abi.h"
#include "runtime/base/prefetch_line.h"
#include "runtime/base/thresholds.h"
#include "runtime/blocks/blocks.h"

extern "C" {
// Tests rows first .. first+n-1 of args' batch (of its selection) one by one: mask bit i is row first + i.
void quern_rt_filter_leaf(const QuernFilterArgs* args, uint32_t leaf, uint64_t first, uint32_t n, uint64_t* mask);
// CompareStrings of collation.h.
int32_t quern_rt_filter_compare(const uint8_t* a, uint32_t a_length, const uint8_t* b, uint32_t b_length,
                                CollationRule rule);
// Whether [p, end) contains the parts first .. num_parts-1 between '%' (QuernLikePart), in order.
bool quern_rt_filter_parts(const uint8_t* p, const uint8_t* end, const uint8_t* constants, uint32_t first,
                           uint32_t num_parts);
}

// Eight adjacent vectors that make one word of a mask: unrolled when the library is built, because no pass of a kernel
// does it.
#if defined(__clang__)
#define QUERN_UNROLLED _Pragma("clang loop unroll(full)")
#else
#define QUERN_UNROLLED
#endif

namespace quern::blocks {

// Lanes of 0 or -1 as bits, the first lane lowest.
template <class V>
QUERN_INLINE uint64_t MaskBits(V truth) {
  constexpr uint32_t kNum = sizeof(V) / sizeof(truth[0]);
#if defined(__clang__)
  typedef bool Bits __attribute__((ext_vector_type(kNum)));
  const Bits bits = __builtin_convertvector(truth, Bits);
  if constexpr (kNum == 8) return __builtin_bit_cast(uint8_t, bits);
  else if constexpr (kNum == 16) return __builtin_bit_cast(uint16_t, bits);
  else if constexpr (kNum == 32) return __builtin_bit_cast(uint32_t, bits);
  else return __builtin_bit_cast(uint64_t, bits);
#else
  uint64_t bits = 0;
  for (uint32_t i = 0; i < kNum; ++i) bits |= uint64_t{truth[i] != 0} << i;
  return bits;
#endif
}

QUERN_INLINE uint32_t FullWords(const uint32_t* rows, uint32_t n) { return rows != nullptr ? 0 : n / 64; }

// Keeps only those bits of mask[w] for which test(row's number in the piece) holds.
template <class Test>
QUERN_INLINE void TestRows(uint64_t* mask, uint32_t n, bool negated, Test test) {
  for (uint32_t w = 0; w * 64 < n; ++w) {
    uint64_t kept = 0;
    for (uint64_t left = mask[w]; left != 0; left &= left - 1) {
      const uint32_t bit = static_cast<uint32_t>(__builtin_ctzll(left));
      kept |= uint64_t{test(w * 64 + bit) != negated} << bit;
    }
    mask[w] = kept;
  }
}

// 64 bits of a bitmap from `bit` on; reads no byte beyond them.
QUERN_INLINE uint64_t BitmapWord(const uint8_t* bitmap, uint64_t bit) {
  const uint8_t* p = bitmap + bit / 8;
  const uint32_t shift = bit % 8;
  const uint64_t word = Load<uint64_t>(p) >> shift;
  return shift == 0 ? word : word | static_cast<uint64_t>(p[8]) << (64 - shift);
}

// The mask operations of `or` (filter_abi.h).
QUERN_INLINE void SplitMask(uint64_t* to, uint64_t* todo, uint32_t num_words) {
  __builtin_memcpy(todo, to, num_words * 8);
  __builtin_memset(to, 0, num_words * 8);
}

QUERN_INLINE void KeepMask(uint64_t* to, const uint64_t* from, uint64_t* todo, uint32_t num_words) {
  for (uint32_t w = 0; w < num_words; ++w) {
    to[w] |= from[w];
    todo[w] &= ~from[w];
  }
}

QUERN_INLINE void MergeMask(uint64_t* to, const uint64_t* from, uint32_t num_words) {
  for (uint32_t w = 0; w < num_words; ++w) to[w] |= from[w];
}

// Keeps the rows that have a value; negated: those that have none.
QUERN_INLINE void TestValid(const QuernColumn* column, uint64_t first, const uint32_t* rows, uint32_t n, uint64_t* mask,
                            bool negated) {
  const uint8_t* validity = column->validity;
  const uint64_t begin = column->bit_offset + first;
  if (validity == nullptr) {
    if (negated) __builtin_memset(mask, 0, (n + 63) / 64 * 8);
    return;
  }
  uint32_t w = 0;
  for (; w < FullWords(rows, n); ++w) {
    const uint64_t valid = BitmapWord(validity, begin + w * 64);
    mask[w] &= negated ? ~valid : valid;
  }
  for (uint32_t i = w * 64; i < n; ++i) {
    const uint64_t at = rows != nullptr ? column->bit_offset + rows[i] : begin + i;
    if (Bit(validity, at) == negated) mask[i / 64] &= ~(uint64_t{1} << i % 64);
  }
}

// Lanes as unsigned integers with the order of the values, except that the sign bit is inverted.
template <Storage kStorage, class V>
QUERN_INLINE V OrderedLanes(V v) {
  if constexpr (kStorage == kF32 || kStorage == kF64) {
    using T = typename ReaderOf<kStorage>::Value;
    constexpr T kSign = static_cast<T>(T{1} << (sizeof(T) * 8 - 1));
    constexpr T kExponent = kStorage == kF32 ? static_cast<T>(0x7f800000u) : static_cast<T>(0x7ff0000000000000u);
    constexpr T kQuietNan = kStorage == kF32 ? static_cast<T>(0x7fc00000u) : static_cast<T>(0x7ff8000000000000u);
    const V magnitude = v & static_cast<T>(~kSign);
    const V is_nan = (V)(magnitude > kExponent), is_zero = (V)(magnitude == T{0});
    const V normal = (v & ~is_nan & ~is_zero) | (is_nan & kQuietNan);
    const V negative = (V)((normal & kSign) != T{0});
    return normal ^ (negative & static_cast<T>(~kSign));
  } else {
    return v;
  }
}

// How many rows ahead a piece prefetches numbers that it reads in order. Processors prefetch such columns by
// themselves, but begin anew in each piece, whose leaves read one column after the other. 0: the rows ahead are none of
// this condition's.
QUERN_INLINE uint64_t FilterRowsAhead(const QuernFilterArgs* args, uint64_t first, uint32_t n) {
  const uint64_t ahead = args->descriptor->input_rows;
  return first + n + ahead <= args->num_rows + args->num_following ? ahead : 0;
}

// The values of a whole word of rows. Into the L2 cache: the rows ahead of several columns do not fit the L1 cache.
template <class T>
QUERN_INLINE void PrefetchAhead(const uint8_t* values, uint64_t bytes_ahead) {
  WithPrefetch<PrefetchHint::kT1>(bytes_ahead, [=]<class Prefetch>() __attribute__((always_inline)) {
    QUERN_UNROLLED for (uint32_t line = 0; line < sizeof(T); ++line) Prefetch::For(values + bytes_ahead + line * 64);
  });
}

// Whether so few of 64 rows are left that not all lines of their values need be read.
template <class T>
QUERN_INLINE bool IsSparse(uint64_t word) {
  constexpr uint32_t kLines = sizeof(T);  // of 64 values
  return static_cast<uint32_t>(__builtin_popcountll(word)) * thresholds::kSparseWordLines <= kLines;
}

// The bits of word w for which test(value) holds. The rows of a word further on are prefetched meanwhile.
template <class T, class Test>
QUERN_INLINE uint64_t TestSparse(const uint8_t* values, const uint64_t* mask, uint32_t w, uint32_t num_words,
                                 uint64_t rows_ahead, Test test) {
  constexpr uint32_t kWordsAhead = 6, kWordBytes = 64 * sizeof(T);
  if (w + kWordsAhead < num_words && IsSparse<T>(mask[w + kWordsAhead])) {
    WithPrefetch(rows_ahead, [=]<class Prefetch>() __attribute__((always_inline)) {
      const uint8_t* const ahead = values + kWordsAhead * kWordBytes;
      for (uint64_t left = Prefetch::kPrefetches ? mask[w + kWordsAhead] : 0; left != 0; left &= left - 1)
        Prefetch::For(ahead + static_cast<uint32_t>(__builtin_ctzll(left)) * sizeof(T));
    });
  }
  uint64_t bits = 0;
  for (uint64_t left = mask[w]; left != 0; left &= left - 1) {
    const auto row = static_cast<uint32_t>(__builtin_ctzll(left));
    bits |= uint64_t{test(Load<T>(values + row * sizeof(T)))} << row;
  }
  return bits;
}

// *Cost*: about 0.1 ns a row of 4 bytes, in the cache.
template <Storage kStorage>
QUERN_INLINE uint32_t TestRange(const QuernColumn* column, uint64_t first, const uint32_t* rows, uint32_t n,
                                uint64_t* mask, uint64_t rows_ahead, uint64_t low, uint64_t span, bool negated) {
  using T = typename ReaderOf<kStorage>::Value;
  typedef T V __attribute__((vector_size(64)));
  const uint32_t num_words = FullWords(rows, n);
  const uint64_t bytes_ahead = rows_ahead * sizeof(T);
  const uint8_t* values = static_cast<const uint8_t*>(column->values) + first * sizeof(T);
  for (uint32_t w = 0; w < num_words; ++w, values += 64 * sizeof(T)) {
    if (mask[w] == 0) continue;
    uint64_t bits = 0;
    if (kStorage == k64 && IsSparse<T>(mask[w])) {  // narrower numbers have few lines
      bits = TestSparse<T>(values, mask, w, num_words, rows_ahead, [=](T v) __attribute__((always_inline)) {
        return static_cast<T>(v - static_cast<T>(low)) <= static_cast<T>(span);
      });
    } else {
      PrefetchAhead<T>(values, bytes_ahead);
      QUERN_UNROLLED for (uint32_t b = 0; b < sizeof(T); ++b) {
        const V v = OrderedLanes<kStorage>(Load<V>(values + b * 64));
        bits |= MaskBits((V)((V)(v - static_cast<T>(low)) <= static_cast<T>(span))) << (b * (64 / sizeof(T)) % 64);
      }
    }
    mask[w] &= negated ? ~bits : bits;
  }
  return num_words * 64;
}

QUERN_INLINE bool InWideRange(uint128_t v, uint64_t low, uint64_t high_of_low, uint64_t span, uint64_t high_of_span) {
  return v - (uint128_t{high_of_low} << 64 | low) <= (uint128_t{high_of_span} << 64 | span);
}

// The same for eight values, whose lower and upper halves are taken apart.
QUERN_INLINE uint64_t WideRangeBits(const uint8_t* values, uint64_t low, uint64_t high_of_low, uint64_t span,
                                    uint64_t high_of_span) {
  const U64x8 a = Load<U64x8>(values), b = Load<U64x8>(values + sizeof(U64x8));
  const U64x8 lower = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
  const U64x8 upper = __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
  const U64x8 difference = lower - low, borrows = (U64x8)(lower < low);  // -1 where it borrows
  const U64x8 rest = upper - high_of_low + borrows;
  const U64x8 is_below = (U64x8)(rest < high_of_span), is_even = (U64x8)(rest == high_of_span);
  return MaskBits((U64x8)(is_below | (is_even & (U64x8)(difference <= span))));
}

QUERN_INLINE uint32_t TestWideRange(const QuernColumn* column, uint64_t first, const uint32_t* rows, uint32_t n,
                                    uint64_t* mask, uint64_t rows_ahead, uint64_t low, uint64_t high_of_low,
                                    uint64_t span, uint64_t high_of_span, bool negated) {
  const uint32_t num_words = FullWords(rows, n);
  const uint64_t bytes_ahead = rows_ahead * 16;
  const uint8_t* values = static_cast<const uint8_t*>(column->values) + first * 16;
  for (uint32_t w = 0; w < num_words; ++w, values += 1024) {
    if (mask[w] == 0) continue;
    uint64_t bits = 0;
    if (IsSparse<uint128_t>(mask[w])) {
      bits = TestSparse<uint128_t>(values, mask, w, num_words, rows_ahead,
                                   [=](uint128_t v) __attribute__((always_inline)) {
                                     return InWideRange(v, low, high_of_low, span, high_of_span);
                                   });
    } else {
      PrefetchAhead<uint128_t>(values, bytes_ahead);
      QUERN_UNROLLED for (uint32_t b = 0; b < 8; ++b) bits |=
          WideRangeBits(values + b * 128, low, high_of_low, span, high_of_span) << (b * 8);
    }
    mask[w] &= negated ? ~bits : bits;
  }
  return num_words * 64;
}

QUERN_INLINE uint32_t TestBits(const QuernColumn* column, uint64_t first, const uint32_t* rows, uint32_t n,
                               uint64_t* mask, bool wanted) {
  const uint32_t num_words = FullWords(rows, n);
  for (uint32_t w = 0; w < num_words; ++w) {
    const uint64_t bits = BitmapWord(static_cast<const uint8_t*>(column->values), column->bit_offset + first + w * 64);
    mask[w] &= wanted ? bits : ~bits;
  }
  return num_words * 64;
}

// V has signed lanes if the values have a sign. comparison: a Comparison of spec.h.
template <class V>
QUERN_INLINE uint64_t CompareLanes(V a, V b, uint8_t comparison) {
  switch (comparison) {
    case 0: return MaskBits((V)(a < b));
    case 1: return MaskBits((V)(a <= b));
    case 2: return MaskBits((V)(a > b));
    case 3: return MaskBits((V)(a >= b));
    case 4: return MaskBits((V)(a != b));
    default: return MaskBits((V)(a == b));
  }
}

template <class T>
struct SignedOf;
template <> struct SignedOf<uint8_t> {
  using Type = int8_t;
};
template <> struct SignedOf<uint16_t> {
  using Type = int16_t;
};
template <> struct SignedOf<uint32_t> {
  using Type = int32_t;
};
template <> struct SignedOf<uint64_t> {
  using Type = int64_t;
};

template <Storage kStorage>
QUERN_INLINE uint32_t TestColumns(const QuernColumn* a, const QuernColumn* b, uint64_t first, const uint32_t* rows,
                                  uint32_t n, uint64_t* mask, uint64_t rows_ahead, uint8_t comparison, bool is_signed) {
  using T = typename ReaderOf<kStorage>::Value;
  typedef T V __attribute__((vector_size(64)));
  typedef typename SignedOf<T>::Type S __attribute__((vector_size(64)));
  const uint32_t num_words = FullWords(rows, n);
  const uint64_t bytes_ahead = rows_ahead * sizeof(T);
  const uint8_t* x = static_cast<const uint8_t*>(a->values) + first * sizeof(T);
  const uint8_t* y = static_cast<const uint8_t*>(b->values) + first * sizeof(T);
  for (uint32_t w = 0; w < num_words; ++w, x += 64 * sizeof(T), y += 64 * sizeof(T)) {
    if (mask[w] == 0) continue;
    uint64_t bits = 0;
    PrefetchAhead<T>(x, bytes_ahead);
    PrefetchAhead<T>(y, bytes_ahead);
    QUERN_UNROLLED for (uint32_t i = 0; i < sizeof(T); ++i) {
      const V left = OrderedLanes<kStorage>(Load<V>(x + i * 64)), right = OrderedLanes<kStorage>(Load<V>(y + i * 64));
      const uint64_t some =
          is_signed ? CompareLanes((S)left, (S)right, comparison) : CompareLanes(left, right, comparison);
      bits |= some << (i * (64 / sizeof(T)) % 64);
    }
    mask[w] &= bits;
  }
  return num_words * 64;
}

}  // namespace quern::blocks

#endif  // QUERN_RUNTIME_BLOCKS_FILTER_BLOCKS_H_
