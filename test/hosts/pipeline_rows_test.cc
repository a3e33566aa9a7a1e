// SPDX-License-Identifier: Apache-2.0
// What pipelines do with rows: their ids, few rows of large batches, rows that a filter has taken away, strings that a
// sink keeps, and decimals between steps. (Steps, kinds and errors: pipeline_test.cc.)
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "test/hosts/arrow_arrays.h"
#include "test/hosts/jobs.h"

namespace quern_test {
namespace {

using quern::Pipeline;
using Numbers = std::vector<int64_t>;

// ---- row ids ----

// Refuses the request with number `left`, and no other.
struct OneRefusal {
  int64_t left = -1;
  static bool Reserve(void* host, uint64_t /*bytes*/) { return static_cast<OneRefusal*>(host)->left-- != 0; }
  static void Release(void* /*host*/, uint64_t /*bytes*/) {}
};

// 0, 1, 2, 3, 0, .. as an array, which has no row ids.
TestArrayPtr Cycles(size_t num_rows) {
  Numbers numbers;
  for (size_t i = 0; i < num_rows; ++i) numbers.push_back(static_cast<int64_t>(i % 4));
  return StructArray(static_cast<int64_t>(num_rows), FixedArray(numbers));
}

// The rows of two batches of 0 .. 3 that a filter leaves, with their ids.
Lines IdsBehindAFilter(OneRefusal* memory, bool* was_refused) {
  quern_job_options options = {};
  options.reserve = OneRefusal::Reserve;
  options.release = OneRefusal::Release;
  options.host = memory;
  const auto filter = New<quern::Job>("filter i64 in (0,2)");
  auto sort = New<quern::Sort>("sort keys=i64:out payload=rowid", Engine::kJit, options);
  {
    quern::Input input = Take(Pipeline("i64").Through(filter, {0}).Into(sort, QUERN_PORT_ROWS, {0}, {0}, 4));
    for (const size_t num_rows : {12u, 8u}) {
      quern::Status status = input.AppendArrow(&Cycles(num_rows)->array);
      if (!status.ok()) *was_refused = true;
      if (!status.ok()) status = input.AppendArrow(&Cycles(num_rows)->array);
      Done(status);
    }
    Done(input.Finish());
  }
  memory->left = -1;
  Done(sort.Finalise());
  return RowsOf(sort.Sorted(), "lr");
}

// Pieces of 4 rows, of which 2 pass: an id is the number of the row among those that came in.
TEST(PipelineRows, IdsOfBatchesWithoutIds) {
  const Lines expected = Ordered({"0|0", "0|4", "0|8", "0|12", "0|16", "2|2", "2|6", "2|10", "2|14", "2|18"});
  OneRefusal memory;
  bool was_refused = false;
  EXPECT_EQ(IdsBehindAFilter(&memory, &was_refused), expected);
  EXPECT_FALSE(was_refused);
  int64_t num_refused = 0;
  for (int64_t n = 0; n < 100; ++n) {
    memory.left = n;
    was_refused = false;
    EXPECT_EQ(IdsBehindAFilter(&memory, &was_refused), expected) << n;
    if (!was_refused) break;
    ++num_refused;
  }
  EXPECT_GT(num_refused, 0);
}

// Inputs of one job count together.
TEST(PipelineRows, IdsOfTwoInputs) {
  const auto filter = New<quern::Job>("filter i64 in (0,2)");
  auto sort = New<quern::Sort>("sort keys=i64:out payload=rowid");
  const auto into = [&] { return Take(Pipeline("i64").Through(filter, {0}).Into(sort, QUERN_PORT_ROWS, {0}, {0})); };
  quern::Input first = into(), second = into();
  Done(first.AppendArrow(&Cycles(4)->array));
  Done(second.AppendArrow(&Cycles(4)->array));
  Done(first.AppendArrow(&Cycles(4)->array));
  Done(first.Finish());
  Done(second.Finish());
  Done(sort.Finalise());
  EXPECT_EQ(RowsOf(sort.Sorted(), "lr"), Ordered({"0|0", "0|4", "0|8", "2|2", "2|6", "2|10"}));
}

// ---- few rows of a large batch ----

constexpr uint64_t kManyRows = 20'000'000;

struct Free {
  void operator()(int64_t* memory) const { std::free(memory); }
};

// A column of which the rows that a test writes are all that takes memory.
std::unique_ptr<int64_t, Free> LargeColumn() {
  return std::unique_ptr<int64_t, Free>(static_cast<int64_t*>(std::calloc(kManyRows, sizeof(int64_t))));
}

// A map puts its results beside the rows: the memory for it does not grow with their numbers.
TEST(PipelineRows, FewRowsOfALargeBatch) {
  const auto values = LargeColumn();
  const std::vector<uint32_t> selection = {19'999'000, 19'999'003, 19'999'999, 3, 8, 100'000, 10'000'000, 9'999'999};
  std::vector<uint8_t> valid(kManyRows / 8);
  Lines expected;
  for (const uint32_t row : selection) {
    values.get()[row] = row;
    if (row % 2 != 0) valid[row / 8] = static_cast<uint8_t>(valid[row / 8] | 1u << row % 8);
    const std::string id = std::to_string(row + 5);
    expected.push_back(row % 2 == 0 ? "null|" + id : std::to_string(row * 2) + "|" + id);
  }
  quern_column column = {};
  column.values = values.get();
  column.validity = valid.data();
  const Table table = {{column}, {}, kManyRows, selection, 5};
  const auto map = New<quern::Job>("map in=i64:nullable out=multiply_checked($0,2:i64)");
  for (const uint64_t piece_rows : {0, 1, 3}) {
    auto sort = New<quern::Sort>("sort keys=i64:nullable:out payload=rowid", Engine::kJit, LimitedTo(32 << 20));
    Feed(Pipeline("i64:nullable").Through(map, {0}).Into(sort, QUERN_PORT_ROWS, {1}, {0}, piece_rows), {table});
    Done(sort.Finalise());
    EXPECT_EQ(RowsOf(sort.Sorted(), "lr"), Ordered(expected)) << piece_rows;
  }
}

TEST(PipelineRows, ErrorsOfALargeBatchNameTheRow) {
  const auto values = LargeColumn();
  const std::vector<uint32_t> selection = {5, 19'999'000, 19'999'001};
  values.get()[5] = values.get()[19'999'000] = 1;
  quern_column column = {};
  column.values = values.get();
  const Table table = {{column}, {}, kManyRows, selection, 100};
  const auto map = New<quern::Job>("map in=i64 out=divide_checked(6:i64,$0)");
  auto sums = New<quern::Aggregate>("aggregate aggs=sum(i64)");
  quern::Input input = Take(Pipeline("i64").Through(map, {0}).Into(sums, QUERN_PORT_ROWS, {}, {1}));
  EXPECT_EQ(std::string(input.Append(table.batch()).text()).substr(0, 66),
            "row 19999101: divide_checked(6:i64,$0) of 6 and 0: division by 0; ");
}

// ---- rows that a filter has taken away ----

// Nine of ten rows are left of each piece. Computing all rows of the first piece fails, and of the 17th; the map
// computes nothing twice in the others.
TEST(PipelineRows, MapsDoNotFailInEachPiece) {
  const auto filter = New<quern::Job>("filter i64 <> 0");
  const auto map = New<quern::Job>("map in=i64,i64 out=divide_checked($0,$1)");
  auto sums = New<quern::Aggregate>("aggregate aggs=sum(i64)");
  Numbers dividend(2000, 10), divisor(2000, 2);
  for (size_t i = 0; i < 2000; i += 10) divisor[i] = 0;
  Feed(Pipeline("i64,i64").Through(filter, {1}).Through(map, {0, 1}).Into(sums, QUERN_PORT_ROWS, {}, {2}, 100),
       {{{ColumnOf(dividend), ColumnOf(divisor)}, {}, 2000}});
  Done(sums.Finalise());
  EXPECT_EQ(RowsOf(sums.Groups(), "l"), Lines{"9000"});
  EXPECT_EQ(map.Counters().rows, 20 * 90 + 2 * 100u);
}

// ---- strings that a sink keeps ----

// One row of each batch finds a string, which takes as much memory as it is long, not as a piece of strings.
TEST(PipelineRows, KeptStringsTakeTheirBytes) {
  const Numbers keys = {1, 2};
  const std::vector<std::string> names = {"a name of more than twelve bytes", "another one of more than twelve"};
  const StringVector<int32_t> offsets(names);
  const ViewVector views(names);
  for (const bool has_views : {false, true}) {
    const std::string type = has_views ? "utf8_view" : "utf8";
    const Table names_table = {{ColumnOf(keys)}, {has_views ? views.column() : offsets.column()}, 2};
    const quern::Join join = Built("join.inner keys=i64 build=" + type + " probe=i64", {names_table});
    auto sort = New<quern::Sort>("sort keys=i64:out payload=" + type, Engine::kJit, LimitedTo(8 << 20));
    quern::Input input = Take(Pipeline("i64,i64").Through(join, {0}, {1}).Into(sort, QUERN_PORT_ROWS, {0}, {1}));
    Lines expected;
    for (int64_t i = 0; i < 500; ++i) {
      const Numbers found = {7, i % 2 + 1, 9}, numbers = {-1, i, -1};
      Done(input.Append(Table{{ColumnOf(found), ColumnOf(numbers)}, {}, 3}.batch()));
      expected.push_back(std::to_string(i) + "|" + names[static_cast<size_t>(i % 2)]);
    }
    Done(input.Finish());
    Done(sort.Finalise());
    EXPECT_EQ(InOrder(sort.Sorted(), has_views ? "lv" : "ls"), expected) << type;
  }
}

// The texts of a table pass through another table into a sort. Both tables are gone before the sorted rows are read,
// and so is the memory of texts that the first one did not copy.
TEST(PipelineRows, TextsOutliveTheirTables) {
  for (const StringBytes bytes : {StringBytes::kStay, StringBytes::kCopied}) {
    for (const uint64_t limit : {0, 8 << 20}) {
      auto sort = New<quern::Sort>("sort keys=i64:out payload=utf8_view:nullable", Engine::kJit, LimitedTo(limit));
      Lines expected;
      {
        auto second = New<quern::Join>("join.inner keys=i64 build=utf8_view:nullable probe=i64");
        {
          const Numbers keys = {1, 2, 3};
          std::vector<std::string> names = {"a name of more than twelve bytes", "short", "null"};
          const ViewVector views(names);
          const std::vector<uint8_t> valid = Bitmap({true, true, false});
          const Table table = {{ColumnOf(keys)}, {WithValidity(views.column(), valid)}, 3};
          const quern::Join first =
              Built("join.inner keys=i64 build=utf8_view:nullable probe=i64", {table}, Engine::kJit, bytes);
          quern::Input input =
              Take(Pipeline("i64,i64").Through(first, {0}, {1}).Into(second, QUERN_PORT_BUILD, {0}, {1}, 0, bytes));
          const Numbers found = {2, 1, 3, 1}, numbers = {10, 11, 12, 13};
          Done(input.Append(Table{{ColumnOf(found), ColumnOf(numbers)}, {}, 4}.batch()));
          Done(input.Finish());
        }
        Done(second.Finalise());
        quern::Input input = Take(Pipeline("i64,i64").Through(second, {0}, {1}).Into(sort, QUERN_PORT_ROWS, {0}, {1}));
        for (int64_t i = 0; i < 40; ++i) {
          const Numbers found = {i % 4 + 10, 99}, numbers = {i, -1};
          Done(input.Append(Table{{ColumnOf(found), ColumnOf(numbers)}, {}, 2}.batch()));
          const char* const names[] = {"short", "a name of more than twelve bytes", "null",
                                       "a name of more than twelve bytes"};
          expected.push_back(std::to_string(i) + "|" + names[i % 4]);
        }
        Done(input.Finish());
      }
      Done(sort.Finalise());
      EXPECT_EQ(InOrder(sort.Sorted(), "lv"), expected);
    }
  }
}

// A host may be done with a table's account when it has destroyed its handles, also where a sort has the table's texts.
TEST(PipelineRows, ATableThatAHostCountsGoesWithItsHandles) {
  auto sort = New<quern::Sort>("sort keys=i64:out payload=utf8_view");
  HostMemory memory;
  {
    const Numbers keys = {1};
    const ViewVector views({"a name of more than twelve bytes"});
    auto join = New<quern::Join>("join.inner keys=i64 build=utf8_view probe=i64", Engine::kJit, memory.options());
    Feed(join.Build(StringBytes::kCopied), {{{ColumnOf(keys)}, {views.column()}, 1}});
    Done(join.Finalise());
    EXPECT_GT(memory.used, 0);
    quern::Input input = Take(Pipeline("i64,i64").Through(join, {0}, {1}).Into(sort, QUERN_PORT_ROWS, {0}, {1}));
    Done(input.Append(Table{{ColumnOf(keys), ColumnOf(keys)}, {}, 1}.batch()));
    Done(input.Finish());
  }
  EXPECT_EQ(memory.used, 0);
  Done(sort.Finalise());
  EXPECT_EQ(RowsOf(sort.Sorted(), "lv"), Lines{"1|a name of more than twelve bytes"});
}

// Strings that a map makes are the sink's, in each of its pieces, whether or not the host's own strings stay.
TEST(PipelineRows, StringsOfAMapOutliveItsPieces) {
  constexpr int64_t kRows = 20000;
  Numbers keys;
  for (int64_t i = 0; i < kRows; ++i) keys.push_back(i * 7919 % kRows);
  const Table source = {{ColumnOf(keys)}, {}, keys.size()};
  const auto text_of = [](int64_t key) { return "a text of more than twelve bytes, " + std::to_string(key); };
  for (const char* type : {"utf8", "utf8_view", "large_utf8"}) {
    const auto map = New<quern::Job>("map in=i64 out=concat('a text of more than twelve bytes, ':" + std::string(type) +
                                     ",cast($0," + type + "))");
    const auto some = New<quern::Job>("filter i64 < 4000");
    for (const StringBytes bytes : {StringBytes::kStay, StringBytes::kCopied}) {
      for (const bool filters : {false, true}) {
        auto sort = New<quern::Sort>("sort keys=i64:out payload=" + std::string(type));
        Pipeline pipeline("i64");
        if (filters) pipeline.Through(some, {0});
        pipeline.Through(map, {0});
        {
          quern::Input input = Take(pipeline.Into(sort, QUERN_PORT_ROWS, {0}, {1}, 0, bytes));
          Done(input.Append(source.batch()));
          Done(input.Finish());
        }
        Done(sort.Finalise());
        Lines expected;
        for (int64_t key = 0; key < (filters ? 4000 : kRows); ++key)
          expected.push_back(std::to_string(key) + "|" + text_of(key));
        std::sort(expected.begin(), expected.end());
        const char* const read = std::string(type) == "utf8" ? "ls" : std::string(type) == "utf8_view" ? "lv" : "lS";
        EXPECT_EQ(RowsOf(sort.Sorted(), read), Ordered(expected)) << type;
      }
    }
  }
}

TEST(PipelineRows, MergesAreRefused) {
  auto merge = Take(quern::Merge::Create(KernelOf("sort keys=i64:out"), 1));
  EXPECT_EQ(
      Pipeline("i64").Into(merge, QUERN_PORT_ROWS, {0}).status().text(),
      "job that takes the rows of a pipeline: merge, which reads batches in place until their rows have come out; "
      "accepted: join, aggregation, sort, set operation");
}

// ---- decimals between steps ----

std::string ErrorOf(const Pipeline& pipeline, const quern::Job& sums, uint32_t column) {
  return pipeline.Into(sums, QUERN_PORT_ROWS, {}, {column}).status().text();
}

// Digits and scale of a computed decimal are those that the next map reads, through filters and probes.
TEST(PipelineRows, DecimalsOfAnotherScaleAreRefused) {
  const auto product = New<quern::Job>("map in=decimal128(15,2),decimal128(15,2) out=multiply($0,$1)");
  const auto same = New<quern::Job>("map in=decimal128(30,4) out=negate($0)");
  const auto wider = New<quern::Job>("map in=decimal128(38,4) out=negate($0)");
  const auto narrower = New<quern::Job>("map in=decimal128(20,4) out=negate($0)");
  const auto other = New<quern::Job>("map in=decimal128(30,2) out=negate($0)");
  const auto filter = New<quern::Job>("filter i64 > 1");
  const quern::Join join = Built("join.inner keys=i64 probe=decimal128 build=decimal128", {});
  const auto sums = New<quern::Aggregate>("aggregate aggs=sum(decimal128)");
  const auto begin = [&] {
    return Pipeline("i64,decimal128,decimal128").Through(product, {1, 2}).Through(filter, {0});
  };
  EXPECT_EQ(ErrorOf(begin().Through(same, {3}), sums, 4), "");
  EXPECT_EQ(ErrorOf(begin().Through(wider, {3}), sums, 4), "");
  EXPECT_EQ(ErrorOf(begin().Through(other, {1}), sums, 4), "");
  EXPECT_EQ(ErrorOf(begin().Through(narrower, {3}), sums, 4),
            "columns of step 2[0]: column 3 of decimal128(30,4); accepted: decimal128(20,4)");
  EXPECT_EQ(ErrorOf(begin().Through(other, {3}), sums, 4),
            "columns of step 2[0]: column 3 of decimal128(30,4); accepted: decimal128(30,2)");
  EXPECT_EQ(ErrorOf(begin(), New<quern::Aggregate>("aggregate in=decimal128(30,4) aggs=sum(negate($0))"), 3), "");
  EXPECT_EQ(ErrorOf(begin(), New<quern::Aggregate>("aggregate in=decimal128(30,2) aggs=sum(negate($0))"), 3),
            "payload of the sink[0]: column 3 of decimal128(30,4); accepted: decimal128(30,2)");
  EXPECT_EQ(ErrorOf(begin().Through(join, {0}, {3}).Through(other, {1}), sums, 1), "");
  EXPECT_EQ(ErrorOf(begin().Through(join, {0}, {3}).Through(other, {0}), sums, 1),
            "columns of step 3[0]: column 0 of decimal128(30,4); accepted: decimal128(30,2)");
}

}  // namespace
}  // namespace quern_test
