// SPDX-License-Identifier: Apache-2.0
// What a join that spills says after a call has failed in the middle of its rows, so that no row is lost or comes twice
// without an error; and scans of unmatched rows that are begun again.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/spill/spill_context.h"
#include "test/unit/runtime/join/kind_cases.h"
#include "test/unit/runtime/spill/spill_test_rows.h"

namespace quern::test {
namespace {

constexpr uint64_t kKiB = 1 << 10;
constexpr uint64_t kAsideBytes = 128 * kKiB;
constexpr size_t kBatchRows = 70;

// A device and a host's account that fail while they are told to.
class Failing final : public FileCalls {
 public:
  ssize_t Write(int file, const iovec* pieces, int num_pieces, off_t offset) override {
    if (!writes) return FileCalls::Write(file, pieces, num_pieces, offset);
    errno = ENOSPC;
    return -1;
  }
  ssize_t Read(int file, void* bytes, size_t num_bytes, off_t offset) override {
    if (!reads) return FileCalls::Read(file, bytes, num_bytes, offset);
    errno = EIO;
    return -1;
  }
  int64_t HasRead(void* /*bytes*/, int64_t result) override { return reads ? -EIO : result; }
  MemoryAccount account() {
    return {[](void* self, uint64_t) { return !static_cast<Failing*>(self)->memory; }, [](void*, uint64_t) {}, this};
  }

  std::atomic<bool> writes{false}, reads{false}, memory{false};
};

const Case kFull = {RowOf(JoinKind::kFull), kForms[0], false, true, true};

// A full join of which some partitions fit, or all where has_room is set.
struct FullJoin {
  Failing failing;
  const Data data = MakeData("many rows", 3000, 3, 7990001);
  const Side build{data.build, kFull.form}, probe{data.probe, kFull.form};
  const std::shared_ptr<MemoryBudget> budget;
  const std::shared_ptr<HashJoin> join;
  OutputBatch out;
  Result rows;

  explicit FullJoin(bool has_room = false)
      : budget(std::make_shared<MemoryBudget>(kAsideBytes + (has_room ? 64 << 20 : 150 * kKiB), failing.account())),
        join(std::make_shared<HashJoin>(std::make_shared<JoinDescriptor>(*ParseSpecOf<JoinSpec>(kFull.Spec())),
                                        GenericJoinKernel(), nullptr, budget, JoinOptions())),
        out(JoinOutputTypes(join->descriptor().spec()), 50, nullptr) {
    SpillSettings settings = {4, 4096, 1, kAsideBytes};
    settings.write_depth = 0;  // a write that fails is found by the call that writes
    join->SetSpill(TestContext(budget, &failing, settings));
    join->SetGeneric(GenericJoinKernel());
  }

  absl::Status Append(Appender* appender, size_t begin) const {
    return appender->Append(build.Batch(begin, std::min(kBatchRows, build.rows.size() - begin), true, false));
  }
  absl::Status Build() {
    Appender appender(join);
    for (size_t begin = 0; begin < build.rows.size(); begin += kBatchRows)
      QUERN_RETURN_IF_ERROR(Append(&appender, begin));
    QUERN_RETURN_IF_ERROR(appender.Finish());
    return join->Finalise();
  }
  absl::Status Push(JoinProber* prober, size_t begin) const {
    return prober->SetInput(probe.Batch(begin, std::min(kBatchRows, probe.rows.size() - begin), true, false));
  }
  absl::StatusOr<bool> Next(JoinProber* prober) {
    absl::StatusOr<bool> more = prober->Next(&out);
    if (more.ok()) AddResultRows(kFull, out, &rows);
    return more;
  }
  absl::Status ReadAll(JoinProber* prober) {
    for (;;) {
      QUERN_ASSIGN_OR_RETURN(const bool more, Next(prober));
      if (!more) return absl::OkStatus();
    }
  }
  // From a row on. *Errors*: `failed` is then where the batch begins.
  absl::Status Probe(JoinProber* prober, size_t first, size_t* failed) {
    for (*failed = first; *failed < probe.rows.size(); *failed += kBatchRows) {
      QUERN_RETURN_IF_ERROR(Push(prober, *failed));
      QUERN_RETURN_IF_ERROR(ReadAll(prober));
    }
    return absl::OkStatus();
  }
  Result Rows() {
    std::sort(rows.begin(), rows.end());
    return rows;
  }
  Result Expected() const { return NestedLoops(kFull, data, build, probe).rows; }
};

// The join has failed with `first`: whatever is called says so.
void ExpectBroken(const FullJoin& run, JoinProber* prober, size_t begin, const absl::Status& first) {
  EXPECT_EQ(run.Push(prober, begin), first);
  EXPECT_EQ(prober->SetUnmatched(), first);
  JoinProber other(run.join);
  EXPECT_EQ(run.Push(&other, 0), first);
  EXPECT_EQ(other.SetUnmatched(), first);
  EXPECT_EQ(other.SetUnmatched(), first);
}

// There are no rows to write that would make room for a table.
TEST(SpillingJoinErrors, ATableOfNoRowsThatFindsNoMemoryIsAnError) {
  int num_refused = 0, num_built = 0;
  for (uint64_t bytes = 1; bytes < 4 * kKiB; bytes += 100) {
    const auto budget = std::make_shared<MemoryBudget>(bytes);
    HashJoin join(std::make_shared<JoinDescriptor>(*ParseSpecOf<JoinSpec>("join.full keys=i64 build=i64 probe=i64")),
                  GenericJoinKernel(), nullptr, budget, JoinOptions());
    join.SetSpill(TestContext(budget, SystemFileCalls(), {4, 4096, 1, kAsideBytes}));
    join.SetGeneric(GenericJoinKernel());
    const absl::Status status = join.Finalise();
    if (status.ok()) ++num_built;
    else ++num_refused;
    EXPECT_TRUE(status.ok() || absl::IsResourceExhausted(status)) << status;
  }
  EXPECT_GT(num_refused, 0);
  EXPECT_GT(num_built, 0);
}

TEST(SpillingJoinErrors, ABatchWhoseWritingFailedDoesNotComeAgain) {
  FullJoin run;
  ASSERT_EQ(run.Build(), absl::OkStatus());
  ASSERT_TRUE(run.join->has_spilled());
  JoinProber prober(run.join);
  size_t failed = 0;
  run.failing.writes = true;
  const absl::Status first = run.Probe(&prober, 0, &failed);
  EXPECT_TRUE(absl::IsUnavailable(first) && !IsMemoryLost(first)) << first;
  run.failing.writes = false;
  ExpectBroken(run, &prober, failed, first);
}

TEST(SpillingJoinErrors, NorDoesOneWhoseWritingWasRefusedMemory) {
  FullJoin run;
  ASSERT_EQ(run.Build(), absl::OkStatus());
  JoinProber prober(run.join);
  size_t failed = 0;
  // Within what is set aside: takes it, so that the writer asks the account, which refuses.
  const uint64_t io_bytes = run.join->spill()->io_bytes();
  const auto io_budget = run.join->spill()->io_budget();
  ASSERT_EQ(io_budget->Reserve(io_bytes), absl::OkStatus());
  run.failing.memory = true;
  const absl::Status first = run.Probe(&prober, 0, &failed);
  EXPECT_TRUE(IsMemoryLost(first)) << first;
  run.failing.memory = false;
  io_budget->Release(io_bytes);
  ExpectBroken(run, &prober, failed, first);
}

TEST(SpillingJoinErrors, ABuildSideWhoseWritingFailedTakesNoMoreRows) {
  FullJoin run;
  run.failing.writes = true;
  Appender appender(run.join), other(run.join);
  absl::Status first;
  size_t begin = 0;
  for (; begin < run.build.rows.size() && first.ok(); begin += kBatchRows) first = run.Append(&appender, begin);
  EXPECT_TRUE(absl::IsUnavailable(first)) << first;
  run.failing.writes = false;
  for (Appender* const any : {&appender, &other})
    EXPECT_TRUE(absl::IsFailedPrecondition(run.Append(any, begin - kBatchRows)));
  EXPECT_TRUE(absl::IsFailedPrecondition(run.join->Finalise()));
  EXPECT_EQ(run.join->FirstLoss(absl::OkStatus()), first);
}

// Where one output fails, the others do not end as if they had all rows.
TEST(SpillingJoinErrors, ReadersOfABrokenJoinAllSaySo) {
  FullJoin run;
  ASSERT_EQ(run.Build(), absl::OkStatus());
  JoinProber prober(run.join), other(run.join);
  size_t failed = 0;
  ASSERT_EQ(run.Probe(&prober, 0, &failed), absl::OkStatus());
  ASSERT_EQ(prober.SetUnmatched(), absl::OkStatus());
  ASSERT_EQ(other.SetUnmatched(), absl::OkStatus());
  run.failing.reads = true;
  const absl::Status first = run.ReadAll(&prober);
  EXPECT_TRUE(absl::IsUnavailable(first)) << first;
  run.failing.reads = false;
  EXPECT_EQ(run.ReadAll(&other), first);
  EXPECT_EQ(prober.SetUnmatched(), first);
  EXPECT_EQ(JoinProber(run.join).SetUnmatched(), first);
}

TEST(SpillingJoinErrors, AScanThatIsBegunAgainGoesOn) {
  for (const bool has_room : {true, false}) {
    SCOPED_TRACE(has_room ? "in memory" : "spilled");
    FullJoin run(has_room);
    ASSERT_EQ(run.Build(), absl::OkStatus());
    ASSERT_EQ(run.join->has_spilled(), !has_room);
    JoinProber prober(run.join);
    size_t failed = 0;
    ASSERT_EQ(run.Probe(&prober, 0, &failed), absl::OkStatus());
    uint64_t num_results = 0;
    for (bool more = true; more; ++num_results) {
      ASSERT_EQ(prober.SetUnmatched(), absl::OkStatus());
      const absl::StatusOr<bool> next = run.Next(&prober);
      ASSERT_EQ(next.status(), absl::OkStatus());
      more = *next;
    }
    EXPECT_GT(num_results, 10u);
    EXPECT_EQ(prober.SetUnmatched(), absl::OkStatus());  // after its end
    EXPECT_EQ(run.ReadAll(&prober), absl::OkStatus());
    EXPECT_TRUE(run.Rows() == run.Expected());
  }
}

TEST(SpillingJoinErrors, AScanThatFailedIsNotBegunAgain) {
  FullJoin run(/*has_room=*/true);
  ASSERT_EQ(run.Build(), absl::OkStatus());
  JoinProber prober(run.join);
  ASSERT_EQ(prober.SetUnmatched(), absl::OkStatus());
  run.failing.memory = true;
  OutputBatch refused(JoinOutputTypes(run.join->descriptor().spec()), 50, run.budget);
  EXPECT_TRUE(absl::IsResourceExhausted(prober.Next(&refused).status()));
  run.failing.memory = false;
  EXPECT_EQ(prober.SetUnmatched(),
            absl::FailedPreconditionError("unmatched rows after a failure: rows are lost; accepted: a new join"));
}

}  // namespace
}  // namespace quern::test
