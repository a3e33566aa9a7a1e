// SPDX-License-Identifier: Apache-2.0
// Two or four threads append to one sort, finalise it and read its rows together. While they append, thread-local
// states exchange bounds, and one thread reads the threshold. Each reader reports the places of its rows, and together
// they cover every place once:
//
//     rows in order   0 1 2 3 4 5 6     one reader has 0 1 at place 0 and 4 5 at place 4,
//                                       the other 2 3 at place 2 and 6 at place 6
//
// ThreadSanitizer uses this test to check what threads share.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/sort/row_sort.h"
#include "test/unit/runtime/sink/finalise_together.h"
#include "test/unit/runtime/sort/sort_rows.h"

namespace quern {
namespace {

using test::BatchesOf;
using test::KeysOf;
using test::Lines;
using test::NumberBatches;
using test::NumberColumn;
using test::Pattern;
using test::RowIdColumn;
using test::Rows;
using test::SortedBatch;
using test::SortOf;
using test::SortTuning;
using test::StablySorted;
using test::StringColumn;

struct Case {
  std::string keys;
  std::vector<BatchView> batches;
};

Case NumberCase(Pattern pattern, size_t n) { return {"i64:out", NumberBatches(KeysOf(pattern, n), 500)}; }

// The same with strings of one length that order as the numbers do: 20 bytes, of which words hold 16; many are equal.
Case TextCase(Pattern pattern, size_t n) {
  Case result = {"binary:out", {}};
  const std::vector<int64_t> keys = KeysOf(pattern, n);
  for (size_t begin = 0; begin < n; begin += 500) {
    std::vector<std::string> texts;
    for (size_t i = begin; i < std::min(begin + 500, n); ++i) {
      const std::string digits = std::to_string(keys[i] + (int64_t{1} << 50));
      texts.push_back("text " + digits.substr(0, 13) + "|" + digits.substr(13));
    }
    result.batches.push_back(Rows(texts.size(), {StringColumn(kVar32, texts)}, {RowIdColumn()}));
    result.batches.back().first_row_id = begin;
  }
  return result;
}

std::string SpecOf(const Case& c, const char* rest) { return "sort keys=" + c.keys + " payload=rowid stable" + rest; }

// The rows in order, collected from the batches of several readers.
Lines Joined(const std::vector<std::vector<SortedBatch>>& found) {
  std::map<uint64_t, Lines> by_position;
  for (const std::vector<SortedBatch>& batches : found)
    for (const SortedBatch& batch : batches)
      EXPECT_TRUE(batch.lines.empty() || by_position.emplace(batch.position, batch.lines).second) << batch.position;
  Lines all;
  for (const auto& [position, lines] : by_position) {
    EXPECT_EQ(position, all.size());
    all.insert(all.end(), lines.begin(), lines.end());
  }
  return all;
}

Lines Together(const Case& c, const char* rest, uint32_t num_threads, const SortTuning& tuning = {}) {
  auto sort = SortOf(SpecOf(c, rest), tuning);
  std::atomic<size_t> next{0};
  std::barrier all_here(num_threads);
  std::vector<std::vector<SortedBatch>> found(num_threads);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < num_threads; ++t) {
    threads.emplace_back([&, t] {
      Appender appender(sort);
      OutputBatch threshold(SortKeyTypes(sort->descriptor().spec()), 1, nullptr);
      all_here.arrive_and_wait();
      for (size_t number; (number = next.fetch_add(1)) < c.batches.size();) {
        EXPECT_EQ(appender.Append(c.batches[number]), absl::OkStatus());
        EXPECT_TRUE(t != 0 || sort->GetThreshold(&threshold).ok());
      }
      EXPECT_EQ(appender.Finish(), absl::OkStatus());
      all_here.arrive_and_wait();
      EXPECT_EQ(test::FinaliseTogether(sort.get(), t), absl::OkStatus());
      found[t] = BatchesOf(sort, 777);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return Joined(found);
}

Lines Alone(const Case& c, const char* rest) { return test::SortedLines(SpecOf(c, rest), c.batches); }

TEST(RowSortParallel, RowsOfAllAppendersAreSortedTogether) {
  for (const Pattern pattern : {Pattern::kRandom, Pattern::kFewKeys, Pattern::kSorted, Pattern::kOneKey}) {
    for (const size_t n : {0, 1, 400, 3000, 150000}) {
      const Case c = NumberCase(pattern, n);
      const Lines alone = Alone(c, "");
      for (const uint32_t num_threads : {2u, 4u}) EXPECT_EQ(Together(c, "", num_threads), alone) << n;
    }
  }
}

TEST(RowSortParallel, TiesOfLongStringsAreSortedTogether) {
  for (const Pattern pattern : {Pattern::kRandom, Pattern::kFewKeys}) {
    const Case c = TextCase(pattern, 20000);
    const Lines alone = Alone(c, "");
    EXPECT_EQ(Together(c, "", 2), alone);
    SortTuning tuning;
    tuning.options.prefix_words = 1;
    EXPECT_EQ(Together(c, "", 3, tuning), alone);
  }
}

TEST(RowSortParallel, ComparisonSortsToo) {
  SortTuning tuning;
  tuning.method = SortMethod::kComparison;
  const Case c = TextCase(Pattern::kRandom, 6000);
  EXPECT_EQ(Together(c, "", 2, tuning), Alone(c, ""));
}

TEST(RowSortParallel, BoundsGoFromSideToSide) {
  for (const Pattern pattern : {Pattern::kRandom, Pattern::kFewKeys, Pattern::kReversed}) {
    for (const Case& c : {NumberCase(pattern, 40000), TextCase(pattern, 40000)}) {
      for (const char* limit : {" limit=1", " limit=100", " limit=3000"})
        EXPECT_EQ(Together(c, limit, 3), Alone(c, limit)) << limit;
    }
  }
}

TEST(RowSortParallel, WindowFunctionsCrossTasks) {
  const Case c = NumberCase(Pattern::kFewKeys, 150000);
  for (const char* window : {" window=row_number,rank,dense_rank", " partition=1 window=row_number,rank,dense_rank"})
    EXPECT_EQ(Together(c, window, 2), Alone(c, window)) << window;
}

// An appender that is destroyed unfinished discards its rows.
TEST(RowSortParallel, RowsOfAnAppenderThatGoesAreGone) {
  const Case c = NumberCase(Pattern::kRandom, 400);
  auto sort = SortOf(SpecOf(c, ""));
  {
    Appender gone(sort);
    ASSERT_EQ(gone.Append(c.batches[0]), absl::OkStatus());
  }
  Appender stays(sort);
  ASSERT_EQ(stays.Append(c.batches[0]), absl::OkStatus());
  ASSERT_EQ(stays.Finish(), absl::OkStatus());
  ASSERT_EQ(sort->Finalise(), absl::OkStatus());
  EXPECT_EQ(test::SortedLines(sort), Alone(c, ""));
}

// One thread appends while another sets thresholds that reject nothing.
TEST(RowSortParallel, ThresholdsAreSetWhileRowsCome) {
  const std::vector<int64_t> keys = KeysOf(Pattern::kRandom, 50000);
  const test::NumberRows expected = StablySorted(keys, 50);
  auto sort = SortOf("sort keys=i64:out payload=rowid stable limit=50");
  std::atomic<bool> done{false};
  std::thread host([&] {
    for (int64_t above = int64_t{1} << 44; !done; above = std::max(above / 2, expected.back().key))
      EXPECT_EQ(sort->SetThreshold(Rows(1, {NumberColumn<int64_t>({above})})), absl::OkStatus());
  });
  for (const BatchView& batch : NumberBatches(keys, 500)) EXPECT_EQ(sort->Append(batch), absl::OkStatus());
  done = true;
  host.join();
  ASSERT_EQ(sort->Finalise(), absl::OkStatus());
  EXPECT_EQ(test::NumberRowsOf(sort), expected);
}

}  // namespace
}  // namespace quern
