// SPDX-License-Identifier: Apache-2.0
// Numbers of dictionary values: equal values have the same number in every batch, whatever the order of its dictionary.
#include "runtime/aggregate/key_dictionaries.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/blocks/blocks.h"
#include "runtime/spec/spec.h"
#include "test/unit/runtime/aggregate/group_rows.h"

namespace quern {
namespace {

using test::ColumnPtr;
using test::DictionaryColumn;
using test::StringColumn;
using Codes = std::vector<uint32_t>;

constexpr uint32_t kUntouched = 1000;

struct Numbers {
  std::shared_ptr<MemoryBudget> budget = test::NoLimit();
  KeyDictionaries dictionaries;

  explicit Numbers(const std::string& keys)
      : dictionaries(*ParseSpecOf<AggregationSpec>("aggregate keys=" + keys), budget) {}

  Codes Encode(const ColumnPtr& column, uint32_t n, bool is_plain = false, size_t key = 0) {
    Codes codes(n, kUntouched);
    KeyDictionaries::Numbers by_index;
    EXPECT_EQ(dictionaries.Encode(key, &column->column, is_plain, {nullptr, 0, nullptr, n}, &by_index, codes.data()),
              absl::OkStatus());
    return codes;
  }
  std::string Value(uint32_t code) const { return std::string(dictionaries.ValueOf(0, code)); }
};

TEST(KeyDictionaries, AValueHasOneNumberInAllBatches) {
  Numbers numbers("dictionary(u8,utf8)");
  EXPECT_EQ(numbers.Encode(DictionaryColumn({0, 1, 1}, StringColumn(kVar32, {"air", "rail"})), 3), (Codes{0, 1, 1}));
  EXPECT_EQ(numbers.Encode(DictionaryColumn({0, 1, 2}, StringColumn(kVar32, {"rail", "ship", "air"})), 3),
            (Codes{1, 2, 0}));
  EXPECT_EQ(numbers.Value(0), "air");
  EXPECT_EQ(numbers.Value(2), "ship");
}

// A dictionary may contain a value twice, and values that no row uses.
TEST(KeyDictionaries, EqualValuesOfOneDictionaryHaveOneNumber) {
  Numbers numbers("dictionary(u8,utf8)");
  EXPECT_EQ(numbers.Encode(DictionaryColumn({3, 1, 2, 0}, StringColumn(kVar32, {"x", "", "x", "y", "unused"})), 4),
            (Codes{0, 1, 2, 2}));
  EXPECT_EQ(numbers.Encode(StringColumn(kVar32, {"unused"}), 1, true), (Codes{3}));
}

TEST(KeyDictionaries, NullsGetNoNumber) {
  Numbers numbers("dictionary(u8,utf8):nullable");
  const auto column = test::WithNulls(DictionaryColumn({0, 200, 0}, StringColumn(kVar32, {"a"})), {true, false, true});
  EXPECT_EQ(numbers.Encode(column, 3), (Codes{0, kUntouched, 0}));
  const auto nothing = test::WithNulls(DictionaryColumn({0, 0}, StringColumn(kVar32, {})), {false, false});
  EXPECT_EQ(numbers.Encode(nothing, 2), (Codes{kUntouched, kUntouched}));
}

TEST(KeyDictionaries, OnlySelectedRowsAreRead) {
  Numbers numbers("dictionary(u8,utf8)");
  const auto column = DictionaryColumn({9, 1, 9, 0}, StringColumn(kVar32, {"a", "b"}));
  const uint32_t rows[] = {3, 1};
  Codes codes(4, kUntouched);
  KeyDictionaries::Numbers by_index;
  ASSERT_EQ(numbers.dictionaries.Encode(0, &column->column, false, {nullptr, 0, rows, 2}, &by_index, codes.data()),
            absl::OkStatus());
  EXPECT_EQ(codes, (Codes{kUntouched, 1, kUntouched, 0}));
}

TEST(KeyDictionaries, RowsOfABatchMayBeEncodedInTurn) {
  Numbers numbers("dictionary(u8,utf8)");
  const auto column = DictionaryColumn({1, 0, 1, 2}, StringColumn(kVar32, {"a", "b", "a"}));
  Codes codes(4, kUntouched);
  KeyDictionaries::Numbers by_index;
  for (uint64_t first = 0; first < 4; first += 2) {
    ASSERT_EQ(
        numbers.dictionaries.Encode(0, &column->column, false, {nullptr, first, nullptr, 2}, &by_index, codes.data()),
        absl::OkStatus());
  }
  EXPECT_EQ(codes, (Codes{0, 1, 0, 1}));
}

// Two threads that leave the same dictionaries go on with the same ones; the memory is free when both have left.
TEST(DictionarySeries, ThreadsThatLeaveOneMeetInTheNext) {
  const auto budget = std::make_shared<MemoryBudget>(1 << 20);
  const auto spec = ParseSpecOf<AggregationSpec>("aggregate keys=dictionary(u8,utf8)");
  DictionarySeries series(*spec, budget);
  std::shared_ptr<KeyDictionaries> one = series.current(), other = series.current();
  const auto column = StringColumn(kVar32, {"a value"});
  uint32_t code = kUntouched;
  KeyDictionaries::Numbers by_index;
  ASSERT_EQ(one->Encode(0, &column->column, true, {nullptr, 0, nullptr, 1}, &by_index, &code), absl::OkStatus());
  one = series.After(one);
  EXPECT_EQ(one->bytes(), 0u);
  EXPECT_GT(budget->used_bytes(), 0u);
  EXPECT_EQ(other->ValueOf(0, code), "a value");
  other = series.After(other);
  EXPECT_EQ(one, other);
  EXPECT_EQ(budget->used_bytes(), 0u);
}

TEST(KeyDictionaries, TrailingSpacesAreIgnoredUnderPadSpace) {
  Numbers pads("dictionary(u8,utf8(utf8mb4_bin))"), exact("dictionary(u8,utf8)");
  const auto column = DictionaryColumn({0, 1, 2}, StringColumn(kVar32, {"a ", "a", "a   "}));
  EXPECT_EQ(pads.Encode(column, 3), (Codes{0, 0, 0}));
  EXPECT_EQ(pads.Value(0), "a ");
  EXPECT_EQ(exact.Encode(column, 3), (Codes{0, 1, 2}));
}

TEST(KeyDictionaries, StringsOfOneEqualityKeyAreOneValue) {
  Numbers general("dictionary(u8,utf8(utf8mb4_general_ci))"), weighs_nothing("dictionary(u8,utf8(utf8mb4_0900_ai_ci))");
  EXPECT_EQ(
      general.Encode(DictionaryColumn({0, 1, 2, 3}, StringColumn(kVar32, {"R\u00f6k ", "rok", "ROK", "rok!"})), 4),
      (Codes{0, 0, 0, 1}));
  EXPECT_EQ(general.Encode(DictionaryColumn({1, 0}, StringColumn(kVar32, {"ROK ", "ROK!"})), 2), (Codes{1, 0}));
  EXPECT_EQ(general.Value(0), "R\u00f6k ");
  EXPECT_EQ(weighs_nothing.Encode(DictionaryColumn({0, 1, 2}, StringColumn(kVar32, {"", "\u00ad", " "})), 3),
            (Codes{0, 0, 1}));
}

TEST(KeyDictionaries, NumbersAreValuesToo) {
  Numbers floats("dictionary(u8,f64)"), wide("dictionary(u8,decimal128)"), bools("dictionary(u8,bool)");
  const double nan = __builtin_nan("");
  EXPECT_EQ(floats.Encode(DictionaryColumn({0, 1, 2, 3}, test::NumberColumn<double>({0.0, -0.0, nan, -nan})), 4),
            (Codes{0, 0, 1, 1}));
  EXPECT_EQ(wide.Encode(DictionaryColumn({0, 1, 0}, test::NumberColumn<__int128>({1, __int128{1} << 100})), 3),
            (Codes{0, 1, 0}));
  EXPECT_EQ(bools.Encode(DictionaryColumn({1, 0, 1}, test::BoolColumn({false, true})), 3), (Codes{0, 1, 0}));
}

TEST(KeyDictionaries, KeysAreNumberedApart) {
  Numbers numbers("i64,dictionary(u8,utf8),dictionary(u8,utf8)");
  EXPECT_FALSE(numbers.dictionaries.has(0));
  EXPECT_TRUE(numbers.dictionaries.has(1));
  EXPECT_TRUE(numbers.dictionaries.has_any());
  EXPECT_FALSE(Numbers("i64").dictionaries.has_any());
  const auto values = StringColumn(kVar32, {"a", "b"});
  EXPECT_EQ(numbers.Encode(DictionaryColumn({1, 0}, values), 2, false, 1), (Codes{0, 1}));
  EXPECT_EQ(numbers.Encode(DictionaryColumn({0, 1}, values), 2, false, 2), (Codes{0, 1}));
}

TEST(KeyDictionaries, ValuesAreTakenFromTheBudgetAndGivenBack) {
  const auto budget = std::make_shared<MemoryBudget>(1000);
  {
    KeyDictionaries dictionaries(*ParseSpecOf<AggregationSpec>("aggregate keys=dictionary(u8,utf8)"), budget);
    const auto column = StringColumn(kVar32, {"a", std::string(500, 'b'), std::string(500, 'c')});
    uint32_t codes[3];
    KeyDictionaries::Numbers by_index;
    const auto encode = [&](uint32_t n) {
      return dictionaries.Encode(0, &column->column, true, {nullptr, 0, nullptr, n}, &by_index, codes);
    };
    EXPECT_EQ(encode(2), absl::OkStatus());
    EXPECT_GT(budget->used_bytes(), 501u);
    EXPECT_EQ(encode(3).code(), absl::StatusCode::kResourceExhausted);
  }
  EXPECT_EQ(budget->used_bytes(), 0u);
}

TEST(KeyDictionaries, ThreadsAgreeOnTheNumbers) {
  Numbers numbers("dictionary(u8,utf8)");
  std::vector<Codes> codes(4);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < codes.size(); ++t) {
    threads.emplace_back([&, t] {
      std::vector<std::string> values;
      std::vector<uint8_t> indices;
      for (size_t i = 0; i < 200; ++i) {
        values.push_back(std::to_string((i + t * 50) % 200));
        indices.push_back(static_cast<uint8_t>((i + 200 - t * 50) % 200));  // row i: value i
      }
      codes[t] = numbers.Encode(DictionaryColumn(indices, StringColumn(kVar32, values)), 200);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t t = 1; t < codes.size(); ++t) EXPECT_EQ(codes[t], codes[0]);
  for (size_t i = 0; i < 200; ++i) EXPECT_EQ(numbers.Value(codes[0][i]), std::to_string(i));
}

}  // namespace
}  // namespace quern
