// SPDX-License-Identifier: Apache-2.0
// Memory that is held without need goes back at a host's request, and jobs continue.
#include <gtest/gtest.h>

#include "test/hosts/jobs.h"

namespace quern_test {
namespace {

constexpr size_t kRows = 600000;

quern_job* const kNoJob = nullptr;

TEST(ReleasedMemory, IsThatOfEarlierJobs) {
  quern::SetKeptMemory(uint64_t{1} << 30);
  std::vector<int64_t> keys(kRows);
  for (size_t i = 0; i < kRows; ++i) keys[i] = static_cast<int64_t>(i * 7919 % kRows);
  const Table table = {{ColumnOf(keys)}, {}, kRows};
  const char* const spec = "sort keys=i64:out";
  Sorted(spec, {table});
  quern::Sort sort = New<quern::Sort>(spec);
  EXPECT_EQ(Take(sort.ReleaseMemory(0)), 0u) << "no byte is asked for";
  EXPECT_GE(Take(sort.ReleaseMemory(1)), uint64_t{2} << 20) << "a large page at least";
  EXPECT_EQ(Take(sort.ReleaseMemory()), 0u);
  quern::Input rows = Take(sort.Rows());
  Done(rows.Append(table.batch()));
  EXPECT_EQ(Take(sort.ReleaseMemory()), 0u) << "what the job needs stays";
  Done(rows.Finish());
  Done(sort.Finalise());
  quern::Output sorted = Take(sort.Sorted());
  const quern_result& first = *Take(sorted.Next());
  for (uint64_t i = 0; i < first.num_rows; ++i)
    ASSERT_EQ(ElementAt<int64_t>(first.columns[0].values, i), static_cast<int64_t>(i));
}

TEST(ReleasedMemory, IsNoneWhereNoneIsKept) {
  quern::SetKeptMemory(uint64_t{1} << 30);
  std::vector<int64_t> keys(kRows);
  for (size_t i = 0; i < kRows; ++i) keys[i] = static_cast<int64_t>(i * 7919 % kRows);
  const Table table = {{ColumnOf(keys)}, {}, kRows};
  const char* const spec = "sort keys=i64:out";
  quern::Sort sort = New<quern::Sort>(spec);
  Sorted(spec, {table});
  quern::SetKeptMemory(0);
  EXPECT_EQ(Take(sort.ReleaseMemory()), 0u) << "what was kept has gone back";
  Sorted(spec, {table});
  EXPECT_EQ(Take(sort.ReleaseMemory()), 0u) << "and no more is kept";
  quern::SetKeptMemory(uint64_t{1} << 30);
  Sorted(spec, {table});
  EXPECT_GE(Take(sort.ReleaseMemory()), uint64_t{2} << 20);
}

TEST(ReleasedMemory, WrongCalls) {
  quern::Sort sort = New<quern::Sort>("sort keys=i64:out", Engine::kGeneric);
  uint64_t released = 7;
  EXPECT_EQ(ErrorOf(QUERN_INVALID_ARGUMENT, quern_job_release_memory, kNoJob, uint64_t{1}, &released),
            "null argument: job; accepted: a pointer");
  EXPECT_EQ(released, 0u);
  EXPECT_EQ(ErrorOf(QUERN_INVALID_ARGUMENT, quern_job_release_memory, sort.handle(), uint64_t{1}, nullptr),
            "null argument: released; accepted: a pointer");
}

}  // namespace
}  // namespace quern_test
