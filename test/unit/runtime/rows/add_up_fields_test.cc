// SPDX-License-Identifier: Apache-2.0
#include "runtime/rows/add_up_fields.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace quern {
namespace {

// Tuples of a 4-byte key, words at 4, 12, .. 44, and one at 60.
constexpr uint32_t kOffsets[] = {4, 12, 20, 28, 36, 60};
constexpr uint32_t kTupleBytes = 68;

struct Tuples {
  std::vector<uint8_t> bytes;
  std::vector<QuernField> fields;
  std::vector<uint64_t> met;
  std::vector<uint32_t> rows;

  Tuples(uint32_t num_tuples, uint32_t num_rows) : bytes(size_t{num_tuples} * kTupleBytes) {
    for (const uint32_t offset : kOffsets) {
      QuernField field = {};
      field.storage = k64;
      field.tuple_offset = offset;
      fields.push_back(field);
    }
    for (uint32_t t = 0; t < num_tuples; ++t)
      for (uint32_t f = 0; f < 6; ++f) Set(t, f, ValueOf(t, f));
    for (uint32_t i = 0; i < num_rows; ++i) {
      met.push_back(uint64_t{i * 7 % num_tuples} * kTupleBytes);
      rows.push_back(i);
    }
  }

  static int64_t ValueOf(uint32_t t, uint32_t f) { return (static_cast<int64_t>(t) - 20) * (f + 1); }
  void Set(uint32_t t, uint32_t f, int64_t value) {
    std::memcpy(bytes.data() + t * kTupleBytes + kOffsets[f], &value, sizeof(value));
  }

  bool AddUp(uint64_t wanted, int64_t* totals) const {
    QuernRowLayout layout = {};
    layout.tuple_bytes = kTupleBytes;
    layout.num_fields = layout.num_output_fields = 6;
    layout.fields = fields.data();
    const PlacedTuples placed = {bytes.data(), met.data(), rows.data(), static_cast<uint32_t>(met.size()), 0,
                                 false,        false,      wanted};
    return AddUpFields(layout, wanted, placed, totals);
  }
};

TEST(AddUpFields, AddsUpThoseThatAreWanted) {
  for (const uint32_t num_rows : {0u, 1u, 5u, 600u, 1300u}) {
    const Tuples tuples(50, num_rows);
    for (const uint64_t wanted : {1u, 15u, 31u, 63u, 30u, 42u, 56u}) {
      int64_t totals[64];
      std::fill_n(totals, 64, -7);
      ASSERT_TRUE(tuples.AddUp(wanted, totals));
      for (uint32_t f = 0; f < 6; ++f) {
        int64_t expected = 0;
        for (uint32_t i = 0; i < num_rows; ++i) expected += Tuples::ValueOf(i * 7 % 50, f);
        EXPECT_EQ(totals[f], (wanted >> f & 1) != 0 ? expected : -7) << num_rows << " rows, field " << f;
      }
    }
  }
}

TEST(AddUpFields, RefusesLargeValues) {
  const int64_t most = (int64_t{1} << kAddedBits) - 1, least = -(int64_t{1} << kAddedBits);
  int64_t totals[64];
  for (const uint32_t f : {1u, 5u}) {
    for (const int64_t value : {most, least, most + 1, least - 1, INT64_MAX, INT64_MIN}) {
      Tuples tuples(50, 600);
      tuples.Set(28, f, value);  // which row 504 meets, too
      EXPECT_EQ(tuples.AddUp(63, totals), value <= most && value >= least) << value;
      EXPECT_TRUE(tuples.AddUp(63 & ~(uint64_t{1} << f), totals)) << value;
    }
  }
}

}  // namespace
}  // namespace quern
