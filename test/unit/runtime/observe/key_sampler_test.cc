// SPDX-License-Identifier: Apache-2.0
// Observed operators: what observers learn about their jobs, that results stay the same, and, under ThreadSanitizer,
// that threads may append and probe as before.
#include "runtime/observe/key_sampler.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "ir-templates/generic/generic_aggregate.h"
#include "ir-templates/generic/generic_join.h"
#include "runtime/aggregate/hash_aggregate.h"
#include "runtime/join/hash_join.h"
#include "runtime/spec/spec.h"
#include "test/unit/runtime/aggregate/group_rows.h"
#include "test/unit/runtime/join/number_join.h"
#include "test/unit/runtime/sort/sort_rows.h"

namespace quern {
namespace {

using test::Batch;
using test::RowNumbers;
using test::SomeKeys;

using Seen = std::shared_ptr<std::optional<JobSummary>>;

std::unique_ptr<JobObserver> ObserverInto(const KernelSpec& spec, const Seen& seen) {
  return std::make_unique<KeySampler>(spec, GenericJoinKernel(), [seen](const JobSummary& job) { *seen = job; });
}

std::shared_ptr<HashJoin> NumberJoin() {
  return std::make_shared<HashJoin>(
      std::make_shared<JoinDescriptor>(*ParseSpecOf<JoinSpec>("join.inner keys=i64 build=i64 probe=i64")),
      GenericJoinKernel(), nullptr, nullptr, JoinOptions());
}

TEST(ObservedJoin, TellsOfItsJobAndGivesTheSameRows) {
  const std::vector<int64_t> build = SomeKeys(3000, 1000, 1), probe = SomeKeys(2000, 4000, 2);
  const std::vector<int64_t> build_rows = RowNumbers(build.size()), probe_rows = RowNumbers(probe.size());
  const test::Pairs expected = test::NestedLoops(build, probe);
  const auto seen = std::make_shared<std::optional<JobSummary>>();
  std::shared_ptr<HashJoin> join = NumberJoin();
  join->Observe(ObserverInto(join->descriptor().spec(), seen));
  ASSERT_TRUE(join->Append(Batch(build, build_rows)).ok());
  ASSERT_TRUE(join->Finalise().ok());
  EXPECT_EQ(test::Probe(join, Batch(probe, probe_rows), 100), expected);
  EXPECT_FALSE(seen->has_value());
  const std::string layout = join->stats().layout;
  const uint64_t bytes = join->stats().directory_bytes + join->stats().tuple_bytes;
  join = nullptr;
  ASSERT_TRUE(seen->has_value());
  const JobSummary& job = **seen;
  EXPECT_EQ(job.build_rows, 3000u);
  EXPECT_EQ(job.probe_rows, 2000u);
  EXPECT_NEAR(static_cast<double>(job.keys), 950, 30);  // 1000 (1 - exp(-3))
  EXPECT_NEAR(static_cast<double>(job.num_hits), 475, 80);
  EXPECT_EQ(job.threads, 1u);
  EXPECT_EQ(job.table_bytes, bytes);
  EXPECT_EQ(job.layout, layout);
  EXPECT_GT(job.ns, 0u);
}

TEST(ObservedJoin, SaysNothingWhereTheTableIsNotBuilt) {
  const auto seen = std::make_shared<std::optional<JobSummary>>();
  const std::vector<int64_t> keys = RowNumbers(10);
  std::shared_ptr<HashJoin> join = NumberJoin();
  join->Observe(ObserverInto(join->descriptor().spec(), seen));
  ASSERT_TRUE(join->Append(Batch(keys, keys)).ok());
  join = nullptr;
  EXPECT_FALSE(seen->has_value());
}

TEST(ObservedJoin, MayHaveThreads) {
  constexpr uint32_t kThreads = 4;
  constexpr size_t kRows = 20'000;
  const auto seen = std::make_shared<std::optional<JobSummary>>();
  std::shared_ptr<HashJoin> join = NumberJoin();
  join->Observe(ObserverInto(join->descriptor().spec(), seen));
  const std::vector<int64_t> keys = RowNumbers(kRows);
  const auto on_threads = [](auto&& work) {
    std::vector<std::thread> threads;
    for (uint32_t t = 0; t < kThreads; ++t) threads.emplace_back(work);
    for (std::thread& thread : threads) thread.join();
  };
  on_threads([&] {
    Appender appender(join);
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(appender.Append(Batch(keys, keys)).ok());
    EXPECT_TRUE(appender.Finish().ok());
  });
  on_threads([&] { EXPECT_TRUE(join->Finalise().ok()); });
  on_threads([&] {
    const std::vector<int64_t> few = RowNumbers(50);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(test::Probe(join, Batch(few, few), 1000).size(), 50u * 20);
  });
  join = nullptr;
  ASSERT_TRUE(seen->has_value());
  EXPECT_EQ((*seen)->build_rows, kRows * 20);
  EXPECT_EQ((*seen)->probe_rows, 50u * 80);
  EXPECT_EQ((*seen)->num_hits, 50u * 80);
  EXPECT_GE((*seen)->threads, kThreads);
  EXPECT_NEAR(static_cast<double>((*seen)->keys), kRows, kRows * 0.04);
}

TEST(ObservedAggregation, TellsOfItsGroups) {
  const auto seen = std::make_shared<std::optional<JobSummary>>();
  const std::vector<int64_t> keys = SomeKeys(50'000, 700, 3);
  BatchView batch = Batch(keys, keys);
  batch.payload.clear();
  const std::string text = "aggregate keys=i64 aggs=count_star";
  std::shared_ptr<HashAggregate> plain = test::Aggregation(text), observed = test::Aggregation(text);
  observed->Observe(ObserverInto(observed->descriptor().spec(), seen));
  for (const auto& aggregate : {plain, observed}) {
    ASSERT_TRUE(aggregate->Append(batch).ok());
    ASSERT_TRUE(aggregate->Finalise().ok());
  }
  EXPECT_EQ(test::GroupsOf(observed), test::GroupsOf(plain));
  const uint64_t num_groups = observed->stats().num_groups;
  observed = nullptr;
  ASSERT_TRUE(seen->has_value());
  EXPECT_EQ((*seen)->build_rows, keys.size());
  EXPECT_EQ((*seen)->probe_rows, 0u);
  EXPECT_EQ((*seen)->keys, num_groups);
  EXPECT_EQ((*seen)->zipf, 0);
  EXPECT_EQ((*seen)->table_bytes, plain->stats().table_bytes);
}

TEST(ObservedSort, TellsOfItsRows) {
  const auto seen = std::make_shared<std::optional<JobSummary>>();
  const std::vector<int64_t> keys = SomeKeys(5000, 100, 4);
  const std::string text = "sort keys=i64:out payload=i64 stable";
  std::shared_ptr<RowSort> plain = test::SortOf(text), observed = test::SortOf(text);
  observed->Observe(ObserverInto(observed->descriptor().spec(), seen));
  for (const auto& sort : {plain, observed}) {
    ASSERT_TRUE(sort->Append(Batch(keys, keys)).ok());
    ASSERT_TRUE(sort->Finalise().ok());
  }
  EXPECT_EQ(test::SortedLines(observed), test::SortedLines(plain));
  observed = nullptr;
  ASSERT_TRUE(seen->has_value());
  EXPECT_EQ((*seen)->build_rows, 5000u);
  EXPECT_NEAR(static_cast<double>((*seen)->keys), 100, 4);
  EXPECT_EQ((*seen)->layout, plain->stats().method);
  EXPECT_EQ((*seen)->table_bytes, plain->stats().stored_bytes);
}

}  // namespace
}  // namespace quern
