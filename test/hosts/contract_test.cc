// SPDX-License-Identifier: Apache-2.0
// What every job with inputs promises: the order of calls, what a refused batch and what a failed one leave behind,
// limits of memory, cancelling, and handles that go in any order. (Arguments: arguments_test.cc; Arrow:
// arrow_jobs_test.cc; threads: parallel_test.cc.)
#include <gtest/gtest.h>

#include <memory>
#include <regex>

#include "test/hosts/operators.h"

namespace quern_test {
namespace {

// Three rows, which merges take too: they are in order.
struct Rows {
  const std::vector<int64_t> keys = {1, 2, 3}, values = {10, 20, 30};
  const Table table = {{ColumnOf(keys)}, {ColumnOf(values)}, 3};

  static Lines Of(const Operator& op, int times = 1) {
    Lines lines;
    for (const int64_t key : {1, 2, 3}) {
      const std::string value = std::to_string(10 * key);
      std::string line = op.kinds == std::string("l") ? value : std::to_string(key) + "|" + value;
      if (op.input == QUERN_PORT_LEFT) line = std::to_string(key);  // a set's rows have only keys
      lines.insert(lines.end(), static_cast<size_t>(times), line);
    }
    return lines;
  }
};

class Jobs : public testing::TestWithParam<Operator> {
 protected:
  const Operator& op = GetParam();
  const Rows rows;
  const std::string accepted = std::string("; accepted: a new ") + op.job;
};
class Sinks : public Jobs {};

INSTANTIATE_TEST_SUITE_P(Operators, Jobs, testing::Values(kJoin, kAggregation, kSet, kSort, kMerge), NameOf);
INSTANTIATE_TEST_SUITE_P(Operators, Sinks, testing::Values(kJoin, kAggregation, kSet, kSort), NameOf);

// ---- results ----

TEST_P(Jobs, HaveNoRowsAfterTheLast) {
  for (const Engine engine : {Engine::kJit, Engine::kGeneric}) {
    quern::Job job = NewJob(op, {}, nullptr, engine);
    Feed(job.NewInput(op.input), {rows.table});
    Done(job.Finalise());
    quern::Output output = Take(job.NewOutput(op.output, BatchRows(2)));
    EXPECT_EQ(RowsOf(&output, op.kinds), Rows::Of(op));
    const quern_result& after = *Take(output.Next());
    EXPECT_EQ(after.state, QUERN_RESULT_DONE);
    EXPECT_EQ(after.num_rows, 0u);
    EXPECT_EQ(after.num_columns, std::string(op.kinds).size());
  }
}

TEST_P(Jobs, OfNothingGiveNothing) {
  quern::Job job = NewJob(op);
  Feed(job.NewInput(op.input), {});
  Done(job.Finalise());
  EXPECT_EQ(RowsOf(job.NewOutput(op.output), op.kinds), Lines());
}

// ---- the order of calls ----

TEST_P(Sinks, HaveNoOutputBeforeAllWorkIsDone) {
  quern::Job job = NewJob(op);
  const quern::Status early = job.NewOutput(op.output).status();
  EXPECT_EQ(early.text(), std::string("output before all work is done: the ") + op.job +
                              " still has work; accepted: after quern_job_finalise, or QUERN_WORK_DONE");
  EXPECT_EQ(early.code(), QUERN_FAILED_PRECONDITION);
  quern::Input open = Take(job.NewInput(op.input));
  Done(open.Append(rows.table.batch()));
  EXPECT_EQ(job.Work().status().text(),
            "work before all inputs have finished: 1 with rows; accepted: after quern_input_finish of each");
  EXPECT_EQ(job.Finalise().code(), QUERN_FAILED_PRECONDITION);
  Done(open.Finish());
  Done(job.Finalise());
  Done(job.Finalise());
  EXPECT_EQ(Take(job.Work()), QUERN_WORK_DONE);
  EXPECT_EQ(RowsOf(job.NewOutput(op.output), op.kinds), Rows::Of(op)) << "calls that were refused change nothing";
}

TEST_P(Sinks, TakeNoRowsThatComeTooLate) {
  quern::Job job = NewJob(op);
  quern::Input input = Take(job.NewInput(op.input)), late = Take(job.NewInput(op.input));
  Done(input.Append(rows.table.batch()));
  Done(input.Finish());
  EXPECT_EQ(input.Append(rows.table.batch()).text(),
            "append after finish: the rows were handed over; accepted: a new input");
  EXPECT_EQ(input.Finish().text(), "finish after finish: the rows were handed over; accepted: a new input");
  Done(job.Finalise());
  const std::string after = std::string(" after finalise: ") + op.complete + accepted;
  EXPECT_EQ(late.Append(rows.table.batch()).text(), "append" + after);
  EXPECT_EQ(late.Append(rows.table.batch()).code(), QUERN_FAILED_PRECONDITION);
  EXPECT_EQ(late.Finish().text(), "finish" + after);
  EXPECT_EQ(Take(job.NewInput(op.input)).Append(rows.table.batch()).text(), "append" + after);
  EXPECT_EQ(job.Run({}).status().text(), "run" + after);
  EXPECT_EQ(RowsOf(job.NewOutput(op.output), op.kinds), Rows::Of(op));
}

TEST_P(Jobs, TakeNoBatchesByTheirOutput) {
  quern::Job job = NewJob(op);
  Done(job.Finalise());
  EXPECT_EQ(Take(job.NewOutput(op.output)).Push(rows.table.batch()).text(),
            "batch for an output that takes none; accepted: an output of QUERN_PORT_PROBE, or of a map");
}

// ---- refused batches ----

TEST_P(Jobs, AreUnchangedByABatchThatWasRefused) {
  quern::Job job = NewJob(op);
  quern::Input input = Take(job.NewInput(op.input));
  const std::string side = op.side;
  quern_batch batch = rows.table.batch();
  const auto refused = [&] {
    const quern::Status status = input.Append(batch);
    EXPECT_EQ(status.code(), QUERN_INVALID_ARGUMENT);
    batch = rows.table.batch();
    return status.text();
  };
  batch.num_rows = 4294967295;
  EXPECT_EQ(refused(), "batch too large: 4294967295 rows; accepted: below 4294967295");
  batch.keys = nullptr;
  EXPECT_EQ(refused(), "batch without columns: " + side + " key; accepted: 1 columns");
  const quern_column absent = {};
  batch.keys = &absent;
  EXPECT_EQ(refused(), "column without values: " + side + " key 0 (i64); accepted: a pointer, unless no row needs it");
  if (op.input != QUERN_PORT_LEFT) {  // which has no payload
    batch.payload = nullptr;
    EXPECT_EQ(refused(), "batch without columns: " + side + " payload; accepted: 1 columns");
  }
  Done(input.Append(batch));
  Done(input.Finish());
  Done(job.Finalise());
  EXPECT_EQ(RowsOf(job.NewOutput(op.output), op.kinds), Rows::Of(op));
}

// A column of one type without one of its pointers, beside a key.
std::string ColumnError(const char* type, const quern_column& column) {
  quern::Join join = New<quern::Join>("join.inner keys=i64 build=" + std::string(type), Engine::kGeneric);
  const std::vector<int64_t> key = {1, 2};
  const quern::Status status = Take(join.Build()).Append(Table{{ColumnOf(key)}, {column}, 2}.batch());
  EXPECT_EQ(status.code(), QUERN_INVALID_ARGUMENT);
  return status.text();
}

TEST(MissingPointers, AreNamed) {
  const quern_column absent = {};
  const auto missing = [](const char* what, const std::string& type) {
    return std::string("column without ") + what + ": build payload 0 (" + type +
           "); accepted: a pointer, unless no row needs it";
  };
  const std::vector<uint8_t> one_valid = Bitmap({false, true});
  EXPECT_EQ(ColumnError("bool:nullable", WithValidity(absent, one_valid)), missing("values", "bool"));
  EXPECT_EQ(ColumnError("utf8", absent), missing("offsets", "utf8"));
  EXPECT_EQ(ColumnError("utf8_view", absent), missing("values", "utf8_view"));
  const StringVector<int64_t> strings({"", "b"});
  quern_column no_bytes = strings.column();
  no_bytes.values = nullptr;
  EXPECT_EQ(ColumnError("large_binary", no_bytes), missing("values", "large_binary"));
  const ViewVector views({"short", "longer than twelve"});
  quern_column no_buffers = views.column();
  no_buffers.buffers = nullptr;
  EXPECT_EQ(ColumnError("binary_view", no_buffers), missing("buffers", "binary_view"));
  const std::vector<int32_t> indices = {0, 1};
  const std::string words = "dictionary(i32,utf8)", numbers = "dictionary(i32,i64)";
  EXPECT_EQ(ColumnError(words.c_str(), ColumnOf(indices)), missing("dictionary", words));
  EXPECT_EQ(ColumnError(words.c_str(), DictionaryColumn(absent, absent)), missing("indices", words));
  EXPECT_EQ(ColumnError(numbers.c_str(), DictionaryColumn(ColumnOf(indices), absent)), missing("values", numbers));
}

// ---- rows that are lost ----

TEST_P(Sinks, FailAtEveryCallWhenRowsAreMissing) {
  // What says of rows which side they are on takes the first 2,064 bytes.
  quern::Job job = NewJob(op, LimitedTo(op.input == QUERN_PORT_LEFT ? 2'070 : 10));
  quern::Input input = Take(job.NewInput(op.input)), other = Take(job.NewInput(op.input));
  const quern_batch batch = rows.table.batch();
  const quern_run_input inputs[] = {{op.input, &batch, 1}};
  const quern::Status failed = job.Run(inputs).status();  // a run appends nothing twice
  EXPECT_EQ(failed.code(), QUERN_RESOURCE_EXHAUSTED);
  EXPECT_TRUE(std::regex_match(
      failed.text(), std::regex("memory limit exceeded: [0-9]+ bytes requested, [0-9]+ in use; limit [0-9]+")))
      << failed.text();
  const std::string after = std::string(" after a failed append: ") + op.missing + accepted;
  EXPECT_EQ(input.Append(rows.table.batch()).text(), "append" + after);
  EXPECT_EQ(input.Finish().text(), "finish" + after);
  EXPECT_EQ(other.Append(rows.table.batch()).text(), "append" + after);
  EXPECT_EQ(other.Finish().text(), "finish" + after);
  EXPECT_EQ(job.Run({}).status().text(), "run" + after);
  input = Take(job.NewInput(op.input));  // the rows of the former are dropped
  EXPECT_EQ(job.Finalise().text(), "finalise" + after);
  EXPECT_EQ(job.Work().status().text(), "finalise" + after);
  EXPECT_EQ(job.NewOutput(op.output).status().code(), QUERN_FAILED_PRECONDITION);
}

std::vector<int64_t> ManyNumbers() {
  std::vector<int64_t> many;
  for (int64_t i = 0; i < 300000; ++i) many.push_back(i * 0x10000003d % 1000003);
  return many;
}

// What just suffices for the work leaves no room for results.
TEST_P(Sinks, LoseRowsOfResultsThatFindNoMemory) {
  const std::vector<int64_t> many = ManyNumbers();
  const Table table = {{ColumnOf(many)}, {ColumnOf(many)}, many.size()};
  const auto finished = [&](uint64_t limit) {
    quern::Job job = NewJob(op, LimitedTo(limit));
    Feed(job.NewInput(op.input), {table});
    Done(job.Finalise());
    return job;
  };
  const uint64_t needed = finished(0).Stats().peak_bytes;
  quern::Job job = finished(needed);
  quern::Status status;
  std::vector<quern::Output> outputs;  // whose results take memory, until there is none
  for (int i = 0; i < 200 && status.ok(); ++i) {
    outputs.push_back(Take(job.NewOutput(op.output)));
    status = outputs.back().Next().status();
  }
  EXPECT_EQ(status.code(), QUERN_RESOURCE_EXHAUSTED);
  EXPECT_EQ(outputs.back().Next().status().text(), "result after a failure: rows are lost; accepted: a new job");
}

// What just suffices for the rows leaves no room to sort them.
TEST(SortWithoutMemory, CannotBeTriedAgain) {
  const std::vector<int64_t> many = ManyNumbers();
  const Table table = {{ColumnOf(many)}, {ColumnOf(many)}, many.size()};
  quern::Job measured = NewJob(kSort);
  Feed(measured.NewInput(kSort.input), {table});
  quern::Job sort = NewJob(kSort, LimitedTo(measured.Stats().peak_bytes));
  Feed(sort.NewInput(kSort.input), {table});
  const quern::Status refused = sort.Finalise();
  EXPECT_EQ(refused.code(), QUERN_RESOURCE_EXHAUSTED);
  EXPECT_EQ(sort.Finalise().text(), refused.text());
  const std::string text =
      " after a failed finalise: rows are missing from the sort; accepted: a new sort; it failed with: " +
      std::string(refused.text());
  EXPECT_EQ(Take(sort.NewInput(kSort.input)).Append(table.batch()).text(), "append" + text);
  EXPECT_EQ(sort.NewOutput(kSort.output).status().code(), QUERN_FAILED_PRECONDITION);
}

TEST(ProbesWithoutMemory, GoOnWithANewBatch) {
  const Rows rows;
  HostMemory memory;
  quern::Join join = New<quern::Join>("join.inner keys=i64 probe=i64", Engine::kGeneric, memory.options());
  Feed(join.Build(), {rows.table});
  Done(join.Finalise());
  quern::Output probe = Take(join.Probe());
  Done(probe.Push(rows.table.batch()));
  memory.limit = memory.used.load();
  EXPECT_EQ(probe.Next().status().code(), QUERN_RESOURCE_EXHAUSTED);
  memory.limit = INT64_MAX;
  EXPECT_EQ(probe.Next().status().text(), "result after a failure: rows are lost; accepted: a new batch");
  EXPECT_EQ(Probed(&probe, rows.table, "l"), (Lines{"10", "20", "30"}));
}

TEST(CopiedBytes, CountAgainstTheMemoryLimit) {
  quern::Join join = New<quern::Join>("join.inner keys=utf8", Engine::kGeneric, LimitedTo(5000));
  const StringVector<int32_t> strings({std::string(6000, 'a')});
  const quern::Status status = Take(join.Build(StringBytes::kCopied)).Append(Table{{strings.column()}, {}, 1}.batch());
  EXPECT_EQ(status.code(), QUERN_RESOURCE_EXHAUSTED);
  EXPECT_EQ(status.text(), "memory limit exceeded: 6000 bytes requested, 0 in use; limit 5000");
  EXPECT_EQ(join.Stats().input_rows, 0u);
}

// ---- cancelling ----

TEST_P(Jobs, RefuseEveryCallOnceTheyAreCancelled) {
  const std::string text = "job cancelled: the host has stopped it; accepted: a new job";
  quern::Job open = NewJob(op), done = NewJob(op);
  quern::Input input = Take(open.NewInput(op.input));
  open.Cancel();
  const quern::Status refused = input.Append(rows.table.batch());
  EXPECT_EQ(refused.text(), text);
  EXPECT_EQ(refused.code(), QUERN_CANCELLED);
  EXPECT_EQ(input.Finish().text(), text);
  EXPECT_EQ(open.NewInput(op.input).status().text(), text);
  EXPECT_EQ(open.Work().status().text(), text);
  EXPECT_EQ(open.Finalise().text(), text);
  Feed(done.NewInput(op.input), {rows.table});
  Done(done.Finalise());
  quern::Output output = Take(done.NewOutput(op.output, BatchRows(1)));
  Take(output.Next());
  done.Cancel();
  EXPECT_EQ(output.Next().status().text(), text);
  EXPECT_EQ(output.Push(rows.table.batch()).text(), text);
  EXPECT_EQ(done.NewOutput(op.output).status().text(), text);
}

TEST_P(Sinks, MayBeCancelledWhileTheyRun) {
  const std::vector<int64_t> many = ManyNumbers();
  const Table table = {{ColumnOf(many)}, {ColumnOf(many)}, many.size()};
  const quern_batch batch = table.batch();
  const quern_run_input input = {op.input, &batch, 1};
  quern::Job job = NewJob(op);
  quern_run_options options = {};
  options.threads = 2;
  options.batch_rows = 100;
  const quern::Status status = job.Run({&input, 1}, options,
                                       [&](const quern_result&) {
                                         job.Cancel();
                                         return true;
                                       })
                                   .status();
  EXPECT_EQ(status.code(), QUERN_CANCELLED);
}

// ---- handles ----

TEST_P(Sinks, DropTheRowsOfInputsThatDoNotFinish) {
  quern::Job job = NewJob(op);
  {
    quern::Input kept = Take(job.NewInput(op.input)), gone = Take(job.NewInput(op.input));
    Done(kept.Append(rows.table.batch()));
    Done(gone.Append(rows.table.batch()));
    Done(kept.Finish());
  }
  Done(job.Finalise());
  EXPECT_EQ(RowsOf(job.NewOutput(op.output), op.kinds), Rows::Of(op));
  EXPECT_EQ(job.Stats().num_rows, 3u);
}

TEST_P(Jobs, LiveAsLongAsAnyHandle) {
  quern_job_options options = {};
  options.num_runs = op.num_runs;
  auto kernel = std::make_unique<quern::Kernel>(KernelOf(op.spec, Engine::kJit));
  auto job = std::make_unique<quern::Job>(Take(quern::Job::Create(*kernel, options)));
  kernel.reset();
  quern_cache_clear();  // now only the job keeps the code
  quern::Input unused = Take(job->NewInput(op.input));
  Feed(job->NewInput(op.input), {rows.table});
  Done(job->Finalise());
  auto gone = std::make_unique<quern::Output>(Take(job->NewOutput(op.output)));
  quern::Output output = Take(job->NewOutput(op.output, BatchRows(2)));
  job.reset();
  gone.reset();
  EXPECT_EQ(RowsOf(&output, op.kinds), Rows::Of(op));
}

TEST_P(Sinks, TakeRowsByInputsThatOutliveThem) {
  auto job = std::make_unique<quern::Job>(NewJob(op));
  quern::Input input = Take(job->NewInput(op.input));
  job.reset();
  Done(input.Append(rows.table.batch()));
  Done(input.Finish());
}

TEST(MergeJobs, HaveNoWork) {
  quern::Job job = NewJob(kMerge);
  EXPECT_EQ(Take(job.Work()), QUERN_WORK_DONE);
  EXPECT_STREQ(job.Stats().layout, "");
}

}  // namespace
}  // namespace quern_test
