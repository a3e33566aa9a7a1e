// SPDX-License-Identifier: Apache-2.0
// Which texts of a query pass as views, and that they have offsets again in the result.
#include "tools/query/text_views.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/rows/copy_rows.h"
#include "runtime/rows/output_batch.h"
#include "runtime/spec/spec_text.h"
#include "tools/query/query_plan.h"

namespace quern::query {
namespace {

// "name:utf8 .." of the result's columns, in the types that pass through the query.
std::string ResultTypes(const std::string& text) {
  const absl::StatusOr<QueryText> parsed = QueryText::Parse(text);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  const ColumnType i64 = ParseKey("i64")->type, utf8 = ParseKey("utf8")->type, large = ParseKey("large_utf8")->type;
  const std::vector<QueryTable> tables = {
      {"items", {{"id", "l", i64}, {"name", "u", utf8}, {"note", "U", large}, {"kind", "u", utf8}}},
      {"sales", {{"item", "l", i64}, {"place", "u", utf8}, {"label", "u", utf8}}}};
  const absl::StatusOr<QueryPlan> plan = QueryPlan::Make(*parsed, tables);
  EXPECT_TRUE(plan.ok()) << plan.status();
  if (!plan.ok()) return "";
  std::string types;
  for (size_t i = 0; i < plan->columns.size(); ++i) {
    const QueryColumn& column = plan->pipelines.back().results[plan->columns[i]];
    types += (i == 0 ? "" : " ") + plan->names[i] + ":" + PrintType(*column.type) + ":" + column.format;
  }
  return types;
}

TEST(TextViews, PayloadOfTablesThatAreJoined) {
  EXPECT_EQ(ResultTypes("scan sales\njoin items on item = id\nselect place, name, note"),
            "place:utf8:u name:utf8_view:u note:large_utf8:U");
  EXPECT_EQ(ResultTypes("cheap:\nscan items\nfilter kind = 'a'\nresult:\nscan sales\njoin cheap on item = id\n"
                        "aggregate max(name) as m, count(*) as n by kind"),
            "kind:utf8_view:u m:utf8_view:u n:i64:l");
}

TEST(TextViews, KeysOfJoinsStayAsTheyAre) {
  EXPECT_EQ(ResultTypes("scan sales\njoin items on label = name\nselect name, kind"), "name:utf8:u kind:utf8_view:u");
}

// A text of a table and one of the rows that probe it are compared.
TEST(TextViews, NoneWhereTypesWouldDiffer) {
  EXPECT_EQ(ResultTypes("scan sales\njoin items on item = id\nfilter place != kind\nselect name, kind"),
            "name:utf8:u kind:utf8:u");
}

std::string TextOf(const ArrowArray& array, int64_t row) {
  const auto* const validity = static_cast<const uint8_t*>(array.buffers[0]);
  if (validity != nullptr && (validity[row / 8] >> row % 8 & 1) == 0) return "null";
  const auto* const offsets = static_cast<const int32_t*>(array.buffers[1]);
  return {static_cast<const char*>(array.buffers[2]) + offsets[row],
          static_cast<size_t>(offsets[row + 1] - offsets[row])};
}

TEST(TextViews, ThereAndBack) {
  const std::vector<std::string> texts = {"", "short", "twelve bytes", "thirteen byte", std::string(1000, 'x'), "end"};
  std::string bytes;
  std::vector<int32_t> offsets = {0};
  for (const std::string& text : texts) offsets.push_back(static_cast<int32_t>((bytes += text).size()));
  const uint8_t validity[] = {0b101111};
  QuernColumn column = {};
  column.validity = validity;
  column.values = bytes.data();
  column.offsets = offsets.data();
  TextViews views;
  ASSERT_TRUE(views.Make(nullptr, texts.size(), nullptr, &column).ok());

  ColumnType type = ParseKey("utf8_view")->type;
  type.nullable = true;
  const std::vector<QueryColumn> columns = {{"as_before", "vu", type}, {"again", "u", type}};
  OutputBatch out({type, type}, texts.size(), nullptr);
  ASSERT_TRUE(out.Reset().ok());
  BatchView batch;
  batch.keys = {column, column};
  batch.num_rows = texts.size();
  ASSERT_EQ(*CopyRows(batch, {type, type}, 0, &out), texts.size());
  ArrowArray exported;
  out.ExportArrow(&exported);
  const ArrowArray* const as_before = exported.children[0];
  const int64_t num_buffers = as_before->n_buffers;
  const auto budget = std::make_shared<MemoryBudget>(uint64_t{1} << 20);
  ASSERT_TRUE(MakeOffsets(columns, budget, &exported).ok());
  EXPECT_EQ(exported.children[0]->n_buffers, num_buffers);
  ASSERT_EQ(exported.children[1]->n_buffers, 3);
  EXPECT_EQ(exported.children[1]->null_count, 1);
  for (size_t i = 0; i < texts.size(); ++i)
    EXPECT_EQ(TextOf(*exported.children[1], static_cast<int64_t>(i)), i == 4 ? "null" : texts[i]);
  EXPECT_GT(budget->used_bytes(), 0u);
  exported.release(&exported);
  EXPECT_EQ(budget->used_bytes(), 0u);
}

TEST(TextViews, RefusedMemoryLeavesTheBatch) {
  ColumnType type = ParseKey("utf8_view")->type;
  OutputBatch out({type}, 1000, nullptr);
  ASSERT_TRUE(out.Reset().ok());
  const std::vector<uint8_t> zeros(16 * 1000);
  QuernColumn column = {};
  column.values = zeros.data();
  BatchView batch;
  batch.keys = {column};
  batch.num_rows = 1000;
  ASSERT_EQ(*CopyRows(batch, {type}, 0, &out), 1000u);
  ArrowArray exported;
  out.ExportArrow(&exported);
  const absl::Status status = MakeOffsets({{"text", "u", type}}, std::make_shared<MemoryBudget>(100), &exported);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(exported.children[0]->buffers[1] != nullptr, true);
  exported.release(&exported);
}

}  // namespace
}  // namespace quern::query
