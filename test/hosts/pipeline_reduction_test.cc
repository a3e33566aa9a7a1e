// SPDX-License-Identifier: Apache-2.0
// Steps of pipelines that take away rows without a match, and probe nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "test/hosts/arrow_arrays.h"
#include "test/hosts/jobs.h"
#include "test/unit/seed.h"

namespace quern_test {
namespace {

using quern::Pipeline;
using Numbers = std::vector<int64_t>;

// The rows that pass, by their values: i64 in column 0.
Numbers Passed(const Pipeline& pipeline, const std::vector<Table>& tables, uint64_t piece_rows = 0) {
  Numbers passed;
  const auto on_rows = [&](const quern_batch& rows) {
    for (uint64_t i = 0; i < rows.num_rows; ++i) {
      const uint64_t row = rows.selection == nullptr ? i : rows.selection[i];
      passed.push_back(ElementAt<int64_t>(rows.keys[0].values, row));
    }
    return true;
  };
  quern::Input input = Take(pipeline.IntoHost(&on_rows, {0}, piece_rows));
  for (const Table& table : tables) Done(input.Append(table.batch()));
  Done(input.Finish());
  return passed;
}

Table RowsOf(const Numbers& numbers) { return {{ColumnOf(numbers)}, {}, numbers.size()}; }

// Tables of different layouts and kinds, in front of a filter and behind it. In an unchained table some rows pass by
// their tag.
TEST(PipelineReduction, KeepsTheRowsWithAMatch) {
  std::mt19937_64 random(quern::test::SeedOfTest());
  Numbers keys, rows;
  for (int i = 0; i < 1000; ++i) keys.push_back(static_cast<int64_t>(random() % 5000));
  for (int i = 0; i < 30'000; ++i) rows.push_back(static_cast<int64_t>(random() % 6000));
  const std::set<int64_t> has(keys.begin(), keys.end());
  const auto matches = [&](int64_t row) { return has.contains(row); };
  const auto filter = New<quern::Job>("filter i64 >= 100");
  Numbers expected;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(expected),
               [&](int64_t row) { return row >= 100 && matches(row); });
  for (const std::string layout : {"auto", "open", "dense", "unchained"}) {
    for (const std::string kind : {"inner", "left", "right_anti", "mark"}) {
      const quern::Join join = Built("join." + kind + " keys=i64", {RowsOf(keys)}, Engine::kJit,
                                     quern::StringBytes::kStay, "layout=" + layout);
      const Pipeline behind = Pipeline("i64").Through(filter, {0}).Reduced(join, {0}),
                     in_front = Pipeline("i64").Reduced(join, {0}).Through(filter, {0});
      for (const Pipeline* pipeline : {&behind, &in_front}) {
        for (const uint64_t piece_rows : {7, 0, 65536}) {
          Numbers passed = Passed(*pipeline, {RowsOf(rows)}, piece_rows);
          const auto num_others = std::erase_if(passed, [&](int64_t row) { return !matches(row); });
          EXPECT_EQ(passed, expected) << layout << " " << kind;
          EXPECT_LE(num_others, layout == "unchained" ? rows.size() / 100 : 0u) << layout << " " << kind;
        }
      }
    }
  }
}

// Two keys, one of them a text that may be null. Rows whose tags are equal may pass, and others do not.
TEST(PipelineReduction, ComparesAsTheJoinDoes) {
  std::vector<std::string> names;
  for (int i = 0; i < 300; ++i) names.push_back("name number " + std::to_string(i));
  const StringVector<int32_t> texts(names);
  Numbers numbers(300);
  for (int64_t i = 0; i < 300; ++i) numbers[static_cast<size_t>(i)] = i;
  std::vector<bool> valid(300, true);
  valid[0] = valid[299] = false;
  const std::vector<uint8_t> validity = Bitmap(valid, 0);
  const Table build = {{ColumnOf(numbers), WithValidity(texts.column(), validity, 0)}, {}, 10};  // 0 has a null
  const Table rows = {{ColumnOf(numbers), WithValidity(texts.column(), validity, 0)}, {}, 300};
  const quern::Join nulls_differ = Built("join.inner keys=i64,utf8:nullable", {build});
  const quern::Join nulls_are_equal = Built("join.inner keys=i64,utf8:nullable:nullequal", {build});
  const Numbers differ = Passed(Pipeline("i64,utf8:nullable").Reduced(nulls_differ, {0, 1}), {rows});
  const Numbers equal = Passed(Pipeline("i64,utf8:nullable").Reduced(nulls_are_equal, {0, 1}), {rows});
  const auto has = [](const Numbers& passed, int64_t row) {
    return std::count(passed.begin(), passed.end(), row) == 1;
  };
  for (int64_t row = 1; row < 10; ++row) EXPECT_TRUE(has(differ, row) && has(equal, row)) << row;
  EXPECT_FALSE(has(differ, 0));
  EXPECT_TRUE(has(equal, 0));
  EXPECT_FALSE(has(differ, 299));
  EXPECT_LT(differ.size(), 20u);
  EXPECT_LT(equal.size(), 20u);
}

// Columns stay, those of earlier probes too, and what follows reads them as before.
TEST(PipelineReduction, StandsBetweenOtherSteps) {
  const Numbers suppliers = {1, 2, 3, 4}, nations = {10, 20, 10, 30}, wanted = {10, 30}, rows = {4, 3, 9, 2, 1, 1};
  const quern::Join supplier =
      Built("join.inner keys=i64 build=i64", {{{ColumnOf(suppliers)}, {ColumnOf(nations)}, 4}});
  const quern::Join nation = Built("join.inner keys=i64", {RowsOf(wanted)});
  const auto map = New<quern::Job>("map in=i64 out=add($0,1:i64)");
  Pipeline pipeline("i64");
  pipeline.Through(supplier, {0}, {}).Reduced(nation, {0}).Through(map, {0});
  EXPECT_EQ(Passed(pipeline, {RowsOf(rows)}), (Numbers{30, 10, 10, 10}));
}

// Where all rows match, most pieces are not tested; `adapt=off` tests all.
TEST(PipelineReduction, StopsWhereItTakesNothingAway) {
  const Numbers keys = {1};
  const Numbers matching(100'000, 1), others(100'000, 2);
  for (const bool adapts : {true, false}) {
    const quern::Join join = Built("join.inner keys=i64", {RowsOf(keys)}, Engine::kJit, quern::StringBytes::kStay,
                                   adapts ? "" : "adapt=off");
    const Pipeline pipeline = Pipeline("i64").Reduced(join, {0});
    EXPECT_EQ(Passed(pipeline, {RowsOf(others), RowsOf(matching)}), matching);
    const size_t num_passed = Passed(pipeline, {RowsOf(matching), RowsOf(others)}).size();
    EXPECT_EQ(num_passed, adapts ? 200'000u : 100'000u);
  }
}

// Build rows that have had no match come out though the pipeline is open: it does not probe.
TEST(PipelineReduction, LeavesNoMarkInTheTable) {
  const Numbers keys = {1, 2}, rows = {2, 3};
  quern::Join join = Built("join.right_anti keys=i64 build=i64", {{{ColumnOf(keys)}, {ColumnOf(keys)}, 2}});
  auto sums = New<quern::Aggregate>("aggregate keys=i64 aggs=count_star");
  quern::Input input = Take(Pipeline("i64").Reduced(join, {0}).Into(sums, QUERN_PORT_ROWS, {0}));
  Done(input.Append(RowsOf(rows).batch()));
  EXPECT_EQ(quern_test::RowsOf(join.Unmatched(), "l"), (Lines{"1", "2"}));
  Done(input.Append(RowsOf(rows).batch()));
  Done(input.Finish());
  Done(sums.Finalise());
  EXPECT_EQ(quern_test::RowsOf(sums.Groups(), "ll"), (Lines{"2|2"}));
}

// A table of which a part is on disk tells nothing of most keys.
TEST(PipelineReduction, KeepsRowsWhoseMatchMayBeOnDisk) {
  Numbers keys;
  for (int64_t i = 0; i < 400'000; ++i) keys.push_back(i * 1'000'003);
  quern_spill_options spill = {};
  quern_job_options options = LimitedTo(uint64_t{16} << 20);
  options.spill = &spill;
  quern::Join join = Take(quern::Join::Create(KernelOf("join.inner keys=i64 build=i64"), options));
  Feed(join.Build(), {{{ColumnOf(keys)}, {ColumnOf(keys)}, keys.size()}});
  Done(join.Finalise());
  EXPECT_GT(join.Stats().spilled_rows, 0u);
  EXPECT_EQ(Passed(Pipeline("i64").Reduced(join, {0}), {RowsOf(keys)}), keys);
}

TEST(PipelineReduction, ErrorsSayWhatIsAccepted) {
  const Numbers keys = {1};
  const auto filter = New<quern::Job>("filter i64 < 5");
  const quern::Join join = Built("join.semi keys=i64 probe=i64", {RowsOf(keys)});
  const uint32_t first[] = {0};
  const bool reductions[] = {true};
  const auto error = [&](const quern_pipeline_step& step, const char* columns) {
    quern_pipeline_options options = {};
    options.struct_size = sizeof(options);
    options.columns = columns;
    options.steps = &step;
    options.num_steps = 1;
    options.keys = first;
    options.num_keys = 1;
    options.on_rows = [](void*, const quern_batch*) { return true; };
    options.reductions = reductions;
    quern_input* input = nullptr;
    return ErrorOf(QUERN_INVALID_ARGUMENT, quern_pipeline_input_create, nullptr, QUERN_PORT_ROWS, &options, &input);
  };
  EXPECT_EQ(error({filter.handle(), first, 1, nullptr, 0, nullptr}, "i64"),
            "step 0: a reduction by a job of filter; accepted: a join");
  EXPECT_EQ(error({join.handle(), first, 1, first, 1, nullptr}, "i64"), "number of payload of step 0: 1; accepted: 0");
  EXPECT_EQ(error({join.handle(), first, 1, nullptr, 0, nullptr}, "i32"),
            "keys of step 0[0]: column 0 of i32; accepted: i64");
}

}  // namespace
}  // namespace quern_test
