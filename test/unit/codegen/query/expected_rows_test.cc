// SPDX-License-Identifier: Apache-2.0
// How many rows the kernels of a query are told to expect.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/spec/spec_text.h"
#include "tools/query/query_plan.h"
#include "tools/query/query_run.h"

namespace quern::query {
namespace {

using Rows = std::vector<std::vector<uint64_t>>;

constexpr uint64_t kOrders = 400'000, kItems = 1'600'000, kDays = 5000;

Rows Expected(const std::string& text, uint32_t threads) {
  const absl::StatusOr<QueryText> parsed = QueryText::Parse(text);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  const ColumnType i64 = ParseKey("i64")->type;
  const std::vector<QueryTable> tables = {{"orders", {{"id", "l", i64}, {"day", "l", i64}}},
                                          {"items", {{"order", "l", i64}, {"price", "l", i64}}},
                                          {"days", {{"date", "l", i64}}}};
  const absl::StatusOr<QueryPlan> plan = QueryPlan::Make(*parsed, tables);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return ExpectedRows(*plan, {{{}, kOrders}, {{}, kItems}, {{}, kDays}}, threads);
}

TEST(ExpectedRows, StepsAndSinksHaveTheRowsOfTheTable) {
  EXPECT_EQ(Expected("scan orders\nfilter day > 1\nselect id + 1 as n\naggregate count(*) as s by n", 1),
            (Rows{{kOrders, kOrders, kOrders}}));
  // The aggregation computes what it sums up.
  EXPECT_EQ(Expected("scan orders\nfilter day > 1\nselect id + 1 as n\naggregate sum(n) as s", 1),
            (Rows{{kOrders, kOrders}}));
}

TEST(ExpectedRows, AJoinHasThoseOfBothSides) {
  EXPECT_EQ(Expected("scan items\njoin orders on order = id\njoin days on day = date\nselect price", 1),
            (Rows{{kOrders + kItems}, {kDays + kItems}, {kItems, kItems, kItems}}));
}

TEST(ExpectedRows, OfRowsThatArePutTogetherNothingIsKnown) {
  const char* const by_day = "by_day:\nscan orders\naggregate count(*) as n by day\n";
  EXPECT_EQ(Expected(std::string(by_day) + "result:\nscan by_day\nfilter n > 1\nsort n", 1), (Rows{{kOrders}, {0, 0}}));
  EXPECT_EQ(Expected(std::string(by_day) + "result:\nscan days\njoin by_day on date = day\nselect n", 1),
            (Rows{{kOrders}, {kDays}, {kDays, kDays}}));
}

TEST(ExpectedRows, ThreadsShareThem) {
  EXPECT_EQ(Expected("scan orders\nsort day", 4), (Rows{{kOrders / 4}}));
  EXPECT_EQ(Expected("scan orders\nsort day", 100), (Rows{{kOrders / 7}}));  // one for each 65,536 and the rest
  EXPECT_EQ(Expected("scan days\nsort date", 4), (Rows{{kDays}}));
}

}  // namespace
}  // namespace quern::query
