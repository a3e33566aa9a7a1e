// SPDX-License-Identifier: Apache-2.0
// Joins whose build side exceeds their memory give the rows that they give in memory: every kind, with nulls, residual
// predicates and columns of either side, however few rows fit.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/spill/spill_context.h"
#include "test/unit/runtime/join/kind_cases.h"
#include "test/unit/runtime/spill/spill_test_rows.h"

namespace quern::test {
namespace {

constexpr uint64_t kKiB = 1 << 10;
constexpr uint64_t kAsideBytes = 128 * kKiB;

struct Limits {
  const char* name;
  uint64_t bytes;  // beyond what is set aside
  uint32_t num_partitions;
};
// Of 9,000 build rows of 4 to 40 bytes.
constexpr Limits kLimits[] = {{"most fit", 250 * kKiB, 8}, {"some fit", 150 * kKiB, 4}, {"few fit", 100 * kKiB, 2}};
constexpr int64_t kNumRows = 9000;

Data ManyRows(int64_t times, int64_t step) { return MakeData("many rows", kNumRows / times, times, step); }

// One key has nearly all rows.
Data OneKey() {
  Data data = {"one key", {}, {}};
  for (int64_t i = 0; i < kNumRows; ++i) data.build.emplace_back(i % 100 == 0 ? i : 7);
  for (int64_t i = 0; i < 40; ++i) data.probe.emplace_back(i % 8 == 0 ? 7 : i * 50);
  return data;
}

void ExpectSame(const Case& of, Data data, const Limits& limits) {
  if (of.form.nullable) data = {data.name, WithNulls(data.build, 7), WithNulls(data.probe, data.probe.size() / 9)};
  const Side build(data.build, of.form), probe(data.probe, of.form);
  const Expectation expected = NestedLoops(of, data, build, probe);
  const auto budget = std::make_shared<MemoryBudget>(kAsideBytes + limits.bytes);
  {
    const SpillSettings settings = {limits.num_partitions, 4096, 1, kAsideBytes};
    const auto spill = TestContext(budget, SystemFileCalls(), settings);
    Runner runner(of, LayoutChoice::kAuto, 1000, budget, spill);
    const absl::Status status = runner.Run(build, probe);
    SCOPED_TRACE(of.Spec() + ", " + data.name + ", " + limits.name);
    if (expected.has_second_match) {
      EXPECT_TRUE(absl::IsOutOfRange(status)) << status;
    } else {
      EXPECT_EQ(status, absl::OkStatus());
      EXPECT_EQ(runner.rows(), expected.rows);
    }
    const bool is_wide = of.build_rows && !of.form.is_narrow;
    EXPECT_TRUE(runner.has_spilled() || !is_wide);
    EXPECT_LE(budget->peak_bytes(), budget->limit_bytes());
  }
  EXPECT_EQ(budget->used_bytes(), 0);
}

class SpillingJoinKinds : public testing::TestWithParam<JoinKind> {};

TEST_P(SpillingJoinKinds, GiveTheRowsOfNestedLoops) {
  const JoinKindRow& kind = RowOf(GetParam());
  size_t turn = 0;
  for (const KeyForm& form : kForms) {
    for (const bool residual : {false, true}) {
      const size_t columns = turn++ % 4;  // of both sides, of one, of none
      Case of = {kind, form, residual, (columns & 1) == 0 && kind.has_probe_columns(),
                 (columns & 2) == 0 && kind.has_build_columns()};
      if (!IsAllowed(of)) continue;
      ExpectSame(of, ManyRows(kind.id == JoinKind::kSingle ? 1 : 3, 7990001), kLimits[turn % 3]);
      ExpectSame(of, OneKey(), kLimits[2]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, SpillingJoinKinds, testing::ValuesIn([] {
                           std::vector<JoinKind> kinds;
                           for (const JoinKindRow& row : AllJoinKinds()) kinds.push_back(row.id);
                           return kinds;
                         }()),
                         [](const auto& of) { return std::string(RowOf(of.param).text); });

}  // namespace
}  // namespace quern::test
