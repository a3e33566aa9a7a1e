// SPDX-License-Identifier: Apache-2.0
// Threads by rows, and of aggregations by the groups of the first rows.
#include "codegen/plan/thread_advice.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace quern {
namespace {

ThreadAdvice Advise(const char* spec, uint64_t num_rows, const std::vector<uint64_t>& groups_seen, uint32_t available) {
  return AdviseThreads(*ParseSpec(spec), num_rows, groups_seen, available);
}

TEST(ThreadAdvice, AThreadForEach131072Rows) {
  EXPECT_EQ(ThreadsForRows(0, 4), 1u);
  EXPECT_EQ(ThreadsForRows(131072, 4), 1u);
  EXPECT_EQ(ThreadsForRows(131073, 4), 2u);
  EXPECT_EQ(ThreadsForRows(UINT64_MAX, 4), 4u);
  EXPECT_EQ(ThreadsForRows(1 << 20, 0), 1u);
}

TEST(ThreadAdvice, OthersThanAggregationsNeedNoLook) {
  for (const char* spec : {"join.inner keys=i64", "sort keys=i64", "filter bool"}) {
    const ThreadAdvice advice = Advise(spec, 10'000'000, {}, 4);
    EXPECT_EQ(advice.threads, 4u) << spec;
    EXPECT_EQ(advice.look_rows, 0u) << spec;
  }
}

TEST(ThreadAdvice, GroupsOfTheFirstRowsDecide) {
  const char* const spec = "aggregate keys=i64 aggs=count_star";
  EXPECT_EQ(Advise(spec, 600'000, {}, 4).look_rows, 65536u);
  EXPECT_EQ(Advise(spec, 600'000, {4}, 4).look_rows, 0u);
  EXPECT_EQ(Advise(spec, 600'000, {4}, 4).threads, 4u);
  EXPECT_EQ(Advise(spec, 600'000, {19'200}, 4).look_rows, 262144u);
  EXPECT_EQ(Advise(spec, 600'000, {19'200, 20'000}, 4).threads, 4u);
  EXPECT_EQ(Advise(spec, 600'000, {16'384, 65'536}, 4).threads, 1u);
  EXPECT_EQ(Advise(spec, 600'000, {16'384, 65'536}, 4).look_rows, 0u);
}

TEST(ThreadAdvice, ManyThreadsMakeUpForMerging) {
  const ThreadAdvice advice = Advise("aggregate keys=i64 aggs=count_star", 10'000'000, {60'000}, 8);
  EXPECT_EQ(advice.threads, 8u);
  EXPECT_EQ(advice.look_rows, 0u);
}

TEST(ThreadAdvice, NoLookWhereOneThreadIsEnough) {
  EXPECT_EQ(Advise("aggregate keys=i64 aggs=count_star", 100'000, {}, 8).look_rows, 0u);
}

}  // namespace
}  // namespace quern
