// SPDX-License-Identifier: Apache-2.0
// Four threads append to one aggregation, finalise it and read its groups together. Small tables are merged into one;
// thread-local groups that hardly share a group are radix-partitioned, from the first batch on where local_groups is 1.
// In every case the groups equal those of one thread that saw all rows:
//
//     rows 0 .. N-1, group r % K, value r     K = 3, N = 7     0: rows 0 3 6, count 3, sum 9, first 0, last 6
//                                                              1: rows 1 4 ..
//
// ThreadSanitizer uses this test to check what threads share.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/aggregate/hash_aggregate.h"
#include "test/unit/runtime/aggregate/group_rows.h"
#include "test/unit/runtime/sink/finalise_together.h"

namespace quern {
namespace {

using test::Aggregation;
using test::ColumnPtr;
using test::DictionaryColumn;
using test::GroupsOf;
using test::Lines;
using test::NumberColumn;
using test::Rows;
using test::StringColumn;

constexpr uint32_t kThreads = 4;
constexpr uint64_t kBatchRows = 500;

enum class KeyKind { kWord, kText, kDictionary, kNone };

struct Case {
  KeyKind keys;
  uint64_t num_rows, num_groups;
  const char* aggs = "count_star,sum(i64),first(i64),last(i64)";
};

std::string SpecOf(const Case& c) {
  const char* keys[] = {"keys=i64 ", "keys=utf8(utf8mb4_bin) ", "keys=dictionary(u8,utf8) ", ""};
  return std::string("aggregate ") + keys[static_cast<size_t>(c.keys)] + "aggs=" + c.aggs;
}

ColumnPtr KeysOf(const Case& c, uint64_t begin, uint64_t end) {
  std::vector<int64_t> numbers;
  std::vector<std::string> texts;
  std::vector<uint8_t> indices;
  for (uint64_t row = begin; row < end; ++row) {
    const uint64_t group = row % c.num_groups;
    numbers.push_back(static_cast<int64_t>(group * 1000003));
    texts.push_back("a group of more than twenty bytes: " + std::to_string(group));
    indices.push_back(static_cast<uint8_t>(row - begin) % 250);
  }
  if (c.keys == KeyKind::kWord) return NumberColumn(numbers);
  if (c.keys == KeyKind::kText) return StringColumn(kVar32, texts);
  // The texts of 250 rows; later rows repeat the same groups, since num_groups is at most 250.
  std::vector<std::string> values(texts.begin(),
                                  texts.begin() + static_cast<int64_t>(std::min<size_t>(250, texts.size())));
  return DictionaryColumn(indices, StringColumn(kVar32, values));
}

// This batch of rows 0 .. num_rows-1, with their numbers as row ids.
BatchView BatchOf(const Case& c, uint64_t begin) {
  const uint64_t end = std::min(begin + kBatchRows, c.num_rows);
  std::vector<int64_t> values;
  for (uint64_t row = begin; row < end; ++row) values.push_back(static_cast<int64_t>(row));
  const ColumnPtr value = NumberColumn(values);
  std::vector<ColumnPtr> keys;
  if (c.keys != KeyKind::kNone) keys.push_back(KeysOf(c, begin, end));
  BatchView batch = Rows(end - begin, keys, {value, value, value});
  batch.first_row_id = begin;
  return batch;
}

// The groups that kThreads threads find with one aggregation; they take part in each stage together.
Lines Together(const Case& c, const AggregateOptions& options) {
  auto aggregate = Aggregation(SpecOf(c), options);
  std::atomic<uint64_t> next{0};
  std::barrier all_here(kThreads);
  std::vector<Lines> found(kThreads);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Appender appender(aggregate);
      all_here.arrive_and_wait();
      for (uint64_t begin; (begin = next.fetch_add(kBatchRows)) < c.num_rows;)
        EXPECT_EQ(appender.Append(BatchOf(c, begin)), absl::OkStatus());
      EXPECT_EQ(appender.Finish(), absl::OkStatus());
      all_here.arrive_and_wait();
      EXPECT_EQ(test::FinaliseTogether(aggregate.get(), t), absl::OkStatus());
      found[t] = GroupsOf(aggregate, 777);
    });
  }
  for (std::thread& thread : threads) thread.join();
  Lines all;
  for (const Lines& lines : found) all.insert(all.end(), lines.begin(), lines.end());
  std::sort(all.begin(), all.end());
  return all;
}

Lines Alone(const Case& c) {
  std::vector<BatchView> batches;
  for (uint64_t begin = 0; begin < c.num_rows; begin += kBatchRows) batches.push_back(BatchOf(c, begin));
  return GroupsOf(SpecOf(c), batches);
}

TEST(HashAggregateParallel, FewGroupsAreMergedIntoOneTable) {
  for (const KeyKind keys : {KeyKind::kWord, KeyKind::kText, KeyKind::kDictionary}) {
    const Case c = {keys, 20000, 250};
    EXPECT_EQ(Together(c, {}), Alone(c));
  }
}

TEST(HashAggregateParallel, WithoutKeysThereIsOneGroup) {
  const Case c = {KeyKind::kNone, 20000, 1};
  EXPECT_EQ(Together(c, {}), (Lines{"20000|199990000|0|19999"}));
}

TEST(HashAggregateParallel, ManyGroupsAreMergedPartByPart) {
  const Case c = {KeyKind::kWord, 100000, 70000};
  EXPECT_EQ(Together(c, {}), Alone(c));
}

TEST(HashAggregateParallel, RowsThatAreDealtOutAreNotLost) {
  for (const KeyKind keys : {KeyKind::kWord, KeyKind::kText}) {
    for (const uint64_t local_groups : {1u, 100u}) {
      for (const uint32_t partition_bits : {0u, 1u, 4u}) {
        AggregateOptions options;
        options.local_groups = local_groups;
        options.partition_bits = partition_bits;
        const Case c = {keys, 12000, 5000};
        EXPECT_EQ(Together(c, options), Alone(c)) << local_groups << " " << partition_bits;
      }
    }
  }
}

TEST(HashAggregateParallel, DictionariesMayBeDealtOut) {
  AggregateOptions options;
  options.local_groups = 1;
  options.partition_bits = 3;
  const Case c = {KeyKind::kDictionary, 3000, 250};
  EXPECT_EQ(Together(c, options), Alone(c));
}

TEST(HashAggregateParallel, StatesWithMemoryOfTheirOwnAreDealtOutToo) {
  AggregateOptions options;
  options.local_groups = 1;
  options.partition_bits = 2;
  const Case c = {KeyKind::kWord, 8000, 3000, "count_distinct(i64),median(i64),approx_count_distinct(i64)"};
  EXPECT_EQ(Together(c, options), Alone(c));
}

TEST(HashAggregateParallel, EveryLayoutCanBeDealtOut) {
  for (const GroupLayout layout : {GroupLayout::kDense, GroupLayout::kOpen, GroupLayout::kDirectory}) {
    AggregateOptions options;
    options.layout = layout;
    options.local_groups = 50;
    options.partition_bits = 3;
    Case c = {KeyKind::kWord, 6000, 4};
    EXPECT_EQ(Together(c, options), Alone(c));
    c.num_groups = 4000;
    EXPECT_EQ(Together(c, options), Alone(c));
  }
}

// Batches of one row, so that even the single group of no keys looks as if every row had a group of its own.
TEST(HashAggregateParallel, TheOneGroupIsNeverDealtOut) {
  AggregateOptions options;
  options.local_groups = 1;
  auto aggregate = Aggregation("aggregate aggs=count_star,sum(i64)", options);
  Appender one(aggregate), two(aggregate);
  for (Appender* appender : {&one, &two}) {
    for (int64_t row = 0; row < 3; ++row)
      ASSERT_EQ(appender->Append(Rows(1, {}, {NumberColumn<int64_t>({row})})), absl::OkStatus());
    ASSERT_EQ(appender->Finish(), absl::OkStatus());
  }
  ASSERT_EQ(aggregate->Finalise(), absl::OkStatus());
  EXPECT_EQ(GroupsOf(aggregate), (Lines{"6|6"}));
}

// An appender that is destroyed unfinished discards its rows.
TEST(HashAggregateParallel, RowsOfAnAppenderThatGoesAreGone) {
  const Case c = {KeyKind::kText, 400, 7};
  auto aggregate = Aggregation(SpecOf(c));
  {
    Appender gone(aggregate);
    ASSERT_EQ(gone.Append(BatchOf(c, 0)), absl::OkStatus());
  }
  Appender stays(aggregate);
  ASSERT_EQ(stays.Append(BatchOf(c, 0)), absl::OkStatus());
  ASSERT_EQ(stays.Finish(), absl::OkStatus());
  ASSERT_EQ(aggregate->Finalise(), absl::OkStatus());
  EXPECT_EQ(GroupsOf(aggregate), Alone(c));
  EXPECT_EQ(aggregate->stats().input_rows, 400u);
}

TEST(HashAggregateParallel, SharesOfPartsHaveEveryGroupOnce) {
  AggregateOptions options;
  options.local_groups = 1;
  options.partition_bits = 4;
  const Case c = {KeyKind::kText, 6000, 2000};
  auto aggregate = Aggregation(SpecOf(c), options), alone = Aggregation(SpecOf(c));
  Appender one(aggregate), two(aggregate);
  for (uint64_t begin = 0; begin < c.num_rows; begin += kBatchRows) {
    ASSERT_EQ((begin % 1000 == 0 ? one : two).Append(BatchOf(c, begin)), absl::OkStatus());
    ASSERT_EQ(alone->Append(BatchOf(c, begin)), absl::OkStatus());
  }
  ASSERT_EQ(one.Finish(), absl::OkStatus());
  ASSERT_EQ(two.Finish(), absl::OkStatus());
  ASSERT_EQ(aggregate->Finalise(), absl::OkStatus());
  ASSERT_EQ(alone->Finalise(), absl::OkStatus());
  for (uint32_t share = 0; share < 5; ++share)
    EXPECT_EQ(test::ShareOf(aggregate, share, 5, 100), test::ShareOf(alone, share, 5, 100));
}

TEST(HashAggregateParallel, AnErrorOfOneThreadIsSeenByAll) {
  auto aggregate = Aggregation("aggregate keys=i64 aggs=sum(i64)");
  const ColumnPtr key = NumberColumn<int64_t>({1}), large = NumberColumn<int64_t>({INT64_MAX});
  std::vector<absl::Status> statuses(kThreads);
  std::barrier all_here(kThreads);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Appender appender(aggregate);
      EXPECT_EQ(appender.Append(Rows(1, {key}, {large})), absl::OkStatus());
      EXPECT_EQ(appender.Finish(), absl::OkStatus());
      all_here.arrive_and_wait();
      statuses[t] = test::FinaliseTogether(aggregate.get(), t);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses)
    EXPECT_EQ(std::string(status.message()), "sum out of range: sum(i64); accepted: sums within 64 bits, or sum128");
}

// ---- memory that is refused -----------------------------------------------------------------------------------------

// An account that refuses one request.
struct RefusesOne {
  uint64_t num_requests = 0, refused = 0;

  static bool Reserve(void* host, uint64_t /*bytes*/) {
    auto* account = static_cast<RefusesOne*>(host);
    return ++account->num_requests != account->refused;
  }
  static void Release(void* /*host*/, uint64_t /*bytes*/) {}
  MemoryAccount account() { return {Reserve, Release, this}; }
};

// Two appenders take turns; what is refused is appended again, from the first row that was not taken. Returns how often
// that happened.
uint64_t AppendAgain(const Case& c, Appender* appenders) {
  uint64_t num_refusals = 0;
  for (uint64_t begin = 0; begin < c.num_rows; begin += kBatchRows) {
    Appender& appender = appenders[begin / kBatchRows % 2];
    uint64_t taken = 0;
    absl::Status status = appender.Append(BatchOf(c, begin), RowKind::kInput, &taken);
    if (absl::IsResourceExhausted(status)) {
      ++num_refusals;
      Case rest = c;
      rest.num_rows = std::min(begin + kBatchRows, c.num_rows);
      status = appender.Append(BatchOf(rest, begin + taken));
    }
    EXPECT_EQ(status, absl::OkStatus());
  }
  return num_refusals;
}

// Each request of appends that deal rows out and merge what they have dealt is refused.
TEST(HashAggregateParallel, RowsThatAreDealtOutMayBeAppendedAgain) {
  AggregateOptions options;
  options.local_groups = 1;
  options.partition_bits = 2;
  options.compact_tuples = 1000;
  for (const KeyKind keys : {KeyKind::kWord, KeyKind::kText}) {
    const Case c = {keys, 9000, 700, "sum(i64),median(i64),count_distinct(i64)"};
    const Lines expected = Alone(c);
    uint64_t num_requests = 1, num_refusals = 0;
    for (uint64_t n = 1; n <= num_requests; ++n) {
      RefusesOne refuses{.refused = n};
      auto aggregate = Aggregation(SpecOf(c), options, {}, std::make_shared<MemoryBudget>(0, refuses.account()));
      Appender appenders[] = {Appender(aggregate), Appender(aggregate)};
      num_refusals += AppendAgain(c, appenders);
      num_requests = refuses.num_requests;
      for (Appender& appender : appenders) ASSERT_EQ(appender.Finish(), absl::OkStatus());
      ASSERT_EQ(aggregate->Finalise(), absl::OkStatus());
      ASSERT_EQ(GroupsOf(aggregate), expected) << "request " << n << " of " << num_requests;
    }
    EXPECT_GT(num_refusals, 20u);
  }
}

}  // namespace
}  // namespace quern
