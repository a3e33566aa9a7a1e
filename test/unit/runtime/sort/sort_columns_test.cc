// SPDX-License-Identifier: Apache-2.0
// From encoded rows to columns: numbers decoded from their words, fields and other columns next to each other,
// consecutive blocks, and what a kernel returns.
#include "runtime/sort/sort_columns.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ir-templates/generic/generic_sort.h"
#include "runtime/sort/row_sort.h"
#include "runtime/spec/spec.h"
#include "test/unit/runtime/aggregate/group_rows.h"
#include "test/unit/seed.h"

namespace quern {
namespace {

using test::BoolColumn;
using test::ColumnPtr;
using test::Lines;
using test::Message;
using test::NumberColumn;
using test::PrintedRandom;
using test::RandomColumn;
using test::StringColumn;
using test::WithNulls;

std::shared_ptr<SortDescriptor> ShapeOf(const std::string& text) {
  const auto spec = ParseSpecOf<SortSpec>(text);
  EXPECT_TRUE(spec.ok()) << spec.status();
  return std::make_shared<SortDescriptor>(*spec);
}

// The rows of a batch as a block, in their order.
struct EncodedRows {
  std::shared_ptr<SortDescriptor> descriptor;
  std::vector<ColumnPtr> columns;  // whose strings tuples point to
  std::vector<std::vector<uint64_t>> words;
  std::vector<const uint64_t*> word_rows;
  std::vector<uint8_t> tuples;
  std::vector<uint64_t> addresses, numbers;
  uint32_t num_rows;

  EncodedRows(const std::string& spec, uint32_t n, const std::vector<ColumnPtr>& keys,
              const std::vector<ColumnPtr>& payload = {})
      : descriptor(ShapeOf(spec)), columns(keys), num_rows(n) {
    columns.insert(columns.end(), payload.begin(), payload.end());
    const QuernSortDescriptor* sort = descriptor->get();
    words.assign(sort->num_words, std::vector<uint64_t>(n));
    std::vector<uint64_t*> to;
    for (auto& word : words) to.push_back(word.data());
    word_rows.assign(to.begin(), to.end());
    std::vector<QuernColumn> key_columns, fields;
    for (const ColumnPtr& key : keys) key_columns.push_back(key->column);
    for (const SortFieldSource& field : descriptor->fields())
      fields.push_back((field.is_key ? keys : payload)[field.index]->column);
    uint32_t incomplete = 0;
    GenericSortKernel().encode(sort, key_columns.data(), 0, nullptr, n, to.data(), &incomplete);
    tuples.resize(uint64_t{n} * sort->rows.tuple_bytes + 1);
    if (descriptor->has_tuples())
      GenericSortKernel().store(&sort->rows, fields.data(), 0, nullptr, n, 0, tuples.data());
    for (uint32_t i = 0; i < n; ++i) {
      addresses.push_back(reinterpret_cast<uint64_t>(tuples.data() + uint64_t{i} * sort->rows.tuple_bytes));
      numbers.push_back(1000 + i);
    }
  }

  SortedBlock From(uint32_t begin, uint32_t n) {
    for (size_t w = 0; w < words.size(); ++w) word_rows[w] = words[w].data() + begin;
    const uint64_t* of_rows = numbers.data() + begin;
    return {n, word_rows.data(), addresses.data() + begin, of_rows, of_rows, of_rows, of_rows};
  }

  OutputBatch MakeBatch(uint64_t capacity) const { return {SortOutputTypes(descriptor->spec()), capacity, nullptr}; }

  // All rows, in blocks of these sizes and one of the remaining rows.
  Lines Written(const std::vector<uint32_t>& blocks = {}) {
    OutputBatch out = MakeBatch(num_rows);
    EXPECT_EQ(out.Reset(), absl::OkStatus());
    SortColumnWriter writer(descriptor, GenericSortKernel());
    uint32_t begin = 0;
    const auto append = [&](uint32_t n) {
      const auto written = writer.Append(From(begin, n), &out);
      EXPECT_TRUE(written.ok() && *written == n) << written.status();
      begin += n;
    };
    for (const uint32_t n : blocks) append(n);
    append(num_rows - begin);
    EXPECT_EQ(out.num_rows(), num_rows);
    Lines lines;
    test::AddLines(out, &lines);
    for (size_t c = 0; c < out.num_columns(); ++c) ExpectNullCount(out, c);
    return lines;
  }

  static void ExpectNullCount(const OutputBatch& out, size_t c) {
    uint64_t num_nulls = 0;
    for (uint64_t row = 0; row < out.num_rows(); ++row)
      num_nulls += test::CellOf(out.column(c), out.type(c), row) == "null";
    EXPECT_EQ(out.column(c).null_count, num_nulls);
  }
};

// The expected lines of a column whose rows keep their order.
Lines LinesOf(const ColumnType& type, const ColumnPtr& column, uint32_t n) {
  QuernOutColumn out = {};
  out.values = const_cast<void*>(column->column.values);
  out.validity = const_cast<uint8_t*>(column->column.validity);
  Lines lines;
  for (uint32_t i = 0; i < n; ++i) lines.push_back(test::CellOf(out, type, i));
  return lines;
}

// ---- numbers from words ----

TEST(SortColumns, NumbersComeOutOfTheirWordsAsTheyWere) {
  auto random = PrintedRandom();
  constexpr uint32_t kRows = 203;
  for (const TypeRow& row : AllTypes()) {
    const bool is_float = row.key_storage == kF32 || row.key_storage == kF64;
    if (IsVariable(row.storage) || row.storage == kFixed || row.storage == kRowId || is_float) continue;
    const ColumnType type = test::TypeOf(row.id);
    for (const char* flags : {"", ":desc", ":nullable", ":nullable:nulls_first", ":nullable:desc:nulls_first"}) {
      SCOPED_TRACE(std::string(row.text) + flags);
      ColumnPtr column = RandomColumn(type, kRows, &random);
      std::vector<bool> valid(kRows);
      for (uint32_t i = 0; i < kRows; ++i) valid[i] = random() % 4 != 0;
      if (flags[0] != '\0' && flags[1] == 'n') column = WithNulls(column, valid);
      EncodedRows rows("sort keys=bool," + std::string(row.text) + flags + ":out", kRows,
                       {BoolColumn(std::vector<bool>(kRows)), column});
      EXPECT_EQ(rows.Written({1, 7, 64, 3, 0, 70}), LinesOf(type, column, kRows));
    }
  }
}

TEST(SortColumns, ExtremesComeOutOfTheirWords) {
  const __int128 most = static_cast<__int128>(~static_cast<unsigned __int128>(0) >> 1);
  const auto numbers = NumberColumn<int64_t>({INT64_MIN, -1, 0, INT64_MAX});
  const auto decimals = NumberColumn<__int128>({-most - 1, -1, 0, most});
  EncodedRows rows("sort keys=i64:desc:out,decimal128:out,decimal128:desc:out", 4, {numbers, decimals, decimals});
  const std::string least_text = "-170141183460469231731687303715884105728",
                    most_text = "170141183460469231731687303715884105727";
  EXPECT_EQ(rows.Written(), (Lines{"-9223372036854775808|" + least_text + "|" + least_text, "-1|-1|-1", "0|0|0",
                                   "9223372036854775807|" + most_text + "|" + most_text}));
}

TEST(SortColumns, NullsComeOutAsZeros) {
  EncodedRows rows("sort keys=i32:nullable:out,bool:nullable:nulls_first:out", 3,
                   {WithNulls(NumberColumn<int32_t>({-1, -1, 7}), {true, false, true}),
                    WithNulls(BoolColumn({true, true, true}), {false, true, false})});
  OutputBatch out = rows.MakeBatch(3);
  ASSERT_EQ(out.Reset(), absl::OkStatus());
  ASSERT_TRUE(SortColumnWriter(rows.descriptor, GenericSortKernel()).Append(rows.From(0, 3), &out).ok());
  EXPECT_EQ(static_cast<const int32_t*>(out.column(0).values)[1], 0);
  EXPECT_EQ(*static_cast<const uint8_t*>(out.column(1).values), 2);
  EXPECT_EQ(out.column(0).null_count, 1u);
  EXPECT_EQ(out.column(1).null_count, 2u);
}

TEST(SortColumns, DictionaryKeysComeOutDecoded) {
  EncodedRows rows("sort keys=dictionary(u8,i64):nullable:out,dictionary(u8,utf8):out", 3,
                   {WithNulls(test::DictionaryColumn({1, 0, 1}, NumberColumn<int64_t>({-5, 6})), {true, true, false}),
                    test::DictionaryColumn({0, 1, 0}, StringColumn(kVar32, {"a string of some length", "b"}))});
  EXPECT_EQ(rows.Written(), (Lines{"6|a string of some length", "-5|b", "null|a string of some length"}));
}

// ---- several columns ----

TEST(SortColumns, FieldsAndOtherColumnsTakeTheirPlaces) {
  const auto keys = NumberColumn<int32_t>({30, 10, 20});
  const auto names =
      WithNulls(StringColumn(kVar32, {"thirty, which is longer than a view", "", "twenty"}), {true, false, true});
  const auto prices = NumberColumn<double>({0.5, -0.0, 2.25});
  EncodedRows rows("sort keys=utf8:nullable:out,i32:out,f64 payload=rowid,f64 window=row_number,dense_rank,rank", 3,
                   {names, keys, prices}, {nullptr, prices});
  const Lines expected = {"thirty, which is longer than a view|30|1000|0.5|1000|1000|1000",
                          "null|10|1001|-0|1001|1001|1001", "twenty|20|1002|2.25|1002|1002|1002"};
  EXPECT_EQ(rows.Written(), expected);
  EXPECT_EQ(rows.Written({1, 1}), expected);
}

TEST(SortColumns, FieldsAloneNeedNoWords) {
  const auto names = StringColumn(kView, {"short", "a string of more than twelve bytes"});
  EncodedRows rows("sort keys=f64:out,utf8_view:desc:out", 2, {NumberColumn<double>({1.5, 2.5}), names});
  EXPECT_EQ(rows.Written({1}), (Lines{"1.5|short", "2.5|a string of more than twelve bytes"}));
}

TEST(SortColumns, BatchesWithoutColumnsCount) {
  EncodedRows rows("sort keys=utf8:out", 2, {StringColumn(kVar32, {"a", "b"})});
  OutputBatch out({}, 1, nullptr);
  ASSERT_EQ(out.Reset(), absl::OkStatus());
  SortColumnWriter writer(rows.descriptor, GenericSortKernel());
  EXPECT_EQ(writer.Append(rows.From(0, 2), &out).value(), 2u);
  EXPECT_EQ(writer.Append(rows.From(0, 2), &out).value(), 2u);
  EXPECT_EQ(out.num_rows(), 4u);
}

// ---- rows that do not fit ----

TEST(SortColumns, AFullBatchTakesAsManyRowsAsItHasRoomFor) {
  EncodedRows rows("sort keys=i32:out payload=utf8", 3, {NumberColumn<int32_t>({1, 2, 3})},
                   {StringColumn(kVar32, {"a", "b", "c"})});
  OutputBatch out = rows.MakeBatch(2);
  ASSERT_EQ(out.Reset(), absl::OkStatus());
  SortColumnWriter writer(rows.descriptor, GenericSortKernel());
  EXPECT_EQ(writer.Append(rows.From(0, 3), &out).value(), 2u);
  EXPECT_EQ(writer.Append(rows.From(2, 1), &out).value(), 0u);
  Lines lines;
  test::AddLines(out, &lines);
  EXPECT_EQ(lines, (Lines{"1|a", "2|b"}));
}

TEST(SortColumns, WhatDoesNotFitAStringColumnIsLeft) {
  EncodedRows rows("sort keys=i32:out payload=utf8", 3, {NumberColumn<int32_t>({1, 2, 3})},
                   {StringColumn(kVar32, {"a", "b", "c"})});
  QuernSortEntryPoints kernel = GenericSortKernel();
  kernel.reserve_output = [](QuernOutputArgs* args, const uint64_t* tuples, uint32_t n) {
    return GenericSortKernel().reserve_output(args, tuples, n < 2 ? n : 2);
  };
  OutputBatch out = rows.MakeBatch(3);
  ASSERT_EQ(out.Reset(), absl::OkStatus());
  EXPECT_EQ(SortColumnWriter(rows.descriptor, kernel).Append(rows.From(0, 3), &out).value(), 2u);
  Lines lines;
  test::AddLines(out, &lines);
  EXPECT_EQ(lines, (Lines{"1|a", "2|b"}));
}

std::string MessageOf(decltype(QuernSortEntryPoints::reserve_output) fit) {
  EncodedRows rows("sort keys=i32:out payload=utf8", 1, {NumberColumn<int32_t>({1})}, {StringColumn(kVar32, {"a"})});
  QuernSortEntryPoints kernel = GenericSortKernel();
  kernel.reserve_output = fit;
  OutputBatch out = rows.MakeBatch(1);
  EXPECT_EQ(out.Reset(), absl::OkStatus());
  const auto written = SortColumnWriter(rows.descriptor, kernel).Append(rows.From(0, 1), &out);
  EXPECT_EQ(out.num_rows(), 0u);
  return Message(written.status());
}

TEST(SortColumns, WhatAKernelAnswersBecomesAMessage) {
  EXPECT_EQ(MessageOf([](QuernOutputArgs*, const uint64_t*, uint32_t) -> int64_t { return kQuernOutOfMemory; }),
            "memory limit exceeded: result strings; accepted: a higher memory limit");
  EXPECT_EQ(MessageOf([](QuernOutputArgs*, const uint64_t*, uint32_t) -> int64_t { return kQuernValueTooLarge; }),
            "value too large for an output column: above 2147483647 bytes; accepted: large_utf8, large_binary");
  EXPECT_EQ(MessageOf([](QuernOutputArgs*, const uint64_t*, uint32_t) -> int64_t { return -9; }),
            "kernel failed: code -9; accepted: 0 or more");
}

TEST(SortColumns, StringsBeyondTheMemoryLimitAreAnError) {
  EncodedRows rows("sort keys=i32:out payload=utf8", 2, {NumberColumn<int32_t>({1, 2})},
                   {StringColumn(kVar32, {std::string(10000, 'x'), std::string(10000, 'y')})});
  OutputBatch out(SortOutputTypes(rows.descriptor->spec()), 2, std::make_shared<MemoryBudget>(4096));
  ASSERT_EQ(out.Reset(), absl::OkStatus());
  const auto written = SortColumnWriter(rows.descriptor, GenericSortKernel()).Append(rows.From(0, 2), &out);
  EXPECT_EQ(Message(written.status()), "memory limit exceeded: result strings; accepted: a higher memory limit");
}

}  // namespace
}  // namespace quern
