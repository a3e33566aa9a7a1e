// SPDX-License-Identifier: Apache-2.0
// The bytes of adjacent strings follow each other. So eight bytes may be read from a string's first one on, whatever
// its length, as long as the column has eight more; those of the next string are masked out. Offsets 0 4 9 .. of
// "railship1..":
//
//     read        r a i l s h i p     s h i p 1 . . .
//     length      4                   5
//     masked      r a i l 0 0 0 0     s h i p 1 0 0 0
//     reversed    0x7261696c00000000  0x7368697031000000      the first byte highest: numbers order as strings do
//
// Lengths, masks and the reversal are vector instructions over eight strings; only the loads are one by one. No branch
// depends on a length.
//
// When a sort with a limit looks for rows that may be in the result, it does nothing else for a row, so that the loop
// waits for memory: it prefetches bytes and offsets 8 KiB ahead, further than the hardware prefetcher reaches. (The
// first eight of 16 bytes, 10 M strings on a Zen 5 core: 10.5 ms one by one, 5.6 ms this way; only reading all these
// bytes takes 5.4 ms.)
// nothing else takes 5.4 ms.)
#include "runtime/blocks/string_prefix.h"

#include "runtime/base/bytes.h"
#include "runtime/base/cpu.h"
#include "runtime/base/prefetch_line.h"

namespace quern::blocks {
namespace {

typedef uint64_t Words __attribute__((vector_size(64)));
typedef int32_t Offsets32 __attribute__((vector_size(32)));
typedef int64_t Offsets64 __attribute__((vector_size(64)));
typedef uint8_t WordBytes __attribute__((vector_size(64)));

constexpr uint32_t kStrings = 8;
constexpr uint32_t kBytesPerFarString =
    256;  // of the distance, where strings are so long that few lines of it are read

QUERN_INLINE Words LengthsOf(const int32_t* offsets) {
  return __builtin_convertvector(Load<Offsets32>(offsets + 1) - Load<Offsets32>(offsets), Words);
}
QUERN_INLINE Words LengthsOf(const int64_t* offsets) {
  return (Words)(Load<Offsets64>(offsets + 1) - Load<Offsets64>(offsets));
}

template <class Offset>
QUERN_INLINE Words ReadEight(const uint8_t* values, const Offset* offsets) {
  return Words{Load<uint64_t>(values + offsets[0]), Load<uint64_t>(values + offsets[1]),
               Load<uint64_t>(values + offsets[2]), Load<uint64_t>(values + offsets[3]),
               Load<uint64_t>(values + offsets[4]), Load<uint64_t>(values + offsets[5]),
               Load<uint64_t>(values + offsets[6]), Load<uint64_t>(values + offsets[7])};
}

QUERN_INLINE Words AtMost(Words v, uint64_t most) { return v < most ? v : Words{} + most; }

// Masks of words: ones in as many of the lowest bytes as each length says, up to eight.
QUERN_INLINE Words MasksOf(Words lengths) {
  const Words bits = AtMost(lengths, 8) << 3;
  return bits == 0 ? Words{} : ~Words{} >> ((64 - bits) & 63);
}

QUERN_INLINE Words Turned(Words v) {
  const WordBytes b = (WordBytes)v;
  return (Words)__builtin_shufflevector(b, b, 7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8, 23, 22, 21, 20, 19,
                                        18, 17, 16, 31, 30, 29, 28, 27, 26, 25, 24, 39, 38, 37, 36, 35, 34, 33, 32, 47,
                                        46, 45, 44, 43, 42, 41, 40, 55, 54, 53, 52, 51, 50, 49, 48, 63, 62, 61, 60, 59,
                                        58, 57, 56);
}

// Prefetches the offsets and the bytes of strings ahead, assuming that these are as long as the eight given ones. For
// long strings it prefetches only one line each, some strings ahead, since the bytes between are not read.
template <class Prefetch, class Offset>
QUERN_INLINE void PrefetchAhead(const StringRun<Offset>& strings, uint32_t i) {
  if constexpr (!Prefetch::kPrefetches) return;
  const uint64_t ahead_bytes = 2 * uint64_t{strings.prefetch_bytes};
  const uint32_t far_strings = strings.prefetch_bytes / kBytesPerFarString;
  Prefetch::For(reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(strings.offsets + i) + ahead_bytes));
  const uintptr_t here = reinterpret_cast<uintptr_t>(strings.values) + static_cast<uint64_t>(strings.offsets[i]);
  const auto bytes = static_cast<uint64_t>(strings.offsets[i + kStrings] - strings.offsets[i]);
  if (bytes <= 128) {
    Prefetch::For(reinterpret_cast<const void*>(here + ahead_bytes));
    Prefetch::For(reinterpret_cast<const void*>(here + ahead_bytes + 64));
  } else if (bytes <= 512) {
    for (uint32_t line = 0; line < 8; ++line)
      Prefetch::For(reinterpret_cast<const void*>(here + ahead_bytes + line * 64));
  } else if (i + far_strings + kStrings < strings.num_offsets) {
    for (uint32_t s = 0; s < kStrings; ++s) Prefetch::For(strings.values + strings.offsets[i + far_strings + s]);
  }
}

template <class Prefetch, class Offset>
QUERN_INLINE uint32_t FrontsOf(const StringRun<Offset>& strings, uint32_t n, uint64_t fill, uint64_t* fronts) {
  const StringRun<Offset> s = strings;  // a copy, which storing a front cannot alias
  const Offset end = s.offsets[s.num_offsets - 1];
  uint32_t i = 0;
  for (; i + kStrings <= n && end - s.offsets[i + kStrings - 1] >= 8; i += kStrings) {
    PrefetchAhead<Prefetch>(s, i);
    const Words read = ReadEight(s.values, s.offsets + i), mask = MasksOf(LengthsOf(s.offsets + i));
    Store(fronts + i, Turned(((read ^ fill) & mask) ^ fill));
  }
  return i;
}

// Whether a string is longer than 16 bytes, or its last byte is zero: that byte is the lowest of the rest of its word,
// after the bytes before it are shifted out.
QUERN_INLINE Words IsMore(Words lengths, Words front, Words back) {
  const Words last = (lengths > 8 ? back : front) >> (((lengths - 1) & 7) << 3);
  return (Words)(lengths > 16) | ((Words)((last & 0xff) == 0) & (Words)(lengths != 0));
}

template <class Prefetch, class Offset>
QUERN_INLINE uint32_t PrefixesOf(const StringRun<Offset>& strings, uint32_t n, uint64_t* high, uint64_t* low,
                                 bool* incomplete) {
  const StringRun<Offset> s = strings;
  const Offset end = s.offsets[s.num_offsets - 1];
  Words more = {};
  uint32_t i = 0;
  for (; i + kStrings <= n && end - s.offsets[i + kStrings - 1] >= 16; i += kStrings) {
    PrefetchAhead<Prefetch>(s, i);
    const Words lengths = LengthsOf(s.offsets + i);
    const Words front = ReadEight(s.values, s.offsets + i), back = ReadEight(s.values + 8, s.offsets + i);
    more |= IsMore(lengths, front, back);
    Store(high + i, Turned(front & MasksOf(lengths)));
    Store(low + i, Turned(back & MasksOf(lengths > 8 ? lengths - 8 : Words{})));
  }
  uint64_t any = 0;
  for (uint32_t lane = 0; lane < 8; ++lane) any |= more[lane];
  *incomplete |= any != 0;
  return i;
}

#define QUERN_PREFIX_LOOPS(suffix, target)                                                                           \
  target uint32_t Fronts32##suffix(const StringRun<int32_t>& strings, uint32_t n, uint64_t fill, uint64_t* fronts) { \
    return strings.prefetch_bytes != 0 ? FrontsOf<PrefetchWith<PrefetchHint::kT0>>(strings, n, fill, fronts)         \
                                       : FrontsOf<NoPrefetch>(strings, n, fill, fronts);                             \
  }                                                                                                                  \
  target uint32_t Fronts64##suffix(const StringRun<int64_t>& strings, uint32_t n, uint64_t fill, uint64_t* fronts) { \
    return strings.prefetch_bytes != 0 ? FrontsOf<PrefetchWith<PrefetchHint::kT0>>(strings, n, fill, fronts)         \
                                       : FrontsOf<NoPrefetch>(strings, n, fill, fronts);                             \
  }                                                                                                                  \
  target uint32_t Prefixes32##suffix(const StringRun<int32_t>& strings, uint32_t n, uint64_t* high, uint64_t* low,   \
                                     bool* more) {                                                                   \
    return strings.prefetch_bytes != 0 ? PrefixesOf<PrefetchWith<PrefetchHint::kT0>>(strings, n, high, low, more)    \
                                       : PrefixesOf<NoPrefetch>(strings, n, high, low, more);                        \
  }                                                                                                                  \
  target uint32_t Prefixes64##suffix(const StringRun<int64_t>& strings, uint32_t n, uint64_t* high, uint64_t* low,   \
                                     bool* more) {                                                                   \
    return strings.prefetch_bytes != 0 ? PrefixesOf<PrefetchWith<PrefetchHint::kT0>>(strings, n, high, low, more)    \
                                       : PrefixesOf<NoPrefetch>(strings, n, high, low, more);                        \
  }                                                                                                                  \
  constexpr PrefixLoops kLoops##suffix = {#suffix, Fronts32##suffix, Fronts64##suffix, Prefixes32##suffix,           \
                                          Prefixes64##suffix};

QUERN_PREFIX_LOOPS(Baseline, )
#if defined(__x86_64__)
QUERN_PREFIX_LOOPS(Avx2, __attribute__((target("avx2"))))
QUERN_PREFIX_LOOPS(Avx512, __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))))
#endif

}  // namespace

uint32_t PrefixLoopsOfMachine(PrefixLoops* loops) {
  uint32_t n = 0;
  loops[n++] = kLoopsBaseline;
#if defined(__x86_64__)
  if (!HasAvx2()) return n;
  loops[n++] = kLoopsAvx2;
  if (HasAvx512()) loops[n++] = kLoopsAvx512;
#endif
  return n;
}

namespace {

PrefixLoops BestLoops() {
  PrefixLoops loops[kMostPrefixLoops];
  return loops[PrefixLoopsOfMachine(loops) - 1];
}

const PrefixLoops& Loops() {
  static const PrefixLoops loops = BestLoops();
  return loops;
}

}  // namespace

uint32_t ReadFronts(const StringRun<int32_t>& strings, uint32_t n, uint64_t fill, uint64_t* fronts) {
  return Loops().fronts32(strings, n, fill, fronts);
}
uint32_t ReadFronts(const StringRun<int64_t>& strings, uint32_t n, uint64_t fill, uint64_t* fronts) {
  return Loops().fronts64(strings, n, fill, fronts);
}
uint32_t ReadPrefixes(const StringRun<int32_t>& strings, uint32_t n, uint64_t* high, uint64_t* low, bool* incomplete) {
  return Loops().prefixes32(strings, n, high, low, incomplete);
}
uint32_t ReadPrefixes(const StringRun<int64_t>& strings, uint32_t n, uint64_t* high, uint64_t* low, bool* incomplete) {
  return Loops().prefixes64(strings, n, high, low, incomplete);
}

}  // namespace quern::blocks
