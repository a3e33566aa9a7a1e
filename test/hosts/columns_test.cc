// SPDX-License-Identifier: Apache-2.0
// Columns as hosts have them, of every storage class: with a selection of their own, constant, with nulls, as strings
// by pointer, bools as bytes and narrow integers. In every operator they give the rows of a plain column with the same
// values, and where bytes are copied the host may forget its own at once.
//
//     selection 2 0 0 1   elements 7 8 9   =   elements 9 7 7 8
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "test/hosts/jobs.h"

namespace quern_test {
namespace {

const quern_column kRowIds = {};

// A type, how its values come out (host_tables.h), and how a host may have them instead of as Arrow has them.
struct Class {
  const char* name;
  const char* type;
  char kind;
  size_t width;  // of a value, or of a dictionary's index; 0: bits and strings
  uint32_t flags = 0;
  uint32_t value_bytes = 0;
};

std::ostream& operator<<(std::ostream& out, const Class& given) { return out << given.name; }

// A column whose element r stands for numbers[r], with all its memory. In the form of the class, or plain.
class Elements {
 public:
  Elements(const Class& given, bool in_form, const std::vector<int>& numbers, const std::vector<bool>& valid)
      : validity_(Bitmap(valid, 3)) {
    const size_t width = in_form && given.value_bytes != 0 ? given.value_bytes : given.width;
    for (const int number : numbers) Add(number, width);
    if (given.kind == 's' && given.width == 0) SetStrings(&strings_, numbers);
    else if (given.kind == 'S') SetStrings(&large_strings_, numbers);
    else if (in_form && (given.flags & QUERN_COLUMN_VARLENA) != 0) SetVarlena(numbers, given.flags);
    else if (given.kind == 'v') SetViews(numbers, in_form && given.flags == QUERN_COLUMN_POINTERS);
    else if (given.kind == 'b') SetBits(numbers, in_form && given.flags == QUERN_COLUMN_BYTES);
    else column_.values = bytes_.data();
    if (given.kind == 's' && given.width != 0) {  // a dictionary of the numbers 0 to 5
      strings_ = std::make_unique<StringVector<int32_t>>(TextsOf({0, 1, 2, 3, 4, 5}));
      dictionary_ = strings_->column();
      column_.dictionary = &dictionary_;
    }
    column_ = WithValidity(column_, validity_, 3);
    if (!in_form) return;
    column_.flags = given.flags;
    column_.value_bytes = given.value_bytes;
  }
  Elements(const Elements&) = delete;
  Elements& operator=(const Elements&) = delete;
  // A host that reuses its memory.
  ~Elements() {
    for (std::string& text : texts_) std::fill(text.begin(), text.end(), 'x');
    if (strings_ != nullptr) std::fill(strings_->bytes.begin(), strings_->bytes.end(), 'x');
    if (large_strings_ != nullptr) std::fill(large_strings_->bytes.begin(), large_strings_->bytes.end(), 'x');
    if (views_ == nullptr) return;
    for (std::string& bytes : views_->bytes) std::fill(bytes.begin(), bytes.end(), 'x');
  }

  quern_column column() const { return column_; }

 private:
  static std::string TextOf(int number) {
    return number % 2 == 0 ? "s" + std::to_string(number)
                           : "a text of more than twelve bytes, " + std::to_string(number);
  }
  static std::vector<std::string> TextsOf(const std::vector<int>& numbers) {
    std::vector<std::string> texts;
    for (const int number : numbers) texts.push_back(TextOf(number));
    return texts;
  }
  // As a little-endian integer.
  void Add(int number, size_t width) {
    for (size_t i = 0; i < width; ++i) bytes_.push_back(static_cast<uint8_t>(i == 0 ? number : 0));
  }
  template <class Vector>
  void SetStrings(std::unique_ptr<Vector>* vector, const std::vector<int>& numbers) {
    *vector = std::make_unique<Vector>(TextsOf(numbers));
    column_ = (*vector)->column();
  }
  void SetBits(const std::vector<int>& numbers, bool as_bytes) {
    std::vector<bool> bits;
    for (const int number : numbers) bits.push_back(number % 3 == 0);
    for (const bool bit : bits) bytes_.push_back(bit ? 7 : 0);
    if (!as_bytes) bytes_ = Bitmap(bits, 3);
    column_.values = bytes_.data();
  }
  void SetViews(const std::vector<int>& numbers, bool by_pointer) {
    views_ = std::make_unique<ViewVector>(TextsOf(numbers));
    column_ = views_->column();
    if (!by_pointer) return;
    column_.buffers = nullptr;
    for (size_t i = 0; i < numbers.size(); ++i) {
      std::string& text = texts_[static_cast<size_t>(numbers[i])];
      text = TextOf(numbers[i]);
      const char* const data = text.data();
      if (text.size() > 12) std::memcpy(&views_->views[16 * i + 8], &data, sizeof(data));
    }
  }

  // Short headers at odd addresses; a null row has a pointer that leads nowhere.
  void SetVarlena(const std::vector<int>& numbers, uint32_t flags) {
    const bool is_trimmed = (flags & QUERN_COLUMN_TRIMMED) != 0;
    for (const int number : numbers) {
      std::string& text = texts_[static_cast<size_t>(number)];
      text = Varlena(TextOf(number) + (is_trimmed ? "   " : ""), number == 5);
      const char* const data = text.data();
      bytes_.insert(bytes_.end(), reinterpret_cast<const uint8_t*>(&data), reinterpret_cast<const uint8_t*>(&data + 1));
    }
    for (size_t i = 0; i < numbers.size(); ++i)
      if (!BitAt(validity_.data(), i + 3)) std::fill_n(bytes_.begin() + static_cast<ptrdiff_t>(8 * i), 8, 0);
    column_.values = bytes_.data();
  }

  std::vector<uint8_t> validity_, bytes_;
  std::string texts_[6];
  std::unique_ptr<StringVector<int32_t>> strings_;
  std::unique_ptr<StringVector<int64_t>> large_strings_;
  std::unique_ptr<ViewVector> views_;
  quern_column dictionary_ = {}, column_ = {};
};

const std::vector<int> kNumbers = {3, 0, 5, 4, 1};
const std::vector<bool> kValid = {true, true, true, false, true};
const std::vector<uint32_t> kOwnSelection = {4, 2, 2, 0, 3, 1}, kBatchSelection = {5, 0, 4, 1, 1};

// A column of six rows that has a form, and the plain one that it stands for.
struct Pair {
  std::unique_ptr<Elements> formed, plain;
  quern_column column;
};

Pair Selected(const Class& given) {
  std::vector<int> numbers;
  std::vector<bool> valid;
  for (const uint32_t element : kOwnSelection) {
    numbers.push_back(kNumbers[element]);
    valid.push_back(kValid[element]);
  }
  Pair pair = {std::make_unique<Elements>(given, true, kNumbers, kValid),
               std::make_unique<Elements>(given, false, numbers, valid),
               {}};
  pair.column = pair.formed->column();
  pair.column.selection = kOwnSelection.data();
  return pair;
}

Pair Constant(const Class& given, int number, bool valid) {
  Pair pair = {std::make_unique<Elements>(given, true, std::vector<int>{number}, std::vector<bool>{valid}),
               std::make_unique<Elements>(given, false, std::vector<int>(6, number), std::vector<bool>(6, valid)),
               {}};
  pair.column = pair.formed->column();
  pair.column.flags |= QUERN_COLUMN_CONSTANT;
  return pair;
}

class HostColumns : public testing::TestWithParam<Class> {
 public:
  // Whether a column is given in its form, what of the batch's rows take part, and how bytes are kept.
  struct Run {
    Pair* pair;
    bool in_form, selects_rows;
    StringBytes bytes = StringBytes::kStay;

    quern_column column() const { return in_form ? pair->column : pair->plain->column(); }
    Table Of(std::vector<quern_column> keys, std::vector<quern_column> payload) const {
      return {std::move(keys), std::move(payload), 6, selects_rows ? kBatchSelection : std::vector<uint32_t>(), 100};
    }
    // The host's memory of the column is gone, where the job has copied it.
    void Forget() const {
      if (in_form && bytes == StringBytes::kCopied) pair->formed.reset();
    }
  };
  using Operate = Lines (HostColumns::*)(const Run& run);

  void ExpectTheRowsOfPlainColumns(Operate operate, bool may_copy) {
    for (int form = 0; form < 3; ++form) {
      for (const bool selects_rows : {false, true}) {
        for (const StringBytes bytes : {StringBytes::kStay, StringBytes::kCopied}) {
          if (bytes == StringBytes::kCopied && !may_copy) continue;
          SCOPED_TRACE(std::string(form == 0   ? "selection"
                                   : form == 1 ? "constant"
                                               : "constant null") +
                       (selects_rows ? ", some rows" : "") + (bytes == StringBytes::kCopied ? ", copied" : ""));
          Pair pair = form == 0 ? Selected(given) : Constant(given, form == 1 ? 5 : 2, form == 1);
          const Lines expected = (this->*operate)({&pair, false, selects_rows, bytes});
          EXPECT_GE(expected.size(), 1u);
          EXPECT_EQ((this->*operate)({&pair, true, selects_rows, bytes}), expected);
        }
      }
    }
  }

  Lines JoinBuild(const Run& run) {
    quern::Join join = New<quern::Join>("join.right_anti keys=i64 build=" + type + ",rowid", Engine::kGeneric);
    Feed(join.Build(run.bytes), {run.Of({ColumnOf(ids)}, {run.column(), kRowIds})});
    run.Forget();
    Done(join.Finalise());
    return RowsOf(join.Unmatched(), kind + "r");
  }
  // Its own rows as keys on both sides; null meets null.
  Lines JoinKeys(const Run& run) {
    quern::Join join =
        New<quern::Join>("join.full keys=" + type + ":nullequal build=rowid probe=rowid", Engine::kGeneric);
    const Table table = run.Of({run.column()}, {kRowIds});
    Feed(join.Build(), {table});
    Done(join.Finalise());
    quern::Output probe = Take(join.Probe(2));
    return Probed(&probe, table, "rr");
  }
  Lines JoinProbe(const Run& run) {
    quern::Join join = New<quern::Join>("join.anti keys=i64 probe=" + type + ",rowid", Engine::kGeneric);
    Done(join.Finalise());
    quern::Output probe = Take(join.Probe(2));
    return Probed(&probe, run.Of({ColumnOf(ids)}, {run.column(), kRowIds}), kind + "r");
  }
  Lines Sort(const Run& run) {
    quern::Sort sort = New<quern::Sort>("sort keys=" + type + ":out payload=" + type + ",rowid stable");
    Feed(sort.Rows(run.bytes), {run.Of({run.column()}, {run.column(), kRowIds})});
    run.Forget();
    Done(sort.Finalise());
    return InOrder(sort.Sorted(), kind + kind + "r");
  }
  // Nothing of a batch is kept.
  Lines Aggregate(const Run& run) {
    quern::Aggregate aggregate =
        New<quern::Aggregate>("aggregate keys=" + type + " aggs=count_star,first(" + type + ")");
    Feed(aggregate.Rows(), {run.Of({run.column()}, {run.column()})});
    run.Forget();
    Done(aggregate.Finalise());
    return RowsOf(aggregate.Groups(), kind + "l" + kind);
  }
  // Compared with a plain column of other values.
  Lines Filter(const Run& run) {
    const Elements other(given, false, {1, 5, 3, 3, 0, 4}, std::vector<bool>(6, true));
    quern::Filter filter = New<quern::Filter>("filter " + type + " = " + type + " or " + type + " is null or i64 = 4");
    const Table table = run.Of({run.column(), other.column(), run.column(), ColumnOf(ids)}, {});
    uint32_t rows[6];
    const uint64_t num_rows = Take(filter.Select(table.batch(), rows));
    Lines lines;
    for (uint64_t i = 0; i < num_rows; ++i) lines.push_back(std::to_string(rows[i]));
    return lines;
  }

  const Class& given = GetParam();
  const std::string type = std::string(given.type) + ":nullable", kind = std::string(1, given.kind);
  const std::vector<int64_t> ids = {0, 1, 2, 3, 4, 5};
};

TEST_P(HostColumns, OfBuildSides) { ExpectTheRowsOfPlainColumns(&HostColumns::JoinBuild, true); }
TEST_P(HostColumns, OfKeysOfJoins) { ExpectTheRowsOfPlainColumns(&HostColumns::JoinKeys, false); }
TEST_P(HostColumns, OfProbeSides) { ExpectTheRowsOfPlainColumns(&HostColumns::JoinProbe, false); }
TEST_P(HostColumns, OfSorts) { ExpectTheRowsOfPlainColumns(&HostColumns::Sort, true); }
TEST_P(HostColumns, OfAggregations) { ExpectTheRowsOfPlainColumns(&HostColumns::Aggregate, true); }
TEST_P(HostColumns, OfFilters) { ExpectTheRowsOfPlainColumns(&HostColumns::Filter, false); }

INSTANTIATE_TEST_SUITE_P(
    Classes, HostColumns,
    testing::Values(Class{"Bits", "bool", 'b', 0}, Class{"BitsAsBytes", "bool", 'b', 0, QUERN_COLUMN_BYTES},
                    Class{"I8", "i8", '1', 1}, Class{"U16", "u16", '2', 2}, Class{"I32", "i32", '4', 4},
                    Class{"I32InOneByte", "i32", '4', 4, 0, 1}, Class{"I64", "i64", '8', 8},
                    Class{"U64InTwoBytes", "u64", '8', 8, 0, 2}, Class{"F64", "f64", '8', 8},
                    Class{"Decimal", "decimal128", 'x', 16}, Class{"DecimalInFourBytes", "decimal128", 'x', 16, 0, 4},
                    Class{"FixedBinary", "fixed_binary(7)", '7', 7}, Class{"Utf8", "utf8", 's', 0},
                    Class{"LargeUtf8", "large_utf8", 'S', 0}, Class{"Views", "utf8_view", 'v', 0},
                    Class{"ViewsByPointer", "utf8_view", 'v', 0, QUERN_COLUMN_POINTERS},
                    Class{"Varlena", "utf8_view", 'v', 0, QUERN_COLUMN_VARLENA},
                    Class{"Bpchar", "utf8_view", 'v', 0, QUERN_COLUMN_VARLENA | QUERN_COLUMN_TRIMMED},
                    Class{"Dictionary", "dictionary(u16,utf8)", 's', 2},
                    Class{"DictionaryOfI64", "dictionary(i64,utf8)", 's', 8}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace quern_test
