// SPDX-License-Identifier: Apache-2.0
// Pipelines by their spec: what is refused, with the full texts; refused memory; Arrow.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "test/hosts/arrow_results.h"
#include "test/hosts/jobs.h"
#include "test/hosts/refusals.h"
#include "test/unit/seed.h"

namespace quern_test {
namespace {

using quern::PipelineJob;
using Numbers = std::vector<int64_t>;

const char kJoin[] = "join.right keys=i64 build=i64 probe=i64";
const std::string kSorted =
    "pipeline in=i64,i64 | probe join.right keys=i64 build=i64 probe=i64 [$0; $1] | sort keys=i64:nullable:out,i64:out"
    " [$0, $1]";
const Numbers kKeys = {1, 2, 3}, kValues = {10, 20, 30};

Table TableRows() { return {{ColumnOf(kKeys)}, {ColumnOf(kValues)}, 3}; }
Table SourceRows() { return {{ColumnOf(kKeys), ColumnOf(kValues)}, {}, 2}; }

std::string CreationError(const std::string& spec, std::vector<const quern::Job*> tables,
                          const quern_job_options& options = {}, quern_status code = QUERN_INVALID_ARGUMENT) {
  const auto job = PipelineJob::Create(KernelOf(spec, Engine::kGeneric), tables, options);
  EXPECT_EQ(job.status().code(), code);
  return job.status().text();
}

bool OnRows(void* /*context*/, const quern_batch* /*rows*/) { return true; }

// ---- creating jobs --------------------------------------------------------------------------------------------------

TEST(PipelineSpecCalls, TablesThatDoNotFit) {
  const quern::Join table = Built(kJoin, {TableRows()}), other = Built("join.left keys=i64 build=i64 probe=i64", {});
  const auto sort = New<quern::Sort>("sort keys=i64:out");
  EXPECT_EQ(CreationError(kSorted, {}),
            "number of tables of a pipeline: 0; accepted: 1, one for each step that probes or reduces");
  EXPECT_EQ(CreationError(kSorted, {&table, &table}),
            "number of tables of a pipeline: 2; accepted: 1, one for each step that probes or reduces");
  EXPECT_EQ(CreationError(kSorted, {&other}),
            "tables[0] for step 0: join.left keys=i64 build=i64 probe=i64; accepted: join.right keys=i64 build=i64 "
            "probe=i64");
  EXPECT_EQ(CreationError(kSorted, {&sort}), "tables[0]: a job of sort; accepted: a join, or a pipeline into build");
  const auto sums = Take(PipelineJob::Create(KernelOf("pipeline in=i64 | sort keys=i64:out [$0]")));
  EXPECT_EQ(CreationError(kSorted, {&sums}),
            "tables[0]: a job of pipeline; accepted: a join, or a pipeline into build");
  quern_job* none = nullptr;
  quern_job_options options = {};
  options.struct_size = sizeof(options);
  options.num_tables = 1;
  const quern::Kernel kernel = KernelOf(kSorted, Engine::kGeneric);
  quern_job* job;
  EXPECT_EQ(ErrorOf(QUERN_INVALID_ARGUMENT, quern_job_create, kernel.handle(), &options, &job),
            "null argument: tables; accepted: a pointer");
  options.tables = &none;
  EXPECT_EQ(ErrorOf(QUERN_INVALID_ARGUMENT, quern_job_create, kernel.handle(), &options, &job),
            "null argument: tables[0]; accepted: a pointer");
}

TEST(PipelineSpecCalls, OneTableForTwoStepsThatLeaveRows) {
  const std::string twice = "pipeline in=i64 | probe " + std::string(kJoin) +
                            " [$0; $0] | map in=i64:nullable out=coalesce($0,1:i64) [$0] | probe " + kJoin +
                            " [$2; $2] | sort keys=i64:nullable:out [$1]";
  const quern::Join table = Built(kJoin, {TableRows()}), other = Built(kJoin, {TableRows()});
  auto job = Take(PipelineJob::Create(KernelOf(twice), {&table, &table}));
  EXPECT_EQ(job.Rows().status().text(),
            "steps 0 and 2: one table, which has rows left when all probing is done; accepted: a table for each");
  Done(Take(PipelineJob::Create(KernelOf(twice), {&table, &other})).Rows().status());
}

TEST(PipelineSpecCalls, OptionsThatDoNotFit) {
  const quern::Join table = Built(kJoin, {TableRows()});
  const quern::Job* const job = &table;
  quern_job_options options = {};
  quern_job* handle = job->handle();
  options.tables = &handle;
  options.num_tables = 1;
  EXPECT_EQ(quern::Sort::Create(KernelOf("sort keys=i64:out"), options).status().text(),
            "tables of a job that is no pipeline: 1; accepted: 0");
  options = {};
  options.on_rows = OnRows;
  EXPECT_EQ(quern::Sort::Create(KernelOf("sort keys=i64:out"), options).status().text(),
            "on_rows for a job that is no pipeline: a function; accepted: NULL");
  EXPECT_EQ(CreationError(kSorted, {&table}, options),
            "on_rows for a pipeline that emits no rows: a function; accepted: NULL, or emit at its end");
  EXPECT_EQ(CreationError("pipeline in=i64 | filter i64 > 1 [$0] | emit [$0]", {}),
            "null argument: on_rows, for a pipeline that emits; accepted: a pointer");
  options = {};
  options.num_runs = 2;
  EXPECT_EQ(CreationError(kSorted, {&table}, options), "num_runs of a pipeline: 2; accepted: 0");
  EXPECT_EQ(CreationError("pipeline in=i64 | aggregate keys=i64 aggs=count_star [$0]", {}, options),
            "num_runs for a kernel that does not sort: 2; accepted: 0, or a kernel of sort");
}

TEST(PipelineSpecCalls, StepsOutOfRange) {
  const quern::Join table = Built(kJoin, {TableRows()});
  const auto job = Take(PipelineJob::Create(KernelOf(kSorted), {&table}));
  EXPECT_EQ(job.Step(2).status().text(), "step out of range: 2; accepted: 0 to 1");
  EXPECT_EQ(Take(job.Step(0)).Stats().num_rows, 3u);
  quern_job_options options = {};
  options.on_rows = OnRows;
  const auto emits =
      Take(PipelineJob::Create(KernelOf("pipeline in=i64 | filter i64 > 1 [$0] | emit [$0]"), {}, options));
  EXPECT_EQ(emits.Step(1).status().text(), "step out of range: 1; accepted: 0 to 0");
  quern_job* step;
  EXPECT_EQ(ErrorOf(QUERN_INVALID_ARGUMENT, quern_job_step, table.handle(), size_t{0}, &step),
            "job without steps: join; accepted: a pipeline");
  EXPECT_EQ(ErrorOf(QUERN_INVALID_ARGUMENT, quern_job_step, static_cast<quern_job*>(nullptr), size_t{0}, &step),
            "null argument: job; accepted: a pointer");
  EXPECT_EQ(ErrorOf(QUERN_INVALID_ARGUMENT, quern_job_step, job.handle(), size_t{0}, static_cast<quern_job**>(nullptr)),
            "null argument: of_step; accepted: a pointer");
}

// ---- the order of calls ---------------------------------------------------------------------------------------------

TEST(PipelineSpecCalls, InTheWrongOrder) {
  quern::Join table = New<quern::Join>(kJoin);
  auto job = Take(PipelineJob::Create(KernelOf(kSorted), {&table}));
  EXPECT_EQ(job.Rows().status().text(), "step 0: the join still has work; accepted: a join whose work is done");
  EXPECT_EQ(job.Work().status().text(), "step 0: the join still has work; accepted: a join whose work is done");
  Feed(table.Build(), {TableRows()});
  Done(table.Finalise());
  quern::Input input = Take(job.Rows()), idle = Take(job.Rows());
  Done(input.Append(SourceRows().batch()));
  const char* const open =
      "work before all inputs have finished: 1 with rows; accepted: after quern_input_finish of each";
  EXPECT_EQ(job.Work().status().text(), open);
  EXPECT_EQ(job.Finalise().text(), open);
  EXPECT_EQ(job.Run({}, {}).status().text(), open);
  EXPECT_EQ(job.NewOutput(QUERN_PORT_ROWS).status().text(),
            "output before all work is done: the sort still has work; accepted: after quern_job_finalise, or "
            "QUERN_WORK_DONE");
  Done(input.Finish());
  EXPECT_EQ(input.Append(SourceRows().batch()).text(),
            "append after finish: the rows were handed over; accepted: a new input");
  Done(job.Finalise());
  EXPECT_EQ(idle.Append(SourceRows().batch()).text(),
            "append after finalise: the rows are sorted; accepted: a new sort");
  EXPECT_EQ(job.Run({}, {}).status().text(), "run after finalise: the rows are sorted; accepted: a new sort");
  EXPECT_EQ(RowsOf(job.NewOutput(QUERN_PORT_ROWS), "ll"), (Lines{"10|10", "20|20", "null|30"}));
  Done(job.Finalise());
}

// What another pipeline still probes is not lost: the work begins again.
TEST(PipelineSpecCalls, WhileAnotherPipelineProbesTheTable) {
  const quern::Join table = Built(kJoin, {TableRows()});
  auto job = Take(PipelineJob::Create(KernelOf(kSorted), {&table})),
       other = Take(PipelineJob::Create(KernelOf(kSorted), {&table}));
  quern::Input of_other = Take(other.Rows());
  Done(of_other.Append(SourceRows().batch()));
  Feed(job.Rows(), {SourceRows()});
  const quern::Status early = job.Finalise();
  EXPECT_EQ(early.code(), QUERN_FAILED_PRECONDITION);
  EXPECT_EQ(early.text(),
            "QUERN_PORT_UNMATCHED before all inputs of pipelines have finished: 1 with rows; accepted: after "
            "quern_input_finish of each");
  Done(of_other.Finish());
  Done(job.Finalise());
  EXPECT_EQ(RowsOf(job.NewOutput(QUERN_PORT_ROWS), "ll"), (Lines{"10|10", "20|20", "null|30"}));
}

// The rows of an input that is destroyed are dropped, but the build rows that they have matched stay matched.
TEST(PipelineSpecCalls, InputsThatAreDestroyed) {
  const quern::Join table = Built(kJoin, {TableRows()});
  auto job = Take(PipelineJob::Create(KernelOf(kSorted), {&table}));
  {
    quern::Input input = Take(job.Rows());
    Done(input.Append(SourceRows().batch()));
  }
  Done(job.Finalise());
  EXPECT_EQ(RowsOf(job.NewOutput(QUERN_PORT_ROWS), "ll"), (Lines{"null|30"}));
}

TEST(PipelineSpecCalls, PortsThatAreNotThere) {
  const quern::Join table = Built(kJoin, {TableRows()});
  quern_job_options options = {};
  options.on_rows = OnRows;
  auto emits = Take(PipelineJob::Create(KernelOf("pipeline in=i64 | filter i64 > 1 [$0] | emit [$0]"), {}, options));
  EXPECT_EQ(emits.NewOutput(QUERN_PORT_ROWS).status().text(),
            "port that the pipeline does not have here: QUERN_PORT_ROWS; accepted: none, as it emits its rows");
  EXPECT_EQ(emits.NewInput(QUERN_PORT_BUILD).status().text(),
            "port that the pipeline does not have here: QUERN_PORT_BUILD; accepted: QUERN_PORT_ROWS");
  EXPECT_EQ(emits.Run({}, {}).status().text(),
            "run of a pipeline; accepted: a join, an aggregation or a sort, or a pipeline into one");
  auto sorts = Take(PipelineJob::Create(KernelOf(kSorted), {&table}));
  EXPECT_EQ(sorts.NewInput(QUERN_PORT_BUILD).status().text(),
            "port that the sort does not have here: QUERN_PORT_BUILD; accepted: QUERN_PORT_ROWS or "
            "QUERN_PORT_THRESHOLD");
  const quern_run_input input = {QUERN_PORT_PROBE, nullptr, 0};
  EXPECT_EQ(sorts.Run({&input, 1}, {}).status().text(), "port of a run's batches: 2; accepted: QUERN_PORT_ROWS (0)");
}

TEST(PipelineSpecCalls, Cancelling) {
  const quern::Join table = Built(kJoin, {TableRows()});
  auto job = Take(PipelineJob::Create(KernelOf(kSorted), {&table}));
  quern::Input input = Take(job.Rows());
  Done(input.Append(SourceRows().batch()));
  job.Cancel();
  EXPECT_EQ(input.Append(SourceRows().batch()).code(), QUERN_CANCELLED);
  EXPECT_EQ(input.Finish().code(), QUERN_CANCELLED);
  EXPECT_EQ(job.Work().status().code(), QUERN_CANCELLED);
  EXPECT_EQ(job.Finalise().code(), QUERN_CANCELLED);
  EXPECT_EQ(job.Rows().status().code(), QUERN_CANCELLED);
  // The table is not cancelled: another pipeline probes it.
  auto other = Take(PipelineJob::Create(KernelOf(kSorted), {&table}));
  Feed(other.Rows(), {SourceRows()});
}

// ---- refused memory -------------------------------------------------------------------------------------------------

// Whichever request of the end or of the steps is refused, while rows come or while the join's are sent: the same call
// again succeeds, or the job says that rows are lost.
TEST(PipelineSpecRefusals, LoseAndDoubleNothing) {
  std::mt19937_64 random(quern::test::SeedOfTest());
  Numbers keys, values, probed;
  std::vector<std::string> texts;
  for (int64_t i = 0; i < 3000; ++i) {
    keys.push_back(static_cast<int64_t>(random() % 2000));
    values.push_back(i);
    probed.push_back(static_cast<int64_t>(random() % 3000));
    texts.push_back("a long text of number " + std::to_string(i % 7));
  }
  const StringVector<int32_t> names(texts);
  const Table build = {{ColumnOf(keys)}, {ColumnOf(values), names.column()}, keys.size()},
              source = {{ColumnOf(probed), ColumnOf(values)}, {}, probed.size()};
  for (const char* end : {"sort keys=i64:out,i64:nullable:out,i64:nullable:out,utf8:nullable:out [$3, $0, $1, $2]",
                          "aggregate keys=utf8:nullable aggs=sum(i64),count(i64:nullable) [$2; $3, $0]"}) {
    const std::string join = "join.full keys=i64 build=i64,utf8 probe=i64";
    const std::string spec =
        "pipeline in=i64,i64 | probe " + join + " [$0; $1] | map in=i64:nullable out=coalesce($0,-5:i64) [$1] | " + end;
    const bool sorts = std::string(end).starts_with("sort");
    Lines expected;
    int64_t num_refused = 0, num_lost = 0;
    for (int64_t n = -1; n < 600; ++n) {
      const quern::Join table = Built(join, {build}, Engine::kGeneric);
      OneRefusal memory{-1};
      auto job =
          Take(PipelineJob::Create(KernelOf(spec, Engine::kGeneric, "piece_rows=700"), {&table}, memory.options()));
      quern::Input input = Take(job.Rows());
      memory.left = n;
      bool refused = !AppendTwice(&input, source);
      Done(input.Finish());
      quern::Status status = job.Finalise();
      if (!status.ok()) {
        refused = true;
        EXPECT_EQ(status.code(), QUERN_RESOURCE_EXHAUSTED) << status.text();
        status = job.Finalise();
      }
      num_refused += refused;
      if (!status.ok()) {
        ++num_lost;
        EXPECT_NE(status.code(), QUERN_INTERNAL) << status.text();
        EXPECT_FALSE(job.NewOutput(QUERN_PORT_ROWS).ok());
        continue;
      }
      const bool all_requests = memory.left >= 0 && n >= 0;
      memory.left = -1;
      const Lines lines = RowsOf(job.NewOutput(QUERN_PORT_ROWS), sorts ? "llls" : "sll");
      if (n == -1) expected = lines;
      ASSERT_EQ(lines, expected) << end << ", request " << n;
      if (all_requests) break;
    }
    EXPECT_GT(num_refused, 8) << end;
    EXPECT_LT(num_lost, num_refused) << end;
  }
}

// The same of the table's own account, by which its results are made: rows that could not be are lost, which is said.
TEST(PipelineSpecRefusals, OfTheTableAreSaid) {
  int64_t num_refused = 0;
  for (int64_t n = 1; n < 100; ++n) {
    RefusalsFrom memory;
    auto table = New<quern::Join>(kJoin, Engine::kGeneric, memory.options());
    Feed(table.Build(), {TableRows()});
    Done(table.Finalise());
    auto job = Take(PipelineJob::Create(KernelOf(kSorted, Engine::kGeneric), {&table}));
    Feed(job.Rows(), {SourceRows()});
    memory.left = n;
    quern::Status status = job.Finalise();
    memory.left = -1;
    const bool is_refused = !status.ok();
    if (is_refused) {
      ++num_refused;
      EXPECT_EQ(status.code(), QUERN_RESOURCE_EXHAUSTED) << status.text();
      status = job.Finalise();
    }
    if (status.ok()) {
      EXPECT_EQ(RowsOf(job.NewOutput(QUERN_PORT_ROWS), "ll"), (Lines{"10|10", "20|20", "null|30"}));
    } else {
      EXPECT_EQ(status.text(), "work after a failure: rows that a join had left are lost; accepted: a new job");
    }
    if (!is_refused) break;
  }
  EXPECT_GT(num_refused, 0);
}

// A job that is destroyed while it sends what a join has left gives all memory back.
TEST(PipelineSpecRefusals, OfJobsThatAreDestroyedInTheMidst) {
  const Numbers keys(200000, 7), probed = {1};
  HostMemory memory;
  for (const bool emits : {false, true}) {
    const quern::Join copy = Built(kJoin, {{{ColumnOf(keys)}, {ColumnOf(keys)}, keys.size()}});
    quern_job_options options = memory.options();
    if (emits) options.on_rows = OnRows;
    auto job = Take(PipelineJob::Create(
        KernelOf("pipeline in=i64,i64 | probe " + std::string(kJoin) + " [$0; $1]" +
                 " | map in=i64 out=add($0,1:i64) [$1] | " + (emits ? "emit [$2]" : "sort keys=i64:out [$2]")),
        {&copy}, options));
    Feed(job.Rows(), {{{ColumnOf(probed), ColumnOf(probed)}, {}, 1}});
    EXPECT_EQ(Take(job.Work()), QUERN_WORK_MORE);
    EXPECT_GT(memory.used, 0);
  }
  EXPECT_EQ(memory.used, 0);
}

// ---- Arrow ----------------------------------------------------------------------------------------------------------

const int32_t kFirst[] = {0}, kSecond[] = {1}, kBoth[] = {0, 1}, kThree[] = {0, 1, 2};

std::string FieldsOf(const quern::Job& job, quern_port port) {
  ArrowSchema schema;
  const quern::Status status = job.ResultSchema(port, &schema);
  return status.ok() ? TakeFields(&schema) : status.text();
}

std::span<const int32_t> Children(const int32_t* numbers, size_t count) { return {numbers, count}; }

TEST(PipelineSpecArrow, FieldsPassFiltersMapsAndProbes) {
  const TestSchema source({{"day", "tdD"}, {"item", "l"}, {"price", "d:15,2"}}),
      items({{"item", "l"}, {"at", "tsm:UTC"}});
  const std::string steps =
      "pipeline in=date32,i64,decimal128(15,2) | filter date32 > 5 [$0]"
      " | map in=decimal128(15,2) out=multiply($0,$0) [$2]"
      " | probe join.left keys=i64 build=timestamp probe=decimal128,decimal128 [$1; $2, $3]";
  const std::string sorts = steps + " | sort keys=decimal128:out payload=timestamp:nullable,decimal128 [$1; $2, $0]";
  const std::string groups = steps + " | aggregate keys=timestamp:nullable aggs=sum(decimal128),count_star [$2; $1]";
  quern::Join table = New<quern::Join>("join.left keys=i64 build=timestamp probe=decimal128,decimal128");
  auto sort = Take(PipelineJob::Create(KernelOf(sorts), {&table})),
       group = Take(PipelineJob::Create(KernelOf(groups), {&table}));
  EXPECT_EQ(FieldsOf(sort, QUERN_PORT_ROWS),
            "Arrow columns not bound: the port pipeline has no binding; accepted: after quern_job_bind_arrow");
  Done(sort.BindArrow(QUERN_PORT_ROWS, {&source.schema, Children(kThree, 3), {}}));
  Done(group.BindArrow(QUERN_PORT_ROWS, {&source.schema, Children(kThree, 3), {}}));
  EXPECT_EQ(FieldsOf(sort, QUERN_PORT_ROWS),
            "Arrow columns not bound: the port build has no binding; accepted: after quern_job_bind_arrow");
  Done(table.BindArrow(QUERN_PORT_BUILD, {&items.schema, Children(kFirst, 1), Children(kSecond, 1)}));
  EXPECT_EQ(FieldsOf(sort, QUERN_PORT_ROWS), "multiply($0,$0):d:30,4 at:tsm:UTC? price:d:15,2");
  EXPECT_EQ(FieldsOf(group, QUERN_PORT_ROWS), "at:tsm:UTC? sum(decimal128):d:38,4 count_star:l");
  EXPECT_EQ(FieldsOf(group, QUERN_PORT_STATES), "at:tsm:UTC? sum(decimal128):z count_star:z");
  EXPECT_EQ(sort.BindArrow(QUERN_PORT_ROWS, {&source.schema, Children(kThree, 3), {}}).text(),
            "Arrow columns bound twice: the port pipeline has a binding; accepted: a new job");
}

TEST(PipelineSpecArrow, DecimalsOfAnotherScaleAreRefused) {
  const TestSchema source({{"price", "d:15,3"}}), right({{"price", "d:15,2"}});
  for (const char* params : {"fuse=auto", "fuse=off"}) {
    auto job = Take(
        PipelineJob::Create(KernelOf("pipeline in=decimal128(15,2) | map in=decimal128(15,2) out=multiply($0,$0) [$0]"
                                     " | aggregate aggs=max(decimal128) [; $1]",
                                     Engine::kGeneric, params)));
    const bool is_fused = std::string(params) == "fuse=auto";
    EXPECT_EQ(job.BindArrow(QUERN_PORT_ROWS, {&source.schema, Children(kFirst, 1), {}}).text(),
              is_fused ? "format of aggregate column 0: d:15,3; accepted: d:15,2"
                       : "format of map input column 0: d:15,3; accepted: d:15,2");
    Done(job.BindArrow(QUERN_PORT_ROWS, {&right.schema, Children(kFirst, 1), {}}));
    EXPECT_EQ(FieldsOf(job, QUERN_PORT_ROWS), "max(decimal128):d:30,4?");
  }
}

TEST(PipelineSpecArrow, UnitsOfKeysAreThoseOfTheTable) {
  const TestSchema micros({{"at", "tsu:"}}), millis({{"at", "tsm:"}});
  for (const char* word : {"probe", "reduce"}) {
    const std::string join = "join.semi keys=timestamp" + std::string(" probe=timestamp");
    quern::Join table = New<quern::Join>(join);
    Done(table.BindArrow(QUERN_PORT_BUILD, {&millis.schema, Children(kFirst, 1), {}}));
    auto job =
        Take(PipelineJob::Create(KernelOf("pipeline in=timestamp | " + std::string(word) + " " + join +
                                          (*word == 'p' ? " [$0; $0]" : " [$0]") + " | sort keys=timestamp:out [$0]"),
                                 {&table}));
    EXPECT_EQ(job.BindArrow(QUERN_PORT_ROWS, {&micros.schema, Children(kFirst, 1), {}}).text(),
              "keys of different units: keys[0] is tsm: on the build side, tsu: on the probe side; accepted: the same "
              "unit or "
              "scale")
        << word;
    Done(job.BindArrow(QUERN_PORT_ROWS, {&millis.schema, Children(kFirst, 1), {}}));
  }
}

TEST(PipelineSpecArrow, TablesOfPipelinesAreProbed) {
  const TestSchema source({{"id", "l"}, {"price", "l"}}), probes({{"order", "l"}});
  auto table =
      Take(PipelineJob::Create(KernelOf("pipeline in=i64,i64 | map in=i64 out=add($0,1:i64) [$1]"
                                        " | build join.left keys=i64 build=i64,i64 probe=i64 [$0; $1, $2]")));
  auto rows =
      Take(PipelineJob::Create(KernelOf("pipeline in=i64 | probe join.left keys=i64 build=i64,i64 probe=i64 [$0; $0]"
                                        " | sort keys=i64:out payload=i64:nullable,i64:nullable [$0; $2, $1]"),
                               {&table}));
  Done(table.BindArrow(QUERN_PORT_PROBE, {&probes.schema, Children(kFirst, 1), Children(kFirst, 1)}));
  Done(rows.BindArrow(QUERN_PORT_ROWS, {&probes.schema, Children(kFirst, 1), {}}));
  EXPECT_EQ(FieldsOf(rows, QUERN_PORT_ROWS),
            "Arrow columns not bound: the port pipeline has no binding; accepted: after quern_job_bind_arrow");
  Done(table.BindArrow(QUERN_PORT_ROWS, {&source.schema, Children(kBoth, 2), {}}));
  EXPECT_EQ(FieldsOf(rows, QUERN_PORT_ROWS), "order:l add($0,1:i64):l? price:l?");
  EXPECT_EQ(FieldsOf(table, QUERN_PORT_PROBE), "order:l price:l? add($0,1:i64):l?");
  // Rows 1 and 2 of a slice, and of the second array some.
  quern::Input build = Take(table.Rows());
  auto batch = StructArray(2, FixedArray(Numbers{7, 1, 2}), FixedArray(Numbers{70, 10, 20}));
  batch->array.offset = 1;
  Done(build.AppendArrow(&batch->array));
  Done(build.Finish());
  Done(table.Finalise());
  quern::Input input = Take(rows.Rows());
  auto probed = StructArray(4, FixedArray(Numbers{1, 2, 7, 9}));
  const uint32_t selection[] = {3, 1, 0};
  const quern_arrow_rows some = {sizeof(quern_arrow_rows), selection, 3, 0};
  Done(input.AppendArrow(&probed->array, &some));
  Done(input.Finish());
  Done(rows.Finalise());
  quern::Output sorted = Take(rows.NewOutput(QUERN_PORT_ROWS));
  EXPECT_EQ(ArrowLines(&sorted, "lll"), (Lines{"1|11|10", "2|21|20", "9|null|null"}));
  auto one = StructArray(1, FixedArray(Numbers{2}));
  quern::Output probe = Take(table.NewOutput(QUERN_PORT_PROBE));
  Done(probe.PushArrow(&one->array));
  EXPECT_EQ(ArrowLines(&probe, "lll"), Lines{"2|20|21"});
}

// Of arrays without ids, rows are numbered over all inputs.
TEST(PipelineSpecArrow, RowsAreNumberedOverAllInputs) {
  const TestSchema source({{"id", "l"}});
  auto job = Take(PipelineJob::Create(
      KernelOf("pipeline in=i64 | filter i64 > 1 [$0] | sort keys=i64:out payload=rowid [$0; $0]")));
  Done(job.BindArrow(QUERN_PORT_ROWS, {&source.schema, Children(kFirst, 1), {}}));
  EXPECT_EQ(FieldsOf(job, QUERN_PORT_ROWS), "id:l rowid:L");
  for (int64_t i = 0; i < 2; ++i) {
    quern::Input input = Take(job.Rows());
    auto batch = StructArray(2, FixedArray(Numbers{1, 5 + i}));
    Done(input.AppendArrow(&batch->array));
    Done(input.Finish());
  }
  Done(job.Finalise());
  EXPECT_EQ(RowsOf(job.NewOutput(QUERN_PORT_ROWS), "lr"), (Lines{"5|1", "6|3"}));
}

}  // namespace
}  // namespace quern_test
