// SPDX-License-Identifier: Apache-2.0
// Sorts by threads of the host's own and of the library: whoever adds, sorts and reads, the rows are those of one
// thread, in the same order.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "test/hosts/sort_tables.h"

namespace quern_test {
namespace {

constexpr uint64_t kNumRows = 200000;
constexpr uint64_t kBatchRows = 10000;
constexpr uint32_t kThreads = 4;

// Row i has the key i * step mod modulus, as a number or as a string, and its own number.
class BigTable {
 public:
  BigTable(uint64_t step, uint64_t modulus, bool strings) : strings_(strings) {
    std::vector<std::string> texts;
    for (uint64_t i = 0; i < kNumRows; ++i) {
      numbers_.push_back(static_cast<int64_t>(i * step % modulus));
      if (strings) texts.push_back("a key of more than sixteen bytes: " + std::to_string(numbers_.back()));
    }
    words_ = StringVector<int32_t>(texts);
    keys_.resize(kNumRows / kBatchRows);
    for (size_t i = 0; i < keys_.size(); ++i) batches_.push_back(BatchAt(i * kBatchRows, kBatchRows, &keys_[i]));
    whole_ = BatchAt(0, kNumRows, &whole_key_);
  }
  BigTable(const BigTable&) = delete;
  BigTable& operator=(const BigTable&) = delete;

  const std::vector<quern_batch>& batches() const { return batches_; }
  const quern_batch& whole() const { return whole_; }

 private:
  quern_batch BatchAt(uint64_t first, uint64_t num_rows, quern_column* key) {
    *key = strings_ ? words_.column() : ColumnOf(numbers_);
    if (strings_) key->offsets = words_.offsets.data() + first;
    else key->values = numbers_.data() + first;
    return {key, &row_ids_, nullptr, num_rows, first, 0};
  }

  bool strings_;
  std::vector<int64_t> numbers_;
  StringVector<int32_t> words_{{}};
  const quern_column row_ids_ = {};
  std::vector<quern_column> keys_;
  quern_column whole_key_ = {};
  std::vector<quern_batch> batches_;
  quern_batch whole_ = {};
};

struct Keys {
  const char* name;
  const char* spec;
  const char* kinds;
  uint64_t step, modulus;
};

std::ostream& operator<<(std::ostream& out, const Keys& keys) { return out << keys.name; }

class ParallelSorts : public testing::TestWithParam<Keys> {
 protected:
  const std::string spec = GetParam().spec;
  const std::string kinds = GetParam().kinds;
  const BigTable table{GetParam().step, GetParam().modulus, kinds[0] == 's'};

  Lines ByOneThread() const {
    quern::Sort sort = NewSort(spec);
    EXPECT_EQ(sort.Append(table.whole()).text(), "");
    EXPECT_EQ(sort.Finalise().text(), "");
    return RowsOf(sort, kinds);
  }
};

// As a host's worker would: no thread waits for another one but between the phases.
TEST_P(ParallelSorts, ThreadsOfTheHostGiveTheRowsOfOne) {
  const Lines expected = ByOneThread();
  quern::Sort sort = NewSort(spec);
  std::barrier phase(kThreads);
  std::atomic<size_t> next{0};
  std::mutex mutex;
  Lines all(expected.size());
  uint64_t num_rows = 0;
  std::vector<std::thread> threads;
  for (uint32_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      auto appender = quern::SortAppender::Create(sort);
      for (size_t i = next++; i < table.batches().size(); i = next++) {
        EXPECT_EQ(appender->Append(table.batches()[i], quern::StringBytes::kStay).text(), "");
      }
      EXPECT_EQ(appender->Finish().text(), "");
      phase.arrive_and_wait();
      EXPECT_EQ(sort.FinaliseShared().text(), "");
      auto sorted = quern::SortedRows::Create(sort, 1000);
      for (bool more = true; more;) {
        auto rows = sorted->Next();
        EXPECT_TRUE(rows.ok()) << rows.status().text();
        Lines some;
        AddLines(rows->result, kinds, &some);
        more = rows->more;
        const std::lock_guard<std::mutex> lock(mutex);
        num_rows += some.size();
        for (size_t i = 0; i < some.size(); ++i) all.at(rows->position + i) = some[i];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_rows, expected.size());
  EXPECT_TRUE(all == expected);
  EXPECT_EQ(sort.Stats().num_rows, expected.size());
  EXPECT_EQ(sort.Stats().input_rows, kNumRows);
}

TEST_P(ParallelSorts, ARunGivesTheRowsOfOneThread) {
  const Lines expected = ByOneThread();
  const auto run = [&](std::span<const quern_batch> batches, const quern::RunOptions& options) {
    quern::Sort sort = NewSort(spec);
    Lines lines;
    const std::thread::id caller = std::this_thread::get_id();
    auto num_rows = sort.Run(batches, options, [&](const quern_result& result) {
      EXPECT_EQ(std::this_thread::get_id(), caller);
      AddLines(result, kinds, &lines);
      return true;
    });
    EXPECT_TRUE(num_rows.ok()) << num_rows.status().text();
    EXPECT_EQ(num_rows.ok() ? *num_rows : 0, lines.size());
    return lines;
  };
  EXPECT_TRUE(run(table.batches(), {1, 0}) == expected);
  EXPECT_TRUE(run(table.batches(), {3, 1000}) == expected);
  EXPECT_TRUE(run({&table.whole(), 1}, {3, 0}) == expected) << "cut into morsels";
}

TEST_P(ParallelSorts, ARunWithoutAFunctionLeavesTheRowsToReaders) {
  quern::Sort sort = NewSort(spec);
  auto num_rows = sort.Run({&table.whole(), 1}, {2, 0});
  ASSERT_TRUE(num_rows.ok()) << num_rows.status().text();
  const Lines expected = ByOneThread();
  EXPECT_EQ(*num_rows, expected.size());
  EXPECT_TRUE(RowsOf(sort, kinds) == expected);
}

INSTANTIATE_TEST_SUITE_P(
    Keys, ParallelSorts,
    testing::Values(Keys{"Numbers", "sort keys=i64:out payload=rowid", "lr", 0x10000003d, uint64_t{1} << 40},
                    Keys{"Ties", "sort keys=i64:desc:out payload=rowid stable window=rank", "lrr", 1, 1000},
                    Keys{"Strings", "sort keys=utf8:out payload=rowid stable", "sr", 77, 50000},
                    Keys{"Top", "sort keys=utf8:desc:out payload=rowid limit=100 stable", "sr", 77, 50000}),
    [](const auto& keys) { return keys.param.name; });

constexpr const char* kSpec = "sort keys=i64:out payload=rowid";

// A thread that scans asks for the threshold while others append.
TEST(Thresholds, MayBeReadAndSetWhileOthersAppend) {
  const BigTable table(77, 1000003, false);
  quern::Sort sort = NewSort("sort keys=i64:out payload=rowid limit=10");
  std::atomic<size_t> next{0};
  std::atomic<uint32_t> appending{2};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      auto appender = quern::SortAppender::Create(sort);
      for (size_t batch = next++; batch < table.batches().size(); batch = next++) {
        EXPECT_EQ(appender->Append(table.batches()[batch]).text(), "");
      }
      EXPECT_EQ(appender->Finish().text(), "");
      --appending;
    });
  }
  int64_t lowest = INT64_MAX;
  const auto look = [&] {
    auto row = sort.GetThreshold();
    ASSERT_TRUE(row.ok()) << row.status().text();
    if (!row->has_value()) return;
    const auto key = ElementAt<int64_t>((*row)->columns[0].values, 0);
    EXPECT_LE(key, lowest) << "it only ever comes nearer";
    lowest = key;
    const std::vector<int64_t> known = {key};
    EXPECT_EQ(sort.SetThreshold(Table{{ColumnOf(known)}, {}, 1}.batch()).text(), "");
  };
  while (appending != 0) look();
  look();
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(sort.Finalise().text(), "");
  quern::Sort alone = NewSort("sort keys=i64:out payload=rowid limit=10");
  ASSERT_EQ(alone.Append(table.whole()).text(), "");
  ASSERT_EQ(alone.Finalise().text(), "");
  EXPECT_EQ(RowsOf(sort, "lr"), RowsOf(alone, "lr"));
  EXPECT_LT(lowest, INT64_MAX);
}

TEST(SortRun, StopsWhenTheHostWantsNoMore) {
  const BigTable table(77, 1000003, false);
  uint32_t calls = 0;
  auto num_rows =
      NewSort(kSpec).Run(table.batches(), {kThreads, 100}, [&](const quern_result&) { return ++calls < 3; });
  ASSERT_TRUE(num_rows.ok()) << num_rows.status().text();
  EXPECT_EQ(calls, 3u);
  EXPECT_EQ(*num_rows, 300u);
}

TEST(SortRun, TakesWhatWasAppendedBefore) {
  const BigTable table(77, 1000003, false);
  quern::Sort sort = NewSort(kSpec);
  ASSERT_EQ(sort.Append(table.batches()[0]).text(), "");
  auto num_rows = sort.Run({table.batches().data() + 1, 2}, {2, 0});
  ASSERT_TRUE(num_rows.ok()) << num_rows.status().text();
  EXPECT_EQ(*num_rows, 3 * kBatchRows);
}

TEST(SortRun, OfNothing) { EXPECT_EQ(*NewSort(kSpec).Run({}), 0u); }

TEST(SortRun, LetsNoExceptionOut) {
  const BigTable table(77, 1000003, false);
  auto num_rows = NewSort(kSpec).Run(table.batches(), {kThreads, 0}, [](const quern_result&) -> bool {
    throw std::runtime_error("thrown by the host");
  });
  ASSERT_FALSE(num_rows.ok());
  EXPECT_EQ(num_rows.status().code(), QUERN_INTERNAL);
  EXPECT_EQ(num_rows.status().text(), "thrown by the host");
}

TEST(SortRun, BeyondTheMemoryLimit) {
  const BigTable table(77, 1000003, false);
  for (const uint32_t threads : {1u, 3u}) {
    auto num_rows = NewSort(kSpec, quern::Engine::kAuto, uint64_t{1} << 20).Run(table.batches(), {threads, 0});
    ASSERT_FALSE(num_rows.ok());
    EXPECT_EQ(num_rows.status().code(), QUERN_RESOURCE_EXHAUSTED) << num_rows.status().text();
  }
}

TEST(SortRun, RefusesWhatItCannotDo) {
  const BigTable table(1, 1000, false);
  const quern_batch* const batch = &table.batches()[0];
  const auto error_of = [](quern_status code, quern_sort* sort, const quern_batch* input, uint32_t threads,
                           uint64_t batch_rows) {
    uint64_t num_rows = 77;
    quern_error error = {};
    EXPECT_EQ(quern_sort_run(sort, input, 1, threads, batch_rows, nullptr, nullptr, &num_rows, &error), code);
    EXPECT_EQ(num_rows, 0u);
    return std::string(error.text);
  };
  quern::Sort sort = NewSort(kSpec);
  quern_sort* const handle = sort.handle();
  const quern_status invalid = QUERN_INVALID_ARGUMENT;
  EXPECT_EQ(error_of(invalid, nullptr, batch, 1, 0), "null argument: sort; accepted: a pointer");
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
            "run after a failed append: rows are missing from the sort; accepted: a new sort");
  quern::Sort finalised = NewSort(kSpec);
  ASSERT_EQ(finalised.Finalise().text(), "");
  EXPECT_EQ(error_of(QUERN_FAILED_PRECONDITION, finalised.handle(), batch, 1, 0),
            "run after finalise: the rows are sorted; accepted: a new sort");
}

TEST(SortAppenders, ThatGoWithoutFinishTakeTheirRowsWithThem) {
  const BigTable table(77, 1000003, false);
  quern::Sort sort = NewSort(kSpec);
  {
    auto kept = quern::SortAppender::Create(sort), gone = quern::SortAppender::Create(sort);
    ASSERT_EQ(kept->Append(table.batches()[0]).text(), "");
    ASSERT_EQ(gone->Append(table.batches()[1]).text(), "");
    ASSERT_EQ(kept->Finish().text(), "");
  }
  ASSERT_EQ(sort.FinaliseShared().text(), "");
  EXPECT_EQ(sort.Stats().num_rows, kBatchRows);
}

TEST(SortAppenders, LearnOfAFailureOfAnother) {
  const BigTable table(77, 1000003, false);
  quern::Sort sort = NewSort(kSpec, quern::Engine::kAuto, uint64_t{1} << 20);
  auto first = quern::SortAppender::Create(sort), second = quern::SortAppender::Create(sort);
  ASSERT_EQ(first->Append(table.whole()).code(), QUERN_RESOURCE_EXHAUSTED);
  const std::string text = " after a failed append: rows are missing from the sort; accepted: a new sort";
  EXPECT_EQ(second->Append(table.batches()[0]).text(), "append" + text);
  EXPECT_EQ(second->Finish().text(), "finish" + text);
  EXPECT_EQ(sort.FinaliseShared().text(), "finalise" + text);
  EXPECT_EQ(sort.FinaliseShared().code(), QUERN_FAILED_PRECONDITION);
  EXPECT_EQ(quern::SortAppender::Create(sort).status().text(), "appender" + text);
}

}  // namespace
}  // namespace quern_test
