// SPDX-License-Identifier: Apache-2.0
// Several readers of a sort that has spilled: each sorts or merges ranges of its own, and together they give the rows
// of the sort in memory, each once and at its position.
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "test/unit/runtime/sort/sort_rows.h"
#include "test/unit/runtime/spill/spill_test_rows.h"

namespace quern::test {
namespace {

constexpr uint32_t kBatchRows = 4000, kBatches = 24;
constexpr uint64_t kLimit = 2 << 20;
const SpillSettings kSmall = {.num_partitions = 8, .block_bytes = 2 << 10, .read_depth = 2, .io_bytes = 256 << 10};

// Texts that begin with so many equal bytes, which may be more than leads have.
std::vector<std::string> TextsOf(const std::vector<int64_t>& numbers, size_t equal_bytes) {
  std::vector<std::string> texts;
  for (const int64_t number : numbers) texts.push_back(std::string(equal_bytes, 'e') + std::to_string(number));
  return texts;
}

struct Keys {
  const char* spec;
  Pattern pattern = Pattern::kRandom;
  size_t equal_bytes = 0;
  bool divides = false;  // by ranges of keys, as rows leave memory
};

std::vector<BatchView> BatchesFor(const Keys& keys) {
  const SortSpec spec = *ParseSpecOf<SortSpec>(keys.spec);
  std::vector<BatchView> batches;
  for (uint32_t b = 0; b < kBatches; ++b) {
    std::vector<ColumnPtr> columns;
    for (size_t k = 0; k < spec.keys.size(); ++k) {
      const std::vector<int64_t> numbers = KeysOf(keys.pattern, kBatchRows, 31 * b + k + 1);
      const bool is_text = IsVariable(RowOf(spec.keys[k].type.id).storage);
      columns.push_back(is_text ? StringColumn(RowOf(spec.keys[k].type.id).storage, TextsOf(numbers, keys.equal_bytes))
                                : NumberColumn(numbers));
    }
    batches.push_back(Rows(kBatchRows, columns, {RowIdColumn()}));
    batches.back().first_row_id = uint64_t{b} * kBatchRows;
  }
  return batches;
}

// The sort after two threads have appended the batches to it.
std::shared_ptr<RowSort> SpilledSort(const Keys& keys, const std::vector<BatchView>& batches,
                                     const std::shared_ptr<MemoryBudget>& budget,
                                     FileCalls* calls = SystemFileCalls()) {
  SortTuning tuning = {.budget = budget};
  tuning.options.top_rows = 100;  // a limit above it needs all rows
  tuning.options.divides_ranges = keys.divides;
  const auto sort = SortOf(keys.spec, tuning);
  sort->SetSpill(TestContext(budget, calls, kSmall));
  {
    Appender first(sort), second(sort);
    for (size_t b = 0; b < batches.size(); ++b)
      EXPECT_EQ((b % 2 == 0 ? first : second).Append(batches[b]), absl::OkStatus());
    EXPECT_EQ(first.Finish(), absl::OkStatus());
    EXPECT_EQ(second.Finish(), absl::OkStatus());
  }
  EXPECT_EQ(sort->Finalise(), absl::OkStatus());
  EXPECT_STREQ(sort->stats().method, keys.divides ? "distributed" : "merged");
  return sort;
}

// What readers have read, by position.
class ReadRows {
 public:
  explicit ReadRows(const std::shared_ptr<RowSort>& sort) : types_(SortOutputTypes(sort->descriptor().spec())) {}

  // The next batch of a reader; whether there may be more.
  bool Read(SortReader* reader, uint64_t capacity = 700) {
    OutputBatch out(types_, capacity, nullptr);
    const absl::StatusOr<bool> more = reader->Next(&out);
    EXPECT_TRUE(more.ok()) << more.status();
    Lines lines;
    AddLines(out, &lines);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!lines.empty()) {
      EXPECT_TRUE(rows_.emplace(reader->position(), std::move(lines)).second);
    }
    return more.ok() && *more;
  }

  Lines InOrder() const {
    Lines all;
    for (const auto& [position, lines] : rows_) {
      EXPECT_EQ(position, all.size());
      all.insert(all.end(), lines.begin(), lines.end());
    }
    return all;
  }

 private:
  const std::vector<ColumnType> types_;
  std::mutex mutex_;
  std::map<uint64_t, Lines> rows_;
};

const Keys kKeys[] = {
    {"sort keys=i64:out payload=rowid stable"},
    {"sort keys=i64 payload=rowid stable", Pattern::kFewKeys},
    {"sort keys=i64:desc,i64:out payload=rowid stable", Pattern::kNearlySorted},
    {"sort keys=utf8:out,i64 payload=rowid stable"},
    {"sort keys=utf8:desc:out payload=rowid stable", Pattern::kRandom, 11},
    {"sort keys=utf8:out,i64:out payload=rowid stable", Pattern::kRandom, 30},
    {"sort keys=i64:out,utf8(utf8mb4_general_ci) payload=rowid stable", Pattern::kFewKeys, 14},
    {"sort keys=i64:out payload=rowid stable", Pattern::kOneKey},
    {"sort keys=i64:out payload=rowid stable limit=50001"},
    {"sort keys=i64:out payload=rowid stable", Pattern::kRandom, 0, true},
    {"sort keys=i64:desc,i64:out payload=rowid stable", Pattern::kRandom, 0, true},
    {"sort keys=i64,i64,i64:out payload=rowid stable", Pattern::kFewKeys, 0, true},
    {"sort keys=i64:out payload=rowid stable limit=50001", Pattern::kRandom, 0, true},
};

// Random numbers, divided by ranges of keys or sorted in runs.
class DividedOrNot : public testing::TestWithParam<bool> {
 protected:
  static Keys KeysOfParam() { return {kKeys[0].spec, Pattern::kRandom, 0, GetParam()}; }
};
INSTANTIATE_TEST_SUITE_P(SpilledRanges, DividedOrNot, testing::Bool());

TEST(SpilledRanges, ReadersThatTakeTurnsGiveAllRows) {
  for (const Keys& keys : kKeys) {
    SCOPED_TRACE(std::string(keys.spec) + ", pattern " + std::to_string(static_cast<int>(keys.pattern)));
    const std::vector<BatchView> batches = BatchesFor(keys);
    const auto budget = std::make_shared<MemoryBudget>(kLimit);
    {
      const auto sort = SpilledSort(keys, batches, budget);
      ReadRows rows(sort);
      SortReader a(sort), b(sort), c(sort);
      bool more = true;
      while (more) {
        more = rows.Read(&a);
        more = rows.Read(&b, 64) || more;
        more = rows.Read(&c, 1) || more;
      }
      EXPECT_TRUE(rows.InOrder() == SortedLines(keys.spec, batches));
    }
    EXPECT_EQ(budget->used_bytes(), 0u);
    EXPECT_LE(budget->peak_bytes(), kLimit);
  }
}

TEST(SpilledRanges, ReadersOfThreadsGiveAllRows) {
  for (const Keys& keys : kKeys) {
    SCOPED_TRACE(keys.spec);
    const std::vector<BatchView> batches = BatchesFor(keys);
    const auto sort = SpilledSort(keys, batches, std::make_shared<MemoryBudget>(kLimit));
    ReadRows rows(sort);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        SortReader reader(sort);
        while (rows.Read(&reader)) {
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(rows.InOrder() == SortedLines(keys.spec, batches));
  }
}

TEST_P(DividedOrNot, ASecondReaderBeginsBehindTheFirst) {
  const Keys keys = KeysOfParam();
  const auto sort = SpilledSort(keys, BatchesFor(keys), std::make_shared<MemoryBudget>(kLimit));
  ReadRows rows(sort);
  SortReader a(sort), b(sort);
  rows.Read(&a);
  rows.Read(&b);
  EXPECT_EQ(a.position(), 0u);
  EXPECT_GT(b.position(), 1000u);
  EXPECT_LT(b.position(), uint64_t{kBatches} * kBatchRows / 2);
}

TEST_P(DividedOrNot, WhatAReaderLeavesIsReadByOthers) {
  const Keys keys = KeysOfParam();
  const std::vector<BatchView> batches = BatchesFor(keys);
  const auto sort = SpilledSort(keys, batches, std::make_shared<MemoryBudget>(kLimit));
  ReadRows rows(sort);
  SortReader b(sort);
  {
    SortReader a(sort);
    for (int i = 0; i < 3; ++i) rows.Read(&a, 100);
    rows.Read(&b, 100);
  }
  while (rows.Read(&b)) {
  }
  EXPECT_TRUE(rows.InOrder() == SortedLines(keys.spec, batches));
}

// More runs than can be read at once are merged to fewer first, but no more once they have been divided.
TEST_P(DividedOrNot, RunsOfAnyNumberAreDividedOnce) {
  const Keys keys = KeysOfParam();
  const std::vector<BatchView> batches = BatchesFor(keys);
  const Lines expected = SortedLines(keys.spec, batches);
  for (uint64_t limit = 640 << 10; limit <= 3 << 20; limit += 160 << 10) {
    SCOPED_TRACE(limit);
    const auto budget = std::make_shared<MemoryBudget>(limit);
    const auto sort = SpilledSort(keys, batches, budget);
    ReadRows rows(sort);
    SortReader a(sort), b(sort);
    for (bool more = true; more;) {
      more = rows.Read(&a);
      more = rows.Read(&b) || more;
    }
    EXPECT_TRUE(rows.InOrder() == expected);
  }
}

// Rows that a host reads count in the budget: a reader that finds no memory for a range of its own leaves all of them
// to the one that has begun.
TEST_P(DividedOrNot, AReaderWithoutMemoryIsDone) {
  const Keys keys = KeysOfParam();
  const std::vector<BatchView> batches = BatchesFor(keys);
  const auto budget = std::make_shared<MemoryBudget>(kLimit);
  const auto sort = SpilledSort(keys, batches, budget);
  ReadRows rows(sort);
  SortReader a(sort), b(sort);
  rows.Read(&a);
  const uint64_t held = budget->limit_bytes() - budget->used_bytes();
  ASSERT_EQ(budget->Reserve(held), absl::OkStatus());
  EXPECT_FALSE(rows.Read(&b));
  EXPECT_EQ(b.position(), sort->stats().num_rows);
  while (rows.Read(&a)) {
  }
  EXPECT_TRUE(rows.InOrder() == SortedLines(keys.spec, batches));
  budget->Release(held);
}

TEST_P(DividedOrNot, RowsAreCountedWithoutReadingThem) {
  const Keys keys = KeysOfParam();
  const auto sort = SpilledSort(keys, BatchesFor(keys), std::make_shared<MemoryBudget>(kLimit));
  SortReader a(sort), b(sort);
  OutputBatch counts({}, 1, nullptr);
  EXPECT_EQ(*a.Next(&counts), false);
  EXPECT_EQ(counts.num_rows(), uint64_t{kBatches} * kBatchRows);
  EXPECT_EQ(*b.Next(&counts), false);
  EXPECT_EQ(counts.num_rows(), 0u);
}

TEST_P(DividedOrNot, RowsOfRangesThatNobodyHasAreCounted) {
  const Keys keys = KeysOfParam();
  const auto sort = SpilledSort(keys, BatchesFor(keys), std::make_shared<MemoryBudget>(kLimit));
  ReadRows rows(sort);
  SortReader a(sort), b(sort);
  rows.Read(&a);
  OutputBatch counts({}, 1, nullptr);
  EXPECT_EQ(*b.Next(&counts), false);
  const uint64_t left = counts.num_rows();
  EXPECT_GT(left, 1000u);
  while (rows.Read(&a)) {
  }
  EXPECT_EQ(rows.InOrder().size() + left, uint64_t{kBatches} * kBatchRows);
}

// Each call of a store fails once; the rows are right, or the error is one.
TEST_P(DividedOrNot, EveryFaultIsAnErrorOrChangesNothing) {
  const Keys keys = KeysOfParam();
  std::vector<BatchView> batches = BatchesFor(keys);
  batches.resize(10);
  const Lines expected = SortedLines(keys.spec, batches);
  int64_t num_calls = 0;
  for (int64_t fails_at = -1; fails_at < num_calls; fails_at += fails_at < 0 ? 1 : 7) {
    FaultyCalls calls(fails_at, fails_at % 2 == 0 ? Fault::kError : Fault::kOtherBytes);
    const auto budget = std::make_shared<MemoryBudget>(kLimit / 2);
    SortTuning tuning = {.budget = budget};
    tuning.options.divides_ranges = keys.divides;
    const auto sort = SortOf(keys.spec, tuning);
    sort->SetSpill(TestContext(budget, &calls, kSmall));
    absl::Status status;
    {
      Appender first(sort), second(sort);
      for (size_t b = 0; b < batches.size() && status.ok(); ++b)
        status = (b % 2 == 0 ? first : second).Append(batches[b]);
      if (status.ok()) status = first.Finish();
      if (status.ok()) status = second.Finish();
    }
    if (status.ok()) status = sort->Finalise();
    std::map<uint64_t, Lines> rows;
    SortReader readers[2] = {SortReader(sort), SortReader(sort)};
    bool more[2] = {status.ok(), status.ok()};
    OutputBatch out(SortOutputTypes(sort->descriptor().spec()), 999, nullptr);
    for (int r = 0; more[0] || more[1]; r = 1 - r) {
      if (!more[r]) continue;
      const absl::StatusOr<bool> next = readers[r].Next(&out);
      if (!next.ok()) status = next.status();
      if (!next.ok()) break;
      more[r] = *next;
      if (out.num_rows() != 0) AddLines(out, &rows[readers[r].position()]);
    }
    if (fails_at < 0) {
      num_calls = calls.num_calls;
      EXPECT_GT(num_calls, 100);
    }
    if (status.ok()) {
      Lines all;
      for (const auto& [position, lines] : rows) all.insert(all.end(), lines.begin(), lines.end());
      EXPECT_TRUE(all == expected) << fails_at;
    } else {
      EXPECT_TRUE(absl::IsUnavailable(status) || absl::IsDataLoss(status)) << status;
    }
  }
}

}  // namespace
}  // namespace quern::test
