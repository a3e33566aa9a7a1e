// SPDX-License-Identifier: Apache-2.0
// Rows of few groups as runs: each row occurs once, and the rows of a group are together and in their order.
#include "runtime/aggregate/group_runs.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "test/unit/runtime/aggregate/group_rows.h"
#include "test/unit/seed.h"

namespace quern {
namespace {

constexpr uint32_t kGroups = 64;

// Blocks of rows with known group numbers.
class Splits : public testing::TestWithParam<bool> {
 protected:
  Splits() : runs_(std::make_unique<GroupRuns>()) {
    if (!GetParam()) splitter_.UseNoVectors();
  }

  bool Split(const std::vector<uint32_t>& groups, uint64_t first = 0, const uint32_t* rows = nullptr) {
    tuples_.clear();
    for (const uint32_t group : groups) tuples_.push_back(memory_ + group);
    return splitter_.Split({nullptr, first, rows, static_cast<uint32_t>(groups.size())}, tuples_.data(), runs_.get());
  }

  // Checks the runs of the last block.
  void ExpectRuns(const std::vector<uint32_t>& groups, uint64_t first, const uint32_t* rows) const {
    std::vector<std::vector<uint32_t>> expected(kGroups);
    for (uint32_t i = 0; i < groups.size(); ++i)
      expected[groups[i]].push_back(rows != nullptr ? rows[i] : static_cast<uint32_t>(first + i));
    uint32_t begin = 0;
    for (uint32_t r = 0; r < runs_->n; ++r) {
      const auto group = static_cast<size_t>(runs_->tuples[r] - memory_);
      EXPECT_EQ(std::vector<uint32_t>(runs_->rows + begin, runs_->rows + runs_->ends[r]), expected[group]) << group;
      expected[group].clear();
      begin = runs_->ends[r];
    }
    EXPECT_EQ(begin, groups.size());
    for (const auto& left : expected) EXPECT_TRUE(left.empty());
  }

  uint8_t memory_[kGroups];
  RunSplitter splitter_{64};
  std::unique_ptr<GroupRuns> runs_;
  std::vector<uint8_t*> tuples_;
};

INSTANTIATE_TEST_SUITE_P(WithVectors, Splits, testing::Values(false, true));

std::vector<uint32_t> Random(uint32_t n, uint32_t num_groups, uint32_t first_group = 0) {
  static auto random = test::PrintedRandom();
  std::vector<uint32_t> groups;
  for (uint32_t i = 0; i < n; ++i) groups.push_back(first_group + static_cast<uint32_t>(random() % num_groups));
  return groups;
}

TEST_P(Splits, BlocksOfAllSizes) {
  for (const uint32_t n : {128u, 129u, 135u, 136u, 137u, 143u, 144u, 145u, 512u, 1000u, kMaxBatchRows}) {
    for (const uint32_t num_groups : {1u, 2u, 3u, 8u}) {
      const auto groups = Random(n, num_groups);
      ASSERT_TRUE(Split(groups, 70000));
      ExpectRuns(groups, 70000, nullptr);
    }
  }
}

TEST_P(Splits, RowsThatWerePicked) {
  auto random = test::PrintedRandom();
  for (int b = 0; b < 20; ++b) {
    const auto groups = Random(300 + b, 5);
    std::vector<uint32_t> rows;
    for (size_t i = 0; i < groups.size(); ++i) rows.push_back(static_cast<uint32_t>(random()));
    ASSERT_TRUE(Split(groups, 0, rows.data()));
    ExpectRuns(groups, 0, rows.data());
  }
}

TEST_P(Splits, GroupsThatComeLaterAreLearnt) {
  for (uint32_t b = 0; b < 8; ++b) {
    const auto groups = Random(400, b + 1);
    ASSERT_TRUE(Split(groups));
    ExpectRuns(groups, 0, nullptr);
    EXPECT_TRUE(splitter_.knows_groups());
  }
}

TEST_P(Splits, ManyGroupsAreLeftAloneForSomeBlocks) {
  EXPECT_FALSE(Split(Random(1000, kGroups)));
  EXPECT_FALSE(splitter_.knows_groups());
  uint32_t refused = 0;
  for (; refused < 100 && !Split(Random(1000, 4)); ++refused) {
  }
  EXPECT_GT(refused, 0u);
  EXPECT_LT(refused, 100u);
}

TEST_P(Splits, FewerGroupsWhereThereIsLittleToUpdate) {
  RunSplitter little(16);
  if (!GetParam()) little.UseNoVectors();
  const auto groups = Random(1000, 3);
  std::vector<uint8_t*> tuples;
  for (const uint32_t group : groups) tuples.push_back(memory_ + group);
  EXPECT_FALSE(little.Split({nullptr, 0, nullptr, 1000}, tuples.data(), runs_.get()));
  EXPECT_TRUE(splitter_.Split({nullptr, 0, nullptr, 1000}, tuples.data(), runs_.get()));
}

TEST_P(Splits, FewRowsAGroupAreLeftAlone) {
  EXPECT_FALSE(Split({0}));
  EXPECT_FALSE(Split(Random(60, 8)));
}

TEST_P(Splits, TuplesThatMovedAreLearntAnew) {
  ASSERT_TRUE(Split(Random(1000, 8)));
  bool is_split = false;
  for (int b = 0; b < 100 && !is_split; ++b) {
    const auto groups = Random(1000, 8, 20);
    is_split = Split(groups);
    if (is_split) ExpectRuns(groups, 0, nullptr);
  }
  EXPECT_TRUE(is_split);
}

TEST_P(Splits, NumbersSayWhoseRowsTheyAre) {
  for (const uint32_t num_groups : {1u, 3u, 8u}) {
    RunSplitter splitter(8);  // too little to split for, but not to number
    if (!GetParam()) splitter.UseNoVectors();
    for (const uint32_t n : {128u, 1000u, 1001u, 1015u, 4096u}) {
      const auto groups = Random(n, num_groups, 5);
      std::vector<uint8_t*> tuples;
      for (const uint32_t group : groups) tuples.push_back(memory_ + group);
      std::vector<uint8_t> numbers(n + GroupRuns::kSpare);
      ASSERT_TRUE(splitter.Number(tuples.data(), n, 8, numbers.data())) << n;
      EXPECT_FALSE(splitter.TakeRefusal());
      EXPECT_LE(splitter.num_groups(), num_groups);
      for (uint32_t i = 0; i < n; ++i) ASSERT_EQ(splitter.groups()[numbers[i]], tuples[i]) << i;
    }
  }
}

TEST_P(Splits, ManyGroupsHaveNoNumbers) {
  std::vector<uint8_t*> tuples;
  for (const uint32_t group : Random(1000, 9)) tuples.push_back(memory_ + group);
  std::vector<uint8_t> numbers(1000 + GroupRuns::kSpare);
  EXPECT_FALSE(splitter_.Number(tuples.data(), 1000, 4, numbers.data()));
  EXPECT_TRUE(splitter_.TakeRefusal());
  EXPECT_FALSE(splitter_.TakeRefusal());  // said once
  const auto few = Random(1000, 2);
  int blocks = 1;
  for (; blocks < 40; ++blocks) {
    for (uint32_t i = 0; i < 1000; ++i) tuples[i] = memory_ + few[i];
    if (splitter_.Number(tuples.data(), 1000, 4, numbers.data())) break;
  }
  EXPECT_EQ(blocks, 16);  // the gate waits for 15 blocks
}

TEST(Runs, AreFoundWhereRowsLieSideBySide) {
  uint8_t memory[4];
  const auto runs = std::make_unique<GroupRuns>();
  std::vector<uint8_t*> tuples;
  for (uint32_t i = 0; i < 1000; ++i) tuples.push_back(memory + i / 300);
  ASSERT_TRUE(FindRuns(tuples.data(), 1000, runs.get()));
  ASSERT_EQ(runs->n, 4u);
  for (uint32_t r = 0; r < 4; ++r) {
    EXPECT_EQ(runs->tuples[r], memory + r);
    EXPECT_EQ(runs->ends[r], r == 3 ? 1000 : 300 * (r + 1));
  }
  for (uint32_t i = 0; i < 1000; ++i) tuples[i] = memory + i % 3;
  EXPECT_FALSE(FindRuns(tuples.data(), 1000, runs.get()));
}

}  // namespace
}  // namespace quern
