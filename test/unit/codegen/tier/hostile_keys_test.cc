// SPDX-License-Identifier: Apache-2.0
// 100,000 keys made by somebody who knows the secret of the process, so that all meet in one place: in both engines, a
// join, an aggregation and a set of distinct values take a bounded number of steps a row, and have the same result.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/base/thresholds.h"
#include "test/unit/codegen/tier/swap_job.h"
#include "test/unit/hostile_keys.h"
#include "test/unit/runtime/join/number_join.h"

namespace quern {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)
using Keys = std::vector<int64_t>;

constexpr size_t kRows = 100'000;

struct Columns {
  std::vector<Keys> keys;

  BatchView batch() const {
    BatchView batch;
    for (const Keys& column : keys) batch.keys.push_back(Column(column));
    batch.num_rows = keys[0].size();
    return batch;
  }
};

// As many columns as the spec has keys; `first`: number of the first key.
Columns Hostile(size_t num_keys, uint64_t first = 0) {
  if (num_keys == 1) return {{HostileKeys(kRows, first)}};
  Columns columns{{Keys(kRows), Keys(kRows)}};
  for (size_t i = 0; i < kRows; ++i) {
    columns.keys[0][i] = static_cast<int64_t>(first + i);
    columns.keys[1][i] = SecondWithHash(columns.keys[0][i], HostileHashOfAnyTag(first + i));
  }
  return columns;
}

struct Outcome {
  uint64_t num_rows = 0;
  uint64_t steps = 0;
};

Outcome Join(const std::shared_ptr<const Kernel>& kernel, const Columns& build, const Columns& probe) {
  const auto join = MakeHashJoin(kernel, NoLimit());
  EXPECT_TRUE(join->Append(build.batch()).ok());
  EXPECT_TRUE(join->Finalise().ok());
  OutputBatch out(JoinOutputTypes(std::get<JoinSpec>(kernel->plan.spec)), 1000, NoLimit());
  JoinProber prober(join);
  EXPECT_TRUE(prober.SetInput(probe.batch()).ok());
  Outcome outcome;
  for (bool more = true; more; outcome.num_rows += out.num_rows()) {
    const absl::StatusOr<bool> next = prober.Next(&out);
    EXPECT_TRUE(next.ok());
    more = next.ok() && *next;
  }
  outcome.steps = join->counters().chain_steps;
  return outcome;
}

TEST(HostileKeys, JoinsTakeFewStepsARow) {
  for (const size_t num_keys : {1, 2}) {
    for (const char* layout : {"auto", "unchained"}) {
      const BothKernels kernels(num_keys == 1 ? "join.inner keys=i64" : "join.inner keys=i64,i64",
                                {{"layout", layout}});
      ASSERT_TRUE(kernels.ok());
      const Columns build = Hostile(num_keys), half = Hostile(num_keys, kRows / 2), none = Hostile(num_keys, kRows);
      for (const auto& kernel : {kernels.generic, kernels.compiled}) {
        const Outcome found = Join(kernel, build, half);
        EXPECT_EQ(found.num_rows, kRows / 2);
        EXPECT_LE(found.steps, kRows);
        const Outcome missed = Join(kernel, build, none);
        EXPECT_EQ(missed.num_rows, 0u);
        EXPECT_LE(missed.steps, kRows);
      }
    }
  }
}

TEST(HostileKeys, AggregationsTakeFewStepsARow) {
  for (const char* spec : {"aggregate keys=i64 aggs=count_star", "aggregate keys=i64,i64 aggs=count_star"}) {
    const BothKernels kernels(spec);
    ASSERT_TRUE(kernels.ok());
    const Columns rows = Hostile(KeysOf(kernels.generic->plan.spec).size());
    Lines lines[2];
    for (const auto& kernel : {kernels.generic, kernels.compiled}) {
      const auto aggregate = MakeHashAggregate(kernel, NoLimit());
      for (int turn = 0; turn < 2; ++turn) ASSERT_TRUE(aggregate->Append(rows.batch()).ok());
      ASSERT_TRUE(aggregate->Finalise().ok());
      Lines& groups = lines[kernel == kernels.compiled ? 1 : 0];
      groups = GroupsOf(aggregate);
      EXPECT_EQ(groups.size(), kRows);
      EXPECT_LE(aggregate->counters().chain_steps, 8 * kRows + 2048 * thresholds::kLongestGroupProbe);
    }
    EXPECT_EQ(lines[0], lines[1]);
  }
}

// All values are of one group, so that its set meets all of them.
TEST(HostileKeys, DistinctValuesTakeFewStepsARow) {
  const BothKernels kernels("aggregate keys=i64 aggs=count_distinct(i64)");
  ASSERT_TRUE(kernels.ok());
  const Keys group(kRows, 7), values = HostileKeys(kRows);
  BatchView batch;
  batch.keys = {Column(group)};
  batch.payload = {Column(values)};
  batch.num_rows = kRows;
  Lines lines[2];
  for (const auto& kernel : {kernels.generic, kernels.compiled}) {
    const auto aggregate = MakeHashAggregate(kernel, NoLimit());
    for (int turn = 0; turn < 2; ++turn) ASSERT_TRUE(aggregate->Append(batch).ok());
    ASSERT_TRUE(aggregate->Finalise().ok());
    constexpr uint64_t kLongest = thresholds::kLongestDistinctWalk;
    EXPECT_GT(aggregate->counters().chain_steps, kLongest * kLongest / 3);
    EXPECT_LE(aggregate->counters().chain_steps, kLongest * kLongest);
    lines[kernel == kernels.compiled ? 1 : 0] = GroupsOf(aggregate);
  }
  EXPECT_EQ(lines[0], Lines{"7|" + std::to_string(kRows)});
  EXPECT_EQ(lines[1], lines[0]);
}

}  // namespace
}  // namespace quern
