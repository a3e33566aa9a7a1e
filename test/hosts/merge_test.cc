// SPDX-License-Identifier: Apache-2.0
// Merges of sorted runs, raw and Arrow: order, ties, limits, who is asked when, life times, and every error with its
// full text.
#include <gtest/gtest.h>

#include <deque>

#include "test/hosts/arrow_results.h"
#include "test/hosts/sort_tables.h"

namespace quern_test {
namespace {

const char* const kLong = "a text of more than twelve bytes";

quern::Kernel KernelOf(const std::string& spec, quern::Engine engine = quern::Engine::kJit) {
  auto kernel = quern::Kernel::Compile(spec, engine);
  EXPECT_TRUE(kernel.ok()) << kernel.status().text();
  return *std::move(kernel);
}

quern::Merge NewMerge(const std::string& spec, uint32_t num_runs, const quern::MergeOptions& options = {},
                      quern::Engine engine = quern::Engine::kJit) {
  auto merge = quern::Merge::Create(KernelOf(spec, engine), num_runs, options);
  EXPECT_TRUE(merge.ok()) << merge.status().text();
  return *std::move(merge);
}

// Feeds a merge with the batches of each run as it asks for them, and answers all rows in their order.
Lines Merged(quern::Merge* merge, const std::vector<std::vector<Table>>& runs, std::string_view kinds,
             uint64_t batch_rows = 0) {
  std::vector<size_t> next(runs.size());
  Lines lines;
  for (;;) {
    auto rows = merge->Next();
    EXPECT_TRUE(rows.ok()) << rows.status().text();
    if (!rows.ok()) return lines;
    if (batch_rows != 0) {
      EXPECT_LE(rows->result.num_rows, batch_rows);
    }
    AddLines(rows->result, kinds, &lines);
    if (rows->state == QUERN_MERGE_DONE) return lines;
    if (rows->state == QUERN_MERGE_ROWS) continue;
    const uint32_t run = rows->run;
    const bool has_more = next.at(run) < runs[run].size();
    EXPECT_EQ((has_more ? merge->Input(run, runs[run][next[run]++].batch()) : merge->End(run)).text(), "");
  }
}

void ExpectMerged(const std::string& spec, const std::vector<std::vector<Table>>& runs, std::string_view kinds,
                  const Lines& expected) {
  for (const quern::Engine engine : {quern::Engine::kJit, quern::Engine::kGeneric}) {
    for (const uint64_t batch_rows : {0, 1, 3}) {
      SCOPED_TRACE(spec + ", engine " + std::to_string(static_cast<int>(engine)) + ", batch_rows " +
                   std::to_string(batch_rows));
      quern::Merge merge = NewMerge(spec, static_cast<uint32_t>(runs.size()), {.batch_rows = batch_rows}, engine);
      EXPECT_EQ(Merged(&merge, runs, kinds, batch_rows), expected);
    }
  }
}

// A batch of one column of numbers, which it owns.
class Numbers {
 public:
  Table Batch(std::vector<int32_t> values) {
    columns_.push_back(std::move(values));
    return {{ColumnOf(columns_.back())}, {}, columns_.back().size()};
  }

 private:
  std::deque<std::vector<int32_t>> columns_;
};

TEST(Merges, PutRunsTogether) {
  Numbers n;
  ExpectMerged("sort keys=i32:out", {{n.Batch({2, 5}), n.Batch({9})}, {n.Batch({3, 4}), n.Batch({6})}}, "i",
               {"2", "3", "4", "5", "6", "9"});
  ExpectMerged("sort keys=i32:desc:out", {{n.Batch({5, 5})}, {}, {n.Batch({7}), n.Batch({}), n.Batch({5, 1})}}, "i",
               {"7", "5", "5", "5", "1"});
  ExpectMerged("sort keys=i32:out", {{n.Batch({1, 2}), n.Batch({2})}}, "i", {"1", "2", "2"});
  ExpectMerged("sort keys=i32:out", {{}, {}}, "i", {});
}

TEST(Merges, TakeTheFirstRunFirstAtTies) {
  const std::vector<int32_t> key = {1, 2, 2};
  const StringVector<int32_t> first({"a", "b", kLong}), second({"c", kLong, "d"});
  const Table one = {{ColumnOf(key)}, {first.column()}, 3}, two = {{ColumnOf(key)}, {second.column()}, 3};
  ExpectMerged("sort keys=i32:out payload=utf8", {{one}, {two}}, "is",
               {"1|a", "1|c", "2|b", std::string("2|") + kLong, std::string("2|") + kLong, "2|d"});
}

TEST(Merges, CompareLongStrings) {
  const std::string text = kLong;
  const StringVector<int32_t> first({text + "1", text + "4"}), second({text + "2", text + "3"});
  ExpectMerged("sort keys=utf8:out", {{{{first.column()}, {}, 2}}, {{{second.column()}, {}, 2}}}, "s",
               {text + "1", text + "2", text + "3", text + "4"});
}

TEST(Merges, StopAtTheLimit) {
  Numbers n;
  const std::vector<std::vector<Table>> runs = {{n.Batch({2, 5}), n.Batch({9})}, {n.Batch({3, 4}), n.Batch({6})}};
  ExpectMerged("sort keys=i32:out limit=3", runs, "i", {"2", "3", "4"});
  ExpectMerged("sort keys=i32:out limit=100", runs, "i", {"2", "3", "4", "5", "6", "9"});
}

TEST(Merges, OfWhatSortsGaveOutAreTheSortOfAll) {
  const std::string spec = "sort keys=i64:out,utf8:nullable:desc:out,i64:out payload=utf8_view";
  std::vector<int64_t> key, number;
  std::vector<std::string> texts;
  std::vector<bool> valid;
  for (int64_t i = 0; i < 3000; ++i) {
    key.push_back(i * 7 % 50);
    number.push_back(i);
    texts.push_back(i % 3 == 0 ? std::string(kLong) + std::to_string(i) : std::to_string(i));
    valid.push_back(i % 10 != 0);
  }
  const StringVector<int32_t> words(texts);
  const ViewVector views(texts);
  const std::vector<uint8_t> bitmap = Bitmap(valid);
  const Table all = {
      {ColumnOf(key), WithValidity(words.column(), bitmap), ColumnOf(number)}, {views.column()}, key.size()};
  std::vector<quern::Sort> sorts;
  std::vector<quern::SortedRows> readers;
  for (uint32_t run = 0; run < 3; ++run) {
    Table part = all;
    for (uint32_t row = run; row < 3000; row += 3) part.selection.push_back(row);
    sorts.push_back(Sorted(spec, {part}));
    readers.push_back(*quern::SortedRows::Create(sorts.back(), 100));
  }
  quern::Merge merge = NewMerge(spec, 3, {.batch_rows = 77});
  std::vector<bool> more(3, true);
  const uint8_t* bytes[3] = {};  // by run: data buffer 0 of its views
  Lines lines;
  for (;;) {
    auto rows = merge.Next();
    ASSERT_TRUE(rows.ok()) << rows.status().text();
    AddLines(rows->result, "lslv", &lines);
    if (rows->state == QUERN_MERGE_DONE) break;
    if (rows->state == QUERN_MERGE_ROWS) continue;
    if (!more[rows->run]) {
      ASSERT_EQ(merge.End(rows->run).text(), "");
      continue;
    }
    const auto next = readers[rows->run].Next();
    ASSERT_TRUE(next.ok()) << next.status().text();
    more[rows->run] = next->more;
    Table batch = {{}, {}, next->result.num_rows};
    for (size_t i = 0; i < 4; ++i) {
      quern_column column = next->result.columns[i];
      bytes[rows->run] = column.buffers == nullptr ? nullptr : column.buffers[0];
      column.buffers = &bytes[rows->run];
      (i < 3 ? batch.keys : batch.payload).push_back(column);
    }
    ASSERT_EQ(merge.Input(rows->run, batch.batch()).text(), "");
  }
  EXPECT_TRUE(lines == RowsOf(Sorted(spec, {all}), "lslv"));
}

TEST(Merges, MayBeFedBeforeTheyAsk) {
  Numbers n;
  quern::Merge merge = NewMerge("sort keys=i32:out", 2);
  const Table first = n.Batch({1, 4}), second = n.Batch({2, 3});
  ASSERT_EQ(merge.Input(1, second.batch()).text(), "");
  ASSERT_EQ(merge.Input(0, first.batch()).text(), "");
  EXPECT_EQ(Merged(&merge, {{}, {}}, "i"), (Lines{"1", "2", "3", "4"}));
  auto rows = merge.Next();
  ASSERT_TRUE(rows.ok()) << "after the end there is nothing";
  EXPECT_EQ(rows->state, QUERN_MERGE_DONE);
  EXPECT_EQ(rows->result.num_rows, 0u);
  EXPECT_EQ(rows->result.num_columns, 1u);
}

// ---- Arrow ----

const TestSchema& InputSchema() {
  static const TestSchema schema({{"name", "u"}, {"number", "l"}});
  return schema;
}
constexpr int32_t kKeys[] = {1}, kPayload[] = {0};
constexpr const char* kArrowSpec = "sort keys=i64:desc:out payload=utf8";

TEST(ArrowMerges, KeepAnArrayUntilItsRunIsAskedForAgain) {
  auto first = StructArray(2, Utf8Array({"a", kLong}), FixedArray<int64_t>({8, 2}));
  auto second = StructArray(2, Utf8Array({"c", "d"}), FixedArray<int64_t>({9, 7}));
  quern::Merge merge = NewMerge(kArrowSpec, 2);
  ASSERT_EQ(merge.BindArrow({&InputSchema().schema, kKeys, kPayload}).text(), "");
  ArrowSchema schema;
  ASSERT_EQ(merge.ResultSchema(&schema).text(), "");
  EXPECT_EQ(TakeFields(&schema), "number:l name:u");
  ASSERT_EQ(merge.InputArrow(0, &first->array).text(), "");
  ASSERT_EQ(merge.InputArrow(1, &second->array).text(), "");
  EXPECT_EQ(first->array.release, nullptr) << "moved in";
  EXPECT_EQ(first->times_released + second->times_released, 0);

  ArrowArray result, last;
  auto step = merge.NextArrow(&result);
  ASSERT_TRUE(step.ok()) << step.status().text();
  EXPECT_EQ(step->state, QUERN_MERGE_NEEDS_INPUT);
  EXPECT_EQ(step->run, 1u);
  EXPECT_EQ(second->times_released, 1) << "used up";
  EXPECT_EQ(first->times_released, 0);
  ASSERT_EQ(merge.End(1).text(), "");
  step = merge.NextArrow(&last);
  ASSERT_TRUE(step.ok()) << step.status().text();
  EXPECT_EQ(step->run, 0u);
  EXPECT_EQ(first->times_released, 1);
  merge = NewMerge(kArrowSpec, 1);
  EXPECT_EQ(TakeLines(&result, "ls"), (Lines{"9|c", "8|a", "7|d"})) << "outlives the merge";
  EXPECT_EQ(TakeLines(&last, "ls"), (Lines{std::string("2|") + kLong}));
}

TEST(ArrowMerges, ReleaseWhatTheyHaveWhenTheyGo) {
  auto batch = StructArray(2, Utf8Array({"a", "b"}), FixedArray<int64_t>({8, 2}));
  {
    quern::Merge merge = NewMerge(kArrowSpec, 2);
    ASSERT_EQ(merge.BindArrow({&InputSchema().schema, kKeys, kPayload}).text(), "");
    ASSERT_EQ(merge.InputArrow(0, &batch->array).text(), "");
  }
  EXPECT_EQ(batch->times_released, 1);
}

// ---- errors ----

template <class... Call>
std::string Invalid(Call... call) {
  return ErrorOf(QUERN_INVALID_ARGUMENT, call...);
}

template <class... Call>
std::string Failed(Call... call) {
  return ErrorOf(QUERN_FAILED_PRECONDITION, call...);
}

TEST(MergeErrors, NullArguments) {
  Numbers n;
  const quern_batch batch = n.Batch({1}).batch();
  const quern::Kernel kernel = KernelOf("sort keys=i32:out");
  quern::Merge some_merge = NewMerge("sort keys=i32:out", 1);
  quern_merge *merge = nullptr, *const no_merge = nullptr;
  quern_result result;
  quern_merge_state state = QUERN_MERGE_ROWS;
  uint32_t run = 0;
  EXPECT_EQ(Invalid(quern_merge_create, static_cast<quern_kernel*>(nullptr), 0, 1, 0, &merge),
            "null argument: kernel; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_merge_create, kernel.handle(), 0, 1, 0, static_cast<quern_merge**>(nullptr)),
            "null argument: merge; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_merge_input, no_merge, 0, &batch), "null argument: merge; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_merge_input, some_merge.handle(), 0, static_cast<const quern_batch*>(nullptr)),
            "null argument: batch; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_merge_end, no_merge, 0), "null argument: merge; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_merge_next, no_merge, &result, &state, &run), "null argument: merge; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_merge_next, some_merge.handle(), static_cast<quern_result*>(nullptr), &state, &run),
            "null argument: result; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_merge_next, some_merge.handle(), &result, static_cast<quern_merge_state*>(nullptr), &run),
            "null argument: state; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_merge_next, some_merge.handle(), &result, &state, static_cast<uint32_t*>(nullptr)),
            "null argument: run; accepted: a pointer");
}

TEST(MergeErrors, MergesThatThereAreNot) {
  quern_merge* merge = reinterpret_cast<quern_merge*>(8);
  const auto create = [&](const std::string& spec, uint32_t num_runs, uint64_t batch_rows) {
    return Invalid(quern_merge_create, KernelOf(spec).handle(), 0, num_runs, batch_rows, &merge);
  };
  EXPECT_EQ(create("join.left keys=i64", 1, 0), "wrong kernel for a merge: join.left; accepted: one of sort");
  EXPECT_EQ(merge, nullptr);
  EXPECT_EQ(create("sort keys=i64 window=rank,row_number", 1, 0),
            "window function of a merge: rank; accepted: a spec without window");
  EXPECT_EQ(create("sort keys=i64", 0, 0), "num_runs out of range: 0; accepted: 1 to 65536");
  EXPECT_EQ(create("sort keys=i64", 65537, 0), "num_runs out of range: 65537; accepted: 1 to 65536");
  EXPECT_EQ(create("sort keys=i64", 1, uint64_t{1} << 31),
            "batch_rows out of range: 2147483648; accepted: 0 to 2147483647");
}

TEST(MergeErrors, RunsThatWantNoInput) {
  Numbers n;
  const Table table = n.Batch({1});
  const quern_batch batch = table.batch();
  quern::Merge merge = NewMerge("sort keys=i32:out", 2);
  quern_merge* const handle = merge.handle();
  EXPECT_EQ(Invalid(quern_merge_input, handle, 2, &batch), "unknown run: 2; accepted: 0 to 1");
  EXPECT_EQ(Invalid(quern_merge_end, handle, 2), "unknown run: 2; accepted: 0 to 1");
  ASSERT_EQ(merge.Input(0, batch).text(), "");
  EXPECT_EQ(Failed(quern_merge_input, handle, 0, &batch),
            "input while the run has rows left: run 0; accepted: runs that need input");
  ASSERT_EQ(merge.End(1).text(), "");
  EXPECT_EQ(Failed(quern_merge_input, handle, 1, &batch),
            "input after the run's end: run 1; accepted: runs that need input");
  EXPECT_EQ(Failed(quern_merge_end, handle, 1), "input after the run's end: run 1; accepted: runs that need input");
  EXPECT_EQ(Merged(&merge, {{}, {}}, "i"), (Lines{"1"})) << "a call that was refused changes nothing";
}

TEST(MergeErrors, BatchesWithoutColumns) {
  Numbers n;
  const Table table = n.Batch({1});
  quern_batch batch = table.batch();
  quern::Merge merge = NewMerge("sort keys=i32:out", 1);
  batch.keys = nullptr;
  EXPECT_EQ(Invalid(quern_merge_input, merge.handle(), 0, &batch),
            "batch without columns: input key; accepted: 1 columns");
  ASSERT_EQ(merge.Input(0, table.batch()).text(), "") << "a batch that was refused changes nothing";
}

TEST(MergeErrors, RunsThatAreNotInOrder) {
  Numbers n;
  quern::Merge merge = NewMerge("sort keys=i32:out", 2);
  const Table good = n.Batch({1, 2}), bad = n.Batch({3, 5, 4});
  ASSERT_EQ(merge.Input(0, good.batch()).text(), "");
  quern::Status status = merge.Input(1, bad.batch());
  if (status.ok()) status = merge.Next().status();
  EXPECT_EQ(status.code(), QUERN_INVALID_ARGUMENT);
  EXPECT_EQ(status.text(), "run not in order: run 1, row 2; accepted: rows in the order of the spec's keys");
  EXPECT_EQ(merge.Next().status().code(), QUERN_FAILED_PRECONDITION) << "rows are lost";
}

TEST(MergeErrors, BeyondTheMemoryLimit) {
  Numbers n;
  const Table table = n.Batch({1});
  quern::Merge merge = NewMerge("sort keys=i32:out", 1, {.memory_limit = 10});
  quern::Status status = merge.Input(0, table.batch());
  if (status.ok()) status = merge.Next().status();
  EXPECT_EQ(status.code(), QUERN_RESOURCE_EXHAUSTED) << status.text();
}

// The output batch takes its memory first.
TEST(MergeErrors, AfterAFailure) {
  Numbers n;
  const Table table = n.Batch({1});
  quern::Merge merge = NewMerge("sort keys=i32:out", 1, {.memory_limit = 10, .batch_rows = 1000});
  EXPECT_EQ(merge.Next().status().code(), QUERN_RESOURCE_EXHAUSTED);
  const std::string text = "rows after a failure: some of them are lost; accepted: a new merge";
  EXPECT_EQ(merge.Next().status().text(), text);
  EXPECT_EQ(merge.Input(0, table.batch()).text(), text);
  EXPECT_EQ(merge.End(0).text(), text);
}

TEST(ArrowMergeErrors, Bindings) {
  quern::Merge merge = NewMerge(kArrowSpec, 1);
  quern_merge* const handle = merge.handle();
  quern_merge* const no_merge = nullptr;
  const ArrowSchema *input = &InputSchema().schema, *no_schema = nullptr;
  const auto batch = [] { return StructArray(1, Utf8Array({"a"}), FixedArray<int64_t>({8})); };
  const auto input_arrow = [](quern_merge* to, ArrowArray* array, quern_error* error) {
    return quern_merge_input_arrow(to, 0, array, error);
  };
  ArrowSchema schema;
  const std::string unbound =
      "Arrow columns not bound: the merge has no binding; accepted: after quern_merge_bind_arrow";
  EXPECT_EQ(Failed(quern_merge_result_schema, handle, &schema), unbound);
  EXPECT_EQ(RefusalOf(QUERN_FAILED_PRECONDITION, input_arrow, handle, batch()), unbound);
  EXPECT_EQ(Invalid(quern_merge_bind_arrow, no_merge, input, kKeys, kPayload),
            "null argument: merge; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_merge_bind_arrow, handle, no_schema, kKeys, kPayload),
            "null argument: input; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_merge_bind_arrow, handle, input, kPayload, kPayload),
            "wrong type for input keys[0]: field \"name\" is utf8; accepted: i64");
  EXPECT_EQ(Invalid(quern_merge_result_schema, no_merge, &schema), "null argument: merge; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_merge_result_schema, handle, static_cast<ArrowSchema*>(nullptr)),
            "null argument: schema; accepted: a pointer");
  ASSERT_EQ(merge.BindArrow({input, kKeys, kPayload}).text(), "");
  EXPECT_EQ(merge.BindArrow({input, kKeys, kPayload}).text(),
            "Arrow columns bound twice: the merge has a binding; accepted: a new merge");
  EXPECT_EQ(RefusalOf(QUERN_INVALID_ARGUMENT, input_arrow, no_merge, batch()),
            "null argument: merge; accepted: a pointer");
  ASSERT_EQ(merge.End(0).text(), "");
  EXPECT_EQ(RefusalOf(QUERN_FAILED_PRECONDITION, input_arrow, handle, batch()),
            "input after the run's end: run 0; accepted: runs that need input");
}

TEST(ArrowMergeErrors, NullArguments) {
  quern::Merge merge = NewMerge(kArrowSpec, 1);
  quern_merge* const no_merge = nullptr;
  ArrowArray* const no_array = nullptr;
  ArrowArray result;
  quern_merge_state state = QUERN_MERGE_ROWS;
  uint32_t run = 0;
  EXPECT_EQ(Invalid(quern_merge_input_arrow, merge.handle(), 0, no_array), "null argument: batch; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_merge_next_arrow, no_merge, &result, &state, &run),
            "null argument: merge; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_merge_next_arrow, merge.handle(), no_array, &state, &run),
            "null argument: result; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_merge_next_arrow, merge.handle(), &result, static_cast<quern_merge_state*>(nullptr), &run),
            "null argument: state; accepted: a pointer");
}

}  // namespace
}  // namespace quern_test
