// SPDX-License-Identifier: Apache-2.0
// Key filters: which tables have one, and that it takes away no row that has a match. Pairs are compared with those of
// two nested loops, with the filter and without it.
#include "runtime/join/key_filter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ir-templates/generic/generic_join.h"
#include "runtime/join/hash_join.h"
#include "runtime/rows/output_batch.h"
#include "runtime/spec/spec.h"
#include "test/unit/runtime/join/number_join.h"

namespace quern {
namespace {

using Keys = std::vector<int64_t>;

constexpr char kOneKey[] = "join.inner keys=i64 build=i64 probe=i64";
constexpr char kTwoKeys[] = "join.inner keys=i64,i64 build=i64 probe=i64";

Keys Times(int64_t factor, Keys keys) {
  for (int64_t& key : keys) key *= factor;
  return keys;
}

Keys From(int64_t first, Keys keys) {
  for (int64_t& key : keys) key += first;
  return keys;
}

// The keys, as often as the spec has keys, and row numbers as payload.
BatchView BatchOf(const JoinSpec& spec, const Keys& keys, const Keys& rows) {
  BatchView batch = test::Batch(keys, rows);
  batch.keys.assign(spec.keys.size(), test::Column(keys));
  return batch;
}

struct Case {
  const char* spec;
  LayoutChoice layout;
  Keys build, probe;
};

uint64_t DirectoryBytes(const Case& c, KeyFilterChoice choice) {
  const auto descriptor = std::make_shared<JoinDescriptor>(*ParseSpecOf<JoinSpec>(c.spec));
  JoinOptions options;
  options.layout = c.layout;
  options.key_filter = choice;
  const auto join = std::make_shared<HashJoin>(descriptor, GenericJoinKernel(), nullptr, nullptr, options);
  const Keys build_rows = test::RowNumbers(c.build.size()), probe_rows = test::RowNumbers(c.probe.size());
  EXPECT_TRUE(join->Append(BatchOf(descriptor->spec(), c.build, build_rows)).ok());
  EXPECT_TRUE(join->Finalise().ok());
  EXPECT_EQ(test::Probe(join, BatchOf(descriptor->spec(), c.probe, probe_rows), 1000),
            test::NestedLoops(c.build, c.probe));
  return join->stats().directory_bytes;
}

// The bytes of the filter; the same rows come out with it and without.
uint64_t FilterBytes(const Case& c) {
  return DirectoryBytes(c, KeyFilterChoice::kAuto) - DirectoryBytes(c, KeyFilterChoice::kOff);
}

// Most probe rows have no match: keys between those of the table, and beyond both ends of its range.
Keys Wanderers() { return From(-5000, test::SomeKeys(6000, 40000, 1)); }

TEST(KeyFilter, OfEveryLayoutWithoutABitmap) {
  const Keys stepped = Times(100, test::RowNumbers(300)), twice = Times(100, test::SomeKeys(600, 300, 2));
  EXPECT_GT(FilterBytes({kOneKey, LayoutChoice::kOpen, stepped, Wanderers()}), 0u);
  EXPECT_GT(FilterBytes({kOneKey, LayoutChoice::kAuto, twice, Wanderers()}), 0u);
  EXPECT_GT(FilterBytes({kOneKey, LayoutChoice::kUnchained, twice, Wanderers()}), 0u);
  EXPECT_GT(FilterBytes({kTwoKeys, LayoutChoice::kAuto, twice, Wanderers()}), 0u);
  EXPECT_GT(
      FilterBytes({"join.inner keys=i64:nullable,i64 build=i64 probe=i64", LayoutChoice::kAuto, twice, Wanderers()}),
      0u);
  EXPECT_EQ(FilterBytes({kOneKey, LayoutChoice::kDense, Times(10, test::RowNumbers(300)), Wanderers()}), 0u);
}

TEST(KeyFilter, OfSignedKeysOnBothSidesOfZero) {
  const Keys around = From(-30000, Times(100, test::RowNumbers(600)));
  EXPECT_GT(FilterBytes({kOneKey, LayoutChoice::kOpen, around, From(-32000, Wanderers())}), 0u);
  EXPECT_GT(FilterBytes({kTwoKeys, LayoutChoice::kAuto, around, From(-32000, Wanderers())}), 0u);
}

// Keys at both ends of all numbers, all keys of a range, and nulls that match: no filter.
TEST(KeyFilter, OfNoOtherTable) {
  const Keys ends = {INT64_MIN, -1, 0, 1, INT64_MAX}, full = test::SomeKeys(3000, 1000, 3);
  EXPECT_EQ(FilterBytes({kOneKey, LayoutChoice::kOpen, ends, ends}), 0u);
  EXPECT_EQ(FilterBytes({kTwoKeys, LayoutChoice::kAuto, ends, ends}), 0u);
  EXPECT_EQ(FilterBytes({kTwoKeys, LayoutChoice::kAuto, full, Wanderers()}), 0u);
  EXPECT_EQ(FilterBytes({"join.inner keys=f64,f64 build=i64 probe=i64", LayoutChoice::kAuto, {4, 8}, {8}}), 0u);
  EXPECT_EQ(FilterBytes({"join.inner keys=i64:nullable:nullequal,f64 build=i64 probe=i64", LayoutChoice::kAuto,
                         Times(100, test::RowNumbers(300)), Wanderers()}),
            0u);
}

// A probe that finds every key closes the gate, and later finds what it finds without a filter.
TEST(KeyFilter, StopsWhereAllRowsPass) {
  const Keys stepped = Times(10, test::RowNumbers(1000));
  Keys probe;
  for (int i = 0; i < 20; ++i) probe.insert(probe.end(), stepped.begin(), stepped.end());
  const Keys last = Wanderers();
  probe.insert(probe.end(), last.begin(), last.end());
  EXPECT_GT(FilterBytes({kOneKey, LayoutChoice::kOpen, stepped, probe}), 0u);
}

// Sixteen rows at a time, and one by one where the range is large.
TEST(KeyFilter, KeepsTheRowsWhoseBitsAreSet) {
  std::mt19937_64 random(1);
  for (const uint64_t range : {uint64_t{1}, uint64_t{40}, uint64_t{5000}, kPrefetchedBits + 5}) {
    std::vector<uint64_t> bitmap(range / 64 + 1);
    for (uint64_t i = 0; i < std::min<uint64_t>(range, 5000); i += 1 + random() % 5)
      bitmap[i / 64] |= uint64_t{1} << i % 64;
    JoinTable table;
    table.sign_bit = uint64_t{1} << 63;
    table.base = static_cast<uint64_t>(int64_t{-7}) ^ table.sign_bit;
    table.range = range;
    table.bitmap = bitmap.data();
    for (uint32_t n = 0; n < 70; ++n) {
      std::vector<uint64_t> words(n);
      std::vector<uint32_t> numbers(n), from_first, from_numbers;
      std::vector<uint64_t> kept_words;
      for (uint32_t i = 0; i < n; ++i) {
        const uint64_t number = random() % (std::min<uint64_t>(range, 5000) + 20) - 10;
        words[i] = i % 13 == 12 ? random() : ((number + table.base) ^ table.sign_bit);
        numbers[i] = 3 * i + 1;
        const uint64_t place = (words[i] ^ table.sign_bit) - table.base;
        if (place >= range || (bitmap[place / 64] >> place % 64 & 1) == 0) continue;
        from_first.push_back(100 + i);
        from_numbers.push_back(numbers[i]);
        kept_words.push_back(words[i]);
      }
      const auto resized = [](auto values, uint32_t size) { return values.resize(size), values; };
      std::vector<uint32_t> kept(n);
      EXPECT_EQ(KeepKeysOf(table, nullptr, 100, n, KeyWords::Packed(words.data()), kept.data(), nullptr),
                from_first.size());
      EXPECT_EQ(resized(kept, from_first.size()), from_first) << range << " " << n;
      ASSERT_EQ(KeepKeysOf(table, numbers.data(), 0, n, KeyWords::Packed(words.data()), numbers.data(), words.data()),
                from_numbers.size());
      EXPECT_EQ(resized(numbers, from_numbers.size()), from_numbers) << range << " " << n;
      EXPECT_EQ(resized(words, kept_words.size()), kept_words) << range << " " << n;
    }
  }
}

// A column's values are words; also at the ends of what 32 bits hold, where numbers below the base wrap around.
template <class Value>
void ExpectsSameRowsOfColumns(uint64_t sign_bit, int64_t lowest, uint64_t range) {
  std::mt19937_64 random(2);
  std::vector<uint64_t> bitmap(range / 64 + 1);
  for (uint64_t i = 0; i < range; i += 1 + random() % 3) bitmap[i / 64] |= uint64_t{1} << i % 64;
  JoinTable table;
  table.sign_bit = sign_bit;
  table.base = uint64_t{static_cast<Value>(lowest)} ^ sign_bit;
  table.range = range;
  table.bitmap = bitmap.data();
  std::vector<Value> values(500);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] =
        static_cast<Value>(i % 7 == 0 ? random() : static_cast<uint64_t>(lowest) + random() % (range + 40) - 20);
  QuernField key = {};
  key.storage = sizeof(Value) == 4 ? k32 : k64;
  key.index_storage = kNoStorage;
  ASSERT_TRUE(HasWords(key));
  QuernColumn column = {};
  column.values = values.data();
  for (uint32_t n = 0; n < 70; ++n) {
    std::vector<uint32_t> expected, kept(n);
    std::vector<uint64_t> words, kept_words(n);
    for (uint32_t i = 30; i < 30 + n; ++i) {
      const uint64_t number = (uint64_t{values[i]} ^ sign_bit) - table.base;
      if (number >= range || (bitmap[number / 64] >> number % 64 & 1) == 0) continue;
      expected.push_back(i);
      words.push_back(values[i]);
    }
    kept.resize(KeepKeysOf(table, nullptr, 30, n, KeyWords::Of(key, column, 30, 16), kept.data(), kept_words.data()));
    kept_words.resize(kept.size());
    EXPECT_EQ(kept, expected) << n;
    EXPECT_EQ(kept_words, words) << n;
  }
}

TEST(KeyFilter, ReadsWordsInTheirColumn) {
  constexpr uint64_t kSign32 = uint64_t{1} << 31, kSign64 = uint64_t{1} << 63;
  ExpectsSameRowsOfColumns<uint32_t>(kSign32, -100, 300);
  ExpectsSameRowsOfColumns<uint32_t>(kSign32, INT32_MIN, 100);
  ExpectsSameRowsOfColumns<uint32_t>(kSign32, INT32_MAX - 99, 100);
  ExpectsSameRowsOfColumns<uint32_t>(0, 0, 64);
  ExpectsSameRowsOfColumns<uint32_t>(0, UINT32_MAX - 63, 64);
  ExpectsSameRowsOfColumns<uint32_t>(kSign32, 5, kPrefetchedBits + 5);
  ExpectsSameRowsOfColumns<uint64_t>(kSign64, -100, 300);
  ExpectsSameRowsOfColumns<uint64_t>(kSign64, INT64_MIN, 100);
  ExpectsSameRowsOfColumns<uint64_t>(0, -100, 100);
  ExpectsSameRowsOfColumns<uint64_t>(kSign64, 5, kPrefetchedBits + 5);
}

}  // namespace
}  // namespace quern
