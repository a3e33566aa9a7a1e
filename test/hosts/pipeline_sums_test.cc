// SPDX-License-Identifier: Apache-2.0
// Build columns that an aggregation without keys only adds up are added up in the tuples that rows meet. Sums are those
// of the rows, whatever else reads the columns and however large the values are.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "test/hosts/jobs.h"
#include "test/unit/seed.h"

namespace quern_test {
namespace {

using quern::Pipeline;
using Numbers = std::vector<int64_t>;

struct Items {
  Numbers key, a, b, c, d, e;

  // large: a few values are beyond what is added up in tuples.
  Items(std::mt19937_64* random, int64_t num_keys, bool large, bool each_twice) {
    for (int64_t i = 0; i < num_keys * (each_twice ? 2 : 1); ++i) {
      key.push_back(i % num_keys);
      for (Numbers* column : {&a, &b, &c, &d, &e}) column->push_back(static_cast<int64_t>((*random)() % 2000) - 1000);
      if (large && i % 50 == 7) c.back() = (int64_t{1} << 37) + i;
      if (large && i % 50 == 9) d.back() = -(int64_t{1} << 37) - 1;
    }
  }
};

struct Sales {
  Numbers key, amount;

  Sales(std::mt19937_64* random, int64_t num_rows, int64_t num_keys, bool all_match) {
    for (int64_t i = 0; i < num_rows; ++i) {
      key.push_back(static_cast<int64_t>((*random)() % static_cast<uint64_t>(num_keys * (all_match ? 1 : 2))));
      amount.push_back(i);
    }
  }
};

// One line of sums for each pair of a sale and an item.
struct Expected {
  __int128 amount = 0, a = 0, b = 0, c = 0, d = 0, negative_a = 0;
  int64_t min_b = INT64_MAX, num_rows = 0;
};

Expected SumsOf(const Items& items, const Sales& sales) {
  Expected expected;
  for (size_t s = 0; s < sales.key.size(); ++s) {
    for (size_t i = 0; i < items.key.size(); ++i) {
      if (items.key[i] != sales.key[s]) continue;
      expected.amount += sales.amount[s];
      expected.a += items.a[i];
      expected.b += items.b[i];
      expected.c += items.c[i];
      expected.d += items.d[i];
      expected.negative_a += std::min<int64_t>(items.a[i], 0);
      expected.min_b = std::min(expected.min_b, items.b[i]);
      ++expected.num_rows;
    }
  }
  return expected;
}

std::string Text(__int128 number) { return std::to_string(static_cast<int64_t>(number)); }

// The line of an aggregation of rows behind the join: amount, a, b, c, d, e.
std::string Line(const Items& items, const Sales& sales, const char* aggregation, const std::vector<uint32_t>& payload,
                 const char* kinds, Engine engine, uint64_t piece_rows, const char* layout) {
  const Table table = {{ColumnOf(items.key)},
                       {ColumnOf(items.a), ColumnOf(items.b), ColumnOf(items.c), ColumnOf(items.d), ColumnOf(items.e)},
                       items.key.size()};
  const quern::Join join = Built("join.inner keys=i64 build=i64,i64,i64,i64,i64 probe=i64", {table}, engine,
                                 StringBytes::kStay, std::string("layout=") + layout);
  quern::Aggregate sums = New<quern::Aggregate>(aggregation, engine);
  quern::Input input =
      Take(Pipeline("i64,i64").Through(join, {0}, {1}).Into(sums, QUERN_PORT_ROWS, {}, payload, piece_rows));
  const Table source = {{ColumnOf(sales.key), ColumnOf(sales.amount)}, {}, sales.key.size()};
  Done(input.Append(source.batch()));
  Done(input.Finish());
  Done(sums.Finalise());
  const Lines lines = RowsOf(sums.Groups(), kinds);
  return lines.size() == 1 ? lines[0] : std::to_string(lines.size()) + " lines";
}

std::string Joined(const std::vector<std::string>& values) {
  std::string line;
  for (const std::string& value : values) line += (line.empty() ? "" : "|") + value;
  return line;
}

TEST(PipelineSums, AreThoseOfTheRows) {
  std::mt19937_64 random(quern::test::SeedOfTest());
  for (const auto& [large, each_twice, all_match, layout] :
       {std::tuple{false, false, true, "auto"}, std::tuple{false, false, false, "unchained"},
        std::tuple{true, false, false, "auto"}, std::tuple{true, false, true, "open"},
        std::tuple{false, true, false, "auto"}, std::tuple{false, false, false, "dense"}}) {
    const Items items(&random, 300, large, each_twice);
    const Sales sales(&random, 2500, 300, all_match);
    const Expected of = SumsOf(items, sales);
    for (const uint64_t piece_rows : {3, 64, 0}) {
      for (const Engine engine : {Engine::kJit, Engine::kGeneric}) {
        SCOPED_TRACE(std::string(layout) + ", pieces of " + std::to_string(piece_rows));
        const auto line = [&](const char* aggregation, const std::vector<uint32_t>& payload, const char* kinds) {
          return Line(items, sales, aggregation, payload, kinds, engine, piece_rows, layout);
        };
        // All four words that follow one another, and three of them.
        EXPECT_EQ(
            line("aggregate aggs=sum(i64),sum(i64),sum(i64),sum(i64),sum(i64),count_star", {0, 1, 2, 3, 4}, "llllll"),
            Joined({Text(of.amount), Text(of.a), Text(of.b), Text(of.c), Text(of.d), Text(of.num_rows)}));
        EXPECT_EQ(line("aggregate aggs=sum(i64),sum(i64),sum(i64)", {4, 2, 2}, "lll"),
                  Joined({Text(of.d), Text(of.b), Text(of.b)}));
        // Others read a column, too.
        EXPECT_EQ(line("aggregate aggs=sum(i64),min(i64),sum(i64)", {2, 2, 3}, "lll"),
                  Joined({Text(of.b), Text(of.min_b), Text(of.c)}));
        EXPECT_EQ(line("aggregate in=i64,i64 aggs=sum($0):filter(less($0,0:i64)),sum($1)", {1, 2}, "ll"),
                  Joined({Text(of.negative_a), Text(of.b)}));
        EXPECT_EQ(line("aggregate in=i64,i64 aggs=sum(negate_checked($0)),sum($1),sum($0)", {1, 2}, "lll"),
                  Joined({Text(-of.a), Text(of.b), Text(of.a)}));
        // Rows are counted, whatever value they have.
        EXPECT_EQ(line("aggregate in=i64,i64 aggs=count_star,sum($0)", {1, 2}, "ll"),
                  Joined({Text(of.num_rows), Text(of.a)}));
      }
    }
  }
}

}  // namespace
}  // namespace quern_test
