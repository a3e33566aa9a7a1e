// SPDX-License-Identifier: Apache-2.0
// Batches of more than 65,536 rows, which jobs take in slices: as a host's vectors and as Arrow arrays, with and
// without a selection, they give the rows of small batches. Their columns have every storage, nulls and bit offsets,
// and row ids say where a row was.
#include <gtest/gtest.h>

#include <memory>
#include <numeric>

#include "test/hosts/arrow_results.h"
#include "test/hosts/jobs.h"

namespace quern_test {
namespace {

constexpr uint64_t kRows = 100000;
constexpr uint64_t kSmall = 10000;
constexpr uint64_t kFirstRowId = 1000;
const quern_column kRowIds = {};

// Columns as a host's vectors and as the children of an Arrow array.
class WideTable {
 public:
  static constexpr const char* kTypes =
      "i32:nullable,bool,utf8:nullable,large_utf8,utf8_view,dictionary(u8,utf8):nullable,rowid";
  static constexpr const char* kKinds = "ibsSvsr";

  WideTable() {
    std::vector<bool> has_value, is_set;
    for (uint64_t i = 0; i < kRows; ++i) {
      key_.push_back(static_cast<int64_t>(i));
      small_.push_back(static_cast<int32_t>(i * 7));
      index_.push_back(static_cast<uint8_t>(i % 5));
      texts_.push_back(i % 3 == 0 ? "short" : "a longer text, number " + std::to_string(i));
      has_value.push_back(i % 7 != 0);
      is_set.push_back(i % 11 < 4);
    }
    words_ = std::make_unique<StringVector<int32_t>>(texts_);
    large_words_ = std::make_unique<StringVector<int64_t>>(texts_);
    views_ = std::make_unique<ViewVector>(texts_);
    validity_ = Bitmap(has_value, 3);
    flags_ = Bitmap(is_set, 5);
    flag_column_ = ColumnOf(flags_);
    flag_column_.bit_offset = 5;
    dictionary_values_ = dictionary_.column();
    arrow_validity_ = Bitmap(has_value);
    arrow_flags_ = Bitmap(is_set);
  }
  WideTable(const WideTable&) = delete;
  WideTable& operator=(const WideTable&) = delete;

  // These rows; none: all.
  Table Of(const std::vector<uint32_t>& rows) const {
    return {{ColumnOf(key_)},
            {WithValidity(ColumnOf(small_), validity_, 3), flag_column_, WithValidity(words_->column(), validity_, 3),
             large_words_->column(), views_->column(),
             WithValidity(DictionaryColumn(ColumnOf(index_), dictionary_values_), validity_, 3), kRowIds},
            kRows,
            rows,
            kFirstRowId};
  }
  // The same in pieces of kSmall rows.
  std::vector<Table> InPieces(std::vector<uint32_t> rows) const {
    if (rows.empty()) {
      rows.resize(kRows);
      std::iota(rows.begin(), rows.end(), 0);
    }
    std::vector<Table> pieces;
    for (size_t first = 0; first < rows.size(); first += kSmall) {
      const size_t end = std::min(first + kSmall, rows.size());
      pieces.push_back(Of({rows.begin() + static_cast<ptrdiff_t>(first), rows.begin() + static_cast<ptrdiff_t>(end)}));
    }
    return pieces;
  }

  TestArrayPtr Array() const {
    auto flags = std::make_unique<TestArray>(kRows), large = std::make_unique<TestArray>(kRows),
         views = std::make_unique<TestArray>(kRows);
    flags->AddPointer(nullptr).AddBuffer(arrow_flags_);
    large->AddPointer(nullptr).AddBuffer(large_words_->offsets);
    large->AddBuffer(large_words_->bytes.data(), large_words_->bytes.size());
    views->AddPointer(nullptr).AddBuffer(views_->views);
    for (const std::string& bytes : views_->bytes) views->AddBuffer(bytes.data(), bytes.size());
    views->AddBuffer(std::vector<int64_t>{static_cast<int64_t>(views_->bytes[0].size()),
                                          static_cast<int64_t>(views_->bytes[1].size())});
    auto indices = FixedArray(index_);
    indices->SetDictionary(Utf8Array(kWords));
    return StructArray(kRows, FixedArray(key_), WithNulls(FixedArray(small_), arrow_validity_, -1), std::move(flags),
                       WithNulls(Utf8Array(texts_), arrow_validity_, -1), std::move(large), std::move(views),
                       WithNulls(std::move(indices), arrow_validity_, -1));
  }
  static const TestSchema& Schema() {
    static const TestSchema schema({{"k", "l"},
                                    {"i", "i", nullptr, true},
                                    {"b", "b"},
                                    {"s", "u", nullptr, true},
                                    {"S", "U"},
                                    {"v", "vu"},
                                    {"d", "C", "u", true}});
    return schema;
  }

 private:
  const std::vector<std::string> kWords = {"zero", "one", "two", "three", "a fourth, which is longer"};
  std::vector<int64_t> key_;
  std::vector<int32_t> small_;
  std::vector<uint8_t> index_, validity_, flags_, arrow_validity_, arrow_flags_;
  std::vector<std::string> texts_;
  StringVector<int32_t> dictionary_{kWords};
  quern_column dictionary_values_ = {}, flag_column_ = {};
  std::unique_ptr<StringVector<int32_t>> words_;
  std::unique_ptr<StringVector<int64_t>> large_words_;
  std::unique_ptr<ViewVector> views_;
};

constexpr int32_t kKey[] = {0}, kPayload[] = {1, 2, 3, 4, 5, 6, -1};

enum class Form { kPieces, kVectors, kArrow };

// Each test runs with all rows and with some, whose numbers rise, as those of a merge have to.
class Slices : public testing::TestWithParam<bool> {
 protected:
  Slices() {
    if (GetParam()) {
      for (uint32_t row = 0; row < kRows; row += row % 8 == 0 ? 2 : 1) some_.push_back(row);
    }
    rows_ = {sizeof(rows_), some_.empty() ? nullptr : some_.data(), some_.empty() ? kRows : some_.size(), kFirstRowId};
  }

  void Append(quern::Job* job, quern_port port, Form form) {
    if (form != Form::kArrow)
      return Feed(job->NewInput(port),
                  form == Form::kPieces ? table_.InPieces(some_) : std::vector<Table>{table_.Of(some_)});
    Done(job->BindArrow(port, {&WideTable::Schema().schema, kKey, kPayload}));
    quern::Input input = Take(job->NewInput(port));
    arrays_.push_back(table_.Array());
    Done(input.AppendArrow(&arrays_.back()->array, &rows_));
    Done(input.Finish());
  }
  // The rows by each form of the input are the same.
  template <class RowsBy>
  void ExpectTheRowsOfPieces(RowsBy&& rows_by) {
    const Lines expected = rows_by(Form::kPieces);
    EXPECT_GT(expected.size(), 100u);
    for (const Form form : {Form::kVectors, Form::kArrow})
      EXPECT_TRUE(rows_by(form) == expected) << "form " << static_cast<int>(form);
  }

  const WideTable table_;
  std::vector<uint32_t> some_;
  quern_arrow_rows rows_ = {};
  std::vector<TestArrayPtr> arrays_;  // outlive the jobs of a test
  const std::string types_ = WideTable::kTypes, kinds_ = WideTable::kKinds;
};

INSTANTIATE_TEST_SUITE_P(Rows, Slices, testing::Bool(),
                         [](const auto& info) { return std::string(info.param ? "Some" : "All"); });

TEST_P(Slices, OfJoins) {
  ExpectTheRowsOfPieces([&](Form form) {
    quern::Join join = New<quern::Join>("join.inner keys=i64 build=" + types_ + " probe=" + types_);
    Append(&join, QUERN_PORT_BUILD, form);
    Done(join.Finalise());
    quern::Output probe = Take(join.Probe(5000));
    if (form == Form::kArrow) {
      Done(join.BindArrow(QUERN_PORT_PROBE, {&WideTable::Schema().schema, kKey, kPayload}));
      arrays_.push_back(table_.Array());
      Done(probe.PushArrow(&arrays_.back()->array, &rows_));
      return RowsOf(&probe, kinds_ + kinds_);
    }
    Lines lines;
    for (const Table& table : form == Form::kPieces ? table_.InPieces(some_) : std::vector<Table>{table_.Of(some_)}) {
      for (std::string& line : Probed(&probe, table, kinds_ + kinds_)) lines.push_back(std::move(line));
    }
    return Ordered(std::move(lines));
  });
}

TEST_P(Slices, OfSorts) {
  ExpectTheRowsOfPieces([&](Form form) {
    quern::Sort sort = New<quern::Sort>("sort keys=i64:desc:out payload=" + types_);
    Append(&sort, QUERN_PORT_ROWS, form);
    Done(sort.Finalise());
    return InOrder(sort.Sorted(), "l" + kinds_);
  });
}

TEST_P(Slices, OfMerges) {
  ExpectTheRowsOfPieces([&](Form form) {
    quern::Merge merge = Take(quern::Merge::Create(KernelOf("sort keys=i64:out payload=" + types_), 1));
    if (form == Form::kPieces) return Merged(&merge, {table_.InPieces(some_)}, "l" + kinds_);
    if (form == Form::kVectors) return Merged(&merge, {{table_.Of(some_)}}, "l" + kinds_);
    Append(&merge, QUERN_PORT_ROWS, form);
    return InOrder(merge.Merged(), "l" + kinds_);
  });
}

// Two rows a group, of which the last one has the higher row id.
TEST_P(Slices, OfAggregations) {
  std::string aggs = "count_star";
  for (const char* type : {"i32:nullable", "bool", "utf8:nullable", "large_utf8", "utf8_view"})
    aggs += std::string(",last(") + type + ")";
  ExpectTheRowsOfPieces([&](Form form) {
    quern::Aggregate aggregate = New<quern::Aggregate>("aggregate keys=i64 aggs=" + aggs);
    Append(&aggregate, QUERN_PORT_ROWS, form);
    Done(aggregate.Finalise());
    return RowsOf(aggregate.Groups(), "llibsSv");
  });
}

TEST_P(Slices, OfFilters) {
  const std::string spec =
      "filter i64 >= 70 and (i32:nullable > 400000 or bool) and utf8:nullable <> 'short' and large_utf8 <> 'x' and "
      "utf8_view <> 'y' and dictionary(u8,utf8):nullable in ('one', 'three')";
  ExpectTheRowsOfPieces([&](Form form) {
    quern::Filter filter = New<quern::Filter>(spec);
    std::vector<uint32_t> rows(kRows);
    uint64_t num_rows = 0;
    if (form == Form::kArrow) {
      const int32_t columns[] = {0, 1, 2, 3, 4, 5, 6};
      Done(filter.BindArrow(QUERN_PORT_ROWS, {&WideTable::Schema().schema, columns, {}}));
      num_rows = Take(filter.SelectArrow(table_.Array()->array, rows.data(), &rows_));
    } else {
      for (Table table : form == Form::kPieces ? table_.InPieces(some_) : std::vector<Table>{table_.Of(some_)}) {
        table.keys.insert(table.keys.end(), table.payload.begin(), table.payload.end());
        num_rows += Take(filter.Select(table.batch(), rows.data() + num_rows));
      }
    }
    Lines lines;
    for (uint64_t i = 0; i < num_rows; ++i) lines.push_back(std::to_string(rows[i]));
    return lines;
  });
}

}  // namespace
}  // namespace quern_test
