// SPDX-License-Identifier: Apache-2.0
// Keys with few distinct strings in a sort: rows are sorted by the ranks of their strings until there are too many
// strings, and by their bytes from then on. The result equals that of a sort without dictionary codes.
//
//     dictionary_rows=700     rows 0 to 699 as bytes; with the 700th row all of them get codes;
//                             at the 32,769th distinct string they become bytes again
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "test/unit/runtime/sort/sort_rows.h"

namespace quern {
namespace {

using test::ColumnPtr;
using test::Lines;
using test::NumberColumn;
using test::RowIdColumn;
using test::Rows;
using test::SortedLines;
using test::SortOf;
using test::SortTuning;
using test::StringColumn;
using test::WithNulls;

constexpr uint32_t kCodeRows = 700;
constexpr const char* kCollations[] = {"binary", "utf8mb4_bin", "tidb.utf8mb4_bin", "utf8mb4_general_ci",
                                       "utf8mb4_0900_ai_ci"};

SortTuning CodesFrom(uint32_t rows) {
  SortTuning tuning;
  tuning.options.dictionary_rows = rows;
  return tuning;
}

// The strings of the rows of one thread-local state.
using Texts = std::vector<std::string>;

// For each row one of `num_different` strings: short and long ones, some that end with spaces, in both cases.
Texts SomeTexts(size_t n, size_t num_different, const std::string& stem, size_t first = 0) {
  Texts texts;
  for (size_t i = 0; i < n; ++i) {
    const size_t number = first + i * 7919 % num_different;
    texts.push_back((number % 3 == 0 ? "" : stem) + std::to_string(number) + (number % 5 == 0 ? "x" : "X") +
                    std::string(i % 3, ' '));
  }
  return texts;
}

// Batches of 400 rows, every 17th of which is null; `first_row` counts across thread-local states.
void AppendTexts(const Texts& texts, size_t first_row, Appender* local) {
  for (size_t begin = 0; begin < texts.size(); begin += 400) {
    const size_t end = std::min(begin + 400, texts.size());
    const Texts some(texts.begin() + static_cast<ptrdiff_t>(begin), texts.begin() + static_cast<ptrdiff_t>(end));
    std::vector<bool> valid;
    for (size_t i = begin; i < end; ++i) valid.push_back((first_row + i) % 17 != 0);
    BatchView batch = Rows(end - begin, {WithNulls(StringColumn(kVar32, some), valid)}, {RowIdColumn()});
    batch.first_row_id = first_row + begin;
    ASSERT_EQ(local->Append(batch), absl::OkStatus());
  }
}

std::shared_ptr<RowSort> LocalRowSets(const std::string& spec, const std::vector<Texts>& locals,
                                      uint32_t dictionary_rows) {
  return SortOfSides(spec, CodesFrom(dictionary_rows), locals, AppendTexts,
                     [](const Texts& texts) { return texts.size(); });
}

// Compares with a sort without codes, for all collations, ascending and descending, nulls last and first; returns the
// key bits of the last sort.
uint32_t ExpectTheSameWithoutCodes(const std::vector<Texts>& locals) {
  uint32_t key_bits = 0;
  for (const char* collation : kCollations) {
    for (const char* flags : {"", ":desc", ":desc:nulls_first"}) {
      const std::string spec =
          "sort keys=utf8(" + std::string(collation) + "):nullable:out" + flags + " payload=rowid stable";
      const auto sort = LocalRowSets(spec, locals, kCodeRows);
      EXPECT_EQ(SortedLines(sort), SortedLines(LocalRowSets(spec, locals, 0))) << spec;
      key_bits = sort->stats().key_bits;
    }
  }
  return key_bits;
}

TEST(SortCodes, FewStringsAreSortedByTheirRanks) {
  const uint32_t key_bits = ExpectTheSameWithoutCodes({SomeTexts(3000, 100, "a stem of more than sixteen bytes ")});
  EXPECT_LE(key_bits, 1u + 9u);
}

TEST(SortCodes, TwoSidesHaveOneOrder) {
  const std::string stem = "a stem of more than sixteen bytes ";
  const uint32_t key_bits = ExpectTheSameWithoutCodes({SomeTexts(2500, 100, stem, 50), SomeTexts(3000, 90, stem), {}});
  EXPECT_LE(key_bits, 1u + 9u);
}

// A thread-local state that is too small for codes makes the other one decode its codes.
TEST(SortCodes, OneSideHasCodesAndTheOtherHasNot) {
  ExpectTheSameWithoutCodes(
      {SomeTexts(2500, 100, "long enough to go on "), SomeTexts(300, 40, "long enough to go on ")});
  ExpectTheSameWithoutCodes({SomeTexts(200, 100, ""), SomeTexts(2500, 40, "")});
  ExpectTheSameWithoutCodes({SomeTexts(2500, 2500, "all different"), SomeTexts(2500, 40, "all different")});
}

// At the 32,769th string a thread-local state decodes its codes, in the middle of a chunk and in the rows before.
TEST(SortCodes, AFloodOfStringsComesLate) {
  for (const char* stem : {"", "a stem that words do not hold "}) {
    Texts texts = SomeTexts(1200, 60, stem);
    const Texts flood = SomeTexts(33500, 33500, stem, 1000);
    texts.insert(texts.end(), flood.begin(), flood.end());
    const Texts after = SomeTexts(500, 60, stem);
    texts.insert(texts.end(), after.begin(), after.end());
    for (const char* spec : {"sort keys=utf8:nullable:out payload=rowid stable",
                             "sort keys=utf8(utf8mb4_bin):nullable:desc:out payload=rowid stable",
                             "sort keys=utf8(utf8mb4_general_ci):nullable:out payload=rowid stable"}) {
      EXPECT_EQ(SortedLines(LocalRowSets(spec, {texts, after}, kCodeRows)),
                SortedLines(LocalRowSets(spec, {texts, after}, 0)))
          << spec << stem;
    }
  }
}

// Each key has its own codes, and other keys in the same words stay.
TEST(SortCodes, TwoKeysAndNumbersBetween) {
  const Texts first = SomeTexts(4000, 30, ""), second = SomeTexts(4000, 50, "behind more than sixteen bytes ", 7);
  std::vector<int16_t> numbers;
  for (size_t i = 0; i < first.size(); ++i) numbers.push_back(static_cast<int16_t>(i % 11));
  std::vector<bool> valid;
  for (size_t i = 0; i < first.size(); ++i) valid.push_back(i % 13 != 0);
  const BatchView batch = Rows(first.size(),
                               {NumberColumn(numbers), WithNulls(StringColumn(kVar32, first), valid),
                                NumberColumn(numbers), StringColumn(kView, second)},
                               {RowIdColumn()});
  const std::string spec =
      "sort keys=i16:desc,utf8(utf8mb4_bin):nullable:out,i16:out,utf8_view(utf8mb4_general_ci):desc:out payload=rowid "
      "stable";
  EXPECT_EQ(SortedLines(spec, {batch}, CodesFrom(kCodeRows)), SortedLines(spec, {batch}, CodesFrom(0)));
}

// Strings that are equal under a collation have one rank, and each is returned with its own bytes. Each thread-local
// state has few strings, but all of them together have too many.
TEST(SortCodes, SidesTogetherHaveTooManyStringsForOneNumbering) {
  std::vector<Texts> locals;
  for (size_t first : {0, 20000, 1000}) {
    Texts texts = SomeTexts(1200, 60, "stem ", first);
    const Texts more = SomeTexts(18000, 18000, "stem ", first);
    texts.insert(texts.end(), more.begin(), more.end());
    locals.push_back(std::move(texts));
  }
  for (const char* spec : {"sort keys=utf8:nullable:out payload=rowid stable",
                           "sort keys=utf8(utf8mb4_bin):nullable:out payload=rowid stable"}) {
    const auto sort = LocalRowSets(spec, locals, kCodeRows);
    EXPECT_EQ(SortedLines(sort), SortedLines(LocalRowSets(spec, locals, 0))) << spec;
    EXPECT_LE(sort->stats().key_bits, 17u) << spec;
  }
}

// Words that hold only bytes of dictionary-coded strings are not written and do not decide partitions.
TEST(SortCodes, PartitionsAreThoseOfTheStrings) {
  const auto numbered = SomeTexts(3000, 40, "a stem of more than sixteen bytes "),
             long_ones = SomeTexts(3000, 2900, "another such long stem ");
  for (const char* partition : {"1", "2"}) {
    const std::string spec =
        "sort keys=utf8:out,utf8:out partition=" + std::string(partition) + " window=row_number,rank,dense_rank stable";
    const std::vector<BatchView> batches = {
        Rows(3000, {StringColumn(kVar32, numbered), StringColumn(kVar32, long_ones)})};
    EXPECT_EQ(SortedLines(spec, batches, CodesFrom(kCodeRows)), SortedLines(spec, batches, CodesFrom(0))) << spec;
  }
}

TEST(SortCodes, EqualStringsKeepTheirBytes) {
  Texts texts;
  for (int i = 0; i < 1000; ++i)
    for (const char* text : {"b", "A ", "a", "B  ", "a  "}) texts.emplace_back(text);
  const auto sort = SortOf("sort keys=utf8(utf8mb4_general_ci):out payload=rowid stable", CodesFrom(kCodeRows));
  ASSERT_EQ(sort->Append(Rows(texts.size(), {StringColumn(kVar32, texts)}, {RowIdColumn()})), absl::OkStatus());
  ASSERT_EQ(sort->Finalise(), absl::OkStatus());
  EXPECT_EQ(sort->stats().key_bits, 2u);  // one of them is the empty string, whose code is also that of nulls
  Lines expected;
  for (const char first : {'a', 'b'})
    for (size_t row = 0; row < texts.size(); ++row)
      if ((texts[row][0] | 0x20) == first) expected.push_back(texts[row] + "|" + std::to_string(row));
  EXPECT_EQ(SortedLines(sort), expected);
}

}  // namespace
}  // namespace quern
