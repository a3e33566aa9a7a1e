// SPDX-License-Identifier: Apache-2.0
// Which of the packed-key tables holds the groups, when that changes, and that no group is lost meanwhile.
#include "runtime/aggregate/tables/packed_key_groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/blocks/blocks.h"
#include "runtime/rows/tuple_store.h"
#include "test/unit/runtime/aggregate/group_rows.h"
#include "test/unit/seed.h"

namespace quern {
namespace {

constexpr const char* kSpec = "aggregate keys=i64 aggs=count_star";

// Rows of i64 keys, counted in the table and, as a reference, by the test.
struct Counted {
  GroupContext context;
  PackedKeyGroups table;
  std::unordered_map<int64_t, uint64_t> rows;

  explicit Counted(const AggregateOptions& options = {}, uint64_t expected_groups = 0,
                   std::shared_ptr<MemoryBudget> budget = test::NoLimit())
      : context(test::ContextOf(kSpec, options)), table(Limited(&context, std::move(budget)), expected_groups) {}
  static const GroupContext& Limited(GroupContext* context, std::shared_ptr<MemoryBudget> budget) {
    context->budget = std::move(budget);
    return *context;
  }

  void Add(const std::vector<int64_t>& keys) {
    std::vector<uint8_t*> tuples(keys.size());
    const auto column = test::NumberColumn(keys);
    for (size_t first = 0; first < keys.size(); first += 1024) {
      const auto n = static_cast<uint32_t>(std::min<size_t>(1024, keys.size() - first));
      ASSERT_EQ(table.Find({&column->column, first, nullptr, n}, tuples.data()), absl::OkStatus());
      for (uint32_t i = 0; i < n; ++i) blocks::Store(tuples[i] + 8, blocks::Load<uint64_t>(tuples[i] + 8) + 1);
    }
    for (const int64_t key : keys) ++rows[key];
  }
  void AddRange(int64_t begin, int64_t end, int64_t step = 1) {
    std::vector<int64_t> keys;
    for (int64_t key = begin; key < end; key += step) keys.push_back(key);
    Add(keys);
  }
  // Checks all groups with their counts; each occurs once.
  void ExpectAll() {
    EXPECT_EQ(table.num_groups(), rows.size());
    std::unordered_map<int64_t, uint64_t> found;
    uint8_t* tuples[100];
    for (uint64_t begin = 0; begin < table.num_positions(); begin += 100) {
      const uint32_t n = table.Scan(begin, std::min(begin + 100, table.num_positions()), tuples);
      for (uint32_t i = 0; i < n; ++i) {
        EXPECT_TRUE(found.emplace(blocks::Load<int64_t>(tuples[i]), blocks::Load<uint64_t>(tuples[i] + 8)).second);
      }
    }
    EXPECT_EQ(found, rows);
  }
};

AggregateOptions With(GroupLayout layout, uint32_t load_percent = 50) {
  AggregateOptions options;
  options.layout = layout;
  options.load_percent = load_percent;
  return options;
}

// The register cache finds a few keys without the table, until the table moves.
TEST(PackedKeyGroups, FewKeysAreFoundBesideRareOnesAndAfterGrowth) {
  auto random = test::PrintedRandom();
  for (const bool has_zero : {false, true}) {
    Counted counted(With(GroupLayout::kOpen));
    std::vector<int64_t> few(10);
    for (int64_t& key : few) key = static_cast<int64_t>(random());
    if (has_zero) few[3] = 0;
    const auto draw = [&](uint32_t rare_in) {
      std::vector<int64_t> keys(5000);
      for (int64_t& key : keys)
        key = rare_in != 0 && random() % rare_in == 0 ? static_cast<int64_t>(random()) : few[random() % few.size()];
      return keys;
    };
    for (const uint32_t rare_in : {0, 0, 100, 0, 2, 0, 0, 20, 1, 0, 0, 1000, 1, 0}) counted.Add(draw(rare_in));
    EXPECT_GT(counted.table.num_growths(), 0u);
    counted.ExpectAll();
    const TableTally tally = counted.table.TakeTally();
    EXPECT_EQ(tally.hits, 14 * 5000 - counted.rows.size() + (has_zero ? 1 : 0));  // the word 0 is never new
  }
}

TEST(PackedKeyGroups, AnEmptyTableHasNothing) {
  Counted counted;
  EXPECT_EQ(counted.table.num_groups(), 0u);
  EXPECT_EQ(counted.table.num_positions(), 0u);
  EXPECT_EQ(counted.table.bytes(), 0u);
  EXPECT_EQ(counted.table.Find({nullptr, 0, nullptr, 0}, nullptr), absl::OkStatus());
  counted.ExpectAll();
}

TEST(PackedKeyGroups, ASmallRangeIsAnArray) {
  Counted counted;
  counted.Add({5, -5, 0, 5, 100});
  EXPECT_STREQ(counted.table.layout(), "dense");
  counted.ExpectAll();
}

// 1,024 cells for the first rows, later 16 for each row, at most 65,536.
TEST(PackedKeyGroups, WhatIsSmallGrowsWithTheRows) {
  const auto layout_of = [](const std::vector<int64_t>& keys) {
    Counted counted;
    counted.Add(keys);
    counted.ExpectAll();
    return std::string(counted.table.layout());
  };
  EXPECT_EQ(layout_of({0, 1023}), "dense");
  EXPECT_EQ(layout_of({0, 1024}), "open");
  std::vector<int64_t> keys(1000, 0);
  keys[500] = 15999;
  EXPECT_EQ(layout_of(keys), "dense");
  keys[500] = 16000;
  EXPECT_EQ(layout_of(keys), "open");
}

TEST(PackedKeyGroups, KeysInOrderAreAListUntilOneIsSmaller) {
  for (const int64_t first : {int64_t{-500'000'000}, int64_t{0}, INT64_MAX - 2'000'000'000}) {
    Counted counted;
    for (int64_t batch = 0; batch < 20; ++batch) {
      std::vector<int64_t> keys;
      for (int64_t i = 0; i < 1000; ++i) keys.push_back(first + (batch * 1000 + i) / 3 * 1'000'007 % 1'900'000'000);
      std::sort(keys.begin(), keys.end());
      if (batch == 0 || keys[0] >= first) counted.Add(keys);
    }
    counted.ExpectAll();
  }
  Counted counted;
  counted.AddRange(0, 40'000'000, 1009);
  EXPECT_STREQ(counted.table.layout(), "sorted");
  EXPECT_EQ(counted.table.num_growths(), 0u);
  counted.ExpectAll();
  counted.Add({39'999'000, 0, 1009, -1});
  EXPECT_STREQ(counted.table.layout(), "open");
  counted.AddRange(-20'000, 30'000'000, 4001);
  counted.ExpectAll();
}

// The end of the array's range is reached within a batch or between two, or has room left.
TEST(PackedKeyGroups, AnArrayThatIsOutgrownInOrderBecomesAList) {
  for (const int64_t step : {1, 2, 7}) {
    for (const int64_t rows_per_key : {1, 3}) {
      Counted counted;
      std::vector<int64_t> keys;
      for (int64_t i = 0; i < 60'000; ++i) keys.push_back((i / rows_per_key - 5000) * step);
      counted.Add(keys);
      counted.ExpectAll();
      EXPECT_STREQ(counted.table.layout(), keys.back() - keys.front() >= 131'072 ? "sorted" : "dense")
          << step << " " << rows_per_key;
      counted.AddRange(-300, 300);
      counted.ExpectAll();
    }
  }
}

// A list that changes to slots, then to an array, and then to a list again.
TEST(PackedKeyGroups, AListMayBecomeAListAgain) {
  Counted counted;
  counted.AddRange(0, 20'000, 50);
  EXPECT_STREQ(counted.table.layout(), "sorted");
  counted.Add({19'950, 3});
  EXPECT_STREQ(counted.table.layout(), "open");
  std::vector<int64_t> keys;
  for (int64_t i = 0; i < 30'000; ++i) keys.push_back(i * 7919 % 30'000);
  counted.Add(keys);
  EXPECT_STREQ(counted.table.layout(), "dense");
  counted.AddRange(29'000, 2'000'000, 11);
  EXPECT_STREQ(counted.table.layout(), "sorted");
  counted.ExpectAll();
  counted.AddRange(5, 100'000);
  counted.ExpectAll();
  counted.table.Release();
  EXPECT_EQ(counted.context.budget->used_bytes(), 0u);
}

// After keys in no order, further keys may be in order; some of the array's own keys are larger.
TEST(PackedKeyGroups, AnArrayWithLargerWordsIsNoList) {
  Counted counted;
  counted.Add({900, 5, 1000, 7});
  counted.AddRange(950, 90'000);
  EXPECT_STRNE(counted.table.layout(), "sorted");
  counted.ExpectAll();
}

TEST(PackedKeyGroups, AWordOutsideWidensTheArray) {
  Counted counted;
  counted.AddRange(0, 100);
  counted.AddRange(-50, 150);
  EXPECT_STREQ(counted.table.layout(), "dense");
  EXPECT_EQ(counted.table.num_growths(), 1u);
  counted.ExpectAll();
}

// Keys in order widen the range on the side where they arrive, so that not every batch moves the array.
TEST(PackedKeyGroups, KeysInOrderWidenTheArraySeldom) {
  Counted counted;
  for (int64_t batch = 0; batch < 64; ++batch) counted.AddRange(batch * 100, batch * 100 + 100);
  EXPECT_STREQ(counted.table.layout(), "dense");
  EXPECT_LE(counted.table.num_growths(), 10u);
  counted.ExpectAll();
}

// A density around the one that an array needs: the table may change its layout, but seldom.
TEST(PackedKeyGroups, KeysInOrderThatFillAShareOfTheirRangeMoveSeldom) {
  for (const int64_t step : {2, 3, 4, 5, 6}) {
    Counted counted;
    counted.AddRange(0, 300'000 * step, step);
    EXPECT_LE(counted.table.num_growths(), 40u) << step;
    counted.ExpectAll();
  }
}

// The order keys of TPC-H: eight of 32, with several rows of each.
TEST(PackedKeyGroups, SparseKeysInOrderWithRunsMoveSeldom) {
  Counted counted;
  std::vector<int64_t> keys;
  for (int64_t i = 0; i < 600'000; ++i) keys.push_back(i / 4 / 8 * 32 + i / 4 % 8);
  counted.Add(keys);
  EXPECT_LE(counted.table.num_growths(), 40u);
  counted.ExpectAll();
}

TEST(PackedKeyGroups, AFarWordMakesTheTableOpen) {
  Counted counted;
  counted.AddRange(0, 100);
  counted.Add({50, INT64_MAX, INT64_MIN, 0});
  EXPECT_STREQ(counted.table.layout(), "open");
  counted.ExpectAll();
}

// A column of packed keys is read in place, any other one is packed: a selection, and values that are not aligned to
// their size.
TEST(PackedKeyGroups, AllWaysOfReadingAColumnFindTheSameGroups) {
  std::vector<int64_t> keys(1000);
  std::vector<uint32_t> rows(keys.size());
  for (size_t i = 0; i < keys.size(); ++i)
    keys[i] = static_cast<int64_t>(i % 7 == 0 ? 0 : i * i % 331 * 0x100000001), rows[i] = static_cast<uint32_t>(i);
  std::vector<uint8_t> bytes(keys.size() * 8 + 1);
  std::memcpy(bytes.data() + 1, keys.data(), keys.size() * 8);
  const auto column = test::NumberColumn(keys);
  QuernColumn odd = column->column;
  odd.values = bytes.data() + 1;
  for (const GroupLayout layout : {GroupLayout::kOpen, GroupLayout::kAuto}) {
    Counted counted(With(layout));
    counted.Add(keys);
    std::vector<uint8_t*> tuples(keys.size()), selected(keys.size()), unaligned(keys.size());
    ASSERT_EQ(counted.table.Find({&column->column, 0, nullptr, 1000}, tuples.data()), absl::OkStatus());
    ASSERT_EQ(counted.table.Find({&column->column, 0, rows.data(), 1000}, selected.data()), absl::OkStatus());
    ASSERT_EQ(counted.table.Find({&odd, 0, nullptr, 1000}, unaligned.data()), absl::OkStatus());
    EXPECT_EQ(selected, tuples);
    EXPECT_EQ(unaligned, tuples);
    for (size_t i = 0; i < keys.size(); ++i) ASSERT_EQ(blocks::Load<int64_t>(tuples[i]), keys[i]);
  }
}

TEST(PackedKeyGroups, AFullTableWhoseRangeIsSmallBecomesAnArrayAndBack) {
  Counted counted;
  counted.Add({0, 20000});
  EXPECT_STREQ(counted.table.layout(), "open");
  counted.AddRange(0, 40000);
  EXPECT_STREQ(counted.table.layout(), "dense");
  counted.ExpectAll();
  counted.Add({3, int64_t{1} << 40, -1});
  EXPECT_STREQ(counted.table.layout(), "open");
  counted.ExpectAll();
}

// The batch that turns the table into an array may itself contain a key far away.
TEST(PackedKeyGroups, ABecomingArrayMayMeetAFarWordAtOnce) {
  Counted counted(With(GroupLayout::kAuto, 10));
  counted.Add({0, 100000});  // open
  std::vector<int64_t> keys;
  for (int64_t i = 0; i < 60000; ++i) keys.push_back(i % 50 == 49 ? int64_t{1} << (i % 60) : i);
  counted.Add(keys);
  counted.ExpectAll();
}

TEST(PackedKeyGroups, ALayoutThatIsAskedForIsKept) {
  Counted open(With(GroupLayout::kOpen));
  open.AddRange(0, 20000);
  EXPECT_STREQ(open.table.layout(), "open");
  open.ExpectAll();
  Counted dense(With(GroupLayout::kDense));
  dense.Add({0, 1000000});
  EXPECT_STREQ(dense.table.layout(), "dense");
  dense.Add({-1, int64_t{1} << 50});  // no array can be that large
  EXPECT_STREQ(dense.table.layout(), "open");
  dense.ExpectAll();
}

// 1 M cells of 17 bytes, or room for 2 groups.
TEST(PackedKeyGroups, AnArrayThatFindsNoMemoryGivesWay) {
  const auto budget = std::make_shared<MemoryBudget>(1'000'000);
  Counted at_once(With(GroupLayout::kDense), 0, budget), widened(With(GroupLayout::kDense), 0, budget);
  at_once.Add({0, 1'000'000});
  EXPECT_STREQ(at_once.table.layout(), "open");
  at_once.ExpectAll();
  widened.AddRange(0, 1000);
  EXPECT_STREQ(widened.table.layout(), "dense");
  widened.Add({1'000'000});
  EXPECT_STREQ(widened.table.layout(), "open");
  widened.ExpectAll();
}

TEST(PackedKeyGroups, LoadsOfAnyPercentKeepAllGroups) {
  for (const uint32_t load : {10u, 50u, 75u}) {
    Counted counted(With(GroupLayout::kOpen, load));
    for (int64_t i = 0; i < 40; ++i) counted.AddRange(i * 7000, i * 7000 + 500);
    EXPECT_LE(counted.table.num_groups() * 100, (counted.table.num_positions() - 1) * load);
    counted.ExpectAll();
  }
}

TEST(PackedKeyGroups, AGuessSavesGrowths) {
  Counted guessed(With(GroupLayout::kOpen), 20000), unguessed(With(GroupLayout::kOpen));
  for (Counted* counted : {&guessed, &unguessed}) {
    counted->AddRange(0, 20000);
    counted->ExpectAll();
  }
  EXPECT_EQ(guessed.table.num_growths(), 0u);
  EXPECT_GT(unguessed.table.num_growths(), 2u);
}

TEST(PackedKeyGroups, RangesThatTheHostKnowsMakeAnArrayOfFourMillionCells) {
  AggregateOptions options;
  options.ranges = {{true, -10, 1000000}};
  Counted counted(options);
  counted.Add({1000000, -10, 3});
  EXPECT_STREQ(counted.table.layout(), "dense");
  counted.ExpectAll();
  options.ranges = {{true, 10, -10}};  // an empty range is harmless
  Counted nonsense(options);
  nonsense.Add({7, int64_t{1} << 60, -3});
  nonsense.ExpectAll();
  options.ranges = {{true, 0, 10}};  // so is a wrong one
  Counted wrong(options);
  wrong.AddRange(-500, 500);
  wrong.Add({INT64_MAX});
  wrong.ExpectAll();
}

TEST(PackedKeyGroups, GroupsOfAnotherTableAreFoundByTheirWords) {
  Counted from, into(With(GroupLayout::kOpen));
  from.AddRange(0, 300);
  into.AddRange(200, 400);
  uint8_t *tuples[512], *found[512];
  const uint32_t n = from.table.Scan(0, from.table.num_positions(), tuples);
  ASSERT_EQ(n, 300u);
  ASSERT_EQ(into.table.FindTuples({tuples, nullptr, n}, found), absl::OkStatus());
  for (uint32_t i = 0; i < n; ++i) {
    EXPECT_EQ(blocks::Load<int64_t>(found[i]), blocks::Load<int64_t>(tuples[i]));
    EXPECT_EQ(blocks::Load<uint64_t>(found[i] + 8), blocks::Load<int64_t>(tuples[i]) >= 200 ? 1u : 0u);
  }
  EXPECT_EQ(into.table.num_groups(), 400u);
}

TEST(PackedKeyGroups, HashesAreThoseOfTheWords) {
  Counted counted;
  counted.AddRange(-5, 5);
  uint8_t* tuples[64];
  uint64_t hashes[64];
  const uint32_t n = counted.table.Scan(0, counted.table.num_positions(), tuples);
  counted.table.HashesOf(0, tuples, n, hashes);
  for (uint32_t i = 0; i < n; ++i)
    EXPECT_EQ(hashes[i], blocks::Mix(blocks::Load<uint64_t>(tuples[i]), blocks::quern_hash_secret));
}

TEST(PackedKeyGroups, AfterReleaseTheTableBeginsAgain) {
  Counted counted;
  counted.AddRange(0, 5000, 100);
  counted.table.Release();
  EXPECT_EQ(counted.table.num_groups(), 0u);
  EXPECT_EQ(counted.context.budget->used_bytes(), 0u);
  counted.rows.clear();
  counted.AddRange(0, 10);
  counted.ExpectAll();
}

}  // namespace
}  // namespace quern
