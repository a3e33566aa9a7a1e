// SPDX-License-Identifier: Apache-2.0
// Arrays of groups: every packed key within the ranges has its own place, from which the key is restored; a key outside
// of them is detected.
#include "runtime/aggregate/tables/dense_groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "runtime/blocks/blocks.h"
#include "test/unit/runtime/aggregate/group_rows.h"

namespace quern {
namespace {

constexpr int64_t kNull = INT64_MIN + 77;

struct Array {
  std::shared_ptr<AggregateDescriptor> descriptor;
  DenseGroups groups;
  std::vector<uint64_t> words;

  explicit Array(const std::string& keys) : descriptor(test::ShapeOf("aggregate keys=" + keys + " aggs=count_star")) {}

  const QuernRowLayout& group() const { return *descriptor->group(); }
  uint64_t Word(const std::vector<int64_t>& values) const {
    uint64_t word = 0;
    for (size_t k = 0; k < values.size(); ++k) {
      const QuernField& key = group().keys[k];
      const uint32_t bits = key.storage == kBit ? 1 : 8 * StorageFieldBytes(key.storage);
      const uint64_t mask = bits == 64 ? UINT64_MAX : (uint64_t{1} << bits) - 1;
      word |= values[k] == kNull ? uint64_t{1} << key.packed_null_bit
                                 : (static_cast<uint64_t>(values[k]) & mask) << key.packed_shift;
    }
    return word;
  }
  // An array for these rows.
  void Begin(const std::vector<std::vector<int64_t>>& rows) {
    for (const auto& row : rows) words.push_back(Word(row));
    PackedKeyRanges ranges(group());
    ranges.Add(words.data(), static_cast<uint32_t>(words.size()));
    ASSERT_EQ(groups.Begin(group(), ranges, false, nullptr), absl::OkStatus());
  }
  bool Find(const std::vector<uint64_t>& of, std::vector<uint8_t*>* tuples, const PrefetchSetting& setting = {}) {
    tuples->resize(of.size());
    return groups.Find(of.data(), static_cast<uint32_t>(of.size()), setting, tuples->data());
  }
  std::vector<uint64_t> Scanned() {
    std::vector<uint8_t*> tuples(groups.num_cells() + 1);
    tuples.resize(groups.Scan(0, groups.num_cells(), 4096, tuples.data()));
    std::vector<uint64_t> found;
    for (const uint8_t* tuple : tuples)
      found.push_back(group().packed_bytes == 4 ? blocks::Load<uint32_t>(tuple) : blocks::Load<uint64_t>(tuple));
    std::sort(found.begin(), found.end());
    return found;
  }
  // All rows are found, each distinct one has its own tuple, and Scan returns the keys.
  void ExpectRoundTrip(const PrefetchSetting& setting) {
    std::vector<uint8_t*> tuples;
    ASSERT_TRUE(Find(words, &tuples, setting));
    std::vector<uint64_t> distinct = words;
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    for (size_t i = 0; i < words.size(); ++i)
      for (size_t j = 0; j < i; ++j) EXPECT_EQ(words[i] == words[j], tuples[i] == tuples[j]) << i << " " << j;
    EXPECT_EQ(groups.num_groups(), distinct.size());
    EXPECT_EQ(Scanned(), distinct);
  }
};

struct RangeCase {
  const char* keys;
  std::vector<std::vector<int64_t>> rows;
  uint64_t num_cells;
};

TEST(DenseGroups, EveryWordOfItsRangesHasAPlace) {
  const std::vector<RangeCase> cases = {
      {"i64", {{-3}, {4}, {0}, {-3}}, 8},
      {"i64", {{INT64_MIN}, {INT64_MIN + 9}}, 10},
      {"i64", {{INT64_MAX}, {INT64_MAX - 1}}, 2},
      {"u64", {{-1}, {-5}}, 5},  // the largest
      {"i8", {{-128}, {127}, {0}}, 256},
      {"u8", {{255}, {200}}, 56},
      {"i32", {{-1}, {0}, {1}}, 3},
      {"bool", {{0}, {1}}, 2},
      {"i64", {{7}}, 1},
      {"i32:nullable", {{kNull}, {-2}, {5}}, 9},
      {"i32:nullable", {{kNull}}, 1},
      {"i32,i16:nullable", {{10, kNull}, {12, -1}, {11, 0}, {12, kNull}}, 9},
      {"i8,u8,bool:nullable,i16", {{-1, 3, kNull, 300}, {1, 5, 1, 298}, {0, 4, 0, 299}}, 3 * 3 * 3 * 3},
      {"date32,u16", {{-5, 65535}, {-6, 65530}}, 12},
  };
  for (const RangeCase& c : cases) {
    for (const uint16_t distance : {uint16_t{0}, uint16_t{1}, uint16_t{16}, kWholeBatch}) {
      SCOPED_TRACE(c.keys);
      Array array(c.keys);
      array.Begin(c.rows);
      EXPECT_EQ(array.groups.num_cells(), c.num_cells);
      array.ExpectRoundTrip({.distance = distance});
    }
  }
}

TEST(DenseGroups, AWordOutsideIsNoticedWhereverItIs) {
  struct Case {
    const char* keys;
    std::vector<std::vector<int64_t>> inside;
    std::vector<int64_t> outside;
  };
  const std::vector<Case> cases = {{"i64", {{5}, {9}}, {4}},
                                   {"i64", {{5}, {9}}, {10}},
                                   {"i64", {{5}, {9}}, {INT64_MIN}},
                                   {"i64:nullable,bool", {{5, 0}, {9, 0}}, {7, 1}},
                                   {"u8", {{5}, {9}}, {0}},
                                   {"i32:nullable", {{kNull}}, {0}},
                                   {"i32,i16", {{1, 1}, {3, 3}}, {2, 4}},
                                   {"i32,i16", {{1, 1}, {3, 3}}, {0, 2}}};
  for (const Case& c : cases) {
    if (test::ShapeOf(std::string("aggregate keys=") + c.keys)->group()->packed_bytes == 0) continue;
    for (size_t at : {0, 1, 17}) {
      Array array(c.keys);
      array.Begin(c.inside);
      std::vector<uint64_t> words(18, array.words[0]);
      std::vector<uint8_t*> tuples;
      EXPECT_TRUE(array.Find(words, &tuples));
      words[at] = array.Word(c.outside);
      EXPECT_FALSE(array.Find(words, &tuples)) << c.keys << " " << at;
      EXPECT_FALSE(array.Find(words, &tuples, {.distance = 8})) << c.keys << " " << at;
      EXPECT_EQ(array.groups.num_groups(), 1u) << c.keys;
    }
  }
}

// An empty cell holds 0, which is also a key.
TEST(DenseGroups, TheWordZeroIsAGroupOnlyIfItCame) {
  for (const char* keys : {"i64", "i32", "i32,i16"}) {
    SCOPED_TRACE(keys);
    Array array(keys);
    const bool is_pair = array.group().num_keys == 2;
    const auto word = [&](int64_t k) {
      return array.Word(is_pair ? std::vector<int64_t>{k, 0} : std::vector<int64_t>{k});
    };
    array.Begin(is_pair ? std::vector<std::vector<int64_t>>{{-2, 0}, {20, 0}}
                        : std::vector<std::vector<int64_t>>{{-2}, {20}});
    std::vector<uint8_t*> tuples;
    std::vector<uint64_t> words;
    for (int64_t k = 1; k <= 20; ++k) words.push_back(word(k));
    ASSERT_TRUE(array.Find(words, &tuples));
    EXPECT_EQ(array.groups.num_groups(), 20u);
    EXPECT_EQ(array.Scanned(), words);
    words.insert(words.begin(), word(0));
    ASSERT_TRUE(array.Find(words, &tuples));
    ASSERT_TRUE(array.Find(words, &tuples, {.distance = 4}));
    EXPECT_EQ(array.groups.num_groups(), 21u);
    EXPECT_EQ(array.Scanned(), words);
  }
}

// A null has its place even if it was not in the first batch.
TEST(DenseGroups, ANullableKeyHasAPlaceForNull) {
  Array array("i32:nullable");
  array.Begin({{5}, {6}});
  std::vector<uint8_t*> tuples;
  EXPECT_TRUE(array.Find({array.Word({kNull}), array.Word({5})}, &tuples));
  EXPECT_EQ(array.Scanned(), (std::vector<uint64_t>{5, array.Word({kNull})}));
}

TEST(DenseGroups, TuplesBeginZeroAndKeepWhatIsWrittenThere) {
  Array array("i64");
  array.Begin({{1}, {100}});
  std::vector<uint8_t*> tuples, again;
  ASSERT_TRUE(array.Find({50, 51}, &tuples));
  EXPECT_EQ(blocks::Load<uint64_t>(tuples[0] + 8), 0u);
  blocks::Store<uint64_t>(tuples[0] + 8, 7);
  ASSERT_TRUE(array.Find({51, 50}, &again));
  EXPECT_EQ(blocks::Load<uint64_t>(again[1] + 8), 7u);
  EXPECT_EQ(blocks::Load<uint64_t>(again[0] + 8), 0u);
}

TEST(DenseGroups, RangesGrowWithTheWords) {
  const auto descriptor = test::ShapeOf("aggregate keys=i8,u8:nullable");
  PackedKeyRanges ranges(*descriptor->group());
  EXPECT_TRUE(ranges.digits[0].is_empty());
  EXPECT_EQ(ranges.num_cells(), 0u);
  const uint64_t null_word = uint64_t{1} << descriptor->group()->keys[1].packed_null_bit;
  const std::vector<uint64_t> words = {0xff, 0x01 | null_word, 0x02 | 9 << 8};
  ranges.Add(words.data(), 3);
  EXPECT_EQ(ranges.digits[0].num_values(), 4u);   // -1 .. 2
  EXPECT_EQ(ranges.digits[1].num_values(), 11u);  // 0 .. 9, null
  EXPECT_EQ(ranges.num_cells(), 44u);
}

TEST(DenseGroups, ARangeOf64BitsHasNoNumberOfCells) {
  const auto descriptor = test::ShapeOf("aggregate keys=i64"), two = test::ShapeOf("aggregate keys=u32,u32");
  PackedKeyRanges ranges(*descriptor->group()), product(*two->group());
  const std::vector<uint64_t> words = {0, UINT64_MAX};
  ranges.Add(words.data(), 2);
  ranges.Add(0, 0, UINT64_MAX);
  EXPECT_EQ(ranges.num_cells(), UINT64_MAX);
  product.Add(words.data(), 2);
  EXPECT_EQ(product.num_cells(), UINT64_MAX);  // 2^64
}

TEST(DenseGroups, MemoryIsTakenFromTheBudget) {
  const auto descriptor = test::ShapeOf("aggregate keys=i64");
  PackedKeyRanges ranges(*descriptor->group());
  ranges.Add(0, 0, 99999);
  const auto budget = std::make_shared<MemoryBudget>(100000);
  DenseGroups groups;
  EXPECT_EQ(groups.Begin(*descriptor->group(), ranges, false, budget).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(budget->used_bytes(), 0u);
}

}  // namespace
}  // namespace quern
