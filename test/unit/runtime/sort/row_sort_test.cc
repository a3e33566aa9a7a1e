// SPDX-License-Identifier: Apache-2.0
// The stages of a sort in the generic kernel over columns in memory: sizes near every internal limit, inputs in every
// order, long strings and equal keys, limits and their thresholds, row ids, window functions, memory limits at every
// point, calls in a wrong order.
//
//     keys 3 1 3 1, row ids 0 1 2 3, stable     1|1 1|3 3|0 3|2     with limit=3 the first three of them
#include "runtime/sort/row_sort.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "test/unit/runtime/sort/sort_rows.h"

namespace quern {
namespace {

using test::BoolColumn;
using test::ColumnPtr;
using test::DictionaryColumn;
using test::KeysOf;
using test::Lines;
using test::Message;
using test::NumberBatches;
using test::NumberColumn;
using test::NumberRow;
using test::NumberRows;
using test::NumberRowsOf;
using test::Pattern;
using test::RowIdColumn;
using test::Rows;
using test::SortedLines;
using test::SortOf;
using test::SortTuning;
using test::StablySorted;
using test::StringColumn;
using test::WithNulls;

constexpr const char* kStable = "sort keys=i64:out payload=rowid stable";
constexpr const char* kAnyOrder = "sort keys=i64:out payload=rowid";

// Sizes near those of insertion sorts, blocks of sort-key prefixes, encoded batches, and chunks.
std::vector<size_t> Sizes() {
  std::vector<size_t> sizes;
  for (size_t n = 0; n <= 40; ++n) sizes.push_back(n);
  for (const size_t n : {64, 256, 512, 1024, 4096, 131072})
    for (size_t near = n - 1; near <= n + 1; ++near) sizes.push_back(near);
  return sizes;
}

std::shared_ptr<RowSort> Sorted(const std::string& text, const std::vector<BatchView>& batches,
                                const SortTuning& tuning = {}) {
  auto sort = SortOf(text, tuning);
  for (const BatchView& batch : batches) EXPECT_EQ(sort->Append(batch), absl::OkStatus());
  EXPECT_EQ(sort->Finalise(), absl::OkStatus());
  return sort;
}

NumberRows SortedNumbers(const std::string& text, const std::vector<int64_t>& keys, const SortTuning& tuning = {},
                         size_t batch_rows = 5000) {
  return NumberRowsOf(Sorted(text, NumberBatches(keys, batch_rows), tuning));
}

// ---- order of the calls ----

TEST(RowSort, StepsOutOfOrderAreRefused) {
  const auto sort = SortOf(kStable);
  OutputBatch out(SortOutputTypes(sort->descriptor().spec()), 8, nullptr);
  SortReader early(sort);
  EXPECT_EQ(Message(early.Next(&out).status()),
            "read before finalise: the rows are not sorted; accepted: finalise first");
  const std::vector<BatchView> batches = NumberBatches({2, 1}, 2);
  ASSERT_EQ(sort->Append(batches[0]), absl::OkStatus());
  Appender late(sort);
  ASSERT_EQ(sort->Finalise(), absl::OkStatus());
  const std::string after = "append after finalise: the rows are sorted; accepted: a new sort";
  EXPECT_EQ(Message(sort->Append(batches[0])), after);
  EXPECT_EQ(Message(late.Append(batches[0])), after);
  EXPECT_EQ(Message(late.Finish()), after);
  EXPECT_EQ(sort->Finalise(), absl::OkStatus());
  EXPECT_EQ(SortedLines(sort), (Lines{"1|1", "2|0"}));
}

TEST(RowSort, AnAppenderIsDoneWhenItHasHandedItsRowsOver) {
  const auto sort = SortOf(kStable);
  Appender appender(sort);
  const std::vector<BatchView> batches = NumberBatches({2, 1}, 2);
  ASSERT_EQ(appender.Append(batches[0]), absl::OkStatus());
  ASSERT_EQ(appender.Finish(), absl::OkStatus());
  EXPECT_EQ(Message(appender.Append(batches[0])),
            "append after finish: the rows were handed over; accepted: a new appender");
  EXPECT_EQ(Message(appender.Finish()), "finish called twice: the rows were handed over; accepted: once");
}

TEST(RowSort, BatchesOfOtherColumnsAreRefused) {
  const auto sort = SortOf(kStable);
  BatchView batch = NumberBatches({2, 1}, 2)[0];
  batch.payload.clear();
  EXPECT_EQ(Message(sort->Append(batch)),
            "batch without the spec's columns: 1 keys, 0 payload columns; accepted: 1 and 1");
  batch.num_rows = kNullRow;
  EXPECT_EQ(Message(sort->Append(batch)), "batch too large: 4294967295 rows; accepted: below 4294967295");
  ASSERT_EQ(sort->Append(NumberBatches({2, 1}, 2)[0]), absl::OkStatus());
  ASSERT_EQ(sort->Finalise(), absl::OkStatus());
  OutputBatch other({ColumnType{}}, 8, nullptr), no_rows(std::vector<ColumnType>(2), 0, nullptr);
  SortReader reader(sort);
  EXPECT_EQ(Message(reader.Next(&other).status()), "output batch of other columns: 1; accepted: 2");
  EXPECT_EQ(Message(reader.Next(&no_rows).status()), "output batch too small: 0 rows; accepted: 1 to 2147483647");
  EXPECT_EQ(SortedLines(sort), (Lines{"1|1", "2|0"}));
}

TEST(RowSort, ThresholdsThatAreNoneAreRefused) {
  const auto without = SortOf(kStable), with = SortOf(std::string(kStable) + " limit=7");
  const auto numbers = NumberColumn<int64_t>({1, 2});
  EXPECT_EQ(Message(without->SetThreshold(Rows(1, {numbers}))),
            "threshold of a sort without limit: sort keys=i64:out payload=rowid stable; accepted: limit=N");
  EXPECT_EQ(Message(with->SetThreshold(Rows(2, {numbers}))), "rows of a threshold: 2; accepted: 1");
  EXPECT_EQ(Message(with->SetThreshold(Rows(1, {}))),
            "batch without the spec's columns: 0 keys, 0 payload columns; accepted: 1 and 0");
  OutputBatch row(SortKeyTypes(without->descriptor().spec()), 1, nullptr), other({}, 1, nullptr);
  const auto exists = without->GetThreshold(&row);
  ASSERT_TRUE(exists.ok()) << exists.status();
  EXPECT_FALSE(*exists);
  EXPECT_EQ(Message(with->GetThreshold(&other).status()), "output batch of other columns: 0; accepted: 1");
}

// ---- memory ----

// A sort within a budget of that many bytes, from the first batch to the last row.
absl::Status SortWithin(const std::string& spec, const BatchView& batch, const SortTuning& tuning) {
  const auto sort = SortOf(spec, tuning);
  Appender other(sort);
  absl::Status status = sort->Append(batch);
  if (status.ok()) status = other.Append(batch);
  if (status.ok()) status = other.Finish();
  if (status.ok()) status = sort->Finalise();
  OutputBatch out(SortOutputTypes(sort->descriptor().spec()), 64, tuning.budget);
  SortReader reader(sort);
  for (bool more = status.ok(); more && status.ok();) {
    const auto next = reader.Next(&out);
    status = next.status();
    more = next.ok() && *next;
  }
  return status;
}

void ExpectEveryLimitIsAnError(const std::string& spec, const BatchView& batch, const SortMethod method,
                               uint64_t step) {
  bool fits = false;
  uint64_t num_refused = 0;
  for (uint64_t limit = 64; !fits; limit += step + limit / 16) {
    ASSERT_LT(limit, uint64_t{1} << 30) << spec;
    SortTuning tuning;
    tuning.method = method;
    tuning.budget = std::make_shared<MemoryBudget>(limit);
    const absl::Status status = SortWithin(spec, batch, tuning);
    fits = status.ok();
    if (!fits) {
      ++num_refused;
      EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
      EXPECT_NE(Message(status).find("memory limit exceeded: "), std::string::npos) << status;
    }
    EXPECT_EQ(tuning.budget->used_bytes(), 0u) << spec << " " << limit;
  }
  EXPECT_GT(num_refused, 3u);
}

TEST(RowSort, EveryLimitIsAnError) {
  std::vector<int64_t> keys;
  std::vector<std::string> texts;
  for (int64_t i = 0; i < 3000; ++i) {
    keys.push_back(i * 7919 % 3001);
    texts.push_back("a text that is longer than a field, number " + std::to_string(i % 500));
  }
  const auto number = NumberColumn(keys), text = StringColumn(kVar32, texts);
  for (const SortMethod method : {SortMethod::kRadix, SortMethod::kComparison}) {
    ExpectEveryLimitIsAnError("sort keys=i64:out payload=rowid", Rows(3000, {number}, {RowIdColumn()}), method, 2000);
    ExpectEveryLimitIsAnError("sort keys=utf8:out,i64 payload=utf8", Rows(3000, {text, number}, {text}), method, 3000);
    ExpectEveryLimitIsAnError("sort keys=utf8:out payload=rowid limit=100 stable", Rows(3000, {text}, {RowIdColumn()}),
                              method, 2000);
  }
  ExpectEveryLimitIsAnError("sort keys=i64:out partition=1 window=row_number,rank", Rows(3000, {number}),
                            SortMethod::kRadix, 2000);
}

TEST(RowSort, ABatchThatIsRefusedAsAWholeLeavesNothing) {
  SortTuning tuning;
  tuning.budget = std::make_shared<MemoryBudget>(1000);
  const auto sort = SortOf(kStable, tuning);
  const std::vector<BatchView> batches = NumberBatches(KeysOf(Pattern::kRandom, 2000), 2000);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(sort->Append(batches[0]).code(), absl::StatusCode::kResourceExhausted);
  ASSERT_TRUE(sort->Finalise().ok());
  EXPECT_EQ(sort->stats().num_rows, 0u);
}

// ---- sizes and patterns ----

TEST(RowSort, SizesAroundEveryThreshold) {
  for (const size_t n : Sizes()) {
    for (const Pattern pattern : {Pattern::kRandom, Pattern::kFewKeys}) {
      const std::vector<int64_t> keys = KeysOf(pattern, n);
      EXPECT_EQ(SortedNumbers(kStable, keys, {}, 100000), StablySorted(keys)) << n;
    }
  }
}

TEST(RowSort, InputsInEveryOrder) {
  for (const Pattern pattern : test::kPatterns) {
    for (const size_t n : {2, 17, 100, 1000, 5000, 140000}) {
      const std::vector<int64_t> keys = KeysOf(pattern, n);
      for (const SortMethod method : {SortMethod::kRadix, SortMethod::kComparison}) {
        SortTuning tuning;
        tuning.method = method;
        EXPECT_EQ(SortedNumbers(kStable, keys, tuning), StablySorted(keys)) << static_cast<int>(pattern) << " " << n;
      }
    }
  }
}

// Rows with equal keys may then have any order, but each occurs once.
TEST(RowSort, WithoutStableTiesAreInAnyOrder) {
  for (const Pattern pattern : test::kPatterns) {
    for (const size_t n : {3, 500, 6000}) {
      const std::vector<int64_t> keys = KeysOf(pattern, n);
      NumberRows rows = SortedNumbers(kAnyOrder, keys);
      EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end(),
                                 [](const NumberRow& a, const NumberRow& b) { return a.key < b.key; }));
      std::sort(rows.begin(), rows.end());
      EXPECT_EQ(rows, StablySorted(keys));
    }
  }
}

TEST(RowSort, KeysAloneNeedNoRows) {
  for (const size_t n : Sizes()) {
    std::vector<int64_t> keys = KeysOf(Pattern::kRandom, n);
    const auto sort = Sorted("sort keys=i64:desc:out", {Rows(n, {NumberColumn(keys)})});
    std::sort(keys.begin(), keys.end(), std::greater<>());
    Lines expected;
    for (const int64_t key : keys) expected.push_back(std::to_string(key));
    EXPECT_EQ(SortedLines(sort), expected) << n;
  }
}

TEST(RowSort, EntriesOfEveryWidth) {
  std::vector<int64_t> keys[5];
  for (uint64_t k = 0; k < 5; ++k) keys[k] = KeysOf(k == 0 ? Pattern::kFewKeys : Pattern::kRandom, 3000, k + 1);
  std::vector<ColumnPtr> columns;
  for (const std::vector<int64_t>& key : keys) columns.push_back(NumberColumn(key));
  std::vector<size_t> order(3000);
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::string spec = "sort keys=i64";
  for (size_t num_keys = 1; num_keys <= 5; ++num_keys, spec += ",i64") {
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      for (size_t k = 0; k < num_keys; ++k)
        if (keys[k][a] != keys[k][b]) return keys[k][a] < keys[k][b];
      return a < b;
    });
    Lines expected;
    for (const size_t row : order) expected.push_back(std::to_string(row));
    const BatchView batch =
        Rows(3000, {columns.begin(), columns.begin() + static_cast<ptrdiff_t>(num_keys)}, {RowIdColumn()});
    for (uint32_t words = 1; words <= 4; ++words) {
      SortTuning tuning;
      tuning.options.prefix_words = words;
      EXPECT_EQ(SortedLines(Sorted(spec + " payload=rowid stable", {batch}, tuning)), expected)
          << num_keys << " " << words;
    }
  }
}

// ---- strings ----

struct TextRow {
  std::string text;
  int64_t number;
};

// Strings that share the bytes that words hold, end with zero bytes, are prefixes of each other, or are all equal.
std::vector<TextRow> TextRows(size_t n) {
  const std::string stem = "sixteen bytes...", longer = "a stem of more than the sixteen bytes that words hold: ";
  std::vector<TextRow> rows;
  for (size_t i = 0; i < n; ++i) {
    const size_t number = i * 7919 % 101;
    const std::string texts[] = {stem,
                                 stem + std::string(1, '\0'),
                                 stem + std::to_string(number),
                                 longer + std::to_string(number % 5),
                                 std::string(number % 20, 'x'),
                                 std::string("ab") + std::string(number % 3, '\0'),
                                 longer + longer + std::to_string(number)};
    rows.push_back({texts[i % 7], static_cast<int64_t>(number % 4)});
  }
  return rows;
}

// Rows by text, then by number; `keeps_bytes`: the text's bytes are kept as they are compared.
Lines TextOrder(const std::vector<TextRow>& rows, bool trims) {
  const auto compared = [&](const std::string& text) {
    return trims ? text.substr(0, text.find_last_not_of(' ') + 1) : text;
  };
  std::vector<std::tuple<std::string, int64_t, size_t>> order;
  for (size_t i = 0; i < rows.size(); ++i) order.emplace_back(compared(rows[i].text), rows[i].number, i);
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {  // as bytes, since char may be negative
    const std::string &s = std::get<0>(a), &t = std::get<0>(b);
    const int c = std::memcmp(s.data(), t.data(), std::min(s.size(), t.size()));
    if (c != 0 || s.size() != t.size()) return c != 0 ? c < 0 : s.size() < t.size();
    return std::tie(std::get<1>(a), std::get<2>(a)) < std::tie(std::get<1>(b), std::get<2>(b));
  });
  Lines lines;
  for (const auto& [text, number, row] : order) lines.push_back(rows[row].text + "|" + std::to_string(row));
  return lines;
}

BatchView TextBatch(const std::vector<TextRow>& rows, Storage storage) {
  std::vector<std::string> texts;
  std::vector<int64_t> numbers;
  for (const TextRow& row : rows) {
    texts.push_back(row.text);
    numbers.push_back(row.number);
  }
  return Rows(rows.size(), {StringColumn(storage, texts), NumberColumn(numbers)}, {RowIdColumn()});
}

TEST(RowSort, LongStringsAndTiesEverywhere) {
  for (const size_t n : {1, 7, 40, 1000, 9000}) {
    const std::vector<TextRow> rows = TextRows(n);
    for (const auto& [type, storage] :
         {std::pair("binary", kVar32), std::pair("large_binary", kVar64), std::pair("binary_view", kView)}) {
      const std::string spec = std::string("sort keys=") + type + ":out,i64 payload=rowid stable";
      for (const uint32_t words : {1u, 2u, 4u}) {
        SortTuning tuning;
        tuning.options.prefix_words = words;
        EXPECT_EQ(SortedLines(Sorted(spec, {TextBatch(rows, storage)}, tuning)), TextOrder(rows, false))
            << n << " " << type;
      }
    }
  }
}

TEST(RowSort, PaddingIsNotComparedAndComesOut) {
  std::vector<TextRow> rows = TextRows(700);
  for (size_t i = 0; i < rows.size(); i += 3) rows[i].text += std::string(i % 17, ' ');
  EXPECT_EQ(
      SortedLines(Sorted("sort keys=utf8(tidb.utf8mb4_bin):out,i64 payload=rowid stable", {TextBatch(rows, kVar32)})),
      TextOrder(rows, true));
}

TEST(RowSort, DescendingStringsAndNulls) {
  const auto texts = StringColumn(
      kVar32, {"b", "", "a string of more than sixteen bytes", "a", "?", "a string of more than sixteen byteS"});
  const auto column = WithNulls(texts, {true, true, true, true, false, true});
  const BatchView batch = Rows(6, {column});
  EXPECT_EQ(
      SortedLines("sort keys=utf8:nullable:out", {batch}),
      (Lines{"", "a", "a string of more than sixteen byteS", "a string of more than sixteen bytes", "b", "null"}));
  EXPECT_EQ(
      SortedLines("sort keys=utf8:nullable:desc:out", {batch}),
      (Lines{"b", "a string of more than sixteen bytes", "a string of more than sixteen byteS", "a", "", "null"}));
  EXPECT_EQ(
      SortedLines("sort keys=utf8:nullable:desc:nulls_first:out", {batch}),
      (Lines{"null", "b", "a string of more than sixteen bytes", "a string of more than sixteen byteS", "a", ""}));
}

TEST(RowSort, OneDistinctStringIsOneTie) {
  for (const size_t length : {0, 5, 16, 17, 100}) {
    for (const size_t n : {2, 30, 3000}) {
      const std::vector<TextRow> rows(n, TextRow{std::string(length, 'a'), 1});
      EXPECT_EQ(SortedLines(Sorted("sort keys=binary:out,i64 payload=rowid stable", {TextBatch(rows, kVar32)})),
                TextOrder(rows, false));
    }
  }
}

// ---- which rows take part ----

TEST(RowSort, OnlySelectedRowsTakePart) {
  const std::vector<uint32_t> selection = {4, 2, 0};
  BatchView batch = Rows(5, {NumberColumn<int64_t>({1, 9, 2, 9, 1})}, {RowIdColumn()});
  batch.selection = selection.data();
  batch.num_rows = selection.size();
  batch.first_row_id = 10;
  EXPECT_EQ(SortedLines(kStable, {batch}), (Lines{"1|10", "1|14", "2|12"}));
}

TEST(RowSort, WithoutRowsNothingComesOut) {
  for (const char* spec : {kStable, "sort keys=utf8:out limit=3", "sort keys=i64 window=row_number", "sort keys=i64"}) {
    EXPECT_EQ(SortedLines(spec, {}), Lines()) << spec;
  }
}

TEST(RowSort, DictionariesComeOutDecoded) {
  const auto one = DictionaryColumn({2, 0, 1, 2}, StringColumn(kVar32, {"m", "a", "z"}));
  const auto other = DictionaryColumn({0, 1, 1, 0}, StringColumn(kVar32, {"b", "z"}));
  EXPECT_EQ(SortedLines("sort keys=dictionary(u8,utf8):desc:out", {Rows(4, {one}), Rows(4, {other})}),
            (Lines{"z", "z", "z", "z", "m", "b", "b", "a"}));
}

TEST(RowSort, WithoutOutputColumnsItCounts) {
  const auto sort = Sorted("sort keys=i64 limit=700", NumberBatches(KeysOf(Pattern::kRandom, 1000), 300));
  OutputBatch out({}, 0, nullptr);
  SortReader reader(sort);
  const auto more = reader.Next(&out);
  ASSERT_TRUE(more.ok()) << more.status();
  EXPECT_FALSE(*more);
  EXPECT_EQ(out.num_rows(), 700u);
}

TEST(RowSort, RowsComeOutByBatchesOfAnySize) {
  const std::vector<int64_t> keys = KeysOf(Pattern::kRandom, 1500);
  const auto sort = Sorted(kStable, NumberBatches(keys, 100));
  EXPECT_EQ(NumberRowsOf(sort, 1), StablySorted(keys));
  for (const uint64_t capacity : {7, 511, 512, 513, 100000})
    EXPECT_EQ(NumberRowsOf(Sorted(kStable, NumberBatches(keys, 100)), capacity), StablySorted(keys));
}

TEST(RowSort, EncodedBatchesOfAnySizeGiveTheSame) {
  const std::vector<int64_t> keys = KeysOf(Pattern::kFewKeys, 5000);
  for (const uint32_t batch_rows : {1u, 7u, 4096u}) {
    SortTuning tuning;
    tuning.batch_rows = batch_rows;
    EXPECT_EQ(SortedNumbers(kStable, keys, tuning, 777), StablySorted(keys)) << batch_rows;
    EXPECT_EQ(SortedNumbers(std::string(kStable) + " limit=60", keys, tuning, 777), StablySorted(keys, 60))
        << batch_rows;
  }
}

// ---- stable: by row ids, whatever the order of arrival ----

TEST(RowSort, StableGoesByRowIds) {
  const std::vector<int64_t> keys = KeysOf(Pattern::kFewKeys, 6000);
  for (const char* limit : {"", " limit=1000"}) {
    std::vector<BatchView> batches = NumberBatches(keys, 250);
    std::reverse(batches.begin(), batches.end());
    const auto sort = Sorted(std::string(kStable) + limit, batches);
    EXPECT_EQ(NumberRowsOf(sort), StablySorted(keys, *limit == '\0' ? 0 : 1000));
  }
}

TEST(RowSort, StableAcrossAppendersWithInterleavedRowIds) {
  const std::vector<int64_t> keys = KeysOf(Pattern::kFewKeys, 9000);
  for (const uint64_t limit : {0, 1, 50, 4000}) {
    const auto sort = SortOf(std::string(kStable) + (limit != 0 ? " limit=" + std::to_string(limit) : ""));
    Appender one(sort), two(sort);
    const std::vector<BatchView> batches = NumberBatches(keys, 70);
    for (size_t i = 0; i < batches.size(); ++i)
      ASSERT_EQ((i % 2 == 0 ? one : two).Append(batches[i]), absl::OkStatus());
    ASSERT_EQ(two.Finish(), absl::OkStatus());
    ASSERT_EQ(one.Finish(), absl::OkStatus());
    ASSERT_EQ(sort->Finalise(), absl::OkStatus());
    EXPECT_EQ(NumberRowsOf(sort), StablySorted(keys, limit)) << limit;
    EXPECT_EQ(sort->stats().input_rows, keys.size());
  }
}

// ---- limits ----

TEST(RowSort, LimitsKeepTheFirstRows) {
  for (const Pattern pattern : test::kPatterns) {
    const std::vector<int64_t> keys = KeysOf(pattern, 12000);
    for (const uint64_t limit : {1, 2, 100, 1023, 1024, 5000, 11999, 12000, 12001, 1 << 30}) {
      for (const uint64_t top_rows : {uint64_t{0}, SortOptions().top_rows}) {
        SortTuning tuning;
        tuning.options.top_rows = top_rows;
        EXPECT_EQ(SortedNumbers(std::string(kStable) + " limit=" + std::to_string(limit), keys, tuning, 500),
                  StablySorted(keys, limit))
            << static_cast<int>(pattern) << " " << limit << " " << top_rows;
      }
    }
  }
}

TEST(RowSort, RowsThatCannotComeOutAreDropped) {
  const std::vector<int64_t> keys = KeysOf(Pattern::kRandom, 50000);
  const auto sort = Sorted(std::string(kStable) + " limit=10", NumberBatches(keys, 1000));
  EXPECT_EQ(sort->stats().input_rows, 50000u);
  EXPECT_EQ(sort->stats().num_rows, 10u);
  EXPECT_GT(sort->stats().dropped_rows, 40000u);
  EXPECT_EQ(NumberRowsOf(sort), StablySorted(keys, 10));
}

// The bytes of strings may be freed as soon as a batch has been appended: rows that are kept are copied.
TEST(RowSort, ALimitKeepsNothingOfABatch) {
  const std::vector<TextRow> rows = TextRows(8000);
  const auto sort = SortOf("sort keys=binary:out,i64 payload=rowid limit=300 stable");
  for (size_t begin = 0; begin < rows.size(); begin += 500) {
    BatchView batch = TextBatch(
        {rows.begin() + static_cast<ptrdiff_t>(begin), rows.begin() + static_cast<ptrdiff_t>(begin + 500)}, kVar32);
    const std::weak_ptr<const void> owner = batch.owner;
    ASSERT_EQ(sort->Append(batch), absl::OkStatus());
    batch = {};
    EXPECT_TRUE(owner.expired());
  }
  ASSERT_EQ(sort->Finalise(), absl::OkStatus());
  Lines expected = TextOrder(rows, false);
  expected.resize(300);
  EXPECT_EQ(SortedLines(sort), expected);
}

// The bound of another appender may be a string that continues beyond its words, which equal those of a shorter string
// that precedes it.
TEST(RowSort, ABoundFromAnotherAppenderMayBeLonger) {
  for (const char* stable : {"", " stable"}) {
    const auto sort = SortOf(std::string("sort keys=binary:out limit=5") + stable);
    Appender one(sort), two(sort);
    const std::string stem(kSortPrefixBytes, 'k');
    for (int batch = 0; batch < 3; ++batch)
      ASSERT_EQ(one.Append(Rows(1000, {StringColumn(kVar32, std::vector<std::string>(1000, stem + "longer"))})),
                absl::OkStatus());
    ASSERT_EQ(two.Append(Rows(3, {StringColumn(kVar32, std::vector<std::string>(3, stem))})), absl::OkStatus());
    ASSERT_EQ(one.Finish(), absl::OkStatus());
    ASSERT_EQ(two.Finish(), absl::OkStatus());
    ASSERT_EQ(sort->Finalise(), absl::OkStatus());
    EXPECT_EQ(SortedLines(sort), (Lines{stem, stem, stem, stem + "longer", stem + "longer"}));
  }
}

// ---- thresholds ----

Lines ThresholdOf(const RowSort& sort) {
  OutputBatch row(SortKeyTypes(sort.descriptor().spec()), 1, nullptr);
  const absl::StatusOr<bool> exists = sort.GetThreshold(&row);
  EXPECT_TRUE(exists.ok()) << exists.status();
  Lines lines;
  test::AddLines(row, &lines);
  EXPECT_EQ(lines.size(), exists.ok() && *exists ? 1u : 0u);
  return lines;
}

TEST(RowSort, AThresholdIsARowThatLaterOnesMustComeBefore) {
  const std::vector<int64_t> keys = KeysOf(Pattern::kRandom, 30000);
  const auto sort = SortOf(std::string(kStable) + " limit=20");
  EXPECT_EQ(ThresholdOf(*sort), Lines());
  size_t num_seen = 0, num_known = 0;
  for (const BatchView& batch : NumberBatches(keys, 1000)) {
    ASSERT_EQ(sort->Append(batch), absl::OkStatus());
    num_seen += 1000;
    const Lines threshold = ThresholdOf(*sort);
    if (threshold.empty()) continue;
    ++num_known;
    const auto bound = std::stoll(threshold[0]);
    const auto before = std::count_if(keys.begin(), keys.begin() + static_cast<ptrdiff_t>(num_seen),
                                      [&](int64_t k) { return k <= bound; });
    EXPECT_GE(before, 20);
  }
  EXPECT_GT(num_known, 20u);
  ASSERT_EQ(sort->Finalise(), absl::OkStatus());
  EXPECT_EQ(NumberRowsOf(sort), StablySorted(keys, 20));
}

TEST(RowSort, RowsAfterAThresholdThatWasSetNeedNotComeOut) {
  const std::vector<int64_t> keys = KeysOf(Pattern::kSorted, 5000);  // 3 * i - 1000
  const auto sort = SortOf(std::string(kStable) + " limit=100");
  ASSERT_EQ(sort->SetThreshold(Rows(1, {NumberColumn<int64_t>({-1000 + 3 * 9})})), absl::OkStatus());
  for (const BatchView& batch : NumberBatches(keys, 1000)) ASSERT_EQ(sort->Append(batch), absl::OkStatus());
  ASSERT_EQ(sort->Finalise(), absl::OkStatus());
  NumberRows rows = NumberRowsOf(sort);
  ASSERT_GE(rows.size(), 10u);  // including a row with an equal key
  EXPECT_GT(sort->stats().dropped_rows, 0u);
  rows.resize(10);
  EXPECT_EQ(rows, StablySorted(keys, 10));
}

TEST(RowSort, ThresholdsOfEveryKindOfKey) {
  const auto text =
      WithNulls(StringColumn(kVar32, {"a string of more than sixteen bytes", "?", "b"}), {true, false, true});
  const auto number = NumberColumn<double>({-0.0, 5, 1e300});
  const auto flag = BoolColumn({true, false, true});
  const auto sort = SortOf("sort keys=utf8:nullable:desc,f64,bool limit=1500");
  ASSERT_EQ(sort->SetThreshold(Rows(1, {text, number, flag})), absl::OkStatus());
  for (int batch = 0; batch < 3000; ++batch) ASSERT_EQ(sort->Append(Rows(3, {text, number, flag})), absl::OkStatus());
  EXPECT_EQ(ThresholdOf(*sort), (Lines{"b|1e+300|true"}));
  ASSERT_EQ(sort->Finalise(), absl::OkStatus());
  EXPECT_EQ(sort->stats().num_rows, 1500u);
}

// In the form in which it was set, and from the sort's own memory.
TEST(RowSort, AThresholdThatWasSetIsToldAgain) {
  const std::string many = "a string of more than sixteen bytes  ";
  for (const char* key :
       {"utf8(utf8mb4_general_ci):nullable:desc:out", "utf8(utf8mb4_bin):nullable", "utf8:nullable"}) {
    for (const SortMethod method : {SortMethod::kRadix, SortMethod::kComparison}) {
      SortTuning tuning;
      tuning.method = method;
      const auto sort = SortOf("sort keys=" + std::string(key) + ",f64,i32:out payload=utf8,rowid limit=20", tuning);
      {
        const BatchView row = Rows(2, {WithNulls(StringColumn(kVar32, {"?", many}), {false, true}),
                                       NumberColumn<double>({1, -0.0}), NumberColumn<int32_t>({1, -7})});
        const uint32_t second[] = {1};
        BatchView threshold = row;
        threshold.num_rows = 1;
        threshold.selection = second;
        ASSERT_EQ(sort->SetThreshold(threshold), absl::OkStatus());
      }
      EXPECT_EQ(ThresholdOf(*sort), (Lines{many + "|-0|-7"}));
      const auto null = SortOf("sort keys=" + std::string(key) + ",f64,i32:out payload=utf8,rowid limit=20", tuning);
      ASSERT_EQ(null->SetThreshold(Rows(1, {WithNulls(StringColumn(kVar32, {"?"}), {false}),
                                            NumberColumn<double>({2.5}), NumberColumn<int32_t>({3})})),
                absl::OkStatus());
      EXPECT_EQ(ThresholdOf(*null), (Lines{"null|2.5|3"}));
    }
  }
}

// ---- window functions ----

// By partition and key, from the definitions.
Lines WindowLines(std::vector<std::pair<int64_t, int64_t>> rows, uint32_t partition) {
  std::sort(rows.begin(), rows.end());
  Lines lines;
  uint64_t row_number = 0, rank = 0, dense_rank = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const bool same_partition = i > 0 && (partition == 0 || (rows[i].first == rows[i - 1].first &&
                                                             (partition == 1 || rows[i].second == rows[i - 1].second)));
    if (!same_partition) row_number = rank = dense_rank = 0;
    ++row_number;
    if (!same_partition || rows[i] != rows[i - 1]) {
      rank = row_number;
      ++dense_rank;
    }
    lines.push_back(std::to_string(rows[i].first) + "|" + std::to_string(rows[i].second) + "|" +
                    std::to_string(row_number) + "|" + std::to_string(rank) + "|" + std::to_string(dense_rank));
  }
  return lines;
}

TEST(RowSort, WindowFunctionsNumberRowsWithinPartitions) {
  for (const size_t n : {0, 1, 2, 30, 511, 512, 513, 3000, 20000}) {
    const std::vector<int64_t> first = KeysOf(Pattern::kFewKeys, n),
                               second = KeysOf(n % 2 == 0 ? Pattern::kFewKeys : Pattern::kRandom, n, 2);
    std::vector<std::pair<int64_t, int64_t>> rows;
    for (size_t i = 0; i < n; ++i) rows.emplace_back(first[i], second[i]);
    for (uint32_t partition = 0; partition <= 2; ++partition) {
      for (const uint64_t limit : {uint64_t{0}, uint64_t{n / 2 + 1}}) {
        const std::string spec = "sort keys=i64:out,i64:out" + (limit != 0 ? " limit=" + std::to_string(limit) : "") +
                                 (partition != 0 ? " partition=" + std::to_string(partition) : "") +
                                 " window=row_number,rank,dense_rank";
        Lines expected = WindowLines(rows, partition);
        if (limit != 0) expected.resize(std::min<size_t>(expected.size(), limit));
        for (const uint32_t words : {1u, 2u, 4u}) {
          SortTuning tuning;
          tuning.options.prefix_words = words;
          EXPECT_EQ(SortedLines(Sorted(spec, {Rows(n, {NumberColumn(first), NumberColumn(second)})}, tuning)), expected)
              << n << " " << spec << " " << words;
        }
      }
    }
  }
}

TEST(RowSort, WindowFunctionsOverLongStrings) {
  const std::string stem = "all of these have more than sixteen bytes: ";
  const auto texts = StringColumn(kVar32, {stem + "b", stem + "a", stem + "b", stem, stem + "a", stem + "b"});
  const auto numbers = NumberColumn<int64_t>({2, 1, 1, 7, 1, 2});
  EXPECT_EQ(
      SortedLines("sort keys=utf8,i64:out partition=1 window=rank,dense_rank,row_number", {Rows(6, {texts, numbers})}),
      (Lines{"7|1|1|1", "1|1|1|1", "1|1|1|2", "1|1|1|1", "2|2|2|2", "2|2|2|3"}));
}

}  // namespace
}  // namespace quern
