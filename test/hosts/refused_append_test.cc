// SPDX-License-Identifier: Apache-2.0
// Appends to which the host's account refuses memory: the host makes room and repeats them, or makes room before it
// answers. (Refusals of every allocation of small jobs: test/refusals.)
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "test/hosts/jobs.h"
#include "test/refusals/row_sum.h"

namespace quern_test {
namespace {

struct Case {
  const char* name;
  const char* spec;
  const char* kinds;
  quern_port input, output;
};

std::ostream& operator<<(std::ostream& out, const Case& given) { return out << given.name; }

class RefusedCopies : public testing::TestWithParam<Case> {
 protected:
  static Table TableOf(const StringVector<int32_t>& texts, const std::vector<int64_t>& numbers) {
    return {{texts.column()}, {ColumnOf(numbers)}, numbers.size()};
  }
};

// Strings that are copied need memory before the first row is stored.
TEST_P(RefusedCopies, MayBeRepeatedWhereNoRowWasAdded) {
  const Case& given = GetParam();
  const StringVector<int32_t> first({"a", "the second text of the first batch"}), second({std::string(5000, 'c'), "d"});
  const std::vector<int64_t> numbers = {1, 2}, others = {3, 4};
  for (const Engine engine : {Engine::kJit, Engine::kGeneric}) {
    HostMemory memory;
    const quern::Kernel kernel = KernelOf(given.spec, engine);
    const auto rows_of = [&](bool refuses) {
      quern::Job job = Take(quern::Job::Create(kernel, memory.options()));
      quern_input_options options = {};
      options.copy_bytes = true;
      quern::Input input = Take(job.NewInput(given.input, options));
      Done(input.Append(TableOf(first, numbers).batch()));
      if (refuses) {
        memory.limit = memory.used.load();
        for (int i = 0; i < 3; ++i)
          EXPECT_EQ(input.Append(TableOf(second, others).batch()).code(), QUERN_RESOURCE_EXHAUSTED);
        EXPECT_EQ(memory.used, memory.limit) << "a refused call keeps nothing";
        memory.limit = INT64_MAX;
      }
      Done(input.Append(TableOf(second, others).batch()));
      Done(input.Finish());
      Done(job.Finalise());
      return RowsOf(job.NewOutput(given.output), given.kinds);
    };
    const Lines expected = rows_of(false);
    EXPECT_EQ(expected.size(), 4u);
    EXPECT_EQ(rows_of(true), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Operators, RefusedCopies,
    testing::Values(Case{"Join", "join.right_anti keys=utf8 build=i64", "l", QUERN_PORT_BUILD, QUERN_PORT_UNMATCHED},
                    Case{"Sort", "sort keys=utf8:out payload=i64", "sl", QUERN_PORT_ROWS, QUERN_PORT_ROWS}),
    [](const auto& info) { return std::string(info.param.name); });

// ---- refusals in the midst of a batch -------------------------------------------------------------------------------

// An account that refuses one request.
struct RefusesOne {
  uint64_t num_requests = 0, refused = 0;

  static bool Reserve(void* host, uint64_t /*bytes*/) {
    auto* account = static_cast<RefusesOne*>(host);
    return ++account->num_requests != account->refused;
  }
  static void Release(void* /*host*/, uint64_t /*bytes*/) {}
};

struct LargeCase {
  const char* name;
  const char* spec;
  const char* keys;  // n: a number; m: one of many numbers; t: a text, w: one of few words
  const char* payload;
  const char* kinds;  // of the result: t for texts
  quern_port first, second, output;
  const char* params = "";
};

std::ostream& operator<<(std::ostream& out, const LargeCase& given) { return out << given.name; }

// The columns of one batch.
struct LargeBatch {
  std::vector<int64_t> ascending, spread;
  StringVector<int32_t> texts{{}}, words{{}};

  LargeBatch(size_t num_rows, size_t first) {
    std::vector<std::string> all, few;
    for (size_t i = first; i < first + num_rows; ++i) {
      ascending.push_back(static_cast<int64_t>(i / 3));
      spread.push_back(static_cast<int64_t>(i * 7919 % 100003 * 1000003));
      all.push_back("a text of its own, number " + std::to_string(i * 31 % 60013));
      few.push_back("a word of more than twelve bytes, " + std::to_string(i % 97));
    }
    texts = StringVector<int32_t>(all);
    words = StringVector<int32_t>(few);
  }
  std::vector<quern_column> Columns(std::string_view kinds) const {
    std::vector<quern_column> columns;
    for (const char kind : kinds)
      columns.push_back(kind == 'n'   ? ColumnOf(ascending)
                        : kind == 'm' ? ColumnOf(spread)
                        : kind == 't' ? texts.column()
                                      : words.column());
    return columns;
  }
};

class RefusedLargeAppends : public testing::TestWithParam<LargeCase> {
 protected:
  // The first batch has four slices of 65,536 rows or less, the second one is another input's.
  static const std::vector<LargeBatch>& Batches() {
    static const std::vector<LargeBatch> batches = {{200'000, 0}, {30'000, 200'000}};
    return batches;
  }

  struct Result {
    uint64_t sum, num_requests;
    uint64_t num_refusals = 0;
  };

  // Request number `refused` is refused; 0: none.
  static Result Run(uint64_t refused, Engine engine) {
    const LargeCase& given = GetParam();
    RefusesOne account{.refused = refused};
    quern_job_options options = {};
    options.reserve = RefusesOne::Reserve;
    options.release = RefusesOne::Release;
    options.host = &account;
    quern::Job job = Take(quern::Job::Create(KernelOf(given.spec, engine, given.params), options));
    quern_input_options copies = {};
    copies.copy_bytes = true;
    std::vector<quern::Input> inputs;
    inputs.push_back(Take(job.NewInput(given.first, copies)));
    inputs.push_back(Take(job.NewInput(given.second, {})));
    Result result = {};
    uint64_t num_rows = 0;
    for (const size_t i : {0, 1, 1, 0}) {
      const LargeBatch& columns = Batches()[i];
      const Table table = {
          columns.Columns(given.keys), columns.Columns(given.payload), columns.spread.size(), {}, num_rows};
      num_rows += table.num_rows;
      quern::Status status = inputs[i].Append(table.batch());
      if (status.code() == QUERN_RESOURCE_EXHAUSTED) {
        ++result.num_refusals;
        status = inputs[i].Append(table.batch());
      }
      Done(status);
    }
    result.num_requests = account.num_requests;
    for (quern::Input& input : inputs) Done(input.Finish());
    Done(job.Finalise());
    quern::Output output = Take(job.NewOutput(given.output));
    Sum sum{given.kinds, std::string_view(given.spec).starts_with("sort")};
    for (const quern_result* rows = Take(output.Next());; rows = Take(output.Next())) {
      sum.Add(*rows);
      if (rows->state == QUERN_RESULT_DONE) break;
    }
    result.sum = sum.sum + sum.num_rows;
    return result;
  }
};

TEST_P(RefusedLargeAppends, MayBeRepeated) {
  const Result expected = Run(0, Engine::kJit);
  EXPECT_GT(expected.num_requests, 5u);
  const uint64_t step = expected.num_requests / 12 + 1;
  uint64_t num_refusals = 0;
  for (uint64_t n = 1; n <= expected.num_requests; n += n < 4 ? 1 : step) {
    const Result result = Run(n, n % 2 == 0 ? Engine::kJit : Engine::kGeneric);
    EXPECT_EQ(result.sum, expected.sum) << "request " << n << " of " << expected.num_requests;
    num_refusals += result.num_refusals;
  }
  EXPECT_GT(num_refusals, 3u);
}

constexpr quern_port kRows = QUERN_PORT_ROWS, kBuild = QUERN_PORT_BUILD, kUnmatched = QUERN_PORT_UNMATCHED;

INSTANTIATE_TEST_SUITE_P(
    Operators, RefusedLargeAppends,
    testing::Values(
        LargeCase{"JoinOfNumbers", "join.right_anti keys=i64 build=i64", "m", "n", "n", kBuild, kBuild, kUnmatched},
        LargeCase{"JoinOfTexts", "join.right_anti keys=utf8,i64 build=utf8", "tn", "w", "t", kBuild, kBuild,
                  kUnmatched},
        LargeCase{"GroupsInOrder", "aggregate keys=i64 aggs=sum(i64),count_star", "n", "m", "nnn", kRows, kRows, kRows},
        LargeCase{"Groups", "aggregate keys=i64 aggs=sum(i64),min(i64)", "m", "nn", "nnn", kRows, kRows, kRows},
        LargeCase{"DealtGroups", "aggregate keys=i64 aggs=sum(i64),median(i64)", "m", "nn", "nnn", kRows, kRows, kRows,
                  "local_groups=1000"},
        LargeCase{"DealtTexts", "aggregate keys=utf8,i64 aggs=sum(i64)", "tn", "m", "tnn", kRows, kRows, kRows,
                  "local_groups=1000"},
        LargeCase{"StatesThatGrow",
                  "aggregate keys=utf8 aggs=count_distinct(i64),count_distinct(utf8),max(utf8),quantile(i64,0.25),"
                  "string_agg(utf8,x'2c'),approx_count_distinct(i64),sum(i64)",
                  "w", "mttntmn", "tnntntnn", kRows, kRows, kRows},
        LargeCase{"SortOfNumbers", "sort keys=i64:out payload=i64 stable", "m", "n", "nn", kRows, kRows, kRows},
        LargeCase{"SortOfTexts", "sort keys=utf8:out,i64:out stable", "tm", "", "tn", kRows, kRows, kRows},
        LargeCase{"SortOfWords", "sort keys=utf8:out,i64:out stable", "wm", "", "tn", kRows, kRows, kRows},
        LargeCase{"FirstRows", "sort keys=i64:desc:out payload=utf8 limit=3000 stable", "m", "t", "nt", kRows, kRows,
                  kRows},
        LargeCase{"Intersection", "set.intersect_all keys=utf8,i64", "wn", "", "tn", QUERN_PORT_LEFT, QUERN_PORT_RIGHT,
                  kRows}),
    [](const auto& info) { return std::string(info.param.name); });

// What the host hears while a part of a batch is in the job.
TEST(RefusedAppends, TakeOnlyTheSameBatchAgain) {
  std::vector<int64_t> keys(200000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<int64_t>(i * 7919);
  const std::vector<int64_t> few(keys.begin(), keys.begin() + 10);
  const Table table = {{ColumnOf(keys)}, {}, keys.size()}, other = {{ColumnOf(few)}, {}, few.size()};
  HostMemory memory;
  quern::Sort sort = Take(quern::Sort::Create(KernelOf("sort keys=i64:out", Engine::kGeneric), memory.options()));
  quern::Input input = Take(sort.Rows());
  memory.limit = int64_t{3} << 19;  // for the first chunk of 131,072 rows
  EXPECT_EQ(input.Append(table.batch()).code(), QUERN_RESOURCE_EXHAUSTED);
  EXPECT_EQ(input.Append(other.batch()).text(),
            "batch of 10 rows after a refused append: a part of another batch is in the sort; accepted: the refused "
            "batch, of 200000 rows");
  EXPECT_EQ(input.Finish().text(),
            "finish after a refused append: a part of the batch is in the sort; accepted: the same batch again, or "
            "quern_input_destroy");
  memory.limit = INT64_MAX;
  Done(input.Append(table.batch()));
  Done(input.Finish());
  Done(sort.Finalise());
  EXPECT_EQ(sort.Stats().num_rows, keys.size());
}

// An invalid batch leaves the job as it was: the part that is there still waits for the rest. The second chunk of
// 131,072 rows is refused, in the third slice of a batch, or in the only one of a batch that comes after 100,000 rows.
TEST(RefusedAppends, LeaveTheJobAsItWasWhereTheRepeatedBatchIsInvalid) {
  const std::vector<int64_t> keys(150000, 7);
  for (const uint64_t first_rows : {0, 100000}) {
    const Table first = {{ColumnOf(keys)}, {}, first_rows}, table = {{ColumnOf(keys)}, {}, keys.size() - first_rows};
    HostMemory memory;
    quern::Sort sort = Take(quern::Sort::Create(KernelOf("sort keys=i64:out", Engine::kGeneric), memory.options()));
    quern::Input input = Take(sort.Rows());
    Done(input.Append(first.batch()));
    memory.limit = int64_t{3} << 19;
    EXPECT_EQ(input.Append(table.batch()).code(), QUERN_RESOURCE_EXHAUSTED);
    memory.limit = INT64_MAX;
    quern_batch invalid = table.batch();
    invalid.keys = nullptr;
    for (int i = 0; i < 2; ++i) EXPECT_EQ(input.Append(invalid).code(), QUERN_INVALID_ARGUMENT);
    EXPECT_EQ(input.Finish().code(), QUERN_FAILED_PRECONDITION);
    Done(input.Append(table.batch()));
    Done(input.Finish());
    Done(sort.Finalise());
    EXPECT_EQ(sort.Stats().num_rows, keys.size());
  }
}

// Nothing of a batch is in the groups where the first request for its table was refused.
TEST(RefusedAppends, OfWhichNothingIsThereAreForgotten) {
  const std::vector<int64_t> keys(20000);
  const Table table = {{ColumnOf(keys)}, {}, 200}, other = {{ColumnOf(keys)}, {}, 100};
  HostMemory memory;
  for (const bool has_other : {false, true}) {
    quern::Aggregate groups = Take(
        quern::Aggregate::Create(KernelOf("aggregate keys=i64 aggs=count_star", Engine::kGeneric), memory.options()));
    quern::Input input = Take(groups.Rows());
    memory.limit = memory.used.load();
    EXPECT_EQ(input.Append(table.batch()).code(), QUERN_RESOURCE_EXHAUSTED);
    memory.limit = INT64_MAX;
    if (has_other) Done(input.Append(other.batch()));
    Done(input.Finish());
    Done(groups.Finalise());
    EXPECT_EQ(RowsOf(groups.Groups(), "ll"), has_other ? Lines{"0|100"} : Lines{});
  }
}

// The rows of an input that is destroyed are dropped, those of a refused batch too.
TEST(RefusedAppends, AreDroppedWithTheirInput) {
  std::vector<int64_t> keys(200000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<int64_t>(i * 7919);
  const std::vector<int64_t> few(keys.begin(), keys.begin() + 10);
  HostMemory memory;
  quern::Aggregate groups = Take(
      quern::Aggregate::Create(KernelOf("aggregate keys=i64 aggs=count_star", Engine::kGeneric), memory.options()));
  Feed(groups.Rows(), {{{ColumnOf(few)}, {}, few.size()}});
  {
    quern::Input input = Take(groups.Rows());
    memory.limit = int64_t{1} << 20;
    EXPECT_EQ(input.Append(Table{{ColumnOf(keys)}, {}, keys.size()}.batch()).code(), QUERN_RESOURCE_EXHAUSTED);
  }
  Done(groups.Finalise());
  EXPECT_EQ(groups.Stats().num_rows, few.size());
}

// ---- an account that makes room itself ------------------------------------------------------------------------------

// An account that makes room for a job by destroying another one, whose memory it gets back meanwhile.
struct RoomMaker {
  HostMemory memory;
  std::optional<quern::Sort> victim;
  int times = 0;

  static bool Reserve(void* host, uint64_t bytes) {
    auto* maker = static_cast<RoomMaker*>(host);
    if (HostMemory::Reserve(&maker->memory, bytes)) return true;
    ++maker->times;
    maker->victim.reset();
    return HostMemory::Reserve(&maker->memory, bytes);
  }
  static void Release(void* host, uint64_t bytes) {
    HostMemory::Release(&static_cast<RoomMaker*>(host)->memory, bytes);
  }
  quern_job_options options() { return OptionsWithAccount(this); }
};

TEST(RefusedAppends, AreAvoidedByAnAccountThatDestroysOtherJobs) {
  std::vector<int64_t> keys(300000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<int64_t>(i * 7919 % keys.size());
  const Table table = {{ColumnOf(keys)}, {}, keys.size()};
  RoomMaker maker;
  const quern::Kernel kernel = KernelOf("sort keys=i64:out", Engine::kGeneric);
  maker.victim = Take(quern::Sort::Create(kernel, maker.options()));
  Feed(maker.victim->Rows(), {table});
  maker.memory.limit = maker.memory.used + 1000;
  quern::Aggregate aggregate =
      Take(quern::Aggregate::Create(KernelOf("aggregate keys=i64 aggs=count_star", Engine::kGeneric), maker.options()));
  const std::vector<int64_t> few(keys.begin(), keys.begin() + 20000);
  Feed(aggregate.Rows(), {{{ColumnOf(few)}, {}, few.size()}});
  Done(aggregate.Finalise());
  EXPECT_EQ(maker.times, 1);
  EXPECT_EQ(aggregate.Stats().num_rows, few.size());
}

}  // namespace
}  // namespace quern_test
