// SPDX-License-Identifier: Apache-2.0
// Sorts of a host's own vectors: order, keys of several types, limits and thresholds, window functions, outputs that
// share the rows. (What sorts share with other jobs: contract_test.cc.)
#include <gtest/gtest.h>

#include <algorithm>

#include "test/hosts/jobs.h"

namespace quern_test {
namespace {

const quern_column kRowIds = {};
const std::string kLong = "a text of more than twelve bytes";

// The same rows in the same order by every engine, in results of every size.
void ExpectSorted(const std::string& spec, const std::vector<Table>& tables, std::string_view kinds,
                  const Lines& expected) {
  for (const Engine engine : {Engine::kJit, Engine::kGeneric}) {
    for (const uint64_t batch_rows : {0, 1, 2}) {
      SCOPED_TRACE(spec + ", engine " + std::to_string(static_cast<int>(engine)) + ", batch_rows " +
                   std::to_string(batch_rows));
      const auto bytes = batch_rows == 1 ? StringBytes::kCopied : StringBytes::kStay;
      quern::Sort sort = Sorted(spec, tables, engine, bytes);
      EXPECT_EQ(InOrder(sort.Sorted(batch_rows), kinds, batch_rows), expected);
    }
  }
}

// Six parts.
struct Parts {
  const std::vector<double> price = {10, 20, 30, 20, 5, 20};
  const std::vector<int64_t> number = {101, 102, 103, 104, 105, 106};
  const StringVector<int32_t> name{{"bolt", "nut", kLong, "cog", "cam", "pin"}};
  const Table table = {{ColumnOf(price), name.column()}, {ColumnOf(number), kRowIds}, 6};
  const Lines rows = {"30|" + kLong + "|103|2", "20|cog|104|3",  "20|nut|102|1",
                      "20|pin|106|5",           "10|bolt|101|0", "5|cam|105|4"};
};
constexpr const char* kSpec = "sort keys=f64:desc:out,utf8:out payload=i64,rowid";

TEST(Sorts, PutRowsInOrder) {
  const Parts parts;
  ExpectSorted(kSpec, {parts.table}, "dslr", parts.rows);
  Table selected = parts.table;
  selected.selection = {5, 3, 0};
  ExpectSorted(kSpec, {selected}, "dslr", {parts.rows[1], parts.rows[3], parts.rows[4]});
  Table rest = parts.table;
  rest.selection = {1, 2, 4};
  ExpectSorted(kSpec, {selected, rest}, "dslr", parts.rows);
  ExpectSorted(kSpec, {rest, selected}, "dslr", parts.rows);
  ExpectSorted(kSpec, {}, "dslr", {});
  ExpectSorted(kSpec, {{{{}, {}}, {{}, {}}, 0}}, "dslr", {});
}

TEST(Sorts, PlaceNullsAsTheSpecSays) {
  const std::vector<int32_t> number = {3, 77, 1, 77, 2};
  const std::vector<uint8_t> valid = Bitmap({true, false, true, false, true}, 3);
  const Table table = {{WithValidity(ColumnOf(number), valid, 3)}, {}, 5};
  ExpectSorted("sort keys=i32:nullable:out", {table}, "i", {"1", "2", "3", "null", "null"});
  ExpectSorted("sort keys=i32:nullable:desc:out", {table}, "i", {"3", "2", "1", "null", "null"});
  ExpectSorted("sort keys=i32:nullable:nulls_first:out", {table}, "i", {"null", "null", "1", "2", "3"});
  ExpectSorted("sort keys=i32:nullable:desc:nulls_first:out", {table}, "i", {"null", "null", "3", "2", "1"});
}

TEST(Sorts, FollowACollation) {
  const StringVector<int64_t> word({"b ", "a", "b", "a ", kLong + "  "});
  const std::vector<int64_t> number = {1, 2, 3, 4, 5};
  const Table table = {{word.column(), ColumnOf(number)}, {}, 5};
  ExpectSorted("sort keys=large_utf8:out,i64:out", {table}, "Sl", {"a|2", "a |4", kLong + "  |5", "b|3", "b |1"});
  ExpectSorted("sort keys=large_utf8(utf8mb4_bin):out,i64:desc:out", {table}, "Sl",
               {"a |4", "a|2", kLong + "  |5", "b|3", "b |1"});
}

TEST(Sorts, DecodeDictionaries) {
  const StringVector<int32_t> first({"ASIA", kLong}), second({"EUROPE", "AFRICA", "ASIA"});
  const quern_column first_values = first.column(), second_values = second.column();
  const std::vector<uint8_t> first_index = {1, 0, 1}, second_index = {0, 1, 2};
  const std::vector<int64_t> value = {1, 2, 4};
  const Table one = {{DictionaryColumn(ColumnOf(first_index), first_values)}, {ColumnOf(value)}, 3};
  const Table two = {{DictionaryColumn(ColumnOf(second_index), second_values)}, {ColumnOf(value)}, 3};
  ExpectSorted("sort keys=dictionary(u8,utf8):desc:out payload=i64 stable", {one, two}, "sl",
               {kLong + "|1", kLong + "|4", "EUROPE|1", "ASIA|2", "ASIA|4", "AFRICA|2"});
  ExpectSorted("sort keys=i64 payload=dictionary(u8,utf8)", {{{ColumnOf(value)}, {one.keys[0]}, 3}}, "s",
               {kLong, "ASIA", kLong});
}

TEST(Sorts, KeepTiesInTheOrderOfRowIds) {
  const std::vector<int32_t> key = {2, 1, 2, 1, 2};
  Table early = {{ColumnOf(key)}, {kRowIds}, 5}, late = early;
  late.first_row_id = 100;
  ExpectSorted("sort keys=i32 payload=rowid stable", {late, early}, "r",
               {"1", "3", "101", "103", "0", "2", "4", "100", "102", "104"});
}

TEST(Sorts, WithoutColumnsOnlyCount) {
  const Parts parts;
  for (const char* spec : {"sort keys=i64", "sort keys=i64 limit=6"}) {
    quern::Sort sort = Sorted(spec, {{{ColumnOf(parts.number)}, {}, 6}});
    EXPECT_EQ(InOrder(sort.Sorted(), "").size(), 6u);
  }
}

TEST(Sorts, NumberTheRowsOfEachPartition) {
  const std::vector<int32_t> group = {2, 1, 2, 2, 1}, value = {7, 5, 7, 9, 5};
  const Table table = {{ColumnOf(group), ColumnOf(value)}, {}, 5};
  ExpectSorted("sort keys=i32:out,i32:out partition=1 window=row_number,rank,dense_rank", {table}, "iirrr",
               {"1|5|1|1|1", "1|5|2|1|1", "2|7|1|1|1", "2|7|2|1|1", "2|9|3|3|2"});
  ExpectSorted("sort keys=i32,i32:out limit=4 window=rank", {table}, "ir", {"5|1", "5|1", "7|3", "7|3"});
}

TEST(Sorts, TellWhatTheyHave) {
  const Parts parts;
  quern::Sort sort = New<quern::Sort>(std::string(kSpec) + " limit=4");
  Feed(sort.Rows(), {parts.table});
  EXPECT_STREQ(sort.Stats().layout, "");
  Done(sort.Finalise());
  const quern_job_stats stats = sort.Stats();
  EXPECT_STRNE(stats.layout, "");
  EXPECT_EQ(stats.input_rows, 6u);
  EXPECT_EQ(stats.num_rows, 4u);
  EXPECT_LE(stats.dropped_rows, 2u);
  EXPECT_GT(stats.entry_bytes, 0u);
  EXPECT_GT(stats.key_bits, 0u);
  EXPECT_GT(stats.peak_bytes, 0u);
}

TEST(Sorts, SeeWhatIsSortedAlready) {
  std::vector<int64_t> number;
  for (int64_t i = 0; i < 200000; ++i) number.push_back(i * 7);
  const Table table = {{ColumnOf(number)}, {}, number.size()};
  EXPECT_STREQ(Sorted("sort keys=i64:out", {table}).Stats().layout, "sorted");
  EXPECT_STREQ(Sorted("sort keys=i64:desc:out", {table}).Stats().layout, "reversed");
}

TEST(Sorts, ShareTheirRowsAmongOutputs) {
  const Parts parts;
  quern::Sort sort = Sorted(kSpec, {parts.table});
  quern::Output one = Take(sort.Sorted(2)), two = Take(sort.Sorted(1));
  Lines lines(6);
  for (bool more = true; more;) {
    more = false;
    for (quern::Output* output : {&one, &two}) {
      const quern_result& result = *Take(output->Next());
      Lines some;
      AddLines(result, "dslr", &some);
      for (size_t i = 0; i < some.size(); ++i) lines.at(result.position + i) = some[i];
      more |= result.state == QUERN_RESULT_MORE;
    }
  }
  EXPECT_EQ(lines, parts.rows);
}

// ---- limits and thresholds ----

TEST(Limits, LetTheFirstRowsOut) {
  const Parts parts;
  const Lines best(parts.rows.begin(), parts.rows.begin() + 3);
  ExpectSorted(std::string(kSpec) + " limit=3", {parts.table}, "dslr", best);
  ExpectSorted(std::string(kSpec) + " limit=6", {parts.table}, "dslr", parts.rows);
  ExpectSorted(std::string(kSpec) + " limit=1000000", {parts.table}, "dslr", parts.rows);
}

// The threshold of a sort as one line; "none".
std::string ThresholdOf(quern::Output* output, std::string_view kinds) {
  const quern_result& result = *Take(output->Next());
  EXPECT_EQ(result.state, QUERN_RESULT_MORE);
  Lines lines;
  AddLines(result, kinds, &lines);
  EXPECT_LE(lines.size(), 1u);
  return lines.empty() ? "none" : lines[0];
}

// Row i has the number i * 7919 mod 100003, and a name of it: names order as numbers do.
struct ManyRows {
  ManyRows() {
    std::vector<std::string> texts;
    for (int32_t i = 0; i < 20000; ++i) {
      number.push_back(static_cast<int32_t>(int64_t{i} * 7919 % 100003));
      texts.push_back("a name of some length " + std::to_string(1000000 + number.back()));
    }
    names = StringVector<int32_t>(texts);
  }
  // Rows first .. first + num_rows - 1.
  Table Batch(uint32_t first, uint32_t num_rows, const quern_column& key) const {
    Table table = {{key}, {kRowIds}, 20000};
    for (uint32_t i = 0; i < num_rows; ++i) table.selection.push_back(first + i);
    return table;
  }
  std::vector<int32_t> number;
  StringVector<int32_t> names{{}};
};

TEST(Thresholds, FollowTheRows) {
  const ManyRows rows;
  for (const Engine engine : {Engine::kJit, Engine::kGeneric}) {
    quern::Sort sort = New<quern::Sort>("sort keys=i32:desc:out payload=rowid limit=20", engine);
    quern::Input input = Take(sort.Rows());
    quern::Output current = Take(sort.CurrentThreshold());
    EXPECT_EQ(ThresholdOf(&current, "i"), "none");
    Done(input.Append(rows.Batch(0, 19, ColumnOf(rows.number)).batch()));
    EXPECT_EQ(ThresholdOf(&current, "i"), "none") << "too few rows";
    int threshold = -1;
    for (uint32_t first = 0; first < 20000; first += 5000) {
      Done(input.Append(rows.Batch(first, 5000, ColumnOf(rows.number)).batch()));
      const int next = std::stoi(ThresholdOf(&current, "i"));
      EXPECT_GE(next, threshold) << "it only ever comes nearer";
      threshold = next;
      const auto is_above = [&](int32_t number) { return number >= threshold; };
      EXPECT_GE(std::count_if(rows.number.begin(), rows.number.begin() + first + 5000, is_above), 19)
          << "one may have come twice";
    }
    Done(input.Finish());
    Done(sort.Finalise());
    EXPECT_GT(sort.Stats().dropped_rows, 0u);
    std::vector<int32_t> expected = rows.number;
    expected.insert(expected.end(), rows.number.begin(), rows.number.begin() + 19);
    std::sort(expected.rbegin(), expected.rend());
    quern::Output sorted = Take(sort.Sorted());
    const quern_result& out = *Take(sorted.Next());
    ASSERT_EQ(out.num_rows, 20u);
    for (uint64_t i = 0; i < 20; ++i) EXPECT_EQ(ElementAt<int32_t>(out.columns[0].values, i), expected[i]);
  }
}

TEST(Thresholds, HaveAllKeysWhateverComesOut) {
  const ManyRows rows;
  Table table = rows.Batch(0, 20000, ColumnOf(rows.number));
  table.keys = {rows.names.column(), ColumnOf(rows.number)};
  quern::Sort sort = New<quern::Sort>("sort keys=utf8(utf8mb4_bin):desc,i32 payload=rowid limit=2");
  Feed(sort.Rows(), {table});
  quern::Output current = Take(sort.CurrentThreshold());
  const std::string row = ThresholdOf(&current, "si");
  EXPECT_EQ(row.substr(0, 23), "a name of some length 1");
  EXPECT_EQ(std::stoi(row.substr(23, 6)), std::stoi(row.substr(30)));
}

TEST(Thresholds, LeaveOutWhatComesAfterThem) {
  const std::vector<int32_t> number = {5, 9, 4, 7, 3, 1}, known = {1000, 6};
  for (const Engine engine : {Engine::kJit, Engine::kGeneric}) {
    quern::Sort sort = New<quern::Sort>("sort keys=i32:desc:out limit=4", engine);
    Feed(sort.Threshold(), {{{ColumnOf(known)}, {}, 2, {1}}});
    Feed(sort.Rows(), {{{ColumnOf(number)}, {}, 6}});
    Done(sort.Finalise());
    const Lines rows = InOrder(sort.Sorted(), "i");
    ASSERT_GE(rows.size(), 2u) << "those after the threshold may come out, the others must";
    EXPECT_EQ((Lines{rows[0], rows[1]}), (Lines{"9", "7"}));
    EXPECT_EQ(sort.Stats().input_rows, 6u);
  }
}

TEST(Thresholds, GoFromSortToSort) {
  const ManyRows rows;
  const std::string spec = "sort keys=utf8:out payload=rowid limit=5";
  const Table table = rows.Batch(0, 20000, rows.names.column());
  quern::Sort first = New<quern::Sort>(spec), second = New<quern::Sort>(spec);
  Feed(first.Rows(), {table});
  quern::Output current = Take(first.CurrentThreshold());
  const quern_result& row = *Take(current.Next());
  ASSERT_EQ(row.num_rows, 1u);
  Feed(second.Threshold(), {AsTable(row, 1)});
  Feed(second.Rows(), {table});
  for (quern::Sort* sort : {&first, &second}) Done(sort->Finalise());
  const Lines expected = InOrder(first.Sorted(), "sr");
  EXPECT_EQ(expected.size(), 5u);
  EXPECT_EQ(expected.front(), "a name of some length 1000000|0");
  EXPECT_EQ(InOrder(second.Sorted(), "sr"), expected);
}

// A thread that scans asks for the threshold while others append.
TEST(Thresholds, MayBeReadAndSetWhileOthersAppend) {
  const ManyRows rows;
  const std::string spec = "sort keys=i32:out payload=rowid limit=10";
  quern::Sort sort = New<quern::Sort>(spec);
  std::atomic<uint32_t> next{0}, appending{2};
  const auto append = [&] {
    quern::Input input = Take(sort.Rows());
    for (uint32_t first = 500 * next++; first < 20000; first = 500 * next++)
      Done(input.Append(rows.Batch(first, 500, ColumnOf(rows.number)).batch()));
    Done(input.Finish());
    --appending;
  };
  std::thread one(append), two(append);
  quern::Output current = Take(sort.CurrentThreshold());
  quern::Input bound = Take(sort.Threshold());
  int32_t lowest = INT32_MAX;
  const auto look = [&] {
    const quern_result& row = *Take(current.Next());
    if (row.num_rows == 0) return;
    const auto key = ElementAt<int32_t>(row.columns[0].values, 0);
    EXPECT_LE(key, lowest) << "it only ever comes nearer";
    lowest = key;
    Done(bound.Append(AsTable(row, 1).batch()));
  };
  while (appending != 0) look();
  look();
  one.join();
  two.join();
  EXPECT_LT(lowest, INT32_MAX);
  Done(sort.Finalise());
  quern::Sort alone = Sorted(spec, {rows.Batch(0, 20000, ColumnOf(rows.number))});
  EXPECT_EQ(InOrder(sort.Sorted(), "ir"), InOrder(alone.Sorted(), "ir"));
}

TEST(Thresholds, ThatAreRefused) {
  const std::vector<int64_t> numbers = {1, 2, 3};
  const Table table = {{ColumnOf(numbers)}, {ColumnOf(numbers)}, 3};
  quern::Sort limited = New<quern::Sort>("sort keys=i64 limit=2"), open = New<quern::Sort>("sort keys=i64");
  quern::Input threshold = Take(limited.Threshold());
  quern_batch batch = table.batch();
  EXPECT_EQ(threshold.Append(batch).text(), "rows of a threshold: 3; accepted: 1");
  batch.num_rows = 0;
  EXPECT_EQ(threshold.Append(batch).text(), "rows of a threshold: 0; accepted: 1");
  batch.num_rows = 1;
  batch.payload = nullptr;
  Done(threshold.Append(batch));
  EXPECT_EQ(Take(open.Threshold()).Append(batch).text(),
            "threshold of a sort without limit: sort keys=i64; accepted: limit=N");
  batch.keys = nullptr;
  EXPECT_EQ(threshold.Append(batch).text(), "batch without columns: threshold key; accepted: 1 columns");
  quern::Output current = Take(limited.CurrentThreshold());
  Done(limited.Finalise());
  const std::string late = "threshold after finalise: the rows are sorted; accepted: a new sort";
  EXPECT_EQ(threshold.Append(table.batch()).text(), late);
  EXPECT_EQ(current.Next().status().text(), late);
}

}  // namespace
}  // namespace quern_test
