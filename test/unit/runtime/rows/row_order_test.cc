// SPDX-License-Identifier: Apache-2.0
#include "runtime/rows/row_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace quern {
namespace {

TEST(RowOrder, OneDescentAnywhereIsFound) {
  EXPECT_TRUE(Ascend(nullptr, 0));
  for (uint32_t n = 1; n < 100; ++n) {
    std::vector<uint32_t> rows(n);
    std::iota(rows.begin(), rows.end(), ~uint32_t{0} - n);  // across 2^31, as numbers without a sign
    rows[0] = n % 2 == 0 ? rows[0] : 0;
    EXPECT_TRUE(Ascend(rows.data(), n)) << n;
    for (uint32_t i = 1; i < n; ++i) {
      const uint32_t kept = rows[i];
      rows[i] = rows[i - 1];
      EXPECT_FALSE(Ascend(rows.data(), n)) << n << ", equal at " << i;
      rows[i] = 0;
      EXPECT_FALSE(Ascend(rows.data(), n)) << n << ", less at " << i;
      rows[i] = kept;
    }
  }
}

TEST(RowOrder, RowsAreSortedUnlessOneIsThereTwice) {
  std::mt19937 random(1);
  for (const uint32_t num_places : {1u, 2u, 7u, 64u, 65u, 1000u, 4096u}) {
    RowSorter sorter(num_places);
    std::vector<uint32_t> all(num_places);
    std::iota(all.begin(), all.end(), 0);
    for (int round = 0; round < 50; ++round) {
      std::shuffle(all.begin(), all.end(), random);
      std::vector<uint32_t> rows(all.begin(), all.begin() + random() % (num_places + 1)), sorted = rows;
      std::sort(sorted.begin(), sorted.end());
      std::vector<uint32_t> twice = rows;
      ASSERT_TRUE(sorter.SortDistinct(rows.data(), rows.size()));
      ASSERT_EQ(rows, sorted) << num_places;
      if (twice.size() < 2) continue;
      const size_t from = random() % twice.size(), to = (from + 1 + random() % (twice.size() - 1)) % twice.size();
      twice[to] = twice[from];
      ASSERT_FALSE(sorter.SortDistinct(twice.data(), twice.size())) << num_places;
    }
  }
}

}  // namespace
}  // namespace quern
