// SPDX-License-Identifier: Apache-2.0
// Threads that append, finalise, probe and read what a join has written give each row once, whatever their memory:
//
//     8 threads append their batches       each spills its own rows, and those of others
//     -- all are here: one prepares, all work --
//     8 threads probe their batches        rows of written partitions are written
//     -- all are here --
//     8 threads read the unmatched rows    each takes parts, divides them, or leaves them to others
//
// ThreadSanitizer uses this test to check what threads share.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/spill/spill_context.h"
#include "test/unit/runtime/join/kind_cases.h"
#include "test/unit/runtime/spill/spill_test_rows.h"
#include "test/unit/seed.h"

namespace quern::test {
namespace {

constexpr uint64_t kKiB = 1 << 10;
constexpr uint64_t kAsideBytes = 256 * kKiB;
constexpr uint32_t kThreads = 8;
constexpr size_t kBatchRows = 70;
constexpr int64_t kNumRows = 9000;

// A host's account that refuses some requests, or none. *Threads*: any.
class Account {
 public:
  // one_in: of so many requests, about one is refused; 0: none.
  explicit Account(uint64_t one_in) : one_in_(one_in) {}

  MemoryAccount account() {
    return {[](void* self, uint64_t bytes) { return static_cast<Account*>(self)->Reserve(bytes); },
            [](void* self, uint64_t bytes) { static_cast<Account*>(self)->used_ -= bytes; }, this};
  }
  uint64_t used_bytes() const { return used_; }

 private:
  bool Reserve(uint64_t bytes) {
    const uint64_t turn = (++num_requests_ + Seed()) * 0x9e3779b97f4a7c15;
    if (one_in_ != 0 && (turn >> 33) % one_in_ == 0) return false;
    used_ += bytes;
    return true;
  }
  const uint64_t one_in_;
  std::atomic<uint64_t> used_{0}, num_requests_{0};
};

// A join whose threads do each step together.
class Together {
 public:
  Together(const Case& of, const Side& build, const Side& probe, const std::shared_ptr<MemoryBudget>& budget,
           const std::shared_ptr<SpillContext>& spill)
      : case_(of),
        build_(build),
        probe_(probe),
        join_(std::make_shared<HashJoin>(std::make_shared<JoinDescriptor>(*ParseSpecOf<JoinSpec>(of.Spec())),
                                         GenericJoinKernel(), nullptr, budget, JoinOptions())) {
    join_->SetSpill(spill);
    join_->SetGeneric(GenericJoinKernel());
  }

  // The first error of a thread.
  absl::Status Run() {
    Step([this](uint32_t thread) { return Append(thread); });
    Step([this](uint32_t /*thread*/) { return join_->Finalise(); });
    Step([this](uint32_t thread) { return Probe(thread); });
    Step([this](uint32_t thread) { return ReadUnmatched(thread); });
    std::sort(rows_.begin(), rows_.end());
    return status_;
  }
  const Result& rows() const { return rows_; }
  bool has_spilled() const { return join_->has_spilled(); }

 private:
  void Step(const std::function<absl::Status(uint32_t)>& run) {
    if (!status_.ok()) return;
    std::vector<std::thread> threads;
    for (uint32_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        const absl::Status status = run(t);
        const std::lock_guard<std::mutex> lock(mutex_);
        status_.Update(status);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  // Rows that are refused come again.
  absl::Status Append(uint32_t thread) {
    Appender appender(join_);
    for (size_t begin = thread * kBatchRows; begin < build_.rows.size(); begin += kThreads * kBatchRows) {
      const size_t end = std::min(begin + kBatchRows, build_.rows.size());
      for (size_t next = begin; next < end;) {
        uint64_t taken = 0;
        const BatchView batch = build_.Batch(next, end - next, case_.build_rows, case_.residual);
        const absl::Status status = appender.Append(batch, RowKind::kInput, &taken);
        if (!status.ok() && !absl::IsResourceExhausted(status)) return status;
        next += taken;
      }
    }
    return appender.Finish();
  }

  absl::Status Probe(uint32_t thread) {
    OutputBatch out(JoinOutputTypes(join_->descriptor().spec()), 100, nullptr);
    JoinProber prober(join_);
    for (size_t begin = thread * kBatchRows; begin < probe_.rows.size(); begin += kThreads * kBatchRows) {
      const size_t n = std::min(kBatchRows, probe_.rows.size() - begin);
      absl::Status status = prober.SetInput(probe_.Batch(begin, n, case_.probe_rows, case_.residual));
      if (status.ok()) status = ReadAll(&prober, &out);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status ReadUnmatched(uint32_t /*thread*/) {
    OutputBatch out(JoinOutputTypes(join_->descriptor().spec()), 100, nullptr);
    JoinProber prober(join_);
    const absl::Status status = prober.SetUnmatched();
    return status.ok() ? ReadAll(&prober, &out) : status;
  }

  absl::Status ReadAll(JoinProber* prober, OutputBatch* out) {
    for (;;) {
      const absl::StatusOr<bool> more = prober->Next(out);
      if (!more.ok()) return more.status();
      const std::lock_guard<std::mutex> lock(mutex_);
      AddResultRows(case_, *out, &rows_);
      if (!*more) return absl::OkStatus();
    }
  }

  const Case& case_;
  const Side &build_, &probe_;
  const std::shared_ptr<HashJoin> join_;
  std::mutex mutex_;  // guards what follows
  Result rows_;
  absl::Status status_;
};

struct Limits {
  const char* name;
  uint64_t bytes;  // beyond what is set aside
  uint32_t num_partitions;
  uint64_t one_in;  // of so many requests of memory, one is refused
};
constexpr Limits kLimits[] = {{"much", 400 * kKiB, 8, 0},
                              {"little", 150 * kKiB, 4, 0},
                              {"very little", 100 * kKiB, 2, 0},
                              {"little, and one in 7 requests refused", 150 * kKiB, 4, 7}};

// Every third row has the same key.
Data HalfOneKey(int64_t times) {
  Data data = MakeData("half one key", kNumRows / times / 2, times, 7990001);
  if (times == 1) return data;
  for (int64_t i = 0; i < kNumRows / 2; ++i) data.build.emplace_back(7);
  data.probe.emplace_back(7);
  return data;
}

void ExpectSame(const Case& of, Data data, const Limits& limits) {
  SCOPED_TRACE(of.Spec() + ", " + data.name + ", " + limits.name);
  if (of.form.nullable) data = {data.name, WithNulls(data.build, 7), WithNulls(data.probe, data.probe.size() / 9)};
  const Side build(data.build, of.form), probe(data.probe, of.form);
  const Expectation expected = NestedLoops(of, data, build, probe);
  Account account(limits.one_in);
  const auto budget = std::make_shared<MemoryBudget>(kAsideBytes + limits.bytes, account.account());
  {
    const SpillSettings settings = {limits.num_partitions, 4096, 1, kAsideBytes};
    const auto spill = TestContext(budget, SystemFileCalls(), settings);
    Together join(of, build, probe, budget, spill);
    const absl::Status status = join.Run();
    if (expected.has_second_match) {
      EXPECT_TRUE(absl::IsOutOfRange(status)) << status;
    } else if (limits.one_in == 0 || status.ok()) {
      EXPECT_EQ(status, absl::OkStatus());
      EXPECT_TRUE(join.rows() == expected.rows) << join.rows().size() << " rows, not " << expected.rows.size();
    } else {
      EXPECT_TRUE(absl::IsResourceExhausted(status) || absl::IsUnavailable(status)) << status;
    }
    EXPECT_LE(budget->peak_bytes(), budget->limit_bytes());
  }
  EXPECT_EQ(budget->used_bytes(), 0);
  EXPECT_EQ(account.used_bytes(), 0);
}

class SpillingJoinThreads : public testing::TestWithParam<JoinKind> {};

TEST_P(SpillingJoinThreads, GiveEachRowOnce) {
  const JoinKindRow& kind = RowOf(GetParam());
  size_t turn = 0;
  for (const KeyForm& form : kForms) {
    for (const bool residual : {false, true}) {
      const size_t columns = turn++ % 3;  // of both sides, of one
      Case of = {kind, form, residual, columns != 1 && kind.has_probe_columns(),
                 columns != 2 && kind.has_build_columns()};
      if (!IsAllowed(of)) continue;
      ExpectSame(of, HalfOneKey(kind.id == JoinKind::kSingle ? 1 : 3), kLimits[turn % std::size(kLimits)]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, SpillingJoinThreads, testing::ValuesIn([] {
                           std::vector<JoinKind> kinds;
                           for (const JoinKindRow& row : AllJoinKinds()) kinds.push_back(row.id);
                           return kinds;
                         }()),
                         [](const auto& of) { return std::string(RowOf(of.param).text); });

}  // namespace
}  // namespace quern::test
