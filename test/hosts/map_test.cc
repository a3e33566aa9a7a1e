// SPDX-License-Identifier: Apache-2.0
// Maps as jobs: a host's own vectors and Arrow arrays, outputs on threads, formats of decimals, dates and times, rows
// without a result, memory, and what maps alone refuse. (What expressions compute: test/unit/codegen/emit/map_test.cc.)
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <string>
#include <vector>

#include "test/hosts/arrow_results.h"
#include "test/hosts/jobs.h"

namespace quern_test {
namespace {

constexpr Engine kEngines[] = {Engine::kJit, Engine::kGeneric};

quern::Map NewMap(const std::string& spec, Engine engine = Engine::kJit, const quern_job_options& options = {}) {
  return New<quern::Map>(spec, engine, options);
}

// The rows of one batch, in their order.
Lines Mapped(quern::Output* output, const quern_batch& batch, std::string_view kinds) {
  Done(output->Push(batch));
  return InOrder(output, kinds);
}

// ---- a host's vectors ----

TEST(Maps, GiveRowsInTheOrderOfTheBatch) {
  const std::vector<int64_t> numbers = {10, 20, 30};
  const std::vector<double> reals = {0.5, 1.5, 4.0};
  const std::vector<uint8_t> valid = Bitmap({true, false, true}, 5);
  const Table table = {{ColumnOf(numbers), WithValidity(ColumnOf(reals), valid, 5)}, {}, 3};
  for (const Engine engine : kEngines) {
    quern::Map map =
        NewMap("map in=i64,f64:nullable out=add($0,1:i64),multiply($1,2:f64),is_null($1),$0,less($1,4:f64)", engine);
    quern::Output rows = Take(map.Rows());
    EXPECT_EQ(Mapped(&rows, table.batch(), "ldblb"),
              (Lines{"11|1|false|10|true", "21|null|true|20|null", "31|8|false|30|false"}));
  }
}

TEST(Maps, GiveAsManyRowsAtATimeAsAskedFor) {
  std::vector<int64_t> numbers(1000);
  std::iota(numbers.begin(), numbers.end(), 0);
  Lines expected;
  for (const int64_t number : numbers) expected.push_back(std::to_string(number * 3));
  const Table table = {{ColumnOf(numbers)}, {}, 1000};
  for (const Engine engine : kEngines) {
    quern::Map map = NewMap("map in=i64 out=multiply($0,3:i64)", engine);
    for (const uint64_t batch_rows : {0, 1, 7, 8, 250, 999, 1000, 5000}) {
      quern::Output rows = Take(map.Rows(batch_rows));
      for (int i = 0; i < 2; ++i) {
        Done(rows.Push(table.batch()));
        EXPECT_EQ(InOrder(&rows, "l", batch_rows), expected) << batch_rows;
      }
    }
  }
}

TEST(Maps, ComputeTheSelectedRowsAlone) {
  const std::vector<int32_t> numbers = {1, 2, 2147483647, 4};
  for (const Engine engine : kEngines) {
    quern::Map map = NewMap("map in=i32 out=add_checked($0,1:i32)", engine);
    quern::Output rows = Take(map.Rows());
    EXPECT_EQ(Mapped(&rows, Table{{ColumnOf(numbers)}, {}, 4, {3, 0, 3, 1}}.batch(), "i"), (Lines{"5", "2", "5", "3"}));
  }
}

TEST(Maps, NeedNoColumns) {
  quern::Map map = NewMap("map out=7:i64,null:i32");
  quern::Output rows = Take(map.Rows());
  EXPECT_EQ(Mapped(&rows, Table{{}, {}, 2}.batch(), "li"), (Lines{"7|null", "7|null"}));
}

TEST(Maps, AskForABatch) {
  const std::vector<int64_t> numbers = {1, 2, 3};
  const Table table = {{ColumnOf(numbers)}, {}, 3};
  quern::Map map = NewMap("map in=i64 out=negate($0)");
  quern::Output rows = Take(map.Rows(2));
  const auto next = [&] {
    const quern_result& result = *Take(rows.Next());
    return std::to_string(result.num_rows) + (result.state == QUERN_RESULT_MORE ? " more" : " needs input");
  };
  EXPECT_EQ(next(), "0 needs input");
  Done(rows.Push(table.batch()));
  EXPECT_EQ(next(), "2 more");
  EXPECT_EQ(next(), "1 needs input");
  EXPECT_EQ(next(), "0 needs input");
  Done(rows.Push(table.batch()));
  EXPECT_EQ(next(), "2 more");
  Done(rows.Push(Table{{ColumnOf(numbers)}, {}, 0}.batch()));
  EXPECT_EQ(next(), "0 needs input") << "the rest of the former batch is dropped";
}

TEST(Maps, HaveNoWork) {
  quern::Map map = NewMap("map in=i64 out=$0");
  EXPECT_EQ(Take(map.Work()), QUERN_WORK_DONE);
  Done(map.Finalise());
}

TEST(Maps, OutliveTheirKernel) {
  quern::Map map = NewMap("map in=i64 out=add($0,2:i64)");
  quern_cache_clear();  // now only the map keeps the code
  const std::vector<int64_t> numbers = {1};
  quern::Output rows = Take(map.Rows());
  map = NewMap("map in=i64 out=$0");  // now only the output does
  EXPECT_EQ(Mapped(&rows, Table{{ColumnOf(numbers)}, {}, 1}.batch(), "l"), (Lines{"3"}));
}

TEST(Maps, ServeManyThreadsAtOnce) {
  quern::Map map = NewMap("map in=i64 out=multiply($0,$0)");
  std::atomic<int64_t> next{0};
  OnThreads(4, [&] {
    quern::Output rows = Take(map.Rows(100));
    const int64_t first = 1000 * next++;
    std::vector<int64_t> numbers(1000);
    std::iota(numbers.begin(), numbers.end(), first);
    Lines expected;
    for (const int64_t number : numbers) expected.push_back(std::to_string(number * number));
    for (int i = 0; i < 5; ++i) EXPECT_EQ(Mapped(&rows, Table{{ColumnOf(numbers)}, {}, 1000}.batch(), "l"), expected);
  });
}

// ---- rows without a result ----

TEST(MapErrors, NameTheRowAndTakeAnotherBatch) {
  std::vector<int32_t> numbers(5000, 6), divisors(5000, 2);
  divisors[4321] = 0;
  const Table wrong = {{ColumnOf(numbers), ColumnOf(divisors)}, {}, 5000},
              right = {{ColumnOf(numbers), ColumnOf(divisors)}, {}, 2};
  for (const Engine engine : kEngines) {
    quern::Map map = NewMap("map in=i32,i32 out=divide_checked($0,$1)", engine);
    quern::Output rows = Take(map.Rows(3000));
    Done(rows.Push(wrong.batch()));
    EXPECT_EQ(Take(rows.Next())->num_rows, 3000u) << "the rows before are there";
    const quern::Status status = rows.Next().status();
    EXPECT_EQ(status.code(), QUERN_OUT_OF_RANGE);
    EXPECT_EQ(status.text(),
              "row 4321: divide_checked($0,$1) of 6 and 0: division by 0; accepted: rows for which the type has the "
              "result");
    EXPECT_EQ(rows.Next().status().text(), "result after a failure: rows are lost; accepted: a new batch");
    EXPECT_EQ(Mapped(&rows, right.batch(), "i"), (Lines{"3", "3"}));
  }
}

TEST(MapErrors, NameTheRowByItsId) {
  const std::vector<int32_t> divisors = {1, 2, 0, 4};
  for (const Engine engine : kEngines) {
    quern::Map map = NewMap("map in=i32 out=divide_checked(6:i32,$0)", engine);
    const auto error_of = [&map](const Table& table, uint64_t first_row_id) {
      quern::Output rows = Take(map.Rows());
      quern_batch batch = table.batch();
      batch.first_row_id = first_row_id;
      Done(rows.Push(batch));
      const std::string text = rows.Next().status().text();
      return text.substr(0, text.find(':'));
    };
    EXPECT_EQ(error_of({{ColumnOf(divisors)}, {}, 4}, 70000), "row 70002");
    EXPECT_EQ(error_of({{ColumnOf(divisors)}, {}, 2, {3, 2}}, 70000), "row 70002") << "of the batch, not the selection";
  }
}

TEST(MapErrors, Calls) {
  quern::Map map = NewMap("map in=i64,f64 out=$0");
  EXPECT_EQ(map.NewInput(QUERN_PORT_ROWS).status().text(),
            "port that the map does not have here: QUERN_PORT_ROWS; accepted: none, as it has no inputs");
  EXPECT_EQ(map.NewOutput(QUERN_PORT_PROBE).status().text(),
            "port that the map does not have here: QUERN_PORT_PROBE; accepted: QUERN_PORT_ROWS for outputs");
  EXPECT_EQ(map.Run({}).status().text(),
            "run of a map; accepted: a join, an aggregation or a sort, or a pipeline into one");
  quern::Output rows = Take(map.Rows());
  quern_batch batch = {};
  batch.num_rows = 3;
  EXPECT_EQ(rows.Push(batch).text(), "batch without columns: input key; accepted: 2 columns");
  const std::vector<int64_t> numbers = {1, 2, 3};
  EXPECT_EQ(rows.Push(Table{{ColumnOf(numbers), {}}, {}, 3}.batch()).text(),
            "column without values: input key 1 (f64); accepted: a pointer, unless no row needs it");
  map.Cancel();
  EXPECT_EQ(rows.Next().status().code(), QUERN_CANCELLED);
}

TEST(MapErrors, WithoutMemoryGoOnWithANewBatch) {
  const std::vector<int64_t> numbers(3000, 5);
  const Table table = {{ColumnOf(numbers)}, {}, 3000};
  HostMemory memory;
  quern::Map map = NewMap("map in=i64 out=negate($0)", Engine::kJit, memory.options());
  quern::Output rows = Take(map.Rows());
  memory.limit = memory.used.load();
  EXPECT_EQ(rows.Push(table.batch()).code(), QUERN_RESOURCE_EXHAUSTED);
  memory.limit = INT64_MAX;
  EXPECT_EQ(Mapped(&rows, table.batch(), "l"), Lines(3000, "-5"));
}

// ---- Arrow ----

// {name: utf8, price: decimal, discount: decimal, when: timestamp, day: date, sold: timestamp}
const TestSchema& Schema() {
  static const TestSchema schema({{"name", "u"},
                                  {"price", "d:15,2", nullptr, true},
                                  {"discount", "d:3,2,128"},
                                  {"when", "tsn:Europe/Paris"},
                                  {"day", "tdD"},
                                  {"sold", "tss:"},
                                  {"took", "tDm"}});
  return schema;
}

// The fields of the results of expressions on some of these columns.
std::string FieldsOf(const std::string& columns, const std::vector<int32_t>& children, const std::string& results) {
  quern::Map map = NewMap("map in=" + columns + " out=" + results, Engine::kGeneric);
  const quern::Status bound = map.BindArrow(QUERN_PORT_ROWS, {&Schema().schema, children, {}});
  if (!bound.ok()) return bound.text();
  ArrowSchema schema;
  Done(map.ResultSchema(QUERN_PORT_ROWS, &schema));
  return TakeFields(&schema);
}

TEST(ArrowMaps, NameResultsAndGiveThemFormats) {
  const std::string price = "decimal128(15,2):nullable,decimal128(3,2)";
  EXPECT_EQ(FieldsOf(price, {1, 2}, "$0,$1,multiply($0,subtract(1.00:decimal128(3,2),$1)),less($0,$1)"),
            "price:d:15,2? discount:d:3,2 multiply($0,subtract(1.00:decimal128(3,2),$1)):d:19,4? less($0,$1):b?");
  EXPECT_EQ(FieldsOf("date32,timestamp,timestamp,duration", {4, 3, 5, 6},
                     "year($0),$1,least($2,0:timestamp),0:timestamp,cast(0:i64,timestamp),negate(cast($3,i64))"),
            "year($0):i when:tsn:Europe/Paris least($2,0:timestamp):tss: 0:timestamp:tsu: cast(0:i64,timestamp):tsu: "
            "negate(cast($3,i64)):l");
  EXPECT_EQ(FieldsOf("timestamp,timestamp", {5, 3}, "case_when(less($0,0:timestamp),$1,null:timestamp)"),
            "case_when(less($0,0:timestamp),$1,null:timestamp):tsn:Europe/Paris?")
      << "the unit of the values, not of what a condition compares";
  EXPECT_EQ(FieldsOf("timestamp,timestamp", {5, 3}, "coalesce(case_when(is_null($0),null:timestamp,5:timestamp),$1)"),
            "coalesce(case_when(is_null($0),null:timestamp,5:timestamp),$1):tsn:Europe/Paris");
  EXPECT_EQ(FieldsOf("duration", {6}, "0:duration,greatest($0,1:duration),0:time64,0:date64"),
            "0:duration:tDu greatest($0,1:duration):tDm 0:time64:ttu 0:date64:tdm");
}

TEST(ArrowMaps, GiveMovedTimestampsTheirUnitAndZone) {
  EXPECT_EQ(FieldsOf("timestamp", {3}, "cast(add_checked(cast($0,i64),5:i64),timestamp)"),
            "cast(add_checked(cast($0,i64),5:i64),timestamp):tsn:Europe/Paris");
  EXPECT_EQ(FieldsOf("timestamp", {5}, "date_to_timestamp(date_trunc_month(timestamp_to_date($0,1:i64)),1:i64)"),
            "date_to_timestamp(date_trunc_month(timestamp_to_date($0,1:i64)),1:i64):tss:");
  EXPECT_EQ(FieldsOf("timestamp", {3}, "date_to_timestamp(timestamp_to_date($0,1000000000:i64),1000:i64)"),
            "date_to_timestamp(timestamp_to_date($0,1000000000:i64),1000:i64):tsm:Europe/Paris")
      << "the unit that the spec names";
  EXPECT_EQ(FieldsOf("date32", {4}, "date_to_timestamp($0,1000:i64)"), "date_to_timestamp($0,1000:i64):tsm:");
}

TEST(ArrowMaps, RefuseOtherFormatsThanTheSpecHas) {
  EXPECT_EQ(FieldsOf("decimal128(15,4)", {1}, "$0"), "format of map input column 0: d:15,2; accepted: d:15,4");
  EXPECT_EQ(FieldsOf("decimal128(12,2)", {1}, "$0"), "format of map input column 0: d:15,2; accepted: d:12,2");
  EXPECT_EQ(FieldsOf("decimal128(18,2):nullable", {1}, "$0,negate($0)"), "price:d:18,2? negate($0):d:18,2?")
      << "fewer digits than the type has";
  EXPECT_EQ(FieldsOf("i64", {3}, "$0"), "wrong type for input keys[0]: field \"when\" is timestamp; accepted: i64");
  EXPECT_EQ(FieldsOf("timestamp,timestamp", {3, 5}, "$0,$1,is_null(less($0,$1))"),
            "units in less($0,$1): $0 is tsn:Europe/Paris, $1 is tss:; accepted: columns of one unit");
  EXPECT_EQ(FieldsOf("timestamp,timestamp", {3, 5}, "less(cast($0,i64),cast($1,i64))"),
            "less(cast($0,i64),cast($1,i64)):b");
}

TestArrayPtr Prices(const std::vector<int64_t>& prices) {
  std::vector<__int128> wide(prices.begin(), prices.end());
  const auto n = static_cast<int64_t>(prices.size());
  return StructArray(n, Utf8Array(std::vector<std::string>(prices.size(), "a")),
                     WithNulls(FixedArray(wide), std::vector<uint8_t>((prices.size() + 7) / 8, 0xfd), 1),
                     FixedArray(std::vector<__int128>(prices.size(), 10)), FixedArray(prices),
                     FixedArray(std::vector<int32_t>(prices.size(), 366)), FixedArray(prices), FixedArray(prices));
}

TEST(ArrowMaps, TakeArraysAndGiveArrays) {
  auto batch = Prices({100, 200, -300, 400});
  const int32_t children[] = {1, 2, 4};
  ArrowArray result;
  {
    quern::Map map = NewMap(
        "map in=decimal128(15,2):nullable,decimal128(3,2),date32 "
        "out=multiply($0,subtract(1.00:decimal128(3,2),$1)),year($2),is_valid($0)");
    Done(map.BindArrow(QUERN_PORT_ROWS, {&Schema().schema, children, {}}));
    quern::Output rows = Take(map.Rows());
    Done(rows.PushArrow(&batch->array));
    EXPECT_EQ(batch->array.release, nullptr) << "moved in";
    Take(rows.NextArrow(&result));
    EXPECT_EQ(batch->times_released, 1) << "all its rows have come out";
  }
  EXPECT_EQ(TakeLines(&result, "xib"),
            (Lines{"28230000000000000000000000000000|1971|true", "null|1971|false",
                   "8896ffffffffffffffffffffffffffff|1971|true", "a08c0000000000000000000000000000|1971|true"}))
      << "it outlives all handles";
}

TEST(ArrowMaps, CountRowsOverBatchesWithoutIds) {
  auto first = Prices({1, 2, 3, 4}), second = Prices({5, 0});
  quern::Map map = NewMap("map in=timestamp out=divide_checked(1:i64,cast($0,i64))");
  const int32_t children[] = {3};
  Done(map.BindArrow(QUERN_PORT_ROWS, {&Schema().schema, children, {}}));
  quern::Output rows = Take(map.Rows());
  Done(rows.PushArrow(&first->array));
  EXPECT_EQ(Take(rows.Next())->num_rows, 4u);
  Done(rows.PushArrow(&second->array));
  EXPECT_EQ(rows.Next().status().text().substr(0, 6), "row 5:");
}

TEST(ArrowMaps, KeepTheArrayThatTheyRead) {
  auto first = Prices({1, 2, 3, 4}), second = Prices({5, 6});
  quern::Map map = NewMap("map in=timestamp out=cast($0,i64)");
  const int32_t children[] = {3};
  Done(map.BindArrow(QUERN_PORT_ROWS, {&Schema().schema, children, {}}));
  const std::vector<uint32_t> chosen = {3, 1, 0};
  const quern_arrow_rows rows = {sizeof(rows), chosen.data(), chosen.size(), 0};
  quern::Output output = Take(map.Rows(2));
  Done(output.PushArrow(&first->array, &rows));
  ArrowArray result;
  Take(output.NextArrow(&result));
  EXPECT_EQ(TakeLines(&result, "l"), (Lines{"4", "2"}));
  EXPECT_EQ(first->times_released, 0);
  Done(output.PushArrow(&second->array));
  EXPECT_EQ(first->times_released, 1) << "its rest is dropped";
  EXPECT_EQ(ArrowLines(&output, "l"), (Lines{"5", "6"}));
  EXPECT_EQ(second->times_released, 1);
  const quern::Status status = RefusalOf(Prices({7}), [&](ArrowArray* array) {
    array->children[3]->length = 0;
    return output.PushArrow(array);
  });
  EXPECT_EQ(status.code(), QUERN_INVALID_ARGUMENT);
}

TEST(ArrowMaps, NeedABinding) {
  auto batch = Prices({1});
  quern::Map map = NewMap("map in=i64 out=$0");
  quern::Output output = Take(map.Rows());
  EXPECT_EQ(output.PushArrow(&batch->array).text(),
            "Arrow columns not bound: the port input has no binding; accepted: after quern_job_bind_arrow");
  EXPECT_EQ(batch->times_released, 1);
}

}  // namespace
}  // namespace quern_test
