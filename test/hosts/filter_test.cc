// SPDX-License-Identifier: Apache-2.0
// Filters by a host: its own vectors of every layout, Arrow arrays that stay its own, threads, and what filters alone
// refuse. (What they share with other jobs: contract_test.cc.)
#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "test/hosts/arrow_arrays.h"
#include "test/hosts/jobs.h"

namespace quern_test {
namespace {

using Rows = std::vector<uint32_t>;

quern::Filter NewFilter(const std::string& spec, Engine engine = Engine::kJit) {
  return New<quern::Filter>(spec, engine);
}

// The three answers to one question, brought together; one row more than asked for says that nothing is written behind
// the end.
template <class Select, class Bitmap, class Count>
Rows Answers(uint64_t num_rows, const uint32_t* selection, Select select, Bitmap bitmap, Count count) {
  constexpr uint32_t kUntouched = 0xdddddddd;
  Rows rows(num_rows + 1, kUntouched);
  const quern::Result<uint64_t> selected = select(rows.data());
  EXPECT_TRUE(selected.ok()) << selected.status().text();
  std::vector<uint8_t> bits((num_rows + 7) / 8 + 1, 0xdd);
  const quern::Result<uint64_t> set = bitmap(bits.data());
  EXPECT_TRUE(set.ok()) << set.status().text();
  EXPECT_EQ(rows.back(), kUntouched);
  EXPECT_EQ(bits.back(), 0xdd);
  rows.resize(*selected);
  Rows of_bits;
  for (uint32_t i = 0; i < (bits.size() - 1) * 8; ++i)
    if (BitAt(bits.data(), i)) of_bits.push_back(selection == nullptr || i >= num_rows ? i : selection[i]);
  EXPECT_EQ(of_bits, rows);
  EXPECT_EQ(*set, rows.size());
  EXPECT_EQ(*count(), rows.size());
  return rows;
}

Rows RowsThatPass(const quern::Filter& filter, const quern_batch& batch) {
  return Answers(
      batch.num_rows, batch.selection, [&](uint32_t* rows) { return filter.Select(batch, rows); },
      [&](uint8_t* bits) { return filter.Bitmap(batch, bits); }, [&] { return filter.Count(batch); });
}

Rows RowsThatPass(const quern::Filter& filter, const ArrowArray& batch) {
  return Answers(
      static_cast<uint64_t>(batch.length), nullptr, [&](uint32_t* rows) { return filter.SelectArrow(batch, rows); },
      [&](uint8_t* bits) { return filter.BitmapArrow(batch, bits); }, [&] { return filter.CountArrow(batch); });
}

// The same rows by every engine.
void ExpectPass(const std::string& spec, const Table& table, const Rows& expected) {
  for (const Engine engine : {Engine::kJit, Engine::kGeneric}) {
    SCOPED_TRACE(spec + ", engine " + std::to_string(static_cast<int>(engine)));
    EXPECT_EQ(RowsThatPass(NewFilter(spec, engine), table.batch()), expected);
  }
}

// ---- a host's vectors ----

TEST(Filters, ColumnsInTheOrderOfTheirMention) {
  const StringVector<int32_t> flag({"A", "R", "R", "R", "r "});
  const std::vector<int64_t> quantity = {7, 2, 3, 9, 5};
  const Table table = {{flag.column(), ColumnOf(quantity), ColumnOf(quantity)}, {}, 5};
  ExpectPass("filter utf8 = 'R' and i64 >= 3 and i64 < 9", table, {2});
  ExpectPass("filter utf8(utf8mb4_general_ci) = 'r' and (i64 > 5 or i64 = 5)", table, {3, 4});
  ExpectPass("filter utf8 <> 'R' or not i64 between 3 and 4 and i64 is not null", table, {0, 1, 3, 4});
}

TEST(Filters, NullsAreNeitherTrueNorFalse) {
  const StringVector<int64_t> names({"a", "b", "", "a"});
  const std::vector<uint8_t> valid = Bitmap({true, true, false, true}, 3);
  const quern_column column = WithValidity(names.column(), valid, 3);
  const Table table = {{column, column}, {}, 4};
  const std::string type = "large_utf8:nullable";
  ExpectPass("filter " + type + " = 'a'", table, {0, 3});
  ExpectPass("filter not " + type + " = 'a'", table, {1});
  ExpectPass("filter " + type + " is null", table, {2});
  ExpectPass("filter " + type + " not in ('a', 'x') or " + type + " is null", table, {1, 2});
}

TEST(Filters, EveryLayoutOfStrings) {
  const std::vector<std::string> values = {"pending", "a pending deposit in a long text", "", "deposits",
                                           "pending deposits, all of them"};
  const StringVector<int32_t> narrow(values);
  const StringVector<int64_t> wide(values);
  const ViewVector views(values);
  const std::vector<uint16_t> indices = {4, 3, 2, 1, 0};
  const quern_column in_dictionary = narrow.column();
  const std::string like = " like '%pending%deposit%'";
  ExpectPass("filter utf8" + like, {{narrow.column()}, {}, 5}, {1, 4});
  ExpectPass("filter large_utf8" + like, {{wide.column()}, {}, 5}, {1, 4});
  ExpectPass("filter utf8_view" + like, {{views.column()}, {}, 5}, {1, 4});
  ExpectPass("filter dictionary(u16,utf8)" + like, {{DictionaryColumn(ColumnOf(indices), in_dictionary)}, {}, 5},
             {0, 3});
}

TEST(Filters, NullsOfADictionarysValues) {
  const StringVector<int32_t> words({"a", "", "b"});
  const std::vector<uint8_t> valid = Bitmap({true, false, true});
  const quern_column values = WithValidity(words.column(), valid);
  const std::vector<int32_t> indices = {0, 1, 2, 1};
  const Table table = {{DictionaryColumn(ColumnOf(indices), values)}, {}, 4};
  ExpectPass("filter dictionary(i32,utf8):nullable <> 'a'", table, {2});
  ExpectPass("filter dictionary(i32,utf8):nullable is null", table, {1, 3});
}

TEST(Filters, SelectedRowsInTheirOrder) {
  const std::vector<int32_t> numbers = {10, 11, 12, 13, 14, 15};
  const Table table = {{ColumnOf(numbers)}, {}, 6, {5, 1, 4, 1, 0}};
  ExpectPass("filter i32 > 10 and not i32 = 14", {{ColumnOf(numbers), ColumnOf(numbers)}, {}, 6, {5, 1, 4, 1, 0}},
             {5, 1, 1});
  ExpectPass("filter i32 in (10, 14, 20)", table, {4, 0});
}

TEST(Filters, TheNumberOfRowsMayStandInTheBatch) {
  const quern::Filter filter = NewFilter("filter i32 > 11");
  const std::vector<int32_t> numbers = {10, 11, 12, 13};
  const quern_column column = ColumnOf(numbers);
  quern_batch batch = {};
  batch.keys = &column;
  batch.num_rows = 4;
  uint32_t rows[4];
  ASSERT_EQ(quern_job_filter(filter.handle(), &batch, rows, nullptr, &batch.num_rows, nullptr), QUERN_OK);
  EXPECT_EQ(Rows(rows, rows + batch.num_rows), Rows({2, 3}));
}

TEST(Filters, BatchesOfEverySize) {
  std::vector<int32_t> numbers(9000);
  std::iota(numbers.begin(), numbers.end(), 0);
  for (const uint64_t num_rows : {0, 1, 7, 8, 63, 64, 65, 1023, 1024, 1025, 4097, 9000}) {
    Rows expected;
    for (uint32_t i = 0; i < num_rows; ++i)
      if (i < 3 || i >= 60) expected.push_back(i);
    ExpectPass("filter i32 not between 3 and 59", {{ColumnOf(numbers)}, {}, num_rows}, expected);
  }
}

TEST(Filters, OutliveTheirKernel) {
  const quern::Filter filter = NewFilter("filter i32 = 2");
  quern_cache_clear();  // now only the filter keeps the code
  const std::vector<int32_t> numbers = {1, 2, 2};
  EXPECT_EQ(RowsThatPass(filter, Table{{ColumnOf(numbers)}, {}, 3}.batch()), (Rows{1, 2}));
}

TEST(Filters, ServeManyThreadsAtOnce) {
  const quern::Filter filter = NewFilter("filter i32 > 5 and i32 <> 7");
  std::vector<int32_t> numbers(5000);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int32_t>(i % 11);
  const Table table = {{ColumnOf(numbers), ColumnOf(numbers)}, {}, numbers.size()};
  const Rows expected = RowsThatPass(filter, table.batch());
  OnThreads(4, [&] {
    for (int i = 0; i < 20; ++i) EXPECT_EQ(RowsThatPass(filter, table.batch()), expected);
  });
}

// ---- Arrow ----

constexpr const char* kSpec = "filter dictionary(i32,utf8):nullable = 'ASIA' or f64 >= 40";
constexpr int32_t kColumns[] = {1, 0};

const TestSchema& InputSchema() {
  static const TestSchema schema({{"price", "g"}, {"region", "i", "u", true}});
  return schema;
}

TestArrayPtr InputBatch() {
  return StructArray(
      4, FixedArray<double>({10, 20, 30, 40}),
      WithNulls(DictionaryArray({1, 0, 1, 0}, Utf8Array({"ASIA", "a region of some length"})), {0x07}, 1));
}

quern::Filter BoundFilter() {
  quern::Filter filter = NewFilter(kSpec);
  Done(filter.BindArrow(QUERN_PORT_ROWS, {&InputSchema().schema, kColumns, {}}));
  return filter;
}

TEST(ArrowFilters, LeaveArraysToTheHost) {
  const quern::Filter filter = BoundFilter();
  auto batch = InputBatch();
  EXPECT_EQ(RowsThatPass(filter, batch->array), (Rows{1, 3}));
  EXPECT_EQ(RowsThatPass(filter, batch->array), (Rows{1, 3})) << "as often as it likes";
  EXPECT_NE(batch->array.release, nullptr);
  batch->children[0]->array.length = 2;
  EXPECT_EQ(filter.CountArrow(batch->array).status().text(), "too few rows of column keys[1]: 2; accepted: 4 or more");
  EXPECT_EQ(batch->times_released, 0) << "also on error";
}

TEST(ArrowFilters, CountRowsFromTheOffset) {
  const quern::Filter filter = BoundFilter();
  auto batch = InputBatch();
  batch->array.offset = 1;
  batch->array.length = 3;
  EXPECT_EQ(RowsThatPass(filter, batch->array), (Rows{0, 2}));
}

TEST(ArrowFilters, TakeOneColumnTwice) {
  quern::Filter filter = NewFilter("filter f64 > 10 and f64 < 40");
  const int32_t columns[] = {0, 0};
  Done(filter.BindArrow(QUERN_PORT_ROWS, {&InputSchema().schema, columns, {}}));
  EXPECT_EQ(RowsThatPass(filter, InputBatch()->array), (Rows{1, 2}));
}

// ---- errors ----

TEST(FilterErrors, ColumnsWithoutPointers) {
  const quern::Filter filter = NewFilter("filter i32 = 2 and utf8 = 'a'");
  const std::vector<int32_t> numbers = {1, 2};
  quern_batch batch = Table{{ColumnOf(numbers), quern_column{}}, {}, 2}.batch();
  batch.keys = nullptr;
  EXPECT_EQ(filter.Count(batch).status().text(), "batch without columns: input key; accepted: 2 columns");
  const Table table = {{ColumnOf(numbers), quern_column{}}, {}, 2};
  EXPECT_EQ(filter.Count(table.batch()).status().text(),
            "column without offsets: input key 1 (utf8); accepted: a pointer, unless no row needs it");
}

TEST(FilterErrors, Bindings) {
  quern::Filter filter = NewFilter(kSpec);
  auto batch = InputBatch();
  const quern::Status unbound = filter.CountArrow(batch->array).status();
  EXPECT_EQ(unbound.text(),
            "Arrow columns not bound: the port input has no binding; accepted: after quern_job_bind_arrow");
  EXPECT_EQ(unbound.code(), QUERN_FAILED_PRECONDITION);
  const auto bind = [&](const int32_t (&columns)[2]) {
    return filter.BindArrow(QUERN_PORT_ROWS, {&InputSchema().schema, columns, {}});
  };
  EXPECT_EQ(bind({0, 1}).text(),
            "wrong type for input keys[0]: field \"price\" is f64; accepted: dictionary(i32,utf8)");
  EXPECT_EQ(bind({2, 0}).text(), "field out of range for keys[0]: 2; accepted: 0 to 1");
  Done(bind(kColumns));
  const ArrowArray released = {};
  EXPECT_EQ(filter.CountArrow(released).status().text(),
            "released array: no release callback; accepted: a struct array that is alive");
}

}  // namespace
}  // namespace quern_test
