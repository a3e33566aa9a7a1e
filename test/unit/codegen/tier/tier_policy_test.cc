// SPDX-License-Identifier: Apache-2.0
// The number of rows after which compilation begins.
#include <gtest/gtest.h>

#include <string>

#include "codegen/tier/tier_policy.h"

namespace quern {
namespace {

constexpr KernelCosts kCosts = {.compile_ms = 4, .generic_ns = 10, .gain_ns = 5};

// A policy that has compiled before, in the expected time.
struct Warm : TierPolicy {
  explicit Warm(unsigned num_cpus) : TierPolicy(num_cpus) { Learn(kCosts, 20); }
};

TEST(TierPolicy, TheRowsWhoseGainIsThePrice) {
  EXPECT_EQ(Warm(1).RowsBeforeCompiling(kCosts), 800'000u);
  // With a spare CPU: the rows that the generic kernel processes in 4 ms.
  EXPECT_EQ(Warm(2).RowsBeforeCompiling(kCosts), 400'000u);
  EXPECT_EQ(Warm(64).RowsBeforeCompiling(kCosts), 400'000u);
  // Or a tenth of the cost, where the gain is small.
  EXPECT_EQ(Warm(2).RowsBeforeCompiling({.compile_ms = 4, .generic_ns = 10, .gain_ns = 0.5}), 800'000u);
}

TEST(TierPolicy, TheFirstCompilationTakesLonger) {
  EXPECT_GT(TierPolicy(2).RowsBeforeCompiling(kCosts), 1'000'000u);
  EXPECT_GT(TierPolicy(2).CompileMs(kCosts), Warm(2).CompileMs(kCosts) + 5);
}

TEST(TierPolicy, WhatGainsNothingIsNotCompiled) {
  const KernelCosts none = {.compile_ms = 4, .generic_ns = 10, .gain_ns = 0.1};
  EXPECT_EQ(Warm(2).RowsBeforeCompiling(none), kNever);
  EXPECT_EQ(Warm(2).RowsBeforeLooking(none), kNever);
  EXPECT_FALSE(Warm(2).Pays(none, uint64_t{1} << 60, false));
  EXPECT_FALSE(Warm(2).Pays(none, uint64_t{1} << 60, true));
}

// 400,000 rows pass within those 4 ms.
TEST(TierPolicy, WithRowsToComeItMustBeThereForEnoughOfThem) {
  EXPECT_FALSE(Warm(2).Pays(kCosts, 479'999, false));
  EXPECT_TRUE(Warm(2).Pays(kCosts, 480'001, false));
  EXPECT_FALSE(Warm(1).Pays(kCosts, 799'999, false));
  EXPECT_TRUE(Warm(1).Pays(kCosts, 800'001, false));
  EXPECT_TRUE(Warm(2).Pays(kCosts, 125'000, true));
}

TEST(TierPolicy, ALookComesBeforeCompiling) {
  EXPECT_EQ(Warm(2).RowsBeforeLooking(kCosts), 100'000u);
  EXPECT_EQ(Warm(1).RowsBeforeLooking(kCosts), 200'000u);
  EXPECT_EQ(TierPolicy(2).RowsBeforeLooking(kCosts), 100'000u);
}

TEST(TierPolicy, LearnsHowLongCompilingTakes) {
  Warm policy(2);
  for (int i = 0; i < 40; ++i) policy.Learn(kCosts, 8);
  EXPECT_NEAR(policy.CompileMs(kCosts), 8, 0.1);
  EXPECT_NEAR(static_cast<double>(policy.RowsBeforeCompiling(kCosts)), 800'000, 10'000);
  // A single delayed compilation does not decide.
  policy.Learn(kCosts, 4000);
  EXPECT_LT(policy.CompileMs(kCosts), 20);
  for (int i = 0; i < 40; ++i) policy.Learn(kCosts, 2);
  EXPECT_NEAR(policy.CompileMs(kCosts), 2, 0.1);
}

KernelCosts CostsOf(const std::string& text) {
  const auto spec = ParseSpec(text);
  EXPECT_TRUE(spec.ok()) << spec.status();
  return EstimateCosts(*spec);
}

TEST(TierPolicy, EveryColumnCostsSomething) {
  const char* const longer_and_longer[][4] = {
      {"join.inner keys=i64", "join.inner keys=i64 build=i64", "join.inner keys=i64,utf8 build=i64",
       "join.inner keys=i64,utf8,i32 build=i64,utf8 probe=i64 residual=i64:lt"},
      {"aggregate keys=i64 aggs=count_star", "aggregate keys=i64 aggs=count_star,sum(i64)",
       "aggregate keys=i64,utf8 aggs=count_star,sum(i64)",
       "aggregate keys=i64,utf8,i32 aggs=count_star,sum(i64),min(utf8)"},
      {"sort keys=i64", "sort keys=i64:out payload=i64", "sort keys=i64,utf8 payload=i64",
       "sort keys=i64,utf8 payload=i64,utf8"},
      {"filter i64 > 3", "filter i64 > 3 and i32 < 7", "filter i64 > 3 and i32 < 7 and utf8 = 'a'",
       "filter i64 > 3 and (i32 < 7 or not utf8 like '%a%' or i64 is null)"},
  };
  for (const auto& specs : longer_and_longer) {
    KernelCosts before = {};
    for (const char* spec : specs) {
      const KernelCosts costs = CostsOf(spec);
      EXPECT_GT(costs.compile_ms, before.compile_ms) << spec;
      EXPECT_GT(costs.generic_ns, before.generic_ns) << spec;
      EXPECT_LT(costs.gain_ns, costs.generic_ns) << spec;
      before = costs;
    }
  }
}

}  // namespace
}  // namespace quern
