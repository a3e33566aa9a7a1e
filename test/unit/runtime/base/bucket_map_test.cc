// SPDX-License-Identifier: Apache-2.0
// Buckets ascend with words, whatever a sample has missed, and have about the same size where it has missed nothing.
#include "runtime/base/bucket_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace quern {
namespace {

// The same numbers each time.
std::mt19937_64 RandomFrom(uint64_t seed) { return std::mt19937_64(seed); }

uint32_t BucketOf(const BucketMap& map, uint64_t word) {
  return map.is_plain() ? static_cast<uint32_t>(word >> map.shift()) : BucketMap::BucketOf(map.ranges(), word);
}

void ExpectInOrder(const BucketMap& map, std::vector<uint64_t> words) {
  std::sort(words.begin(), words.end());
  uint32_t last = 0;
  for (const uint64_t word : words) {
    const uint32_t bucket = BucketOf(map, word);
    EXPECT_LT(bucket, map.num_buckets());
    EXPECT_GE(bucket, last);
    last = bucket;
  }
}

TEST(BucketMap, EvenWordsTakeTheHighestBits) {
  std::mt19937_64 random = RandomFrom(1);
  std::vector<uint64_t> words(16384);
  for (uint64_t& word : words) word = random();
  const BucketMap map(10, words);
  EXPECT_TRUE(map.is_plain());
  EXPECT_EQ(map.num_buckets(), 1024u);
  ExpectInOrder(map, words);
}

TEST(BucketMap, UnevenWordsGetBucketsOfAboutTheSameSize) {
  std::mt19937_64 random = RandomFrom(2);
  std::vector<uint64_t> words(65536);
  for (uint64_t& word : words)
    word = static_cast<uint64_t>(std::exp(44.0 * static_cast<double>(random() >> 11) * 0x1p-53));  // 1 to 2^63
  const BucketMap map(10, std::vector<uint64_t>(words.begin(), words.begin() + 16384));
  ASSERT_FALSE(map.is_plain());
  ExpectInOrder(map, words);
  std::vector<uint32_t> sizes(map.num_buckets());
  for (const uint64_t word : words) ++sizes[BucketOf(map, word)];
  // Numbers below 2^53 share one range of highest bits, where the largest of them fill most of what shifts can
  // distinguish.
  uint32_t num_taken = 0;
  for (const uint32_t size : sizes) num_taken += size != 0 ? 1 : 0;
  EXPECT_GT(num_taken, 64u);
}

TEST(BucketMap, WordsThatTheSampleHasMissedAreInOrderToo) {
  std::mt19937_64 random = RandomFrom(3);
  std::vector<uint64_t> words = {0, 1, ~uint64_t{0}, ~uint64_t{0} - 1, uint64_t{1} << 63};
  std::vector<uint64_t> sample;
  for (int i = 0; i < 5000; ++i) sample.push_back((uint64_t{5} << 40) + random() % 100000);
  for (int i = 0; i < 5000; ++i) words.push_back(random() >> (random() % 64));
  words.insert(words.end(), sample.begin(), sample.end());
  for (const uint32_t bits : {1u, 4u, 11u}) ExpectInOrder(BucketMap(bits, sample), words);
}

TEST(BucketMap, OneValueIsOneBucket) {
  const BucketMap map(8, std::vector<uint64_t>(1000, 42));
  ExpectInOrder(map, {0, 41, 42, 43, ~uint64_t{0}});
}

}  // namespace
}  // namespace quern
