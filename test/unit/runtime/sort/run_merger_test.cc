// SPDX-License-Identifier: Apache-2.0
// Merged runs equal a sort of all their rows, stable by run. The reference is a stable sort of structs; tests cover
// every way of selecting rows, batches that are freed as soon as permitted, outputs of any size, and what callers can
// get wrong.
#include "runtime/sort/run_merger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir-templates/generic/generic_sort.h"
#include "runtime/collation/collation.h"
#include "runtime/sort/row_sort.h"
#include "runtime/spec/spec.h"
#include "test/unit/runtime/collation/collated_texts.h"
#include "test/unit/runtime/sort/sort_rows.h"
#include "test/unit/seed.h"

namespace quern {
namespace {

using test::ColumnPtr;
using test::Lines;
using test::Message;
using test::NumberColumn;
using test::PrintedRandom;
using test::StringColumn;
using test::WithNulls;

std::shared_ptr<SortDescriptor> ShapeOf(const std::string& text, SortMethod method = SortMethod::kRadix) {
  const auto spec = ParseSpecOf<SortSpec>(text);
  EXPECT_TRUE(spec.ok()) << spec.status();
  return std::make_shared<SortDescriptor>(*spec, method);
}

RunMerger Merger(const std::string& spec, uint32_t num_runs, std::shared_ptr<MemoryBudget> budget = nullptr) {
  return {ShapeOf(spec), GenericSortKernel(), nullptr, std::move(budget), num_runs};
}

OutputBatch BatchFor(const std::string& spec, uint64_t capacity) {
  return {SortOutputTypes(*ParseSpecOf<SortSpec>(spec)), capacity, nullptr};
}

struct Row {
  std::optional<int32_t> number;
  std::optional<std::string> text;
  int64_t payload;
};
using Rows = std::vector<Row>;

// The order of the two keys in the spec.
struct Order {
  bool desc[2] = {}, nulls_first[2] = {};
  bool text_first = false;
  Collation collation = kCollationBinary;

  static std::string Flags(bool desc, bool nulls_first) {
    return std::string(desc ? ":desc" : "") + (nulls_first ? ":nulls_first" : "") + ":nullable:out";
  }
  std::string Spec() const {
    const std::string number = "i32" + Flags(desc[0], nulls_first[0]);
    const std::string text = "utf8(" + std::string(RowOf(collation).text) + ")" + Flags(desc[1], nulls_first[1]);
    return "sort keys=" + (text_first ? text + "," + number : number + "," + text) + " payload=i64";
  }
  template <class T, class Compare>
  static int CompareKey(const std::optional<T>& a, const std::optional<T>& b, bool desc, bool nulls_first,
                        Compare compare) {
    if (!a || !b) return a.has_value() == b.has_value() ? 0 : a.has_value() == nulls_first ? 1 : -1;
    return desc ? compare(*b, *a) : compare(*a, *b);
  }
  // Whether a precedes b.
  bool operator()(const Row& a, const Row& b) const {
    const int number =
        CompareKey(a.number, b.number, desc[0], nulls_first[0], [](int32_t x, int32_t y) { return (x > y) - (x < y); });
    const int text =
        CompareKey(a.text, b.text, desc[1], nulls_first[1], [this](const std::string& x, const std::string& y) {
          return CompareStrings(test::BytesOfText(x), test::BytesOfText(y), RuleOf(collation));
        });
    return (text_first ? (text != 0 ? text : number) : (number != 0 ? number : text)) < 0;
  }
  std::string Line(const Row& row) const {
    const std::string number = row.number ? std::to_string(*row.number) : "null", text = row.text.value_or("null");
    return (text_first ? text + "|" + number : number + "|" + text) + "|" + std::to_string(row.payload);
  }
};

// A stable sort. (std::stable_sort causes a warning here: GCC 12's library uses a function that it has deprecated.)
void Sort(Rows* rows, const Order& order) {
  std::list<Row> list(rows->begin(), rows->end());
  list.sort(order);
  rows->assign(list.begin(), list.end());
}

// Strings that share 16 bytes and more, end with zeros or spaces, or are short; and some for which collations differ.
std::string SomeText(std::mt19937_64* random) {
  static const std::string kTexts[] = {"",
                                       "a",
                                       "ab",
                                       "abcdefghijklmnop",
                                       "abcdefghijklmnopq",
                                       "abcdefghijklmnoprrrrrrrrrrrrrrrrrrrrrrrrrrrrr",
                                       "abcdefghijklmnoprrrrrrrrrrrrrrrrrrrrrrrrrrrrs",
                                       "abcdefghijklmno"};
  static const std::string kEnds[] = {"", "", " ", "  ", std::string(1, '\0'), std::string(2, '\0')};
  if ((*random)() % 4 == 0) return test::RandomText(test::TextKind::kMixed, random);
  return kTexts[(*random)() % 8] + kEnds[(*random)() % 6];
}

std::vector<Rows> SomeRuns(uint32_t num_runs, uint64_t num_rows, const Order& order, std::mt19937_64* random) {
  std::vector<Rows> runs(num_runs);
  for (uint64_t i = 0; i < num_rows; ++i) {
    Row row = {static_cast<int32_t>((*random)() % 5) - 2, SomeText(random), static_cast<int64_t>(i)};
    if ((*random)() % 8 == 0) row.number.reset();
    if ((*random)() % 8 == 0) row.text.reset();
    runs[(*random)() % num_runs].push_back(row);
  }
  for (Rows& run : runs) Sort(&run, order);
  return runs;
}

Lines Sorted(const std::vector<Rows>& runs, const Order& order) {
  Rows all;
  for (const Rows& run : runs) all.insert(all.end(), run.begin(), run.end());
  Sort(&all, order);
  Lines lines;
  for (const Row& row : all) lines.push_back(order.Line(row));
  return lines;
}

// Provides a run batch by batch and frees each batch when the run needs input again.
class Feeder {
 public:
  Feeder(const Rows* rows, bool text_first) : rows_(rows), text_first_(text_first) {}

  // Provides up to n further rows; returns false at the end.
  bool Feed(RunMerger* merger, uint32_t run, size_t n) {
    keys_.clear();
    payload_.clear();
    if (next_ == rows_->size()) {
      EXPECT_EQ(merger->End(run), absl::OkStatus());
      return false;
    }
    n = std::min(n, rows_->size() - next_);
    std::vector<int32_t> numbers;
    std::vector<std::string> texts;
    std::vector<int64_t> payload;
    std::vector<bool> has_number, has_text;
    for (const Row* row = rows_->data() + next_; row < rows_->data() + next_ + n; ++row) {
      numbers.push_back(row->number.value_or(77));
      texts.push_back(row->text.value_or("a null's"));
      payload.push_back(row->payload);
      has_number.push_back(row->number.has_value());
      has_text.push_back(row->text.has_value());
    }
    next_ += n;
    keys_ = {WithNulls(NumberColumn(numbers), has_number), WithNulls(StringColumn(kVar32, texts), has_text)};
    if (text_first_) std::swap(keys_[0], keys_[1]);
    payload_ = {NumberColumn(payload)};
    BatchView batch = test::Rows(n, keys_, payload_);
    batch.owner.reset();
    EXPECT_EQ(merger->Input(run, batch), absl::OkStatus());
    return true;
  }

 private:
  const Rows* rows_;
  bool text_first_;
  size_t next_ = 0;
  std::vector<ColumnPtr> keys_, payload_;
};

struct MergeCase {
  uint64_t capacity = 1000;
  uint64_t max_batch = 100;  // in rows
  bool counts = false;
  SortMethod method = SortMethod::kRadix;
  uint64_t limit = 0;
};

Lines Merge(const std::vector<Rows>& runs, const Order& order, const MergeCase& how, std::mt19937_64* random) {
  const std::string spec = order.Spec() + (how.limit == 0 ? "" : " limit=" + std::to_string(how.limit));
  RunMerger merger(ShapeOf(spec, how.method), GenericSortKernel(), nullptr, nullptr,
                   static_cast<uint32_t>(runs.size()));
  std::vector<Feeder> feeders;
  for (const Rows& run : runs) feeders.emplace_back(&run, order.text_first);
  OutputBatch out(how.counts ? std::vector<ColumnType>() : SortOutputTypes(*ParseSpecOf<SortSpec>(spec)), how.capacity,
                  nullptr);
  Lines lines;
  for (;;) {
    const auto next = merger.Next(&out);
    EXPECT_TRUE(next.ok()) << next.status();
    if (!next.ok()) break;
    if (how.counts) lines.resize(lines.size() + out.num_rows());
    else EXPECT_LE(out.num_rows(), how.capacity);
    test::AddLines(out, &lines);
    if (how.counts) lines.resize(lines.size() - out.num_rows());
    if (*next == MergeState::kDone) break;
    EXPECT_TRUE(*next == MergeState::kNeedsInput || out.num_rows() > 0);
    if (*next == MergeState::kRows) continue;
    feeders[merger.needed_run()].Feed(&merger, merger.needed_run(), (*random)() % (how.max_batch + 1));
  }
  return lines;
}

Order SomeOrder(std::mt19937_64* random) {
  Order order;
  for (const int key : {0, 1}) {
    order.desc[key] = (*random)() % 2 == 0;
    order.nulls_first[key] = (*random)() % 2 == 0;
  }
  order.text_first = (*random)() % 2 == 0;
  order.collation = AllCollations()[(*random)() % 2 == 0 ? 0 : (*random)() % AllCollations().size()].id;
  return order;
}

// ---- merging is sorting ----

TEST(RunMerger, MergedRunsAreSortedRows) {
  auto random = PrintedRandom();
  for (const uint32_t num_runs : {1u, 2u, 3u, 4u, 5u, 7u, 33u}) {
    for (int round = 0; round < 6; ++round) {
      const Order order = SomeOrder(&random);
      SCOPED_TRACE(order.Spec() + ", " + std::to_string(num_runs) + " runs");
      const auto runs = SomeRuns(num_runs, 600, order, &random);
      const Lines expected = Sorted(runs, order);
      EXPECT_EQ(Merge(runs, order, {}, &random), expected);
      EXPECT_EQ(Merge(runs, order, {.capacity = 1, .max_batch = 3}, &random), expected);
      EXPECT_EQ(Merge(runs, order, {.capacity = 17, .method = SortMethod::kComparison}, &random), expected);
    }
  }
}

TEST(RunMerger, WindowsFillAgainFromTheSameBatch) {
  auto random = PrintedRandom();
  for (const uint32_t num_runs : {1u, 2u, 3u, 130u}) {
    const Order order = SomeOrder(&random);
    SCOPED_TRACE(order.Spec() + ", " + std::to_string(num_runs) + " runs");
    const auto runs = SomeRuns(num_runs, num_runs > 3 ? 80000 : 20000, order, &random);
    EXPECT_EQ(Merge(runs, order, {.capacity = 10000, .max_batch = 15000}, &random), Sorted(runs, order));
  }
}

TEST(RunMerger, RunsMayBeEmptyOrEndEarly) {
  auto random = PrintedRandom();
  const Order order;
  EXPECT_EQ(Merge({{}}, order, {}, &random), Lines());
  EXPECT_EQ(Merge({{}, {}, {}, {}}, order, {}, &random), Lines());
  std::vector<Rows> runs = SomeRuns(6, 300, order, &random);
  runs[0].clear();
  runs[4].clear();
  runs[2].resize(1);
  EXPECT_EQ(Merge(runs, order, {.capacity = 5, .max_batch = 40}, &random), Sorted(runs, order));
}

// A value with all bits set is not taken for the end of a run.
TEST(RunMerger, TheGreatestWordIsAValue) {
  for (const uint32_t num_runs : {2u, 3u, 4u}) {
    RunMerger merger = Merger("sort keys=u64:out payload=u64", num_runs);
    const auto keys = NumberColumn<uint64_t>({5, UINT64_MAX, UINT64_MAX});
    const auto payload = NumberColumn<uint64_t>({0, 1, 2});
    ASSERT_EQ(merger.End(0), absl::OkStatus());
    for (uint32_t run = 1; run < num_runs; ++run)
      ASSERT_EQ(merger.Input(run, test::Rows(3, {keys}, {payload})), absl::OkStatus());
    OutputBatch out = BatchFor("sort keys=u64:out payload=u64", 100);
    Lines lines;
    for (;;) {
      const auto next = merger.Next(&out);
      ASSERT_TRUE(next.ok()) << next.status();
      test::AddLines(out, &lines);
      if (*next == MergeState::kDone) break;
      ASSERT_EQ(merger.End(merger.needed_run()), absl::OkStatus());
    }
    Lines expected(num_runs - 1, "5|0");
    for (uint32_t run = 1; run < num_runs; ++run)
      expected.insert(expected.end(), {"18446744073709551615|1", "18446744073709551615|2"});
    EXPECT_EQ(lines, expected);
  }
}

TEST(RunMerger, ALimitCountsMergedRows) {
  auto random = PrintedRandom();
  for (const uint32_t num_runs : {1u, 2u, 5u}) {
    const Order order = SomeOrder(&random);
    const auto runs = SomeRuns(num_runs, 300, order, &random);
    for (const uint64_t limit : {1, 7, 100, 299, 300, 1000}) {
      Lines expected = Sorted(runs, order);
      expected.resize(std::min<size_t>(expected.size(), limit));
      EXPECT_EQ(Merge(runs, order, {.capacity = 50, .limit = limit}, &random), expected)
          << order.Spec() << " limit=" << limit;
    }
  }
}

TEST(RunMerger, WithoutOutputColumnsItCounts) {
  auto random = PrintedRandom();
  const Order order;
  const auto runs = SomeRuns(3, 500, order, &random);
  EXPECT_EQ(Merge(runs, order, {.capacity = 1, .counts = true}, &random).size(), 500u);
  EXPECT_EQ(Merge(runs, order, {.counts = true, .limit = 44}, &random).size(), 44u);
}

// ---- merging sorts of parts is sorting ----

// A result batch as an input batch.
BatchView ViewOf(OutputBatch* out, size_t num_keys) {
  BatchView batch;
  batch.num_rows = out->num_rows();
  for (size_t c = 0; c < out->num_columns(); ++c) {
    QuernOutColumn* from = &out->columns()[c];
    const QuernColumn column = {
        from->validity, from->values != nullptr ? from->values : from->bytes, from->offsets, &from->bytes, nullptr, 0};
    (c < num_keys ? batch.keys : batch.payload).push_back(column);
  }
  return batch;
}

// Sorts each part of the rows on its own and merges the results.
Lines SortedInParts(const std::string& spec, const BatchView& rows, uint32_t num_parts) {
  std::vector<std::shared_ptr<RowSort>> sorts;
  std::vector<std::unique_ptr<SortReader>> readers;
  std::vector<std::unique_ptr<OutputBatch>> batches;
  std::vector<bool> has_more(num_parts, true);
  std::vector<uint32_t> numbers(rows.num_rows);
  for (uint32_t i = 0; i < rows.num_rows; ++i) numbers[i] = i;
  RunMerger merger = Merger(spec, num_parts);
  for (uint64_t part = 0; part < num_parts; ++part) {
    sorts.push_back(test::SortOf(spec));
    const uint64_t begin = rows.num_rows * part / num_parts, end = rows.num_rows * (part + 1) / num_parts;
    BatchView some = rows;
    some.selection = numbers.data() + begin;
    some.num_rows = end - begin;
    EXPECT_EQ(sorts.back()->Append(some), absl::OkStatus());
    EXPECT_EQ(sorts.back()->Finalise(), absl::OkStatus());
    readers.push_back(std::make_unique<SortReader>(sorts.back()));
    batches.push_back(
        std::make_unique<OutputBatch>(SortOutputTypes(*ParseSpecOf<SortSpec>(spec)), 100 + part, nullptr));
  }
  OutputBatch out = BatchFor(spec, 170);
  Lines lines;
  for (;;) {
    const auto next = merger.Next(&out);
    EXPECT_TRUE(next.ok()) << next.status();
    if (!next.ok()) break;
    test::AddLines(out, &lines);
    if (*next == MergeState::kDone) break;
    if (*next == MergeState::kRows) continue;
    const uint32_t run = merger.needed_run();
    if (has_more[run]) {
      has_more[run] = readers[run]->Next(batches[run].get()).value();
      EXPECT_EQ(merger.Input(run, ViewOf(batches[run].get(), rows.keys.size())), absl::OkStatus());
    } else {
      EXPECT_EQ(merger.End(run), absl::OkStatus());
    }
  }
  return lines;
}

TEST(RunMerger, MergedSortsOfPartsAreOneStableSort) {
  auto random = PrintedRandom();
  constexpr uint32_t kRows = 1500;
  std::vector<int64_t> numbers(kRows);
  for (uint32_t i = 0; i < kRows; ++i) numbers[i] = i;
  for (int round = 0; round < 40; ++round) {
    std::string keys;
    std::vector<ColumnPtr> columns;
    for (uint64_t k = 0; k < 1 + random() % 3; ++k) {
      const TypeRow& row = AllTypes()[random() % (AllTypes().size() - 1)];
      ColumnType type = test::TypeOf(row.id);
      type.width_bytes = row.storage == kFixed ? 1 + random() % 24 : 0;
      columns.push_back(test::RandomColumn(type, kRows, &random));
      keys +=
          (k == 0 ? "" : ",") + PrintType(type) + (IsVariable(row.storage) && random() % 2 == 0 ? "(utf8mb4_bin)" : "");
      keys += std::string(random() % 2 == 0 ? ":desc" : "") + (random() % 2 == 0 ? ":nulls_first" : "") + ":out";
      if (random() % 2 == 0) continue;
      std::vector<bool> valid(kRows);
      for (uint32_t i = 0; i < kRows; ++i) valid[i] = random() % 5 != 0;
      columns.back() = WithNulls(columns.back(), valid);
      keys += ":nullable";
    }
    const std::string spec = "sort keys=" + keys + " payload=i64 stable" + (round % 4 == 0 ? " limit=300" : "");
    SCOPED_TRACE(spec);
    const BatchView rows = test::Rows(kRows, columns, {NumberColumn(numbers)});
    const Lines expected = test::SortedLines(spec, {rows});
    for (const uint32_t num_parts : {1u, 2u, 6u}) EXPECT_EQ(SortedInParts(spec, rows, num_parts), expected);
  }
}

// ---- the protocol ----

TEST(RunMerger, RowsAreOutBeforeTheirRunNeedsInput) {
  const std::string spec = "sort keys=i32:out";
  RunMerger merger = Merger(spec, 2);
  OutputBatch out = BatchFor(spec, 2);
  EXPECT_EQ(merger.Next(&out).value(), MergeState::kNeedsInput);
  EXPECT_EQ(merger.needed_run(), 0u);
  ASSERT_EQ(merger.Input(0, test::Rows(3, {NumberColumn<int32_t>({1, 2, 3})})), absl::OkStatus());
  EXPECT_EQ(merger.Next(&out).value(), MergeState::kNeedsInput);
  EXPECT_EQ(merger.needed_run(), 1u);
  ASSERT_EQ(merger.Input(1, test::Rows(2, {NumberColumn<int32_t>({3, 4})})), absl::OkStatus());
  Lines lines;
  EXPECT_EQ(merger.Next(&out).value(), MergeState::kRows);
  test::AddLines(out, &lines);
  EXPECT_EQ(lines, (Lines{"1", "2"}));
  EXPECT_EQ(merger.Next(&out).value(), MergeState::kNeedsInput);
  EXPECT_EQ(merger.needed_run(), 0u);
  test::AddLines(out, &lines);
  EXPECT_EQ(lines, (Lines{"1", "2", "3"}));
  EXPECT_EQ(merger.Next(&out).value(), MergeState::kNeedsInput);
  EXPECT_EQ(out.num_rows(), 0u);
  ASSERT_EQ(merger.Input(0, BatchView()), absl::OkStatus());
  EXPECT_EQ(merger.Next(&out).value(), MergeState::kNeedsInput);
  EXPECT_EQ(merger.needed_run(), 0u);
  ASSERT_EQ(merger.End(0), absl::OkStatus());
  EXPECT_EQ(merger.Next(&out).value(), MergeState::kNeedsInput);
  EXPECT_EQ(merger.needed_run(), 1u);
  ASSERT_EQ(merger.End(1), absl::OkStatus());
  EXPECT_EQ(merger.Next(&out).value(), MergeState::kDone);
  EXPECT_EQ(out.num_rows(), 0u);
  EXPECT_EQ(merger.Next(&out).value(), MergeState::kDone);
}

TEST(RunMerger, RowIdsCountPerRunOrAreTheBatch) {
  const std::string spec = "sort keys=i32:out payload=rowid,rowid";
  RunMerger merger = Merger(spec, 2);
  const ColumnPtr none = NumberColumn<int32_t>({});
  BatchView numbered = test::Rows(2, {NumberColumn<int32_t>({0, 9, 5, 9})}, {none, none});
  numbered.first_row_id = 500;
  const std::vector<uint32_t> selection = {0, 2};
  numbered.selection = selection.data();
  ASSERT_EQ(merger.Input(0, numbered), absl::OkStatus());
  ASSERT_EQ(merger.Input(1, test::Rows(1, {NumberColumn<int32_t>({1})}, {none, none})), absl::OkStatus());
  OutputBatch out = BatchFor(spec, 10);
  Lines lines;
  EXPECT_EQ(merger.Next(&out).value(), MergeState::kNeedsInput);
  test::AddLines(out, &lines);
  ASSERT_EQ(merger.needed_run(), 1u);
  ASSERT_EQ(merger.Input(1, test::Rows(2, {NumberColumn<int32_t>({4, 6})}, {none, none})), absl::OkStatus());
  EXPECT_EQ(merger.Next(&out).value(), MergeState::kNeedsInput);
  test::AddLines(out, &lines);
  ASSERT_EQ(merger.needed_run(), 0u);
  ASSERT_EQ(merger.End(0), absl::OkStatus());
  EXPECT_EQ(merger.Next(&out).value(), MergeState::kNeedsInput);
  test::AddLines(out, &lines);
  EXPECT_EQ(lines, (Lines{"0|500|500", "1|0|0", "4|1|1", "5|502|502", "6|2|2"}));
}

TEST(RunMerger, DictionariesMayDifferFromBatchToBatch) {
  const std::string spec = "sort keys=dictionary(u8,utf8):out payload=dictionary(u8,i64)";
  RunMerger merger = Merger(spec, 2);
  const std::string a = "a string of more than 16 bytes, a", b = "a string of more than 16 bytes, b", c = a + "c";
  const auto batch = [](const std::vector<std::string>& texts, const std::vector<int64_t>& numbers) {
    return test::Rows(2, {test::DictionaryColumn({1, 0}, StringColumn(kVar32, texts))},
                      {test::DictionaryColumn({0, 1}, NumberColumn(numbers))});
  };
  ASSERT_EQ(merger.Input(0, batch({b, a}, {10, 20})), absl::OkStatus());
  ASSERT_EQ(merger.Input(1, batch({c, a}, {30, 40})), absl::OkStatus());
  OutputBatch out = BatchFor(spec, 10);
  Lines lines;
  EXPECT_EQ(merger.Next(&out).value(), MergeState::kNeedsInput);
  test::AddLines(out, &lines);
  ASSERT_EQ(merger.needed_run(), 1u);
  ASSERT_EQ(merger.End(1), absl::OkStatus());
  EXPECT_EQ(merger.Next(&out).value(), MergeState::kNeedsInput);
  test::AddLines(out, &lines);
  EXPECT_EQ(lines, (Lines{a + "|10", a + "|30", c + "|40", b + "|20"}));
}

// ---- what callers can get wrong ----

TEST(RunMerger, NumbersOfRunsOutOfRangeAreRefused) {
  for (const uint32_t num_runs : {0u, 65537u}) {
    RunMerger merger = Merger("sort keys=i32:out", num_runs);
    OutputBatch out = BatchFor("sort keys=i32:out", 1);
    const std::string message = "number of runs out of range: " + std::to_string(num_runs) + "; accepted: 1 to 65536";
    EXPECT_EQ(Message(merger.Next(&out).status()), message);
    EXPECT_EQ(Message(merger.Input(0, BatchView())), message);
    EXPECT_EQ(Message(merger.End(0)), message);
  }
}

TEST(RunMerger, WindowFunctionsAreRefused) {
  const std::pair<const char*, const char*> functions[] = {
      {"row_number,rank", "row_number"}, {"rank", "rank"}, {"dense_rank", "dense_rank"}};
  for (const auto& [list, first] : functions) {
    const std::string spec = "sort keys=i32:out window=" + std::string(list);
    RunMerger merger = Merger(spec, 1);
    OutputBatch out = BatchFor(spec, 1);
    EXPECT_EQ(Message(merger.Next(&out).status()),
              "window function in a merge: " + std::string(first) + "; accepted: specs without window functions");
  }
}

TEST(RunMerger, InputThatIsNotAskedForIsRefused) {
  RunMerger merger = Merger("sort keys=i32:out", 3);
  const BatchView batch = test::Rows(2, {NumberColumn<int32_t>({1, 2})});
  EXPECT_EQ(Message(merger.Input(3, batch)), "unknown run: 3; accepted: 0 to 2");
  EXPECT_EQ(Message(merger.End(7)), "unknown run: 7; accepted: 0 to 2");
  ASSERT_EQ(merger.Input(1, batch), absl::OkStatus());
  EXPECT_EQ(Message(merger.Input(1, batch)),
            "input while the run has rows left: run 1; accepted: runs that need input");
  EXPECT_EQ(Message(merger.End(1)), "input while the run has rows left: run 1; accepted: runs that need input");
  ASSERT_EQ(merger.End(0), absl::OkStatus());
  EXPECT_EQ(Message(merger.Input(0, batch)), "input after the run's end: run 0; accepted: runs that need input");
  EXPECT_EQ(Message(merger.End(0)), "input after the run's end: run 0; accepted: runs that need input");
  ASSERT_EQ(merger.End(2), absl::OkStatus());
  // None of these calls changes anything.
  OutputBatch out = BatchFor("sort keys=i32:out", 10);
  EXPECT_EQ(merger.Next(&out).value(), MergeState::kNeedsInput);
  EXPECT_EQ(out.num_rows(), 2u);
}

// Rows that are picked but not yet output lie in the window of their run.
TEST(RunMerger, ARunWhoseRowsAreNotOutTakesNoInput) {
  QuernSortEntryPoints one_row = GenericSortKernel();
  one_row.reserve_output = [](QuernOutputArgs* args, const uint64_t* tuples, uint32_t) {
    return GenericSortKernel().reserve_output(args, tuples, 1);
  };
  RunMerger merger(ShapeOf("sort keys=i32 payload=utf8"), one_row, nullptr, nullptr, 1);
  const BatchView batch = test::Rows(2, {NumberColumn<int32_t>({1, 2})}, {StringColumn(kVar32, {"a", "b"})});
  ASSERT_EQ(merger.Input(0, batch), absl::OkStatus());
  OutputBatch out = BatchFor("sort keys=i32 payload=utf8", 10);
  EXPECT_EQ(merger.Next(&out).value(), MergeState::kRows);
  EXPECT_EQ(Message(merger.Input(0, batch)),
            "input while the run has rows left: run 0; accepted: runs that need input");
  Lines lines;
  test::AddLines(out, &lines);
  EXPECT_EQ(merger.Next(&out).value(), MergeState::kNeedsInput);
  test::AddLines(out, &lines);
  EXPECT_EQ(lines, (Lines{"a", "b"}));
}

TEST(RunMerger, BatchesAndOutputsOfOtherColumnsAreRefused) {
  RunMerger merger = Merger("sort keys=i32:out payload=i64", 1);
  const auto keys = NumberColumn<int32_t>({1});
  EXPECT_EQ(Message(merger.Input(0, test::Rows(1, {keys}))),
            "batch without the spec's columns: 1 keys, 0 payload columns; accepted: 1 and 1");
  EXPECT_EQ(Message(merger.Input(0, test::Rows(kNullRow, {keys}))),
            "batch too large: 4294967295 rows; accepted: below 4294967295");
  OutputBatch narrow = BatchFor("sort keys=i32:out", 1), full = BatchFor("sort keys=i32:out payload=i64", 0);
  EXPECT_EQ(Message(merger.Next(&narrow).status()), "output batch of other columns: 1; accepted: 2");
  EXPECT_EQ(Message(merger.Next(&full).status()), "output batch too small: 0 rows; accepted: 1 to 2147483647");
}

TEST(RunMerger, RowsOutOfOrderAreNamed) {
  RunMerger merger = Merger("sort keys=i32:desc:out", 2);
  BatchView batch = test::Rows(3, {NumberColumn<int32_t>({3, 1, 2})});
  batch.first_row_id = 70;
  EXPECT_EQ(Message(merger.Input(1, batch)),
            "run not in order: run 1, row 72; accepted: rows in the order of the spec's keys");
  OutputBatch out = BatchFor("sort keys=i32:out", 1);
  const std::string lost = "merge after a failed call: rows are missing; accepted: a new merger";
  EXPECT_EQ(Message(merger.Next(&out).status()), lost);
  EXPECT_EQ(Message(merger.Input(0, batch)), lost);
}

// Also if the strings that decide are in a batch that has been freed.
TEST(RunMerger, BatchesOutOfOrderAreNamed) {
  for (const char* key : {"utf8", "utf8:nullable", "utf8_view", "large_utf8", "fixed_binary(20)"}) {
    SCOPED_TRACE(key);
    RunMerger merger = Merger("sort keys=i32," + std::string(key), 1);
    OutputBatch out({}, 1, nullptr);
    const auto input = [&](const std::string& end) {
      const std::string text = "0123456789abcdef##" + end;
      const Storage storage = RowOf(ParseKey(key)->type.id).storage;
      const auto texts =
          storage == kFixed ? NumberColumn(std::vector<char>(text.begin(), text.end())) : StringColumn(storage, {text});
      const auto numbers = NumberColumn<int32_t>({5});
      BatchView batch = test::Rows(1, {numbers, texts});
      batch.owner.reset();
      const absl::Status status = merger.Input(0, batch);
      if (!status.ok()) return Message(status);
      EXPECT_EQ(merger.Next(&out).value(), MergeState::kNeedsInput);
      return std::string();
    };
    EXPECT_EQ(input("aa"), "");
    EXPECT_EQ(input("aa"), "");
    EXPECT_EQ(input("ab"), "");
    EXPECT_EQ(input("aa"), "run not in order: run 0, row 3; accepted: rows in the order of the spec's keys");
  }
}

TEST(RunMerger, MemoryIsTakenFromTheBudget) {
  const BatchView batch =
      test::Rows(1, {NumberColumn<int32_t>({1})}, {StringColumn(kVar32, {std::string(100000, 'x')})});
  const auto small = std::make_shared<MemoryBudget>(1000);
  RunMerger merger = Merger("sort keys=i32 payload=utf8", 2, small);
  EXPECT_EQ(merger.Input(0, batch).code(), absl::StatusCode::kResourceExhausted);
  OutputBatch out = BatchFor("sort keys=i32 payload=utf8", 1);
  EXPECT_EQ(Message(merger.Next(&out).status()), "merge after a failed call: rows are missing; accepted: a new merger");
  EXPECT_EQ(small->used_bytes(), 0u);

  const auto enough = std::make_shared<MemoryBudget>(10000000);
  {
    RunMerger other = Merger("sort keys=i32 payload=utf8", 1, enough);
    ASSERT_EQ(other.Input(0, batch), absl::OkStatus());
    EXPECT_GT(enough->used_bytes(), 0u);
    OutputBatch bounded(SortOutputTypes(*ParseSpecOf<SortSpec>("sort keys=i32 payload=utf8")), 1,
                        std::make_shared<MemoryBudget>(1000));
    EXPECT_EQ(Message(other.Next(&bounded).status()),
              "memory limit exceeded: result strings; accepted: a higher memory limit");
    EXPECT_EQ(Message(other.Next(&bounded).status()),
              "merge after a failed call: rows are missing; accepted: a new merger");
  }
  EXPECT_EQ(enough->used_bytes(), 0u);
}

}  // namespace
}  // namespace quern
