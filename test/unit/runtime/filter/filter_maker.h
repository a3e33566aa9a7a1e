// SPDX-License-Identifier: Apache-2.0
// Random conditions over columns of every type, with constants that occur in the columns, and checks of a filter's
// results.
#ifndef QUERN_TEST_UNIT_RUNTIME_FILTER_FILTER_MAKER_H_
#define QUERN_TEST_UNIT_RUNTIME_FILTER_FILTER_MAKER_H_

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "runtime/filter/filter_descriptor.h"
#include "runtime/filter/row_filter.h"
#include "test/unit/runtime/filter/filter_rows.h"

namespace quern::test {

using FilterColumns = std::vector<std::unique_ptr<FilterColumn>>;

inline constexpr Comparison kAllComparisons[] = {Comparison::kLess,     Comparison::kLessEqual,
                                                 Comparison::kGreater,  Comparison::kGreaterEqual,
                                                 Comparison::kNotEqual, Comparison::kEqual};

class FilterMaker {
 public:
  explicit FilterMaker(uint64_t seed) : random_(seed) {}

  uint64_t Below(uint64_t n) { return random_() % n; }

  std::string Text(size_t max_length) {
    static constexpr const char* kPieces[] = {"a",        "b", "A",  "B", " ", "ab",   "\xc3\xa4",
                                              "\xc3\x9f", "s", "\t", "%", "_", "\xff", "e\xcc\x81"};
    const size_t length = Below(max_length + 1);
    const size_t num_pieces = Below(3) == 0 ? 14 : 5;  // often ASCII only
    std::string text;
    while (text.size() < length) text += kPieces[Below(num_pieces)];
    return text;
  }

  FilterCell Cell(const ColumnType& type) {
    FilterCell cell;
    cell.is_null = type.nullable && Below(4) == 0;
    const Storage storage = RowOf(type.id).storage;
    if (IsVariable(storage)) {
      cell.text = Text(Below(4) == 0 ? 44 : 4);
    } else if (storage == kFixed) {
      cell.text = Text(type.width_bytes);
      cell.text.resize(type.width_bytes, 'a');
    } else if (type.id == TypeId::kF32 || type.id == TypeId::kF64) {
      constexpr double kSpecial[] = {0.0,
                                     -0.0,
                                     1.5,
                                     -1.5,
                                     std::numeric_limits<double>::infinity(),
                                     -std::numeric_limits<double>::infinity(),
                                     std::numeric_limits<double>::quiet_NaN(),
                                     -std::numeric_limits<double>::quiet_NaN()};
      cell.real = kSpecial[Below(8)];
    } else if (storage == kBit) {
      cell.number = Below(2);
    } else {
      const bool is_unsigned = type.id >= TypeId::kU8 && type.id <= TypeId::kU64;
      const uint32_t bits = type.id == TypeId::kDecimal128 ? 128 : RowOf(type.id).width_bytes * 8;
      const auto most =
          static_cast<__int128>((~static_cast<unsigned __int128>(0)) >> (129 - bits - (is_unsigned ? 1 : 0)));
      const __int128 numbers[] = {0, 1, 2, 3, 7, most, most - 1, is_unsigned ? 0 : -1, is_unsigned ? 4 : -most - 1};
      cell.number = numbers[Below(9)];
    }
    return cell;
  }

  Literal Constant(const ColumnType& type) {
    ColumnType there = type;
    there.nullable = false;
    const FilterCell cell = Cell(there);
    Literal literal;
    literal.number = cell.number;
    literal.real = cell.real;
    literal.bytes = cell.text;
    return literal;
  }

  Predicate Leaf(PredicateKind kind, const ColumnType& type) {
    Predicate p;
    p.kind = kind;
    p.column = type;
    const bool has_not = kind == PredicateKind::kBetween || kind == PredicateKind::kIn ||
                         kind == PredicateKind::kLike || kind == PredicateKind::kIsNull;
    p.negated = has_not && Below(2) == 0;
    if (kind == PredicateKind::kCompare || kind == PredicateKind::kCompareColumns) p.op = kAllComparisons[Below(6)];
    if (kind == PredicateKind::kCompareColumns) p.other = type;
    size_t num_values = kind == PredicateKind::kCompare ? 1 : kind == PredicateKind::kBetween ? 2 : 0;
    if (kind == PredicateKind::kIn) num_values = 1 + Below(Below(3) == 0 ? 30 : 6);
    for (size_t i = 0; i < num_values; ++i) p.values.push_back(Constant(type));
    if (kind == PredicateKind::kLike) p.values.push_back(Pattern(type));
    if (kind == PredicateKind::kLike && Below(4) == 0) p.escape = Below(2) == 0 ? U'a' : 0;
    return p;
  }

  Literal Pattern(const ColumnType& type) {
    Literal literal = Constant(type);
    static constexpr const char* kPieces[] = {"%", "a", "b", "A", "ab", "%", "\xc3\xa4", "_", "\\", " "};
    if (Below(3) == 0) return literal;
    literal.bytes.clear();
    const size_t num_pieces = Below(Below(2) == 0 ? 6 : 10) == 0 ? 10 : 6;
    for (size_t n = Below(8); n > 0; --n) literal.bytes += kPieces[Below(num_pieces)];
    return literal;
  }

  // A comparison with a random string of `length` bytes; AlmostEqual makes strings that are nearly equal to it.
  Predicate EqualityOfLength(const ColumnType& type, size_t length) {
    Predicate p;
    p.kind = PredicateKind::kCompare;
    p.op = Below(4) == 0 ? Comparison::kNotEqual : Comparison::kEqual;
    p.column = type;
    p.values.resize(1);
    for (size_t i = 0; i < length; ++i) p.values[0].bytes += static_cast<char>('A' + Below(20));
    return p;
  }

  FilterColumns AlmostEqual(const Predicate& equality, uint32_t num_rows) {
    const std::string& text = equality.values[0].bytes;
    std::vector<FilterCell> cells(num_rows);
    for (FilterCell& cell : cells) {
      cell.text = text;
      if (!text.empty() && Below(2) == 0) cell.text[Below(text.size())] ^= 0x20;  // the other case
      if (!text.empty() && Below(3) == 0) cell.text[Below(text.size())] ^= 1;
      if (Below(4) == 0) cell.text += ' ';
      if (Below(8) == 0) cell.text.resize(Below(text.size() + 1));
    }
    FilterColumns columns;
    columns.push_back(MakeFilterColumn(equality.column, std::move(cells), AnyGuard()));
    return columns;
  }

  Predicate Condition(const std::vector<ColumnType>& types, uint32_t depth) {
    if (depth == 0 || Below(4) == 0) {
      const ColumnType& type = types[Below(types.size())];
      const Storage storage = RowOf(type.id).storage;
      constexpr PredicateKind kKinds[] = {PredicateKind::kCompare, PredicateKind::kCompareColumns,
                                          PredicateKind::kIn,      PredicateKind::kBetween,
                                          PredicateKind::kIsNull,  PredicateKind::kLike};
      return Leaf(kKinds[Below(IsVariable(storage) ? 6 : 5)], type);
    }
    Predicate p;
    p.kind = Below(5) == 0 ? PredicateKind::kNot : Below(2) == 0 ? PredicateKind::kAnd : PredicateKind::kOr;
    const size_t num_children = p.kind == PredicateKind::kNot ? 1 : 2 + Below(2);
    while (p.children.size() < num_children) {
      Predicate child = Condition(types, depth - 1);
      if (child.kind != p.kind) p.children.push_back(std::move(child));
    }
    return p;
  }

  std::vector<uint32_t> Selection(uint32_t num_rows) {
    std::vector<uint32_t> selection;
    for (uint32_t row = 0; row < num_rows; ++row)
      if (Below(3) != 0) selection.push_back(row);
    return selection;
  }

  Guard AnyGuard() { return Below(2) == 0 ? Guard::kBehind : Guard::kInFront; }

  // Of numbers from 0 to below - 1.
  FilterColumns MakeNumbers(const Predicate& condition, uint32_t num_rows, Guard guard, uint32_t below) {
    FilterColumns columns;
    for (const ColumnType& type : ColumnsOf(condition)) {
      std::vector<FilterCell> cells(num_rows);
      for (FilterCell& cell : cells) {
        cell.number = static_cast<__int128>(Below(below));
        cell.real = static_cast<double>(cell.number);
      }
      columns.push_back(MakeFilterColumn(type, std::move(cells), guard));
    }
    return columns;
  }

  FilterColumns MakeColumns(const Predicate& condition, uint32_t num_rows, Guard guard) {
    FilterColumns columns;
    for (const ColumnType& type : ColumnsOf(condition)) {
      std::vector<FilterCell> cells, few;
      for (int i = 0; i < 9; ++i) few.push_back(Cell(type));
      const bool is_few = type.is_dictionary || Below(2) == 0;
      for (uint32_t row = 0; row < num_rows; ++row) cells.push_back(is_few ? few[Below(9)] : Cell(type));
      columns.push_back(MakeFilterColumn(type, std::move(cells), guard));
    }
    return columns;
  }

 private:
  std::mt19937_64 random_;
};

// Checks the batch's rows that satisfy the condition: their numbers, their bitmap and their count.
inline void ExpectRows(const Predicate& condition, const FilterColumns& columns, const BatchView& batch,
                       const RowFilter& filter) {
  std::vector<uint32_t> expected, rows(batch.num_rows + 1);
  std::vector<uint8_t> bitmap((batch.num_rows + 7) / 8), expected_bitmap(bitmap.size());
  for (uint32_t i = 0; i < batch.num_rows; ++i) {
    const uint32_t row = batch.selection != nullptr ? batch.selection[i] : i;
    size_t next = 0;
    const bool passes = Evaluate(condition, columns, row, &next) == Truth::kTrue;
    if (passes) expected.push_back(row);
    blocks::SetBitTo(expected_bitmap.data(), i, passes);
  }
  const absl::StatusOr<uint64_t> passed = filter.Select(batch, rows.data());
  ASSERT_TRUE(passed.ok()) << passed.status();
  rows.resize(*passed);
  ASSERT_EQ(rows, expected);
  EXPECT_EQ(filter.Mask(batch, bitmap.data()).value(), expected.size());
  EXPECT_EQ(bitmap, expected_bitmap);
  EXPECT_EQ(filter.Count(batch).value(), expected.size());
}

// Checks the condition on all rows, then on a selection of them.
inline void ExpectRowsAndPicked(const Predicate& condition, const FilterColumns& columns,
                                const std::vector<uint32_t>& selection, uint64_t num_rows, const RowFilter& filter) {
  BatchView batch;
  for (const auto& column : columns) batch.keys.push_back(column->column);
  batch.num_rows = num_rows;
  ExpectRows(condition, columns, batch, filter);
  batch.selection = selection.data();
  batch.num_rows = selection.size();
  ExpectRows(condition, columns, batch, filter);
}

inline ColumnType TypeNamed(const std::string& text) { return ParseKey(text).value().type; }

inline const std::vector<ColumnType>& FilterTypes() {
  static const auto* types = [] {
    auto* made = new std::vector<ColumnType>;
    for (const char* text : {"bool",
                             "i8",
                             "i16",
                             "i32",
                             "i64",
                             "u8",
                             "u16",
                             "u32",
                             "u64",
                             "f32",
                             "f64",
                             "decimal128",
                             "date32",
                             "fixed_binary(3)",
                             "binary",
                             "utf8",
                             "large_utf8",
                             "utf8_view",
                             "utf8(utf8mb4_bin)",
                             "large_utf8(tidb.utf8mb4_bin)",
                             "utf8_view(utf8mb4_bin)",
                             "utf8(utf8mb4_general_ci)",
                             "large_utf8(utf8mb4_0900_ai_ci)",
                             "utf8_view(utf8mb4_unicode_ci)",
                             "utf8(tidb.utf8mb4_general_ci)",
                             "dictionary(i8,utf8)",
                             "dictionary(u32,utf8(utf8mb4_general_ci))",
                             "dictionary(i16,i64)",
                             "dictionary(u64,utf8_view(utf8mb4_bin))"}) {
      for (const char* flag : {"", ":nullable"}) made->push_back(TypeNamed(std::string(text) + flag));
    }
    return made;
  }();
  return *types;
}

}  // namespace quern::test

#endif  // QUERN_TEST_UNIT_RUNTIME_FILTER_FILTER_MAKER_H_
