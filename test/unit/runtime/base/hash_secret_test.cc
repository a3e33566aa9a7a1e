// SPDX-License-Identifier: Apache-2.0
// Keys that are chosen to collide under the public hash spread as random ones do under the secret of the process, for
// each of the functions that tables hash with.
#include "runtime/base/hash_secret.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/base/bytes.h"
#include "runtime/blocks/blocks.h"
#include "runtime/collation/collation.h"
#include "test/unit/seed.h"

namespace quern {
namespace {

namespace b = blocks;

constexpr uint32_t kKeysLog2 = 16, kKeys = 1u << kKeysLog2;

// The most keys that begin at one slot of a table with as many slots as keys. Of random keys it is 7 to 10.
uint32_t FullestSlot(const std::function<uint64_t(uint32_t)>& hash_of_key) {
  std::vector<uint32_t> slots(kKeys);
  for (uint32_t key = 0; key < kKeys; ++key) ++slots[hash_of_key(key) >> (64 - kKeysLog2)];
  return *std::max_element(slots.begin(), slots.end());
}
constexpr uint32_t kRandomlyFull = 12;

// By Newton's iteration; each step doubles the number of right bits.
uint64_t Inverse(uint64_t odd) {
  uint64_t inverse = odd;
  for (int i = 0; i < 5; ++i) inverse *= 2 - odd * inverse;
  return inverse;
}

// The word whose public hash is `hash`.
uint64_t Unmixed(uint64_t hash) {
  hash ^= hash >> 32;
  hash *= Inverse(b::kPublicHash[b::kMultiplier2]);
  hash ^= hash >> 32;
  hash *= Inverse(b::kPublicHash[b::kMultiplier1]);
  return hash ^ hash >> 32;
}

// No call hashes with the public numbers because it forgot to name a secret.
template <class Word, class Byte, class Words, class Text>
concept HashesWithoutSecret = requires(Word word, const Byte* p, Words words, Text text) {
  requires requires { b::Mix(word); } || requires { b::Combine(word, word); } || requires { b::HashBytes(p, word); } ||
               requires { b::HashShort(words, word); } || requires { HashString(text, CollationRule{}); };
};
static_assert(!HashesWithoutSecret<uint64_t, uint8_t, b::ShortWords, b::Bytes>);

uint64_t CraftedWord(uint32_t key) { return Unmixed(uint64_t{0xdeadbeef12} << 24 | key); }

TEST(HashSecret, WordsOfOneSlotSpread) {
  EXPECT_EQ(FullestSlot([](uint32_t key) { return b::Mix(CraftedWord(key), b::kPublicHash); }), kKeys);
  EXPECT_LE(FullestSlot([](uint32_t key) { return b::Mix(CraftedWord(key), b::quern_hash_secret); }), kRandomlyFull);
}

TEST(HashSecret, PairsOfKeysOfOneSlotSpread) {
  const auto pair = [](uint32_t key, const b::HashSecret& secret) {
    // The second key takes back what the first one adds before the last Mix.
    const uint64_t first = key * uint64_t{0x10001} + 3;
    const uint64_t second = CraftedWord(key) - b::Mix(first, b::kPublicHash) * b::kPublicHash[b::kCombine];
    return b::Combine(b::Mix(first, secret), second, secret);
  };
  EXPECT_EQ(FullestSlot([&](uint32_t key) { return pair(key, b::kPublicHash); }), kKeys);
  EXPECT_LE(FullestSlot([&](uint32_t key) { return pair(key, b::quern_hash_secret); }), kRandomlyFull);
}

// Multiplication alone is weak for these.
TEST(HashSecret, ProgressionsSpread) {
  for (const int shift : {0, 1, 7, 16, 31, 32, 40, 47}) {
    EXPECT_LE(FullestSlot([&](uint32_t key) { return b::Mix(uint64_t{key} << shift, b::quern_hash_secret); }), 40u)
        << shift;
  }
}

// A word that equals the public number makes a product of 0, whatever the words beside it are.
TEST(HashSecret, StringsWithAnAbsorbingWordSpread) {
  const auto text = [](uint32_t key, const b::HashSecret& secret) {
    uint64_t words[4] = {key, 0, b::kPublicHash[b::kCombine], 7};
    return b::HashBytes(reinterpret_cast<const uint8_t*>(words), sizeof(words), secret);
  };
  EXPECT_EQ(FullestSlot([&](uint32_t key) { return text(key, b::kPublicHash); }), kKeys);
  EXPECT_LE(FullestSlot([&](uint32_t key) { return text(key, b::quern_hash_secret); }), kRandomlyFull);
}

TEST(HashSecret, DecimalsWithAnAbsorbingWordSpread) {
  const auto decimal = [](uint32_t key, const b::HashSecret& secret) {
    const b::uint128_t value = b::uint128_t{key} << 64 | b::kPublicHash[b::kMultiplier1];
    QuernColumn column = {};
    column.values = &value;
    return b::HashInput<k128>(&column, 0, 0, 0, nullptr, secret);
  };
  EXPECT_EQ(FullestSlot([&](uint32_t key) { return decimal(key, b::kPublicHash); }), kKeys);
  EXPECT_LE(FullestSlot([&](uint32_t key) { return decimal(key, b::quern_hash_secret); }), kRandomlyFull);
}

// Read each time, although the compiler takes them for constants.
std::vector<uint64_t> NumbersNow() {
  const volatile uint64_t* const numbers = b::quern_hash_secret;
  return {numbers[0], numbers[1], numbers[2]};
}

TEST(HashSecret, ASeedDeterminesOddNumbersThatMix) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    SetHashSeed(seed);
    const std::vector<uint64_t> first = NumbersNow();
    for (const uint64_t number : first) {
      EXPECT_EQ(number & 1, 1u);
      EXPECT_GE(__builtin_popcountll(number), 24);
    }
    SetHashSeed(seed);
    EXPECT_EQ(NumbersNow(), first) << seed;
  }
  SetHashSeed(test::Seed());
}

}  // namespace
}  // namespace quern
