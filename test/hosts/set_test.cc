// SPDX-License-Identifier: Apache-2.0
// Set operations of a host's own vectors: every kind against what SQL says, nulls, collations, dictionaries,
// selections, threads, states, and what set operations alone refuse. (What they share with other jobs:
// contract_test.cc.)
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "test/hosts/jobs.h"
#include "test/hosts/set_kinds.h"

namespace quern_test {
namespace {

Lines Joined(const Lines& a, const Lines& b) {
  Lines all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

quern::SetOperation Combined(const std::string& spec, const std::vector<Table>& left, const std::vector<Table>& right,
                             Engine engine = Engine::kJit) {
  quern::SetOperation set = New<quern::SetOperation>(spec, engine);
  Feed(set.Left(), left);
  Feed(set.Right(), right);
  Done(set.Finalise());
  return set;
}

// Rows of an i64 that may be null and a string.
struct Rows {
  Rows(uint64_t n, uint32_t distinct, uint32_t seed) : num_rows(n) {
    std::mt19937_64 random(seed);
    std::vector<bool> valid;
    std::vector<std::string> texts;
    for (uint64_t i = 0; i < n; ++i) {
      numbers.push_back(static_cast<int64_t>(random() % distinct));
      valid.push_back(random() % 8 != 0);
      texts.emplace_back(random() % 2 == 0 ? "a" : "a text of more than twelve bytes");
      lines.push_back((valid.back() ? std::to_string(numbers.back()) : "null") + "|" + texts.back());
    }
    validity = Bitmap(valid, 3);
    strings.emplace(texts);
  }
  Table table() const { return {{WithValidity(ColumnOf(numbers), validity, 3), strings->column()}, {}, num_rows}; }

  uint64_t num_rows;
  std::vector<int64_t> numbers;
  std::vector<uint8_t> validity;
  std::optional<StringVector<int32_t>> strings;
  Lines lines;
};

std::string Spec(std::string_view kind) { return "set." + std::string(kind) + " keys=i64:nullable,utf8"; }

TEST(Sets, EveryKindOfRandomRows) {
  for (const uint32_t distinct : {1, 30, 100'000}) {
    const Rows a(3000, distinct, 1), b(500, distinct, 2), c(2000, distinct, 3);
    for (const char* kind : kSetKinds) {
      const Lines expected = Combination(kind, Joined(a.lines, b.lines), c.lines);
      for (const Engine engine : {Engine::kJit, Engine::kGeneric}) {
        for (const uint64_t batch_rows : {0, 1, 7}) {
          SCOPED_TRACE(std::string(kind) + ", " + std::to_string(distinct) + ", " + std::to_string(batch_rows));
          quern::SetOperation set = Combined(Spec(kind), {a.table(), b.table()}, {c.table()}, engine);
          EXPECT_EQ(RowsOf(set.Rows(BatchRows(batch_rows)), "ls"), expected);
        }
      }
    }
  }
}

TEST(Sets, SidesThatAreEmpty) {
  const Rows rows(10, 4, 1);
  for (const char* kind : kSetKinds) {
    SCOPED_TRACE(kind);
    EXPECT_EQ(RowsOf(Combined(Spec(kind), {}, {}).Rows(), "ls"), Lines());
    EXPECT_EQ(RowsOf(Combined(Spec(kind), {rows.table()}, {}).Rows(), "ls"), Combination(kind, rows.lines, {}));
    EXPECT_EQ(RowsOf(Combined(Spec(kind), {}, {rows.table()}).Rows(), "ls"), Combination(kind, {}, rows.lines));
  }
}

// A row of the selection may lie anywhere in its vectors.
TEST(Sets, SelectedRows) {
  const uint64_t n = 200'000;
  std::vector<int64_t> numbers(n);
  for (uint64_t i = 0; i < n; ++i) numbers[i] = static_cast<int64_t>(i);
  Table left = {{ColumnOf(numbers)}, {}, n}, right = left;
  left.selection = {5, 199'999, 70'000, 5};
  right.selection = {199'999, 1};
  const auto rows = [&](const char* kind) {
    return RowsOf(Combined("set." + std::string(kind) + " keys=i64", {left}, {right}).Rows(), "l");
  };
  EXPECT_EQ(rows("union"), (Lines{"1", "199999", "5", "70000"}));
  EXPECT_EQ(rows("intersect"), (Lines{"199999"}));
  EXPECT_EQ(rows("except_all"), (Lines{"5", "5", "70000"}));
}

TEST(Sets, RowsAreEqualUnderTheirCollation) {
  const StringVector<int32_t> left({"Ada", "bob ", "Eve"}), right({"ADA", "bob", "eva"});
  quern::SetOperation set =
      Combined("set.intersect keys=utf8(utf8mb4_general_ci)", {{{left.column()}, {}, 3}}, {{{right.column()}, {}, 3}});
  EXPECT_EQ(RowsOf(set.Rows(), "s"), (Lines{"Ada", "bob "}));
}

TEST(Sets, DictionariesOfEachBatch) {
  const StringVector<int32_t> first({"ASIA", "EUROPE"}), second({"EUROPE", "AFRICA", "ASIA"});
  const quern_column first_values = first.column(), second_values = second.column();
  const std::vector<uint8_t> first_index = {0, 1, 0}, second_index = {0, 1, 1};
  const Table left = {{DictionaryColumn(ColumnOf(first_index), first_values)}, {}, 3};
  const Table right = {{DictionaryColumn(ColumnOf(second_index), second_values)}, {}, 3};
  const std::string keys = " keys=dictionary(u8,utf8)";
  EXPECT_EQ(RowsOf(Combined("set.except_all" + keys, {left}, {right}).Rows(), "s"), (Lines{"ASIA", "ASIA"}));
  EXPECT_EQ(RowsOf(Combined("set.union" + keys, {left}, {right}).Rows(), "s"), (Lines{"AFRICA", "ASIA", "EUROPE"}));
}

TEST(Sets, SidesOnSeveralThreadsAndReadersOfParts) {
  for (const char* kind : kSetKinds) {
    SCOPED_TRACE(kind);
    std::vector<Rows> rows;
    Lines left, right;
    for (uint32_t i = 0; i < 8; ++i) {
      rows.emplace_back(20'000, 5'000, i);
      Lines& side = i % 2 == 0 ? left : right;
      side = Joined(side, rows[i].lines);
    }
    quern::SetOperation set = New<quern::SetOperation>(Spec(kind));
    std::atomic<uint32_t> next = 0;
    OnThreads(3, [&] {
      for (uint32_t i = next++; i < rows.size(); i = next++)
        Feed(i % 2 == 0 ? set.Left() : set.Right(), {rows[i].table()});
    });
    Done(set.Finalise());
    Lines all;
    for (uint32_t part = 0; part < 3; ++part) {
      quern_output_options options = {};
      options.partition = part;
      options.num_partitions = 3;
      all = Joined(all, InOrder(set.Rows(options), "ls"));
    }
    EXPECT_EQ(Ordered(all), Combination(kind, left, right));
  }
}

// Two machines have a part of either side each; a third one combines their states.
TEST(Sets, StatesOfOtherJobs) {
  const Rows a(1000, 50, 1), b(800, 50, 2), c(900, 50, 3), d(700, 50, 4);
  for (const char* kind : kSetKinds) {
    SCOPED_TRACE(kind);
    quern::SetOperation first = Combined(Spec(kind), {a.table()}, {b.table()});
    quern::SetOperation second = Combined(Spec(kind), {c.table()}, {d.table()}, Engine::kGeneric);
    quern::SetOperation set = New<quern::SetOperation>(Spec(kind));
    quern::Input states = Take(set.States());
    MoveStates(first.RowStates(), 2, &states);
    MoveStates(second.RowStates(), 2, &states);
    Done(states.Finish());
    Done(set.Finalise());
    EXPECT_EQ(RowsOf(set.Rows(), "ls"), Combination(kind, Joined(a.lines, c.lines), Joined(b.lines, d.lines)));
  }
}

// A shuffle that sends rows by these numbers brings equal rows of both sides together.
TEST(Sets, PartitionsOfRows) {
  const quern::SetOperation set = New<quern::SetOperation>("set.except keys=i64");
  const quern::Aggregate groups = New<quern::Aggregate>("aggregate keys=i64");
  const std::vector<int64_t> numbers = {5, 7, 5, -1};
  const Table table = {{ColumnOf(numbers)}, {}, 4};
  const quern_batch rows = table.batch();
  std::vector<uint32_t> left(4), right(4), grouped(4);
  Done(set.Partition(QUERN_PORT_LEFT, rows, 1000, left.data()));
  Done(set.Partition(QUERN_PORT_RIGHT, rows, 1000, right.data()));
  Done(groups.Partition(QUERN_PORT_ROWS, rows, 1000, grouped.data()));
  EXPECT_EQ(left, right);
  EXPECT_EQ(left, grouped);
  EXPECT_EQ(left[0], left[2]);
  EXPECT_NE(left[0], left[1]);
}

TEST(Sets, OneCallRunsAllOfIt) {
  const Rows left(1000, 40, 1), right(1000, 40, 2);
  const Table left_table = left.table(), right_table = right.table();
  const quern_batch left_batch = left_table.batch(), right_batch = right_table.batch();
  quern::SetOperation set = New<quern::SetOperation>(Spec("except"));
  const quern_run_input inputs[] = {{.port = QUERN_PORT_LEFT, .batches = &left_batch, .num_batches = 1},
                                    {.port = QUERN_PORT_RIGHT, .batches = &right_batch, .num_batches = 1}};
  uint64_t num_rows = 0;
  quern_run_options options = {};
  options.struct_size = sizeof options;
  options.threads = 2;
  quern_error error = {};
  EXPECT_EQ(quern_job_run(set.handle(), inputs, 2, &options, &num_rows, &error), QUERN_OK) << error.text;
  EXPECT_EQ(num_rows, Combination("except", left.lines, right.lines).size());
}

TEST(Sets, WhatTheyRefuse) {
  quern::SetOperation set = New<quern::SetOperation>("set.union keys=i64");
  EXPECT_EQ(set.NewInput(QUERN_PORT_BUILD).status().text(),
            "port that the set operation does not have here: QUERN_PORT_BUILD; accepted: QUERN_PORT_LEFT, "
            "QUERN_PORT_RIGHT or QUERN_PORT_STATES");
  EXPECT_EQ(set.NewOutput(QUERN_PORT_LEFT).status().text(),
            "port that the set operation does not have here: QUERN_PORT_LEFT; accepted: QUERN_PORT_ROWS or "
            "QUERN_PORT_STATES");
  EXPECT_EQ(set.Rows().status().text(),
            "output before all work is done: the set operation still has work; accepted: after quern_job_finalise, or "
            "QUERN_WORK_DONE");
  quern_error error = {};
  const quern_run_input input = {.port = QUERN_PORT_PROBE, .batches = nullptr, .num_batches = 0};
  EXPECT_EQ(quern_job_run(set.handle(), &input, 1, nullptr, nullptr, &error), QUERN_INVALID_ARGUMENT);
  EXPECT_STREQ(error.text,
               "port of a run's batches: 2; accepted: QUERN_PORT_LEFT (6) or QUERN_PORT_RIGHT (7) or QUERN_PORT_STATES "
               "(4)");
}

}  // namespace
}  // namespace quern_test
