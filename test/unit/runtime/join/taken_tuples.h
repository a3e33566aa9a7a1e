// SPDX-License-Identifier: Apache-2.0
// Joins whose memory has no room for tuples both in lists and in an unchained table, so that the table takes them.
#ifndef QUERN_TEST_UNIT_RUNTIME_JOIN_TAKEN_TUPLES_H_
#define QUERN_TEST_UNIT_RUNTIME_JOIN_TAKEN_TUPLES_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/base/memory.h"
#include "test/unit/runtime/join/kind_cases.h"

namespace quern::test {

// Rows of an appender that are divided into partitions, with some to spare.
constexpr int64_t kPartitionedRows = 135'003;

constexpr KeyForm kTexts = {"utf8", 1, false, false, false, true},
                  kNullableTexts = {"utf8:nullable", 1, false, true, false, true};

// Sparse keys: `distinct` ones, each `times` times, and 2,000 probe rows, half of which have a match.
inline Data SparseRows(int64_t distinct, int64_t times, int64_t step = 7990001) {
  Data data = MakeData("sparse", distinct, times, step);
  data.probe.resize(2000);
  return data;
}

// A host's memory, of which some is left when rows have come.
struct LimitedHost {
  std::atomic<uint64_t> limit{UINT64_MAX}, used{0}, peak{0};
  std::atomic<int64_t> requests{0};  // within the limit
  int64_t refused = 0;               // the number of the request that is refused all the same, from 1; 0: none
  bool refuses_on = false;           // all behind it, too
  uint64_t job_limit = 0;            // of a budget; where it is large, partitions lie in groups

  MemoryAccount account() {
    return {[](void* self, uint64_t bytes) { return static_cast<LimitedHost*>(self)->Reserve(bytes); },
            [](void* self, uint64_t bytes) { static_cast<LimitedHost*>(self)->used -= bytes; }, this};
  }
  std::shared_ptr<MemoryBudget> NewBudget() { return std::make_shared<MemoryBudget>(job_limit, account()); }
  // From now on.
  void LeaveOnly(uint64_t bytes) {
    limit = used + bytes;
    peak = used.load();
  }

 private:
  bool IsRefused(int64_t request) const {
    return refused != 0 && (request == refused || (refuses_on && request > refused));
  }
  bool Reserve(uint64_t bytes) {
    const uint64_t now = used += bytes;
    if (now > limit || IsRefused(++requests)) {
      used -= bytes;
      return false;
    }
    uint64_t seen = peak;
    while (seen < now && !peak.compare_exchange_weak(seen, now)) {
    }
    return true;
  }
};

// The directory of an unchained table of so many rows that has taken its tuples.
inline uint64_t HalfDirectoryBytes(uint64_t num_rows) { return (std::bit_ceil(num_rows + 1) + 1) * sizeof(uint64_t); }

// Rows of a case with limits, compared with two nested loops.
struct TakenRows {
  const Case of;
  const Data data;
  const Side build, probe;
  const Expectation expected;

  TakenRows(const Case& of_case, Data rows)
      : of(of_case),
        data(of.form.nullable ? Data{rows.name, WithNulls(rows.build, 7), WithNulls(rows.probe, 5)} : std::move(rows)),
        build(data.build, of.form),
        probe(data.probe, of.form),
        expected(NestedLoops(of, data, build, probe)) {}

  uint64_t num_table_rows() const {
    const auto is_stored = [this](const std::optional<int64_t>& key) { return key || of.form.null_equal; };
    return static_cast<uint64_t>(std::count_if(data.build.begin(), data.build.end(), is_stored));
  }
  uint64_t half_directory_bytes() const { return HalfDirectoryBytes(num_table_rows()); }

  void ExpectRows(Runner* runner) const {
    const absl::Status status = runner->Probe(probe);
    if (expected.has_second_match) {
      EXPECT_TRUE(absl::IsOutOfRange(status)) << status;
      return;
    }
    EXPECT_EQ(status, absl::OkStatus());
    EXPECT_TRUE(runner->rows() == expected.rows) << runner->rows().size() << " rows, not " << expected.rows.size();
  }
};

}  // namespace quern::test

#endif  // QUERN_TEST_UNIT_RUNTIME_JOIN_TAKEN_TUPLES_H_
