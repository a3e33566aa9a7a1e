// SPDX-License-Identifier: Apache-2.0
// Aggregations by threads of the host's own and of the library: whoever adds, merges and reads, the groups are those of
// one thread.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "test/hosts/aggregate_tables.h"

namespace quern_test {
namespace {

constexpr uint64_t kNumRows = 300000;
constexpr uint64_t kBatchRows = 10000;
constexpr uint32_t kThreads = 4;

// Row i has the key i * step mod modulus, as a number or as a string, and the value i, for two aggregates.
class BigTable {
 public:
  BigTable(uint64_t step, uint64_t modulus, bool strings) : strings_(strings) {
    std::vector<std::string> texts;
    for (uint64_t i = 0; i < kNumRows; ++i) {
      numbers_.push_back(static_cast<int64_t>(i * step % modulus));
      values_.push_back(static_cast<int64_t>(i));
      if (strings) texts.push_back("a key of more than twelve bytes: " + std::to_string(numbers_.back()));
    }
    words_ = StringVector<int32_t>(texts);
    columns_.resize(3 * (kNumRows / kBatchRows + 1));
    for (size_t i = 0; i <= kNumRows / kBatchRows; ++i) AddBatch(i);
    whole_ = batches_.back();
    batches_.pop_back();
  }
  BigTable(const BigTable&) = delete;
  BigTable& operator=(const BigTable&) = delete;

  const std::vector<quern_batch>& batches() const { return batches_; }
  const quern_batch& whole() const { return whole_; }

 private:
  // Number i of those of kBatchRows; after the last, all rows.
  void AddBatch(size_t i) {
    const bool is_whole = i == kNumRows / kBatchRows;
    const uint64_t first = is_whole ? 0 : i * kBatchRows;
    quern_column &key = columns_[3 * i], *values = &columns_[3 * i + 1];
    key = strings_ ? words_.column() : ColumnOf(numbers_);
    if (strings_) key.offsets = words_.offsets.data() + first;
    else key.values = numbers_.data() + first;
    values[0].values = values[1].values = values_.data() + first;
    batches_.push_back({&key, values, nullptr, is_whole ? kNumRows : kBatchRows, first, 0});
  }

  bool strings_;
  std::vector<int64_t> numbers_, values_;
  StringVector<int32_t> words_{{}};
  std::vector<quern_column> columns_;
  std::vector<quern_batch> batches_;
  quern_batch whole_;
};

struct Keys {
  const char* name;
  const char* type;
  uint64_t step, modulus;
};

std::ostream& operator<<(std::ostream& out, const Keys& keys) { return out << keys.name; }

class ParallelAggregates : public testing::TestWithParam<Keys> {
 protected:
  static bool HasStrings() { return std::string(GetParam().type) == "utf8"; }
  const std::string spec = std::string("aggregate keys=") + GetParam().type + " aggs=count_star,sum(i64),first(i64)";
  const std::string kinds = HasStrings() ? "slll" : "llll";
  const BigTable table{GetParam().step, GetParam().modulus, HasStrings()};

  Lines ByOneThread() const {
    quern::Aggregate aggregate = NewAggregate(spec);
    EXPECT_EQ(aggregate.Append(table.whole()).text(), "");
    EXPECT_EQ(aggregate.Finalise().text(), "");
    return GroupsOf(aggregate, kinds);
  }
};

// Runs `work` on all threads at once.
template <class Work>
void OnThreads(Work&& work) {
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
}

// As a host's worker would: no thread waits for another one but between the phases.
TEST_P(ParallelAggregates, ThreadsOfTheHostGiveTheGroupsOfOne) {
  quern::Aggregate aggregate = NewAggregate(spec);
  std::barrier phase(kThreads);
  std::atomic<size_t> next{0};
  std::mutex mutex;
  Lines all;
  OnThreads([&] {
    auto appender = quern::AggregateAppender::Create(aggregate);
    for (size_t i = next++; i < table.batches().size(); i = next++)
      EXPECT_EQ(appender->Append(table.batches()[i]).text(), "");
    EXPECT_EQ(appender->Finish().text(), "");
    phase.arrive_and_wait();
    EXPECT_EQ(aggregate.FinaliseShared().text(), "");
    const Lines some = GroupsOf(aggregate, kinds, {.batch_rows = 1000});
    const std::lock_guard<std::mutex> lock(mutex);
    all.insert(all.end(), some.begin(), some.end());
  });
  std::sort(all.begin(), all.end());
  EXPECT_TRUE(all == ByOneThread()) << all.size() << " groups";
  EXPECT_EQ(aggregate.Stats().num_groups, all.size());
  EXPECT_EQ(aggregate.Stats().input_rows, kNumRows);
}

TEST_P(ParallelAggregates, ARunGivesTheGroupsOfOneThread) {
  const Lines expected = ByOneThread();
  const auto run = [&](std::span<const quern_batch> batches, const quern::RunOptions& options) {
    quern::Aggregate aggregate = NewAggregate(spec);
    std::mutex mutex;
    Lines lines;
    auto num_groups = aggregate.Run(batches, options, [&](const quern_result& result) {
      const std::lock_guard<std::mutex> lock(mutex);
      AddLines(result, kinds, &lines);
      return true;
    });
    EXPECT_TRUE(num_groups.ok()) << num_groups.status().text();
    EXPECT_EQ(num_groups.ok() ? *num_groups : 0, lines.size());
    std::sort(lines.begin(), lines.end());
    return lines;
  };
  EXPECT_TRUE(run(table.batches(), {1, 0}) == expected);
  EXPECT_TRUE(run(table.batches(), {3, 1000}) == expected);
  EXPECT_TRUE(run({&table.whole(), 1}, {3, 0}) == expected) << "cut into morsels";
  EXPECT_EQ(*NewAggregate(spec).Run({&table.whole(), 1}), expected.size());
}

TEST_P(ParallelAggregates, StatesGoThroughAppenders) {
  quern::Aggregate from = NewAggregate(spec), into = NewAggregate(spec);
  ASSERT_EQ(from.Append(table.whole()).text(), "");
  ASSERT_EQ(from.Finalise().text(), "");
  std::atomic<uint32_t> next{0};
  OnThreads([&] {
    auto appender = quern::AggregateAppender::Create(into);
    MoveStates(from, 1, &*appender, {.partition = next++, .num_partitions = kThreads});
    EXPECT_EQ(appender->Finish().text(), "");
  });
  ASSERT_EQ(into.FinaliseShared().text(), "");
  EXPECT_TRUE(GroupsOf(into, kinds) == ByOneThread());
}

INSTANTIATE_TEST_SUITE_P(Keys, ParallelAggregates,
                         testing::Values(Keys{"Few", "i64", 1, 5}, Keys{"Many", "i64", 1, 100000},
                                         Keys{"Unique", "i64", 0x1000003d, UINT64_MAX},
                                         Keys{"Strings", "utf8", 1, 50000}),
                         [](const auto& keys) { return keys.param.name; });

constexpr const char* kSpec = "aggregate keys=i64 aggs=sum(i64)";

TEST(AggregateRun, StopsWhenTheHostWantsNoMore) {
  const BigTable table(1, 100000, false);
  std::atomic<uint32_t> calls{0};
  quern::Aggregate aggregate = NewAggregate(kSpec);
  auto num_groups = aggregate.Run(table.batches(), {kThreads, 100}, [&](const quern_result&) {
    ++calls;
    return false;
  });
  ASSERT_TRUE(num_groups.ok()) << num_groups.status().text();
  EXPECT_GE(calls, 1u);
  EXPECT_LE(calls, kThreads);
  EXPECT_LE(*num_groups, calls * 100);
}

TEST(AggregateRun, TakesWhatWasAppendedBefore) {
  const BigTable table(1, 1u << 31, false);
  quern::Aggregate aggregate = NewAggregate(kSpec);
  ASSERT_EQ(aggregate.Append(table.batches()[0]).text(), "");
  auto num_groups = aggregate.Run({table.batches().data() + 1, 2}, {2, 0});
  ASSERT_TRUE(num_groups.ok()) << num_groups.status().text();
  EXPECT_EQ(*num_groups, 3 * kBatchRows);
}

TEST(AggregateRun, OfNothing) {
  EXPECT_EQ(*NewAggregate(kSpec).Run({}), 0u);
  EXPECT_EQ(*NewAggregate("aggregate aggs=count_star").Run({}), 1u);
}

TEST(AggregateRun, LetsNoExceptionOut) {
  const BigTable table(1, 100000, false);
  auto num_groups = NewAggregate(kSpec).Run(table.batches(), {kThreads, 0}, [](const quern_result&) -> bool {
    throw std::runtime_error("thrown by the host");
  });
  ASSERT_FALSE(num_groups.ok());
  EXPECT_EQ(num_groups.status().code(), QUERN_INTERNAL);
  EXPECT_EQ(num_groups.status().text(), "thrown by the host");
}

TEST(AggregateRun, BeyondTheMemoryLimit) {
  const BigTable table(0x1000003d, UINT64_MAX, false);
  for (const uint32_t threads : {1u, 3u}) {
    auto num_groups = NewAggregate(kSpec, quern::Engine::kAuto, uint64_t{1} << 20).Run(table.batches(), {threads, 0});
    ASSERT_FALSE(num_groups.ok());
    EXPECT_EQ(num_groups.status().code(), QUERN_RESOURCE_EXHAUSTED) << num_groups.status().text();
  }
}

TEST(AggregateRun, RefusesWhatItCannotDo) {
  const BigTable table(1, 100000, false);
  const quern_batch* const batch = &table.batches()[0];
  const auto error_of = [](quern_status code, quern_aggregate* aggregate, const quern_batch* input, uint32_t threads,
                           uint64_t batch_rows) {
    uint64_t num_groups = 77;
    quern_error error = {};
    EXPECT_EQ(quern_aggregate_run(aggregate, input, 1, threads, batch_rows, nullptr, nullptr, &num_groups, &error),
              code);
    EXPECT_EQ(num_groups, 0u);
    return std::string(error.text);
  };
  quern::Aggregate aggregate = NewAggregate(kSpec);
  quern_aggregate* const handle = aggregate.handle();
  const quern_status invalid = QUERN_INVALID_ARGUMENT;
  EXPECT_EQ(error_of(invalid, nullptr, batch, 1, 0), "null argument: aggregate; accepted: a pointer");
  EXPECT_EQ(error_of(invalid, handle, nullptr, 1, 0), "null argument: batches; accepted: a pointer");
  EXPECT_EQ(error_of(invalid, handle, batch, 1025, 0), "threads out of range: 1025; accepted: 0 to 1024");
  EXPECT_EQ(error_of(invalid, handle, batch, 1, uint64_t{1} << 31),
            "batch_rows out of range: 2147483648; accepted: 0 to 2147483647");
  quern_batch large = *batch;
  large.num_rows = UINT32_MAX;
  EXPECT_EQ(error_of(invalid, handle, &large, 1, 0), "batch too large: 4294967295 rows; accepted: below 4294967295");
  quern_batch keyless = *batch;
  keyless.keys = nullptr;
  EXPECT_EQ(error_of(invalid, handle, &keyless, 1, 0), "batch without columns: input key; accepted: 1 columns");
  EXPECT_EQ(error_of(QUERN_FAILED_PRECONDITION, handle, batch, 1, 0),
            "run after a failed append: rows are missing from the groups; accepted: a new aggregation");
  quern::Aggregate finalised = NewAggregate(kSpec);
  ASSERT_EQ(finalised.Finalise().text(), "");
  EXPECT_EQ(error_of(QUERN_FAILED_PRECONDITION, finalised.handle(), batch, 1, 0),
            "run after finalise: the groups are complete; accepted: a new aggregation");
}

TEST(AggregateAppenders, ThatGoWithoutFinishTakeTheirRowsWithThem) {
  const BigTable table(1, 1u << 31, false);
  quern::Aggregate aggregate = NewAggregate(kSpec);
  {
    auto kept = quern::AggregateAppender::Create(aggregate), gone = quern::AggregateAppender::Create(aggregate);
    ASSERT_EQ(kept->Append(table.batches()[0]).text(), "");
    ASSERT_EQ(gone->Append(table.batches()[1]).text(), "");
    ASSERT_EQ(kept->Finish().text(), "");
  }
  ASSERT_EQ(aggregate.FinaliseShared().text(), "");
  EXPECT_EQ(aggregate.Stats().num_groups, kBatchRows);
}

TEST(AggregateAppenders, LearnOfAFailureOfAnother) {
  const BigTable table(0x1000003d, UINT64_MAX, false);
  quern::Aggregate aggregate = NewAggregate(kSpec, quern::Engine::kAuto, uint64_t{1} << 20);
  auto first = quern::AggregateAppender::Create(aggregate), second = quern::AggregateAppender::Create(aggregate);
  ASSERT_EQ(first->Append(table.whole()).code(), QUERN_RESOURCE_EXHAUSTED);
  const std::string text = " after a failed append: rows are missing from the groups; accepted: a new aggregation";
  EXPECT_EQ(second->Append(table.batches()[0]).text(), "append" + text);
  EXPECT_EQ(second->Finish().text(), "finish" + text);
  EXPECT_EQ(aggregate.FinaliseShared().text(), "finalise" + text);
  EXPECT_EQ(aggregate.FinaliseShared().code(), QUERN_FAILED_PRECONDITION);
  EXPECT_EQ(quern::AggregateAppender::Create(aggregate).status().text(), "appender" + text);
}

}  // namespace
}  // namespace quern_test
