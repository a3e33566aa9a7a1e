// SPDX-License-Identifier: Apache-2.0
// A job that starts on the generic kernel and continues on the compiled one returns the same result, to the bit and in
// the same order, wherever the swap falls: each test runs its job once for every call that the job makes of the generic
// kernel, and swaps at that call. A call is a stage of a batch of 8 rows, so the swaps cover all boundaries between
// batches, and all those between the stages of a batch.
//
//     calls of a join     filter hash store | filter hash store | .. | hash check_tags prefetch_keys compare ..
//     swap at call 4                              ^ the last call of the generic kernel;
//                                                   the next batch runs on the compiled one
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "test/unit/codegen/tier/swap_job.h"
#include "test/unit/seed.h"

namespace quern {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

// Swaps at every call; in jobs with more than `most` calls, at that many of them, evenly spread.
void ExpectSameWhereverItSwaps(const std::string& spec, const PlanOverrides& overrides, uint32_t num_rows = 60,
                               uint64_t distinct = 40, int64_t most = 300) {
  SCOPED_TRACE(spec);
  SwapJob job(spec, overrides, num_rows, distinct);
  ASSERT_TRUE(job.kernels.ok());
  const Lines expected = job.Run(kNever);
  const int64_t num_calls = Moment().num_calls;
  EXPECT_GT(num_calls, 0);
  EXPECT_FALSE(expected.empty());
  EXPECT_EQ(job.RunOn(job.kernels.compiled, 7), expected);
  const int64_t step = num_calls / most + 1;
  for (int64_t call = 0; call < num_calls; call += step) {
    ASSERT_EQ(job.Run(call), expected) << "swapped at call " << call << " of " << num_calls;
    ASSERT_LE(Moment().num_calls, num_calls);
  }
  // Checks that the swap was not too late to have an effect.
  job.Run(0);
  EXPECT_LT(Moment().num_calls, num_calls);
}

const PlanOverrides kSmallBatches = {{"batch_size", "8"}, {"prefetch_group", "4"}};
const PlanOverrides kSmallGroupBatches = {{"batch_size", "8"}, {"batch_size_l2", "8"}};

PlanOverrides With(PlanOverrides overrides, const std::string& name, const std::string& value) {
  overrides.emplace_back(name, value);
  return overrides;
}

// ---- joins ---------------------------------------------------------------------------------------------------------

TEST(Swap, JoinsOfEveryKind) {
  for (const char* kind : {"inner", "left", "right", "full", "semi", "anti", "right_semi", "right_anti", "mark"}) {
    const std::string build = std::string(kind) == "semi" || std::string(kind) == "anti" || std::string(kind) == "mark"
                                  ? ""
                                  : " build=f64,utf8";
    const std::string probe = std::string(kind).starts_with("right_") ? "" : " probe=i32,rowid";
    ExpectSameWhereverItSwaps(std::string("join.") + kind + " keys=i32,utf8(utf8mb4_bin)" + build + probe,
                              kSmallBatches, 40);
  }
  ExpectSameWhereverItSwaps("join.anti_null_aware keys=i64 probe=i32", kSmallBatches, 20, 127);
}

TEST(Swap, JoinsOfEveryLayout) {
  for (const char* layout : {"auto", "unchained", "dense", "open"}) {
    for (const uint64_t distinct : {uint64_t{40}, uint64_t{1} << 40}) {  // many duplicates; hardly any
      ExpectSameWhereverItSwaps("join.full keys=i64:nullable build=i64,utf8 probe=f64",
                                With(kSmallBatches, "layout", layout), 40, distinct);
      ExpectSameWhereverItSwaps("join.inner keys=i16,i16 probe=i64", With(kSmallBatches, "layout", layout), 40,
                                distinct);
    }
  }
}

TEST(Swap, JoinsWithNullsResidualsAndCollations) {
  ExpectSameWhereverItSwaps(
      "join.left keys=utf8(utf8mb4_general_ci):nullable,f64:nullable:nullequal build=utf8 probe=utf8 residual=i64:lt",
      kSmallBatches, 40);
  ExpectSameWhereverItSwaps("join.inner keys=dictionary(i8,utf8):nullable,decimal128 build=bool,date32 probe=utf8_view",
                            kSmallBatches, 40);
  ExpectSameWhereverItSwaps("join.inner keys=utf8 build=rowid probe=rowid", With(kSmallBatches, "test.hash", "zero"),
                            30, 10);
}

// ---- aggregations ---------------------------------------------------------------------------------------------

TEST(Swap, AggregationsOfEveryLayout) {
  for (const char* layout : {"auto", "dense", "open", "directory"}) {
    ExpectSameWhereverItSwaps("aggregate keys=i64 aggs=sum(f64),avg(f32:nullable),count_star,min(i64),max(utf8)",
                              With(kSmallGroupBatches, "group_layout", layout));
    ExpectSameWhereverItSwaps("aggregate keys=i16:nullable,bool aggs=sum(i64:nullable):filter,var_pop(f64)",
                              With(kSmallGroupBatches, "group_layout", layout));
  }
}

TEST(Swap, AggregationsOfStringsNullsAndNoKeys) {
  ExpectSameWhereverItSwaps(
      "aggregate keys=utf8(utf8mb4_bin):nullable,i64 aggs=sum(f64:nullable),first(utf8),last(i32),bool_and(bool)",
      kSmallGroupBatches);
  ExpectSameWhereverItSwaps("aggregate keys=utf8(utf8mb4_0900_ai_ci),f64 aggs=count(i8:nullable),corr(f64,f64)",
                            kSmallGroupBatches);
  ExpectSameWhereverItSwaps("aggregate keys=dictionary(i16,utf8) aggs=sum(f32),bit_xor(u32)", kSmallGroupBatches);
  ExpectSameWhereverItSwaps("aggregate aggs=sum(f64),avg(i32),stddev_samp(f64:nullable)", kSmallGroupBatches);
  ExpectSameWhereverItSwaps(
      "aggregate keys=i32 aggs=count_distinct(utf8),quantile(f64,0.9),string_agg(utf8,x'2c'),sum(f64)",
      kSmallGroupBatches);
}

TEST(Swap, SetOperations) {
  for (const char* kind : {"union", "intersect", "except", "intersect_all", "except_all"}) {
    ExpectSameWhereverItSwaps("set." + std::string(kind) + " keys=utf8(utf8mb4_bin):nullable,i8", kSmallGroupBatches);
    ExpectSameWhereverItSwaps("set." + std::string(kind) + " keys=i8:nullable", kSmallGroupBatches);
  }
}

TEST(Swap, TablesThatGrow) {
  // 3 batches of 600 rows, most of which have a group of their own.
  ExpectSameWhereverItSwaps("aggregate keys=i64,i64 aggs=sum(f64)", kSmallGroupBatches, 600, 100000, 40);
  ExpectSameWhereverItSwaps("aggregate keys=i32 aggs=sum(f64)", With(kSmallGroupBatches, "group_layout", "open"), 600,
                            100000, 40);
  ExpectSameWhereverItSwaps("aggregate keys=utf8,i64 aggs=sum(f64)", kSmallGroupBatches, 600, 100000, 40);
}

// ---- sorts ----------------------------------------------------------------------------------------------------

TEST(Swap, SortsByEveryMethod) {
  for (const char* method : {"radix", "comparison"}) {
    const PlanOverrides overrides = With({{"batch_size", "8"}}, "test.sort_method", method);
    ExpectSameWhereverItSwaps("sort keys=i32:nullable:desc:nulls_first:out,f64:out payload=i64,rowid stable",
                              overrides);
    ExpectSameWhereverItSwaps("sort keys=utf8:out,decimal128:desc:out,bool:out payload=rowid stable", overrides);
    ExpectSameWhereverItSwaps(
        "sort keys=utf8(utf8mb4_general_ci):nullable:out,i8:out payload=utf8:nullable,rowid stable", overrides);
    ExpectSameWhereverItSwaps("sort keys=i8:out,utf8:out payload=f64,rowid stable limit=20", overrides);
    ExpectSameWhereverItSwaps("sort keys=i16:out payload=rowid limit=9", overrides);
    ExpectSameWhereverItSwaps("sort keys=i8:out,i64 payload=rowid stable partition=1 window=row_number,rank,dense_rank",
                              overrides);
  }
}

// Strings with few distinct values become dictionary codes, and so do the rows that arrived earlier.
TEST(Swap, SortsWhoseStringsBecomeCodes) {
  ExpectSameWhereverItSwaps("sort keys=utf8:out,i32 payload=rowid stable",
                            {{"batch_size", "8"}, {"dictionary_rows", "30"}}, 60, 10);
}

// Prefixes that do not decide the order: collided rows are compared in their tuples.
TEST(Swap, SortsWithTies) {
  ExpectSameWhereverItSwaps("sort keys=utf8:out,utf8:desc:out,i64:out payload=rowid stable",
                            {{"batch_size", "8"}, {"prefix_words", "1"}}, 60, 8);
}

// ---- filters --------------------------------------------------------------------------------------------------

TEST(Swap, Filters) {
  for (const char* condition : {"i64 > 20", "utf8(utf8mb4_bin) = 'key 7' or f64:nullable < 0.5",
                                "utf8:nullable like '%and what%' and i32 in (1, 2, 3, 40)",
                                "not (utf8(utf8mb4_general_ci) between 'KEY 2' and 'key 30') or bool",
                                "dictionary(i8,utf8) = 'key 3' or i64:nullable is null"}) {
    ExpectSameWhereverItSwaps(std::string("filter ") + condition, {{"batch_size", "64"}}, 200);
  }
}

TEST(Swap, Maps) {
  for (const char* columns_and_results :
       {"in=i64,i32 out=add($0,1:i64),multiply(cast($1,i64),$0)",
        "in=f64:nullable,i64:nullable out=case_when(less($1,20:i64),$0,sqrt($0)),coalesce($1,0:i64),is_null($0)",
        "in=decimal128(38,2),decimal128(38,0):nullable out=add($0,$1),least($1,7:decimal128(1,0)),less($1,$1)"}) {
    ExpectSameWhereverItSwaps(std::string("map ") + columns_and_results, {}, 60);
  }
}

// ---- meters ---------------------------------------------------------------------------------------------------

class CountingMeter : public RowMeter {
 public:
  CountingMeter(int64_t rows, std::function<void()> due) : RowMeter(rows), due_(std::move(due)) {}
  int num_due = 0;

 protected:
  void Due() override {
    ++num_due;
    due_();
  }

 private:
  const std::function<void()> due_;
};

// A meter counts each row once: one that fires after as many rows as a job has fires at the job's end, and one of a
// further row does not.
TEST(Swap, MetersHearOfEachRowOnce) {
  for (const char* spec :
       {"join.left keys=utf8:nullable probe=i64", "join.right keys=i64 build=i64", "aggregate keys=i64 aggs=sum(f64)",
        "sort keys=i64:out window=row_number", "sort keys=i64:out limit=5 window=row_number", "filter i64 > 3"}) {
    const SwapJob job(spec, {{"batch_size", "64"}});
    ASSERT_TRUE(job.kernels.ok());
    const Counters before = job.kernels.generic->counters->Sum();
    job.RunOn(job.kernels.generic, 7);
    const auto rows = static_cast<int64_t>(job.kernels.generic->counters->Sum().rows - before.rows);
    EXPECT_GT(rows, 200);
    for (const int64_t more : {0, 1}) {
      const auto meter = std::make_shared<CountingMeter>(rows + more, [] {});
      Moment() = {};
      job.RunOn(job.kernels.With(std::make_shared<TestTier>(job.kernels.compiled, meter)), 7);
      EXPECT_EQ(meter->num_due, more == 0 ? 1 : 0) << spec << " " << more;
    }
  }
}

// The counters show which kernel did what: the compiled one begins with the batch that contains the 100th row.
TEST(Swap, CountersSayWhichKernelRan) {
  const SwapJob job("sort keys=i64:out window=row_number", {{"batch_size", "8"}});
  ASSERT_TRUE(job.kernels.ok());
  std::shared_ptr<TestTier> tier;
  const auto meter = std::make_shared<CountingMeter>(100, [&] { tier->Publish(); });
  tier = std::make_shared<TestTier>(job.kernels.compiled, meter);
  Moment() = {};
  const auto kernel = job.kernels.With(tier);
  const Counters before = kernel->counters->Sum();
  job.RunOn(kernel, 7);
  const Counters after = kernel->counters->Sum();
  // Batches of 60, 48, 60 and 48 rows, in pieces of 8: the 13th piece contains the 100th row.
  EXPECT_EQ(after.generic_rows - before.generic_rows, 60u + 32u);
  EXPECT_EQ(after.generic_batches - before.generic_batches, 8u + 4u);
  EXPECT_EQ(after.compiled_rows - before.compiled_rows, 16u + 60u + 48u);
  EXPECT_EQ(after.compiled_batches - before.compiled_batches, 2u + 8u + 6u);
  const auto sort = MakeRowSort(job.kernels.compiled, NoLimit());
  ASSERT_TRUE(sort->Append(ViewOf(TypesOf(KeysOf(kernel->plan.spec)), {}, 60, 10, 0)).ok());
  EXPECT_EQ(std::string(TierText(sort->counters())), "compiled");
  EXPECT_EQ(sort->counters().compiled_rows, 60u);
}

// A kernel that a meter publishes at once runs that very batch, and rows are no longer counted.
TEST(Swap, WhatIsPublishedWhileRowsAreCountedRunsTheirBatch) {
  for (const char* spec : {"join.left keys=utf8:nullable probe=i64", "aggregate keys=utf8 aggs=sum(f64)",
                           "sort keys=utf8:out,f64:out", "filter utf8 = 'key 3'"}) {
    const SwapJob job(spec, {{"batch_size", "8"}});
    ASSERT_TRUE(job.kernels.ok());
    Moment() = {};
    std::shared_ptr<TestTier> tier;
    const auto meter = std::make_shared<CountingMeter>(1, [&] { tier->Publish(); });
    tier = std::make_shared<TestTier>(job.kernels.compiled, meter);
    const Lines lines = job.RunOn(job.kernels.With(tier), 7);
    EXPECT_EQ(meter->num_due, 1) << spec;
    EXPECT_EQ(Moment().num_calls, 0) << spec;
    EXPECT_EQ(lines, job.RunOn(job.kernels.compiled, 7)) << spec;
  }
}

// ---- threads --------------------------------------------------------------------------------------------------

// Another thread publishes while jobs run, as a compile thread does. Also run under ThreadSanitizer.
TEST(Swap, AnotherThreadPublishesWhileJobsRun) {
  std::mt19937_64 random = test::PrintedRandom();
  for (const char* spec :
       {"join.full keys=utf8:nullable build=i64 probe=f64", "join.inner keys=i64 build=utf8",
        "aggregate keys=i64 aggs=sum(f64)", "aggregate keys=utf8 aggs=max(utf8),sum(i64)",
        "sort keys=utf8:out,i64:out payload=rowid stable limit=30", "filter utf8 = 'key 3' or i64 > 20"}) {
    const SwapJob job(spec, {{"batch_size", "8"}});
    ASSERT_TRUE(job.kernels.ok());
    const Lines expected = job.RunOn(job.kernels.generic, 7);
    for (int round = 0; round < 5; ++round) {
      constexpr int kJobs = 3;
      const auto tier = std::make_shared<TestTier>(job.kernels.compiled, nullptr, Calls::kNotCounted);
      const std::shared_ptr<const Kernel> kernel = job.kernels.With(tier);
      std::vector<Lines> results(kJobs);
      std::vector<std::thread> threads;
      for (Lines& result : results) threads.emplace_back([&] { result = job.RunOn(kernel, 7); });
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 400));
      tier->Publish();
      for (std::thread& thread : threads) thread.join();
      for (const Lines& result : results) EXPECT_EQ(result, expected) << spec;
    }
  }
}

// Jobs with several threads: each thread reads the slot itself, so that they swap at different batches.
TEST(Swap, ThreadsOfOneJobSwapAtDifferentBatches) {
  const BothKernels kernels("aggregate keys=i64 aggs=count_star,sum(i64),min(utf8)", kSmallGroupBatches);
  ASSERT_TRUE(kernels.ok());
  const auto& spec = std::get<AggregationSpec>(kernels.generic->plan.spec);
  const auto run = [&](const std::shared_ptr<const Kernel>& kernel) {
    const auto aggregate = MakeHashAggregate(kernel, NoLimit());
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        Appender appender(aggregate);
        for (uint64_t seed = 0; seed < 20; ++seed)
          EXPECT_TRUE(
              appender.Append(ViewOf(TypesOf(spec.keys), AggregateInputTypes(spec.aggregates), 40, 60, 100 * t + seed))
                  .ok());
        EXPECT_TRUE(appender.Finish().ok());
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(aggregate->Finalise().ok());
    return GroupsOf(aggregate);
  };
  const Lines expected = run(kernels.generic);
  for (const int64_t rows : {1, 500, 1500}) {
    std::shared_ptr<TestTier> tier;
    const auto meter = std::make_shared<CountingMeter>(rows, [&] { tier->Publish(); });
    tier = std::make_shared<TestTier>(kernels.compiled, meter, Calls::kNotCounted);
    EXPECT_EQ(run(kernels.With(tier)), expected);
    EXPECT_EQ(meter->num_due, 1);
  }
}

}  // namespace
}  // namespace quern
