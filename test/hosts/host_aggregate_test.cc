// SPDX-License-Identifier: Apache-2.0
// Aggregate functions of the host's own: registered, called by specs, failing and refused. A registration is for the
// process, so that each test has names of its own.
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "test/hosts/jobs.h"

namespace quern_test {
namespace {

// The sum of products of two f64; null for no rows.
struct SumOfProducts {
  double sum;
  uint64_t num_rows;
};

// What the callbacks' `user` points to.
struct Calls {
  std::atomic<uint32_t> updates{0};
  bool fails = false;
  bool throws = false;
};

int Answer(void* user) {
  auto* calls = static_cast<Calls*>(user);
  if (calls->throws) throw std::runtime_error("thrown by the host");
  return calls->fails ? 7 : 0;
}

int Update(void* user, void*, const quern_column* columns, uint32_t num_columns, const uint32_t* rows,
           void* const* states, uint64_t n) {
  EXPECT_EQ(num_columns, 2u);
  static_cast<Calls*>(user)->updates++;
  for (uint64_t i = 0; i < n; ++i) {
    auto* state = static_cast<SumOfProducts*>(states[i]);
    state->sum += ElementAt<double>(columns[0].values, rows[i]) * ElementAt<double>(columns[1].values, rows[i]);
    ++state->num_rows;
  }
  return Answer(user);
}

int Merge(void*, void*, void* const* into, const void* const* from, uint64_t n) {
  for (uint64_t i = 0; i < n; ++i) {
    auto* state = static_cast<SumOfProducts*>(into[i]);
    const auto* other = static_cast<const SumOfProducts*>(from[i]);
    state->sum += other->sum;
    state->num_rows += other->num_rows;
  }
  return 0;
}

int Finalise(void*, void*, const void* const* states, uint64_t n, void* values, uint8_t* validity) {
  for (uint64_t i = 0; i < n; ++i) {
    const auto* state = static_cast<const SumOfProducts*>(states[i]);
    static_cast<double*>(values)[i] = state->sum;
    if (state->num_rows == 0) validity[i / 8] = static_cast<uint8_t>(validity[i / 8] & ~(1u << (i % 8)));
  }
  return 0;
}

quern_aggregate_function SumOfProductsFunction(Calls* calls) {
  quern_aggregate_function function = {};
  function.struct_size = sizeof(function);
  function.state_bytes = sizeof(SumOfProducts);
  function.result = "f64";
  function.user = calls;
  function.update = Update;
  function.merge = Merge;
  function.finalise = Finalise;
  return function;
}

// Two groups of five rows; the first column may be null.
struct Pairs {
  const std::vector<int64_t> key = {1, 2, 1, 2, 3};
  const std::vector<double> a = {2, 3, 4, 5, 6}, b = {10, 100, 1000, 1, 1};
  const std::vector<uint8_t> valid = Bitmap({true, true, true, true, false});
  const Table table = {{ColumnOf(key)}, {WithValidity(ColumnOf(a), valid), ColumnOf(b)}, 5};
};

// The same groups by every engine.
void ExpectGroups(const std::string& spec, const std::vector<Table>& tables, std::string_view kinds,
                  const Lines& expected) {
  for (const Engine engine : {Engine::kJit, Engine::kGeneric}) {
    quern::Aggregate aggregate = Aggregated(spec, tables, engine);
    EXPECT_EQ(RowsOf(aggregate.Groups(), kinds), expected) << spec;
  }
}

std::string SpecOf(const std::string& name) { return "aggregate keys=i64 aggs=host." + name + "(f64:nullable,f64)"; }

TEST(HostAggregates, AreCalledBySpecs) {
  static Calls calls;
  ASSERT_EQ(quern::RegisterAggregate("products", SumOfProductsFunction(&calls)).text(), "");
  const Pairs pairs;
  const Lines groups = {"1|4020", "2|305", "3|null"};
  ExpectGroups(SpecOf("products"), {pairs.table}, "ld", groups);
  EXPECT_GT(calls.updates, 0u);
  ExpectGroups(SpecOf("products"), {pairs.table, pairs.table}, "ld", {"1|8040", "2|610", "3|null"});
  ExpectGroups("aggregate aggs=host.products(f64:nullable,f64)", {}, "d", {"null"});
}

TEST(HostAggregates, MergeStatesAndThreads) {
  static Calls calls;
  ASSERT_EQ(quern::RegisterAggregate("merged_products", SumOfProductsFunction(&calls)).text(), "");
  const Pairs pairs;
  const std::string spec = SpecOf("merged_products");
  quern::Aggregate both = New<quern::Aggregate>(spec);
  quern::Input states = Take(both.States());
  for (int part = 0; part < 2; ++part) {
    quern::Aggregate from = Aggregated(spec, {pairs.table});
    MoveStates(from.GroupStates(), 1, &states);
  }
  Done(states.Finish());
  Done(both.Finalise());
  EXPECT_EQ(RowsOf(both.Groups(), "ld"), (Lines{"1|8040", "2|610", "3|null"}));
  const std::vector<quern_batch> batches(40, pairs.table.batch());
  const quern_run_input input = {QUERN_PORT_ROWS, batches.data(), batches.size()};
  quern_run_options options = {};
  options.threads = 3;
  quern::Aggregate run = New<quern::Aggregate>(spec);
  std::mutex mutex;
  Lines lines;
  Take(run.Run({&input, 1}, options, [&](const quern_result& result) {
    const std::lock_guard<std::mutex> lock(mutex);
    AddLines(result, "ld", &lines);
    return true;
  }));
  EXPECT_EQ(Ordered(lines), (Lines{"1|160800", "2|12200", "3|null"}));
}

TEST(HostAggregates, ThatFailEndTheAggregation) {
  static Calls calls;
  ASSERT_EQ(quern::RegisterAggregate("failing", SumOfProductsFunction(&calls)).text(), "");
  const Pairs pairs;
  for (const bool throws : {false, true}) {
    calls.fails = !throws;
    calls.throws = throws;
    quern::Aggregate aggregate = New<quern::Aggregate>(SpecOf("failing"));
    quern::Input rows = Take(aggregate.Rows());
    const quern::Status status = rows.Append(pairs.table.batch());
    EXPECT_EQ(status.text(), std::string("host aggregate failed: failing: update answered ") + (throws ? "-1" : "7") +
                                 "; accepted: 0");
    EXPECT_EQ(status.code(), QUERN_ABORTED);
    EXPECT_EQ(rows.Finish().text(),
              "finish after a failed append: rows are missing from the groups; accepted: a new aggregation; it failed "
              "with: " +
                  status.text());
  }
}

TEST(HostAggregates, ThatNobodyRegisteredAreRefused) {
  quern_kernel* kernel = nullptr;
  for (const quern_engine engine : {QUERN_ENGINE_AUTO, QUERN_ENGINE_JIT, QUERN_ENGINE_GENERIC}) {
    EXPECT_EQ(ErrorOf(QUERN_INVALID_ARGUMENT, quern_compile, "aggregate aggs=host.nobody(i64)", engine, "", &kernel),
              "unknown host aggregate: nobody; accepted: a name that the host registered");
  }
  EXPECT_EQ(kernel, nullptr);
}

TEST(HostAggregates, RefusedStructs) {
  static Calls calls;
  const quern_aggregate_function good = SumOfProductsFunction(&calls);
  const auto refusal = [](const char* name, const quern_aggregate_function* function) {
    return ErrorOf(QUERN_INVALID_ARGUMENT, quern_register_aggregate, name, function);
  };
  EXPECT_EQ(refusal(nullptr, &good), "null argument: name; accepted: a pointer");
  EXPECT_EQ(refusal("refused", nullptr), "null argument: function; accepted: a pointer");
  quern_aggregate_function bad = good;
  bad.struct_size = 48;
  EXPECT_EQ(refusal("refused", &bad),
            "struct_size too small: 48; accepted: " + std::to_string(sizeof(bad)) + " or more");
  bad = good;
  bad.result = nullptr;
  EXPECT_EQ(refusal("refused", &bad), "null argument: result; accepted: a pointer");
  bad.result = "f64:nullable";
  EXPECT_EQ(refusal("refused", &bad), "flags of a result type: f64:nullable; accepted: a type alone, as f64");
  bad.result = "utf8";
  EXPECT_EQ(refusal("refused", &bad),
            "bad result type of host aggregate refused: utf8; accepted: numbers, dates and times");
  bad.result = "f65";
  EXPECT_EQ(refusal("refused", &bad).substr(0, 25), "unknown column type: f65;");
  bad = good;
  bad.state_bytes = 4097;
  EXPECT_EQ(refusal("refused", &bad), "bad state of host aggregate refused: 4097 bytes; accepted: 1 to 4096");
  bad = good;
  bad.merge = nullptr;
  EXPECT_EQ(refusal("refused", &bad),
            "missing callback of host aggregate refused: merge; accepted: update, merge and finalise");
  EXPECT_EQ(refusal("re fused", &good),
            "bad name of a host aggregate: re fused; accepted: 1 to 64 letters, digits and '_'");
}

TEST(HostAggregates, RegisteredTwice) {
  static Calls calls;
  const quern_aggregate_function function = SumOfProductsFunction(&calls);
  ASSERT_EQ(quern::RegisterAggregate("twice", function).text(), "");
  EXPECT_EQ(ErrorOf(QUERN_INVALID_ARGUMENT, quern_register_aggregate, "twice", &function),
            "host aggregate registered twice: twice; accepted: once in a process");
}

// ---- a pointer for each job ----

// What `host` of a job's options points to: rows count `weight` each, and groups begin at `first`.
struct Query {
  const uint64_t weight, first;
  std::atomic<uint32_t> updates{0}, merges{0}, finalises{0};

  quern_job_options options() {
    quern_job_options options = {};
    options.host = this;
    return options;
  }
};

quern_aggregate_function WeightsFunction() {
  quern_aggregate_function function = {};
  function.struct_size = sizeof(function);
  function.state_bytes = 8;
  function.result = "u64";
  function.update = [](void* user, void* host, const quern_column*, uint32_t, const uint32_t*, void* const* states,
                       uint64_t n) {
    EXPECT_EQ(user, nullptr);
    ++static_cast<Query*>(host)->updates;
    for (uint64_t i = 0; i < n; ++i) *static_cast<uint64_t*>(states[i]) += static_cast<Query*>(host)->weight;
    return 0;
  };
  function.merge = [](void*, void* host, void* const* into, const void* const* from, uint64_t n) {
    ++static_cast<Query*>(host)->merges;
    for (uint64_t i = 0; i < n; ++i) *static_cast<uint64_t*>(into[i]) += *static_cast<const uint64_t*>(from[i]);
    return 0;
  };
  function.finalise = [](void*, void* host, const void* const* states, uint64_t n, void* values, uint8_t*) {
    ++static_cast<Query*>(host)->finalises;
    for (uint64_t i = 0; i < n; ++i)
      static_cast<uint64_t*>(values)[i] = static_cast<Query*>(host)->first + *static_cast<const uint64_t*>(states[i]);
    return 0;
  };
  return function;
}

// Two inputs of the same rows, so that groups are merged.
Lines WeighedBy(Query* query, const Table& table, const quern::Kernel& kernel) {
  quern::Aggregate aggregate = Take(quern::Aggregate::Create(kernel, query->options()));
  quern::Input inputs[] = {Take(aggregate.Rows()), Take(aggregate.Rows())};
  for (quern::Input& input : inputs) Done(input.Append(table.batch()));
  for (quern::Input& input : inputs) Done(input.Append(table.batch()));
  for (quern::Input& input : inputs) Done(input.Finish());
  Done(aggregate.Finalise());
  return RowsOf(aggregate.Groups(), "ll");
}

TEST(HostAggregates, ReceiveThePointerOfTheirJob) {
  ASSERT_EQ(quern::RegisterAggregate("weights", WeightsFunction()).text(), "");
  const Pairs pairs;
  const Table keys = {pairs.table.keys, {}, 5};
  for (const Engine engine : {Engine::kJit, Engine::kGeneric}) {
    for (const char* params : {"", "local_groups=1"}) {  // groups are merged by one thread, and by partition
      const quern::Kernel kernel = KernelOf("aggregate keys=i64 aggs=host.weights()", engine, params);
      Query one = {1, 0}, ten = {10, 1000};
      Lines by_one;
      std::thread other([&] { by_one = WeighedBy(&one, keys, kernel); });
      EXPECT_EQ(WeighedBy(&ten, keys, kernel), (Lines{"1|1080", "2|1080", "3|1040"})) << params;
      other.join();
      EXPECT_EQ(by_one, (Lines{"1|8", "2|8", "3|4"})) << params;
      for (const Query* query : {&one, &ten}) {
        EXPECT_EQ(query->updates, 4u);
        EXPECT_GT(query->merges, 0u);
        EXPECT_GT(query->finalises, 0u);
      }
    }
  }
}

TEST(HostAggregates, ReceiveThePointerOfTheJobThatTakesStates) {
  ASSERT_EQ(quern::RegisterAggregate("moved_weights", WeightsFunction()).text(), "");
  const Pairs pairs;
  const quern::Kernel kernel = KernelOf("aggregate keys=i64 aggs=host.moved_weights()");
  Query first = {3, 0}, second = {0, 100};
  quern::Aggregate from = Take(quern::Aggregate::Create(kernel, first.options()));
  Feed(from.Rows(), {{pairs.table.keys, {}, 5}});
  Done(from.Finalise());
  quern::Aggregate into = Take(quern::Aggregate::Create(kernel, second.options()));
  quern::Input states = Take(into.States());
  MoveStates(from.GroupStates(), 1, &states);
  Done(states.Finish());
  Done(into.Finalise());
  EXPECT_EQ(RowsOf(into.Groups(), "ll"), (Lines{"1|106", "2|106", "3|103"}));
  EXPECT_EQ(first.merges, 0u);
  EXPECT_EQ(second.updates, 0u);
  EXPECT_GT(second.merges, 0u);
}

}  // namespace
}  // namespace quern_test
