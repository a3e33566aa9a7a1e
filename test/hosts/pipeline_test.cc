// SPDX-License-Identifier: Apache-2.0
// Pipelines through the C ABI: random rows through filters, maps and probes of each kind into each kind of job, in
// pieces of any size, compared with rows that the test makes itself.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "test/hosts/arrow_arrays.h"
#include "test/hosts/jobs.h"
#include "test/hosts/refusals.h"
#include "test/unit/seed.h"

namespace quern_test {
namespace {

using quern::Pipeline;
using Numbers = std::vector<int64_t>;

// ---- rows ----

struct Row {
  int64_t a, b, c;
};

// Columns a and b, and c, which may be null.
struct Source {
  Numbers a, b, c;
  std::vector<bool> valid;
  std::vector<uint8_t> bitmap;
  std::vector<uint32_t> selection;

  Source(std::mt19937_64* random, uint64_t num_rows, bool selects) {
    for (uint64_t i = 0; i < num_rows; ++i) {
      a.push_back(static_cast<int64_t>((*random)() % 50));
      b.push_back(static_cast<int64_t>((*random)() % 1000));
      c.push_back(static_cast<int64_t>((*random)() % 20));
      valid.push_back((*random)() % 5 != 0);
      if (selects && (*random)() % 3 != 0) selection.push_back(static_cast<uint32_t>(i));
    }
    bitmap = Bitmap(valid, 3);
  }
  Table table() const {
    return {{ColumnOf(a), ColumnOf(b), WithValidity(ColumnOf(c), bitmap, 3)}, {}, a.size(), selection};
  }
  std::vector<uint32_t> Rows() const {
    if (!selection.empty()) return selection;
    std::vector<uint32_t> all(a.size());
    for (uint32_t i = 0; i < all.size(); ++i) all[i] = i;
    return all;
  }
  std::optional<int64_t> C(uint32_t row) const { return valid[row] ? std::optional(c[row]) : std::nullopt; }
};

const char kColumns[] = "i64,i64,i64:nullable";

std::vector<Source> Sources(std::mt19937_64* random) {
  std::vector<Source> sources;
  for (const uint64_t num_rows : {1, 20, 0, 7000}) sources.emplace_back(random, num_rows, num_rows == 20);
  return sources;
}

void FeedPipeline(const Pipeline& pipeline, const quern::Job& job, quern_port port, const std::vector<uint32_t>& keys,
                  const std::vector<uint32_t>& payload, const std::vector<Source>& sources, uint64_t piece_rows) {
  quern::Input input = Take(pipeline.Into(job, port, keys, payload, piece_rows));
  for (const Source& source : sources) Done(input.Append(source.table().batch()));
  Done(input.Finish());
}

constexpr uint64_t kPieces[] = {1, 7, 100, 0, 65536};

// ---- filters and maps ----

// The sums of a * b + c, null c as 0, by a, of rows with b below 500.
TEST(Pipeline, FilterAndMapIntoAnAggregation) {
  std::mt19937_64 random(quern::test::SeedOfTest());
  const std::vector<Source> sources = Sources(&random);
  std::map<int64_t, std::pair<int64_t, int64_t>> expected;
  for (const Source& source : sources) {
    for (const uint32_t row : source.Rows()) {
      if (source.b[row] >= 500) continue;
      auto& group = expected[source.a[row]];
      group.first += source.a[row] * source.b[row] + source.C(row).value_or(0);
      ++group.second;
    }
  }
  Lines lines;
  for (const auto& [key, group] : expected)
    lines.push_back(std::to_string(key) + "|" + std::to_string(group.first) + "|" + std::to_string(group.second));
  for (const Engine engine : {Engine::kJit, Engine::kGeneric}) {
    for (const uint64_t piece_rows : kPieces) {
      const auto filter = New<quern::Job>("filter i64 < 500", engine);
      const auto map = New<quern::Job>(
          "map in=i64,i64,i64:nullable out=add_checked(multiply_checked($0,$1),coalesce($2,0:i64))", engine);
      auto sums = New<quern::Aggregate>("aggregate keys=i64 aggs=sum(i64),count_star", engine);
      FeedPipeline(Pipeline(kColumns).Through(filter, {1}).Through(map, {0, 1, 2}), sums, QUERN_PORT_ROWS, {0}, {3},
                   sources, piece_rows);
      Done(sums.Finalise());
      EXPECT_EQ(RowsOf(sums.Groups(), "lll"), Ordered(lines)) << piece_rows;
    }
  }
}

// A row that a filter has taken away raises no error, however few or many rows are left; one that is left does.
TEST(Pipeline, RowsThatAreFilteredRaiseNoErrors) {
  const auto filter = New<quern::Job>("filter i64 <> 0");
  const auto map = New<quern::Job>("map in=i64,i64 out=divide_checked($0,$1)");
  for (const int64_t zeros_of_10 : {1, 9}) {
    auto sums = New<quern::Aggregate>("aggregate aggs=sum(i64)");
    quern::Input input =
        Take(Pipeline("i64,i64").Through(filter, {1}).Through(map, {0, 1}).Into(sums, QUERN_PORT_ROWS, {}, {2}));
    Numbers dividend(1000, 10), divisor(1000, 2);
    for (int64_t i = 0; i < 1000; ++i) divisor[static_cast<size_t>(i)] = i % 10 < zeros_of_10 ? 0 : 2;
    Done(input.Append(Table{{ColumnOf(dividend), ColumnOf(divisor)}, {}, 1000}.batch()));
    Done(input.Finish());
    Done(sums.Finalise());
    EXPECT_EQ(RowsOf(sums.Groups(), "l"), Lines{std::to_string((10 - zeros_of_10) * 100 * 5)});
  }
  auto sums = New<quern::Aggregate>("aggregate aggs=sum(i64)");
  quern::Input input = Take(Pipeline("i64,i64").Through(map, {0, 1}).Into(sums, QUERN_PORT_ROWS, {}, {2}));
  Numbers dividend(9000, 1), divisor(9000, 1);
  divisor[8500] = 0;
  const quern::Status status = input.Append(Table{{ColumnOf(dividend), ColumnOf(divisor)}, {}, 9000}.batch());
  EXPECT_EQ(status.code(), QUERN_OUT_OF_RANGE);
  EXPECT_EQ(
      status.text(),
      "row 8500: divide_checked($0,$1) of 1 and 0: division by 0; accepted: rows for which the type has the result");
}

// ---- probes ----

struct Kind {
  const char* name;
  // The rows for one probe row: the numbers of its matches.
  std::function<Lines(const std::string& probe, const Lines& matches)> rows;
  const char* kinds;
};

Lines Pairs(const std::string& probe, const Lines& matches) {
  Lines lines;
  for (const std::string& match : matches) lines.push_back(probe + "|" + match);
  return lines;
}

// Probes on c after a filter on b; a sort takes the rows.
TEST(Pipeline, ProbesOfEachKind) {
  std::mt19937_64 random(quern::test::SeedOfTest());
  const std::vector<Source> sources = Sources(&random);
  const Numbers keys = {3, 4, 4, 5, 7, 7, 7}, values = {30, 40, 41, 50, 70, 71, 72};
  const Table build = {{ColumnOf(keys)}, {ColumnOf(values)}, keys.size()};
  const Kind kinds[] = {
      {"join.inner keys=i64:nullable build=i64 probe=i64", Pairs, "ll"},
      {"join.left keys=i64:nullable build=i64 probe=i64",
       [](const std::string& probe, const Lines& matches) {
         return matches.empty() ? Lines{probe + "|null"} : Pairs(probe, matches);
       },
       "ll"},
      {"join.semi keys=i64:nullable probe=i64",
       [](const std::string& probe, const Lines& matches) { return matches.empty() ? Lines{} : Lines{probe}; }, "l"},
      {"join.anti keys=i64:nullable probe=i64",
       [](const std::string& probe, const Lines& matches) { return matches.empty() ? Lines{probe} : Lines{}; }, "l"},
  };
  for (const Kind& kind : kinds) {
    Lines expected;
    for (const Source& source : sources) {
      for (const uint32_t row : source.Rows()) {
        if (source.b[row] < 300) continue;
        Lines matches;
        for (size_t i = 0; i < keys.size(); ++i)
          if (source.C(row) == keys[i]) matches.push_back(std::to_string(values[i]));
        for (const std::string& line : kind.rows(std::to_string(source.b[row]), matches)) expected.push_back(line);
      }
    }
    for (const uint64_t piece_rows : kPieces) {
      const auto filter = New<quern::Job>("filter i64 >= 300");
      const quern::Join join = Built(kind.name, {build});
      const bool has_value = std::string(kind.kinds) == "ll";
      auto sort = New<quern::Sort>(has_value ? "sort keys=i64:nullable:out,i64:nullable:out" : "sort keys=i64:out");
      FeedPipeline(Pipeline(kColumns).Through(filter, {1}).Through(join, {2}, {1}), sort, QUERN_PORT_ROWS,
                   has_value ? std::vector<uint32_t>{0, 1} : std::vector<uint32_t>{0}, {}, sources, piece_rows);
      Done(sort.Finalise());
      EXPECT_EQ(RowsOf(sort.Sorted(), kind.kinds), Ordered(expected)) << kind.name << ", pieces of " << piece_rows;
    }
  }
}

// Two probes and a map; the rows make a table. Its strings come from the first table, and are longer than 12 bytes.
TEST(Pipeline, StringsOfATableIntoAnotherTable) {
  std::mt19937_64 random(quern::test::SeedOfTest());
  const std::vector<Source> sources = Sources(&random);
  Numbers keys;
  std::vector<std::string> names;
  for (int64_t i = 0; i < 20; ++i) {
    keys.push_back(i);
    names.push_back("a name of more than twelve bytes, number " + std::to_string(i));
  }
  const StringVector<int32_t> texts(names);
  Lines expected;
  for (const Source& source : sources)
    for (const uint32_t row : source.Rows())
      if (source.valid[row] && source.a[row] < 20)
        expected.push_back(std::to_string(source.b[row]) + "|" + names[static_cast<size_t>(source.c[row])]);
  for (const uint64_t piece_rows : kPieces) {
    auto table = New<quern::Join>("join.right_anti keys=i64 build=i64,utf8");
    {
      const quern::Join of_names =
          Built("join.inner keys=i64:nullable build=utf8 probe=i64,i64", {{{ColumnOf(keys)}, {texts.column()}, 20}});
      const quern::Join of_keys = Built("join.semi keys=i64 probe=i64,utf8", {{{ColumnOf(keys)}, {}, 20}});
      FeedPipeline(Pipeline(kColumns).Through(of_names, {2}, {0, 1}).Through(of_keys, {0}, {1, 2}), table,
                   QUERN_PORT_BUILD, {0}, {0, 1}, sources, piece_rows);
    }
    Done(table.Finalise());
    EXPECT_EQ(RowsOf(table.Unmatched(), "ls"), Ordered(expected)) << piece_rows;
  }
}

TEST(Pipeline, Threads) {
  const auto map = New<quern::Job>("map in=i64,i64 out=add_checked($0,$1)");
  auto sums = New<quern::Aggregate>("aggregate aggs=sum(i64),count_star");
  std::atomic<int64_t> next{0};
  OnThreads(4, [&] {
    quern::Input input = Take(Pipeline("i64,i64").Through(map, {0, 1}).Into(sums, QUERN_PORT_ROWS, {}, {2}));
    for (int64_t i = next++; i < 40; i = next++) {
      const Numbers ones(1000, 1), numbers(1000, i);
      Done(input.Append(Table{{ColumnOf(ones), ColumnOf(numbers)}, {}, 1000}.batch()));
    }
    Done(input.Finish());
  });
  Done(sums.Finalise());
  EXPECT_EQ(RowsOf(sums.Groups(), "ll"), Lines{std::to_string(1000 * (40 + 39 * 40 / 2)) + "|40000"});
}

// ---- refused memory ----

// Whichever request of a step or of the sort is refused: the batch is appended again, and no row is missing or double.
TEST(Pipeline, BatchesThatWereRefusedAreAppendedAgain) {
  std::mt19937_64 random(quern::test::SeedOfTest());
  const Source source(&random, 5000, false);
  Numbers keys, values;
  for (int64_t i = 0; i < 40; ++i) {
    keys.push_back(i % 20);
    values.push_back(i);
  }
  const quern::Join join = Built("join.inner keys=i64:nullable build=i64 probe=i64,i64",
                                 {{{ColumnOf(keys)}, {ColumnOf(values)}, keys.size()}});
  const auto map = New<quern::Job>("map in=i64,i64 out=add_checked($0,$1)");
  Lines expected;
  int64_t num_refused = 0;
  for (int64_t n = -1; n < 400; ++n) {
    OneRefusal memory{n};
    auto sort = New<quern::Sort>("sort keys=i64:out payload=i64,i64", Engine::kJit, memory.options());
    quern::Input input = Take(Pipeline(kColumns)
                                  .Through(map, {0, 1})
                                  .Through(join, {2}, {1, 3})
                                  .Into(sort, QUERN_PORT_ROWS, {0}, {1, 2}, 700));
    const bool refused = !AppendTwice(&input, source.table());
    num_refused += refused;
    Done(input.Finish());
    memory.left = -1;
    Done(sort.Finalise());
    const Lines lines = RowsOf(sort.Sorted(), "lll");
    if (n == -1) expected = lines;
    ASSERT_EQ(lines, expected) << n;
    if (!refused && n >= 0) break;
  }
  EXPECT_GT(num_refused, 5);
}

// The first piece has no matches, so that a probe of the next one may read the table in another way, which gives the
// same rows in another order. The second piece has four results; it comes again in the same way and order.
TEST(Pipeline, PiecesComeAgainInTheSameOrder) {
  Numbers keys, values, probed(6000, 100);
  for (int64_t i = 0; i < 10000; ++i) {
    keys.push_back(i % 10);
    values.push_back(i);
  }
  for (size_t i = 0; i < 10; ++i) probed[3000 + 200 * i] = static_cast<int64_t>(i);
  const Table build = {{ColumnOf(keys)}, {ColumnOf(values)}, keys.size()};
  Lines expected;
  for (const int64_t value : values) expected.push_back(std::to_string(value));
  int64_t num_refused = 0;
  for (int64_t n = 0; n < 400; ++n) {
    const quern::Join join =
        Built("join.inner keys=i64 build=i64", {build}, Engine::kJit, StringBytes::kStay, "layout=unchained");
    OneRefusal memory{n};
    auto sort = New<quern::Sort>("sort keys=i64:out", Engine::kJit, memory.options());
    quern::Input input = Take(Pipeline("i64").Through(join, {0}).Into(sort, QUERN_PORT_ROWS, {0}, {}, 3000));
    const bool refused = !AppendTwice(&input, {{ColumnOf(probed)}, {}, probed.size()});
    num_refused += refused;
    Done(input.Finish());
    memory.left = -1;
    Done(sort.Finalise());
    ASSERT_EQ(RowsOf(sort.Sorted(), "l"), Ordered(expected)) << n;
    if (!refused) break;
  }
  EXPECT_GT(num_refused, 2);
}

// ---- errors ----

std::string ErrorOf(const Pipeline& pipeline, const quern::Job& job, const std::vector<uint32_t>& keys,
                    const std::vector<uint32_t>& payload = {}, uint64_t piece_rows = 0) {
  return pipeline.Into(job, QUERN_PORT_ROWS, keys, payload, piece_rows).status().text();
}

TEST(Pipeline, ErrorsNameStepColumnAndTypes) {
  const auto filter = New<quern::Job>("filter i64 < 5");
  const auto map = New<quern::Job>("map in=i32 out=$0");
  auto sums = New<quern::Aggregate>("aggregate keys=i64 aggs=sum(f64)");
  const Pipeline empty("i64,f64:nullable");
  EXPECT_EQ(ErrorOf(empty, sums, {0}), "number of payload of the sink: 0; accepted: 1");
  EXPECT_EQ(ErrorOf(empty, sums, {2}, {1}), "keys of the sink[0]: column 2; accepted: 0 to 1");
  EXPECT_EQ(ErrorOf(empty, sums, {0}, {1}), "payload of the sink[0]: column 1 of f64:nullable; accepted: f64");
  EXPECT_EQ(ErrorOf(empty, sums, {0}, {0}), "payload of the sink[0]: column 0 of i64; accepted: f64");
  EXPECT_EQ(ErrorOf(Pipeline("i64").Through(filter, {0}).Through(map, {0}), sums, {0}, {0}),
            "columns of step 1[0]: column 0 of i64; accepted: i32");
  EXPECT_EQ(ErrorOf(Pipeline("i65"), sums, {0}, {0}).substr(0, 25), "unknown column type: i65;");
  EXPECT_EQ(ErrorOf(empty, sums, {0}, {1}, 65537), "piece_rows out of range: 65537; accepted: 0 to 65536");
  EXPECT_EQ(ErrorOf(Pipeline("i64").Through(sums, {0}), sums, {0}, {0}),
            "step 0: a job of aggregation; accepted: filter, map, join");
  const auto open = New<quern::Join>("join.inner keys=i64");
  EXPECT_EQ(ErrorOf(Pipeline("i64").Through(open, {0}), sums, {0}, {0}),
            "step 0: the join still has work; accepted: a join whose work is done");
}

}  // namespace
}  // namespace quern_test
