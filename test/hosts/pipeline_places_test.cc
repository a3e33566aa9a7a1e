// SPDX-License-Identifier: Apache-2.0
// A probe puts build columns beside the rows that are there, where no row has two matches. A sink that numbers its
// rows, a stable sort, makes it copy them: both ways must give the same rows.
#include <gtest/gtest.h>

#include <random>

#include "test/hosts/jobs.h"
#include "test/unit/seed.h"

namespace quern_test {
namespace {

using quern::Pipeline;
using Numbers = std::vector<int64_t>;

// ---- the table ----

// Four words beside each other, texts of all lengths, bits, and columns of 4 and 16 bytes; all but two may be null.
const char kBuild[] = "i64,i64,i64,i64,utf8_view:nullable,bool:nullable,i32:nullable,decimal128:nullable";

struct Names {
  Numbers key, a, b, c, d;
  std::vector<std::string> texts;
  std::vector<bool> flag, valid;
  std::vector<int32_t> small;
  std::vector<__int128> wide;

  // each_twice: whether every key has two rows.
  Names(std::mt19937_64* random, int64_t num_keys, bool each_twice) {
    for (int64_t i = 0; i < num_keys * (each_twice ? 2 : 1); ++i) {
      const int64_t k = i % num_keys;
      key.push_back(k * 3);
      a.push_back(i);
      b.push_back(-i);
      c.push_back(i * 1000);
      d.push_back(static_cast<int64_t>((*random)() % 1000));
      texts.push_back(std::string(static_cast<size_t>((*random)() % 30), static_cast<char>('a' + i % 26)));
      flag.push_back((*random)() % 2 == 0);
      valid.push_back((*random)() % 4 != 0);
      small.push_back(static_cast<int32_t>(i % 300));
      wide.push_back(static_cast<__int128>(i) << 70);
    }
  }
};

// ---- the rows that are sent ----

struct Sales {
  Numbers key, other_key, number;
  std::vector<std::string> texts;

  Sales(std::mt19937_64* random, int64_t num_rows, int64_t num_keys) {
    for (int64_t i = 0; i < num_rows; ++i) {
      key.push_back(static_cast<int64_t>((*random)() % static_cast<uint64_t>(num_keys * 4)));
      other_key.push_back(static_cast<int64_t>((*random)() % 6));
      number.push_back(i);
      texts.push_back("a text of the source, " + std::to_string(i));
    }
  }
};

struct Case {
  const char* kind;
  const char* layout;
  bool each_twice;
};

// Rows through two joins and a map between them.
Lines Sent(const Case& given, const Names& names, const Sales& sales, bool is_stable, uint64_t piece_rows,
           Engine engine, StringBytes bytes = StringBytes::kStay) {
  const ViewVector texts(names.texts), source_texts(sales.texts);
  const std::vector<uint8_t> flags = Bitmap(names.flag), valid = Bitmap(names.valid);
  const Table table = {{ColumnOf(names.key)},
                       {ColumnOf(names.a), ColumnOf(names.b), ColumnOf(names.c), ColumnOf(names.d),
                        WithValidity(texts.column(), valid), WithValidity(ColumnOf(flags), valid),
                        WithValidity(ColumnOf(names.small), valid), WithValidity(ColumnOf(names.wide), valid)},
                       names.key.size()};
  const quern::Join join =
      Built(std::string("join.") + given.kind + " keys=i64 build=" + kBuild + " probe=i64,i64,utf8_view", {table},
            engine, bytes, std::string("layout=") + given.layout);
  const Numbers other_keys = {0, 2, 4}, other_values = {7, 8, 9};
  const quern::Join other = Built(
      "join.left keys=i64 build=i64 probe=i64,utf8_view,i64:nullable,utf8_view:nullable,"
      "bool:nullable,i32:nullable,decimal128:nullable,i64:nullable",
      {{{ColumnOf(other_keys)}, {ColumnOf(other_values)}, 3}}, engine);
  const quern::Job map = New<quern::Job>("map in=i64:nullable,i64:nullable out=add($0,$1)", engine);
  auto sort = New<quern::Sort>(std::string("sort keys=i64:out payload=utf8_view,i64:nullable,utf8_view:nullable,"
                                           "bool:nullable,i32:nullable,decimal128:nullable,i64:nullable,i64:nullable") +
                                   (is_stable ? " stable" : ""),
                               engine);
  // Behind the first join: other_key, number, text, a, b, c, d, name, flag, small, wide; then the sum.
  const Pipeline pipeline = Pipeline("i64,i64,i64,utf8_view")
                                .Through(join, {0}, {1, 2, 3})
                                .Through(map, {5, 6})
                                .Through(other, {0}, {1, 2, 3, 7, 8, 9, 10, 11});
  quern::Input input =
      Take(pipeline.Into(sort, QUERN_PORT_ROWS, {0}, {1, 2, 3, 4, 5, 6, 7, 8}, piece_rows, StringBytes::kCopied));
  const Table source = {{ColumnOf(sales.key), ColumnOf(sales.other_key), ColumnOf(sales.number), source_texts.column()},
                        {},
                        sales.key.size()};
  Done(input.Append(source.batch()));
  Done(input.Append(source.batch()));
  Done(input.Finish());
  Done(sort.Finalise());
  return RowsOf(sort.Sorted(), "lvlvbixll");
}

TEST(PipelinePlaces, AreTheRowsThatAreCopied) {
  std::mt19937_64 random(quern::test::SeedOfTest());
  const Case cases[] = {
      {"inner", "unchained", false}, {"inner", "auto", false}, {"inner", "auto", true},   {"left", "unchained", false},
      {"left", "dense", false},      {"left", "auto", true},   {"single", "open", false},
  };
  for (const Case& given : cases) {
    const Names names(&random, 500, given.each_twice);
    const Sales sales(&random, 1500, 500);
    const Lines expected = Sent(given, names, sales, /*is_stable=*/true, 0, Engine::kGeneric);
    EXPECT_GT(expected.size(), 600u);
    for (const uint64_t piece_rows : {3, 64, 0}) {
      for (const Engine engine : {Engine::kJit, Engine::kGeneric}) {
        for (const StringBytes bytes : {StringBytes::kStay, StringBytes::kCopied}) {
          ASSERT_EQ(Sent(given, names, sales, /*is_stable=*/false, piece_rows, engine, bytes), expected)
              << given.kind << ", " << given.layout << ", pieces of " << piece_rows;
        }
      }
    }
  }
}

// Rows in their order, each with a match: no row number is left, and a host sees that nothing was copied.
TEST(PipelinePlaces, AreThoseOfTheSource) {
  Numbers keys, values;
  for (int64_t i = 0; i < 300; ++i) {
    keys.push_back(i);
    values.push_back(i * 2);
  }
  const Table table = {{ColumnOf(keys)}, {ColumnOf(values)}, keys.size()};
  const quern::Join join = Built("join.inner keys=i64 build=i64 probe=i64", {table});
  const auto probe = [&](const Numbers& found) {
    std::vector<std::string> seen;
    const auto on_rows = [&](const quern_batch& rows) {
      const auto* const values_of_source = static_cast<const int64_t*>(rows.keys[0].values);
      EXPECT_EQ(values_of_source, found.data());
      for (uint64_t i = 0; i < rows.num_rows; ++i) {
        const uint64_t row = rows.selection == nullptr ? i : rows.selection[i];
        EXPECT_EQ(static_cast<const int64_t*>(rows.keys[1].values)[row], values_of_source[row] * 2);
      }
      seen.push_back(std::to_string(rows.num_rows) + (rows.selection == nullptr ? " rows" : " selected"));
      return true;
    };
    quern::Input input = Take(Pipeline("i64").Through(join, {0}, {0}).IntoHost(&on_rows, {0, 1}));
    Done(input.Append(Table{{ColumnOf(found)}, {}, found.size()}.batch()));
    Done(input.Finish());
    return seen;
  };
  EXPECT_EQ(probe(keys), std::vector<std::string>{"300 rows"});
  EXPECT_EQ(probe({5, 1000, 7, 7, 2000}), std::vector<std::string>{"3 selected"});
}

// Rows of two joins, one of which has two matches for some rows, and of a map; pieces become longer when many rows have
// passed, and copies of rows do not.
TEST(PipelinePlaces, AreThoseOfLongerPieces) {
  const uint64_t num_keys = 1000, batch_rows = 100'000, num_batches = 4;
  Numbers keys, values, others, other_values;
  for (uint64_t i = 0; i < num_keys; ++i) {
    keys.push_back(static_cast<int64_t>(i));
    values.push_back(static_cast<int64_t>(i * 3));
  }
  for (int64_t i = 0; i < 10; ++i) {
    others.push_back(i / 2);
    other_values.push_back(i * 100);
  }
  const quern::Join join =
      Built("join.left keys=i64 build=i64 probe=i64,i64", {{{ColumnOf(keys)}, {ColumnOf(values)}, num_keys}});
  const quern::Join other = Built("join.left keys=i64 build=i64 probe=i64,i64,i64:nullable,i64:nullable",
                                  {{{ColumnOf(others)}, {ColumnOf(other_values)}, others.size()}});
  const quern::Job filter = New<quern::Job>("filter i64 != 7"),
                   map = New<quern::Job>("map in=i64,i64:nullable out=add($0,$1)");
  const auto sum_of = [&](uint64_t piece_rows, uint64_t* longest) {
    int64_t sum = 0;
    *longest = 0;
    const auto on_rows = [&](const quern_batch& rows) {
      for (uint64_t i = 0; i < rows.num_rows; ++i) {
        const uint64_t row = rows.selection == nullptr ? i : rows.selection[i];
        for (size_t c = 0; c < 4; ++c) {
          const quern_column& column = rows.keys[c];
          if (column.validity != nullptr && (column.validity[row / 8] >> row % 8 & 1) == 0) continue;
          sum += static_cast<const int64_t*>(column.values)[row] * static_cast<int64_t>(c * c + 1);
        }
      }
      *longest = std::max(*longest, rows.num_rows);
      return true;
    };
    quern::Input input = Take(Pipeline("i64,i64")
                                  .Through(filter, {0})
                                  .Through(join, {0}, {0, 1})
                                  .Through(map, {1, 2})
                                  .Through(other, {0}, {0, 1, 2, 3})
                                  .IntoHost(&on_rows, {0, 1, 2, 3, 4}, piece_rows));
    Numbers key(batch_rows), number(batch_rows);
    for (uint64_t b = 0; b < num_batches; ++b) {
      for (uint64_t i = 0; i < batch_rows; ++i) {  // two matches in the second and the last batch
        key[i] = static_cast<int64_t>(b % 2 == 0 ? 10 + i % (num_keys + 5) : i % 10);
        number[i] = static_cast<int64_t>(b * batch_rows + i);
      }
      Done(input.Append(Table{{ColumnOf(key), ColumnOf(number)}, {}, batch_rows}.batch()));
    }
    Done(input.Finish());
    return sum;
  };
  uint64_t longest = 0;
  const int64_t expected = sum_of(1000, &longest);
  EXPECT_EQ(longest, 1000u);
  EXPECT_EQ(sum_of(0, &longest), expected);
  EXPECT_GT(longest, 4096u);
  EXPECT_EQ(sum_of(65536, &longest), expected);
  EXPECT_GT(longest, 16384u);
}

}  // namespace
}  // namespace quern_test
