// SPDX-License-Identifier: Apache-2.0
// Where a row layout places keys, fields, null bits and flags, whichever operator asks.
#include "runtime/rows/row_layout.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "runtime/spec/spec.h"

namespace quern {
namespace {

KeySpec Key(TypeId id, bool nullable = false, bool null_equal = false) {
  KeySpec key;
  key.type.id = id;
  key.type.nullable = nullable;
  key.null_equal = null_equal;
  return key;
}

QuernField Field(TypeId id, bool nullable = false) {
  ColumnType type;
  type.id = id;
  type.nullable = nullable;
  return MakeField(type, RowOf(id).storage);
}

TEST(RowLayout, KeysThenFieldsThenNullBits) {
  QuernRowLayout layout = {};
  RowLayout rows(&layout);
  TuplePlacer placer;
  rows.PlaceKeys({Key(TypeId::kUtf8, true, true), Key(TypeId::kI32)}, kInlineStringBytes, &placer);
  rows.PlaceFields({Field(TypeId::kU16, true), Field(TypeId::kF64)}, 1, &placer);
  rows.PlaceNullBits(/*of_unequal_nulls=*/false, &placer);
  rows.Finish(placer);
  ASSERT_EQ(layout.num_keys, 2u);
  ASSERT_EQ(layout.num_fields, 2u);
  EXPECT_EQ(layout.num_output_fields, 1u);
  EXPECT_EQ(layout.packed_bytes, 0u);
  EXPECT_EQ(layout.keys[0].tuple_offset, 0u);
  EXPECT_EQ(layout.keys[1].tuple_offset, 16u);
  EXPECT_EQ(layout.fields[0].tuple_offset, 32u);
  EXPECT_EQ(layout.fields[1].tuple_offset, 24u);
  EXPECT_EQ(layout.null_bits_offset, 34u);
  EXPECT_EQ(layout.null_bits_bytes, 1u);
  EXPECT_EQ(layout.keys[0].null_mask, 1);
  EXPECT_EQ(layout.fields[0].null_mask, 2);
  EXPECT_EQ(layout.tuple_bytes, 40u);
}

TEST(RowLayout, PackedKeysAreAWordWithoutNullBits) {
  QuernRowLayout layout = {};
  RowLayout rows(&layout);
  TuplePlacer placer;
  rows.PlaceKeys({Key(TypeId::kI32), Key(TypeId::kI16, true, true)}, kInlineStringBytes, &placer);
  rows.PlaceNullBits(/*of_unequal_nulls=*/true, &placer);
  rows.Finish(placer);
  EXPECT_EQ(layout.packed_bits, 49u);
  EXPECT_EQ(layout.packed_bytes, 8u);
  EXPECT_EQ(layout.packed_sign_bit, 0u);
  EXPECT_EQ(layout.keys[1].packed_shift, 32);
  EXPECT_EQ(layout.keys[1].packed_null_bit, 48);
  EXPECT_EQ(layout.null_bits_bytes, 0u);
  EXPECT_EQ(layout.tuple_bytes, 8u);
}

TEST(RowLayout, NullsThatEqualNothingHaveABitIfTheyAreStored) {
  for (const bool are_stored : {false, true}) {
    QuernRowLayout layout = {};
    RowLayout rows(&layout);
    TuplePlacer placer;
    rows.PlaceKeys({Key(TypeId::kUtf8, true)}, kInlineStringBytes, &placer);
    rows.PlaceNullBits(are_stored, &placer);
    rows.Finish(placer);
    EXPECT_EQ(layout.keys[0].null_mask, are_stored ? 1 : 0);
    EXPECT_EQ(layout.tuple_bytes, are_stored ? 24u : 16u);
  }
}

// Storing a tuple zeroes its flags, too.
TEST(RowLayout, AFlagIsAByteBehindTheNullBits) {
  QuernRowLayout layout = {};
  RowLayout rows(&layout);
  TuplePlacer placer;
  std::vector<QuernField> fields(9, Field(TypeId::kU8, true));
  rows.PlaceFields(fields, 9, &placer);
  rows.PlaceNullBits(/*of_unequal_nulls=*/false, &placer);
  EXPECT_EQ(placer.PlaceFlag(), 11u);
  rows.Finish(placer);
  EXPECT_EQ(layout.null_bits_offset, 9u);
  EXPECT_EQ(layout.null_bits_bytes, 3u);
  EXPECT_EQ(layout.tuple_bytes, 12u);
}

TEST(RowLayout, ARowWithoutColumnsHasNoBytes) {
  QuernRowLayout layout = {};
  RowLayout rows(&layout);
  rows.Finish(TuplePlacer());
  EXPECT_EQ(layout.tuple_bytes, 0u);
  EXPECT_EQ(layout.num_keys + layout.num_fields + layout.num_output_fields, 0u);
}

}  // namespace
}  // namespace quern
