// SPDX-License-Identifier: Apache-2.0
// What the format number stands for: the bytes of saved states, and the partitions of keys. Each has a digest here.
// Where one changes, another machine could not merge our rows, and the number must change with it (CONTRIBUTING.md).
// The digests of a new type or function are added, and the number stays.
#include "runtime/base/format_number.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "test/unit/runtime/aggregate/group_rows.h"

namespace quern {
namespace {

using test::ColumnPtr;
using test::Lines;

static_assert(kFormatNumber == 1, "the digests below are those of format 1");

uint64_t DigestOf(std::string_view bytes) {
  uint64_t digest = 0xcbf29ce484222325u;
  for (const char c : bytes) digest = (digest ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return digest;
}

std::string Hex(uint64_t number) {
  char text[9];
  std::snprintf(text, sizeof text, "%08x", static_cast<uint32_t>(number ^ number >> 32));
  return text;
}

std::string TextOf(const TypeRow& row) { return std::string(row.text) + (row.id == TypeId::kFixedBinary ? "(5)" : ""); }

std::string TextOf(int64_t value, const TypeRow& row) {
  if (row.storage == kFixed) return "fix" + std::to_string((value + 1) % 90 + 10);
  return "value " + std::to_string(value) + (value % 5 == 0 ? ", of more than twelve bytes" : "");
}

// A null is -1.
ColumnPtr ColumnOf(const TypeRow& row, const std::vector<int64_t>& values) {
  std::vector<std::string> texts;
  std::vector<bool> valid, bits;
  for (const int64_t value : values) {
    texts.push_back(TextOf(value, row));
    valid.push_back(value != -1);
    bits.push_back((value & 1) != 0);
  }
  ColumnPtr column;
  if (row.id == TypeId::kF32) column = test::NumberColumn(std::vector<float>(values.begin(), values.end()));
  else if (row.id == TypeId::kF64) column = test::NumberColumn(std::vector<double>(values.begin(), values.end()));
  else if (row.storage == kBit) column = test::BoolColumn(bits);
  else if (row.storage == k8) column = test::NumberColumn(std::vector<int8_t>(values.begin(), values.end()));
  else if (row.storage == k16) column = test::NumberColumn(std::vector<int16_t>(values.begin(), values.end()));
  else if (row.storage == k32) column = test::NumberColumn(std::vector<int32_t>(values.begin(), values.end()));
  else if (row.storage == k64) column = test::NumberColumn(values);
  else if (row.storage == k128) column = test::NumberColumn(std::vector<__int128>(values.begin(), values.end()));
  else column = test::StringColumn(row.storage, texts);
  return test::WithNulls(column, valid);
}

// ---- states ----

// The text of an aggregate in a spec; empty for the host's.
std::string AggregateOf(const AggregateFunctionRow& row, const std::string& type) {
  if (row.id == AggregateFunction::kHost) return "";
  std::string text(row.text);
  if (row.num_arguments == 0) return text;
  text += "(" + type + ":nullable" + (row.num_arguments == 2 ? "," + type + ":nullable" : "");
  if (row.id == AggregateFunction::kQuantile) text += ",0.25";
  if (row.id == AggregateFunction::kStringAgg) text += ",x'2c'";
  return text + ")";
}

std::string SavedState(const std::string& text, const TypeRow& type, const std::vector<int64_t>& values) {
  const auto aggregate = test::Aggregation(text);
  const ColumnPtr column = ColumnOf(type, values);
  std::vector<ColumnPtr> columns(AggregateInputTypes(aggregate->descriptor().spec().aggregates).size(), column);
  BatchView batch = test::Rows(values.size(), {}, columns);
  batch.first_row_id = 70;
  EXPECT_EQ(aggregate->Append(batch), absl::OkStatus()) << text;
  EXPECT_EQ(aggregate->Finalise(), absl::OkStatus()) << text;
  OutputBatch out(AggregateStateTypes(aggregate->descriptor().spec()), 10, nullptr);
  EXPECT_FALSE(GroupReader(aggregate, GroupColumns::kStates).Next(&out).value());
  return test::CellOf(out.column(0), out.type(0), 0);
}

// "i8 i16 93fb9c34": of a function, for the types that it takes. Distinct values are in the order of a table, so there
// is one of them.
std::vector<std::string> DigestsOf(const AggregateFunctionRow& row) {
  const bool is_of_distinct = std::string_view(row.text).find("distinct") != std::string_view::npos;
  std::vector<int64_t> values = {3, -1, 5, 4, 3};
  if (is_of_distinct) values = {5, -1, 5};
  std::vector<std::string> digests;
  for (const TypeRow& type : AllTypes()) {
    const std::string aggregate = AggregateOf(row, TextOf(type)), text = "aggregate aggs=" + aggregate;
    if (aggregate.empty() || type.id == TypeId::kRowId || !ParseSpec(text).ok()) continue;
    const std::string digest = " " + Hex(DigestOf(SavedState(text, type, values)));
    if (!digests.empty() && digests.back().ends_with(digest))
      digests.back().insert(digests.back().size() - digest.size(), " " + TextOf(type));
    else digests.push_back(TextOf(type) + digest);
    if (row.num_arguments == 0) break;
  }
  return digests;
}

struct Kept {
  const char* name;
  std::vector<std::string> digests;
};

const std::vector<Kept>& KeptStates() {
  static const std::vector<Kept> kept = {
      {"count_star", {"bool 39798575"}},
      {"count",
       {"bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 decimal32 decimal64 decimal128 date32 date64 time32 time64 "
        "timestamp duration "
        "fixed_binary(5) binary utf8 large_binary large_utf8 binary_view utf8_view 4a7f6403"}},
      {"sum",
       {"i8 i16 i32 i64 u8 u16 u32 u64 cc8ed7df", "f32 f64 2c9b4687", "decimal32 decimal64 decimal128 2a1e0848"}},
      {"sum128", {"i8 i16 i32 i64 u8 u16 u32 u64 2a1e0848"}},
      {"avg",
       {"i8 i16 i32 614b768d", "i64 616024c4", "u8 u16 u32 614b768d", "u64 616024c4", "f32 f64 ac9d4bf5",
        "decimal32 614b768d", "decimal64 decimal128 616024c4"}},
      {"min",
       {"bool 61e42a2a", "i8 i16 i32 i64 b7a73ed3", "u8 u16 u32 u64 b0a3aa53", "f32 99857e73", "f64 f2a14e99",
        "decimal32 decimal64 b7a73ed3", "decimal128 0bda054f",
        "date32 date64 time32 time64 timestamp duration b7a73ed3", "fixed_binary(5) a36c220b",
        "binary utf8 large_binary large_utf8 binary_view utf8_view 9f6fbe4e"}},
      {"max",
       {"bool dd6f1883", "i8 i16 i32 i64 385929f5", "u8 u16 u32 u64 39798575", "f32 6463b51d", "f64 4cff58af",
        "decimal32 decimal64 385929f5", "decimal128 7648e7b6",
        "date32 date64 time32 time64 timestamp duration 385929f5", "fixed_binary(5) a36c2fa1",
        "binary utf8 large_binary large_utf8 binary_view utf8_view 521fccbd"}},
      {"any",
       {"bool dd6f1883", "i8 i16 i32 i64 u8 u16 u32 u64 c045f912", "f32 58e572e6", "f64 5f9ad5cd",
        "decimal32 decimal64 c045f912", "decimal128 a21e5e3d",
        "date32 date64 time32 time64 timestamp duration c045f912", "fixed_binary(5) a36c220b",
        "binary utf8 large_binary large_utf8 binary_view utf8_view 9f6fbe4e"}},
      {"first",
       {"bool 7e448f69", "i8 i16 i32 i64 u8 u16 u32 u64 a8bed776", "f32 71b746c3", "f64 c7408080",
        "decimal32 decimal64 a8bed776", "decimal128 62f82bc1",
        "date32 date64 time32 time64 timestamp duration a8bed776", "fixed_binary(5) ad64711b",
        "binary utf8 large_binary large_utf8 binary_view utf8_view a7b9dd00"}},
      {"last",
       {"bool 2cfd11fe", "i8 i16 i32 i64 u8 u16 u32 u64 72f67edd", "f32 a51c1b9b", "f64 30913753",
        "decimal32 decimal64 72f67edd", "decimal128 f2fa4f29",
        "date32 date64 time32 time64 timestamp duration 72f67edd", "fixed_binary(5) c983d531",
        "binary utf8 large_binary large_utf8 binary_view utf8_view 9c8322a7"}},
      {"bool_and", {"bool dd6f1883"}},
      {"bool_or", {"bool dd6f1883"}},
      {"bit_and", {"i8 i16 i32 i64 u8 u16 u32 u64 61e42a2a"}},
      {"bit_or", {"i8 i16 i32 i64 u8 u16 u32 u64 4d7aca18"}},
      {"bit_xor", {"i8 i16 i32 i64 u8 u16 u32 u64 dd6f1883"}},
      {"var_pop", {"i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 1ae356aa"}},
      {"var_samp", {"i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 1ae356aa"}},
      {"stddev_pop", {"i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 1ae356aa"}},
      {"stddev_samp", {"i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 1ae356aa"}},
      {"covar_pop", {"i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 a90a5604"}},
      {"covar_samp", {"i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 a90a5604"}},
      {"corr", {"i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 f2eaa11d"}},
      {"count_distinct",
       {"bool 00c546bf", "i8 i16 i32 i64 u8 u16 u32 u64 f12dd917", "f32 5a4c4822", "f64 77464f21",
        "decimal32 decimal64 f12dd917", "decimal128 67a2baa2",
        "date32 date64 time32 time64 timestamp duration f12dd917", "fixed_binary(5) d53c1951",
        "binary utf8 large_binary large_utf8 binary_view utf8_view 6da48a55"}},
      {"sum_distinct",
       {"i8 i16 i32 i64 u8 u16 u32 u64 f12dd917", "f32 5a4c4822", "f64 77464f21", "decimal32 decimal64 f12dd917",
        "decimal128 67a2baa2"}},
      {"median", {"i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 2d0cc713"}},
      {"quantile", {"i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 2d0cc713"}},
      {"approx_count_distinct",
       {"bool de81f8cf", "i8 i16 i32 i64 u8 u16 u32 u64 13bd5d49", "f32 7929c6a3", "f64 d1730760",
        "decimal32 decimal64 13bd5d49", "decimal128 69a4beb9",
        "date32 date64 time32 time64 timestamp duration 13bd5d49", "fixed_binary(5) f4387390",
        "binary utf8 large_binary large_utf8 binary_view utf8_view 4d500a56"}},
      {"string_agg", {"binary utf8 large_binary large_utf8 binary_view utf8_view beeb20cd"}},
  };
  return kept;
}

TEST(FormatNumber, StandsForSavedStates) {
  std::map<std::string, std::vector<std::string>> kept;
  for (const Kept& states : KeptStates()) kept[states.name] = states.digests;
  for (const AggregateFunctionRow& row : AllAggregateFunctions()) {
    EXPECT_EQ(kept[std::string(row.text)], DigestsOf(row)) << row.text << ": other states need another format number";
  }
}

// ---- partitions ----

// The partition, of 16, of each of 40 keys.
std::string PartitionsOf(const std::string& keys, const std::vector<ColumnPtr>& columns, uint64_t num_rows) {
  const auto aggregate = test::Aggregation("aggregate keys=" + keys + " aggs=count_star");
  EXPECT_EQ(aggregate->Append(test::Rows(num_rows, columns)), absl::OkStatus()) << keys;
  EXPECT_EQ(aggregate->Finalise(), absl::OkStatus()) << keys;
  std::string all;
  for (uint32_t partition = 0; partition < 16; ++partition) {
    all += std::to_string(partition) + ":";
    for (const std::string& line : test::ShareOf(aggregate, partition, 16, 100)) all += line + " ";
  }
  return keys + " " + Hex(DigestOf(all));
}

TEST(FormatNumber, StandsForThePartitionsOfKeys) {
  std::vector<int64_t> values;
  for (int64_t i = -1; i < 40; ++i) values.push_back(i);
  Lines found;
  for (const TypeRow& type : AllTypes()) {
    if (type.id == TypeId::kRowId) continue;
    found.push_back(PartitionsOf(TextOf(type) + ":nullable", {ColumnOf(type, values)}, values.size()));
  }
  const ColumnPtr numbers = ColumnOf(RowOf(TypeId::kI32), values), texts = ColumnOf(RowOf(TypeId::kUtf8), values);
  std::vector<uint8_t> indices(values.size());
  std::vector<bool> valid(values.size(), true);
  std::iota(indices.begin(), indices.end(), uint8_t{0});
  valid[0] = false;
  found.push_back(PartitionsOf("i32:nullable,i32:nullable", {numbers, numbers}, values.size()));
  found.push_back(PartitionsOf("i32:nullable,utf8:nullable", {numbers, texts}, values.size()));
  found.push_back(PartitionsOf("utf8(utf8mb4_unicode_ci):nullable", {texts}, values.size()));
  const ColumnPtr dictionary = test::WithNulls(test::DictionaryColumn(indices, texts), valid);
  found.push_back(PartitionsOf("dictionary(u8,utf8):nullable", {dictionary}, values.size()));
  const Lines kept = {
      "bool:nullable a680929a",
      "i8:nullable 5b3a910f",
      "i16:nullable 5b3a910f",
      "i32:nullable 5b3a910f",
      "i64:nullable 5b3a910f",
      "u8:nullable 5b3a910f",
      "u16:nullable 5b3a910f",
      "u32:nullable 5b3a910f",
      "u64:nullable 5b3a910f",
      "f32:nullable 330d9f24",
      "f64:nullable b41acc0a",
      "decimal32:nullable 5b3a910f",
      "decimal64:nullable 5b3a910f",
      "decimal128:nullable c62b7146",
      "date32:nullable 5b3a910f",
      "date64:nullable 5b3a910f",
      "time32:nullable 5b3a910f",
      "time64:nullable 5b3a910f",
      "timestamp:nullable 5b3a910f",
      "duration:nullable 5b3a910f",
      "fixed_binary(5):nullable ef0f42e0",
      "binary:nullable 5a728f6f",
      "utf8:nullable 5a728f6f",
      "large_binary:nullable 5a728f6f",
      "large_utf8:nullable 5a728f6f",
      "binary_view:nullable 5a728f6f",
      "utf8_view:nullable 5a728f6f",
      "i32:nullable,i32:nullable f96e5029",
      "i32:nullable,utf8:nullable 71a8f641",
      "utf8(utf8mb4_unicode_ci):nullable 9d8bafbe",
      "dictionary(u8,utf8):nullable 5a728f6f",
  };
  EXPECT_EQ(found, kept) << "other partitions need another format number";
}

}  // namespace
}  // namespace quern
