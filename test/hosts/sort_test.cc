// SPDX-License-Identifier: Apache-2.0
// Sorts of a host's own vectors: order, keys of several types, limits and thresholds, window functions, readers and
// handles.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "test/hosts/sort_tables.h"

namespace quern_test {
namespace {

const quern_column kRowIds = {};
const char* const kLong = "a text of more than twelve bytes";

// Six parts.
struct Parts {
  const std::vector<double> price = {10, 20, 30, 20, 5, 20};
  const std::vector<int64_t> number = {101, 102, 103, 104, 105, 106};
  const StringVector<int32_t> name{{"bolt", "nut", kLong, "cog", "cam", "pin"}};
  const Table table = {{ColumnOf(price), name.column()}, {ColumnOf(number), kRowIds}, 6};
  const Lines rows = {std::string("30|") + kLong + "|103|2",
                      "20|cog|104|3",
                      "20|nut|102|1",
                      "20|pin|106|5",
                      "10|bolt|101|0",
                      "5|cam|105|4"};
};
constexpr const char* kSpec = "sort keys=f64:desc:out,utf8:out payload=i64,rowid";

TEST(Sorts, PutRowsInOrder) {
  const Parts parts;
  ExpectSorted(kSpec, {parts.table}, "dslr", parts.rows);
  Table selected = parts.table;
  selected.selection = {5, 3, 0};
  ExpectSorted(kSpec, {selected}, "dslr", {parts.rows[1], parts.rows[3], parts.rows[4]});
}

TEST(Sorts, BringBatchesTogether) {
  const Parts parts;
  Table first = parts.table, second = parts.table;
  first.selection = {4, 2};
  second.selection = {0, 1, 3, 5};
  ExpectSorted(kSpec, {first, second}, "dslr", parts.rows);
  ExpectSorted(kSpec, {second, first}, "dslr", parts.rows);
}

TEST(Sorts, OfNoRowsGiveNone) {
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
  const StringVector<int64_t> word({"b ", "a", "b", "a ", std::string(kLong) + "  "});
  const std::vector<int64_t> number = {1, 2, 3, 4, 5};
  const Table table = {{word.column(), ColumnOf(number)}, {}, 5};
  const std::string last = "|5";
  ExpectSorted("sort keys=large_utf8:out,i64:out", {table}, "Sl",
               {"a|2", "a |4", kLong + ("  " + last), "b|3", "b |1"});
  ExpectSorted("sort keys=large_utf8(utf8mb4_bin):out,i64:desc:out", {table}, "Sl",
               {"a |4", "a|2", kLong + ("  " + last), "b|3", "b |1"});
}

TEST(Sorts, DecodeDictionaries) {
  const StringVector<int32_t> first({"ASIA", kLong}), second({"EUROPE", "AFRICA", "ASIA"});
  const quern_column first_values = first.column(), second_values = second.column();
  const std::vector<uint8_t> first_index = {1, 0, 1}, second_index = {0, 1, 2};
  const std::vector<int64_t> value = {1, 2, 4};
  const Table one = {{DictionaryColumn(ColumnOf(first_index), first_values)}, {ColumnOf(value)}, 3};
  const Table two = {{DictionaryColumn(ColumnOf(second_index), second_values)}, {ColumnOf(value)}, 3};
  const std::string long_text = kLong;
  ExpectSorted("sort keys=dictionary(u8,utf8):desc:out payload=i64 stable", {one, two}, "sl",
               {long_text + "|1", long_text + "|4", "EUROPE|1", "ASIA|2", "ASIA|4", "AFRICA|2"});
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
  const Table table = {{ColumnOf(parts.number)}, {}, 6};
  for (const char* spec : {"sort keys=i64", "sort keys=i64 limit=6"}) {
    const quern::Sort sort = Sorted(spec, {table});
    auto sorted = quern::SortedRows::Create(sort);
    uint64_t num_rows = 0;
    for (bool more = true; more;) {
      auto rows = sorted->Next();
      ASSERT_TRUE(rows.ok()) << rows.status().text();
      EXPECT_EQ(rows->result.num_columns, 0u);
      num_rows += rows->result.num_rows;
      more = rows->more;
    }
    EXPECT_EQ(num_rows, 6u);
  }
}

TEST(Sorts, NumberTheRowsOfEachPartition) {
  const std::vector<int32_t> group = {2, 1, 2, 2, 1}, value = {7, 5, 7, 9, 5};
  const Table table = {{ColumnOf(group), ColumnOf(value)}, {}, 5};
  ExpectSorted("sort keys=i32:out,i32:out partition=1 window=row_number,rank,dense_rank", {table}, "iirrr",
               {"1|5|1|1|1", "1|5|2|1|1", "2|7|1|1|1", "2|7|2|1|1", "2|9|3|3|2"});
  ExpectSorted("sort keys=i32,i32:out limit=4 window=rank", {table}, "ir", {"5|1", "5|1", "7|3", "7|3"});
}

// ---- strings ----

TEST(Sorts, CopyTheBytesOfStringsWhereAsked) {
  const std::vector<int64_t> key = {2, 1};
  StringVector<int32_t> name({kLong, "short"});
  ViewVector view({kLong, "short"});
  const Table table = {{ColumnOf(key), name.column()}, {name.column(), view.column()}, 2};
  quern::Sort sort = NewSort("sort keys=i64,utf8:out payload=utf8,utf8_view");
  ASSERT_EQ(sort.Append(table.batch(), quern::StringBytes::kCopied).text(), "");
  auto appender = quern::SortAppender::Create(sort);
  ASSERT_EQ(appender->Append(table.batch(), quern::StringBytes::kCopied).text(), "");
  ASSERT_EQ(appender->Finish().text(), "");
  std::fill(name.bytes.begin(), name.bytes.end(), 'x');
  std::fill(view.bytes[1].begin(), view.bytes[1].end(), 'x');
  ASSERT_EQ(sort.Finalise().text(), "");
  const std::string text = kLong, line = text + "|" + text + "|" + text;
  EXPECT_EQ(RowsOf(sort, "ssv"), (Lines{"short|short|short", "short|short|short", line, line}));
}

// ---- limits and thresholds ----

TEST(Limits, LetTheFirstRowsOut) {
  const Parts parts;
  const Lines best(parts.rows.begin(), parts.rows.begin() + 3);
  ExpectSorted(std::string(kSpec) + " limit=3", {parts.table}, "dslr", best);
  ExpectSorted(std::string(kSpec) + " limit=6", {parts.table}, "dslr", parts.rows);
  ExpectSorted(std::string(kSpec) + " limit=1000000", {parts.table}, "dslr", parts.rows);
}

TEST(Limits, KeepNothingOfTheStringsThatAreCopied) {
  StringVector<int32_t> name({"b", kLong, "c"});
  const Table table = {{name.column()}, {}, 3};
  quern::Sort sort = NewSort("sort keys=utf8:out limit=2");
  ASSERT_EQ(sort.Append(table.batch(), quern::StringBytes::kCopied).text(), "");
  std::fill(name.bytes.begin(), name.bytes.end(), 'x');
  ASSERT_EQ(sort.Finalise().text(), "");
  EXPECT_EQ(RowsOf(sort, "s"), (Lines{kLong, "b"}));
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
  for (const quern::Engine engine : {quern::Engine::kJit, quern::Engine::kGeneric}) {
    quern::Sort sort = NewSort("sort keys=i32:desc:out payload=rowid limit=20", engine);
    EXPECT_EQ(ThresholdOf(&sort, "i"), "none");
    ASSERT_EQ(sort.Append(rows.Batch(0, 19, ColumnOf(rows.number)).batch()).text(), "");
    EXPECT_EQ(ThresholdOf(&sort, "i"), "none") << "too few rows";
    int threshold = -1;
    for (uint32_t first = 0; first < 20000; first += 5000) {
      ASSERT_EQ(sort.Append(rows.Batch(first, 5000, ColumnOf(rows.number)).batch()).text(), "");
      const int next = std::stoi(ThresholdOf(&sort, "i"));
      EXPECT_GE(next, threshold) << "it only ever comes nearer";
      threshold = next;
      const auto is_above = [&](int32_t number) { return number >= threshold; };
      EXPECT_GE(std::count_if(rows.number.begin(), rows.number.begin() + first + 5000, is_above), 19)
          << "one may have come twice";
    }
    ASSERT_EQ(sort.Finalise().text(), "");
    EXPECT_GT(sort.Stats().dropped_rows, 0u);
    std::vector<int32_t> expected = rows.number;
    expected.insert(expected.end(), rows.number.begin(), rows.number.begin() + 19);
    std::sort(expected.rbegin(), expected.rend());
    auto sorted = quern::SortedRows::Create(sort);
    auto out = sorted->Next();
    ASSERT_TRUE(out.ok()) << out.status().text();
    ASSERT_EQ(out->result.num_rows, 20u);
    for (uint64_t i = 0; i < 20; ++i) EXPECT_EQ(ElementAt<int32_t>(out->result.columns[0].values, i), expected[i]);
  }
}

TEST(Thresholds, HaveAllKeysWhateverComesOut) {
  const ManyRows rows;
  Table table = rows.Batch(0, 20000, ColumnOf(rows.number));
  table.keys = {rows.names.column(), ColumnOf(rows.number)};
  quern::Sort sort = NewSort("sort keys=utf8(utf8mb4_bin):desc,i32 payload=rowid limit=2");
  ASSERT_EQ(sort.Append(table.batch()).text(), "");
  const std::string row = ThresholdOf(&sort, "si");
  EXPECT_EQ(row.substr(0, 23), "a name of some length 1");
  EXPECT_EQ(std::stoi(row.substr(23, 6)), std::stoi(row.substr(30)));
}

TEST(Thresholds, LeaveOutWhatComesAfterThem) {
  const std::vector<int32_t> number = {5, 9, 4, 7, 3, 1}, known = {1000, 6};
  for (const quern::Engine engine : {quern::Engine::kJit, quern::Engine::kGeneric}) {
    quern::Sort sort = NewSort("sort keys=i32:desc:out limit=4", engine);
    const Table threshold = {{ColumnOf(known)}, {}, 2, {1}};
    ASSERT_EQ(sort.SetThreshold(threshold.batch()).text(), "");
    ASSERT_EQ(sort.Append(Table{{ColumnOf(number)}, {}, 6}.batch()).text(), "");
    ASSERT_EQ(sort.Finalise().text(), "");
    const Lines rows = RowsOf(sort, "i");
    ASSERT_GE(rows.size(), 2u) << "those after the threshold may come out, the others must";
    EXPECT_EQ((Lines{rows[0], rows[1]}), (Lines{"9", "7"}));
    EXPECT_EQ(sort.Stats().input_rows, 6u);
  }
}

TEST(Thresholds, GoFromSortToSort) {
  const ManyRows rows;
  const std::string spec = "sort keys=utf8:out payload=rowid limit=5";
  const Table table = rows.Batch(0, 20000, rows.names.column());
  quern::Sort first = NewSort(spec), second = NewSort(spec);
  ASSERT_EQ(first.Append(table.batch()).text(), "");
  auto row = first.GetThreshold();
  ASSERT_TRUE(row.ok() && row->has_value()) << row.status().text();
  quern_column key = {};
  key.values = (*row)->columns[0].values;
  key.offsets = (*row)->columns[0].offsets;
  ASSERT_EQ(second.SetThreshold(Table{{key}, {}, 1}.batch()).text(), "");
  ASSERT_EQ(second.Append(table.batch()).text(), "");
  ASSERT_EQ(first.Finalise().text(), "");
  ASSERT_EQ(second.Finalise().text(), "");
  const Lines expected = RowsOf(first, "sr");
  EXPECT_EQ(expected.size(), 5u);
  EXPECT_EQ(expected.front(), "a name of some length 1000000|0");
  EXPECT_EQ(RowsOf(second, "sr"), expected);
}

// ---- readers ----

TEST(SortReaders, GiveNoRowsAfterTheLast) {
  const Parts parts;
  const quern::Sort sort = Sorted(kSpec, {parts.table});
  auto sorted = quern::SortedRows::Create(sort);
  EXPECT_EQ(ReadInOrder(&*sorted, "dslr"), parts.rows);
  auto rows = sorted->Next();
  ASSERT_TRUE(rows.ok()) << rows.status().text();
  EXPECT_EQ(rows->result.num_rows, 0u);
  EXPECT_EQ(rows->result.num_columns, 4u);
  EXPECT_FALSE(rows->more);
}

TEST(SortReaders, ShareTheRows) {
  const Parts parts;
  const quern::Sort sort = Sorted(kSpec, {parts.table});
  auto one = quern::SortedRows::Create(sort, 2), two = quern::SortedRows::Create(sort, 1);
  Lines lines(6);
  for (bool more = true; more;) {
    more = false;
    for (quern::SortedRows* reader : {&*one, &*two}) {
      auto rows = reader->Next();
      ASSERT_TRUE(rows.ok()) << rows.status().text();
      Lines some;
      AddLines(rows->result, "dslr", &some);
      for (size_t i = 0; i < some.size(); ++i) lines.at(rows->position + i) = some[i];
      more |= rows->more;
    }
  }
  EXPECT_EQ(lines, parts.rows);
}

TEST(Sorts, TellWhatTheyHave) {
  const Parts parts;
  quern::Sort sort = NewSort(std::string(kSpec) + " limit=4");
  ASSERT_EQ(sort.Append(parts.table.batch()).text(), "");
  EXPECT_EQ(sort.Method(), "");
  ASSERT_EQ(sort.Finalise().text(), "");
  EXPECT_NE(sort.Method(), "");
  const quern_sort_stats stats = sort.Stats();
  EXPECT_EQ(stats.input_rows, 6u);
  EXPECT_EQ(stats.num_rows, 4u);
  EXPECT_LE(stats.dropped_rows, 2u);
  EXPECT_GT(stats.entry_bytes, 0u);
  EXPECT_GT(stats.key_bits, 0u);
  EXPECT_GT(stats.peak_bytes, 0u);
  EXPECT_EQ(quern_sort_method(nullptr), nullptr);
}

TEST(Sorts, SeeWhatIsSortedAlready) {
  std::vector<int64_t> number;
  for (int64_t i = 0; i < 200000; ++i) number.push_back(i * 7);
  const Table table = {{ColumnOf(number)}, {}, number.size()};
  EXPECT_EQ(Sorted("sort keys=i64:out", {table}).Method(), "sorted");
  EXPECT_EQ(Sorted("sort keys=i64:desc:out", {table}).Method(), "reversed");
}

TEST(SortKernels, SayWhatTheyAre) {
  auto kernel = quern::Kernel::Compile("sort  payload=rowid keys=i64:asc:nulls_last", quern::Engine::kGeneric);
  ASSERT_TRUE(kernel.ok()) << kernel.status().text();
  EXPECT_EQ(kernel->Text("spec"), "sort keys=i64 payload=rowid");
  EXPECT_EQ(kernel->Text("engine"), "generic");
  EXPECT_EQ(kernel->Text("plan").substr(0, 32), "plan sort keys=i64 payload=rowid");
  EXPECT_NE(kernel->Text("layout"), "");
}

// ---- handles ----

TEST(SortHandles, MayGoInAnyOrder) {
  const Parts parts;
  const quern_batch batch = parts.table.batch();
  quern_kernel* kernel = nullptr;
  quern_sort* sort = nullptr;
  ASSERT_EQ(quern_compile(kSpec, QUERN_ENGINE_AUTO, "", &kernel, nullptr), QUERN_OK);
  ASSERT_EQ(quern_sort_create(kernel, 0, &sort, nullptr), QUERN_OK);
  quern_kernel_destroy(kernel);
  quern_cache_clear();  // now only the sort keeps the code
  quern_sort_appender* appender = nullptr;
  ASSERT_EQ(quern_sort_appender_create(sort, &appender, nullptr), QUERN_OK);
  ASSERT_EQ(quern_sort_appender_append(appender, &batch, true, nullptr), QUERN_OK);
  ASSERT_EQ(quern_sort_appender_finish(appender, nullptr), QUERN_OK);
  ASSERT_EQ(quern_sort_finalise(sort, nullptr), QUERN_OK);
  quern_sorted *first = nullptr, *second = nullptr;
  ASSERT_EQ(quern_sorted_create(sort, 2, &first, nullptr), QUERN_OK);
  ASSERT_EQ(quern_sorted_create(sort, 2, &second, nullptr), QUERN_OK);
  quern_sort_destroy(sort);
  quern_sorted_destroy(first);
  quern_sort_appender_destroy(appender);
  Lines lines;
  for (bool more = true; more;) {
    quern_result result;
    ASSERT_EQ(quern_sorted_next(second, &result, nullptr, &more, nullptr), QUERN_OK) << "nobody asks for the position";
    AddLines(result, "dslr", &lines);
  }
  EXPECT_EQ(lines, parts.rows);
  quern_sorted_destroy(second);
}

TEST(SortHandles, ThatAreNullAreNothing) {
  quern_sort_destroy(nullptr);
  quern_sort_appender_destroy(nullptr);
  quern_sorted_destroy(nullptr);
  quern_merge_destroy(nullptr);
  quern_sort_stats stats;
  std::memset(&stats, 0xff, sizeof(stats));
  quern_sort_get_stats(nullptr, &stats);
  EXPECT_EQ(stats.input_rows, 0u);
  quern_sort_get_stats(nullptr, nullptr);
}

TEST(CppWrapper, MovesTheHandlesOfSorts) {
  quern::Sort sort = NewSort(kSpec);
  quern::Sort moved = std::move(sort);
  EXPECT_EQ(moved.Method(), "");
  static_assert(!std::is_copy_constructible_v<quern::Sort> && !std::is_copy_constructible_v<quern::SortAppender> &&
                !std::is_copy_constructible_v<quern::SortedRows> && !std::is_copy_constructible_v<quern::Merge>);
}

}  // namespace
}  // namespace quern_test
