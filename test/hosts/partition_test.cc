// SPDX-License-Identifier: Apache-2.0
// Partitions of rows by their keys: the same for equal keys on both sides of a join, in every layout of a column, for
// groups, and in every process: the numbers below are written down.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>

#include "test/hosts/arrow_arrays.h"
#include "test/hosts/jobs.h"

namespace quern_test {
namespace {

using Numbers = std::vector<uint32_t>;
using Bytes = std::vector<uint8_t>;

Numbers PartitionsOf(const std::string& keys, const std::vector<quern_column>& columns, uint64_t num_rows,
                     uint32_t num_partitions = 1000, quern_port port = QUERN_PORT_PROBE) {
  const quern::Join join = New<quern::Join>("join.inner keys=" + keys, Engine::kGeneric);
  Numbers numbers(num_rows + 1, 77777);
  Done(join.Partition(port, Table{columns, {}, num_rows}.batch(), num_partitions, numbers.data()));
  EXPECT_EQ(numbers.back(), 77777u);
  numbers.pop_back();
  return numbers;
}

// Version 1 (QUERN_PARTITION_VERSION). A change of these numbers is a new version.
TEST(Partitions, OfVersionOne) {
  static_assert(QUERN_PARTITION_VERSION == 1);
  const std::vector<int64_t> numbers = {0, 1, -1, 42, INT64_MIN, INT64_MAX};
  EXPECT_EQ(PartitionsOf("i64", {ColumnOf(numbers)}, 6), (Numbers{0, 305, 962, 750, 519, 482}));
  const std::vector<double> doubles = {0.0, -0.0, 1.5, std::nan(""), -std::nan("")};
  EXPECT_EQ(PartitionsOf("f64", {ColumnOf(doubles)}, 5), (Numbers{0, 0, 83, 895, 895}));
  EXPECT_EQ(PartitionsOf("decimal128", {ColumnOf(numbers)}, 3), (Numbers{58, 872, 689}));
  const StringVector<int32_t> words({"", "a", "a string above twelve bytes", "a string above thirty-two bytes, twice"});
  EXPECT_EQ(PartitionsOf("utf8", {words.column()}, 4), (Numbers{613, 222, 782, 994}));
  const StringVector<int32_t> cased({"Stra\u00dfe", "strasse", "MUNCHEN", "M\u00fcnchen"});
  EXPECT_EQ(PartitionsOf("utf8(utf8mb4_0900_ai_ci)", {cased.column()}, 4), (Numbers{384, 384, 659, 659}));
  EXPECT_EQ(PartitionsOf("fixed_binary(3)", {ColumnOf(numbers)}, 2), (Numbers{445, 445}));
  const Bytes valid = Bitmap({true, false, true, false});
  EXPECT_EQ(PartitionsOf("i64:nullable,utf8", {WithValidity(ColumnOf(numbers), valid), words.column()}, 4),
            (Numbers{613, 641, 952, 699}));
}

TEST(Partitions, AreOneForEqualKeys) {
  const std::vector<std::string> texts = {"a", "b c", "a string above twelve bytes", ""};
  const StringVector<int32_t> words(texts);
  const StringVector<int64_t> large(texts);
  const ViewVector views(texts);
  const std::vector<int8_t> indices = {0, 1, 2, 3};
  const quern_column values = words.column();
  const Numbers expected = PartitionsOf("utf8", {words.column()}, 4);
  EXPECT_EQ(PartitionsOf("utf8", {words.column()}, 4, 1000, QUERN_PORT_BUILD), expected);
  EXPECT_EQ(PartitionsOf("large_utf8", {large.column()}, 4), expected);
  EXPECT_EQ(PartitionsOf("utf8_view", {views.column()}, 4), expected);
  EXPECT_EQ(PartitionsOf("binary", {words.column()}, 4), expected);
  EXPECT_EQ(PartitionsOf("dictionary(i8,utf8)", {DictionaryColumn(ColumnOf(indices), values)}, 4), expected);
  const StringVector<int32_t> cased({"A ", "B C", "A String above TWELVE bytes", " "}), lower(texts);
  EXPECT_EQ(PartitionsOf("utf8(utf8mb4_general_ci)", {cased.column()}, 4),
            PartitionsOf("utf8(utf8mb4_general_ci)", {lower.column()}, 4));
  EXPECT_NE(PartitionsOf("utf8", {cased.column()}, 4), expected);
  const std::vector<int32_t> narrow = {5, 9};
  const std::vector<int64_t> wide = {5, 9};
  EXPECT_EQ(PartitionsOf("i32", {ColumnOf(narrow)}, 2), PartitionsOf("i64", {ColumnOf(wide)}, 2));
  EXPECT_EQ(PartitionsOf("i32:nullable:nullequal", {ColumnOf(narrow)}, 2), PartitionsOf("i64", {ColumnOf(wide)}, 2));
}

TEST(Partitions, BelongToTheRowsOfTheSelection) {
  std::vector<int64_t> key;
  for (int64_t i = 0; i < 5000; ++i) key.push_back(i * i);
  const Numbers all = PartitionsOf("i64", {ColumnOf(key)}, key.size(), 7);
  std::map<uint32_t, uint32_t> sizes;
  for (const uint32_t number : all) ++sizes[number];
  ASSERT_EQ(sizes.size(), 7u);
  EXPECT_EQ(sizes.rbegin()->first, 6u);
  for (const auto& [number, size] : sizes) EXPECT_NEAR(size, 5000 / 7, 150) << number;
  Table some = {{ColumnOf(key)}, {}, 0, {4999, 3, 3, 17}};
  const quern::Join join = New<quern::Join>("join.inner keys=i64");
  Numbers numbers(4);
  Done(join.Partition(QUERN_PORT_BUILD, some.batch(), 7, numbers.data()));
  EXPECT_EQ(numbers, (Numbers{all[4999], all[3], all[3], all[17]}));
  EXPECT_EQ(PartitionsOf("i64", {ColumnOf(key)}, 3, 1), (Numbers{0, 0, 0}));
  EXPECT_EQ(PartitionsOf("i64", {}, 0), Numbers());
}

// Divides groups by an output's option, and rows by their keys. kinds: of the keys' columns in results.
void ExpectThoseOfGroups(const std::string& keys, const std::string& kinds, const std::vector<quern_column>& columns,
                         uint64_t num_rows) {
  std::vector<int64_t> row_numbers(num_rows);
  std::iota(row_numbers.begin(), row_numbers.end(), 0);
  for (const Engine engine : {Engine::kJit, Engine::kGeneric}) {
    SCOPED_TRACE(keys);
    quern::Aggregate groups =
        Aggregated("aggregate keys=" + keys + " aggs=min(i64)", {{columns, {ColumnOf(row_numbers)}, num_rows}}, engine);
    Numbers numbers(num_rows);
    Done(groups.Partition(QUERN_PORT_ROWS, Table{columns, {}, num_rows}.batch(), 5, numbers.data()));
    uint64_t num_groups = 0;
    for (uint32_t partition = 0; partition < 5; ++partition) {
      quern_output_options options = {};
      options.partition = partition;
      options.num_partitions = 5;
      for (const std::string& line : RowsOf(groups.Groups(options), kinds + "l")) {
        const size_t first_row = std::stoul(line.substr(line.rfind('|') + 1));
        EXPECT_EQ(numbers.at(first_row), partition) << line;
        ++num_groups;
      }
    }
    EXPECT_GT(num_groups, 4u);
    for (const uint32_t number : numbers) EXPECT_LT(number, 5u);
  }
}

TEST(Partitions, AreThoseOfGroups) {
  std::vector<int64_t> numbers;
  std::vector<int32_t> small, indices;
  std::vector<std::string> texts;
  std::vector<bool> bits;
  for (int64_t i = 0; i < 400; ++i) {
    numbers.push_back((i * 7919) % 100 * 1000003);
    small.push_back(static_cast<int32_t>(i % 30) - 15);
    indices.push_back(static_cast<int32_t>(i % 50));
    texts.push_back(std::string(static_cast<size_t>(i % 40), 'x') + std::to_string(i % 10) + (i % 3 == 0 ? " " : ""));
    bits.push_back(i % 11 != 0);
  }
  const Bytes valid = Bitmap(bits);
  const StringVector<int32_t> words(texts);
  const quern_column values = words.column();
  ExpectThoseOfGroups("i64", "l", {ColumnOf(numbers)}, 400);
  ExpectThoseOfGroups("i32:nullable", "i", {WithValidity(ColumnOf(small), valid)}, 400);
  ExpectThoseOfGroups("i64,i32", "li", {ColumnOf(numbers), ColumnOf(small)}, 400);
  ExpectThoseOfGroups("decimal128", "x", {ColumnOf(numbers)}, 200);
  ExpectThoseOfGroups("f64", "l", {ColumnOf(numbers)}, 400);
  ExpectThoseOfGroups("utf8", "s", {words.column()}, 400);
  ExpectThoseOfGroups("utf8(utf8mb4_bin):nullable", "s", {WithValidity(words.column(), valid)}, 400);
  ExpectThoseOfGroups("utf8(utf8mb4_0900_ai_ci),i32", "si", {words.column(), ColumnOf(small)}, 400);
  ExpectThoseOfGroups("dictionary(i32,utf8)", "s", {DictionaryColumn(ColumnOf(indices), values)}, 400);
}

TEST(Partitions, OfArrowArraysThatRemainTheHosts) {
  quern::Join join = New<quern::Join>("join.inner keys=i64 build=utf8");
  const TestSchema schema({{"key", "l"}, {"payload", "u"}});
  const int32_t key[] = {0}, payload[] = {1};
  const auto batch = StructArray(3, FixedArray<int64_t>({5, 6, 5}), Utf8Array({"", "", ""}));
  Numbers numbers(3);
  EXPECT_EQ(join.PartitionArrow(QUERN_PORT_BUILD, batch->array, 1000, numbers.data()).code(),
            QUERN_FAILED_PRECONDITION);
  Done(join.BindArrow(QUERN_PORT_BUILD, {&schema.schema, key, payload}));
  Done(join.PartitionArrow(QUERN_PORT_BUILD, batch->array, 1000, numbers.data()));
  const std::vector<int64_t> keys = {5, 6, 5};
  EXPECT_EQ(numbers, PartitionsOf("i64", {ColumnOf(keys)}, 3));
  const Numbers last_rows = {2};
  quern_arrow_rows some = {};
  some.struct_size = sizeof(some);
  some.selection = last_rows.data();
  some.num_rows = 1;
  Numbers one = {0, 88};
  Done(join.PartitionArrow(QUERN_PORT_BUILD, batch->array, 1000, one.data(), &some));
  EXPECT_EQ(one, (Numbers{numbers[2], 88}));
  EXPECT_EQ(batch->times_released, 0);
}

TEST(PartitionErrors, OfArguments) {
  const std::vector<int64_t> key = {1};
  const quern_batch batch = Table{{ColumnOf(key)}, {}, 1}.batch();
  uint32_t number = 0;
  const quern::Join join = New<quern::Join>("join.inner keys=i64");
  const quern::Aggregate aggregate = New<quern::Aggregate>("aggregate keys=i64 aggs=count_star");
  const quern::Sort sort = New<quern::Sort>("sort keys=i64:out");
  const auto text = [&](const quern::Job& job, quern_port port, uint32_t n) {
    const quern::Status status = job.Partition(port, batch, n, &number);
    EXPECT_EQ(status.code(), QUERN_INVALID_ARGUMENT);
    return status.text();
  };
  const std::string accepted =
      "; accepted: QUERN_PORT_BUILD or QUERN_PORT_PROBE of a join, QUERN_PORT_ROWS of an aggregation, "
      "QUERN_PORT_LEFT or QUERN_PORT_RIGHT of a set operation";
  EXPECT_EQ(text(join, QUERN_PORT_PROBE, 0), "number of partitions out of range: 0; accepted: 1 to 4294967295");
  EXPECT_EQ(text(join, QUERN_PORT_ROWS, 2), "port that the join does not have here: QUERN_PORT_ROWS" + accepted);
  EXPECT_EQ(text(aggregate, QUERN_PORT_STATES, 2),
            "port that the aggregation does not have here: QUERN_PORT_STATES" + accepted);
  EXPECT_EQ(text(sort, QUERN_PORT_ROWS, 2), "port that the sort does not have here: QUERN_PORT_ROWS" + accepted);
  EXPECT_EQ(text(join, static_cast<quern_port>(9), 2), "unknown port: 9; accepted: 0 to 7");
  const quern_job *of_join = join.handle(), *none = nullptr;
  const quern_batch* const no_batch = nullptr;
  uint32_t* const no_numbers = nullptr;
  const auto invalid = [](auto... call) { return ErrorOf(QUERN_INVALID_ARGUMENT, quern_job_partition, call...); };
  EXPECT_EQ(invalid(none, QUERN_PORT_BUILD, &batch, 2u, &number), "null argument: job; accepted: a pointer");
  EXPECT_EQ(invalid(of_join, QUERN_PORT_BUILD, no_batch, 2u, &number), "null argument: batch; accepted: a pointer");
  EXPECT_EQ(invalid(of_join, QUERN_PORT_BUILD, &batch, 2u, no_numbers),
            "null argument: partitions; accepted: a pointer");
}

}  // namespace
}  // namespace quern_test
