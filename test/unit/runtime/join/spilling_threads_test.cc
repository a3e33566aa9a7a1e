// SPDX-License-Identifier: Apache-2.0
// Threads that append, finalise, probe and read what a join has written give each row once, whatever their memory.
// ThreadSanitizer uses this test to check what threads share.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/spill/spill_context.h"
#include "test/unit/runtime/join/kind_cases.h"
#include "test/unit/runtime/join/threaded_join.h"
#include "test/unit/runtime/spill/spill_test_rows.h"
#include "test/unit/seed.h"

namespace quern::test {
namespace {

constexpr uint64_t kKiB = 1 << 10;
constexpr uint64_t kAsideBytes = 256 * kKiB;
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

const ThreadedSettings kThreads = {.num_threads = 8, .batch_rows = 70, .result_rows = 100, .repeats_refused = true};

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

SideRows RowsOf(const Side& side, bool has_rows, const Case& of) {
  return {side.rows.size(),
          [&side, has_rows, &of](size_t begin, size_t n) { return side.Batch(begin, n, has_rows, of.residual); }};
}

// Eight threads that happen to need room at the same moment may be refused it where there is so little, in one of some
// thousand runs; the same rows again are not.
constexpr int kMostRuns = 4;

bool IsRefusedByChance(const absl::Status& status, const Limits& limits) {
  return limits.one_in == 0 && absl::IsResourceExhausted(status);
}

void ExpectSame(const Case& of, Data data, const Limits& limits, int run = 1) {
  SCOPED_TRACE(of.Spec() + ", " + data.name + ", " + limits.name);
  if (of.form.nullable) data = {data.name, WithNulls(data.build, 7), WithNulls(data.probe, data.probe.size() / 9)};
  const Side build(data.build, of.form), probe(data.probe, of.form);
  const Expectation expected = NestedLoops(of, data, build, probe);
  Account account(limits.one_in);
  const auto budget = std::make_shared<MemoryBudget>(kAsideBytes + limits.bytes, account.account());
  bool again = false;
  {
    const SpillSettings settings = {limits.num_partitions, 4096, 1, kAsideBytes};
    const auto spill = TestContext(budget, SystemFileCalls(), settings);
    Result rows;
    ThreadedJoin join(of.Spec(), budget, spill, RowsOf(build, of.build_rows, of), RowsOf(probe, of.probe_rows, of),
                      kThreads, [&](const OutputBatch& out) { AddResultRows(of, out, &rows); });
    const absl::Status status = join.Run();
    std::sort(rows.begin(), rows.end());
    again = IsRefusedByChance(status, limits) && run < kMostRuns;
    if (again) {
      std::cerr << "run " << run << " was refused memory: " << status << "\n";
    } else if (expected.has_second_match) {
      EXPECT_TRUE(absl::IsOutOfRange(status)) << status;
    } else if (limits.one_in == 0 || status.ok()) {
      EXPECT_EQ(status, absl::OkStatus());
      EXPECT_TRUE(rows == expected.rows) << rows.size() << " rows, not " << expected.rows.size();
    } else {
      EXPECT_TRUE(absl::IsResourceExhausted(status) || absl::IsUnavailable(status)) << status;
    }
    EXPECT_LE(budget->peak_bytes(), budget->limit_bytes());
  }
  EXPECT_EQ(budget->used_bytes(), 0);
  EXPECT_EQ(account.used_bytes(), 0);
  if (again) ExpectSame(of, std::move(data), limits, run + 1);
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
