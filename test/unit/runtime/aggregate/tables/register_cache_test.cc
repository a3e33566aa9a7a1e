// SPDX-License-Identifier: Apache-2.0
// Few packed keys are found in registers: every row either gets its key's group or is listed, whatever the keys; many
// keys are not cached.
#include "runtime/aggregate/tables/register_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "runtime/base/cpu.h"
#include "test/unit/runtime/aggregate/group_rows.h"
#include "test/unit/seed.h"

namespace quern {
namespace {

constexpr uint32_t kMost = RegisterCache::kMostWords;

uint8_t* GroupOf(uint64_t word) { return reinterpret_cast<uint8_t*>(uintptr_t{0x1000} + word * 64 % 0x7fffffc0); }

std::vector<uint8_t*> GroupsOf(const std::vector<uint64_t>& words) {
  std::vector<uint8_t*> groups;
  for (const uint64_t word : words) groups.push_back(GroupOf(word));
  return groups;
}

void Learn(RegisterCache* few, const std::vector<uint64_t>& words) {
  few->Learn(words.data(), static_cast<uint32_t>(words.size()), GroupsOf(words).data());
}

// The keys that Look lists; all others have their groups, and nothing is written after them.
std::vector<uint64_t> Others(const RegisterCache& few, const std::vector<uint64_t>& words) {
  const auto n = static_cast<uint32_t>(words.size());
  uint8_t* const untouched = GroupOf(99);
  std::vector<uint8_t*> tuples(n + 8, untouched);
  std::vector<uint32_t> others(n + 8);
  const uint32_t num_others = few.Look(words.data(), n, 0, tuples.data(), others.data());
  EXPECT_TRUE(std::all_of(tuples.begin() + n, tuples.end(), [=](uint8_t* tuple) { return tuple == untouched; }));
  const std::set<uint32_t> listed(others.begin(), others.begin() + num_others);
  EXPECT_EQ(listed.size(), num_others);
  std::vector<uint64_t> other_words;
  for (uint32_t i = 0; i < n; ++i) {
    if (listed.count(i) != 0) other_words.push_back(words[i]);
    else EXPECT_EQ(tuples[i], GroupOf(words[i])) << i << " of " << n;
  }
  return other_words;
}

std::vector<uint64_t> Words(uint32_t n, const std::function<uint64_t(uint64_t)>& word_of) {
  std::vector<uint64_t> words;
  for (uint32_t i = 0; i < n; ++i) words.push_back(word_of(i));
  return words;
}

std::vector<uint64_t> Drawn(const std::vector<uint64_t>& from, uint32_t n, std::mt19937_64* random) {
  return Words(n, [&](uint64_t i) { return i < from.size() ? from[i] : from[(*random)() % from.size()]; });
}

class FewWordsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!HasAvx512()) GTEST_SKIP() << "no AVX-512";
  }
};

TEST_F(FewWordsTest, AllRowsOfKnownWordsAreFound) {
  auto random = test::PrintedRandom();
  std::vector<uint64_t> drawn = Words(kMost, [&](uint64_t) { return random(); });
  const std::function<uint64_t(uint64_t)> kinds[] = {
      [](uint64_t i) { return i; },               // the word 0 among them
      [](uint64_t i) { return i << 60; },         // keys that differ in their upper bits
      [](uint64_t i) { return i << 32; },         //
      [](uint64_t i) { return ~i; },              //
      [](uint64_t i) { return i * (i + 1) / 2; }  //
  };
  std::vector<std::vector<uint64_t>> all = {drawn};
  for (const auto& kind : kinds) all.push_back(Words(kMost, kind));
  for (const std::vector<uint64_t>& most : all) {
    for (uint32_t num_words = 1; num_words <= kMost; ++num_words) {
      const std::vector<uint64_t> known(most.begin(), most.begin() + num_words);
      RegisterCache few;
      EXPECT_FALSE(few.serves());
      Learn(&few, Drawn(known, 200, &random));
      ASSERT_TRUE(few.serves());
      for (const uint32_t n : {1, 7, 8, 9, 63, 64, 65, 1024})
        EXPECT_EQ(Others(few, Drawn(known, std::max(n, num_words), &random)), std::vector<uint64_t>()) << n;
    }
  }
}

TEST_F(FewWordsTest, UnknownWordsAreListed) {
  auto random = test::PrintedRandom();
  for (const uint64_t zero_or_not : {0, 1}) {
    RegisterCache few;
    const std::vector<uint64_t> known = Words(5, [&](uint64_t i) { return i == 0 ? zero_or_not : random() | 2; });
    Learn(&few, Drawn(known, 100, &random));
    std::vector<uint64_t> rows = Drawn(known, 300, &random), unknown;
    for (const uint32_t at : {0, 8, 9, 150, 298, 299})
      unknown.push_back(rows[at] = at == 150 ? 1 - zero_or_not : random() | 2);
    EXPECT_EQ(Others(few, rows), unknown);
    EXPECT_EQ(Others(few, unknown), unknown);
  }
}

TEST_F(FewWordsTest, TooManyWordsAreNotLearntAndOneBlockInSixteenIsLookedAt) {
  RegisterCache few;
  Learn(&few, Words(kMost + 1, [](uint64_t i) { return i; }));
  EXPECT_FALSE(few.serves());
  for (int block = 0; block < 15; ++block) {
    Learn(&few, {7});
    EXPECT_FALSE(few.serves());
  }
  Learn(&few, {7});
  EXPECT_TRUE(few.serves());
}

TEST_F(FewWordsTest, OthersAreLearntWhereThereIsRoomAndGivenUpWhereTheyAreMany) {
  const std::vector<uint64_t> words = Words(kMost + 4, [](uint64_t i) { return i + 100; });
  RegisterCache few;
  Learn(&few, {words[0], words[1]});
  const auto learn_others = [&](uint32_t num_rows) {
    std::vector<uint32_t> others;
    for (uint32_t i = 0; i < words.size(); ++i) others.push_back(i);
    few.LearnOthers(words.data(), num_rows, others.data(), static_cast<uint32_t>(others.size()),
                    GroupsOf(words).data());
  };
  learn_others(8 * (kMost + 4));
  ASSERT_TRUE(few.serves());
  EXPECT_EQ(Others(few, words), std::vector<uint64_t>(words.begin() + kMost, words.end()));
  learn_others(8 * (kMost + 4) - 1);
  EXPECT_FALSE(few.serves());
}

TEST_F(FewWordsTest, NothingIsKnownAfterForget) {
  RegisterCache few;
  Learn(&few, {1, 2});
  few.Forget();
  EXPECT_FALSE(few.serves());
  Learn(&few, {3});
  EXPECT_EQ(Others(few, {1, 2, 3}), (std::vector<uint64_t>{1, 2}));
}

}  // namespace
}  // namespace quern
