// SPDX-License-Identifier: Apache-2.0
// Weights of characters, and the bytes that they contribute to a string's keys (collation.h). Keys are made character
// by character: no weight depends on a neighbour, so that a common prefix of two strings can be skipped.
#ifndef QUERN_RUNTIME_COLLATION_COLLATION_WEIGHTS_H_
#define QUERN_RUNTIME_COLLATION_COLLATION_WEIGHTS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/base/bytes.h"
#include "runtime/collation/collation_id.h"

namespace quern {

constexpr uint32_t kMaxCharacterWeights = 8;
// The longest key of a character; functions may write this many bytes whatever the key's length.
constexpr uint32_t kMaxCharacterKeyBytes = 32;
// The first byte in a key for a byte that is no part of a character; it begins no weight, and the byte itself follows.
// In latin1 it occurs twice, since the characters that latin1 lacks begin with it too.
constexpr uint8_t kNoCharacter = 0xff;

// The weights of code point c, 0 to kMaxCharacterWeights. Not for kBytes and kIcu.
uint32_t WeightsOf(Weights weights, char32_t c, uint16_t* out);

// Decodes the code point at p and returns its length in bytes, 1 to 4; 0 if no well-formed character begins there (as
// Unicode defines it: no overlong form, no surrogate, nothing above U+10FFFF).
inline uint32_t DecodeCharacter(const uint8_t* p, const uint8_t* end, char32_t* c) {
  const uint32_t first = p[0];
  if (first < 0x80) {
    *c = first;
    return 1;
  }
  const auto rest = static_cast<uint64_t>(end - p);
  const auto is_tail = [](uint32_t byte) { return (byte & 0xc0) == 0x80; };
  if (first < 0xe0) {
    if (first < 0xc2 || rest < 2 || !is_tail(p[1])) return 0;
    *c = (first & 0x1f) << 6 | (p[1] & 0x3f);
    return 2;
  }
  if (first < 0xf0) {
    if (rest < 3 || !is_tail(p[1]) || !is_tail(p[2])) return 0;
    *c = (first & 0xf) << 12 | static_cast<char32_t>(p[1] & 0x3f) << 6 | (p[2] & 0x3f);
    return *c < 0x800 || (*c >= 0xd800 && *c < 0xe000) ? 0 : 3;
  }
  if (first > 0xf4 || rest < 4 || !is_tail(p[1]) || !is_tail(p[2]) || !is_tail(p[3])) return 0;
  *c = (first & 7) << 18 | static_cast<char32_t>(p[1] & 0x3f) << 12 | static_cast<char32_t>(p[2] & 0x3f) << 6 |
       (p[3] & 0x3f);
  return *c < 0x10000 || *c > 0x10ffff ? 0 : 4;
}

// Whether c is a scalar value of Unicode.
inline bool IsCharacter(char32_t c) { return c < 0xd800 || (c >= 0xe000 && c <= 0x10ffff); }

// Writes the UTF-8 form of c, which is below 2^21 and may be a surrogate; returns the number of bytes, 1 to 4.
uint32_t EncodeCharacter(char32_t c, uint8_t* out);

// One of the two keys under one table of weights. Immutable.
class KeyTable {
 public:
  // Made at the first call; lives as long as the process. Not for kBytes and kIcu. *Cost*: milliseconds for the first
  // call.
  static const KeyTable& OfEquality(Weights weights) { return Of(weights, false); }
  static const KeyTable& OfOrder(Weights weights) { return Of(weights, true); }

  // Writes the key of a character to *out, which must have room for kMaxCharacterKeyBytes. *Cost*: a few ns.
  uint32_t Write(char32_t c, uint8_t* out) const {
    const uint64_t* const page = pages_[c >> 8];
    if (__builtin_expect(page == nullptr, 0)) return Make(c, out);
    const uint64_t entry = page[c & 255];
    if (__builtin_expect(entry >= kLongEntry, 0)) return WriteLong(entry, out);
    blocks::Store(out, entry);
    return static_cast<uint32_t>(entry >> 56);
  }
  // A number that exactly the characters with the same key have in common; 0 where only Write can decide.
  uint64_t ClassOf(char32_t c) const {
    const uint64_t* const page = pages_[c >> 8];
    return page == nullptr || page[c & 255] >= kLongEntry ? 0 : page[c & 255] + 1;
  }
  // The class's key, with the first byte highest and its length in the lowest byte.
  static uint64_t KeyOfClass(uint64_t key_class) { return __builtin_bswap64(key_class - 1); }
  // The key of a byte that is no part of a character; only if units are characters.
  uint32_t WriteBadByte(uint8_t byte, uint8_t* out) const {
    uint32_t size = 0;
    out[size++] = kNoCharacter;
    if (weights_ == Weights::kLatin1) out[size++] = kNoCharacter;  // above the characters that latin1 lacks
    out[size++] = byte;
    return size;
  }
  // Whether units are bytes, not characters.
  bool reads_bytes() const { return weights_ == Weights::kAsciiUpper; }
  // The byte of each of U+0020 to U+007E; 0 for all others.
  const std::array<uint8_t, 128>& ascii() const { return ascii_; }
  uint8_t space() const { return ascii_[' ']; }
  // How many of n bytes, a character's key, precede the spaces at its end.
  uint32_t WithoutSpaces(const uint8_t* key, uint32_t n) const {
    return n == 0 || key[n - 1] != space() ? n : BeforeSpaces(key, n);
  }

 private:
  static constexpr uint64_t kMaxEntryBytes = 7, kLongEntry = uint64_t{kMaxEntryBytes + 1} << 56;
  // Weights from `first` on have the code `lead` and 0 to 2 more bytes, none of them 0.
  struct Range {
    uint32_t first;
    uint8_t lead;
    uint8_t more_bytes;
  };

  KeyTable(Weights weights, bool is_order);
  static const KeyTable& Of(Weights weights, bool is_order) {
    const KeyTable* const table = tables_[is_order][static_cast<size_t>(weights)].load(std::memory_order_acquire);
    return __builtin_expect(table != nullptr, 1) ? *table : Made(weights, is_order);
  }
  static const KeyTable& Made(Weights weights, bool is_order);
  uint32_t Make(char32_t c, uint8_t* out) const;
  uint32_t WriteLong(uint64_t entry, uint8_t* out) const;
  uint64_t EntryOf(char32_t c);
  uint32_t BeforeSpaces(const uint8_t* key, uint32_t n) const;
  uint32_t WriteWeight(uint32_t weight, uint8_t* out) const;
  uint32_t WriteOrderWeight(uint32_t weight, uint8_t* out) const;
  void DivideWeights();
  void AddPages();

  static std::atomic<const KeyTable*> tables_[2][static_cast<size_t>(Weights::kIcu) + 1];

  Weights weights_;
  bool is_order_;
  bool is_uca_;
  std::vector<Range> ranges_;                                // order keys of UCA
  std::vector<std::pair<uint16_t, uint8_t>> ascii_weights_;  // equality keys of UCA: weight, capital; by weight
  std::array<uint8_t, 128> ascii_ = {};
  std::array<uint8_t, 256> weight_bytes_ = {};  // by lead, order keys of UCA
  // Entries: a key of up to 7 bytes, or its position in long_; the highest byte is the key's length.
  std::array<const uint64_t*, 0x1100> pages_ = {};
  std::vector<std::unique_ptr<uint64_t[]>> memory_;
  std::vector<uint8_t> long_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_COLLATION_COLLATION_WEIGHTS_H_
