// SPDX-License-Identifier: Apache-2.0
// An unchained table that finds no memory beside the tuples takes theirs, and half a directory is all it needs. Rows
// are those of nested loops: of every kind of join, of keys that are packed and that are not, with one appender and
// with several.
//
// A host has memory for all rows, and little when they have come:
//
//     135,003 rows of 16 bytes    4 MiB of lists    table: 2 MiB of tuples and 4 MiB of directory are refused
//                                                   it takes the lists, and 2 MiB of directory
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/kept_pages.h"
#include "test/unit/hostile_keys.h"
#include "test/unit/runtime/base/process_memory.h"
#include "test/unit/runtime/base/sanitized.h"
#include "test/unit/runtime/join/number_join.h"
#include "test/unit/runtime/join/taken_tuples.h"
#include "test/unit/runtime/sink/finalise_together.h"

namespace quern::test {
namespace {

const Case kInner = {RowOf(JoinKind::kInner), kForms[0], false, true, true};
const Case kFull = {RowOf(JoinKind::kFull), kTexts, false, true, true};

constexpr uint64_t kLimitWithGroups = uint64_t{1} << 30;

struct Settings {
  size_t rows_of_each = SIZE_MAX;  // of an appender
  LayoutChoice layout = LayoutChoice::kAuto;
  uint64_t more_bytes = 0;  // than half a directory
  uint32_t num_threads = 1;
};

void ExpectTakenWithin(uint64_t job_limit, const TakenRows& rows, const Settings& settings) {
  SCOPED_TRACE(rows.of.Spec() + ", limit " + std::to_string(job_limit));
  LimitedHost host;
  host.job_limit = job_limit;
  {
    Runner runner(rows.of, settings.layout, 1000, host.NewBudget());
    ASSERT_EQ(runner.Append(rows.build, settings.rows_of_each), absl::OkStatus());
    host.LeaveOnly(rows.half_directory_bytes() + settings.more_bytes);
    std::vector<std::thread> threads;
    for (uint32_t t = 1; t < settings.num_threads; ++t)
      threads.emplace_back([&, t] { EXPECT_EQ(FinaliseTogether(runner.join().get(), t), absl::OkStatus()); });
    EXPECT_EQ(FinaliseTogether(runner.join().get(), 0), absl::OkStatus());
    for (std::thread& thread : threads) thread.join();
    ASSERT_TRUE(runner.join()->is_finalised());
    EXPECT_LE(host.peak, host.limit);
    EXPECT_EQ(runner.layout(), "unchained");
    EXPECT_EQ(runner.join()->stats().directory_bytes, rows.half_directory_bytes());
    EXPECT_EQ(runner.join()->stats().table_rows, rows.num_table_rows());
    rows.ExpectRows(&runner);
  }
  EXPECT_EQ(host.used, 0u);
}

void ExpectTaken(const TakenRows& rows, const Settings& settings = {}) {
  for (const uint64_t job_limit : {uint64_t{0}, kLimitWithGroups}) ExpectTakenWithin(job_limit, rows, settings);
}

Case CaseOf(JoinKind id, const KeyForm& form, bool residual = false) {
  const JoinKindRow& kind = RowOf(id);
  return {kind, form, residual, kind.has_probe_columns(), kind.has_build_columns()};
}

// ---- kinds and keys ----

class TakenTuples : public testing::TestWithParam<JoinKind> {};

// Packed keys and others, by turns with nulls.
TEST_P(TakenTuples, GiveTheRowsOfNestedLoops) {
  const auto turn = static_cast<size_t>(GetParam());
  const KeyForm others[] = {kTexts, kForms[4], kForms[5], kNullableTexts};
  for (const KeyForm& form : {kForms[turn % 2], others[turn % 4]}) {
    const Case of = CaseOf(GetParam(), form);
    if (!IsAllowed(of)) continue;
    const int64_t times = of.kind.id == JoinKind::kSingle ? 1 : 3,
                  num_rows = form.nullable ? 158'000 : kPartitionedRows;
    ExpectTaken(TakenRows(of, SparseRows(num_rows / times, times)));
  }
}

INSTANTIATE_TEST_SUITE_P(All, TakenTuples, testing::ValuesIn([] {
                           std::vector<JoinKind> kinds;
                           for (const JoinKindRow& row : AllJoinKinds()) kinds.push_back(row.id);
                           return kinds;
                         }()),
                         [](const auto& of) { return std::string(RowOf(of.param).text); });

TEST(TakenTuplesOfAppenders, AreThoseOfAllOfThem) {
  for (const Case& of : {CaseOf(JoinKind::kInner, kForms[0]), CaseOf(JoinKind::kRightSemi, kForms[4], true)})
    ExpectTaken(TakenRows(of, SparseRows(2 * kPartitionedRows / 3, 3)), {.rows_of_each = kPartitionedRows});
}

TEST(TakenTuplesOfAppenders, AreMovedByThreadsTogether) {
  for (const Case& of : {CaseOf(JoinKind::kFull, kTexts), CaseOf(JoinKind::kSemi, kForms[0], true)})
    ExpectTaken(TakenRows(of, SparseRows(kPartitionedRows, 2)), {.rows_of_each = kPartitionedRows, .num_threads = 4});
}

// A list of few rows is divided first, which takes memory.
TEST(TakenTuplesOfAppenders, AreThoseOfFewRowsToo) {
  const Settings settings = {.rows_of_each = kPartitionedRows, .more_bytes = uint64_t{4} << 20};
  for (const Case& of : {CaseOf(JoinKind::kInner, kTexts), CaseOf(JoinKind::kLeft, kForms[0], true)})
    ExpectTaken(TakenRows(of, SparseRows((kPartitionedRows + 6'000) / 3, 3)), settings);
}

// ---- what a limit decides ----

// Where there is one byte less than half a directory, nothing is taken, and there may be more memory next time.
TEST(TakenTuplesLimits, OneByteLessIsRefused) {
  const TakenRows rows(kInner, SparseRows(kPartitionedRows, 1));
  LimitedHost host;
  {
    Runner runner(rows.of, LayoutChoice::kAuto, 1000, host.NewBudget());
    ASSERT_EQ(runner.Append(rows.build), absl::OkStatus());
    const uint64_t before = host.used;
    for (int i = 0; i < 2; ++i) {
      host.LeaveOnly(rows.half_directory_bytes() - 1);
      EXPECT_TRUE(absl::IsResourceExhausted(runner.join()->Finalise()));
      EXPECT_EQ(host.used, before);
    }
    host.LeaveOnly(rows.half_directory_bytes());
    ASSERT_EQ(runner.join()->Finalise(), absl::OkStatus());
    rows.ExpectRows(&runner);
  }
  EXPECT_EQ(host.used, 0u);
}

// With memory for the tuples beside the lists, or for an open table, they stay until the table is complete.
TEST(TakenTuplesLimits, NothingIsTakenWhereThereIsRoom) {
  const TakenRows rows(kFull, SparseRows(kPartitionedRows / 3, 3));
  LimitedHost host;
  Runner runner(rows.of, LayoutChoice::kAuto, 1000, host.NewBudget());
  ASSERT_EQ(runner.Append(rows.build), absl::OkStatus());
  host.LeaveOnly(uint64_t{64} << 20);
  ASSERT_EQ(runner.join()->Finalise(), absl::OkStatus());
  EXPECT_GT(host.peak, host.used + runner.join()->stats().tuple_bytes / 2);
  EXPECT_EQ(runner.join()->stats().directory_bytes, 2 * rows.half_directory_bytes() - sizeof(uint64_t));
  rows.ExpectRows(&runner);
}

// Keys that look dense are in no partitions.
TEST(TakenTuplesLimits, TuplesInListsAreNotTaken) {
  const TakenRows rows(kInner, SparseRows(kPartitionedRows / 3, 3, /*step=*/1000));
  LimitedHost host;
  Runner runner(rows.of, LayoutChoice::kAuto, 1000, host.NewBudget());
  ASSERT_EQ(runner.Append(rows.build), absl::OkStatus());
  host.LeaveOnly(rows.half_directory_bytes() + (uint64_t{1} << 20));
  EXPECT_TRUE(absl::IsResourceExhausted(runner.join()->Finalise()));
  host.LeaveOnly(uint64_t{64} << 20);
  EXPECT_EQ(runner.join()->Finalise(), absl::OkStatus());
  rows.ExpectRows(&runner);
}

// What the lists have reserved beyond the table's bytes goes back when it is complete.
TEST(TakenTuplesLimits, ATableKeepsNoMoreThanItsBytes) {
  const TakenRows rows(kInner, SparseRows(kPartitionedRows, 1));
  LimitedHost host;
  Runner runner(rows.of, LayoutChoice::kAuto, 1000, host.NewBudget());
  ASSERT_EQ(runner.Append(rows.build), absl::OkStatus());
  host.LeaveOnly(rows.half_directory_bytes());
  ASSERT_EQ(runner.join()->Finalise(), absl::OkStatus());
  EXPECT_EQ(host.used, rows.half_directory_bytes() + runner.join()->stats().tuple_bytes + 64);
}

// ---- keys that meet in a slot ----

Keys Both(Keys keys, const Keys& more) {
  keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}
Keys Hostile(size_t n, uint64_t first = 0) {
  const std::vector<int64_t> keys = HostileKeys(n, first);
  return {keys.begin(), keys.end()};
}

TEST(TakenTuplesOfCrowdedSlots, KeysOfOneSlotAndAFrequentOne) {
  Data data = SparseRows(kPartitionedRows / 3, 3);
  data.build = Both(Both(data.build, Hostile(2'000)), Keys(5'000, 7));
  data.probe = Both(Both(Hostile(2'000, 1'000), data.probe), Keys(3, 7));
  for (const JoinKind kind : {JoinKind::kInner, JoinKind::kRightAnti, JoinKind::kMark}) {
    const TakenRows rows(CaseOf(kind, kForms[0]), data);
    for (const uint64_t more_bytes : {uint64_t{0}, uint64_t{100'000}, uint64_t{1} << 20}) {
      SCOPED_TRACE(rows.of.Spec() + ", " + std::to_string(more_bytes));
      LimitedHost host;
      {
        Runner runner(rows.of, LayoutChoice::kAuto, 1000, host.NewBudget());
        ASSERT_EQ(runner.Append(rows.build), absl::OkStatus());
        host.LeaveOnly(rows.half_directory_bytes() + more_bytes);
        ASSERT_EQ(runner.join()->Finalise(), absl::OkStatus());
        EXPECT_LE(host.peak, host.limit);
        EXPECT_LT(runner.join()->stats().directory_bytes, 2 * rows.half_directory_bytes() - sizeof(uint64_t));
        rows.ExpectRows(&runner);
      }
      EXPECT_EQ(host.used, 0u);
    }
  }
}

// All rows are in one slot of one partition.
TEST(TakenTuplesOfCrowdedSlots, AllHashesAreZero) {
  for (const char* keys : {"i64", "i64,i64"}) {
    const bool is_packed = std::string(keys) == "i64";
    const auto descriptor = std::make_shared<JoinDescriptor>(
        *ParseSpecOf<JoinSpec>("join.inner keys=" + std::string(keys) + " build=i64 probe=i64"));
    descriptor->mutable_tuning()->rows.zero_hashes = true;
    LimitedHost host;
    {
      const auto join =
          std::make_shared<HashJoin>(descriptor, GenericJoinKernel(), nullptr, host.NewBudget(), JoinOptions());
      std::vector<int64_t> build = RowNumbers(kPartitionedRows), probe = {0, -5, 7 * 7990001};
      for (int64_t& key : build) key = key / 2 * 7990001;
      const std::vector<int64_t> rows = RowNumbers(build.size());
      const auto batch_of = [is_packed](const std::vector<int64_t>& of_keys, const std::vector<int64_t>& payload) {
        BatchView batch = Batch(of_keys, payload);
        if (!is_packed) batch.keys.push_back(batch.keys[0]);
        return batch;
      };
      ASSERT_EQ(join->Append(batch_of(build, rows)), absl::OkStatus());
      host.LeaveOnly(HalfDirectoryBytes(build.size()));
      ASSERT_EQ(join->Finalise(), absl::OkStatus());
      EXPECT_LE(host.peak, host.limit);
      EXPECT_EQ(Probe(join, batch_of(probe, RowNumbers(3)), 1000), NestedLoops(build, probe));
    }
    EXPECT_EQ(host.used, 0u);
  }
}

// ---- key filters ----

// Of keys in a range, most of which the build side does not have: the first of two, and one that is packed.
TEST(TakenTuplesOfKeyFilters, TheFilterIsMadeOfTheTable) {
  constexpr int64_t kDistinct = kPartitionedRows * 2 / 3, kStep = 40;
  constexpr uint64_t kFilterBytes = ((kDistinct - 1) * kStep + 64) / 64 * 8;
  const Data data = SparseRows(kDistinct, 3, kStep);
  for (const KeyForm& form : {kForms[0], kForms[4]}) {
    for (const JoinKind kind : {JoinKind::kSemi, JoinKind::kInner, JoinKind::kAnti}) {
      const TakenRows rows(CaseOf(kind, form), data);
      for (const bool has_room : {true, false}) {
        SCOPED_TRACE(rows.of.Spec());
        LimitedHost host;
        {
          Runner runner(rows.of, LayoutChoice::kUnchained, 1000, host.NewBudget());
          ASSERT_EQ(runner.Append(rows.build, kPartitionedRows), absl::OkStatus());
          host.LeaveOnly(rows.half_directory_bytes() + (has_room ? uint64_t{1} << 20 : 1000));
          ASSERT_EQ(runner.join()->Finalise(), absl::OkStatus());
          EXPECT_LE(host.peak, host.limit);
          const uint64_t filter_bytes = runner.join()->stats().directory_bytes - rows.half_directory_bytes();
          EXPECT_EQ(filter_bytes, has_room ? kFilterBytes : 0u);
          rows.ExpectRows(&runner);
        }
        EXPECT_EQ(host.used, 0u);
      }
    }
  }
}

// ---- pages ----

// The second of two jobs has pages of the first one, too.
TEST(TakenTuplesPages, OfTheListsAreThoseOfTheTable) {
  Data data = SparseRows(1'500'000, 2);
  data.probe.resize(20);
  const TakenRows rows(CaseOf(JoinKind::kInner, kTexts), data);
  for (const uint32_t num_threads : {1u, 3u, 3u}) {
    KeptPages::OfProcess().Clear();
    const Settings settings = {.rows_of_each = 1'300'000, .num_threads = num_threads};
    for (int i = 0; i < 2; ++i) ExpectTakenWithin(kLimitWithGroups, rows, settings);
    EXPECT_GT(KeptPages::OfProcess().bytes(), uint64_t{32} << 20);
  }
}

// A page is in memory on one side only, but for those of the partitions that are moved.
TEST(TakenTuplesPages, AreInMemoryOnce) {
#if defined(QUERN_TEST_SANITIZED) || !defined(NDEBUG)
  GTEST_SKIP() << "a debug build writes to all memory that it allocates, and a sanitizer has memory of its own";
#endif
  const Case of = CaseOf(JoinKind::kInner, kForms[4]);
  const Data data = SparseRows(600'001, 1);
  const Side build(data.build, of.form);
  KeptPages::OfProcess().Clear();
  LimitedHost host;
  Runner runner(of, LayoutChoice::kAuto, 1000, host.NewBudget());
  ASSERT_EQ(runner.Append(build), absl::OkStatus());
  host.LeaveOnly(HalfDirectoryBytes(600'001));
  KeptPages::OfProcess().Clear();
  const uint64_t before = ResidentBytes();
  uint64_t most = before;
  for (WorkState state = WorkState::kMore; state != WorkState::kDone; most = std::max(most, ResidentBytes())) {
    const absl::StatusOr<WorkState> next = runner.join()->Work();
    ASSERT_EQ(next.status(), absl::OkStatus());
    state = *next;
  }
  const JoinStats& stats = runner.join()->stats();
  EXPECT_LT(most - before, stats.directory_bytes + stats.tuple_bytes / 2);
}

}  // namespace
}  // namespace quern::test
