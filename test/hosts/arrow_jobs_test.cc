// SPDX-License-Identifier: Apache-2.0
// Arrow arrays as the input and output of jobs: who owns what and until when, row ids, selections beside an array, and
// arrays that are refused. (Schemas and ill-formed arrays: arrow_schemas_test.cc.)
#include <gtest/gtest.h>

#include <numeric>

#include "test/hosts/arrow_results.h"
#include "test/hosts/operators.h"

namespace quern_test {
namespace {

// Columns: {name: utf8, k: int64}. Arrays are declared before what they are moved into, since they must outlive it.
const TestSchema& Schema() {
  static const TestSchema schema({{"name", "u"}, {"k", "l"}});
  return schema;
}
constexpr int32_t kKey[] = {1}, kNames[] = {0, -1};

std::string NameOf(int64_t key) { return "the name of number " + std::to_string(key); }

TestArrayPtr Batch(const std::vector<int64_t>& keys) {
  std::vector<std::string> names;
  for (const int64_t key : keys) names.push_back(NameOf(key));
  return StructArray(static_cast<int64_t>(keys.size()), Utf8Array(names), FixedArray<int64_t>(keys));
}

// A selection with a memory of its own, which a test may spoil.
struct Selection {
  explicit Selection(std::vector<uint32_t> numbers, uint64_t first_row_id = 0) : chosen(std::move(numbers)) {
    rows = {sizeof(rows), chosen.data(), chosen.size(), first_row_id};
  }
  void Spoil() { std::fill(chosen.begin(), chosen.end(), UINT32_MAX); }

  std::vector<uint32_t> chosen;
  quern_arrow_rows rows = {};
};

// An operator with a spec of Schema(), whose results are a name and what row ids decide.
struct ArrowCase {
  Operator op;
  const char* spec;
  const char* kinds;
  bool keeps_arrays;     // as long as the job lives
  const char* no_names;  // a spec without strings
};

std::ostream& operator<<(std::ostream& out, const ArrowCase& given) { return out << given.op.name; }

const ArrowCase kCases[] = {
    {kJoin, "join.right_anti keys=i64 build=utf8,rowid", "sr", true, "join.right_anti keys=i64 build=i64"},
    {kAggregation, "aggregate keys=i64 aggs=first(utf8)", "ls", false, "aggregate keys=i64 aggs=sum(i64)"},
    {kSort, "sort keys=i64 payload=utf8,rowid stable", "sr", true, "sort keys=i64:out payload=i64"},
    {kMerge, "sort keys=i64 payload=utf8,rowid", "sr", false, "sort keys=i64:out payload=i64"}};

class ArrowJobs : public testing::TestWithParam<ArrowCase> {
 protected:
  quern::Job Bound(const char* spec = nullptr) const {
    quern::Job job = NewJob(op, {}, spec == nullptr ? GetParam().spec : spec);
    Done(job.BindArrow(op.input, {&Schema().schema, kKey, spec == nullptr ? std::span<const int32_t>(kNames) : kKey}));
    if (op.input == QUERN_PORT_BUILD) Done(job.BindArrow(QUERN_PORT_PROBE, {&Schema().schema, kKey, {}}));
    return job;
  }
  const Operator& op = GetParam().op;
};
class ArrowSinks : public ArrowJobs {};

const auto kNameOfCase = [](const auto& info) { return std::string(info.param.op.name); };
INSTANTIATE_TEST_SUITE_P(Operators, ArrowJobs, testing::ValuesIn(kCases), kNameOfCase);
INSTANTIATE_TEST_SUITE_P(Operators, ArrowSinks, testing::Values(kCases[0], kCases[1], kCases[2]), kNameOfCase);

// ---- ownership ----

TEST_P(ArrowSinks, KeepArraysAsLongAsTheyReadThem) {
  auto batch = Batch({5, 6}), no_names = Batch({7, 8});
  const int kept = GetParam().keeps_arrays ? 0 : 1;
  ArrowArray rows;
  {
    quern::Job job = Bound();
    quern::Input input = Take(job.NewInput(op.input));
    Done(input.AppendArrow(&batch->array));
    EXPECT_EQ(batch->array.release, nullptr) << "moved in";
    EXPECT_EQ(batch->times_released, kept);
    Done(input.Finish());
    Done(job.Finalise());
    quern::Output output = Take(job.NewOutput(op.output));
    job = Bound(GetParam().no_names);
    EXPECT_EQ(batch->times_released, kept) << "the output keeps the job";
    Take(output.NextArrow(&rows));
    Done(Take(job.NewInput(op.input)).AppendArrow(&no_names->array));
    EXPECT_EQ(no_names->times_released, 1) << "nothing is kept of it";
  }
  EXPECT_EQ(batch->times_released, 1);
  const Lines lines = Ordered(TakeLines(&rows, GetParam().kinds));
  EXPECT_EQ(lines, op.name == std::string("Aggregation") ? (Lines{"5|" + NameOf(5), "6|" + NameOf(6)})
                                                         : (Lines{NameOf(5) + "|0", NameOf(6) + "|1"}))
      << "they outlive all handles";
}

// `copy_bytes`: what the job keeps of an array is copied, and the array goes at once; through a pipeline, too.
TEST_P(ArrowSinks, CopyStringsOfArrays) {
  for (const bool has_pipeline : {false, true}) {
    auto batch = Batch({5, 6});
    quern::Job job = Bound();
    quern_input_options options = {};
    options.copy_bytes = true;
    const auto of_pipeline = [&] {
      const auto filter = New<quern::Job>("filter i64 >= 0");
      const std::vector<uint32_t> names =
          GetParam().keeps_arrays ? std::vector<uint32_t>{0, 0} : std::vector<uint32_t>{0};
      return quern::Pipeline("utf8,i64").Through(filter, {1}).Into(job, op.input, {1}, names, 0, StringBytes::kCopied);
    };
    quern::Input input = Take(has_pipeline ? of_pipeline() : job.NewInput(op.input, options));
    Done(input.AppendArrow(&batch->array));
    EXPECT_EQ(batch->times_released, 1);
    Done(input.Finish());
    Done(job.Finalise());
    ArrowArray rows;
    Take(Take(job.NewOutput(op.output)).NextArrow(&rows));
    const Lines lines = Ordered(TakeLines(&rows, GetParam().kinds));
    EXPECT_EQ(lines, op.name == std::string("Aggregation") ? (Lines{"5|" + NameOf(5), "6|" + NameOf(6)})
                                                           : (Lines{NameOf(5) + "|0", NameOf(6) + "|1"}));
  }
}

TEST(ArrowSorts, CopyTheFewStringsUnderALimit) {
  auto batch = Batch({3, 1, 2});
  quern::Sort sort = New<quern::Sort>("sort keys=i64 payload=utf8,rowid limit=2");
  Done(sort.BindArrow(QUERN_PORT_ROWS, {&Schema().schema, kKey, kNames}));
  quern::Input rows = Take(sort.Rows());
  Done(rows.AppendArrow(&batch->array));
  EXPECT_EQ(batch->times_released, 1) << "nothing is kept of it";
  Done(rows.Finish());
  Done(sort.Finalise());
  quern::Output sorted = Take(sort.Sorted());
  EXPECT_EQ(ArrowLines(&sorted, "sr"), (Lines{NameOf(1) + "|1", NameOf(2) + "|2"}));
}

TEST_P(ArrowSinks, ReleaseArraysThatFindNoMemory) {
  std::vector<int64_t> keys(100000);
  std::iota(keys.begin(), keys.end(), 0);
  quern::Job job = NewJob(op, LimitedTo(100000), GetParam().no_names);
  Done(job.BindArrow(op.input, {&Schema().schema, kKey, kKey}));
  quern::Input input = Take(job.NewInput(op.input));
  const quern::Status status = RefusalOf(Batch(keys), [&](ArrowArray* array) { return input.AppendArrow(array); });
  EXPECT_EQ(status.code(), QUERN_RESOURCE_EXHAUSTED);
}

TEST(ArrowProbes, KeepTheArrayTheyProbe) {
  auto build = Batch({3, 1}), probe = Batch({3, 9, 1, 3}), before = Batch({3});
  quern::Join join = New<quern::Join>("join.full keys=i64 build=utf8 probe=utf8,rowid");
  Done(join.BindArrow(QUERN_PORT_BUILD, {&Schema().schema, kKey, kNames}));
  Done(join.BindArrow(QUERN_PORT_PROBE, {&Schema().schema, kKey, kNames}));
  quern::Input input = Take(join.Build());
  Done(input.AppendArrow(&build->array));
  Done(input.Finish());
  Done(join.Finalise());
  quern::Output probed = Take(join.Probe(1));
  Done(probed.PushArrow(&before->array));
  Done(probed.PushArrow(&probe->array));
  EXPECT_EQ(before->times_released, 1) << "it was pushed away, and its row ids count";
  EXPECT_EQ(probe->array.release, nullptr);
  EXPECT_EQ(probe->times_released, 0);
  const std::string one = NameOf(1), three = NameOf(3), nine = NameOf(9);
  EXPECT_EQ(Ordered(ArrowLines(&probed, "srs")),
            (Lines{one + "|3|" + one, three + "|1|" + three, three + "|4|" + three, nine + "|2|null"}));
}

TEST(ArrowProbes, MayMeetABuildSideOfTheHostsVectors) {
  auto probe = Batch({3, 9, 1, 3});
  quern::Join join = New<quern::Join>("join.inner keys=i64 build=rowid probe=rowid");
  const std::vector<int64_t> numbers = {3, 1};
  Feed(join.Build(), {{{ColumnOf(numbers)}, {quern_column{}}, 2}});
  Done(join.Finalise());
  const int32_t rowid[] = {-1};
  Done(join.BindArrow(QUERN_PORT_PROBE, {&Schema().schema, kKey, rowid}));
  quern::Output probed = Take(join.Probe());
  Done(probed.PushArrow(&probe->array));
  EXPECT_EQ(RowsOf(&probed, "rr"), (Lines{"0|0", "2|1", "3|0"}));
}

TEST(ArrowProbes, ThatOnlyCountGiveAnArrayWithoutChildren) {
  auto probe = Batch({3, 9, 1, 3});
  quern::Join join = New<quern::Join>("join.inner keys=i64");
  const std::vector<int64_t> numbers = {3, 1};
  Feed(join.Build(), {{{ColumnOf(numbers)}, {}, 2}});
  Done(join.Finalise());
  Done(join.BindArrow(QUERN_PORT_PROBE, {&Schema().schema, kKey, {}}));
  quern::Output probed = Take(join.Probe());
  Done(probed.PushArrow(&probe->array));
  ArrowArray rows;
  EXPECT_EQ(Take(probed.NextArrow(&rows))->num_rows, 3u);
  EXPECT_EQ(rows.length, 3);
  EXPECT_EQ(rows.n_children, 0);
  rows.release(&rows);
}

TEST(ArrowStates, GoFromOneAggregationToAnother) {
  const char* const spec = "aggregate keys=i64 aggs=count_star,first(utf8)";
  auto batch = Batch({1, 2, 1, 3});
  quern::Aggregate from = New<quern::Aggregate>(spec), into = New<quern::Aggregate>(spec);
  Done(from.BindArrow(QUERN_PORT_ROWS, {&Schema().schema, kKey, kNames}));
  quern::Input rows = Take(from.Rows()), states = Take(into.States());
  Done(rows.AppendArrow(&batch->array));
  Done(rows.Finish());
  Done(from.Finalise());
  quern::Output groups = Take(from.GroupStates(BatchRows(2)));
  for (quern_result_state state = QUERN_RESULT_MORE; state == QUERN_RESULT_MORE;) {
    ArrowArray some;
    state = Take(groups.NextArrow(&some))->state;
    Done(states.AppendArrow(&some));  // by position, without a binding
    EXPECT_EQ(some.release, nullptr);
  }
  const auto refusal = [&](TestArrayPtr array) {
    return RefusalOf(std::move(array), [&](ArrowArray* given) { return states.AppendArrow(given); }).text();
  };
  EXPECT_EQ(refusal(StructArray(1, FixedArray<int64_t>({1}))), "wrong number of columns of states: 1; accepted: 3");
  EXPECT_EQ(refusal(StructArray(1, FixedArray<int64_t>({1}), FixedArray<int64_t>({1}), FixedArray<int64_t>({1}))),
            "wrong number of buffers of column payload[0]: 2; accepted: 3");
  Done(states.Finish());
  Done(into.Finalise());
  EXPECT_EQ(RowsOf(into.Groups(), "lls"), (Lines{"1|2|" + NameOf(1), "2|1|" + NameOf(2), "3|1|" + NameOf(3)}));
}

// ---- row ids, and some rows of an array ----

// Feeds arrays with these selections (null: all rows) by one input, and returns the rows.
Lines RowsWith(quern::Job* job, const ArrowCase& given, std::vector<TestArrayPtr>* arrays,
               std::vector<Selection*> selections) {
  quern::Input input = Take(job->NewInput(given.op.input));
  for (size_t i = 0; i < arrays->size(); ++i) {
    Done(input.AppendArrow(&(*arrays)[i]->array, selections[i] == nullptr ? nullptr : &selections[i]->rows));
    if (selections[i] != nullptr) selections[i]->Spoil();  // only read during the call
  }
  Done(input.Finish());
  Done(job->Finalise());
  quern::Output output = Take(job->NewOutput(given.op.output));
  return Ordered(ArrowLines(&output, given.kinds));
}

std::vector<TestArrayPtr> Arrays(const std::vector<std::vector<int64_t>>& keys) {
  std::vector<TestArrayPtr> arrays;
  for (const std::vector<int64_t>& some : keys) arrays.push_back(Batch(some));
  return arrays;
}

TEST_P(ArrowSinks, CountRowIdsOnFromBatchToBatch) {
  auto arrays = Arrays({{5, 6}, {7}, {5}});
  quern::Job job = Bound();
  const Lines rows = RowsWith(&job, GetParam(), &arrays, {nullptr, nullptr, nullptr});
  const Lines groups = {"5|" + NameOf(5), "6|" + NameOf(6), "7|" + NameOf(7)};
  EXPECT_EQ(rows, op.name == std::string("Aggregation")
                      ? groups
                      : (Lines{NameOf(5) + "|0", NameOf(5) + "|3", NameOf(6) + "|1", NameOf(7) + "|2"}));
}

TEST_P(ArrowSinks, TakeTheSelectedRowsOfAnArray) {
  auto arrays = Arrays({{5, 6, 7, 8}, {9, 9, 4}, {5}});
  arrays[1]->array.offset = 1;  // {9, 4}
  arrays[1]->array.length = 2;
  Selection first({3, 1}, 100), second({1}, 1000), none({}, 7);
  quern::Job job = Bound();
  const Lines rows = RowsWith(&job, GetParam(), &arrays, {&first, &second, &none});
  EXPECT_EQ(rows, op.name == std::string("Aggregation")
                      ? (Lines{"4|" + NameOf(4), "6|" + NameOf(6), "8|" + NameOf(8)})
                      : (Lines{NameOf(4) + "|1001", NameOf(6) + "|101", NameOf(8) + "|103"}));
}

TEST(ArrowRows, OfProbesAndMergesStayUntilTheyAreRead) {
  auto probe = Batch({8, 7, 6, 5}), run = Batch({9, 1, 3, 0});
  Selection probed({0, 3}, 10), rising({3, 1, 2}, 20);
  quern::Join join = New<quern::Join>("join.anti keys=i64 probe=utf8,rowid");
  Done(join.Finalise());
  Done(join.BindArrow(QUERN_PORT_PROBE, {&Schema().schema, kKey, kNames}));
  quern::Output output = Take(join.Probe());
  Done(output.PushArrow(&probe->array, &probed.rows));
  EXPECT_EQ(Ordered(ArrowLines(&output, "sr")), (Lines{NameOf(5) + "|13", NameOf(8) + "|10"}));
  quern::Merge merge = Take(quern::Merge::Create(KernelOf("sort keys=i64:out payload=utf8,rowid"), 1));
  Done(merge.BindArrow(QUERN_PORT_ROWS, {&Schema().schema, kKey, kNames}));
  quern::Input input = Take(merge.RunInput(0));
  Done(input.AppendArrow(&run->array, &rising.rows));
  Done(input.Finish());
  quern::Output merged = Take(merge.Merged());
  EXPECT_EQ(ArrowLines(&merged, "lsr"),
            (Lines{"0|" + NameOf(0) + "|23", "1|" + NameOf(1) + "|21", "3|" + NameOf(3) + "|22"}));
}

// Row ids say what comes first, whichever batch comes first.
TEST(ArrowRows, OrderWhatAggregatesTake) {
  const TestSchema schema({{"g", "i"}, {"s", "u"}});
  const int32_t key[] = {0}, payload[] = {1, 1};
  quern::Aggregate aggregate = New<quern::Aggregate>("aggregate keys=i32 aggs=first(utf8),string_agg(utf8,x'2c')");
  Done(aggregate.BindArrow(QUERN_PORT_ROWS, {&schema.schema, key, payload}));
  quern::Input input = Take(aggregate.Rows());
  for (const int part : {2, 0, 1}) {
    auto batch = StructArray(3, FixedArray<int32_t>({4, 4, 4}),
                             Utf8Array({std::to_string(part) + "a", "not this", std::to_string(part) + "c"}));
    Selection rows({0, 2}, static_cast<uint64_t>(part) * 3);
    Done(input.AppendArrow(&batch->array, &rows.rows));
  }
  Done(input.Finish());
  Done(aggregate.Finalise());
  EXPECT_EQ(RowsOf(aggregate.Groups(), "iss"), (Lines{"4|0a|0a,0c,1a,1c,2a,2c"}));
}

// What a filter writes is what the others take.
TEST(ArrowRows, OfAFilter) {
  quern::Filter filter = New<quern::Filter>("filter i64 >= 3");
  Done(filter.BindArrow(QUERN_PORT_ROWS, {&Schema().schema, kKey, {}}));
  auto batch = Batch({4, 1, 3, 5});
  const Selection first_three({0, 1, 2});
  Selection rows({0, 0, 0});
  rows.rows.num_rows = Take(filter.SelectArrow(batch->array, rows.chosen.data(), &first_three.rows));
  quern::Aggregate aggregate = New<quern::Aggregate>("aggregate aggs=sum(i64)");
  Done(aggregate.BindArrow(QUERN_PORT_ROWS, {&Schema().schema, {}, kKey}));
  quern::Input input = Take(aggregate.Rows());
  Done(input.AppendArrow(&batch->array, &rows.rows));
  Done(input.Finish());
  Done(aggregate.Finalise());
  EXPECT_EQ(RowsOf(aggregate.Groups(), "l"), (Lines{"7"}));
}

// ---- refusals ----

TEST_P(ArrowJobs, RefuseArraysInTheWrongOrder) {
  quern::Job unbound = NewJob(op, {}, GetParam().spec), job = Bound();
  quern::Input early = Take(unbound.NewInput(op.input)), input = Take(job.NewInput(op.input)),
               late = Take(job.NewInput(op.input));
  const auto refusal = [](quern::Input* into) {
    const quern::Status status = RefusalOf(Batch({1}), [&](ArrowArray* array) { return into->AppendArrow(array); });
    EXPECT_EQ(status.code(), QUERN_FAILED_PRECONDITION);
    return status.text();
  };
  const std::string has_none = std::string("Arrow columns not bound: the port ") + op.side +
                               " has no binding; accepted: after quern_job_bind_arrow";
  EXPECT_EQ(refusal(&early), has_none);
  ArrowSchema schema;
  EXPECT_EQ(unbound.ResultSchema(op.output, &schema).text(), has_none);
  const quern::Status twice = job.BindArrow(op.input, {&Schema().schema, kKey, kNames});
  EXPECT_EQ(twice.text(),
            std::string("Arrow columns bound twice: the port ") + op.side + " has a binding; accepted: a new job");
  EXPECT_EQ(twice.code(), QUERN_FAILED_PRECONDITION);
  Done(input.Finish());
  if (op.num_runs != 0) return;  // in a merge, whose run has ended: merge_test.cc
  EXPECT_EQ(refusal(&input), "append after finish: the rows were handed over; accepted: a new input");
  Done(job.Finalise());
  EXPECT_EQ(refusal(&late), std::string("append after finalise: ") + op.complete + "; accepted: a new " + op.job);
}

TEST_P(ArrowJobs, AreUnchangedByAnArrayThatWasRefused) {
  auto good = Batch({5, 6});
  quern::Job job = Bound();
  quern::Input input = Take(job.NewInput(op.input));
  const auto refusal = [&](TestArrayPtr array, const quern_arrow_rows* rows = nullptr) {
    const quern::Status status =
        RefusalOf(std::move(array), [&](ArrowArray* given) { return input.AppendArrow(given, rows); });
    EXPECT_EQ(status.code(), QUERN_INVALID_ARGUMENT);
    return status.text();
  };
  auto batch = Batch({1, 2});
  batch->children[0]->array.length = 1;
  EXPECT_EQ(refusal(std::move(batch)), "too few rows of column payload[0]: 1; accepted: 2 or more");
  ArrowArray released = {};
  EXPECT_EQ(input.AppendArrow(&released).text(),
            "released array: no release callback; accepted: a struct array that is alive");
  const Selection beyond({1, 0, 2, 7}), first({0});
  EXPECT_EQ(refusal(Batch({1, 2}), &beyond.rows),
            "selection of a row that is not there: selection[2] is 2; accepted: 0 to 1");
  EXPECT_EQ(refusal(Batch({}), &first.rows),
            "selection of a row that is not there: selection[0] is 0; accepted: no row, as the array has none");
  const quern_arrow_rows too_many = {sizeof(too_many), first.chosen.data(), UINT64_MAX, 0},
                         three = {sizeof(three), nullptr, 3, 0};
  EXPECT_EQ(refusal(Batch({1, 2}), &too_many),
            "batch too large: 18446744073709551615 rows; accepted: below 4294967295");
  EXPECT_EQ(refusal(Batch({1, 2}), &three), "more rows than the array has: 3; accepted: 0 to 2, or a selection");
  Done(input.AppendArrow(&good->array));
  Done(input.Finish());
  Done(job.Finalise());
  EXPECT_EQ(RowsOf(job.NewOutput(op.output), GetParam().kinds).size(), 2u);
}

}  // namespace
}  // namespace quern_test
