// SPDX-License-Identifier: Apache-2.0
// What jobs have counted, as hosts read it: of each operator, of a kernel, by headers that know less, and of nothing.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "test/hosts/jobs.h"

namespace quern_test {
namespace {

std::vector<int64_t> Numbers(size_t n) {
  std::vector<int64_t> numbers(n);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

void ExpectAllBy(const char* tier, uint64_t rows, uint64_t batches, const quern_counters& c) {
  EXPECT_EQ(c.rows, rows);
  EXPECT_EQ(c.batches, batches);
  EXPECT_GT(c.ns, 0u);
  EXPECT_EQ(std::string(c.tier), tier);
  const bool is_compiled = std::string(tier) == "compiled";
  EXPECT_EQ(c.compiled_rows, is_compiled ? rows : 0);
  EXPECT_EQ(c.compiled_batches, is_compiled ? batches : 0);
  EXPECT_EQ(c.generic_rows, is_compiled ? 0 : rows);
  EXPECT_EQ(c.generic_batches, is_compiled ? 0 : batches);
}

TEST(Counters, OfAJoin) {
  for (const Engine engine : {Engine::kJit, Engine::kGeneric}) {
    const quern::Kernel kernel = KernelOf("join.inner keys=i64", engine, "batch_size=100");
    const uint64_t before = kernel.Counters().rows;
    quern::Join join = Take(quern::Join::Create(kernel));
    EXPECT_STREQ(join.Counters().tier, "none");
    EXPECT_STREQ(join.Counters().prefetch_class, "");
    const std::vector<int64_t> build = Numbers(250), probe = Numbers(420);
    Feed(join.Build(), {{{ColumnOf(build)}, {}, build.size()}});
    Done(join.Finalise());
    quern::Output probed = Take(join.Probe());
    EXPECT_EQ(Probed(&probed, {{ColumnOf(probe)}, {}, probe.size()}, "").size(), 250u);
    const quern_counters c = join.Counters();
    ExpectAllBy(engine == Engine::kJit ? "compiled" : "generic", 670, 3 + 5, c);
    EXPECT_EQ(c.tag_hits, 250u);  // keys 0 to 249 of 420, by a bitmap
    EXPECT_EQ(c.chain_steps + c.growths, 0u);
    EXPECT_STREQ(c.prefetch_class, "l2");
    EXPECT_EQ(std::string(c.cache), std::string(kernel.Text("cache")));
    EXPECT_EQ(kernel.Counters().rows, before + 670u);
  }
}

TEST(Counters, OfAnAggregation) {
  const quern::Kernel kernel = KernelOf("aggregate keys=i64 aggs=count_star", Engine::kGeneric, "group_layout=open");
  quern::Aggregate aggregate = Take(quern::Aggregate::Create(kernel));
  std::vector<int64_t> keys = Numbers(50000);
  for (int64_t& key : keys) key = (key + 1) * 1'000'003;
  Feed(aggregate.Rows(), {{{ColumnOf(keys)}, {}, keys.size()}});
  Done(aggregate.Finalise());
  const quern_counters c = aggregate.Counters();
  EXPECT_EQ(c.rows, 50000u);
  EXPECT_EQ(c.growths, aggregate.Stats().num_growths);
  EXPECT_GT(c.growths, 0u);
  EXPECT_EQ(c.tag_hits, 0u);  // every row is a group of its own
  EXPECT_STREQ(c.cache, "off");
}

TEST(Counters, OfASortAndAMerge) {
  const quern::Kernel kernel = KernelOf("sort keys=i64:out", Engine::kJit, "batch_size=64");
  quern::Sort sort = Take(quern::Sort::Create(kernel));
  const std::vector<int64_t> keys = Numbers(130);
  const Table rows = {{ColumnOf(keys)}, {}, keys.size()};
  Feed(sort.Rows(), {rows});
  Done(sort.Finalise());
  ExpectAllBy("compiled", 130, 3, sort.Counters());
  EXPECT_STREQ(sort.Counters().prefetch_class, "group");
  quern::Merge merge = Take(quern::Merge::Create(kernel, 1));
  Feed(merge.RunInput(0), {rows});
  const quern_counters c = merge.Counters();
  EXPECT_EQ(c.rows, 130u);
  EXPECT_STREQ(c.tier, "compiled");
  EXPECT_STREQ(c.prefetch_class, "off");
}

// Any threads ask one filter; each counts by itself.
TEST(Counters, OfAFilter) {
  const quern::Kernel kernel = KernelOf("filter i64 > 10");
  const quern::Filter filter = Take(quern::Filter::Create(kernel));
  const std::vector<int64_t> keys = Numbers(1000);
  const Table rows = {{ColumnOf(keys)}, {}, keys.size()};
  OnThreads(4, [&] {
    for (int i = 0; i < 25; ++i) EXPECT_EQ(Take(filter.Count(rows.batch())), 989u);
  });
  ExpectAllBy("compiled", 100000, 100, filter.Counters());
}

// A host whose header ends after `rows` and `batches` gets these and nothing behind them.
TEST(Counters, HeadersThatKnowLessGetLess) {
  const quern::Kernel kernel = KernelOf("sort keys=i64:out");
  quern_counters c;
  std::memset(&c, 0xee, sizeof(c));
  c.struct_size = offsetof(quern_counters, ns);
  quern_kernel_get_counters(kernel.handle(), &c);
  EXPECT_EQ(c.struct_size, offsetof(quern_counters, ns));
  EXPECT_NE(c.rows, 0xeeeeeeeeeeeeeeeeu);
  EXPECT_EQ(c.ns, 0xeeeeeeeeeeeeeeeeu);
  c.struct_size = 0;
  quern_kernel_get_counters(kernel.handle(), &c);
  EXPECT_EQ(c.struct_size, 0u);
}

TEST(Counters, OfNothingAreZeros) {
  quern_counters c;
  const auto expect_zeros = [&] {
    EXPECT_EQ(c.rows + c.batches + c.ns + c.compiled_rows + c.generic_rows, 0u);
    EXPECT_STREQ(c.tier, "none");
    EXPECT_STREQ(c.cache, "off");
    EXPECT_STREQ(c.prefetch_class, "");
  };
  const auto begin = [&] {
    std::memset(&c, 0xee, sizeof(c));
    c.struct_size = sizeof(c);
  };
  begin(), quern_kernel_get_counters(nullptr, &c), expect_zeros();
  begin(), quern_job_get_counters(nullptr, &c), expect_zeros();
  quern_kernel_get_counters(nullptr, nullptr);
  quern_job_get_counters(nullptr, nullptr);
}

}  // namespace
}  // namespace quern_test
