// SPDX-License-Identifier: Apache-2.0
// Dictionary codes: equal strings have equal codes, and ranks are those of the strings among all.
#include "runtime/sort/string_dictionary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/collation/collation.h"
#include "test/unit/runtime/collation/collated_texts.h"
#include "test/unit/seed.h"

namespace quern {
namespace {

std::vector<blocks::Bytes> BytesOfAll(const std::vector<std::string>& texts) {
  std::vector<blocks::Bytes> bytes;
  for (const std::string& text : texts)
    bytes.push_back({reinterpret_cast<const uint8_t*>(text.data()), static_cast<uint32_t>(text.size())});
  return bytes;
}

struct Coded {
  bool few = false;
  std::vector<uint32_t> codes;
};

Coded Add(const std::vector<std::string>& texts, StringDictionary* strings) {
  const std::vector<blocks::Bytes> bytes = BytesOfAll(texts);
  Coded coded;
  coded.codes.resize(texts.size());
  std::vector<const uint8_t*> copies(texts.size());
  const auto few = strings->Add(bytes.data(), static_cast<uint32_t>(bytes.size()), coded.codes.data(), copies.data());
  EXPECT_TRUE(few.ok());
  coded.few = few.ok() && *few;
  for (size_t i = 0; coded.few && i < texts.size(); ++i)
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(copies[i]), texts[i].size()), texts[i]);
  return coded;
}

std::vector<std::string> RandomTexts(uint32_t seed, size_t n) {
  std::mt19937 random(seed);
  std::vector<std::string> texts;
  for (size_t i = 0; i < n; ++i) {
    std::string text(random() % 4 == 0 ? 30 + random() % 8 : random() % 6, 'a');
    for (char& c : text) c = static_cast<char>("ab\0z"[random() % 4]);
    texts.push_back(std::move(text));
  }
  return texts;
}

// Bytes 0 to 7 make the first product 0, whatever the next 8 are.
TEST(StringDictionary, StringsOfOneBucketAreGivenUp) {
  const auto texts = [](uint64_t n) {
    std::vector<std::string> all;
    for (uint64_t i = 0; i < n; ++i) {
      const uint64_t words[3] = {blocks::quern_hash_secret[blocks::kMultiplier1], i, 7};
      all.emplace_back(reinterpret_cast<const char*>(words), sizeof(words));
    }
    return all;
  };
  StringDictionary few(nullptr), many(nullptr);
  EXPECT_TRUE(Add(texts(200), &few).few);
  EXPECT_FALSE(Add(texts(300), &many).few);
  EXPECT_LE(many.size(), 256u);
}

TEST(StringDictionary, EqualStringsHaveEqualCodes) {
  StringDictionary strings(nullptr);
  const std::vector<std::string> texts = RandomTexts(1, 5000);
  const Coded coded = Add(texts, &strings);
  ASSERT_TRUE(coded.few);
  EXPECT_EQ(strings.size(), std::set<std::string>(texts.begin(), texts.end()).size());
  for (size_t i = 0; i < texts.size(); ++i) {
    const blocks::Bytes string = strings.strings()[coded.codes[i]];
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(string.data), string.length), texts[i]);
  }
  EXPECT_EQ(Add(texts, &strings).codes, coded.codes);
}

TEST(StringDictionary, RanksAreThoseOfAllStrings) {
  StringDictionary a(nullptr), b(nullptr);
  const std::vector<std::string> texts_a = RandomTexts(2, 700), texts_b = RandomTexts(3, 900);
  const std::vector<uint32_t> codes_a = Add(texts_a, &a).codes, codes_b = Add(texts_b, &b).codes;
  std::vector<std::vector<uint32_t>> ranks;
  const auto num_strings = RankStrings({&a, &b}, 0, nullptr, &ranks);
  ASSERT_TRUE(num_strings.ok());
  std::set<std::string> all(texts_a.begin(), texts_a.end());
  all.insert(texts_b.begin(), texts_b.end());
  EXPECT_EQ(*num_strings, all.size());
  const auto rank_of = [&](const std::string& text) {
    return static_cast<uint32_t>(std::distance(all.begin(), all.find(text)));
  };
  for (size_t i = 0; i < texts_a.size(); ++i) EXPECT_EQ(ranks[0][codes_a[i]], rank_of(texts_a[i]));
  for (size_t i = 0; i < texts_b.size(); ++i) EXPECT_EQ(ranks[1][codes_b[i]], rank_of(texts_b[i]));
}

// Under every collation, ranks are those of a sort by comparison; equal strings have one rank.
TEST(StringDictionary, RanksAreByTheCollation) {
  std::mt19937_64 random = test::PrintedRandom();
  for (const CollationRow& collation : AllCollations()) {
    const CollationRule rule = RuleOf(collation.id);
    std::vector<std::string> all[2];
    std::vector<std::pair<std::string, uint32_t>> ranked;
    StringDictionary a(nullptr), b(nullptr);
    for (auto& texts : all) {
      for (const test::TextKind kind : test::kTextKinds)
        for (std::string& text : test::RandomTexts(kind, 150, &random)) texts.push_back(std::move(text));
      for (std::string& text : texts)  // the order in which a sort provides them
        while ((rule & kTrimsSpaces) != 0 && !text.empty() && text.back() == ' ') text.pop_back();
    }
    const std::vector<uint32_t> codes[] = {Add(all[0], &a).codes, Add(all[1], &b).codes};
    std::vector<std::vector<uint32_t>> ranks;
    const auto num_ranks = RankStrings({&a, &b}, rule, nullptr, &ranks);
    ASSERT_TRUE(num_ranks.ok());
    uint32_t highest = 0;
    for (const int local : {0, 1})
      for (size_t i = 0; i < all[local].size(); ++i) ranked.emplace_back(all[local][i], ranks[local][codes[local][i]]);
    for (const auto& [text, rank] : ranked) {
      highest = std::max(highest, rank);
      const auto& [other, other_rank] = ranked[random() % ranked.size()];
      const int order = CompareStrings(test::BytesOfText(text), test::BytesOfText(other), rule);
      EXPECT_EQ((order > 0) - (order < 0), (rank > other_rank) - (rank < other_rank)) << collation.text;
    }
    EXPECT_EQ(highest + 1, *num_ranks);
  }
}

TEST(StringDictionary, TooManyStringsAreToldOf) {
  StringDictionary strings(nullptr);
  std::vector<std::string> texts;
  for (uint32_t i = 0; i < StringDictionary::kMostStrings; ++i) texts.push_back(std::to_string(i));
  EXPECT_TRUE(Add(texts, &strings).few);
  EXPECT_TRUE(Add({"7", "32767"}, &strings).few);
  EXPECT_FALSE(Add({"7", "one more"}, &strings).few);
}

}  // namespace
}  // namespace quern
