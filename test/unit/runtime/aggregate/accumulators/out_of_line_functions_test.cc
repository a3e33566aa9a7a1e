// SPDX-License-Identifier: Apache-2.0
// The results of each out-of-line aggregate.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "test/unit/runtime/aggregate/accumulators/accumulator_rows.h"
#include "test/unit/seed.h"

namespace quern::test {
namespace {

using Function = AggregateFunction;
using Strings = std::vector<std::string>;

std::string OfStrings(Function function, const ColumnType& type, const Strings& strings) {
  Groups groups(SpecOf(function, type), 1);
  EXPECT_TRUE(
      groups.AddAll(*StringColumn(RowOf(type.id).storage, strings), static_cast<uint32_t>(strings.size())).ok());
  return groups.Result();
}

template <class T>
Groups GroupOf(const AggregateSpec& spec, const std::vector<T>& values) {
  Groups groups(spec, 1);
  EXPECT_TRUE(groups.AddAll(*NumberColumn(values), static_cast<uint32_t>(values.size())).ok());
  return groups;
}

template <class T>
std::string OfNumbers(Function function, TypeId id, const std::vector<T>& values) {
  return GroupOf(SpecOf(function, TypeOf(id)), values).Result();
}

TEST(OutOfLineStrings, OrderIsThatOfBytesAndShorterFirst) {
  for (const TypeId id : {TypeId::kUtf8, TypeId::kLargeBinary, TypeId::kBinaryView}) {
    const ColumnType type = TypeOf(id);
    EXPECT_EQ(OfStrings(Function::kMin, type, {"pear", "apricot pie", "apple tart", "apple tarte"}), "apple tart");
    EXPECT_EQ(OfStrings(Function::kMax, type, {"apple tart", "apple tarte", "apple"}), "apple tarte");
    EXPECT_EQ(OfStrings(Function::kMax, type, {"z", "\xc3\xa4", "zz"}), "\xc3\xa4");
    EXPECT_EQ(OfStrings(Function::kMin, type, {std::string("a\0", 2), "a"}), "a");
    EXPECT_EQ(OfStrings(Function::kMin, type, {"b", "", "a"}), "");
    EXPECT_EQ(OfStrings(Function::kMax, type, {"12345678", "123456789"}), "123456789");
  }
}

TEST(OutOfLineStrings, MatchASortOfRandomStrings) {
  std::mt19937_64 random = PrintedRandom();
  for (int round = 0; round < 200; ++round) {
    Strings strings(1 + random() % 20);
    for (std::string& s : strings) {
      s.assign(random() % 14, 'a');
      for (size_t i = s.size() > 8 ? 6 : 0; i < s.size(); ++i) s[i] = "ab\0"[random() % 3];
    }
    EXPECT_EQ(OfStrings(Function::kMin, TypeOf(TypeId::kUtf8), strings),
              *std::min_element(strings.begin(), strings.end()));
    EXPECT_EQ(OfStrings(Function::kMax, TypeOf(TypeId::kUtf8), strings),
              *std::max_element(strings.begin(), strings.end()));
  }
}

TEST(OutOfLineStrings, PadSpaceComparesWithoutTrailingSpacesAndKeepsThem) {
  const ColumnType padded = TypeOf(TypeId::kUtf8, kCollationUtf8mb4Bin);
  EXPECT_EQ(OfStrings(Function::kMax, padded, {"a  ", "a", "a "}), "a  ");
  EXPECT_EQ(OfStrings(Function::kMax, TypeOf(TypeId::kUtf8), {"a", "a  ", "a "}), "a  ");
  EXPECT_EQ(OfStrings(Function::kMin, padded, {"a ", "a\t"}), "a\t");
  EXPECT_EQ(OfStrings(Function::kMin, TypeOf(TypeId::kUtf8, kCollationTidbUtf8mb4Bin), {"a\t", "a "}), "a ");
  EXPECT_EQ(OfStrings(Function::kMin, padded, {"twelve bytes  ", "twelve bytes "}), "twelve bytes  ");
  EXPECT_EQ(OfStrings(Function::kCountDistinct, padded, {"a", "a ", " a", "", " "}), "3");
  EXPECT_EQ(OfStrings(Function::kCountDistinct, TypeOf(TypeId::kUtf8), {"a", "a ", " a", "", " "}), "5");
}

TEST(OutOfLineStrings, FirstAndLastGoByRowId) {
  const ColumnPtr column = StringColumn(kVar32, {"two", "a long string for three", "one"});
  for (const Function function : {Function::kFirst, Function::kLast, Function::kAny}) {
    Groups groups(SpecOf(function, TypeOf(TypeId::kUtf8)), 1);
    ASSERT_TRUE(groups.Add(&column->column, {0, 1}, 100).ok());
    ASSERT_TRUE(groups.Add(&column->column, {2}, 50).ok());
    EXPECT_EQ(groups.Result(), function == Function::kFirst ? "one"
                               : function == Function::kAny ? "two"
                                                            : "a long string for three");
  }
}

TEST(OutOfLineStrings, ReplacedStringsGrowAndShrink) {
  std::mt19937_64 random = PrintedRandom();
  Groups groups(SpecOf(Function::kLast, TypeOf(TypeId::kUtf8)), 3);
  for (uint32_t round = 0; round < 600; ++round) {
    const std::string s(random() % 9 == 0 ? random() % 5000 : random() % 40, static_cast<char>('a' + round % 26));
    const ColumnPtr column = StringColumn(kVar32, {s, s, s});
    ASSERT_TRUE(groups.Add(&column->column, {round % 3}, round * 3).ok());
    EXPECT_EQ(groups.Results().value()[round % 3], s);
  }
}

TEST(OutOfLineStrings, AShorterStringTakesThePieceOfALongerOne) {
  auto budget = std::make_shared<MemoryBudget>();
  Groups groups(SpecOf(Function::kLast, TypeOf(TypeId::kUtf8)), 1, budget);
  for (uint32_t i = 0; i < 1000; ++i) {
    const ColumnPtr column = StringColumn(kVar32, {std::string(2000 - i, 'x')});
    ASSERT_TRUE(groups.Add(&column->column, {0}, i).ok());
  }
  EXPECT_LE(budget->used_bytes(), 16384u);
}

TEST(OutOfLineStrings, FixedBinaryIsComparedByBytes) {
  const ColumnType type = {.id = TypeId::kFixedBinary, .width_bytes = 3};
  const ColumnPtr column = StringColumn(kFixed, {"bbb", "abc", "cab"});
  const std::pair<Function, const char*> expected[] = {
      {Function::kMin, "abc"}, {Function::kMax, "cab"}, {Function::kLast, "cab"}, {Function::kCountDistinct, "3"}};
  for (const auto& [function, result] : expected) {
    Groups groups(SpecOf(function, type), 1);
    ASSERT_TRUE(groups.AddAll(*column, 3).ok());
    EXPECT_EQ(groups.Result(), result);
  }
}

TEST(StringAgg, JoinsInTheOrderOfRowIds) {
  for (const TypeId id : {TypeId::kUtf8, TypeId::kLargeUtf8, TypeId::kUtf8View}) {
    const AggregateSpec spec = SpecOf(Function::kStringAgg, TypeOf(id));
    const ColumnPtr column = StringColumn(RowOf(id).storage, {"a", "", "a longer string", "d"});
    Groups a(spec, 1), b(spec, 1);
    ASSERT_TRUE(a.Add(&column->column, {2, 3}).ok());
    ASSERT_TRUE(b.Add(&column->column, {0, 1}).ok());
    ASSERT_TRUE(a.Merge(&b).ok());
    EXPECT_EQ(a.Result(), "a, , a longer string, d");
    EXPECT_EQ(OfStrings(Function::kStringAgg, TypeOf(id), {"x", "y"}), "x, y");
    EXPECT_EQ(OfStrings(Function::kStringAgg, TypeOf(id), {""}), "");
  }
}

TEST(CountDistinct, FloatsCountOneNanAndOneZero) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(OfNumbers<double>(Function::kCountDistinct, TypeId::kF64,
                              {0.0, -0.0, nan, -nan, std::nan("7"), infinity, -infinity}),
            "4");
  EXPECT_EQ(OfNumbers<float>(Function::kCountDistinct, TypeId::kF32, {0.0f, -0.0f, -NAN, NAN, 1.5f}), "3");
}

TEST(CountDistinct, CountsEveryWordOnce) {
  std::mt19937_64 random = PrintedRandom();
  std::vector<int64_t> values = {0, -1, INT64_MIN, INT64_MAX};
  for (int i = 0; i < 20000; ++i) values.push_back(static_cast<int64_t>(random() % 7000) - 3000);
  const std::set<int64_t> expected(values.begin(), values.end());
  EXPECT_EQ(OfNumbers(Function::kCountDistinct, TypeId::kI64, values), std::to_string(expected.size()));
  EXPECT_EQ(OfNumbers<int64_t>(Function::kCountDistinct, TypeId::kI64, {0}), "1");
  const __int128 high = static_cast<__int128>(1) << 64;
  EXPECT_EQ(OfNumbers<__int128>(Function::kCountDistinct, TypeId::kDecimal128, {0, high, 1, high + 1, high, 0}), "4");
}

template <class Index>
std::string MaxThroughIndices(TypeId index) {
  ColumnPtr column = NumberColumn<Index>({2, 0, 2});
  column->dictionary = StringColumn(kVar32, {"b", "never met", "a string of the dictionary"});
  column->column.dictionary = &column->dictionary->column;
  Groups groups(SpecOf(Function::kMax, {.id = TypeId::kUtf8, .is_dictionary = true, .index = index}), 1);
  EXPECT_TRUE(groups.AddAll(*column, 3).ok());
  return groups.Result();
}

TEST(OutOfLineStrings, DictionariesOfEveryIndex) {
  EXPECT_EQ(MaxThroughIndices<int8_t>(TypeId::kI8), "b");
  EXPECT_EQ(MaxThroughIndices<uint16_t>(TypeId::kU16), "b");
  EXPECT_EQ(MaxThroughIndices<int32_t>(TypeId::kI32), "b");
  EXPECT_EQ(MaxThroughIndices<uint64_t>(TypeId::kU64), "b");
}

// A host's buffers may have any alignment.
TEST(CountDistinct, ColumnsNeedNoAlignment) {
  for (const TypeId id : {TypeId::kI16, TypeId::kF32, TypeId::kU64, TypeId::kDecimal128}) {
    const std::vector<uint8_t> bytes(1 + 16 * 4, 7);
    QuernColumn column = {};
    column.values = bytes.data() + 1;
    for (const Function function : {Function::kCountDistinct, Function::kApproxCountDistinct}) {
      Groups groups(SpecOf(function, TypeOf(id)), 1);
      ASSERT_TRUE(groups.Add(&column, {0, 1, 2, 3}).ok());
      EXPECT_EQ(groups.Result(), "1");
    }
    if (id == TypeId::kDecimal128) continue;
    Groups groups(SpecOf(Function::kMedian, TypeOf(id)), 1);
    ASSERT_TRUE(groups.Add(&column, {0, 1, 2, 3}).ok());
  }
}

TEST(CountDistinct, BoolsHaveABitOffset) {
  const ColumnPtr column = BoolColumn({true, true, false, false, false});
  Groups groups(SpecOf(Function::kCountDistinct, TypeOf(TypeId::kBool)), 1);
  column->column.bit_offset = 2;
  ASSERT_TRUE(groups.AddAll(*column, 3).ok());
  EXPECT_EQ(groups.Result(), "1");
}

TEST(SumDistinct, SumsEachValueOnceWithItsSign) {
  EXPECT_EQ(OfNumbers<int8_t>(Function::kSumDistinct, TypeId::kI8, {-128, -128, 100, 0, 100}), "-28");
  EXPECT_EQ(OfNumbers<uint8_t>(Function::kSumDistinct, TypeId::kU8, {200, 200, 100}), "300");
  EXPECT_EQ(OfNumbers<int64_t>(Function::kSumDistinct, TypeId::kI64, {INT64_MAX, 5, -5, INT64_MIN}), "-1");
  EXPECT_EQ(OfNumbers<uint64_t>(Function::kSumDistinct, TypeId::kU64, {UINT64_MAX, 0, 0}), "18446744073709551615");
  EXPECT_EQ(OfNumbers<float>(Function::kSumDistinct, TypeId::kF32, {0.5f, 0.5f, -2.0f}), "-1.500000");
  EXPECT_EQ(OfNumbers<double>(Function::kSumDistinct, TypeId::kF64, {-0.0}), "0.000000");
}

TEST(SumDistinct, RefusesWhatDoesNotFit) {
  const auto error = [](TypeId id, const auto& values) {
    const absl::Status status = GroupOf(SpecOf(Function::kSumDistinct, TypeOf(id)), values).Results().status();
    EXPECT_TRUE(absl::IsOutOfRange(status));
    return Message(status);
  };
  EXPECT_EQ(error(TypeId::kI64, std::vector<int64_t>{INT64_MAX, 1}),
            "sum out of range: sum_distinct(i64); accepted: results within 64 bits");
  EXPECT_EQ(error(TypeId::kU64, std::vector<uint64_t>{UINT64_MAX, 1}),
            "sum out of range: sum_distinct(u64); accepted: results within 64 bits");
  const auto largest = static_cast<__int128>(~static_cast<unsigned __int128>(0) >> 1);
  EXPECT_EQ(error(TypeId::kDecimal128, std::vector<__int128>{largest, 1}),
            "sum out of range: sum_distinct(decimal128); accepted: results within 128 bits");
  // Only the final sum must be within range, whatever the order of the values.
  EXPECT_EQ(OfNumbers<__int128>(Function::kSumDistinct, TypeId::kDecimal128, {largest, 3, 2, -largest, -3}),
            "2.000000");
}

std::string QuantileOf(double quantile, const std::vector<double>& values) {
  AggregateSpec spec = SpecOf(Function::kQuantile, TypeOf(TypeId::kF64));
  spec.quantile = quantile;
  return GroupOf(spec, values).Result();
}

TEST(Quantile, LiesBetweenTwoValues) {
  EXPECT_EQ(QuantileOf(0.9, {80, 10, 40, 20}), "68.000000");
  EXPECT_EQ(QuantileOf(0, {3, 1, 2}), "1.000000");
  EXPECT_EQ(QuantileOf(1, {3, 1, 2}), "3.000000");
  EXPECT_EQ(QuantileOf(0.3, {7}), "7.000000");
  EXPECT_EQ(OfNumbers<int32_t>(Function::kMedian, TypeId::kI32, {5, -1, 2, 9}), "3.500000");
  EXPECT_EQ(OfNumbers<uint64_t>(Function::kMedian, TypeId::kU64, {UINT64_MAX}), "18446744073709551616.000000");
}

TEST(Quantile, NanIsGreaterThanAllNumbers) {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(QuantileOf(0.5, {nan, 1, infinity}), "inf");
  EXPECT_EQ(QuantileOf(0.5, {nan, 1, nan, 2, 3}), "3.000000");
  EXPECT_EQ(QuantileOf(1, {1, nan}), "nan");
  EXPECT_EQ(QuantileOf(0.5, {1, nan}), "nan");
  EXPECT_EQ(QuantileOf(0.5, {infinity, infinity}), "inf");
}

// 5 standard errors of 1.6 %, over the sizes at which the original estimator switches its formula.
TEST(ApproxCountDistinct, IsNearTheNumber) {
  for (const uint32_t n : {1u, 2u, 60u, 64u, 65u, 500u, 4000u, 9000u, 12000u, 20000u, 100000u}) {
    std::vector<uint64_t> values(n);
    for (uint32_t i = 0; i < n; ++i) values[i] = i;
    const double estimate = std::stod(OfNumbers(Function::kApproxCountDistinct, TypeId::kU64, values));
    EXPECT_NEAR(estimate, n, n * 0.08) << n;
    if (n <= 2) {
      EXPECT_EQ(estimate, n);
    }
  }
}

TEST(ApproxCountDistinct, OfStringsAndDecimalsToo) {
  Strings strings;
  std::vector<__int128> decimals;
  for (int i = 0; i < 30000; ++i) {
    strings.push_back("customer " + std::to_string(i / 3));
    decimals.push_back(i / 3);
  }
  EXPECT_NEAR(std::stod(OfStrings(Function::kApproxCountDistinct, TypeOf(TypeId::kUtf8), strings)), 10000, 800);
  EXPECT_NEAR(std::stod(OfNumbers(Function::kApproxCountDistinct, TypeId::kDecimal128, decimals)), 10000, 800);
}

// If two values share a register, it keeps the higher rank, in the short list of entries as well as in the full array.
TEST(ApproxCountDistinct, DoesNotDependOnTheOrder) {
  std::mt19937_64 random = PrintedRandom();
  for (int round = 0; round < 100; ++round) {
    std::vector<uint64_t> values(round % 2 == 0 ? 60 : 300);
    for (uint64_t& value : values) value = random();
    const std::vector<uint64_t> reversed(values.rbegin(), values.rend());
    std::vector<std::string> entries[2];
    for (int i = 0; i < 2; ++i) {
      const Groups groups =
          GroupOf(SpecOf(Function::kApproxCountDistinct, TypeOf(TypeId::kU64)), i == 0 ? values : reversed);
      const std::string saved = groups.Saved(0);
      const size_t entry_bytes = round % 2 == 0 ? 3 : 1;
      for (size_t at = 2; at < saved.size(); at += entry_bytes) entries[i].push_back(saved.substr(at, entry_bytes));
      if (entry_bytes == 3) std::sort(entries[i].begin(), entries[i].end());
    }
    EXPECT_EQ(entries[0], entries[1]);
  }
}

// The bytes of a result batch end where 32-bit offsets do; the rest follows in the next batch.
TEST(OutOfLineStrings, FewerFitAtTheLimitOfOffsets) {
  Groups groups(SpecOf(Function::kMin, TypeOf(TypeId::kUtf8)), 3);
  ASSERT_TRUE(groups.AddAll(*StringColumn(kVar32, {"abcd", "efgh", "ijkl"}), 3).ok());
  std::vector<uint8_t> bytes(64);
  int32_t offsets[4] = {INT32_MAX - 9};
  uint8_t validity = 0;
  // Only bytes beyond INT32_MAX - 9 are written.
  QuernOutColumn out = {&validity, nullptr, offsets, bytes.data() - (INT32_MAX - 9), INT32_MAX - 9, INT32_MAX,
                        0,         nullptr, 0};
  const uint8_t* states[] = {groups.state(0), groups.state(1), groups.state(2)};
  EXPECT_EQ(groups.accumulator().Finalise(states, 3, &out, 0, nullptr).value(), 2u);
  EXPECT_EQ(offsets[2], INT32_MAX - 1);
}

}  // namespace
}  // namespace quern::test
