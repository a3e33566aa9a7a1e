// SPDX-License-Identifier: Apache-2.0
// The outputs of joins: results of any size, several threads, build rows that are shared; and what a join says of its
// table.
#include <gtest/gtest.h>

#include "test/hosts/jobs.h"

namespace quern_test {
namespace {

const quern_column kRowIds = {};

// 100 build rows with keys 0..9, each ten times; probe keys 0..9: 100 result rows.
struct TenByTen {
  TenByTen() {
    for (int64_t i = 0; i < 100; ++i) {
      key.push_back(i % 10);
      price.push_back(static_cast<double>(i));
    }
  }
  Table build() const { return {{ColumnOf(key)}, {ColumnOf(price)}, 100}; }
  Table probe() const { return {{ColumnOf(key)}, {kRowIds}, 10}; }

  std::vector<int64_t> key;
  std::vector<double> price;
};
constexpr const char* kSpec = "join.inner keys=i64 build=f64 probe=rowid";

TEST(JoinOutputs, HaveResultsOfAnySize) {
  const TenByTen tables;
  quern::Join whole = Built(kSpec, {tables.build()});
  quern::Output output = Take(whole.Probe());
  const Lines all = Probed(&output, tables.probe(), "rd");
  EXPECT_EQ(all.size(), 100u);
  for (const Engine engine : {Engine::kJit, Engine::kGeneric}) {
    quern::Join join = Built(kSpec, {tables.build()}, engine, StringBytes::kStay, "batch_size=8");
    for (const uint64_t batch_rows : {1, 7, 10, 99, 100, 101}) {
      quern::Output probed = Take(join.Probe(batch_rows));
      EXPECT_EQ(Probed(&probed, tables.probe(), "rd", batch_rows), all);
    }
  }
}

TEST(JoinOutputs, WithoutPayloadOnlyCount) {
  const TenByTen tables;
  quern::Join join = Built("join.inner keys=i64", {tables.build()});
  quern::Output probed = Take(join.Probe(1));
  Done(probed.Push(tables.probe().batch()));
  const quern_result& rows = *Take(probed.Next());
  EXPECT_EQ(rows.num_rows, 100u);
  EXPECT_EQ(rows.num_columns, 0u);
  EXPECT_EQ(rows.columns, nullptr);
  EXPECT_EQ(rows.state, QUERN_RESULT_NEEDS_INPUT);
  quern::Join anti = Built("join.right_anti keys=i64", {tables.build()});
  Table some = tables.probe();
  some.num_rows = 7;
  quern::Output probe = Take(anti.Probe(1));
  EXPECT_EQ(Probed(&probe, some, ""), Lines());
  quern::Output unmatched = Take(anti.Unmatched(1));
  EXPECT_EQ(Take(unmatched.Next())->num_rows, 30u);
}

TEST(JoinOutputs, NeedInputAgainAndAgain) {
  const TenByTen tables;
  quern::Join join = Built(kSpec, {tables.build()});
  quern::Output probed = Take(join.Probe(3));
  for (int batch = 0; batch < 2; ++batch) {
    EXPECT_EQ(Probed(&probed, tables.probe(), "rd").size(), 100u);
    const quern_result& rows = *Take(probed.Next());
    EXPECT_EQ(rows.num_rows, 0u);
    EXPECT_EQ(rows.num_columns, 2u);
    EXPECT_EQ(rows.state, QUERN_RESULT_NEEDS_INPUT);
  }
  Done(probed.Push(tables.probe().batch()));
  Take(probed.Next());
  Table other = tables.probe();
  other.selection = {4};
  const Lines lines = Probed(&probed, other, "rd", 3);
  EXPECT_EQ(lines.size(), 10u) << "what was left of the batch before does not come";
  EXPECT_EQ(lines.front(), "4|14");
}

TEST(JoinOutputs, OfUnmatchedRowsShareThem) {
  const TenByTen tables;
  for (const std::string kind : {"left", "right"}) {
    quern::Join join = Built("join." + kind + " keys=i64 build=f64 probe=rowid", {tables.build()});
    EXPECT_EQ(RowsOf(join.Unmatched(1), "rd").size(), kind == "left" ? 0u : 100u) << "nothing was probed";
    quern::Output again = Take(join.Unmatched());
    EXPECT_EQ(RowsOf(&again, "rd").size(), 0u);
    EXPECT_EQ(Take(again.Next())->state, QUERN_RESULT_DONE);
  }
}

TEST(JoinStats, CountWhatTheTableHas) {
  const TenByTen tables;
  quern::Join join = Take(quern::Join::Create(
      KernelOf("join.inner keys=i64:nullable build=f64 probe=rowid", Engine::kAuto, "layout=unchained")));
  const std::vector<uint8_t> valid = Bitmap(std::vector<bool>(100, true)), none = Bitmap(std::vector<bool>(100, false));
  Table build = tables.build(), nulls = build;
  build.keys[0].validity = valid.data();
  nulls.keys[0].validity = none.data();
  Feed(join.Build(), {build, nulls, build});
  EXPECT_STREQ(join.Stats().layout, "");
  Done(join.Finalise());
  const quern_job_stats stats = join.Stats();
  EXPECT_STREQ(stats.layout, "unchained");
  EXPECT_EQ(stats.input_rows, 300u);
  EXPECT_EQ(stats.num_rows, 200u);
  EXPECT_EQ(stats.tuple_bytes, 200u * 16);
  EXPECT_GE(stats.directory_bytes, 200u * 8);
  EXPECT_GE(stats.peak_bytes, stats.tuple_bytes + stats.directory_bytes);
}

}  // namespace
}  // namespace quern_test
