// SPDX-License-Identifier: Apache-2.0
#include "runtime/rows/selected_rows.h"

#include <gtest/gtest.h>

#include <vector>

namespace quern {
namespace {

bool IsSparse(uint32_t distance, const std::vector<uint32_t>& rows) {
  return SelectedRows(distance, rows.data(), static_cast<uint32_t>(rows.size())).is_sparse();
}

TEST(SelectedRows, AreAtLeastTheDistanceApart) {
  EXPECT_TRUE(IsSparse(8, {0, 9, 12, 31}));
  EXPECT_FALSE(IsSparse(8, {0, 9, 12, 30}));
  EXPECT_TRUE(IsSparse(8, {31, 12, 9, 0}));  // as a join may leave them
  EXPECT_FALSE(IsSparse(8, {5}));
  EXPECT_TRUE(IsSparse(1, {5, 6, 7}));
  EXPECT_FALSE(IsSparse(0, {0, 1000}));
  EXPECT_FALSE(IsSparse(8, {}));
  EXPECT_FALSE(SelectedRows(8, nullptr, 100).is_sparse());
}

TEST(SelectedRows, BytesOfARowInAColumn) {
  EXPECT_EQ(ColumnRowBytes(ColumnType{.id = TypeId::kI64}), 8u);
  EXPECT_EQ(ColumnRowBytes(ColumnType{.id = TypeId::kDecimal128}), 16u);
  EXPECT_EQ(ColumnRowBytes(ColumnType{.id = TypeId::kUtf8}), 4u);  // offsets
  EXPECT_EQ(ColumnRowBytes(ColumnType{.id = TypeId::kUtf8View}), 16u);
  EXPECT_EQ(ColumnRowBytes(ColumnType{.id = TypeId::kBool}), 0u);
  EXPECT_EQ(ColumnRowBytes(ColumnType{.id = TypeId::kRowId}), 0u);
}

}  // namespace
}  // namespace quern
