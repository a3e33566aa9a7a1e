// SPDX-License-Identifier: Apache-2.0
// A join's table that takes the tuples of the lists is refused requests of the process: before it has taken some,
// finalising may be repeated; afterwards it ends as it would have, or the join has failed for good and says so again.
// The rows of a join whose table is complete are right, and all memory is given back.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/base/status.h"
#include "runtime/spill/spill_context.h"
#include "test/refusals/refusing_allocator.h"
#include "test/unit/hostile_keys.h"
#include "test/unit/runtime/join/taken_tuples.h"
#include "test/unit/runtime/spill/spill_test_rows.h"

namespace quern_test {
namespace {

using namespace quern;        // NOLINT(google-build-using-namespace): tests of its parts
using namespace quern::test;  // NOLINT(google-build-using-namespace)

constexpr uint64_t kMiB = 1 << 20, kAsideBytes = kMiB;
const Case kPacked = {RowOf(JoinKind::kInner), kForms[0], false, true, true},
           kText = {RowOf(JoinKind::kRightSemi), kTexts, false, false, true};

struct Counts {
  int num_whole = 0, num_repeated = 0, num_lost = 0;
};

// Finalises where request n is refused; returns how many there were.
uint64_t Refuse(const TakenRows& rows, bool spills, uint64_t n, Refusing refusing, Counts* counts) {
  SCOPED_TRACE(rows.of.Spec() + ", request " + std::to_string(n));
  LimitedHost host;
  uint64_t num_requests = 0;
  {
    const auto budget = host.NewBudget();
    Runner runner(rows.of, LayoutChoice::kUnchained, 1000, budget,
                  spills ? TestContext(budget, SystemFileCalls(), {16, 4096, 1, kAsideBytes}) : nullptr);
    EXPECT_EQ(runner.Append(rows.build), absl::OkStatus());
    host.LeaveOnly(rows.half_directory_bytes() + 4 * kMiB - 100);
    const auto finalise = [&runner] { return WithoutBadAlloc([&runner] { return runner.join()->Finalise(); }); };
    StartRefusing(n, refusing);
    const absl::Status first = finalise();
    num_requests = StopRefusing();
    const absl::Status again = first.ok() ? first : finalise();
    if (again.ok()) rows.ExpectRows(&runner);
    else EXPECT_TRUE(again == first || absl::IsFailedPrecondition(again)) << first << ", then " << again;
    (first.ok() ? counts->num_whole : again.ok() ? counts->num_repeated : counts->num_lost) += 1;
  }
  EXPECT_EQ(host.used, 0u);
  return num_requests;
}

// All of the first requests, and some of the others.
void RefuseEach(const TakenRows& rows, bool spills) {
  for (const Refusing refusing : {Refusing::kOnce, Refusing::kFromThenOn}) {
    Counts counts;
    const uint64_t num_requests = Refuse(rows, spills, 0, refusing, &counts);
    for (uint64_t n = 1; n <= num_requests; n += n < 40 ? 1 : 3) Refuse(rows, spills, n, refusing, &counts);
    EXPECT_GT(counts.num_whole, 0);
    EXPECT_GT(counts.num_repeated, 0);
    EXPECT_GT(counts.num_lost, 0);
  }
}

TEST(RefusedTables, ThatTakeTuplesAreRightOrLost) {
  Data data = SparseRows(kPartitionedRows / 3, 3);
  for (const int64_t key : HostileKeys(1'000)) data.build.emplace_back(key);
  for (const int64_t key : HostileKeys(200, 900)) data.probe.emplace_back(key);
  RefuseEach(TakenRows(kPacked, data), false);
  RefuseEach(TakenRows(kPacked, data), true);
}

TEST(RefusedTables, OfStringsToo) { RefuseEach(TakenRows(kText, SparseRows(kPartitionedRows / 3, 3)), false); }

}  // namespace
}  // namespace quern_test
