// SPDX-License-Identifier: Apache-2.0
// Sorts under every collation: rows have the order of CompareStrings (collation.h), which does not use key words,
// whatever the words of a prefix, the storage and the direction; with few strings and with many, with and without a
// limit, sorted by comparison, and in several runs.
//
//     'a\t' 'a ' 'a' 'A', utf8mb4_general_ci     a\t | 'a ' 'a' 'A', equal and in order of arrival
//                                                tidb.: the equal ones, then a\t
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/collation/collation.h"
#include "test/unit/runtime/collation/collated_texts.h"
#include "test/unit/runtime/sort/sort_rows.h"
#include "test/unit/seed.h"

namespace quern {
namespace {

using test::BytesOfText;
using test::Lines;
using test::PrintedRandom;
using test::RandomTexts;
using test::RowIdColumn;
using test::Rows;
using test::SortedLines;
using test::SortOf;
using test::SortTuning;
using test::StringColumn;
using test::TextKind;
using test::WithNulls;

using Text = std::optional<std::string>;

struct KeyOrder {
  std::string collation;
  CollationRule rule;
  bool descending = false, nulls_first = false;

  std::string Spec(const std::string& type) const {
    return "sort keys=" + type + "(" + collation + "):nullable" + (descending ? ":desc" : "") +
           (nulls_first ? ":nulls_first" : "") + " payload=rowid stable";
  }
  int Compare(const Text& a, const Text& b) const {
    if (!a || !b) return a.has_value() == b.has_value() ? 0 : a.has_value() == nulls_first ? 1 : -1;
    const int order = CompareStrings(BytesOfText(*a), BytesOfText(*b), rule);
    return order == 0 ? 0 : (order < 0) != descending ? -1 : 1;
  }
  // The numbers of the texts in order; equal ones in order of arrival.
  std::vector<size_t> Sorted(const std::vector<Text>& texts) const {
    std::vector<size_t> rows(texts.size());
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = i;
    std::sort(rows.begin(), rows.end(), [&](size_t a, size_t b) {
      const int order = Compare(texts[a], texts[b]);
      return order != 0 ? order < 0 : a < b;
    });
    return rows;
  }
};

Lines LinesOf(const std::vector<size_t>& rows) {
  Lines lines;
  for (const size_t row : rows) lines.push_back(std::to_string(row));
  return lines;
}

std::vector<Text> SomeTexts(TextKind kind, size_t n, std::mt19937_64* random) {
  std::vector<Text> texts;
  for (std::string& text : RandomTexts(kind, n, random)) texts.emplace_back(std::move(text));
  for (Text& text : texts)
    if ((*random)() % 16 == 0) text.reset();
  return texts;
}

BatchView BatchOf(const std::vector<Text>& texts, size_t begin, size_t end, Storage storage) {
  std::vector<std::string> strings;
  std::vector<bool> valid;
  for (size_t i = begin; i < end; ++i) {
    strings.push_back(texts[i].value_or("a null's"));
    valid.push_back(texts[i].has_value());
  }
  BatchView batch = Rows(end - begin, {WithNulls(StringColumn(storage, strings), valid)}, {RowIdColumn()});
  batch.first_row_id = begin;
  return batch;
}

std::vector<BatchView> BatchesOfAll(const std::vector<Text>& texts, Storage storage, size_t batch_rows = 100) {
  std::vector<BatchView> batches;
  for (size_t begin = 0; begin < texts.size(); begin += batch_rows)
    batches.push_back(BatchOf(texts, begin, std::min(begin + batch_rows, texts.size()), storage));
  return batches;
}

constexpr std::pair<const char*, Storage> kTypes[] = {{"utf8", kVar32}, {"large_utf8", kVar64}, {"utf8_view", kView}};

// All of collations.def, and some of ICU where it is available.
std::vector<std::pair<std::string, CollationRule>> CollationsToSortBy() {
  std::vector<std::pair<std::string, CollationRule>> collations;
  for (const CollationRow& row : AllCollations()) collations.emplace_back(row.text, RuleOf(row.id));
  for (const char* name : {"icu:und", "icu:de-u-co-phonebk", "icu:und-u-ks-level1"}) {
    const auto collation = CollationNamed(name);
    if (collation.ok()) collations.emplace_back(name, RuleOf(*collation));
  }
  return collations;
}

// Calls check(order, texts) for all collations, kinds of strings, and directions.
template <class Check>
void ForAllOrders(size_t n, Check check) {
  auto random = PrintedRandom();
  for (const auto& [collation, rule] : CollationsToSortBy()) {
    for (const TextKind kind : test::kTextKinds) {
      const KeyOrder order = {collation, rule, random() % 2 == 0, random() % 2 == 0};
      SCOPED_TRACE(order.Spec("utf8") + " of kind " + std::to_string(static_cast<int>(kind)));
      check(order, SomeTexts(kind, n, &random));
    }
  }
}

TEST(SortCollation, EntriesOfEveryWidth) {
  ForAllOrders(700, [](const KeyOrder& order, const std::vector<Text>& texts) {
    const Lines expected = LinesOf(order.Sorted(texts));
    for (uint32_t words = 1; words <= 4; ++words) {
      SortTuning tuning;
      tuning.options.prefix_words = words;
      EXPECT_EQ(SortedLines(order.Spec("utf8"), BatchesOfAll(texts, kVar32), tuning), expected) << words;
    }
  });
}

TEST(SortCollation, EveryStorageAndByComparing) {
  ForAllOrders(400, [](const KeyOrder& order, const std::vector<Text>& texts) {
    const Lines expected = LinesOf(order.Sorted(texts));
    SortTuning compares;
    compares.method = SortMethod::kComparison;
    for (const auto& [type, storage] : kTypes) {
      EXPECT_EQ(SortedLines(order.Spec(type), BatchesOfAll(texts, storage)), expected) << type;
      EXPECT_EQ(SortedLines(order.Spec(type), BatchesOfAll(texts, storage), compares), expected) << type;
    }
  });
}

TEST(SortCollation, FewStringsByTheirRanks) {
  ForAllOrders(60, [](const KeyOrder& order, const std::vector<Text>& few) {
    std::vector<Text> texts;
    for (size_t i = 0; i < 900; ++i) texts.push_back(few[i * 7919 % few.size()]);
    SortTuning tuning;
    tuning.options.dictionary_rows = 200;
    const auto sort = SortOf(order.Spec("utf8"), tuning);
    for (const BatchView& batch : BatchesOfAll(texts, kVar32)) ASSERT_EQ(sort->Append(batch), absl::OkStatus());
    ASSERT_EQ(sort->Finalise(), absl::OkStatus());
    EXPECT_EQ(SortedLines(sort), LinesOf(order.Sorted(texts)));
    EXPECT_EQ(sort->stats().collided_rows, 0u);
    EXPECT_LE(sort->stats().key_bits, 1u + 6u);
  });
}

TEST(SortCollation, LimitsKeepTheFirstRows) {
  ForAllOrders(5000, [](const KeyOrder& order, const std::vector<Text>& texts) {
    Lines expected = LinesOf(order.Sorted(texts));
    expected.resize(40);
    const auto sort = SortOf(order.Spec("utf8") + " limit=40");
    for (const BatchView& batch : BatchesOfAll(texts, kVar32, 500)) ASSERT_EQ(sort->Append(batch), absl::OkStatus());
    ASSERT_EQ(sort->Finalise(), absl::OkStatus());
    EXPECT_EQ(SortedLines(sort), expected);
    EXPECT_GT(sort->stats().dropped_rows, 2000u);
  });
}

TEST(SortCollation, RanksAreOfStringsThatAreEqual) {
  ForAllOrders(600, [](const KeyOrder& order, const std::vector<Text>& texts) {
    const std::vector<size_t> rows = order.Sorted(texts);
    Lines expected;
    size_t rank = 0, dense_rank = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (i == 0 || order.Compare(texts[rows[i - 1]], texts[rows[i]]) != 0) {
        rank = i + 1;
        ++dense_rank;
      }
      expected.push_back(std::to_string(rows[i]) + "|" + std::to_string(rank) + "|" + std::to_string(dense_rank));
    }
    for (const uint32_t words : {1u, 4u}) {
      SortTuning tuning;
      tuning.options.prefix_words = words;
      EXPECT_EQ(SortedLines(order.Spec("utf8") + " window=rank,dense_rank", BatchesOfAll(texts, kVar32), tuning),
                expected)
          << words;
    }
  });
}

// A number after the string, which decides only where strings are equal; and one before it, so that the string's first
// bytes do not fill a whole word.
TEST(SortCollation, AmongOtherKeys) {
  ForAllOrders(500, [](const KeyOrder& order, const std::vector<Text>& texts) {
    std::vector<int8_t> before;
    std::vector<int64_t> behind;
    std::vector<size_t> rows;
    for (size_t i = 0; i < texts.size(); ++i) {
      before.push_back(static_cast<int8_t>(i % 3));
      behind.push_back(static_cast<int64_t>(i * 31 % 7));
      rows.push_back(i);
    }
    std::sort(rows.begin(), rows.end(), [&](size_t a, size_t b) {
      if (before[a] != before[b]) return before[a] < before[b];
      const int by_text = order.Compare(texts[a], texts[b]);
      if (by_text != 0) return by_text < 0;
      return behind[a] != behind[b] ? behind[a] < behind[b] : a < b;
    });
    const std::string text_key = order.Spec("utf8").substr(10);
    const std::string spec =
        "sort keys=i8," + text_key.substr(0, text_key.find(' ')) + ",i64" + text_key.substr(text_key.find(' '));
    BatchView batch = BatchOf(texts, 0, texts.size(), kVar32);
    const auto first = test::NumberColumn(before), last = test::NumberColumn(behind);
    batch.keys = {first->column, batch.keys[0], last->column};
    for (const uint32_t words : {1u, 2u, 4u}) {
      SortTuning tuning;
      tuning.options.prefix_words = words;
      EXPECT_EQ(SortedLines(spec, {batch}, tuning), LinesOf(rows)) << words;
    }
  });
}

TEST(SortCollation, DictionariesAreReadAsTheirValues) {
  auto random = PrintedRandom();
  for (const auto& [collation, rule] : CollationsToSortBy()) {
    const KeyOrder order = {collation, rule};
    std::vector<std::string> values = RandomTexts(TextKind::kMixed, 200, &random);
    std::vector<uint8_t> indices;
    std::vector<Text> texts;
    for (size_t i = 0; i < 700; ++i) {
      indices.push_back(static_cast<uint8_t>(random() % values.size()));
      texts.emplace_back(values[indices.back()]);
    }
    const auto column = test::DictionaryColumn(indices, StringColumn(kVar32, values));
    EXPECT_EQ(SortedLines("sort keys=dictionary(u8,utf8(" + collation + ")) payload=rowid stable",
                          {Rows(700, {column}, {RowIdColumn()})}),
              LinesOf(order.Sorted(texts)))
        << collation;
  }
}

// ---- the order of each family, in examples ----

Lines InOrder(const std::string& collation, const std::vector<std::string>& texts) {
  return SortedLines("sort keys=utf8(" + collation + "):out stable",
                     {Rows(texts.size(), {StringColumn(kVar32, texts)})});
}

TEST(SortCollation, AnEndIsASpaceOrBelowEverything) {
  const std::vector<std::string> texts = {"a!", "a", "a\t", "a  ", std::string("a\0", 2), "a ", "a~"};
  const std::string nul = std::string("a\0", 2);
  for (const char* pads : {"ascii_bin", "utf8_bin", "utf8mb4_bin", "latin1_bin"})
    EXPECT_EQ(InOrder(pads, texts), (Lines{nul, "a\t", "a", "a  ", "a ", "a!", "a~"})) << pads;
  for (const char* trims : {"tidb.ascii_bin", "tidb.utf8_bin", "tidb.utf8mb4_bin", "tidb.latin1_bin"})
    EXPECT_EQ(InOrder(trims, texts), (Lines{"a", "a  ", "a ", nul, "a\t", "a!", "a~"})) << trims;
  for (const char* counts : {"binary", "utf8mb4_0900_bin", "tidb.binary", "tidb.utf8mb4_0900_bin"})
    EXPECT_EQ(InOrder(counts, texts), (Lines{"a", nul, "a\t", "a ", "a  ", "a!", "a~"})) << counts;
}

// The same beyond the bytes that words hold.
TEST(SortCollation, AnEndIsASpaceOrBelowEverythingInLongStringsToo) {
  const std::string s = "sixteen bytes...and more";
  const std::vector<std::string> texts = {s + "!",         s, s + "\t", s + "          ", s + "\x1f", s + "    \x01",
                                          s + "         ~"};
  EXPECT_EQ(InOrder("utf8mb4_bin", texts),
            (Lines{s + "\t", s + "\x1f", s + "    \x01", s, s + "          ", s + "         ~", s + "!"}));
  EXPECT_EQ(InOrder("tidb.utf8mb4_bin", texts),
            (Lines{s, s + "          ", s + "\t", s + "\x1f", s + "    \x01", s + "         ~", s + "!"}));
}

TEST(SortCollation, StringsThatWeighTheSameComeAsTheyCame) {
  const std::vector<std::string> texts = {"stra\u00dfe", "STRASE", "strasse", "Stra\u00dfe ", "strasf", "a"};
  EXPECT_EQ(InOrder("utf8mb4_general_ci", texts),
            (Lines{"a", "stra\u00dfe", "STRASE", "Stra\u00dfe ", "strasf", "strasse"}));
  EXPECT_EQ(InOrder("utf8mb4_unicode_ci", texts),
            (Lines{"a", "STRASE", "strasf", "stra\u00dfe", "strasse", "Stra\u00dfe "}));
  EXPECT_EQ(InOrder("utf8mb4_0900_ai_ci", texts),
            (Lines{"a", "STRASE", "strasf", "stra\u00dfe", "strasse", "Stra\u00dfe "}));
}

// A common beginning of a million characters is read once, not once for each eight of them.
TEST(SortCollation, LongCommonBeginnings) {
  for (const char* name :
       {"utf8mb4_bin", "utf8mb4_general_ci", "utf8mb4_unicode_ci", "utf8mb4_0900_ai_ci", "tidb.utf8mb4_general_ci"}) {
    const std::string stem(400000, 'x'), accents = stem + "\u00e9", spaces(300000, ' ');
    const std::vector<std::string> texts = {accents + "b", accents + "a", stem + spaces + "z", accents, stem};
    const KeyOrder order = {name, RuleOf(*CollationNamed(name))};
    const std::vector<Text> all(texts.begin(), texts.end());
    EXPECT_EQ(SortedLines(order.Spec("utf8"), {BatchOf(all, 0, all.size(), kVar32)}), LinesOf(order.Sorted(all)))
        << name;
  }
}

}  // namespace
}  // namespace quern
