// SPDX-License-Identifier: Apache-2.0
#include "runtime/rows/row_order.h"

#include <gtest/gtest.h>

#include <numeric>
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

}  // namespace
}  // namespace quern
