// SPDX-License-Identifier: Apache-2.0
// What jobs have counted, as hosts read it: of each operator, of a kernel, by headers that know less, and of nothing.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "test/hosts/host_tables.h"

namespace quern_test {
namespace {

quern::Kernel Compiled(const std::string& spec, quern::Engine engine = quern::Engine::kJit,
                       const std::string& params = "") {
  auto kernel = quern::Kernel::Compile(spec, engine, params);
  EXPECT_TRUE(kernel.ok()) << kernel.status().text();
  return *std::move(kernel);
}

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
  for (const quern::Engine engine : {quern::Engine::kJit, quern::Engine::kGeneric}) {
    const quern::Kernel kernel = Compiled("join.inner keys=i64", engine, "batch_size=100");
    const uint64_t before = kernel.Counters().rows;
    auto join = quern::Join::Create(kernel);
    ASSERT_TRUE(join.ok());
    EXPECT_EQ(std::string(join->Counters().tier), "none");
    EXPECT_EQ(std::string(join->Counters().prefetch_class), "");
    const std::vector<int64_t> build = Numbers(250), probe = Numbers(420);
    ASSERT_TRUE(join->Append(Table{{ColumnOf(build)}, {}, build.size()}.batch()).ok());
    ASSERT_TRUE(join->Finalise().ok());
    auto prober = quern::Prober::Create(*join);
    ASSERT_TRUE(prober.ok());
    ASSERT_TRUE(prober->Input(Table{{ColumnOf(probe)}, {}, probe.size()}.batch()).ok());
    for (bool more = true; more;) {
      const auto rows = prober->Next();
      ASSERT_TRUE(rows.ok());
      more = rows->more;
    }
    const quern_counters c = join->Counters();
    ExpectAllBy(engine == quern::Engine::kJit ? "compiled" : "generic", 670, 3 + 5, c);
    EXPECT_EQ(c.tag_hits, 250u);  // keys 0 to 249 of 420, by a bitmap
    EXPECT_EQ(c.chain_steps + c.growths, 0u);
    EXPECT_EQ(std::string(c.prefetch_class), "l2");
    EXPECT_EQ(std::string(c.cache), std::string(kernel.Text("cache")));
    EXPECT_EQ(kernel.Counters().rows, before + 670u);
  }
}

TEST(Counters, OfAnAggregation) {
  const quern::Kernel kernel =
      Compiled("aggregate keys=i64 aggs=count_star", quern::Engine::kGeneric, "group_layout=open");
  auto aggregate = quern::Aggregate::Create(kernel);
  ASSERT_TRUE(aggregate.ok());
  std::vector<int64_t> keys = Numbers(50000);
  for (int64_t& key : keys) key = (key + 1) * 1'000'003;
  ASSERT_TRUE(aggregate->Append(Table{{ColumnOf(keys)}, {}, keys.size()}.batch()).ok());
  ASSERT_TRUE(aggregate->Finalise().ok());
  const quern_counters c = aggregate->Counters();
  EXPECT_EQ(c.rows, 50000u);
  EXPECT_EQ(c.growths, aggregate->Stats().num_growths);
  EXPECT_GT(c.growths, 0u);
  EXPECT_EQ(c.tag_hits, 0u);  // every row is a group of its own
  EXPECT_EQ(std::string(c.cache), "off");
}

TEST(Counters, OfASortAndAMerge) {
  const quern::Kernel kernel = Compiled("sort keys=i64:out", quern::Engine::kJit, "batch_size=64");
  auto sort = quern::Sort::Create(kernel);
  ASSERT_TRUE(sort.ok());
  const std::vector<int64_t> keys = Numbers(130);
  const Table rows = {{ColumnOf(keys)}, {}, keys.size()};
  ASSERT_TRUE(sort->Append(rows.batch()).ok());
  ASSERT_TRUE(sort->Finalise().ok());
  ExpectAllBy("compiled", 130, 3, sort->Counters());
  EXPECT_EQ(std::string(sort->Counters().prefetch_class), "group");

  auto merge = quern::Merge::Create(kernel, 1);
  ASSERT_TRUE(merge.ok());
  ASSERT_TRUE(merge->Input(0, rows.batch()).ok());
  const quern_counters c = merge->Counters();
  EXPECT_EQ(c.rows, 130u);
  EXPECT_EQ(std::string(c.tier), "compiled");
  EXPECT_EQ(std::string(c.prefetch_class), "off");
}

// Any threads ask one filter; each counts by itself.
TEST(Counters, OfAFilter) {
  const quern::Kernel kernel = Compiled("filter i64 > 10");
  auto filter = quern::Filter::Create(kernel);
  ASSERT_TRUE(filter.ok());
  const std::vector<int64_t> keys = Numbers(1000);
  const Table rows = {{ColumnOf(keys)}, {}, keys.size()};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i) EXPECT_EQ(*filter->Count(rows.batch()), 989u);
    });
  for (std::thread& thread : threads) thread.join();
  ExpectAllBy("compiled", 100000, 100, filter->Counters());
}

// A host whose header ends after `rows` and `batches` gets these and nothing behind them.
TEST(Counters, HeadersThatKnowLessGetLess) {
  const quern::Kernel kernel = Compiled("sort keys=i64:out");
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
    EXPECT_EQ(std::string(c.tier), "none");
    EXPECT_EQ(std::string(c.cache), "off");
    EXPECT_EQ(std::string(c.prefetch_class), "");
  };
  const auto begin = [&] {
    std::memset(&c, 0xee, sizeof(c));
    c.struct_size = sizeof(c);
  };
  begin(), quern_kernel_get_counters(nullptr, &c), expect_zeros();
  begin(), quern_join_get_counters(nullptr, &c), expect_zeros();
  begin(), quern_aggregate_get_counters(nullptr, &c), expect_zeros();
  begin(), quern_sort_get_counters(nullptr, &c), expect_zeros();
  begin(), quern_merge_get_counters(nullptr, &c), expect_zeros();
  begin(), quern_filter_get_counters(nullptr, &c), expect_zeros();
  quern_join_get_counters(nullptr, nullptr);
}

}  // namespace
}  // namespace quern_test
