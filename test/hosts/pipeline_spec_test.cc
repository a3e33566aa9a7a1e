// SPDX-License-Identifier: Apache-2.0
// Pipelines by their spec: one kernel, one job, and the rows of the same steps one by one.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "test/hosts/jobs.h"

namespace quern_test {
namespace {

using quern::PipelineJob;
using Numbers = std::vector<int64_t>;

// Sales of items that have a category: $0 day, $1 item, $2 price, $3 discount in percent.
constexpr char kSums[] =
    "pipeline in=i32,i64,i64,i64 | filter i32 >= 20 [$0]"
    " | map in=i64,i64 out=multiply_checked($0,subtract_checked(100:i64,$1)) [$2, $3]"
    " | probe join.inner keys=i64 build=i64 probe=i64 [$1; $4] | aggregate keys=i64 aggs=sum(i64),count_star [$1; $0]";

struct Sales {
  std::vector<int32_t> day = {21, 20, 25, 19, 30};
  Numbers item = {1, 3, 2, 1, 9}, price = {500, 300, 200, 700, 100}, discount = {10, 0, 50, 0, 0};

  Table table() const { return {{ColumnOf(day), ColumnOf(item), ColumnOf(price), ColumnOf(discount)}, {}, day.size()}; }
};

quern::Join Items(Engine engine, const char* kind = "inner", const char* probe = "i64") {
  static const Numbers item = {1, 2, 3}, category = {10, 10, 20};
  auto join = New<quern::Join>(std::string("join.") + kind + " keys=i64 build=i64 probe=" + probe, engine);
  Feed(join.Build(), {{{ColumnOf(item)}, {ColumnOf(category)}, 3}});
  Done(join.Finalise());
  return join;
}

Lines RowsOf(quern::Job* job, const char* kinds) { return quern_test::RowsOf(job->NewOutput(QUERN_PORT_ROWS), kinds); }

TEST(PipelineSpec, FilterMapProbeAndAggregate) {
  for (const Engine engine : {Engine::kJit, Engine::kGeneric}) {
    const quern::Join items = Items(engine);
    auto sums = Take(PipelineJob::Create(KernelOf(kSums, engine), {&items}));
    Feed(sums.Rows(), {Sales().table()});
    Done(sums.Finalise());
    EXPECT_EQ(RowsOf(&sums, "lll"), (Lines{"10|55000|2", "20|30000|1"}));
    EXPECT_EQ(Take(sums.Step(0)).Counters().rows, 5u);
    EXPECT_EQ(Take(sums.Step(3)).Stats().num_rows, 2u);
  }
}

TEST(PipelineSpec, TextsOfTheKernel) {
  const quern::Kernel kernel = KernelOf(kSums);
  EXPECT_EQ(kernel.Text("spec"), kSums);
  EXPECT_EQ(kernel.Text("engine"), "jit");
  EXPECT_NE(kernel.Text("plan").find("piece_rows = 16384"), std::string::npos);
  EXPECT_NE(kernel.Text("plan").find("# 3: aggregate keys=i64"), std::string::npos);
  EXPECT_NE(kernel.Text("layout").find("# 0: filter i32 >= 20 [$0]"), std::string::npos);
  EXPECT_EQ(kernel.Text("warning"), "");
}

TEST(PipelineSpec, JoinsPassOnWhatTheyHaveLeft) {
  const std::string spec =
      "pipeline in=i64,i64 | probe join.full keys=i64 build=i64 probe=i64 [$0; $1]"
      " | map in=i64:nullable out=coalesce($0,-1:i64) [$0] | sort keys=i64:out payload=i64:nullable [$2; $1]";
  for (const Engine engine : {Engine::kJit, Engine::kGeneric}) {
    const quern::Join items = Items(engine, "full");
    auto sorted = Take(PipelineJob::Create(KernelOf(spec, engine), {&items}));
    const Numbers item = {3, 9}, price = {7, 8};
    Feed(sorted.Rows(), {{{ColumnOf(item), ColumnOf(price)}, {}, 2}});
    Done(sorted.Finalise());
    EXPECT_EQ(RowsOf(&sorted, "ll"), (Lines{"-1|10", "-1|10", "7|20", "8|null"}));
  }
}

// Kernels of filters take 64 strings at a time, from the first offset to the last: nulls lie between the copies, too.
TEST(PipelineSpec, FiltersCopiesOfStringsBetweenNulls) {
  const uint64_t num_rows = 192;
  std::vector<std::string> values;
  std::vector<bool> valid;
  Lines expected;
  for (uint64_t i = 0; i < num_rows; ++i) {
    values.push_back(i % 3 == 0 ? "a b" : i % 3 == 1 ? "ab" : "a text of more than twelve bytes");
    valid.push_back(i % 7 < 4 && i < 180);
    if (valid.back() && i % 3 != 1) expected.push_back(values.back());
  }
  const std::vector<uint8_t> bitmap = Bitmap(valid);
  const StringVector<int32_t> narrow(values);
  const StringVector<int64_t> wide(values);
  const ViewVector views(values);
  const std::tuple<const char*, const char*, quern_column> columns[] = {
      {"utf8", "s", narrow.column()}, {"large_utf8", "S", wide.column()}, {"utf8_view", "v", views.column()}};
  for (const auto& [type, kind, column] : columns) {
    const std::string nullable = std::string(type) + ":nullable";
    const std::string spec = "pipeline in=" + nullable + " | filter " + nullable +
                             " like x'252025' [$0] | sort keys=" + nullable + ":out [$0]";
    for (const Engine engine : {Engine::kJit, Engine::kGeneric}) {
      for (const auto bytes : {quern::StringBytes::kStay, quern::StringBytes::kCopied}) {
        auto sorted = Take(PipelineJob::Create(KernelOf(spec, engine)));
        Feed(sorted.Rows(bytes), {{{WithValidity(column, bitmap)}, {}, num_rows}});
        Done(sorted.Finalise());
        EXPECT_EQ(RowsOf(&sorted, kind), Ordered(expected)) << spec;
      }
    }
  }
}

TEST(PipelineSpec, BuildsATableForAnotherPipeline) {
  const char kTable[] =
      "pipeline in=i64,i64 | filter i64 > 1 [$0] | build join.inner keys=i64 build=i64 probe=i64 [$0; $1]";
  auto table = Take(PipelineJob::Create(KernelOf(kTable)));
  const Numbers item = {1, 2, 3}, category = {10, 10, 20};
  Feed(table.Rows(), {{{ColumnOf(item), ColumnOf(category)}, {}, 3}});
  Done(table.Finalise());
  auto sums = Take(PipelineJob::Create(KernelOf(kSums), {&table}));
  Feed(sums.Rows(), {Sales().table()});
  Done(sums.Finalise());
  EXPECT_EQ(RowsOf(&sums, "lll"), (Lines{"10|10000|1", "20|30000|1"}));
}

TEST(PipelineSpec, EmitsRowsToTheHost) {
  const char kRows[] = "pipeline in=i64,i64 | probe join.right keys=i64 build=i64 probe=i64 [$0; $1] | emit [$1, $0]";
  const quern::Join items = Items(Engine::kJit, "right");
  Numbers categories;
  quern_job_options options = {};
  options.on_rows = [](void* context, const quern_batch* rows) {
    for (uint64_t i = 0; i < rows->num_rows; ++i) {
      const uint64_t row = rows->selection == nullptr ? i : rows->selection[i];
      static_cast<Numbers*>(context)->push_back(static_cast<const int64_t*>(rows->keys[0].values)[row]);
    }
    return true;
  };
  options.rows_context = &categories;
  auto job = Take(PipelineJob::Create(KernelOf(kRows), {&items}, options));
  const Numbers item = {3, 9}, price = {7, 8};
  Feed(job.Rows(), {{{ColumnOf(item), ColumnOf(price)}, {}, 2}});
  EXPECT_EQ(categories, Numbers{20});
  Done(job.Finalise());
  EXPECT_EQ(categories, (Numbers{20, 10, 10}));
}

TEST(PipelineSpec, WholeRunOfATableAndItsProbe) {
  auto table = Take(PipelineJob::Create(
      KernelOf("pipeline in=i64,i64 | filter i64 > 1 [$0] | build join.inner keys=i64 build=i64 probe=i64 [$0; $1]")));
  const Numbers item = {1, 2, 3}, category = {10, 10, 20}, price = {7, 8, 9};
  const Table rows = {{ColumnOf(item), ColumnOf(category)}, {}, 3}, probe = {{ColumnOf(item)}, {ColumnOf(price)}, 3};
  const quern_batch batches[] = {rows.batch(), probe.batch()};
  const quern_run_input inputs[] = {{QUERN_PORT_ROWS, &batches[0], 1}, {QUERN_PORT_PROBE, &batches[1], 1}};
  EXPECT_EQ(Take(table.Run(inputs)), 2u);
}

// Behind a probe that copies rows their ids are counted anew, also of rows that a filter behind it takes away.
TEST(PipelineSpec, AStableSortKeepsTheOrderOfRowsBehindAProbeAndAFilter) {
  const char kSorted[] =
      "pipeline in=i64,i64 | probe join.inner keys=i64 build=i64 probe=i64,i64 [$0; $0, $1] | filter i64 > 0 [$1]"
      " | sort keys=i64:out payload=i64 stable [$0; $1]";
  auto join = New<quern::Join>("join.inner keys=i64 build=i64 probe=i64,i64");
  const Numbers key = {7, 7}, build_value = {1, 2};
  Feed(join.Build(), {{{ColumnOf(key)}, {ColumnOf(build_value)}, 2}});
  Done(join.Finalise());
  auto sorted = Take(PipelineJob::Create(KernelOf(kSorted), {&join}));
  Numbers probe(20'000, 7), value;
  for (int64_t i = 0; i < 20'000; ++i) value.push_back(i < 4000 ? 0 : i);
  Feed(sorted.Rows(), {{{ColumnOf(probe), ColumnOf(value)}, {}, probe.size()}});
  Done(sorted.Finalise());
  quern::Output output = Take(sorted.NewOutput(QUERN_PORT_ROWS));
  int64_t last = 0, rows = 0;
  for (quern_result_state state = QUERN_RESULT_MORE; state == QUERN_RESULT_MORE;) {
    const quern_result& result = *Take(output.Next());
    const auto* const values = static_cast<const int64_t*>(result.columns[1].values);
    for (uint64_t i = 0; i < result.num_rows; ++i, ++rows) {
      ASSERT_GE(values[i], last);
      last = values[i];
    }
    state = result.state;
  }
  EXPECT_EQ(rows, 32'000);
}

TEST(PipelineSpec, WholeRunOnThreads) {
  const quern::Join items = Items(Engine::kJit);
  auto sums = Take(PipelineJob::Create(KernelOf(kSums), {&items}));
  const Sales sales;
  const Table table = sales.table();
  const std::vector<quern_batch> batches(100, table.batch());
  const quern_run_input input = {QUERN_PORT_ROWS, batches.data(), batches.size()};
  Lines lines;
  EXPECT_EQ(Take(sums.Run({&input, 1}, {},
                          [&](const quern_result& rows) {
                            AddLines(rows, "lll", &lines);
                            return true;
                          })),
            2u);
  std::sort(lines.begin(), lines.end());
  EXPECT_EQ(lines, (Lines{"10|5500000|200", "20|3000000|100"}));
}

}  // namespace
}  // namespace quern_test
