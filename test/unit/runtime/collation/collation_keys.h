// SPDX-License-Identifier: Apache-2.0
// Keys of strings as values, and a check that all functions of collation.h agree on two strings.
#ifndef QUERN_TEST_UNIT_RUNTIME_COLLATION_COLLATION_KEYS_H_
#define QUERN_TEST_UNIT_RUNTIME_COLLATION_COLLATION_KEYS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/collation/collation.h"
#include "runtime/collation/collation_weights.h"
#include "test/unit/runtime/collation/collated_texts.h"

namespace quern::test {

inline std::string TextOf(char32_t c) {
  uint8_t bytes[kMaxCharacterKeyBytes];
  const uint32_t size = EncodeCharacter(c, bytes);
  return {reinterpret_cast<const char*>(bytes), size};
}

inline std::string OrderKey(const std::string& s, CollationRule rule) {
  std::string key;
  AppendOrderKey(BytesOfText(s), rule, &key);
  return key;
}

inline std::string EqualityKey(const std::string& s, CollationRule rule) {
  std::string key;
  AppendEqualityKey(BytesOfText(s), rule, &key);
  return key;
}

inline int Sign(int64_t number) { return number < 0 ? -1 : number > 0 ? 1 : 0; }

// Compares order keys that are followed by the pad byte, or by nothing.
inline int CompareKeys(std::string a, std::string b, CollationRule rule) {
  const size_t length = std::max(a.size(), b.size());
  if ((rule & kPadsSpaces) != 0) {
    a.resize(length, static_cast<char>(PadByte(rule)));
    b.resize(length, static_cast<char>(PadByte(rule)));
  }
  return Sign(a.compare(b));
}

// The order key in pieces from OrderKeyBytes, which pads them after the key's end.
inline std::string KeyByPieces(const std::string& s, CollationRule rule, uint32_t piece) {
  std::string key;
  std::vector<uint8_t> bytes(piece);
  for (uint32_t from = 0;; from += piece) {
    const uint32_t n = OrderKeyBytes(BytesOfText(s), rule, from, piece, bytes.data());
    key.append(reinterpret_cast<const char*>(bytes.data()), std::min(n, piece));
    for (uint32_t i = n; i < piece; ++i) EXPECT_EQ(bytes[i], PadByte(rule));
    if (n <= piece) return key;
  }
}

inline void ExpectOrder(const std::string& a, const std::string& b, int order, CollationRule rule,
                        const std::string& name) {
  const std::string what = name + ": " + ::testing::PrintToString(a) + ", " + ::testing::PrintToString(b);
  ASSERT_EQ(CompareKeys(OrderKey(a, rule), OrderKey(b, rule), rule), order) << what;
  ASSERT_EQ(Sign(CompareStrings(BytesOfText(a), BytesOfText(b), rule)), order) << what;
  ASSERT_EQ(Sign(CompareStrings(BytesOfText(b), BytesOfText(a), rule)), -order) << what;
  ASSERT_EQ(EqualStrings(BytesOfText(a), BytesOfText(b), rule), order == 0) << what;
  ASSERT_EQ(EqualityKey(a, rule) == EqualityKey(b, rule), order == 0) << what;
  const uint64_t hash = HashString(BytesOfText(a), rule, blocks::kPublicHash),
                 other = HashString(BytesOfText(b), rule, blocks::kPublicHash);
  ASSERT_TRUE(order != 0 || hash == other) << what;
  const std::string key = EqualityKey(a, rule);
  ASSERT_EQ(hash, blocks::HashBytes(BytesOfText(key).data, key.size(), blocks::kPublicHash)) << what;
}

}  // namespace quern::test

#endif  // QUERN_TEST_UNIT_RUNTIME_COLLATION_COLLATION_KEYS_H_
