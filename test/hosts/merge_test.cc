// SPDX-License-Identifier: Apache-2.0
// Merges of sorted runs: order, ties, limits, who is asked when, life times of arrays, and what merges alone refuse.
// (What they share with other jobs: contract_test.cc.)
#include <gtest/gtest.h>

#include <deque>

#include "test/hosts/arrow_results.h"
#include "test/hosts/jobs.h"

namespace quern_test {
namespace {

const std::string kLong = "a text of more than twelve bytes";

quern::Merge NewMerge(const std::string& spec, uint32_t num_runs, const quern_job_options& options = {},
                      Engine engine = Engine::kJit) {
  return Take(quern::Merge::Create(KernelOf(spec, engine), num_runs, options));
}

void ExpectMerged(const std::string& spec, const std::vector<std::vector<Table>>& runs, std::string_view kinds,
                  const Lines& expected) {
  for (const Engine engine : {Engine::kJit, Engine::kGeneric}) {
    for (const uint64_t batch_rows : {0, 1, 3}) {
      SCOPED_TRACE(spec + ", engine " + std::to_string(static_cast<int>(engine)) + ", batch_rows " +
                   std::to_string(batch_rows));
      quern::Merge merge = NewMerge(spec, static_cast<uint32_t>(runs.size()), {}, engine);
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
               {"1|a", "1|c", "2|b", "2|" + kLong, "2|" + kLong, "2|d"});
}

TEST(Merges, CompareLongStrings) {
  const StringVector<int32_t> first({kLong + "1", kLong + "4"}), second({kLong + "2", kLong + "3"});
  ExpectMerged("sort keys=utf8:out", {{{{first.column()}, {}, 2}}, {{{second.column()}, {}, 2}}}, "s",
               {kLong + "1", kLong + "2", kLong + "3", kLong + "4"});
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
    texts.push_back(i % 3 == 0 ? kLong + std::to_string(i) : std::to_string(i));
    valid.push_back(i % 10 != 0);
  }
  const StringVector<int32_t> words(texts);
  const ViewVector views(texts);
  const std::vector<uint8_t> bitmap = Bitmap(valid);
  const Table all = {
      {ColumnOf(key), WithValidity(words.column(), bitmap), ColumnOf(number)}, {views.column()}, key.size()};
  std::vector<quern::Sort> sorts;
  std::vector<quern::Output> readers;
  std::vector<quern::Input> inputs;
  quern::Merge merge = NewMerge(spec, 3);
  for (uint32_t run = 0; run < 3; ++run) {
    Table part = all;
    for (uint32_t row = run; row < 3000; row += 3) part.selection.push_back(row);
    sorts.push_back(Sorted(spec, {part}));
    readers.push_back(Take(sorts.back().Sorted(100)));
    inputs.push_back(Take(merge.RunInput(run)));
  }
  std::vector<bool> more(3, true);
  quern::Output merged = Take(merge.Merged(77));
  Lines lines;
  for (quern_result_state state = QUERN_RESULT_MORE; state != QUERN_RESULT_DONE;) {
    const quern_result& rows = *Take(merged.Next());
    AddLines(rows, "lslv", &lines);
    state = rows.state;
    if (state != QUERN_RESULT_NEEDS_INPUT) continue;
    quern::Input& input = inputs[rows.run];
    if (!more[rows.run]) {
      Done(input.Finish());
      continue;
    }
    const quern_result& next = *Take(readers[rows.run].Next());
    more[rows.run] = next.state == QUERN_RESULT_MORE;
    Done(input.Append(AsTable(next, 3).batch()));
  }
  quern::Sort whole = Sorted(spec, {all});
  EXPECT_TRUE(lines == InOrder(whole.Sorted(), "lslv"));
}

TEST(Merges, MayBeFedAndEndedBeforeTheyAsk) {
  Numbers n;
  quern::Merge merge = NewMerge("sort keys=i32:out", 3);
  const Table first = n.Batch({1, 4}), second = n.Batch({2, 3});
  Feed(merge.RunInput(2), {});
  Feed(merge.RunInput(1), {second});
  Feed(merge.RunInput(0), {first});
  quern::Output merged = Take(merge.Merged());
  EXPECT_EQ(InOrder(&merged, "i"), (Lines{"1", "2", "3", "4"}));
  const quern_result& rows = *Take(merged.Next());
  EXPECT_EQ(rows.state, QUERN_RESULT_DONE) << "after the end there is nothing";
  EXPECT_EQ(rows.num_rows, 0u);
  EXPECT_EQ(rows.num_columns, 1u);
}

// ---- Arrow ----

const TestSchema& InputSchema() {
  static const TestSchema schema({{"name", "u"}, {"number", "l"}});
  return schema;
}
constexpr int32_t kKeys[] = {1}, kPayload[] = {0};
constexpr const char* kArrowSpec = "sort keys=i64:desc:out payload=utf8";

quern::Merge BoundMerge() {
  quern::Merge merge = NewMerge(kArrowSpec, 2);
  Done(merge.BindArrow(QUERN_PORT_ROWS, {&InputSchema().schema, kKeys, kPayload}));
  return merge;
}

TEST(ArrowMerges, KeepAnArrayUntilItsRunIsAskedForAgain) {
  auto first = StructArray(2, Utf8Array({"a", kLong}), FixedArray<int64_t>({8, 2}));
  auto second = StructArray(2, Utf8Array({"c", "d"}), FixedArray<int64_t>({9, 7}));
  ArrowArray result, last;
  {
    quern::Merge merge = BoundMerge();
    quern::Input run_0 = Take(merge.RunInput(0)), run_1 = Take(merge.RunInput(1));
    quern::Output merged = Take(merge.Merged());
    Done(run_0.AppendArrow(&first->array));
    Done(run_1.AppendArrow(&second->array));
    EXPECT_EQ(first->array.release, nullptr) << "moved in";
    EXPECT_EQ(first->times_released + second->times_released, 0);
    const quern_result* step = Take(merged.NextArrow(&result));
    EXPECT_EQ(step->state, QUERN_RESULT_NEEDS_INPUT);
    EXPECT_EQ(step->run, 1u);
    EXPECT_EQ(second->times_released, 1) << "used up";
    EXPECT_EQ(first->times_released, 0);
    Done(run_1.Finish());
    step = Take(merged.NextArrow(&last));
    EXPECT_EQ(step->run, 0u);
    EXPECT_EQ(first->times_released, 1);
  }
  EXPECT_EQ(TakeLines(&result, "ls"), (Lines{"9|c", "8|a", "7|d"})) << "outlives the merge";
  EXPECT_EQ(TakeLines(&last, "ls"), (Lines{"2|" + kLong}));
}

TEST(ArrowMerges, ReleaseWhatTheyHaveWhenTheyGo) {
  auto batch = StructArray(2, Utf8Array({"a", "b"}), FixedArray<int64_t>({8, 2}));
  {
    quern::Merge merge = BoundMerge();
    Done(Take(merge.RunInput(0)).AppendArrow(&batch->array));
    EXPECT_EQ(batch->times_released, 0) << "the merge keeps it, not the input";
  }
  EXPECT_EQ(batch->times_released, 1);
}

// ---- errors ----

TEST(MergeErrors, MergesThatThereAreNot) {
  const auto refusal = [](const std::string& spec, uint32_t num_runs) {
    return quern::Merge::Create(KernelOf(spec, Engine::kGeneric), num_runs).status().text();
  };
  EXPECT_EQ(refusal("join.left keys=i64", 1),
            "num_runs for a kernel that does not sort: 1; accepted: 0, or a kernel of sort");
  EXPECT_EQ(refusal("sort keys=i64 window=rank,row_number", 1),
            "window function of a merge: rank; accepted: a spec without window");
  EXPECT_EQ(refusal("sort keys=i64", 65537), "num_runs out of range: 65537; accepted: 1 to 65536, or 0 for a sort");
  EXPECT_EQ(NewMerge("sort keys=i64", 2).RunInput(2).status().text(), "run out of range: 2; accepted: 0 to 1");
}

TEST(MergeErrors, RunsThatWantNoInput) {
  Numbers n;
  const Table table = n.Batch({1});
  quern::Merge merge = NewMerge("sort keys=i32:out", 2);
  quern::Input run_0 = Take(merge.RunInput(0)), run_1 = Take(merge.RunInput(1));
  Done(run_0.Append(table.batch()));
  EXPECT_EQ(run_0.Append(table.batch()).text(),
            "input while the run has rows left: run 0; accepted: runs that need input");
  EXPECT_EQ(Take(merge.RunInput(0)).Append(table.batch()).code(), QUERN_FAILED_PRECONDITION) << "nor by another input";
  Done(run_0.Finish());
  EXPECT_EQ(run_0.Append(table.batch()).text(), "input after the run's end: run 0; accepted: runs that need input");
  Done(run_1.Finish());
  const std::string ended = "input after the run's end: run 1; accepted: runs that need input";
  EXPECT_EQ(run_1.Append(table.batch()).text(), ended);
  EXPECT_EQ(run_1.Finish().text(), ended);
  EXPECT_EQ(InOrder(merge.Merged(), "i"), (Lines{"1"})) << "a call that was refused changes nothing";
}

TEST(MergeErrors, RunsThatAreNotInOrder) {
  Numbers n;
  quern::Merge merge = NewMerge("sort keys=i32:out", 2);
  quern::Input run_0 = Take(merge.RunInput(0)), run_1 = Take(merge.RunInput(1));
  quern::Output merged = Take(merge.Merged());
  const Table good = n.Batch({1, 2}), bad = n.Batch({3, 5, 4});
  Done(run_0.Append(good.batch()));
  quern::Status status = run_1.Append(bad.batch());
  if (status.ok()) status = merged.Next().status();
  EXPECT_EQ(status.code(), QUERN_INVALID_ARGUMENT);
  EXPECT_EQ(status.text(), "run not in order: run 1, row 2; accepted: rows in the order of the spec's keys");
  EXPECT_EQ(merged.Next().status().code(), QUERN_FAILED_PRECONDITION) << "rows are lost";
}

// The output batch takes its memory first.
TEST(MergeErrors, AfterAFailureOfMemory) {
  Numbers n;
  const Table table = n.Batch({1});
  quern::Merge merge = NewMerge("sort keys=i32:out", 1, LimitedTo(10));
  quern::Input run = Take(merge.RunInput(0));
  quern::Output merged = Take(merge.Merged(1000));
  EXPECT_EQ(merged.Next().status().code(), QUERN_RESOURCE_EXHAUSTED);
  EXPECT_EQ(merged.Next().status().text(), "result after a failure: rows are lost; accepted: a new job");
  const std::string text = "rows after a failure: some of them are lost; accepted: a new merge";
  EXPECT_EQ(Take(merge.Merged()).Next().status().text(), text);
  EXPECT_EQ(run.Append(table.batch()).text(), text);
  EXPECT_EQ(run.Finish().text(), text);
}

}  // namespace
}  // namespace quern_test
