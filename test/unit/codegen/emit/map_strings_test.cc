// SPDX-License-Identifier: Apache-2.0
// Strings as arguments of maps, in compiled and generic kernels, against an evaluation row by row (expression_rows.h):
// every function on every layout of strings, with nulls, selections, offsets of bitmaps and more rows than a call has.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "test/unit/codegen/emit/mapper_of.h"
#include "test/unit/runtime/map/expression_rows.h"
#include "test/unit/runtime/map/string_columns.h"
#include "test/unit/seed.h"

namespace quern {
namespace {

using test::BitOf;
using test::MakeColumnOf;
using test::MapperOf;
using test::Row;
using test::RowValue;
using test::StringColumn;

// ---- rows ----

std::string AnyText(std::mt19937_64* random) {
  static const char* const kParts[] = {"a", "b", "ab", "A", " ", "%", "_", "50%", "\\", "\xC3\xA9", "wholesale"};
  std::string text;
  for (uint64_t n = (*random)() % 5; n > 0; --n) text += kParts[(*random)() % std::size(kParts)];
  return text;
}

std::vector<Row> AnyRows(const std::vector<ValueType>& types, size_t num_rows, std::mt19937_64* random) {
  std::vector<Row> rows(num_rows);
  for (Row& row : rows)
    for (const ValueType& type : types)
      row.push_back({.valid = !type.nullable || (*random)() % 4 != 0, .bytes = AnyText(random)});
  return rows;
}

// ---- the test ----

// "null", or a bool or i64 as a number.
std::string ResultText(const QuernOutColumn& column, const ValueType& type, uint64_t row) {
  if (type.nullable && !BitOf(column.validity, row)) return "null";
  if (type.id == TypeId::kBool) return BitOf(column.values, row) ? "1" : "0";
  return std::to_string(static_cast<const int64_t*>(column.values)[row]);
}

std::string Expected(const Expression& e, const Row& row) {
  const RowValue value = test::Evaluate(e, row);
  return value.valid ? std::to_string(static_cast<int64_t>(value.number)) : "null";
}

void ExpectResults(const MapSpec& spec, const std::vector<Row>& rows, const std::vector<uint32_t>& selection,
                   const RowMapper& mapper) {
  std::vector<std::unique_ptr<StringColumn>> columns;
  BatchView batch;
  for (size_t c = 0; c < spec.columns.size(); ++c) {
    columns.push_back(MakeColumnOf(spec.columns[c], rows, c, 3 + c));
    batch.keys.push_back(columns.back()->column);
  }
  batch.num_rows = selection.empty() ? rows.size() : selection.size();
  batch.selection = selection.empty() ? nullptr : selection.data();
  MapReader reader(std::shared_ptr<const RowMapper>(std::shared_ptr<void>(), &mapper), nullptr);
  const uint64_t num_rows = batch.num_rows;
  ASSERT_TRUE(reader.SetInput(std::move(batch)).ok());
  OutputBatch out(MapOutputTypes(spec), num_rows + 1, nullptr);
  const absl::StatusOr<bool> more = reader.Next(&out);
  ASSERT_TRUE(more.ok() && !*more) << more.status();
  for (size_t i = 0; i < num_rows; ++i) {
    const Row& row = rows[selection.empty() ? i : selection[i]];
    for (size_t r = 0; r < spec.results.size(); ++r)
      ASSERT_EQ(ResultText(out.column(r), spec.results[r].type, i), Expected(spec.results[r], row))
          << PrintExpression(spec.results[r]) << " of row " << i << ": '" << row[0].bytes << "', '" << row[1].bytes
          << "', '" << row[2].bytes << "'";
  }
}

// The text with a type in place of each T.
MapSpec SpecOf(const std::string& columns, std::string text, const std::string& type) {
  for (size_t at = 0; (at = text.find(":T", at)) != std::string::npos; at += type.size()) text.replace(at + 1, 1, type);
  const absl::StatusOr<MapSpec> spec = ParseSpecOf<MapSpec>("map in=" + columns + " out=" + text);
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.ok() ? *spec : MapSpec();
}

constexpr const char* kExpressions =
    "equal($0,'ab':T),not_equal($0,'ab':T),less($0,'ab':T),less_equal($0,'ab':T),greater($0,'ab':T),"
    "greater_equal($0,'ab':T),less('ab':T,$1),greater_equal('ab':T,$0),not_equal('':T,$1),equal($1,'wholesalewholesale'"
    ":T),"
    "equal($0,$1),not_equal($0,$2),less($1,$2),less_equal($0,$2),greater($0,$1),greater_equal($2,$0),"
    "is_distinct($0,$2),is_not_distinct($0,$2),is_not_distinct($0,$1),is_not_distinct($0,'ab':T),is_distinct($1,'ab':T)"
    ","
    "is_distinct($0,null:T),is_not_distinct(null:T,$0),equal($0,null:T),less(null:T,$1),is_null($0),is_valid($0),"
    "is_null($1),is_valid($1),like($0,'a%':T),like($0,'%b%\xC3\xA9%':T),like($1,'_b%':T),like($0,'__':T),"
    "like($1,'50\\%%':T),like($1,'50!%_':T,'!':T),like($0,'%\\':T,'':T),not_like($0,'%a':T),like($0,'ab':T),"
    "like($0,'':T),like($0,'%':T),like($0,null:T),starts_with($0,'ab':T),starts_with($1,'50%':T),ends_with($0,'_':T),"
    "contains($0,'\\':T),contains($1,'':T),contains($1,'hole':T),octet_length($0),octet_length($1),"
    "or(equal($0,'ab':T),equal($0,'b':T),equal('':T,$0)),or(equal($0,'ab':T),equal($1,'ab':T)),"
    "or(or(equal($1,'a':T),equal($1,'b':T),equal($1,'A':T)),equal($1,'aa':T),equal($1,'ab':T),equal($1,'ba':T),"
    "equal($1,'bb':T),equal($1,'aA':T),equal($1,'Aa':T),equal($1,'bA':T),equal($1,' ':T),equal($1,'_':T)),"
    "and(greater_equal($0,'a':T),less_equal($0,'b':T)),not(equal($0,'b':T)),"
    "case_when(like($0,'a%':T),octet_length($0),greater($1,$2),1:i64,null:i64)";

TEST(MapStrings, EveryFunctionOnEveryLayout) {
  std::mt19937_64 random(test::SeedOfTest());
  for (const char* name : {"utf8", "binary", "large_utf8", "large_binary", "utf8_view", "binary_view"}) {
    for (const bool is_dictionary : {false, true}) {
      const std::string values = name, type = is_dictionary ? "dictionary(i32," + values + ")" : values;
      SCOPED_TRACE(type);
      const bool has_characters = values.find("utf8") != std::string::npos;
      const MapSpec spec =
          SpecOf(type + ":nullable," + type + "," + type + ":nullable",
                 kExpressions + std::string(has_characters ? ",char_length($0),char_length($1)" : ""), values);
      const absl::StatusOr<KernelSpec> read = ParseSpec(PrintSpec(spec));
      ASSERT_TRUE(read.ok() && *read == KernelSpec(spec)) << read.status();
      for (const Engine engine : {Engine::kGeneric, Engine::kJit}) {
        SCOPED_TRACE(engine == Engine::kJit ? "jit" : "generic");
        const std::shared_ptr<const RowMapper> mapper = MapperOf(spec, engine);
        ASSERT_NE(mapper, nullptr);
        // More rows than a call of the kernel has, of one layout.
        const size_t most = type == "utf8" ? 4500 : 200;
        for (const size_t num_rows : {size_t{1}, size_t{9}, most}) {
          const std::vector<Row> rows = AnyRows(spec.columns, num_rows, &random);
          ExpectResults(spec, rows, {}, *mapper);
          std::vector<uint32_t> selection;
          for (size_t i = 0; i < num_rows; ++i) selection.push_back(static_cast<uint32_t>(random() % num_rows));
          ExpectResults(spec, rows, selection, *mapper);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

// What a collation calls equal, in the order of the columns of `texts`.
TEST(MapStrings, CollationsDecide) {
  const MapSpec spec = SpecOf("utf8(utf8mb4_general_ci)",
                              "equal($0,'Mail':T),less($0,'mb':T),like($0,'m_i%':T),starts_with($0,'MA':T),"
                              "or(equal($0,'mAIL':T),equal($0,'x':T)),octet_length($0)",
                              "utf8(utf8mb4_general_ci)");
  const std::vector<std::string> texts = {"mail", "MAIL", "M\xC3\x81IL", "ship", "Mc"};
  const std::vector<std::string> expected = {"1,1,1,1,1,4", "1,1,1,1,1,4", "1,1,1,1,1,5", "0,0,0,0,0,4", "0,0,0,0,0,2"};
  std::vector<Row> rows;
  for (const std::string& text : texts) rows.push_back({{.valid = true, .bytes = text}});
  for (const Engine engine : {Engine::kGeneric, Engine::kJit}) {
    const std::shared_ptr<const RowMapper> mapper = MapperOf(spec, engine);
    ASSERT_NE(mapper, nullptr);
    const auto column = MakeColumnOf(spec.columns[0], rows, 0, 0);
    BatchView batch;
    batch.keys = {column->column};
    batch.num_rows = rows.size();
    MapReader reader(mapper, nullptr);
    ASSERT_TRUE(reader.SetInput(std::move(batch)).ok());
    OutputBatch out(MapOutputTypes(spec), rows.size(), nullptr);
    ASSERT_TRUE(reader.Next(&out).ok());
    for (size_t i = 0; i < rows.size(); ++i) {
      std::string line;
      for (size_t r = 0; r < spec.results.size(); ++r)
        line += (r == 0 ? "" : ",") + ResultText(out.column(r), spec.results[r].type, i);
      EXPECT_EQ(line, expected[i]) << texts[i];
    }
  }
}

// An error of a row finds the strings of that row again: row 4200 lies in the second call of the kernel.
TEST(MapStrings, ErrorsOfRowsBesideStrings) {
  const MapSpec spec =
      SpecOf("utf8", "case_when(equal($0,'bad':T),divide_checked(octet_length($0),0:i64),0:i64)", "utf8");
  for (const Engine engine : {Engine::kGeneric, Engine::kJit}) {
    const std::shared_ptr<const RowMapper> mapper = MapperOf(spec, engine);
    ASSERT_NE(mapper, nullptr);
    std::vector<Row> rows(5000, Row{{.valid = true, .bytes = "good"}});
    rows[4200][0].bytes = "bad";
    const auto column = MakeColumnOf(spec.columns[0], rows, 0, 0);
    BatchView batch;
    batch.keys = {column->column};
    batch.num_rows = rows.size();
    MapReader reader(mapper, nullptr);
    ASSERT_TRUE(reader.SetInput(std::move(batch)).ok());
    OutputBatch out(MapOutputTypes(spec), rows.size(), nullptr);
    EXPECT_EQ(
        reader.Next(&out).status().message(),
        "row 4200: divide_checked(octet_length($0),0:i64) of 3 and 0: division by 0; accepted: rows for which the "
        "type has the result");
  }
}

}  // namespace
}  // namespace quern
