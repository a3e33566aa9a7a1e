// SPDX-License-Identifier: Apache-2.0
// Threads of the host's own and of the library: whoever appends, works and reads, the rows are those of one thread.
// Some threads wait for others (quern_job_finalise), some never do (quern_job_work).
//
// Results of 300,000 rows are compared by their number and by a sum over rows that does not see their order; of a sort,
// it sees their positions.
#include <gtest/gtest.h>

#include <barrier>
#include <functional>
#include <mutex>
#include <stdexcept>

#include "test/hosts/operators.h"

namespace quern_test {
namespace {

constexpr uint64_t kNumRows = 300000;
constexpr uint64_t kBatchRows = 10000;
constexpr uint32_t kThreads = 4;

struct Bag {
  uint64_t num_rows = 0;
  uint64_t sum = 0;

  bool operator==(const Bag&) const = default;
  void Add(const quern_result& result, std::string_view kinds, bool is_sorted) {
    ASSERT_EQ(result.num_columns, kinds.size());
    num_rows += result.num_rows;
    for (uint64_t row = 0; row < result.num_rows; ++row) {
      uint64_t hash = is_sorted ? result.position + row : 0;
      for (size_t i = 0; i < kinds.size(); ++i) {
        hash = (hash + ValueHash(result.columns[i], kinds[i], row)) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 32;
      }
      sum += hash;
    }
  }
  void Add(const Bag& other) {
    num_rows += other.num_rows;
    sum += other.sum;
  }

 private:
  static uint64_t ValueHash(const quern_column& column, char kind, uint64_t row) {
    if (column.validity != nullptr && !BitAt(column.validity, row)) return 1;
    return kind == 's' ? std::hash<std::string>()(StringAt<int32_t>(column, row))
                       : ElementAt<uint64_t>(column.values, row) + 2;
  }
};

std::ostream& operator<<(std::ostream& out, const Bag& bag) { return out << bag.num_rows << " rows, sum " << bag.sum; }

// kNumRows rows in batches of kBatchRows. Row i has the key (i * step) mod modulus, as a number or a string, and the
// value i in two columns.
class BigTable {
 public:
  BigTable(uint64_t step, uint64_t modulus, bool strings) : strings_(strings) {
    std::vector<std::string> texts;
    for (uint64_t i = 0; i < kNumRows; ++i) {
      numbers_.push_back(static_cast<int64_t>(i * step % modulus));
      values_.push_back(static_cast<int64_t>(i));
      if (strings) texts.push_back("a key of more than sixteen bytes: " + std::to_string(numbers_.back()));
    }
    words_ = StringVector<int32_t>(texts);
    for (uint64_t first = 0; first < kNumRows; first += kBatchRows) tables_.push_back(From(first, kBatchRows));
    tables_.push_back(From(0, kNumRows));
    for (const Table& table : tables_) batches_.push_back(table.batch());
  }
  BigTable(const BigTable&) = delete;
  BigTable& operator=(const BigTable&) = delete;

  std::span<const quern_batch> batches() const { return {batches_.data(), batches_.size() - 1}; }
  // All rows as one batch.
  std::span<const quern_batch> whole() const { return {&batches_.back(), 1}; }

 private:
  Table From(uint64_t first, uint64_t num_rows) const {
    quern_column key = strings_ ? words_.column() : ColumnOf(numbers_), value = ColumnOf(values_);
    if (strings_) key.offsets = words_.offsets.data() + first;
    else key.values = numbers_.data() + first;
    value.values = values_.data() + first;
    return {{key}, {value, value}, num_rows, {}, first};
  }

  bool strings_;
  std::vector<int64_t> numbers_, values_;
  StringVector<int32_t> words_{{}};
  std::vector<Table> tables_;
  std::vector<quern_batch> batches_;
};

// An operator with its spec, and the keys of its two sides; only joins have a second one.
struct Case {
  std::string name;
  Operator op;
  std::string spec;
  std::string kinds;
  uint64_t step, modulus, probe_step = 1, probe_modulus = 1;
};

std::ostream& operator<<(std::ostream& out, const Case& given) { return out << given.name; }

// How a thread takes part in the work between the last input and the first output.
void Work(quern::Job* job, bool waits) {
  if (waits) return Done(job->Finalise());
  for (quern_work_state state = QUERN_WORK_MORE; state != QUERN_WORK_DONE; std::this_thread::yield())
    state = Take(job->Work());
}

// The work of several threads on one job; `batches` of each side.
class Workers {
 public:
  Workers(const Case& given, quern::Job* job) : given_(given), job_(job) {}

  Bag All(uint32_t num_threads, std::span<const quern_batch> batches, std::span<const quern_batch> probes,
          bool copy_bytes, uint32_t num_that_wait) {
    std::barrier phase(num_threads);
    std::atomic<size_t> next{0}, next_probe{0};
    std::atomic<uint32_t> number{0};
    std::mutex mutex;
    Bag all;
    quern_input_options options = {};
    options.copy_bytes = copy_bytes;
    OnThreads(num_threads, [&] {
      quern::Input input = Take(job_->NewInput(given_.op.input, options));
      for (size_t i = next++; i < batches.size(); i = next++) Done(input.Append(batches[i]));
      Done(input.Finish());
      phase.arrive_and_wait();
      Work(job_, number++ < num_that_wait);
      Bag bag;
      if (given_.op.input == QUERN_PORT_BUILD) {
        quern::Output probed = Take(job_->NewOutput(QUERN_PORT_PROBE, BatchRows(1000)));
        for (size_t i = next_probe++; i < probes.size(); i = next_probe++) {
          Done(probed.Push(probes[i]));
          AddAll(&probed, &bag);
        }
        phase.arrive_and_wait();
      }
      quern::Output output = Take(job_->NewOutput(given_.op.output, BatchRows(1000)));
      AddAll(&output, &bag);
      const std::lock_guard<std::mutex> lock(mutex);
      all.Add(bag);
    });
    return all;
  }

 private:
  void AddAll(quern::Output* output, Bag* bag) const {
    for (quern_result_state state = QUERN_RESULT_MORE; state == QUERN_RESULT_MORE;) {
      const quern_result& result = *Take(output->Next());
      bag->Add(result, given_.kinds, given_.op.job == std::string("sort"));
      state = result.state;
    }
  }

  const Case& given_;
  quern::Job* const job_;
};

class Parallel : public testing::TestWithParam<Case> {
 protected:
  quern::Job New(const quern_job_options& options = {}) const {
    return NewJob(op, options, given.spec.c_str(), Engine::kAuto);
  }
  Bag ByOneThread() const {
    quern::Job job = New();
    return Workers(given, &job).All(1, table.whole(), probe.whole(), false, 1);
  }
  Bag ByRun(std::span<const quern_batch> batches, std::span<const quern_batch> probes, uint32_t threads,
            uint64_t batch_rows) const {
    const quern_run_input inputs[] = {{op.input, batches.data(), batches.size()},
                                      {QUERN_PORT_PROBE, probes.data(), probes.size()}};
    quern_run_options options = {};
    options.threads = threads;
    options.batch_rows = batch_rows;
    quern::Job job = New();
    std::mutex mutex;
    Bag bag;
    const uint64_t num_rows = Take(job.Run({inputs, IsJoin() ? 2u : 1u}, options, [&](const quern_result& result) {
      Bag some;
      some.Add(result, given.kinds, op.job == std::string("sort"));
      const std::lock_guard<std::mutex> lock(mutex);
      bag.Add(some);
      return true;
    }));
    EXPECT_EQ(num_rows, bag.num_rows);
    return bag;
  }
  bool IsJoin() const { return op.input == QUERN_PORT_BUILD; }
  bool HasStrings() const { return given.spec.find("keys=utf8") != std::string::npos; }

  const Case& given = GetParam();
  const Operator& op = given.op;
  const BigTable table{given.step, given.modulus, HasStrings()};
  const BigTable probe{given.probe_step, given.probe_modulus, HasStrings()};
};

TEST_P(Parallel, ThreadsOfTheHostGiveTheRowsOfOne) {
  const Bag expected = ByOneThread();
  EXPECT_GT(expected.num_rows, 4u);
  for (const uint32_t num_that_wait : {kThreads, kThreads / 2, 0u}) {
    quern::Job job = New();
    const bool copy_bytes = num_that_wait == 0 && op.job != std::string("aggregation");
    EXPECT_EQ(Workers(given, &job).All(kThreads, table.batches(), probe.batches(), copy_bytes, num_that_wait), expected)
        << num_that_wait << " threads wait for others";
    EXPECT_EQ(job.Stats().input_rows, kNumRows);
  }
}

TEST_P(Parallel, ARunGivesTheRowsOfOneThread) {
  const Bag expected = ByOneThread();
  EXPECT_EQ(ByRun(table.batches(), probe.batches(), kThreads, 1000), expected);
  EXPECT_EQ(ByRun(table.whole(), probe.whole(), 3, 0), expected) << "cut into morsels";
  EXPECT_EQ(ByRun(table.batches(), probe.whole(), 1, 0), expected);
}

std::string JoinSpec(const std::string& kind, const std::string& type) {
  const bool no_build = kind == "semi", no_probe = kind == "right_semi" || kind == "right_anti";
  return "join." + kind + " keys=" + type + (no_build ? "" : " build=i64,rowid") + (no_probe ? "" : " probe=i64,rowid");
}

// Half of the probe keys have no match, and half of the build keys.
std::vector<Case> JoinCases() {
  std::vector<Case> cases = {
      {"JoinUnique", kJoin, JoinSpec("full", "i64"), "lrlr", 2, 1u << 31, 1, 1u << 31},
      {"JoinSparse", kJoin, JoinSpec("full", "i64"), "lrlr", 0x1000003d, UINT64_MAX, 0x1000003d * 2, UINT64_MAX},
      {"JoinStrings", kJoin, JoinSpec("full", "utf8"), "lrlr", 1, 100000, 4, 200000}};
  for (const std::string kind : {"inner", "full", "semi", "right_semi", "right_anti"}) {
    const std::string kinds = kind == "inner" || kind == "full" ? "lrlr" : "lr";
    cases.push_back({"Join_" + kind, kJoin, JoinSpec(kind, "i64"), kinds, 1, 100000, 4, 200000});
  }
  return cases;
}

std::vector<Case> OtherCases() {
  const std::string aggs = " aggs=count_star,sum(i64),first(i64)", payload = " payload=i64,rowid";
  return {{"AggregateFew", kAggregation, "aggregate keys=i64" + aggs, "llll", 1, 5},
          {"AggregateMany", kAggregation, "aggregate keys=i64" + aggs, "llll", 1, 100000},
          {"AggregateUnique", kAggregation, "aggregate keys=i64" + aggs, "llll", 0x1000003d, UINT64_MAX},
          {"AggregateStrings", kAggregation, "aggregate keys=utf8" + aggs, "slll", 1, 50000},
          {"SortNumbers", kSort, "sort keys=i64:out" + payload, "llr", 0x10000003d, uint64_t{1} << 40},
          {"SortTies", kSort, "sort keys=i64:desc:out" + payload + " stable window=rank", "llrr", 1, 1000},
          {"SortStrings", kSort, "sort keys=utf8:out" + payload + " stable", "slr", 77, 50000},
          {"SortTop", kSort, "sort keys=utf8:desc:out" + payload + " limit=100 stable", "slr", 77, 50000}};
}

const auto kNameOfCase = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(Joins, Parallel, testing::ValuesIn(JoinCases()), kNameOfCase);
INSTANTIATE_TEST_SUITE_P(Others, Parallel, testing::ValuesIn(OtherCases()), kNameOfCase);

// Counted by hand: of three equal build rows, a quarter meets six probe rows each, which are half of the probe side.
TEST(ParallelJoins, HaveThePairsThatTheirKeysHave) {
  const BigTable build(1, 100000, false), probe(4, 200000, false);
  const uint64_t num_pairs = kNumRows / 2 * 3, probe_alone = kNumRows / 2, build_alone = kNumRows / 4 * 3;
  const auto num_rows = [&](const char* kind) {
    const Case given = {"", kJoin, JoinSpec(kind, "i64"), kind[0] == 'r' ? "lr" : "lrlr", 1, 1};
    quern::Job job = NewJob(kJoin, {}, given.spec.c_str());
    return Workers(given, &job).All(2, build.batches(), probe.batches(), false, 1).num_rows;
  };
  EXPECT_EQ(num_rows("inner"), num_pairs);
  EXPECT_EQ(num_rows("left"), num_pairs + probe_alone);
  EXPECT_EQ(num_rows("right_anti"), build_alone);
  EXPECT_EQ(num_rows("full"), num_pairs + probe_alone + build_alone);
}

TEST(ParallelStates, GoThroughSeveralInputs) {
  const Case given = OtherCases()[3];
  const BigTable table(given.step, given.modulus, true);
  quern::Job from = NewJob(kAggregation, {}, given.spec.c_str()), into = NewJob(kAggregation, {}, given.spec.c_str()),
             whole = NewJob(kAggregation, {}, given.spec.c_str());
  quern::Input rows = Take(from.NewInput(QUERN_PORT_ROWS));
  Done(rows.Append(table.whole()[0]));
  Done(rows.Finish());
  Done(from.Finalise());
  std::atomic<uint32_t> next{0};
  OnThreads(kThreads, [&] {
    quern::Input states = Take(into.NewInput(QUERN_PORT_STATES));
    quern_output_options options = {};
    options.partition = next++;
    options.num_partitions = kThreads;
    MoveStates(from.NewOutput(QUERN_PORT_STATES, options), 1, &states);
    Done(states.Finish());
  });
  EXPECT_EQ(Workers(given, &into).All(1, {}, {}, false, 1), Workers(given, &whole).All(1, table.whole(), {}, false, 1));
}

// ---- memory that is refused ----

// Joins whose table takes memory beside the rows.
class Refused : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Joins, Refused, testing::Values(JoinCases()[1], JoinCases()[2]), kNameOfCase);

// The host frees memory elsewhere and tries again, on as many threads.
TEST_P(Refused, BuildsMayBeTriedAgain) {
  const Case& given = GetParam();
  const bool strings = given.spec.find("utf8") != std::string::npos;
  const BigTable table(given.step, given.modulus, strings), probe(given.probe_step, given.probe_modulus, strings);
  quern::Job alone = NewJob(kJoin, {}, given.spec.c_str(), Engine::kAuto);
  const Bag expected = Workers(given, &alone).All(1, table.whole(), probe.whole(), false, 1);
  HostMemory memory;
  {
    quern::Job join = NewJob(kJoin, memory.options(), given.spec.c_str(), Engine::kAuto);
    OnThreads(2, [&, next = std::make_shared<std::atomic<size_t>>(0)] {
      quern::Input input = Take(join.NewInput(QUERN_PORT_BUILD));
      for (size_t i = (*next)++; i < table.batches().size(); i = (*next)++) Done(input.Append(table.batches()[i]));
      Done(input.Finish());
    });
    const int64_t appended = memory.used;
    for (const int64_t more : {0, 100000}) {  // for nothing at all, and for a part of the work
      memory.limit = appended + more;
      std::atomic<uint32_t> exhausted{0}, number{0};
      OnThreads(kThreads, [&] {
        const bool waits = number++ % 2 == 0;
        quern::Status status = waits ? join.Finalise() : quern::Status();
        for (bool done = waits; !done; std::this_thread::yield()) {
          const quern::Result<quern_work_state> state = join.Work();
          status = state.status();
          done = !state.ok() || *state == QUERN_WORK_DONE;
        }
        exhausted += status.code() == QUERN_RESOURCE_EXHAUSTED;
        EXPECT_EQ(status.text().find("memory refused by the host: "), 0u) << status.text();
      });
      EXPECT_EQ(exhausted, kThreads);
      EXPECT_EQ(memory.used, appended) << "what was made is freed";
      EXPECT_EQ(join.NewOutput(QUERN_PORT_PROBE).status().code(), QUERN_FAILED_PRECONDITION);
    }
    memory.limit = INT64_MAX;
    EXPECT_EQ(Workers(given, &join).All(kThreads, {}, probe.batches(), false, 2), expected);
  }
  EXPECT_EQ(memory.used, 0);
}

// ---- runs ----

class Runs : public testing::TestWithParam<Operator> {
 protected:
  // A run over some batches, with four threads; `on_result` may be null.
  quern::Result<uint64_t> Run(quern::Job* job, std::span<const quern_batch> batches, uint64_t batch_rows,
                              const std::function<bool(const quern_result&)>& on_result) const {
    const quern_run_input input = {op.input, batches.data(), batches.size()};
    quern_run_options options = {};
    options.threads = kThreads;
    options.batch_rows = batch_rows;
    return on_result == nullptr ? job->Run({&input, 1}, options) : job->Run({&input, 1}, options, on_result);
  }
  const Operator& op = GetParam();
  const BigTable table{0x1000003d, UINT64_MAX, false};
};
INSTANTIATE_TEST_SUITE_P(Operators, Runs, testing::Values(kJoin, kAggregation, kSet, kSort), NameOf);

TEST_P(Runs, TakeWhatWasAppendedBefore) {
  quern::Job job = NewJob(op);
  quern::Input input = Take(job.NewInput(op.input));
  Done(input.Append(table.batches()[0]));
  Done(input.Finish());
  EXPECT_EQ(Take(Run(&job, table.batches().subspan(1, 2), 0, nullptr)), 3 * kBatchRows);
  quern::Job nothing = NewJob(op);
  EXPECT_EQ(Take(Run(&nothing, {}, 0, nullptr)), 0u);
}

TEST_P(Runs, StopWhenTheHostWantsNoMore) {
  quern::Job job = NewJob(op);
  std::atomic<uint32_t> calls{0};
  const uint64_t num_rows = Take(Run(&job, table.batches(), 100, [&](const quern_result&) { return ++calls, false; }));
  EXPECT_GE(calls, 1u);
  EXPECT_LE(calls, kThreads);
  EXPECT_LE(num_rows, calls * 100);
  EXPECT_TRUE(job.NewOutput(op.output).ok()) << "the job is there";
}

TEST_P(Runs, LetNoExceptionOut) {
  quern::Job job = NewJob(op);
  const quern::Status status = Run(&job, table.batches(), 0, [](const quern_result&) -> bool {
                                 throw std::runtime_error("thrown by the host");
                               }).status();
  EXPECT_EQ(status.code(), QUERN_INTERNAL);
  EXPECT_EQ(status.text(), "thrown by the host");
}

TEST_P(Runs, FailWithoutMemory) {
  for (const uint64_t limit : {uint64_t{100} << 10, uint64_t{3} << 20, uint64_t{6} << 20}) {
    quern::Job job = NewJob(op, LimitedTo(limit));
    EXPECT_EQ(Run(&job, table.batches(), 1 << 20, [](const quern_result&) { return true; }).status().code(),
              QUERN_RESOURCE_EXHAUSTED)
        << limit;
  }
}

TEST(SortRuns, GiveTheirRowsInOrderOnTheCallersThread) {
  const BigTable table(77, 1000003, false);
  const quern_run_input input = {QUERN_PORT_ROWS, table.batches().data(), table.batches().size()};
  quern_run_options options = {};
  options.threads = 3;
  options.batch_rows = 1000;
  const std::thread::id caller = std::this_thread::get_id();
  quern::Job sort = NewJob(kSort), counted = NewJob(kSort);
  Lines lines;
  Take(sort.Run({&input, 1}, options, [&](const quern_result& result) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_EQ(result.position, lines.size());
    AddLines(result, "ll", &lines);
    return lines.size() < 3000;
  }));
  EXPECT_EQ(lines.size(), 3000u);
  EXPECT_EQ(Take(counted.Run({&input, 1}, options)), kNumRows);
  const Lines all = InOrder(counted.NewOutput(QUERN_PORT_ROWS), "ll");
  EXPECT_EQ(all.size(), kNumRows) << "rows that are only counted remain";
  EXPECT_TRUE(std::equal(lines.begin(), lines.end(), all.begin()));
}

}  // namespace
}  // namespace quern_test
