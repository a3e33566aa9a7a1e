// SPDX-License-Identifier: Apache-2.0
// Which expressions of a query become a part of its aggregation's kernel.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/spec/spec_text.h"
#include "tools/query/query_plan.h"

namespace quern::query {
namespace {

// The steps and the sink of the first pipeline, with the columns that they read.
std::string PlanOf(const std::string& text) {
  const absl::StatusOr<QueryText> parsed = QueryText::Parse(text);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  const ColumnType i64 = ParseKey("i64")->type, f64 = ParseKey("f64:nullable")->type, utf8 = ParseKey("utf8")->type;
  const std::vector<QueryTable> tables = {
      {"items", {{"id", "l", i64}, {"price", "g", f64}, {"rate", "g", f64}, {"name", "u", utf8}}}};
  const absl::StatusOr<QueryPlan> plan = QueryPlan::Make(*parsed, tables);
  EXPECT_TRUE(plan.ok()) << plan.status();
  if (!plan.ok()) return "";
  const std::string whole = plan->Explain(tables), scan = "scan items";
  const size_t begin = whole.find('\n', whole.find(scan)) + 1;
  return whole.substr(begin, whole.find("pipeline 1") - begin);
}

TEST(FusedMaps, ArgumentsAndFiltersAreComputedByTheAggregation) {
  EXPECT_EQ(
      PlanOf("scan items\naggregate sum(price * rate) as s, avg(price) filter (where rate > 0.5) as a, count(*) by id"),
      "  aggregate  aggregate keys=i64 in=f64:nullable,f64:nullable "
      "aggs=sum(multiply($0,$1)),avg($0):filter(greater($1,0.5:f64)),count_star  [$0; $1, $2]\n"
      "    fused: multiply($0,$1)\n"
      "    fused: greater($1,0.5:f64)\n");
}

TEST(FusedMaps, ColumnsThatWereSelectedBefore) {
  EXPECT_EQ(PlanOf("scan items\nselect id, price * rate as worth, price\nselect id, worth + price as more, worth\n"
                   "aggregate sum(more) as a, max(worth) as b by id"),
            "  aggregate  aggregate keys=i64 in=f64:nullable,f64:nullable "
            "aggs=sum(add(multiply($0,$1),$0)),max(multiply($0,$1))  [$0; $1, $2]\n"
            "    fused: add(multiply($0,$1),$0)\n"
            "    fused: multiply($0,$1)\n");
}

TEST(FusedMaps, KeysStayInTheMap) {
  EXPECT_EQ(PlanOf("scan items\naggregate sum(price * rate) as s by id % 10"),
            "  map in=i64,f64:nullable,f64:nullable out=modulo_checked($0,10:i64)  [$0, $1, $2]\n"
            "  aggregate  aggregate keys=i64 in=f64:nullable,f64:nullable aggs=sum(multiply($0,$1))  [$3; $1, $2]\n"
            "    fused: multiply($0,$1)\n");
  EXPECT_EQ(PlanOf("scan items\nselect id % 10 as key\naggregate max(key) as m by key"),
            "  map in=i64 out=modulo_checked($0,10:i64)  [$0]\n"
            "  aggregate  aggregate keys=i64 aggs=max(i64)  [$1; $1]\n");
}

// A query computes no column that nobody reads; a pipeline by spec does (pipeline_plan_test.cc).
TEST(FusedMaps, ResultsThatMayFailStayUnlessAllRowsComputeThem) {
  EXPECT_EQ(PlanOf("scan items\nselect id / 2 as half\nselect half, half + 1 as more\naggregate sum(more) as s"),
            "  aggregate  aggregate in=i64 aggs=sum(add_checked(divide_checked($0,2:i64),1:i64))  [$0]\n"
            "    fused: add_checked(divide_checked($0,2:i64),1:i64)\n");
  EXPECT_EQ(PlanOf("scan items\nselect 10 / id as part, id\naggregate sum(case when id = 0 then 0 else part end) as s"),
            "  map in=i64 out=divide_checked(10:i64,$0)  [$0]\n"
            "  aggregate  aggregate in=i64,i64 aggs=sum(case_when(equal($0,0:i64),0:i64,$1))  [$0, $1]\n"
            "    fused: case_when(equal($0,0:i64),0:i64,$1)\n");
}

TEST(FusedMaps, WithoutExpressionsTheSpecIsAsItWas) {
  EXPECT_EQ(PlanOf("scan items\naggregate sum(price) as s, count(*) by name"),
            "  aggregate  aggregate keys=utf8 aggs=sum(f64:nullable),count_star  [$1; $0]\n");
  EXPECT_EQ(
      PlanOf("scan items\nselect price * rate as worth, name\nfilter worth > 3\naggregate sum(worth) as s by name"),
      "  map in=f64:nullable,f64:nullable out=multiply($0,$1)  [$0, $1]\n"
      "  filter f64:nullable > 3  [$3]\n"
      "  aggregate  aggregate keys=utf8 aggs=sum(f64:nullable)  [$2; $3]\n");
}

TEST(FusedMaps, TextsAreArgumentsBesideExpressions) {
  EXPECT_EQ(PlanOf("scan items\naggregate min(name collate utf8mb4_bin) as n, sum(id + 1) as s"),
            "  aggregate  aggregate in=utf8(utf8mb4_bin),i64 aggs=min($0),sum(add_checked($1,1:i64))  [$1, $0]\n"
            "    fused: add_checked($1,1:i64)\n");
}

}  // namespace
}  // namespace quern::query
