// SPDX-License-Identifier: Apache-2.0
// The primitives of blocks: memory as words, hashes of words and of bytes, comparison of bytes. They are plain
// functions that are always inlined, so that templates, generic kernels and the runtime compute the same.
#ifndef QUERN_RUNTIME_BASE_BYTES_H_
#define QUERN_RUNTIME_BASE_BYTES_H_

#include "runtime/abi/kernel_abi.h"

// 32 bytes of ones, then 32 zeros. Each kernel that needs it has its own copy.
extern "C" {
alignas(64) inline constexpr uint8_t quern_constant_short_masks[64] = {
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
}

namespace quern::blocks {

#define QUERN_INLINE inline __attribute__((always_inline))

using uint128_t = unsigned __int128;

// Eight 64-bit lanes: one AVX-512 register, two of AVX2, four of SSE or NEON; LLVM splits it as the machine needs.
// Hashing is written with this type so that no vectoriser has to run when a kernel is compiled.
typedef uint64_t U64x8 __attribute__((vector_size(64)));
constexpr uint32_t kLanes = 8;

template <class T>
QUERN_INLINE T Load(const void* p) {
  T value;
  __builtin_memcpy(&value, p, sizeof(T));
  return value;
}

// Element i of an array that may lie at any address: a host's buffers need not be aligned.
template <class T>
QUERN_INLINE T LoadAt(const void* array, uint64_t i) {
  return Load<T>(static_cast<const uint8_t*>(array) + i * sizeof(T));
}

template <class T>
QUERN_INLINE void Store(void* p, T value) {
  __builtin_memcpy(p, &value, sizeof(T));
}

// ---- hashing ----

// The odd numbers that hashes are made with. Tables use those of the process, quern_hash_secret, which are drawn at
// random when the library is loaded (hash_secret.cc): whoever does not know them cannot choose keys that collide. What
// leaves the process (partition numbers, sketches) uses kPublicHash, which is the same everywhere.
enum HashNumber : uint8_t { kMultiplier1, kMultiplier2, kCombine, kNumHashNumbers };
typedef uint64_t HashSecret[kNumHashNumbers];
constexpr HashSecret kPublicHash = {0xd6e8feb86659fd93u, 0xff51afd7ed558ccdu, 0x9e3779b97f4a7c15u};
// Constant from the first job on, so that loops keep it in registers. Generated code refers to it by name and can
// therefore be shared between processes.
extern "C" __attribute__((visibility("default"))) const HashSecret quern_hash_secret;

constexpr uint64_t kNullInput = 0x5bd1e9955bd1e995u;

// A bijection of 64 bits (the structure of MurmurHash3's finaliser, two multiplications). The slot is taken from the
// highest bits, the tag from the lowest. V: uint64_t or U64x8.
//
// The last multiplication by a random odd number is universal in its highest bits (multiply-shift, Dietzfelbinger et
// al., 1997): any two keys chosen without knowledge of it share the highest k bits with a probability of at most
// 2 / 2^k. The steps before it break up arithmetic progressions, for which multiply-shift alone is weak.
template <class V>
QUERN_INLINE V Mix(V x, const HashSecret& secret) {
  x ^= x >> 32;
  x *= secret[kMultiplier1];
  x ^= x >> 32;
  x *= secret[kMultiplier2];
  x ^= x >> 32;
  return x;
}

// The hash of keys (k0, .., ki), from the hash of the keys before ki and the value of ki. Not symmetric: (a, b) and (b,
// a) differ.
template <class V>
QUERN_INLINE V Combine(V hash, V value, const HashSecret& secret) {
  return Mix(hash * secret[kCombine] + value, secret);
}

// 64 x 64 -> 128 bits, folded: the mixing step of wyhash (Wang Yi).
QUERN_INLINE uint64_t FoldedMultiply(uint64_t a, uint64_t b) {
  uint128_t product = static_cast<uint128_t>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// The number of bytes read of a short string, whatever its length.
constexpr uint32_t kShortBytes = 32;

// Whether kShortBytes bytes may be read from p on, given that the first one is readable: the rest of its page is
// readable too, and no other page is touched. (strlen of every C library relies on this.) Sanitizers do not know about
// pages, so with them the result is false.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define QUERN_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define QUERN_SANITIZED 1
#endif
constexpr uint32_t kPageBytes = 4096;  // the smallest page size
QUERN_INLINE uint32_t PlaceInPage(const uint8_t* p) {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(p)) & (kPageBytes - 1);
}

QUERN_INLINE bool MayReadShort(const uint8_t* p) {
#if defined(QUERN_SANITIZED)
  (void)p;
  return false;
#else
  return PlaceInPage(p) <= kPageBytes - kShortBytes;
#endif
}

// The same for a string of n > 0 bytes: if it continues on the next page, both pages are readable.
QUERN_INLINE bool MayReadShort(const uint8_t* p, uint32_t n) {
#if defined(QUERN_SANITIZED)
  (void)p, (void)n;
  return false;
#else
  const uint64_t place = PlaceInPage(p);
  return __builtin_expect(static_cast<int>(place <= kPageBytes - kShortBytes), 1) || place + n > kPageBytes;
#endif
}

// A mask of kShortBytes bytes, with ones in the first n.
QUERN_INLINE const uint8_t* ShortMask(uint32_t n) { return quern_constant_short_masks + kShortBytes - n; }

struct ShortWords {
  uint64_t words[kShortBytes / 8];
};

// Up to 8 bytes as a word, zeros behind the last byte; reads nothing beyond it.
QUERN_INLINE uint64_t ReadTail(const uint8_t* p, uint32_t n) {
  uint64_t word = 0;
  for (uint32_t i = n < 8 ? n : 8; i > 0; --i) word = word << 8 | p[i - 1];
  return word;
}

QUERN_INLINE ShortWords MaskedShort(const uint8_t* p, uint32_t n) {
  const uint8_t* mask = ShortMask(n);
  return {{Load<uint64_t>(p) & Load<uint64_t>(mask), Load<uint64_t>(p + 8) & Load<uint64_t>(mask + 8),
           Load<uint64_t>(p + 16) & Load<uint64_t>(mask + 16), Load<uint64_t>(p + 24) & Load<uint64_t>(mask + 24)}};
}

// ReadShort for a string within the last kShortBytes bytes of its page: loads the page's last bytes.
QUERN_INLINE ShortWords ReadShortAtPageEnd(const uint8_t* p, uint32_t n) {
#if defined(QUERN_SANITIZED)
  return {{ReadTail(p, n), n > 8 ? ReadTail(p + 8, n - 8) : 0, n > 16 ? ReadTail(p + 16, n - 16) : 0,
           n > 24 ? ReadTail(p + 24, n - 24) : 0}};
#else
  const uint32_t before = PlaceInPage(p) - (kPageBytes - kShortBytes);
  uint8_t bytes[2 * kShortBytes] = {};
  __builtin_memcpy(bytes, p - before, kShortBytes);
  return MaskedShort(bytes + before, n);
#endif
}

// Up to kShortBytes bytes as words, zeros behind the last byte. No branch depends on the length, not even for an empty
// string.
QUERN_INLINE ShortWords ReadShort(const uint8_t* p, uint32_t n) {
  const uint8_t* const bytes = n == 0 ? quern_constant_short_masks : p;
  if (__builtin_expect(static_cast<int>(MayReadShort(bytes, n)), 1)) return MaskedShort(bytes, n);
  return ReadShortAtPageEnd(bytes, n);
}

// Hashes n bytes (after wyhash, Wang Yi): words are multiplied by each other in pairs. Strings of up to 32 bytes, which
// covers nearly all keys, are read as four words with zeros behind the last byte, so that no branch depends on a
// length, which would be unpredictable. A word that equals the secret's makes a product of 0 whatever its partner is;
// nobody who does not know the secret can choose it. *Cost*: up to 32 bytes two multiplications, then one per 16 bytes.
QUERN_INLINE uint64_t HashLastWords(ShortWords s, uint64_t seed, const HashSecret& secret) {
  const uint64_t front = FoldedMultiply(s.words[0] ^ secret[kMultiplier1], s.words[1] ^ seed);
  return FoldedMultiply(s.words[2] ^ secret[kCombine], s.words[3] ^ front);
}

QUERN_INLINE uint64_t HashBytes(const uint8_t* p, uint64_t n, const HashSecret& secret) {
  uint64_t seed = secret[kMultiplier2] ^ n, rest = n;
  for (; rest > kShortBytes; rest -= 16, p += 16)
    seed = FoldedMultiply(Load<uint64_t>(p) ^ secret[kMultiplier1], Load<uint64_t>(p + 8) ^ seed);
  return HashLastWords(ReadShort(p, static_cast<uint32_t>(rest)), seed, secret);
}

// The same for n bytes, up to kShortBytes, that have been read as words.
QUERN_INLINE uint64_t HashShort(ShortWords s, uint64_t n, const HashSecret& secret) {
  return HashLastWords(s, secret[kMultiplier2] ^ n, secret);
}

// ---- strings ----

struct Bytes {
  const uint8_t* data;
  uint32_t length;
};

// PAD SPACE: removes trailing U+0020. In the common case it tests only the last byte, first of all (as TiFlash does).
QUERN_INLINE Bytes TrimSpaces(Bytes s) {
  if (s.length == 0 || __builtin_expect(static_cast<int>(s.data[s.length - 1] != ' '), 1)) return s;
  while (s.length > 0 && s.data[s.length - 1] == ' ') --s.length;
  return s;
}

// Compares up to 16 bytes by two words that overlap; reads nothing beyond them.
QUERN_INLINE bool EqualFewBytes(const uint8_t* a, const uint8_t* b, uint32_t n) {
  if (n >= 8)
    return ((Load<uint64_t>(a) ^ Load<uint64_t>(b)) | (Load<uint64_t>(a + n - 8) ^ Load<uint64_t>(b + n - 8))) == 0;
  if (n >= 4)
    return ((Load<uint32_t>(a) ^ Load<uint32_t>(b)) | (Load<uint32_t>(a + n - 4) ^ Load<uint32_t>(b + n - 4))) == 0;
  if (n == 0) return true;
  return ((a[0] ^ b[0]) | (a[n >> 1] ^ b[n >> 1]) | (a[n - 1] ^ b[n - 1])) == 0;
}

// Compares n bytes; reads nothing beyond them. Up to 128 bytes are compared by pairs of words and an overlapping pair
// at the end, all of them before any branch: in 99 of 100 cases the bytes are equal, and a call costs more than 64
// bytes do.
QUERN_INLINE bool EqualBytes(const uint8_t* a, const uint8_t* b, uint32_t n) {
  typedef uint64_t U64x2 __attribute__((vector_size(16)));
  if (n > 128) return __builtin_memcmp(a, b, n) == 0;
  if (n <= 16) return EqualFewBytes(a, b, n);
  U64x2 difference = Load<U64x2>(a + n - 16) ^ Load<U64x2>(b + n - 16);
  for (uint32_t i = 0; i + 16 < n; i += 16) difference |= Load<U64x2>(a + i) ^ Load<U64x2>(b + i);
  return (difference[0] | difference[1]) == 0;
}

}  // namespace quern::blocks

// Outlined functions: a kernel has one copy and calls it. They are paths that few strings take; a copy for every key
// would be half of what is compiled. Such a function preserves all registers but r11 and the vector registers
// (preserve_most), so that its callers' loops need not spill; in return it must not call anything itself. Outside of
// templates it is inlined like the others.
#if defined(QUERN_TEMPLATE)
#define QUERN_OUTLINED inline __attribute__((noinline, preserve_most))
#else
#define QUERN_OUTLINED inline __attribute__((always_inline))
#endif

extern "C" {
// EqualBytes.
QUERN_OUTLINED bool quern_outlined_equal_bytes(const uint8_t* a, const uint8_t* b, uint32_t n) {
  using quern::blocks::Load;
  typedef uint64_t U64x2 __attribute__((vector_size(16)));
  if (n <= 16) return quern::blocks::EqualFewBytes(a, b, n);
  const uint8_t *const a_last = a + n - 16, *const b_last = b + n - 16;
  U64x2 difference = Load<U64x2>(a_last) ^ Load<U64x2>(b_last);
  for (; a < a_last; a += 16, b += 16) difference |= Load<U64x2>(a) ^ Load<U64x2>(b);
  return (difference[0] | difference[1]) == 0;
}
}

#endif  // QUERN_RUNTIME_BASE_BYTES_H_
