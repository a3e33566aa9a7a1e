// SPDX-License-Identifier: Apache-2.0
// A table that takes tuples is refused memory, or cancelled, at any moment. Before it has taken some, finalising may be
// repeated. Afterwards it goes on without memory, and has failed for good where it is cancelled. Rows are never wrong,
// and all memory is given back.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "runtime/base/stop_flag.h"
#include "test/unit/hostile_keys.h"
#include "test/unit/runtime/join/taken_tuples.h"

namespace quern::test {
namespace {

const Case kSemi = {RowOf(JoinKind::kSemi), kForms[0], false, true, false},
           kTwoKeys = {RowOf(JoinKind::kInner), kForms[4], false, true, true},
           kLeft = {RowOf(JoinKind::kLeft), kForms[0], false, true, true};

// Keys that get a filter.
Data KeysOfARange() { return SparseRows(kPartitionedRows * 2 / 3, 3, /*step=*/40); }

// Keys of which some meet in a slot.
Data KeysThatMeet() {
  Data data = SparseRows(kPartitionedRows / 3, 3);
  for (const int64_t key : HostileKeys(2'000)) data.build.emplace_back(key);
  for (const int64_t key : HostileKeys(500, 1'700)) data.probe.emplace_back(key);
  return data;
}

// A job whose rows have come, from two appenders where there are so many.
struct Job {
  const TakenRows& rows;
  int stop = 0;
  Runner runner;

  Job(const TakenRows& r, LimitedHost* host)
      : rows(r), runner(r.of, LayoutChoice::kUnchained, 1000, host->NewBudget()) {
    runner.join()->SetStopFlag(std::make_shared<StopFlag>(&stop));
    EXPECT_EQ(runner.Append(rows.build, kPartitionedRows + 10'000), absl::OkStatus());
    host->LeaveOnly(rows.half_directory_bytes() + (uint64_t{2} << 20));
    host->requests = 0;
  }
  absl::Status Finalise() { return runner.join()->Finalise(); }
  void ExpectRows() {
    EXPECT_LT(runner.join()->stats().directory_bytes, 2 * rows.half_directory_bytes() - sizeof(uint64_t)) << "taken";
    rows.ExpectRows(&runner);
  }
};

enum class Refused : uint8_t { kNot, kUnneeded, kRepeated };

// Finalises where request n is refused, alone or with all behind it.
Refused Refuse(const TakenRows& rows, int64_t n, bool is_alone) {
  SCOPED_TRACE(rows.of.Spec() + ", request " + std::to_string(n) + (is_alone ? "" : " and all behind it"));
  LimitedHost host;
  Refused refused = Refused::kNot;
  {
    Job job(rows, &host);
    host.refused = n;
    host.refuses_on = !is_alone;
    absl::Status status = job.Finalise();
    if (host.requests >= n) refused = status.ok() ? Refused::kUnneeded : Refused::kRepeated;
    if (refused == Refused::kRepeated) {
      EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
      host.refused = 0;
      status = job.Finalise();
    }
    EXPECT_EQ(status, absl::OkStatus());
    if (status.ok()) job.ExpectRows();
  }
  EXPECT_EQ(host.used, 0u);
  return refused;
}

// Refuses each request in turn.
void ExpectEachRefusal(const TakenRows& rows, int64_t fewest_requests) {
  for (const bool is_alone : {true, false}) {
    int64_t num_repeated = 0, num_requests = 0;
    for (Refused refused; (refused = Refuse(rows, num_requests + 1, is_alone)) != Refused::kNot; ++num_requests)
      num_repeated += refused == Refused::kRepeated ? 1 : 0;
    EXPECT_GT(num_repeated, 0);
    EXPECT_LT(num_repeated, num_requests);
    EXPECT_GE(num_requests, fewest_requests);
  }
}

// The directory is needed, and filters of two appenders are not.
TEST(TakenTuplesErrors, EachRefusalOfAKeyFilter) {
  ExpectEachRefusal(TakenRows(kSemi, KeysOfARange()), 4);
  ExpectEachRefusal(TakenRows(kTwoKeys, KeysOfARange()), 4);
}

// Neither is the index of a slot in which many keys meet.
TEST(TakenTuplesErrors, EachRefusalOfACrowdedSlot) { ExpectEachRefusal(TakenRows(kLeft, KeysThatMeet()), 5); }

// A table is cancelled after each number of steps.
TEST(TakenTuplesErrors, ACancelledTableIsLostOnceItHasTakenTuples) {
  const TakenRows rows(kLeft, SparseRows(kPartitionedRows / 3, 3));
  int num_repeated = 0, num_lost = 0;
  bool is_done = false;
  for (int steps = 0; !is_done; steps += steps < 3 ? 1 : 15) {
    SCOPED_TRACE(std::to_string(steps) + " steps");
    LimitedHost host;
    Job job(rows, &host);
    const std::shared_ptr<HashJoin>& join = job.runner.join();
    for (int step = 0; step < steps && !is_done; ++step) {
      const absl::StatusOr<WorkState> state = join->Work();
      ASSERT_EQ(state.status(), absl::OkStatus());
      is_done = *state == WorkState::kDone;
    }
    if (is_done) {
      job.ExpectRows();
      break;
    }
    job.stop = 1;
    const absl::Status first = job.Finalise();
    EXPECT_TRUE(absl::IsCancelled(first)) << first;
    job.stop = 0;
    const absl::Status again = job.Finalise();
    if (again.ok()) {
      ++num_repeated;
      job.ExpectRows();
      continue;
    }
    ++num_lost;
    EXPECT_EQ(again, first);
    EXPECT_EQ(join->Work().status(), first);
    EXPECT_FALSE(join->is_finalised());
    EXPECT_TRUE(absl::IsFailedPrecondition(join->Append(rows.build.Batch(0, 1, true, false))));
    EXPECT_FALSE(JoinProber(join).SetInput(rows.probe.Batch(0, 1, true, false)).ok());
  }
  EXPECT_GT(num_repeated, 0);
  EXPECT_GT(num_lost, 3);
}

// Of a job that is given up before its table is complete.
TEST(TakenTuplesErrors, AllMemoryIsGivenBackAtAnyStep) {
  const TakenRows rows(kSemi, KeysOfARange());
  for (int steps = 0; steps < 140; steps += 1 + steps / 2) {
    SCOPED_TRACE(std::to_string(steps) + " steps");
    LimitedHost host;
    {
      Job job(rows, &host);
      for (int step = 0; step < steps; ++step) ASSERT_EQ(job.runner.join()->Work().status(), absl::OkStatus());
      EXPECT_LE(host.peak, host.limit);
    }
    EXPECT_EQ(host.used, 0u);
  }
}

}  // namespace
}  // namespace quern::test
