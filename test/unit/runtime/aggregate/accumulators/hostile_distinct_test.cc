// SPDX-License-Identifier: Apache-2.0
// Sets of distinct values that somebody who knows the secret of the process made to meet in one place: a new value
// takes few steps, and merging, saving and summing give what they give for any other values.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "runtime/aggregate/accumulators/distinct_set.h"
#include "runtime/base/thresholds.h"
#include "test/unit/hostile_keys.h"
#include "test/unit/runtime/aggregate/accumulators/accumulator_rows.h"

namespace quern::test {
namespace {

constexpr uint32_t kNumValues = 20'000;
constexpr uint64_t kMostSteps = thresholds::kLongestDistinctWalk * thresholds::kLongestDistinctWalk;

// Values first .. first + kNumValues - 1 of a kind, all of which have one hash, or hashes with the same first bits.
struct Kind {
  ColumnType type;
  std::function<ColumnPtr(uint64_t first)> column;
};

ColumnPtr HostileWords(uint64_t first) { return NumberColumn(HostileKeys(kNumValues, first)); }

// A word that equals a number of the secret makes the product 0, whatever its partner is.
ColumnPtr HostileDecimals(uint64_t first) {
  std::vector<blocks::uint128_t> values;
  for (uint64_t i = 0; i < kNumValues; ++i)
    values.push_back(blocks::uint128_t{first + i} << 64 | blocks::quern_hash_secret[blocks::kMultiplier1]);
  return NumberColumn(values);
}

ColumnPtr HostileTexts(uint64_t first) {
  std::vector<std::string> texts;
  for (uint64_t i = 0; i < kNumValues; ++i) {
    const uint64_t words[4] = {first + i, 0, blocks::quern_hash_secret[blocks::kCombine], 7};
    texts.emplace_back(reinterpret_cast<const char*>(words), sizeof(words));
  }
  return StringColumn(kVar32, texts);
}

std::vector<Kind> AllKinds() {
  return {{TypeOf(TypeId::kI64), HostileWords},
          {TypeOf(TypeId::kDecimal128), HostileDecimals},
          {TypeOf(TypeId::kUtf8), HostileTexts}};
}

TEST(HostileDistinct, NewValuesTakeFewSteps) {
  for (const Kind& kind : AllKinds()) {
    SCOPED_TRACE(PrintType(kind.type));
    Groups groups(SpecOf(AggregateFunction::kCountDistinct, kind.type), 1);
    const ColumnPtr values = kind.column(1);
    for (int turn = 0; turn < 2; ++turn) ASSERT_TRUE(groups.AddAll(*values, kNumValues).ok());
    EXPECT_EQ(groups.Result(), std::to_string(kNumValues));
    const uint64_t steps = groups.memory()->TakeSteps();
    EXPECT_GT(steps, kMostSteps / 3);
    EXPECT_LE(steps, kMostSteps);
  }
}

TEST(HostileDistinct, SetsMergeAndAreSavedWhateverTheirNumbers) {
  for (const Kind& kind : AllKinds()) {
    SCOPED_TRACE(PrintType(kind.type));
    const AggregateSpec spec = SpecOf(AggregateFunction::kCountDistinct, kind.type);
    Groups parts[2] = {Groups(spec, 1), Groups(spec, 1)}, merged(spec, 1), added(spec, 1), saved(spec, 1);
    for (Groups& part : parts) {
      ASSERT_TRUE(part.AddAll(*kind.column(&part == parts ? 1 : 1 + kNumValues / 2), kNumValues).ok());
      ASSERT_TRUE(merged.Merge(&part).ok());
    }
    EXPECT_EQ(merged.Result(), std::to_string(kNumValues + kNumValues / 2));
    ASSERT_TRUE(added.AddAll(*kind.column(1), 100).ok());  // numbers of the process on one side alone
    ASSERT_TRUE(added.Merge(&merged).ok());
    ASSERT_TRUE(added.AddAll(*kind.column(kNumValues), kNumValues).ok());
    EXPECT_EQ(added.Result(), std::to_string(2 * kNumValues - 1));
    ASSERT_TRUE(saved.MergeSaved(0, added.Saved(0)).ok());
    EXPECT_EQ(saved.Result(), added.Result());
  }
}

// Texts that are equal but not the same bytes. All are given one tag, as if somebody had found texts that have it.
TEST(HostileDistinct, NumbersOfATableKeepCollations) {
  const CollationRule rule = RuleOf(kCollationUtf8mb4GeneralCi);
  AccumulatorMemory memory(nullptr);
  DistinctSet<StringSlot> set = {};
  for (const char* text : {"TEXT NUMBER ", "text number ", "Text Number "}) {
    for (uint32_t i = 0; i < kNumValues; ++i) {
      const std::string value = text + std::to_string(i);
      const blocks::Bytes bytes = {reinterpret_cast<const uint8_t*>(value.data()), static_cast<uint32_t>(value.size())};
      ASSERT_TRUE(set.Insert(StringCandidate{bytes, 1, rule}, &memory).ok());
    }
    EXPECT_EQ(set.has_secret, 1u);
    EXPECT_EQ(set.size(), kNumValues);
  }
  EXPECT_LE(memory.TakeSteps(), kMostSteps);
}

// Two tables have different numbers, and so the slots of the same values are in different orders.
TEST(HostileDistinct, FloatsHaveOneSum) {
  std::vector<double> values;
  for (uint64_t i = 0; values.size() < 3000; ++i) {
    const uint64_t word = WordWithHash(HostileHash(i));
    const auto value = blocks::Load<double>(&word);
    if (std::abs(value) > 1e-9 && std::abs(value) < 1e12) values.push_back(value);
  }
  const AggregateSpec spec = SpecOf(AggregateFunction::kSumDistinct, TypeOf(TypeId::kF64));
  const auto n = static_cast<uint32_t>(values.size());
  const auto sum = [&] {
    Groups groups(spec, 1);
    EXPECT_TRUE(groups.AddAll(*NumberColumn(values), n).ok());
    EXPECT_GT(groups.memory()->TakeSteps(), kMostSteps / 3);
    return groups.Result();
  };
  const std::string first = sum();
  for (int i = 0; i < 8; ++i) EXPECT_EQ(sum(), first);
}

}  // namespace
}  // namespace quern::test
