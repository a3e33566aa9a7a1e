// SPDX-License-Identifier: Apache-2.0
// Which tables of a query take turns, and whether the plans of their kernels go by it.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "codegen/machine/machine.h"
#include "codegen/machine/profile.h"
#include "runtime/base/thresholds.h"
#include "runtime/spec/spec_text.h"
#include "tools/query/query_plan.h"
#include "tools/query/query_run.h"

namespace quern::query {
namespace {

constexpr const char* kTwoTables = "scan items\njoin orders on order = id\njoin days on day = date\nselect price";
constexpr const char* kOneTable = "scan items\njoin orders on order = id\nselect price";

QueryPlan PlanOf(const std::string& text) {
  const absl::StatusOr<QueryText> parsed = QueryText::Parse(text);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  const ColumnType i64 = ParseKey("i64")->type;
  const std::vector<QueryTable> tables = {{"orders", {{"id", "l", i64}, {"day", "l", i64}}},
                                          {"items", {{"order", "l", i64}, {"price", "l", i64}}},
                                          {"days", {{"date", "l", i64}}},
                                          {"prices", {{"amount", "l", i64}}}};
  absl::StatusOr<QueryPlan> plan = QueryPlan::Make(*parsed, tables);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *std::move(plan);
}

// Of tables that take turns if `pipeline` is 2, and of pieces.
Profile ProfileOf(uint32_t pipeline) {
  Profile profile;
  profile.machine = HostSignature();
  profile.pieces = {.rows = 512};
  ProfileEntry entry;
  entry.cell = {PrefetchLoop::kProbeOpen, KeyClass::kPacked, pipeline, 20, 1};
  entry.setting.distance = 48;
  profile.Put({entry});
  return profile;
}

TEST(TablesInTurn, AreThoseThatOnePipelineProbes) {
  const Profile in_turn = ProfileOf(2), alone = ProfileOf(1);
  EXPECT_EQ(TablesInTurn(PlanOf(kTwoTables), &in_turn), (std::vector<uint32_t>{2, 2, 1}));
  EXPECT_EQ(TablesInTurn(PlanOf(kTwoTables), &alone), (std::vector<uint32_t>{1, 1, 1}));
  EXPECT_EQ(TablesInTurn(PlanOf(kTwoTables), nullptr), (std::vector<uint32_t>{1, 1, 1}));
  EXPECT_EQ(TablesInTurn(PlanOf(kOneTable), &in_turn), (std::vector<uint32_t>{1, 1}));
  // Settings for two stand for more.
  EXPECT_EQ(TablesInTurn(PlanOf("scan items\njoin orders on order = id\njoin days on day = date\n"
                                "join prices on price = amount\nselect price"),
                         &in_turn),
            (std::vector<uint32_t>{2, 2, 2, 1}));
}

TEST(TablesInTurn, PlansOfKernelsGoByTheProfile) {
  const std::vector<TableRows> tables(4);
  CompileOptions options;
  options.engine = Engine::kGeneric;
  const auto prepared = [&](const char* text) {
    absl::StatusOr<PreparedQuery> query = PreparedQuery::Make(PlanOf(text), tables, options, 1);
    EXPECT_TRUE(query.ok()) << query.status();
    return *std::move(query);
  };
  SetProfileOfProcess(nullptr);
  EXPECT_EQ(prepared(kTwoTables).kernels(0).back().kernel->plan.pipeline, 1u);
  EXPECT_EQ(prepared(kTwoTables).piece_rows(), thresholds::kPipelineRows);
  SetProfileOfProcess(std::make_shared<const Profile>(ProfileOf(2)));
  const PreparedQuery query = prepared(kTwoTables);
  EXPECT_EQ(query.piece_rows(), 512u);
  EXPECT_EQ(query.kernels(0).back().kernel->plan.pipeline, 2u);
  EXPECT_EQ(query.kernels(1).back().kernel->plan.pipeline, 2u);
  EXPECT_EQ(prepared(kOneTable).kernels(0).back().kernel->plan.pipeline, 1u);
  SetProfileOfProcess(nullptr);
}

}  // namespace
}  // namespace quern::query
