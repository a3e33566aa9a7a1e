// SPDX-License-Identifier: Apache-2.0
// Filters in the generic kernel against an evaluation row by row (filter_rows.h), with columns that end at inaccessible
// pages; what callers get of a mask; how mask operations are printed.
#include "runtime/filter/row_filter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "ir-templates/generic/generic_filter.h"
#include "runtime/spec/spec.h"
#include "test/unit/runtime/filter/filter_maker.h"
#include "test/unit/seed.h"

namespace quern {
namespace {

using test::FilterColumns;
using test::FilterMaker;

FilterSpec SpecOf(const Predicate& condition) {
  FilterSpec spec;
  spec.where = condition;
  return spec;
}

RowFilter FilterOf(const FilterSpec& spec, uint32_t batch_rows = 1024, uint32_t input_rows = 0) {
  auto descriptor = std::make_shared<FilterDescriptor>(spec);
  descriptor->set_batch_rows(batch_rows);
  descriptor->set_input_rows(input_rows);
  return RowFilter(descriptor, GenericFilterKernel());
}

// Distances that end behind the rows of some batches, or of all.
uint32_t AnyDistance(FilterMaker* maker) {
  constexpr uint32_t kDistances[] = {0, 64, 2048};
  return kDistances[maker->Below(3)];
}

void ExpectRandomRows(const Predicate& condition, uint32_t num_rows, FilterMaker* maker) {
  SCOPED_TRACE(PrintCondition(condition));
  const FilterColumns columns = maker->MakeColumns(condition, num_rows, maker->AnyGuard());
  const RowFilter filter =
      FilterOf(SpecOf(condition), static_cast<uint32_t>(1 + maker->Below(1024)), AnyDistance(maker));
  test::ExpectRowsAndPicked(condition, columns, maker->Selection(num_rows), num_rows, filter);
}

TEST(RowFilter, EveryLeafOnEveryType) {
  FilterMaker maker(test::SeedOfTest());
  for (const ColumnType& type : test::FilterTypes()) {
    for (const PredicateKind kind : {PredicateKind::kCompare, PredicateKind::kCompareColumns, PredicateKind::kIn,
                                     PredicateKind::kBetween, PredicateKind::kIsNull, PredicateKind::kLike}) {
      if (kind == PredicateKind::kLike && !IsVariable(RowOf(type.id).storage)) continue;
      for (int i = 0; i < 12; ++i)
        ExpectRandomRows(maker.Leaf(kind, type), static_cast<uint32_t>(maker.Below(300)), &maker);
      if (testing::Test::HasFailure()) return;
    }
  }
}

// The columns of a piece are those of the batch, advanced by its rows: the result equals that of a selection of all
// rows, which reads the batch's own columns.
TEST(RowFilter, BatchesOfMoreThanOnePiece) {
  constexpr uint32_t kRows = 65536 + 321;
  FilterMaker maker(test::SeedOfTest());
  std::vector<uint32_t> all(kRows), rows(kRows), selected(kRows);
  std::iota(all.begin(), all.end(), 0u);
  for (const ColumnType& type : test::FilterTypes()) {
    const Predicate condition = maker.Leaf(PredicateKind::kCompareColumns, type);
    const FilterColumns columns = maker.MakeColumns(condition, kRows, maker.AnyGuard());
    const RowFilter filter = FilterOf(SpecOf(condition));
    BatchView batch;
    for (const auto& column : columns) batch.keys.push_back(column->column);
    batch.num_rows = kRows;
    const auto num_rows = filter.Select(batch, rows.data());
    batch.selection = all.data();
    const auto num_selected = filter.Select(batch, selected.data());
    ASSERT_TRUE(num_rows.ok() && num_selected.ok());
    ASSERT_EQ(*num_rows, *num_selected) << PrintCondition(condition);
    EXPECT_TRUE(std::equal(rows.begin(), rows.begin() + static_cast<ptrdiff_t>(*num_rows), selected.begin()))
        << PrintCondition(condition);
  }
}

// Few rows of a word are tested one by one, as far apart as they may lie, and the rows of words ahead are prefetched.
TEST(RowFilter, FewRowsThatEarlierLeavesHaveLeft) {
  constexpr uint32_t kRows = 3000;
  FilterMaker maker(test::SeedOfTest());
  for (const char* later : {"i64 >= 500", "i64 <> 7", "u64 between 100 and 700", "decimal128 < 500",
                            "decimal128 not between 100 and 700", "f64 >= 500", "i64 < i64"}) {
    for (const int of_thousand : {0, 1, 15, 40, 80, 150, 300, 1000}) {
      const std::string text = "filter i32 < " + std::to_string(of_thousand) + " and " + later;
      const Predicate condition = std::get<FilterSpec>(*ParseSpec(text)).where;
      const FilterColumns columns = maker.MakeNumbers(condition, kRows, maker.AnyGuard(), 1000);
      test::ExpectRowsAndPicked(condition, columns, maker.Selection(kRows), kRows,
                                FilterOf(SpecOf(condition), 1024, AnyDistance(&maker)));
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(RowFilter, ConstantsOfEveryLength) {
  FilterMaker maker(test::SeedOfTest());
  for (const ColumnType& type : test::FilterTypes()) {
    if (!IsVariable(RowOf(type.id).storage)) continue;
    for (size_t length = 0; length <= 40 && !testing::Test::HasFailure(); ++length) {
      const Predicate condition = maker.EqualityOfLength(type, length);
      const FilterColumns columns = maker.AlmostEqual(condition, 200);
      test::ExpectRowsAndPicked(condition, columns, maker.Selection(200), 200, FilterOf(SpecOf(condition)));
    }
  }
}

TEST(RowFilter, RandomConditions) {
  FilterMaker maker(test::SeedOfTest());
  for (int i = 0; i < 300 && !testing::Test::HasFailure(); ++i) {
    ExpectRandomRows(maker.Condition(test::FilterTypes(), 4), static_cast<uint32_t>(maker.Below(500)), &maker);
  }
}

TEST(RowFilter, EveryLayoutOfPartsAndLengths) {
  FilterMaker maker(test::SeedOfTest());
  for (const char* text : {"utf8", "utf8:nullable", "large_utf8(utf8mb4_0900_ai_ci)", "utf8_view", "binary_view",
                           "utf8(utf8mb4_unicode_ci)"}) {
    for (int i = 0; i < 60 && !testing::Test::HasFailure(); ++i) {
      ExpectRandomRows(maker.Leaf(PredicateKind::kLike, test::TypeNamed(text)),
                       static_cast<uint32_t>(maker.Below(1500)), &maker);
    }
  }
}

// Where rows use few of a dictionary's values, results are not cached, and only the values in use are translated.
TEST(RowFilter, DictionaryFarLargerThanTheBatch) {
  std::vector<int64_t> values(100000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int64_t>(i);
  const std::vector<uint32_t> indices = {99999, 5, 77, 99999, 3};
  QuernColumn dictionary = {}, column = {};
  dictionary.values = values.data();
  column.values = indices.data();
  column.dictionary = &dictionary;
  BatchView batch;
  batch.keys.push_back(column);
  batch.num_rows = indices.size();
  std::vector<uint32_t> rows(indices.size());
  const RowFilter filter = FilterOf(ParseSpecOf<FilterSpec>("filter dictionary(u32,i64) > 50").value());
  ASSERT_EQ(filter.Select(batch, rows.data()).value(), 3u);
  rows.resize(3);
  EXPECT_EQ(rows, (std::vector<uint32_t>{0, 2, 3}));
}

// U+0000 has no weight, and keeps the space in front of it from being trimmed: no string without such a character
// equals the constant.
TEST(RowFilter, ConstantThatEndsInASpaceAndNoWeight) {
  constexpr uint32_t kRows = 64;
  const std::string row = "abcdefgh ";
  std::string bytes;
  std::vector<uint32_t> offsets = {0}, rows(kRows);
  for (uint32_t i = 0; i < kRows; ++i) {
    bytes += row;
    offsets.push_back(static_cast<uint32_t>(bytes.size()));
  }
  QuernColumn column = {};
  column.values = bytes.data();
  column.offsets = offsets.data();
  BatchView batch;
  batch.keys.push_back(column);
  batch.num_rows = kRows;
  const auto count = [&](const std::string& constant) {
    const std::string text = "filter utf8(tidb.utf8mb4_unicode_ci) = " + constant;
    return FilterOf(ParseSpecOf<FilterSpec>(text).value()).Select(batch, rows.data()).value();
  };
  EXPECT_EQ(count("x'61626364656667682000'"), 0u);
  EXPECT_EQ(count("x'616263646566676800'"), kRows);
  EXPECT_EQ(count("'ABCDEFGH'"), kRows);
}

TEST(RowFilter, BatchWithoutColumns) {
  const RowFilter filter = FilterOf(ParseSpecOf<FilterSpec>("filter i64 = 1 and utf8 = 'a'").value());
  BatchView batch;
  EXPECT_EQ(filter.Count(batch).value(), 0u);
  batch.num_rows = 1;
  EXPECT_EQ(filter.Count(batch).status().message(),
            "batch without the spec's columns: 0 keys, 0 payload columns; accepted: 2 and 0");
}

TEST(FilterDescriptor, RangesOfNumbers) {
  const auto text = [](const char* spec) { return FilterDescriptor(ParseSpecOf<FilterSpec>(spec).value()).Print(); };
  EXPECT_EQ(text("filter u8 in (1, 2, 3, 7) and u8 >= 0"),
            "step  mask  does\n"
            "   0     0  split into 1\n"
            "   1     2  copy of 1\n"
            "   2     2  leaf 0\n"
            "   3     0  keep 2, 1 without them\n"
            "   4     1  leaf 1\n"
            "   5     0  merge 1\n"
            "num_masks 3\n\n"
            "leaf  kind     column       storage  test\n"
            "   0  range    columns[0]   8        u8; low 1, span 2\n"
            "   1  range    columns[0]   8        u8; low 7, span 0\n");
  EXPECT_EQ(text("filter u8 < 0"),
            "step  mask  does\n"
            "   0     0  nothing\n"
            "num_masks 1\n\n"
            "leaf  kind     column       storage  test\n");
}

TEST(FilterDescriptor, ConstantsOfStrings) {
  const auto leaf = [](const char* spec) {
    const std::string text = FilterDescriptor(ParseSpecOf<FilterSpec>(spec).value()).Print();
    return text.substr(text.rfind("   0  "));
  };
  EXPECT_EQ(leaf("filter utf8(utf8mb4_bin) = 'a b  '"),
            "   0  equal    columns[0]   var32    utf8(utf8mb4_bin) = 'a b  '; key 'a b', spaces trimmed\n");
  EXPECT_EQ(leaf("filter not utf8(utf8mb4_general_ci) = 'Ab1'"),
            "   0  equal    columns[0]   var32    utf8(utf8mb4_general_ci) <> 'Ab1'; key 'ab1', case ignored, spaces "
            "trimmed, negated\n");
  EXPECT_EQ(leaf("filter large_utf8 like 'a%b%%c%d'"),
            "   0  parts    columns[0]   var64    large_utf8 like 'a%b%%c%d'; prefix 'a', suffix 'd', contains 'b', "
            "contains 'c'\n");
  EXPECT_EQ(leaf("filter utf8 like 'abc'"), "   0  equal    columns[0]   var32    utf8 like 'abc'; key 'abc'\n");
  EXPECT_EQ(leaf("filter utf8 like 'a_c'"), "   0  pattern  columns[0]   var32    utf8 like 'a_c'\n");
  EXPECT_EQ(leaf("filter utf8 not in ('1','2','3','4','5','6','7','8','9')"),
            "   0  set      columns[0]   var32    utf8 in 9 values; negated\n");
}

}  // namespace
}  // namespace quern
