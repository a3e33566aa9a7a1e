// SPDX-License-Identifier: Apache-2.0
// Blocks as segments of adjacent rows: which rows take part, and of which group they are.
#include "runtime/aggregate/lane_segments.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace quern {
namespace {

class Segments : public testing::Test {
 protected:
  // The numbers from the first row to the last.
  std::vector<int> Numbers() const {
    const QuernLaneArgs& args = segments_->args();
    std::vector<int> numbers(args.numbers, args.numbers + args.ends[args.num_segments - 1]);
    return numbers;
  }
  std::vector<uint8_t*> TuplesOf(const std::vector<uint32_t>& groups) {
    std::vector<uint8_t*> tuples;
    for (const uint32_t group : groups) tuples.push_back(memory_ + group);
    return tuples;
  }
  bool SetGroups(const std::vector<uint32_t>& rows, const std::vector<uint32_t>& groups) {
    const auto tuples = TuplesOf(groups);
    return segments_->SetGroups({nullptr, 0, rows.data(), static_cast<uint32_t>(rows.size())}, tuples.data(), 4,
                                &splitter_);
  }

  uint8_t memory_[16];
  RunSplitter splitter_{64};
  std::unique_ptr<LaneSegments> segments_ = std::make_unique<LaneSegments>();
};

constexpr int kNone = kNoLaneGroup;

std::vector<uint32_t> From(uint32_t first, uint32_t n, uint32_t step = 1) {
  std::vector<uint32_t> rows;
  for (uint32_t i = 0; i < n; ++i) rows.push_back(first + i * step);
  return rows;
}

TEST_F(Segments, SelectedRowsLeaveGaps) {
  std::vector<uint32_t> rows = {100, 101, 103};
  for (uint32_t i = 0; i < 40; ++i) rows.push_back(104 + i);
  std::vector<uint32_t> groups(rows.size(), 0);
  groups[1] = 1;
  ASSERT_TRUE(SetGroups(rows, groups));
  EXPECT_EQ(segments_->args().first, 100u);
  EXPECT_EQ(segments_->args().num_groups, 2u);
  const std::vector<int> numbers = Numbers();
  EXPECT_EQ(numbers.size(), 44u);
  EXPECT_EQ(std::vector<int>(numbers.begin(), numbers.begin() + 5), (std::vector<int>{0, 1, kNone, 0, 0}));
}

TEST_F(Segments, RowsFarApartOrOutOfOrderAreRefused) {
  EXPECT_TRUE(SetGroups(From(7, 64), std::vector<uint32_t>(64)));
  EXPECT_FALSE(SetGroups(From(7, 64, 2), std::vector<uint32_t>(64)));
  EXPECT_FALSE(SetGroups(From(7, 7), std::vector<uint32_t>(7)));
  std::vector<uint32_t> rows = From(7, 64);
  std::swap(rows[3], rows[4]);
  EXPECT_FALSE(SetGroups(rows, std::vector<uint32_t>(64)));
  rows = From(7, 64);
  rows[3] = rows[4];
  EXPECT_FALSE(SetGroups(rows, std::vector<uint32_t>(64)));
  rows = From(7, 64);
  rows[63] = rows[0] - 1;  // below the first one
  EXPECT_FALSE(SetGroups(rows, std::vector<uint32_t>(64)));
}

TEST_F(Segments, RunsEndWhereTheirLastRowIs) {
  GroupRuns runs;
  runs.n = 2;
  runs.tuples[0] = memory_;
  runs.tuples[1] = memory_ + 1;
  runs.ends[0] = 10;
  runs.ends[1] = 12;
  std::vector<uint32_t> rows = From(50, 12);
  for (uint32_t i = 5; i < 12; ++i) ++rows[i];
  ASSERT_TRUE(segments_->SetRuns({nullptr, 0, rows.data(), 12}, runs));
  EXPECT_EQ(segments_->args().num_segments, 2u);
  EXPECT_EQ(segments_->args().num_groups, 1u);
  EXPECT_EQ(segments_->args().ends[0], 11u);
  EXPECT_EQ(segments_->args().ends[1], 13u);
  EXPECT_EQ(Numbers(), (std::vector<int>{0, 0, 0, 0, 0, kNone, 0, 0, 0, 0, 0, 0, 0}));
  runs.ends[0] = 4;  // the first segment has too few rows to read eight
  EXPECT_FALSE(segments_->SetRuns({nullptr, 0, nullptr, 12}, runs));
}

}  // namespace
}  // namespace quern
