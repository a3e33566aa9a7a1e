// SPDX-License-Identifier: Apache-2.0
// min, max, count_distinct and approx_count_distinct of strings under every collation: in one pass, merged from threads
// and from saved states.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "runtime/collation/collation.h"
#include "test/unit/runtime/aggregate/accumulators/accumulator_rows.h"
#include "test/unit/runtime/collation/collated_texts.h"
#include "test/unit/seed.h"

namespace quern {
namespace {

using test::BytesOfText;
using test::ColumnPtr;
using test::Groups;
using test::SpecOf;
using test::StringColumn;
using test::TypeOf;
using Function = AggregateFunction;
using Texts = std::vector<std::string>;

std::vector<Collation> AllOfThem() {
  std::vector<Collation> all;
  for (const CollationRow& row : AllCollations()) all.push_back(row.id);
  if (const auto icu = CollationNamed("icu:und-u-ks-level1"); icu.ok()) all.push_back(*icu);
  return all;
}

// The results of all three ways, which must be equal.
std::vector<std::string> Results(Function function, const ColumnType& type, const Texts& texts) {
  const AggregateSpec spec = SpecOf(function, type);
  const ColumnPtr column = StringColumn(RowOf(type.id).storage, texts);
  const auto n = static_cast<uint32_t>(texts.size());
  Groups whole(spec, 1), front(spec, 1), back(spec, 1), front_saved(spec, 1), back_saved(spec, 1);
  EXPECT_EQ(whole.AddAll(*column, n), absl::OkStatus());
  for (uint32_t row = 0; row < n; ++row) {
    EXPECT_EQ((row < n / 2 ? front : back).Add(&column->column, {row}), absl::OkStatus());
    EXPECT_EQ((row < n / 2 ? front_saved : back_saved).Add(&column->column, {row}), absl::OkStatus());
  }
  EXPECT_EQ(front.Merge(&back), absl::OkStatus());
  EXPECT_EQ(front_saved.MergeSaved(0, back_saved.Saved(0)), absl::OkStatus());
  return {whole.Result(), front.Result(), front_saved.Result()};
}

Texts SomeTexts(size_t n, std::mt19937_64* random) {
  Texts texts;
  while (texts.size() < n) {
    texts.push_back(test::RandomText(test::kTextKinds[(*random)() % std::size(test::kTextKinds)], random));
    if ((*random)() % 2 == 0) texts.push_back(texts[(*random)() % texts.size()] + std::string((*random)() % 2, ' '));
  }
  return texts;
}

TEST(OutOfLineCollations, ExtremesGoByTheOrderAndKeepTheFirstOfEqualOnes) {
  auto random = test::PrintedRandom();
  for (const Collation collation : AllOfThem()) {
    const CollationRule rule = RuleOf(collation);
    const auto order = [&](const std::string& a, const std::string& b) {
      return CompareStrings(BytesOfText(a), BytesOfText(b), rule);
    };
    for (const TypeId id : {TypeId::kUtf8, TypeId::kUtf8View}) {
      for (int turn = 0; turn < 15; ++turn) {
        const Texts texts = SomeTexts(2 + random() % 12, &random);
        std::string least = texts[0], greatest = texts[0];
        for (const std::string& text : texts) {
          if (order(text, least) < 0) least = text;
          if (order(text, greatest) > 0) greatest = text;
        }
        EXPECT_EQ(Results(Function::kMin, TypeOf(id, collation), texts), Texts(3, least)) << collation;
        EXPECT_EQ(Results(Function::kMax, TypeOf(id, collation), texts), Texts(3, greatest)) << collation;
      }
    }
  }
}

TEST(OutOfLineCollations, DistinctStringsAreThoseOfDifferentKeys) {
  auto random = test::PrintedRandom();
  for (const Collation collation : AllOfThem()) {
    const CollationRule rule = RuleOf(collation);
    for (const size_t n : {1u, 6u, 90u}) {
      const Texts texts = SomeTexts(n, &random);
      std::set<std::string> keys;
      for (const std::string& text : texts) {
        std::string key(text, 0, blocks::Trimmed(BytesOfText(text), rule).length);
        if ((rule & kWeighsEquality) != 0) key.clear(), AppendEqualityKey(BytesOfText(text), rule, &key);
        keys.insert(key);
      }
      const Texts expected(3, std::to_string(keys.size()));
      EXPECT_EQ(Results(Function::kCountDistinct, TypeOf(TypeId::kLargeUtf8, collation), texts), expected) << collation;
      const Texts estimates = Results(Function::kApproxCountDistinct, TypeOf(TypeId::kUtf8, collation), texts);
      // 4096 registers: sets this small lose a key a few times in a hundred, so a relative bound alone would fail by
      // chance.
      const double tolerance = 6 + 0.05 * static_cast<double>(keys.size());
      for (const std::string& estimate : estimates) {
        EXPECT_EQ(estimate, estimates[0]);
        EXPECT_NEAR(std::stod(estimate), static_cast<double>(keys.size()), tolerance) << collation;
      }
    }
  }
}

TEST(OutOfLineCollations, ExamplesOfBothFamilies) {
  const auto result = [](Function function, Collation collation, const Texts& texts) {
    return Results(function, TypeOf(TypeId::kUtf8, collation), texts)[0];
  };
  EXPECT_EQ(result(Function::kMax, kCollationUtf8mb4GeneralCi, {"rail", "TRUCK", "truck", "Ship"}), "TRUCK");
  EXPECT_EQ(result(Function::kMin, kCollationUtf8mb4Bin, {"a", "a\t"}), "a\t");
  EXPECT_EQ(result(Function::kMin, kCollationTidbUtf8mb4Bin, {"a", "a\t"}), "a");
  EXPECT_EQ(result(Function::kCountDistinct, kCollationUtf8mb40900AiCi, {"\u00e9", "E", "e ", "e\u0301"}), "2");
  EXPECT_EQ(result(Function::kCountDistinct, kCollationUtf8mb4UnicodeCi, {"Stra\u00dfe", "STRASSE", "strasse  "}), "1");
}

}  // namespace
}  // namespace quern
