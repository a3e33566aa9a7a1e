// SPDX-License-Identifier: Apache-2.0
// Every error that the aggregations' part of the C ABI itself can answer, with its full text. (Those of Arrow:
// aggregate_arrow_test.cc; of runs: aggregate_parallel_test.cc; of a host's functions: host_aggregate_test.cc.)
#include <gtest/gtest.h>

#include <cstring>
#include <regex>

#include "test/hosts/aggregate_tables.h"

namespace quern_test {
namespace {

constexpr const char* kSpec = "aggregate keys=i64 aggs=sum(i64)";

class AggregateErrors : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(quern_compile(kSpec, QUERN_ENGINE_GENERIC, nullptr, &some_kernel, nullptr), QUERN_OK);
    ASSERT_EQ(quern_aggregate_create(some_kernel, 0, &open, nullptr), QUERN_OK);
    ASSERT_EQ(quern_aggregate_create(some_kernel, 0, &finalised, nullptr), QUERN_OK);
    ASSERT_EQ(quern_aggregate_append(finalised, &some_batch, nullptr), QUERN_OK);
    ASSERT_EQ(quern_aggregate_finalise(finalised, nullptr), QUERN_OK);
    ASSERT_EQ(quern_groups_create(finalised, QUERN_GROUP_RESULTS, 0, &some_groups, nullptr), QUERN_OK);
  }
  void TearDown() override {
    quern_groups_destroy(some_groups);
    quern_aggregate_destroy(open);
    quern_aggregate_destroy(finalised);
    quern_kernel_destroy(some_kernel);
  }

  const std::vector<int64_t> numbers = {1, 2, 3};
  const Table table = {{ColumnOf(numbers)}, {ColumnOf(numbers)}, 3};
  const quern_batch some_batch = table.batch();
  quern_kernel* some_kernel = nullptr;
  quern_aggregate* open = nullptr;
  quern_aggregate* finalised = nullptr;
  quern_groups* some_groups = nullptr;
};

template <class... Call>
std::string Invalid(Call... call) {
  return ErrorOf(QUERN_INVALID_ARGUMENT, call...);
}

template <class... Call>
std::string Failed(Call... call) {
  return ErrorOf(QUERN_FAILED_PRECONDITION, call...);
}

TEST_F(AggregateErrors, NullArguments) {
  quern_kernel* const no_kernel = nullptr;
  quern_aggregate *aggregate = nullptr, *const no_aggregate = nullptr;
  quern_aggregate** const nowhere = nullptr;
  const quern_batch* const no_batch = nullptr;
  EXPECT_EQ(Invalid(quern_aggregate_create, no_kernel, 0, &aggregate), "null argument: kernel; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_aggregate_create, some_kernel, 0, nowhere), "null argument: aggregate; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_aggregate_hint_groups, no_aggregate, 1), "null argument: aggregate; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_aggregate_hint_range, no_aggregate, 0, 1, 2),
            "null argument: aggregate; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_aggregate_append, no_aggregate, &some_batch),
            "null argument: aggregate; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_aggregate_append, open, no_batch), "null argument: batch; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_aggregate_append_states, no_aggregate, &some_batch),
            "null argument: aggregate; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_aggregate_append_states, open, no_batch), "null argument: batch; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_aggregate_finalise, no_aggregate), "null argument: aggregate; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_aggregate_finalise_shared, no_aggregate), "null argument: aggregate; accepted: a pointer");
}

TEST_F(AggregateErrors, NullArgumentsOfAppenders) {
  quern_aggregate* const no_aggregate = nullptr;
  quern_aggregate_appender* appender = nullptr;
  quern_aggregate_appender** const nowhere = nullptr;
  const quern_batch* const no_batch = nullptr;
  EXPECT_EQ(Invalid(quern_aggregate_appender_create, no_aggregate, &appender),
            "null argument: aggregate; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_aggregate_appender_create, open, nowhere), "null argument: appender; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_aggregate_appender_append, appender, &some_batch),
            "null argument: appender; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_aggregate_appender_append_states, appender, &some_batch),
            "null argument: appender; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_aggregate_appender_finish, appender), "null argument: appender; accepted: a pointer");
  ASSERT_EQ(quern_aggregate_appender_create(open, &appender, nullptr), QUERN_OK);
  EXPECT_EQ(Invalid(quern_aggregate_appender_append, appender, no_batch), "null argument: batch; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_aggregate_appender_append_states, appender, no_batch),
            "null argument: batch; accepted: a pointer");
  quern_aggregate_appender_destroy(appender);
}

TEST_F(AggregateErrors, NullArgumentsOfGroups) {
  quern_aggregate* const no_aggregate = nullptr;
  quern_groups *groups = nullptr, *const no_groups = nullptr;
  quern_groups** const nowhere = nullptr;
  quern_result result;
  bool more = false;
  EXPECT_EQ(Invalid(quern_groups_create, no_aggregate, QUERN_GROUP_RESULTS, 0, &groups),
            "null argument: aggregate; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_groups_create, finalised, QUERN_GROUP_RESULTS, 0, nowhere),
            "null argument: groups; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_groups_create_partition, no_aggregate, QUERN_GROUP_RESULTS, 0, 1, 0, &groups),
            "null argument: aggregate; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_groups_next, no_groups, &result, &more), "null argument: groups; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_groups_next, some_groups, static_cast<quern_result*>(nullptr), &more),
            "null argument: result; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_groups_next, some_groups, &result, static_cast<bool*>(nullptr)),
            "null argument: more; accepted: a pointer");
}

TEST_F(AggregateErrors, KernelsOfAnotherOperator) {
  quern_kernel* join_kernel = nullptr;
  quern_join* join = reinterpret_cast<quern_join*>(8);
  quern_aggregate* aggregate = reinterpret_cast<quern_aggregate*>(8);
  ASSERT_EQ(quern_compile("join.right_semi keys=i64", QUERN_ENGINE_GENERIC, nullptr, &join_kernel, nullptr), QUERN_OK);
  EXPECT_EQ(Invalid(quern_join_create, some_kernel, 0, &join),
            "wrong kernel for a join: aggregate; accepted: one of join.KIND");
  EXPECT_EQ(join, nullptr);
  EXPECT_EQ(Invalid(quern_aggregate_create, join_kernel, 0, &aggregate),
            "wrong kernel for an aggregation: join.right_semi; accepted: one of aggregate");
  EXPECT_EQ(aggregate, nullptr);
  quern_kernel_destroy(join_kernel);
}

TEST_F(AggregateErrors, WrongOrder) {
  quern_groups* groups = nullptr;
  const std::string late = " after finalise: the groups are complete; accepted: a new aggregation";
  EXPECT_EQ(Failed(quern_groups_create, open, QUERN_GROUP_RESULTS, 0, &groups),
            "groups before finalise: they are not complete; accepted: after quern_aggregate_finalise");
  EXPECT_EQ(Failed(quern_aggregate_append, finalised, &some_batch), "append" + late);
  EXPECT_EQ(Failed(quern_aggregate_append_states, finalised, &some_batch), "append" + late);
  EXPECT_EQ(Failed(quern_aggregate_finalise, finalised), "finalise" + late);
  EXPECT_EQ(quern_aggregate_finalise_shared(finalised, nullptr), QUERN_OK) << "who comes late finds the groups";
}

TEST_F(AggregateErrors, WrongOrderOfAppenders) {
  quern_aggregate_appender *appender = nullptr, *late = nullptr;
  const std::string after_finalise = " after finalise: the groups are complete; accepted: a new aggregation";
  const std::string after_finish = " after finish: the rows were handed over; accepted: a new appender";
  EXPECT_EQ(Failed(quern_aggregate_appender_create, finalised, &appender), "appender" + after_finalise);
  ASSERT_EQ(quern_aggregate_appender_create(open, &appender, nullptr), QUERN_OK);
  ASSERT_EQ(quern_aggregate_appender_create(open, &late, nullptr), QUERN_OK);
  ASSERT_EQ(quern_aggregate_appender_finish(appender, nullptr), QUERN_OK);
  EXPECT_EQ(Failed(quern_aggregate_appender_append, appender, &some_batch), "append" + after_finish);
  EXPECT_EQ(Failed(quern_aggregate_appender_append_states, appender, &some_batch), "append" + after_finish);
  EXPECT_EQ(Failed(quern_aggregate_appender_finish, appender), "finish" + after_finish);
  ASSERT_EQ(quern_aggregate_finalise_shared(open, nullptr), QUERN_OK);
  EXPECT_EQ(Failed(quern_aggregate_appender_append, late, &some_batch), "append" + after_finalise);
  EXPECT_EQ(Failed(quern_aggregate_appender_finish, late), "finish" + after_finalise);
  quern_aggregate_appender_destroy(appender);
  quern_aggregate_appender_destroy(late);
}

TEST_F(AggregateErrors, Hints) {
  const std::string late =
      "hint after append: the aggregation has begun; accepted: before the first batch and the first appender";
  EXPECT_EQ(Invalid(quern_aggregate_hint_range, open, 1, 0, 9), "key number out of range: 1; accepted: 0 to 0");
  EXPECT_EQ(NewAggregate("aggregate aggs=count_star").HintRange(0, 0, 9).text(),
            "key number out of range: 0; accepted: none, since the spec has no keys");
  EXPECT_EQ(Failed(quern_aggregate_hint_groups, finalised, 9), late);
  ASSERT_EQ(quern_aggregate_append(open, &some_batch, nullptr), QUERN_OK);
  EXPECT_EQ(Failed(quern_aggregate_hint_groups, open, 9), late);
  EXPECT_EQ(Failed(quern_aggregate_hint_range, open, 0, 0, 9), late);
  quern::Aggregate shared = NewAggregate(kSpec);
  const auto appender = quern::AggregateAppender::Create(shared);
  EXPECT_EQ(shared.HintGroups(9).text(), late);
}

TEST_F(AggregateErrors, BatchesWithoutColumns) {
  quern_batch batch = some_batch;
  batch.keys = nullptr;
  EXPECT_EQ(Invalid(quern_aggregate_append, open, &batch), "batch without columns: input key; accepted: 1 columns");
  EXPECT_EQ(Invalid(quern_aggregate_append_states, open, &batch),
            "batch without columns: states key; accepted: 1 columns");
  batch = some_batch;
  batch.payload = nullptr;
  EXPECT_EQ(Invalid(quern_aggregate_append, open, &batch), "batch without columns: input payload; accepted: 1 columns");
  EXPECT_EQ(Invalid(quern_aggregate_append_states, open, &some_batch),
            "column without offsets: states payload 0 (binary); accepted: a pointer, unless no row needs it");
  batch.num_rows = 4294967295;
  EXPECT_EQ(Invalid(quern_aggregate_append, open, &batch),
            "batch too large: 4294967295 rows; accepted: below 4294967295");
  EXPECT_EQ(quern_aggregate_append(open, &some_batch, nullptr), QUERN_OK) << "a batch that was refused changes nothing";
}

// As a host in C may call it, whose enums are any number.
__attribute__((no_sanitize("enum"))) quern_status CreateGroupsOf(uint32_t number, quern_aggregate* aggregate,
                                                                 quern_groups** groups, quern_error* error) {
  quern_group_columns columns = QUERN_GROUP_RESULTS;
  std::memcpy(&columns, &number, sizeof(columns));
  return quern_groups_create(aggregate, columns, 0, groups, error);
}

TEST_F(AggregateErrors, GroupsThatThereAreNot) {
  quern_groups* groups = nullptr;
  quern_error error = {};
  EXPECT_EQ(CreateGroupsOf(2, finalised, &groups, &error), QUERN_INVALID_ARGUMENT);
  EXPECT_STREQ(error.text, "unknown group columns: 2; accepted: QUERN_GROUP_RESULTS (0), QUERN_GROUP_STATES (1)");
  EXPECT_EQ(Invalid(quern_groups_create, finalised, QUERN_GROUP_STATES, uint64_t{1} << 31, &groups),
            "batch_rows out of range: 2147483648; accepted: 0 to 2147483647");
  EXPECT_EQ(Invalid(quern_groups_create_partition, finalised, QUERN_GROUP_STATES, 0, 0, 0, &groups),
            "num_partitions out of range: 0; accepted: 1 or more");
  EXPECT_EQ(Invalid(quern_groups_create_partition, finalised, QUERN_GROUP_STATES, 4, 4, 0, &groups),
            "partition out of range: 4; accepted: 0 to 3");
  EXPECT_EQ(groups, nullptr);
}

TEST_F(AggregateErrors, MemoryLimitWhileAppending) {
  quern_aggregate* aggregate = nullptr;
  ASSERT_EQ(quern_aggregate_create(some_kernel, 10, &aggregate, nullptr), QUERN_OK);
  quern_error error = {};
  EXPECT_EQ(quern_aggregate_append(aggregate, &some_batch, &error), QUERN_RESOURCE_EXHAUSTED);
  EXPECT_TRUE(std::regex_match(error.text,
                               std::regex("memory limit exceeded: [0-9]+ bytes requested, [0-9]+ in use; limit 10")))
      << error.text;
  const std::string text = " after a failed append: rows are missing from the groups; accepted: a new aggregation";
  EXPECT_EQ(Failed(quern_aggregate_append, aggregate, &some_batch), "append" + text);
  EXPECT_EQ(Failed(quern_aggregate_finalise, aggregate), "finalise" + text);
  EXPECT_EQ(Failed(quern_aggregate_finalise_shared, aggregate), "finalise" + text);
  quern_aggregate_destroy(aggregate);
}

// A table of many groups that just fits leaves no room for results.
TEST_F(AggregateErrors, MemoryLimitOfResults) {
  std::vector<int64_t> many;
  for (int64_t i = 0; i < 20000; ++i) many.push_back(i * 0x10000003d);
  const Table groups_table = {{ColumnOf(many)}, {ColumnOf(many)}, many.size()};
  const uint64_t needed = Aggregated(kSpec, {groups_table}, quern::Engine::kGeneric).Stats().peak_bytes;
  quern::Aggregate aggregate = NewAggregate(kSpec, quern::Engine::kGeneric, needed);
  ASSERT_EQ(aggregate.Append(groups_table.batch()).text(), "");
  ASSERT_EQ(aggregate.Finalise().text(), "");
  quern::Status status;
  std::vector<quern::Groups> readers;  // whose results take memory, until there is none
  for (int i = 0; i < 100 && status.ok(); ++i) {
    readers.push_back(*quern::Groups::Create(aggregate));
    status = readers.back().Next().status();
  }
  EXPECT_EQ(status.code(), QUERN_RESOURCE_EXHAUSTED);
  EXPECT_EQ(readers.back().Next().status().text(),
            "groups after a failure: some of them are lost; accepted: a new aggregation");
}

TEST_F(AggregateErrors, StatesThatAreDamaged) {
  const StringVector<int32_t> states({"abc", "abc", "abc"});
  const quern_column payload = states.column();
  quern_batch damaged = some_batch;
  damaged.payload = &payload;
  quern_error error = {};
  EXPECT_EQ(quern_aggregate_append_states(open, &damaged, &error), QUERN_INVALID_ARGUMENT);
  EXPECT_STREQ(error.text, "saved state of sum(i64) is damaged: 3 bytes; accepted: bytes that this version wrote");
  EXPECT_EQ(Failed(quern_aggregate_append_states, open, &damaged),
            "append after a failed append: rows are missing from the groups; accepted: a new aggregation");
}

// Where it shows, while adding or reading, is the runtime's choice.
TEST_F(AggregateErrors, SumsThatDoNotFit) {
  const std::vector<int64_t> key = {7, 7}, large = {INT64_MAX, 1};
  for (const quern::Engine engine : {quern::Engine::kJit, quern::Engine::kGeneric}) {
    quern::Aggregate aggregate = NewAggregate(kSpec, engine);
    quern::Status status = aggregate.Append(Table{{ColumnOf(key)}, {ColumnOf(large)}, 2}.batch());
    if (status.ok()) status = aggregate.Finalise();
    if (status.ok()) status = quern::Groups::Create(aggregate)->Next().status();
    EXPECT_EQ(status.code(), QUERN_FAILED_PRECONDITION);
    EXPECT_EQ(status.text(), "sum out of range: sum(i64); accepted: sums within 64 bits, or sum128");
  }
}

}  // namespace
}  // namespace quern_test
