// SPDX-License-Identifier: Apache-2.0
// Every error that the sorts' part of the C ABI itself can answer, with its full text. (Those of Arrow:
// sort_arrow_test.cc; of runs: sort_parallel_test.cc; of merges: merge_test.cc.)
#include <gtest/gtest.h>

#include <regex>

#include "test/hosts/sort_tables.h"

namespace quern_test {
namespace {

constexpr const char* kSpec = "sort keys=i64:out payload=i64";

class SortErrors : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(quern_compile(kSpec, QUERN_ENGINE_GENERIC, nullptr, &some_kernel, nullptr), QUERN_OK);
    ASSERT_EQ(quern_sort_create(some_kernel, 0, &open, nullptr), QUERN_OK);
    ASSERT_EQ(quern_sort_create(some_kernel, 0, &finalised, nullptr), QUERN_OK);
    ASSERT_EQ(quern_sort_append(finalised, &some_batch, false, nullptr), QUERN_OK);
    ASSERT_EQ(quern_sort_finalise(finalised, nullptr), QUERN_OK);
    ASSERT_EQ(quern_sorted_create(finalised, 0, &some_sorted, nullptr), QUERN_OK);
  }
  void TearDown() override {
    quern_sorted_destroy(some_sorted);
    quern_sort_destroy(open);
    quern_sort_destroy(finalised);
    quern_kernel_destroy(some_kernel);
  }

  const std::vector<int64_t> numbers = {1, 2, 3};
  const Table table = {{ColumnOf(numbers)}, {ColumnOf(numbers)}, 3};
  const quern_batch some_batch = table.batch();
  quern_kernel* some_kernel = nullptr;
  quern_sort* open = nullptr;
  quern_sort* finalised = nullptr;
  quern_sorted* some_sorted = nullptr;
};

template <class... Call>
std::string Invalid(Call... call) {
  return ErrorOf(QUERN_INVALID_ARGUMENT, call...);
}

template <class... Call>
std::string Failed(Call... call) {
  return ErrorOf(QUERN_FAILED_PRECONDITION, call...);
}

TEST_F(SortErrors, NullArguments) {
  quern_kernel* const no_kernel = nullptr;
  quern_sort *sort = nullptr, *const no_sort = nullptr;
  quern_sort** const nowhere = nullptr;
  const quern_batch* const no_batch = nullptr;
  EXPECT_EQ(Invalid(quern_sort_create, no_kernel, 0, &sort), "null argument: kernel; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_sort_create, some_kernel, 0, nowhere), "null argument: sort; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_sort_append, no_sort, &some_batch, false), "null argument: sort; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_sort_append, open, no_batch, false), "null argument: batch; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_sort_finalise, no_sort), "null argument: sort; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_sort_finalise_shared, no_sort), "null argument: sort; accepted: a pointer");
}

TEST_F(SortErrors, NullArgumentsOfThresholds) {
  quern_sort* const no_sort = nullptr;
  quern_result row;
  bool exists = false;
  EXPECT_EQ(Invalid(quern_sort_get_threshold, no_sort, &row, &exists), "null argument: sort; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_sort_get_threshold, open, static_cast<quern_result*>(nullptr), &exists),
            "null argument: row; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_sort_get_threshold, open, &row, static_cast<bool*>(nullptr)),
            "null argument: exists; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_sort_set_threshold, no_sort, &some_batch), "null argument: sort; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_sort_set_threshold, open, static_cast<const quern_batch*>(nullptr)),
            "null argument: keys; accepted: a pointer");
}

TEST_F(SortErrors, NullArgumentsOfAppenders) {
  quern_sort* const no_sort = nullptr;
  quern_sort_appender* appender = nullptr;
  quern_sort_appender** const nowhere = nullptr;
  const quern_batch* const no_batch = nullptr;
  EXPECT_EQ(Invalid(quern_sort_appender_create, no_sort, &appender), "null argument: sort; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_sort_appender_create, open, nowhere), "null argument: appender; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_sort_appender_append, appender, &some_batch, false),
            "null argument: appender; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_sort_appender_finish, appender), "null argument: appender; accepted: a pointer");
  ASSERT_EQ(quern_sort_appender_create(open, &appender, nullptr), QUERN_OK);
  EXPECT_EQ(Invalid(quern_sort_appender_append, appender, no_batch, false),
            "null argument: batch; accepted: a pointer");
  quern_sort_appender_destroy(appender);
}

TEST_F(SortErrors, NullArgumentsOfReaders) {
  quern_sort* const no_sort = nullptr;
  quern_sorted *sorted = nullptr, *const no_sorted = nullptr;
  quern_sorted** const nowhere = nullptr;
  quern_result result;
  uint64_t position = 0;
  bool more = false;
  EXPECT_EQ(Invalid(quern_sorted_create, no_sort, 0, &sorted), "null argument: sort; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_sorted_create, finalised, 0, nowhere), "null argument: sorted; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_sorted_next, no_sorted, &result, &position, &more),
            "null argument: sorted; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_sorted_next, some_sorted, static_cast<quern_result*>(nullptr), &position, &more),
            "null argument: result; accepted: a pointer");
  EXPECT_EQ(Invalid(quern_sorted_next, some_sorted, &result, &position, static_cast<bool*>(nullptr)),
            "null argument: more; accepted: a pointer");
}

TEST_F(SortErrors, KernelsOfAnotherOperator) {
  quern_kernel *join_kernel = nullptr, *aggregate_kernel = nullptr;
  quern_join* join = reinterpret_cast<quern_join*>(8);
  quern_aggregate* aggregate = reinterpret_cast<quern_aggregate*>(8);
  quern_sort* sort = reinterpret_cast<quern_sort*>(8);
  ASSERT_EQ(quern_compile("join.mark keys=i64", QUERN_ENGINE_GENERIC, nullptr, &join_kernel, nullptr), QUERN_OK);
  ASSERT_EQ(quern_compile("aggregate keys=i64", QUERN_ENGINE_GENERIC, nullptr, &aggregate_kernel, nullptr), QUERN_OK);
  EXPECT_EQ(Invalid(quern_join_create, some_kernel, 0, &join),
            "wrong kernel for a join: sort; accepted: one of join.KIND");
  EXPECT_EQ(Invalid(quern_aggregate_create, some_kernel, 0, &aggregate),
            "wrong kernel for an aggregation: sort; accepted: one of aggregate");
  EXPECT_EQ(Invalid(quern_sort_create, join_kernel, 0, &sort),
            "wrong kernel for a sort: join.mark; accepted: one of sort");
  EXPECT_EQ(Invalid(quern_sort_create, aggregate_kernel, 0, &sort),
            "wrong kernel for a sort: aggregate; accepted: one of sort");
  EXPECT_EQ(join, nullptr);
  EXPECT_EQ(aggregate, nullptr);
  EXPECT_EQ(sort, nullptr);
  quern_kernel_destroy(join_kernel);
  quern_kernel_destroy(aggregate_kernel);
}

TEST_F(SortErrors, WrongOrder) {
  quern_sorted* sorted = nullptr;
  quern_result row;
  bool exists = false;
  const std::string late = " after finalise: the rows are sorted; accepted: a new sort";
  EXPECT_EQ(Failed(quern_sorted_create, open, 0, &sorted),
            "reader before finalise: the rows are not sorted; accepted: after quern_sort_finalise");
  EXPECT_EQ(Failed(quern_sort_append, finalised, &some_batch, false), "append" + late);
  EXPECT_EQ(Failed(quern_sort_finalise, finalised), "finalise" + late);
  EXPECT_EQ(Failed(quern_sort_get_threshold, finalised, &row, &exists), "threshold" + late);
  EXPECT_EQ(Failed(quern_sort_set_threshold, finalised, &some_batch), "threshold" + late);
  EXPECT_EQ(quern_sort_finalise_shared(finalised, nullptr), QUERN_OK) << "who comes late finds the rows";
}

TEST_F(SortErrors, WrongOrderOfAppenders) {
  quern_sort_appender *appender = nullptr, *late = nullptr;
  const std::string after_finalise = " after finalise: the rows are sorted; accepted: a new sort";
  const std::string after_finish = " after finish: the rows were handed over; accepted: a new appender";
  EXPECT_EQ(Failed(quern_sort_appender_create, finalised, &appender), "appender" + after_finalise);
  ASSERT_EQ(quern_sort_appender_create(open, &appender, nullptr), QUERN_OK);
  ASSERT_EQ(quern_sort_appender_create(open, &late, nullptr), QUERN_OK);
  ASSERT_EQ(quern_sort_appender_finish(appender, nullptr), QUERN_OK);
  EXPECT_EQ(Failed(quern_sort_appender_append, appender, &some_batch, false), "append" + after_finish);
  EXPECT_EQ(Failed(quern_sort_appender_finish, appender), "finish" + after_finish);
  ASSERT_EQ(quern_sort_finalise_shared(open, nullptr), QUERN_OK);
  EXPECT_EQ(Failed(quern_sort_appender_append, late, &some_batch, false), "append" + after_finalise);
  EXPECT_EQ(Failed(quern_sort_appender_finish, late), "finish" + after_finalise);
  quern_sort_appender_destroy(appender);
  quern_sort_appender_destroy(late);
}

TEST_F(SortErrors, Thresholds) {
  quern::Sort limited = NewSort("sort keys=i64 limit=2");
  quern_batch batch = some_batch;
  EXPECT_EQ(Invalid(quern_sort_set_threshold, limited.handle(), &batch), "rows of a threshold: 3; accepted: 1");
  batch.num_rows = 0;
  EXPECT_EQ(Invalid(quern_sort_set_threshold, limited.handle(), &batch), "rows of a threshold: 0; accepted: 1");
  batch.num_rows = 1;
  batch.payload = nullptr;
  EXPECT_EQ(limited.SetThreshold(batch).text(), "");
  EXPECT_EQ(Invalid(quern_sort_set_threshold, open, &batch),
            "threshold of a sort without limit: sort keys=i64:out payload=i64; accepted: limit=N");
  batch.keys = nullptr;
  EXPECT_EQ(Invalid(quern_sort_set_threshold, limited.handle(), &batch),
            "batch without columns: threshold key; accepted: 1 columns");
}

TEST_F(SortErrors, BatchesWithoutColumns) {
  quern_batch batch = some_batch;
  batch.keys = nullptr;
  EXPECT_EQ(Invalid(quern_sort_append, open, &batch, false), "batch without columns: input key; accepted: 1 columns");
  batch = some_batch;
  batch.payload = nullptr;
  EXPECT_EQ(Invalid(quern_sort_append, open, &batch, true),
            "batch without columns: input payload; accepted: 1 columns");
  batch.num_rows = 4294967295;
  EXPECT_EQ(Invalid(quern_sort_append, open, &batch, false),
            "batch too large: 4294967295 rows; accepted: below 4294967295");
  EXPECT_EQ(quern_sort_append(open, &some_batch, false, nullptr), QUERN_OK)
      << "a batch that was refused changes nothing";
}

TEST_F(SortErrors, ReadersThatThereAreNot) {
  quern_sorted* sorted = nullptr;
  EXPECT_EQ(Invalid(quern_sorted_create, finalised, uint64_t{1} << 31, &sorted),
            "batch_rows out of range: 2147483648; accepted: 0 to 2147483647");
  EXPECT_EQ(sorted, nullptr);
}

TEST_F(SortErrors, MemoryLimitWhileAppending) {
  quern_sort* sort = nullptr;
  ASSERT_EQ(quern_sort_create(some_kernel, 10, &sort, nullptr), QUERN_OK);
  quern_error error = {};
  EXPECT_EQ(quern_sort_append(sort, &some_batch, false, &error), QUERN_RESOURCE_EXHAUSTED);
  EXPECT_TRUE(std::regex_match(error.text,
                               std::regex("memory limit exceeded: [0-9]+ bytes requested, [0-9]+ in use; limit 10")))
      << error.text;
  const std::string text = " after a failed append: rows are missing from the sort; accepted: a new sort";
  EXPECT_EQ(Failed(quern_sort_append, sort, &some_batch, false), "append" + text);
  EXPECT_EQ(Failed(quern_sort_finalise, sort), "finalise" + text);
  EXPECT_EQ(Failed(quern_sort_finalise_shared, sort), "finalise" + text);
  quern_sort_destroy(sort);
}

std::vector<int64_t> ManyNumbers() {
  std::vector<int64_t> many;
  for (int64_t i = 0; i < 300000; ++i) many.push_back(i * 0x10000003d % 1000003);
  return many;
}

// What just suffices for the rows leaves no room to sort them.
TEST_F(SortErrors, MemoryLimitWhileSorting) {
  const std::vector<int64_t> many = ManyNumbers();
  const Table rows = {{ColumnOf(many)}, {ColumnOf(many)}, many.size()};
  quern::Sort measured = NewSort(kSpec, quern::Engine::kGeneric);
  ASSERT_EQ(measured.Append(rows.batch()).text(), "");
  quern::Sort sort = NewSort(kSpec, quern::Engine::kGeneric, measured.Stats().peak_bytes);
  ASSERT_EQ(sort.Append(rows.batch()).text(), "");
  EXPECT_EQ(sort.Finalise().code(), QUERN_RESOURCE_EXHAUSTED);
  const std::string text = " after a failed finalise: rows are missing from the sort; accepted: a new sort";
  EXPECT_EQ(sort.Finalise().text(), "finalise" + text);
  EXPECT_EQ(sort.Append(rows.batch()).text(), "append" + text);
  EXPECT_EQ(quern::SortedRows::Create(sort).status().text(),
            "reader before finalise: the rows are not sorted; accepted: after quern_sort_finalise");
}

// What just suffices for sorting leaves no room for results.
TEST_F(SortErrors, MemoryLimitOfResults) {
  const std::vector<int64_t> many = ManyNumbers();
  const Table rows = {{ColumnOf(many)}, {ColumnOf(many)}, many.size()};
  const uint64_t needed = Sorted(kSpec, {rows}, quern::Engine::kGeneric).Stats().peak_bytes;
  quern::Sort sort = NewSort(kSpec, quern::Engine::kGeneric, needed);
  ASSERT_EQ(sort.Append(rows.batch()).text(), "");
  ASSERT_EQ(sort.Finalise().text(), "");
  quern::Status status;
  std::vector<quern::SortedRows> readers;  // whose results take memory, until there is none
  for (int i = 0; i < 100 && status.ok(); ++i) {
    readers.push_back(*quern::SortedRows::Create(sort));
    status = readers.back().Next().status();
  }
  EXPECT_EQ(status.code(), QUERN_RESOURCE_EXHAUSTED);
  EXPECT_EQ(readers.back().Next().status().text(), "rows after a failure: some of them are lost; accepted: a new sort");
}

}  // namespace
}  // namespace quern_test
