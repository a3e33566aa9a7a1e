// SPDX-License-Identifier: Apache-2.0
// A join that may spill writes nothing where its table finds room by taking the tuples; with a byte less it writes
// rows. Where it is refused memory in the middle, it writes rows if none was taken. Whatever happens, no row is wrong.
//
//     400,000 rows of 16 bytes    8 MiB of lists    24.2 MB: a table beside them    17.8 MB: one that takes them
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "runtime/base/stop_flag.h"
#include "runtime/join/table_builder.h"
#include "runtime/spill/spill_context.h"
#include "test/unit/runtime/join/taken_tuples.h"
#include "test/unit/runtime/spill/spill_test_rows.h"

namespace quern::test {
namespace {

constexpr uint64_t kMiB = 1 << 20, kAsideBytes = kMiB;
constexpr int64_t kNumRows = 400'000;

Case CaseOf(JoinKind id, const KeyForm& form) {
  const JoinKindRow& kind = RowOf(id);
  return {kind, form, false, kind.has_probe_columns(), kind.has_build_columns()};
}

std::shared_ptr<SpillContext> NewSpill(const std::shared_ptr<MemoryBudget>& budget) {
  return TestContext(budget, SystemFileCalls(), {16, 4096, 1, kAsideBytes});
}

// The smallest limit with which everything is said to fit.
uint64_t LimitThatFits(const TakenRows& rows) {
  const auto budget = std::make_shared<MemoryBudget>();
  Runner runner(rows.of, LayoutChoice::kAuto, 1000, budget, NewSpill(budget));
  EXPECT_EQ(runner.Append(rows.build), absl::OkStatus());
  const QuernJoinDescriptor& descriptor = *runner.join()->descriptor().get();
  const uint64_t taking = TableBuilder::LeastBytesTaking(descriptor, rows.num_table_rows());
  EXPECT_LT(taking, TableBuilder::LeastBytes(descriptor, rows.num_table_rows()));
  EXPECT_LT(budget->peak_bytes(), budget->used_bytes() + taking) << "appending takes less";
  return budget->used_bytes() + taking;
}

void ExpectRows(const TakenRows& rows, uint64_t limit, bool writes) {
  SCOPED_TRACE(rows.of.Spec() + ", " + std::to_string(limit) + " bytes");
  const auto budget = std::make_shared<MemoryBudget>(limit);
  {
    const auto spill = NewSpill(budget);
    Runner runner(rows.of, LayoutChoice::kAuto, 1000, budget, spill);
    ASSERT_EQ(runner.Append(rows.build), absl::OkStatus());
    ASSERT_EQ(runner.join()->Finalise(), absl::OkStatus());
    EXPECT_EQ(spill->stats().written_bytes != 0, writes);
    EXPECT_EQ(runner.has_spilled(), writes);
    if (!writes) {
      EXPECT_EQ(runner.layout(), "unchained");
      EXPECT_EQ(runner.join()->stats().directory_bytes, rows.half_directory_bytes()) << "taken";
    }
    rows.ExpectRows(&runner);
    EXPECT_LE(budget->peak_bytes(), limit);
    EXPECT_EQ(spill->stats().written_bytes != 0, writes);
  }
  EXPECT_EQ(budget->used_bytes(), 0u);
}

const Case kCases[] = {CaseOf(JoinKind::kInner, kForms[0]), CaseOf(JoinKind::kLeft, kForms[1]),
                       CaseOf(JoinKind::kMark, kForms[4]), CaseOf(JoinKind::kRightSemi, kTexts)};

TEST(TakenTuplesSpilling, NothingIsWrittenWhereTakingMakesRoom) {
  for (const Case& of : kCases) {
    const TakenRows rows(of, SparseRows(kNumRows / 2, 2));
    ExpectRows(rows, LimitThatFits(rows), false);
  }
}

TEST(TakenTuplesSpilling, RowsAreWrittenWithAByteLess) {
  for (const Case& of : kCases) {
    const TakenRows rows(of, SparseRows(kNumRows / 2, 2));
    ExpectRows(rows, LimitThatFits(rows) - 1, true);
  }
}

// The first request is for all rows' table; those behind it are for the rows that are read back, and their table.
TEST(TakenTuplesSpilling, RowsAreRightWhicheverRequestIsRefused) {
  const TakenRows rows(kCases[0], SparseRows(kNumRows * 3 / 2, 1));
  for (const uint64_t more_bytes : {9 * kMiB, 16 * kMiB}) {
    bool has_written = false, has_taken = false;
    int64_t requests = INT64_MAX;
    for (int64_t refused = 1; refused <= requests; ++refused) {
      SCOPED_TRACE(std::to_string(more_bytes) + " bytes, request " + std::to_string(refused));
      LimitedHost host;
      {
        const auto budget = host.NewBudget();
        const auto spill = NewSpill(budget);
        Runner runner(rows.of, LayoutChoice::kUnchained, 1000, budget, spill);
        ASSERT_EQ(runner.Append(rows.build), absl::OkStatus());
        host.LeaveOnly(more_bytes);
        host.requests = 0;
        host.refused = refused;
        ASSERT_EQ(runner.join()->Finalise(), absl::OkStatus());
        requests = host.requests;
        const JoinStats& stats = runner.join()->stats();
        has_written |= runner.has_spilled();
        has_taken |= stats.directory_bytes == HalfDirectoryBytes(stats.table_rows);
        rows.ExpectRows(&runner);
        EXPECT_LE(host.peak, host.limit);
      }
      EXPECT_EQ(host.used, 0u);
    }
    EXPECT_TRUE(has_written);
    EXPECT_TRUE(has_taken);
  }
}

// A table that has taken tuples cannot write them any more.
TEST(TakenTuplesSpilling, ACancelledTableIsLost) {
  const TakenRows rows(kCases[0], SparseRows(kNumRows, 1));
  for (const int steps : {0, 1, 2, 30}) {
    SCOPED_TRACE(std::to_string(steps) + " steps");
    LimitedHost host;
    {
      const auto budget = host.NewBudget();
      Runner runner(rows.of, LayoutChoice::kAuto, 1000, budget, NewSpill(budget));
      int stop = 0;
      runner.join()->SetStopFlag(std::make_shared<StopFlag>(&stop));
      ASSERT_EQ(runner.Append(rows.build), absl::OkStatus());
      host.LeaveOnly(TableBuilder::LeastBytesTaking(*runner.join()->descriptor().get(), rows.build.rows.size()));
      for (int step = 0; step < steps; ++step) ASSERT_EQ(runner.join()->Work().status(), absl::OkStatus());
      stop = 1;
      const absl::Status first = runner.join()->Finalise();
      EXPECT_TRUE(absl::IsCancelled(first)) << first;
      stop = 0;
      const absl::Status again = runner.join()->Finalise();
      EXPECT_EQ(again, steps == 0 ? absl::OkStatus() : first);
      if (again.ok()) rows.ExpectRows(&runner);
    }
    EXPECT_EQ(host.used, 0u);
  }
}

}  // namespace
}  // namespace quern::test
