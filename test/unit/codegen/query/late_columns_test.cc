// SPDX-License-Identifier: Apache-2.0
// Which columns of a query are fetched when few rows are left, and which columns are keys.
#include "tools/query/late_columns.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/spec/spec_text.h"
#include "tools/query/key_columns.h"
#include "tools/query/query_plan.h"

namespace quern::query {
namespace {

std::vector<QueryTable> Tables(bool id_is_key = true) {
  const ColumnType i64 = ParseKey("i64")->type, utf8 = ParseKey("utf8")->type;
  std::vector<QueryTable> tables = {
      {"sales", {{"buyer", "l", i64}, {"amount", "l", i64}}},
      {"buyers", {{"id", "l", i64}, {"name", "u", utf8}, {"place", "l", i64}, {"age", "l", i64}}},
      {"places", {{"number", "l", i64}, {"city", "u", utf8}}},
  };
  tables[0].num_rows = 1'000'000;
  tables[1].num_rows = 10'000;
  tables[2].num_rows = 20;
  tables[1].is_key = [id_is_key](size_t column) { return id_is_key && column == 0; };
  tables[2].is_key = [](size_t column) { return column == 0; };
  return tables;
}

// Lines of the plan that begin with "scan" or "rows of", behind their relations; empty: nothing is late.
std::string LateOf(const std::string& text, const std::vector<QueryTable>& tables = Tables()) {
  const absl::StatusOr<QueryText> parsed = QueryText::Parse(text);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  const std::optional<QueryText> late = WithLateColumns(*parsed, tables);
  const absl::StatusOr<QueryPlan> plan = QueryPlan::Make(*parsed, tables);
  EXPECT_TRUE(plan.ok()) << plan.status();
  if (!late.has_value()) return "";
  std::string relations;
  for (const QueryRelation& relation : late->relations) {
    relations += relation.name + ":";
    for (const QueryStep& step : relation.steps) relations += " " + step.text + ";";
    relations += "\n";
  }
  return relations;
}

constexpr char kHomes[] = "homes:\nscan buyers\njoin places on place = number\n";
constexpr char kSales[] = "result:\nscan sales\njoin homes on buyer = id\n";

TEST(LateColumns, TextsOfTheTableOfAKeyAndOfOneThatIsJoinedWithIt) {
  const std::string text = std::string(kHomes) + kSales +
                           "aggregate sum(amount) as total by id, name, city\nsort total desc limit 5 offset 2\n";
  EXPECT_EQ(LateOf(text),
            "homes: scan buyers; join places on place = number;\n"
            "result, keys: scan sales; join homes on buyer = id; aggregate sum(amount) as total by id, name, city; "
            "sort total desc limit 5 offset 2;\n"
            "result, buyers: scan buyers; join result, keys on id = id;\n"
            "result, places: scan places; join result, buyers on number = place;\n"
            "result: scan result, places; sort total desc limit 5 offset 2; select id, name, city, total;\n");
  const absl::StatusOr<QueryPlan> plan = QueryPlan::Make(*QueryText::Parse(text), Tables());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->names, (std::vector<std::string>{"id", "name", "city", "total"}));
  EXPECT_NE(plan->Explain(Tables()).find("aggregate keys=i64 aggs=sum(i64)"), std::string::npos);
}

// Of buyers nothing is asked but the key, so that nothing decides the city; of places, whose key it is, it does.
TEST(LateColumns, ATableOfNumbersAloneIsReadAgainWhereItLeadsToATextOnly) {
  const std::string behind = "\nsort total desc limit 5\n", groups = "aggregate sum(amount) as total by ";
  EXPECT_NE(LateOf(std::string(kHomes) + kSales + groups + "id, age, city" + behind).find("result, buyers: "),
            std::string::npos);
  const std::string late = LateOf(std::string(kHomes) + kSales + groups + "id, age, number, city" + behind);
  EXPECT_EQ(late.find("result, buyers: "), std::string::npos);
  EXPECT_NE(late.find("result, places: "), std::string::npos);
}

TEST(LateColumns, NothingIsLate) {
  const auto query = [](const std::string& behind, const std::string& before = "") {
    return std::string(kHomes) + kSales + before + behind;
  };
  const std::string groups = "aggregate sum(amount) as total by id, name\n", sort = "sort total desc limit 5\n";
  EXPECT_NE(LateOf(query(groups + sort)), "");
  EXPECT_NE(LateOf(query(groups + "filter total > 3\n" + sort + "select name, total")), "");
  // No column decides the others, or none is asked for.
  EXPECT_EQ(LateOf(query(groups + sort), Tables(false)), "");
  EXPECT_EQ(LateOf(query("aggregate sum(amount) as total by age, name\n" + sort)), "");
  // No text; all rows; many rows; no sort.
  EXPECT_EQ(LateOf(query("aggregate sum(amount) as total by id, age\n" + sort)), "");
  EXPECT_EQ(LateOf(query(groups + "sort total desc")), "");
  EXPECT_EQ(LateOf(query(groups + "sort total desc limit 100000")), "");
  EXPECT_EQ(LateOf(query(groups)), "");
  // What mentions the text needs it before.
  EXPECT_EQ(LateOf(query(groups + "sort name limit 5")), "");
  EXPECT_EQ(LateOf(query(groups + "filter name like 'a%'\n" + sort)), "");
  EXPECT_EQ(LateOf(query("aggregate sum(amount) as total by id, name collate utf8mb4_general_ci\n" + sort)), "");
  // Names that a table that is read again has, too, and a computed key.
  EXPECT_EQ(LateOf(query("aggregate sum(amount) as age by id, name\nsort age limit 5")), "");
  EXPECT_EQ(LateOf(query("aggregate sum(amount) as total by id + 1, name\n" + sort)), "");
  // A select changes names, and a left join makes nulls.
  EXPECT_EQ(LateOf(query(groups + sort, "select id, name, amount\n")), "");
  EXPECT_EQ(LateOf(std::string(kHomes) + "result:\nscan sales\njoin.left homes on buyer = id\n" + groups + sort), "");
  // A table that is read twice, and a large one.
  EXPECT_EQ(LateOf("again:\nscan buyers\nselect id as other\n" + std::string(kHomes) + kSales +
                   "join.semi again on id = other\n" + groups + sort),
            "");
  std::vector<QueryTable> large = Tables();
  large[1].num_rows = 500'000;
  EXPECT_EQ(LateOf(query(groups + sort), large), "");
}

TEST(KeyColumns, WholeNumbersWithoutNullsAndRepetitions) {
  const auto is_key = [](std::vector<int64_t> numbers, int64_t null_count = 0) {
    const void* buffers[] = {nullptr, numbers.data()};
    ArrowArray column = {};
    column.length = static_cast<int64_t>(numbers.size());
    column.null_count = null_count;
    column.n_buffers = 2;
    column.buffers = buffers;
    ArrowArray* children[] = {&column};
    ArrowArray batch = {};
    batch.length = column.length;
    batch.n_children = 1;
    batch.children = children;
    TableRows rows;
    rows.batches.push_back(&batch);
    rows.num_rows = numbers.size();
    return IsKeyColumn(rows, 0, {"id", "l", ParseKey("i64")->type});
  };
  EXPECT_TRUE(is_key({3, -1, 100}));
  EXPECT_TRUE(is_key({3}));
  EXPECT_FALSE(is_key({3, -1, 3}));
  EXPECT_FALSE(is_key({3, -1, 100}, 1));
  EXPECT_FALSE(is_key({INT64_MIN, INT64_MAX}));
  EXPECT_FALSE(is_key({0, 1'000'000}));
  EXPECT_FALSE(is_key({}));
}

}  // namespace
}  // namespace quern::query
