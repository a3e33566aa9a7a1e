// SPDX-License-Identifier: Apache-2.0
// The counts of the generic kernel for small inputs, in numbers that can be worked out by hand; and the sums over
// threads and jobs.
#include "runtime/base/counters.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "ir-templates/generic/generic_filter.h"
#include "ir-templates/generic/generic_join.h"
#include "runtime/filter/row_filter.h"
#include "runtime/spec/spec.h"
#include "test/unit/runtime/aggregate/group_rows.h"
#include "test/unit/runtime/join/number_join.h"
#include "test/unit/runtime/sort/sort_rows.h"

namespace quern {
namespace {

using test::Batch;
using test::RowNumbers;

// ---- blocks, sets, timers ----

TEST(Counters, SumsAreThoseOfAllBlocksAndOfThoseThatAreGone) {
  const auto kernel = std::make_shared<CounterSet>();
  const auto one = std::make_shared<CounterSet>(kernel), other = std::make_shared<CounterSet>(kernel);
  CounterBlock stays(one);
  stays.CountBatch(1000, false);
  {
    CounterBlock goes(one), of_other(other);
    goes.CountBatch(24, true);
    goes.CountBatch(6, true);
    of_other.Add(Counter::kGrowths, 3);
    EXPECT_EQ(kernel->Sum().growths, 3u);
  }
  const Counters sum = one->Sum();
  EXPECT_EQ(sum.rows, 1030u);
  EXPECT_EQ(sum.batches, 3u);
  EXPECT_EQ(sum.generic_rows, 1000u);
  EXPECT_EQ(sum.generic_batches, 1u);
  EXPECT_EQ(sum.compiled_rows, 30u);
  EXPECT_EQ(sum.compiled_batches, 2u);
  EXPECT_EQ(sum.growths, 0u);
  EXPECT_EQ(kernel->Sum().rows, 1030u);
  EXPECT_EQ(kernel->Sum().growths, 3u);
}

TEST(Counters, TierSaysWhichKernelsRan) {
  const auto text = [](uint64_t generic, uint64_t compiled) {
    Counters counters;
    counters.generic_batches = generic;
    counters.compiled_batches = compiled;
    return std::string(TierText(counters));
  };
  EXPECT_EQ(text(0, 0), "none");
  EXPECT_EQ(text(2, 0), "generic");
  EXPECT_EQ(text(0, 2), "compiled");
  EXPECT_EQ(text(1, 1), "both");
}

// A call of a millisecond is timed, and so is the next one; most short calls are not timed and count as much as the
// last timed call.
TEST(Counters, TimeIsThatOfAllCalls) {
  const auto set = std::make_shared<CounterSet>();
  CounterBlock block(set);
  const auto call = [&](int milliseconds) {
    const CallTimer timer(&block);
    if (milliseconds > 0) std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  };
  call(2);
  call(3);
  const uint64_t two_calls = set->Sum().ns;
  EXPECT_GE(two_calls, 5'000'000u);
  for (int i = 0; i < 1000; ++i) call(0);
  EXPECT_GT(set->Sum().ns, two_calls);
}

TEST(Counters, EachThreadHasABlockOfEachOperator) {
  const auto set = std::make_shared<CounterSet>(), other_set = std::make_shared<CounterSet>();
  const ThreadCounters counters(set), other(other_set);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        counters.OfThread()->CountBatch(2, false);
        other.OfThread()->CountBatch(5, true);
        EXPECT_NE(counters.OfThread(), other.OfThread());
        EXPECT_EQ(counters.OfThread(), counters.OfThread());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(set->Sum().generic_rows, 8000u);
  EXPECT_EQ(set->Sum().compiled_rows, 0u);
  EXPECT_EQ(other_set->Sum().compiled_rows, 20000u);
}

// One thread works in turns on more operators than it caches, and new operators replace earlier ones.
TEST(Counters, ThreadsThatTakeTurnsWithManyOperatorsLoseNothing) {
  for (int round = 0; round < 3; ++round) {
    std::vector<std::shared_ptr<CounterSet>> sets;
    std::vector<std::unique_ptr<ThreadCounters>> operators;
    for (int i = 0; i < 20; ++i) {
      sets.push_back(std::make_shared<CounterSet>());
      operators.push_back(std::make_unique<ThreadCounters>(sets.back()));
    }
    for (int i = 0; i < 10; ++i)
      for (const auto& one : operators) one->OfThread()->CountBatch(1, false);
    for (const auto& set : sets) EXPECT_EQ(set->Sum().rows, 10u);
  }
}

// ---- joins ----

// All counters of a join of these keys; with zero_hashes the hash of every key is 0.
Counters OfJoin(LayoutChoice layout, bool zero_hashes, const std::vector<int64_t>& build,
                const std::vector<int64_t>& probe, const char* expected_layout, bool only_counts = false) {
  const auto descriptor = std::make_shared<JoinDescriptor>(
      *ParseSpecOf<JoinSpec>(only_counts ? "join.inner keys=i64" : "join.inner keys=i64 build=i64 probe=i64"));
  descriptor->mutable_tuning()->batch_rows = 8;
  descriptor->mutable_tuning()->group_rows = 4;
  descriptor->mutable_tuning()->rows.zero_hashes = zero_hashes;
  descriptor->mutable_tuning()->rows.prefetches = true;
  JoinOptions options;
  options.layout = layout;
  options.key_filter = KeyFilterChoice::kOff;  // rows without a match would not reach the table
  const auto join = std::make_shared<HashJoin>(descriptor, GenericJoinKernel(), nullptr, test::NoLimit(), options);
  const auto build_rows = RowNumbers(build.size()), probe_rows = RowNumbers(probe.size());
  const auto keys_of = [&](const std::vector<int64_t>& keys, const std::vector<int64_t>& rows) {
    BatchView batch = Batch(keys, rows);
    if (only_counts) batch.payload.clear();
    return batch;
  };
  EXPECT_TRUE(join->Append(keys_of(build, build_rows)).ok());
  EXPECT_TRUE(join->Finalise().ok());
  EXPECT_EQ(std::string(join->stats().layout), expected_layout);
  EXPECT_EQ(std::string(join->stats().prefetch_class), "l2");
  if (only_counts) {
    OutputBatch none({}, 1, nullptr);
    JoinProber prober(join);
    EXPECT_TRUE(prober.SetInput(keys_of(probe, probe_rows)).ok());
    EXPECT_TRUE(prober.Next(&none).ok());
    EXPECT_EQ(none.num_rows(), test::NestedLoops(build, probe).size());
    return join->counters();
  }
  EXPECT_EQ(test::Probe(join, Batch(probe, probe_rows), 3), test::NestedLoops(build, probe));
  return join->counters();
}

TEST(Counters, OfJoins) {
  const Counters c = OfJoin(LayoutChoice::kAuto, false, {3, 4, 5}, {4, 4, 9, 3, 0, 1, 2, 5, 7, 8}, "dense");
  EXPECT_EQ(c.rows, 13u);
  EXPECT_EQ(c.batches, 1u + 2u);  // of 8 rows: 3, then 8 and 2
  EXPECT_EQ(c.generic_rows, 13u);
  EXPECT_EQ(c.generic_batches, 3u);
  EXPECT_EQ(c.compiled_rows + c.compiled_batches, 0u);
  EXPECT_GT(c.ns, 0u);
  EXPECT_EQ(c.tag_hits, 4u);  // bits set: 4 4 3 5
  EXPECT_EQ(c.chain_steps, 0u);
  EXPECT_EQ(c.growths, 0u);
}

// Three keys three times each: a key's run has two further tuples. Where pairs are only counted, the tuples of a run
// are not visited.
TEST(Counters, OfRuns) {
  const std::vector<int64_t> build = {7, 8, 9, 7, 8, 9, 7, 8, 9}, probe = {8, 1, 9, 2, 8};
  for (const bool only_counts : {false, true}) {
    const Counters c = OfJoin(LayoutChoice::kDense, false, build, probe, "csr", only_counts);
    EXPECT_EQ(c.tag_hits, only_counts ? 0u : 3u);
    EXPECT_EQ(c.chain_steps, only_counts ? 0u : 6u);
  }
}

// All keys share one slot: every row passes its tag check and walks all tuples, whether they match or not.
TEST(Counters, OfChains) {
  const std::vector<int64_t> build = {10, 20, 30, 40, 50}, probe = {10, 11, 12, 30, 50, 60, 7, 8, 9, 20};
  const Counters c = OfJoin(LayoutChoice::kUnchained, true, build, probe, "unchained");
  EXPECT_EQ(c.rows, 15u);
  EXPECT_EQ(c.tag_hits, 10u);
  EXPECT_EQ(c.chain_steps, 10u * 4u);
}

// All keys begin at slot 0 of an open table whose first five slots are taken.
TEST(Counters, OfOpenTables) {
  const std::vector<int64_t> build = {int64_t{1} << 40, int64_t{2} << 40, int64_t{3} << 40};
  const std::vector<int64_t> probe = {build[0], build[1], build[2], build[0]};
  const Counters c = OfJoin(LayoutChoice::kOpen, true, build, probe, "open");
  EXPECT_EQ(c.tag_hits, 4u);
  EXPECT_EQ(c.chain_steps, 0u + 1u + 2u + 0u);
}

TEST(Counters, ProbersCountWhileTheyWorkAndAfterTheyAreGone) {
  const auto descriptor =
      std::make_shared<JoinDescriptor>(*ParseSpecOf<JoinSpec>("join.inner keys=i64 build=i64 probe=i64"));
  const auto join =
      std::make_shared<HashJoin>(descriptor, GenericJoinKernel(), nullptr, test::NoLimit(), JoinOptions());
  const auto keys = RowNumbers(3000);
  ASSERT_TRUE(join->Append(Batch(keys, keys)).ok());
  ASSERT_TRUE(join->Finalise().ok());
  EXPECT_EQ(join->counters().rows, 3000u);
  OutputBatch out({ColumnType{}, ColumnType{}}, 100, nullptr);
  {
    JoinProber prober(join);
    ASSERT_TRUE(prober.SetInput(Batch(keys, keys)).ok());
    ASSERT_TRUE(prober.Next(&out).ok());
    EXPECT_EQ(join->counters().rows, 3000u + 1024u);
    EXPECT_EQ(join->counters().batches, 3u + 1u);
  }
  EXPECT_EQ(join->counters().rows, 4024u);
}

// ---- aggregations ----

TEST(Counters, OfAggregations) {
  AggregateOptions options;
  options.layout = GroupLayout::kDirectory;
  test::Tuning tuning;
  tuning.batch_rows = 4;
  options.l2_batch_rows = 4;
  const auto aggregate = test::Aggregation("aggregate keys=i64 aggs=count_star", options, tuning);
  // Batches 1 1 1 2 and 2 1 3: a row is a hit if its group existed before its batch, or if an earlier row of the batch
  // made it.
  ASSERT_TRUE(aggregate->Append(test::Rows(7, {test::NumberColumn<int64_t>({1, 1, 1, 2, 2, 1, 3})})).ok());
  ASSERT_TRUE(aggregate->Finalise().ok());
  const Counters c = aggregate->counters();
  EXPECT_EQ(c.rows, 7u);
  EXPECT_EQ(c.batches, 2u);
  EXPECT_EQ(c.generic_batches, 2u);
  EXPECT_EQ(c.tag_hits, 4u);
  EXPECT_EQ(c.chain_steps, 0u);
  EXPECT_EQ(c.growths, aggregate->stats().num_growths);
  EXPECT_GT(c.ns, 0u);
  EXPECT_EQ(std::string(aggregate->stats().prefetch_class), "l2");
}

// All hashes are 0: the second group's rows meet the first group's entry, and the third group's rows meet both.
TEST(Counters, OfEntriesThatAreAnothersGroup) {
  AggregateOptions options;
  options.layout = GroupLayout::kDirectory;
  test::Tuning tuning;
  tuning.zero_hashes = true;
  const auto aggregate = test::Aggregation("aggregate keys=i64,i64 aggs=count_star", options, tuning);
  const auto append = [&](int64_t key) {
    const auto column = test::NumberColumn<int64_t>({key});
    ASSERT_TRUE(aggregate->Append(test::Rows(1, {column, column})).ok());
  };
  append(1);
  EXPECT_EQ(aggregate->counters().chain_steps, 0u);
  append(2);
  EXPECT_EQ(aggregate->counters().chain_steps, 1u);
  append(3);
  EXPECT_EQ(aggregate->counters().chain_steps, 1u + 2u);
  append(2);
  EXPECT_EQ(aggregate->counters().chain_steps, 1u + 2u + 1u);
  // Tags are equal: each entry that is met sends its row to a tuple.
  EXPECT_EQ(aggregate->counters().tag_hits, 0u + 1u + 2u + 2u);
}

TEST(Counters, OfTablesThatGrow) {
  const auto aggregate = test::Aggregation("aggregate keys=i64 aggs=count_star");
  std::vector<int64_t> keys(100000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<int64_t>(i * 0x9e3779b97f4a7c15u);
  ASSERT_TRUE(aggregate->Append(test::Rows(keys.size(), {test::NumberColumn(keys)})).ok());
  ASSERT_TRUE(aggregate->Finalise().ok());
  EXPECT_GT(aggregate->counters().growths, 0u);
  EXPECT_EQ(aggregate->counters().growths, aggregate->stats().num_growths);
  EXPECT_EQ(aggregate->counters().rows, 100000u);
}

// ---- sorts, filters ----

TEST(Counters, OfSorts) {
  test::SortTuning tuning;
  tuning.batch_rows = 10;
  const auto sort = test::SortOf("sort keys=i64:out payload=rowid", tuning);
  std::vector<int64_t> keys(25);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<int64_t>(i * 7 % 25);
  ASSERT_TRUE(sort->Append(test::Rows(25, {test::NumberColumn(keys)}, {test::RowIdColumn()})).ok());
  ASSERT_TRUE(sort->Finalise().ok());
  EXPECT_EQ(sort->counters().rows, 25u);
  EXPECT_EQ(sort->counters().batches, 3u);
  EXPECT_EQ(sort->counters().tag_hits + sort->counters().chain_steps + sort->counters().growths, 0u);
  EXPECT_GT(sort->counters().ns, 0u);
  EXPECT_EQ(std::string(sort->stats().prefetch_class), "group");
}

// A batch of 200,000 rows passes the kernel in four pieces.
TEST(Counters, OfFilters) {
  const auto descriptor = std::make_shared<FilterDescriptor>(*ParseSpecOf<FilterSpec>("filter i64 > 100"));
  const RowFilter filter(descriptor, GenericFilterKernel());
  const auto keys = RowNumbers(200000);
  BatchView batch;
  batch.keys.push_back(test::Column(keys));
  batch.num_rows = keys.size();
  const auto count = filter.Count(batch);
  ASSERT_TRUE(count.ok());
  EXPECT_EQ(*count, 200000u - 101u);
  batch.num_rows = 1000;
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(filter.Count(batch).ok());
  const Counters c = filter.counters();
  EXPECT_EQ(c.rows, 220000u);
  EXPECT_EQ(c.batches, 4u + 20u);
  EXPECT_EQ(c.generic_batches, c.batches);
  EXPECT_GT(c.ns, 0u);
}

}  // namespace
}  // namespace quern
