// SPDX-License-Identifier: Apache-2.0
// Joins of strings that spill, where results take memory of the same limit: rows are right and none is missing, the
// limit is kept, and all memory is given back.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ir-templates/generic/generic_join.h"
#include "runtime/join/hash_join.h"
#include "runtime/rows/output_batch.h"
#include "runtime/spec/spec.h"
#include "runtime/spill/spill_context.h"
#include "test/unit/runtime/spill/spill_test_rows.h"

namespace quern::test {
namespace {

constexpr uint64_t kKiB = 1 << 10;
constexpr const char* kFull = "join.full keys=utf8 build=i64,utf8 probe=i64,utf8";
using Rows = std::multiset<std::pair<int64_t, int64_t>>;  // numbers of a probe row and a build row; -1: none

// Rows of a side: key, number, and a text that follows from the number.
struct TextSide {
  std::string keys, texts;
  std::vector<int32_t> key_offsets = {0}, text_offsets = {0};
  std::vector<int64_t> numbers;

  static std::string TextOf(int64_t number, uint64_t longest) {
    return std::string(static_cast<uint64_t>(number) * 7919 % (longest + 1), static_cast<char>('a' + number % 26));
  }
  void Add(const std::string& key, int64_t number, uint64_t longest) {
    keys += key;
    texts += TextOf(number, longest);
    key_offsets.push_back(static_cast<int32_t>(keys.size()));
    text_offsets.push_back(static_cast<int32_t>(texts.size()));
    numbers.push_back(number);
  }
  BatchView Batch(size_t begin, size_t n) const {
    BatchView batch;
    batch.keys.push_back(Column(keys, key_offsets.data() + begin));
    QuernColumn number = {};
    number.values = numbers.data() + begin;
    batch.payload = {number, Column(texts, text_offsets.data() + begin)};
    batch.num_rows = n;
    return batch;
  }

 private:
  static QuernColumn Column(const std::string& bytes, const int32_t* offsets) {
    QuernColumn column = {};
    column.values = bytes.data();
    column.offsets = offsets;
    return column;
  }
};

// A full join: build rows 0 .. n-1 with two rows a key, and probe rows of which half have a match.
struct Texts {
  TextSide build, probe;
  Rows expected;
  uint64_t longest;

  Texts(int64_t num_rows, uint64_t longest_text) : longest(longest_text) {
    for (int64_t i = 0; i < num_rows; ++i) build.Add(Key(i / 2), i, longest);
    for (int64_t i = 0; i < num_rows; ++i) probe.Add(Key(i), i, longest);
    for (int64_t i = 0; i < num_rows; ++i) {
      if (i < num_rows / 2) expected.insert({{i, 2 * i}, {i, 2 * i + 1}});
      else expected.insert({i, -1});
    }
  }
  static std::string Key(int64_t number) { return std::string(15, 'k') + std::to_string(number); }
};

class TextJoin {
 public:
  TextJoin(const Texts& texts, const std::shared_ptr<MemoryBudget>& budget, const std::shared_ptr<SpillContext>& spill,
           uint32_t num_threads)
      : texts_(texts),
        budget_(budget),
        num_threads_(num_threads),
        join_(std::make_shared<HashJoin>(std::make_shared<JoinDescriptor>(*ParseSpecOf<JoinSpec>(kFull)),
                                         GenericJoinKernel(), nullptr, budget, JoinOptions())) {
    join_->SetSpill(spill);
    join_->SetGeneric(GenericJoinKernel());
  }

  absl::Status Run() {
    Each([this](uint32_t thread) { return Append(thread); });
    Each([this](uint32_t /*thread*/) { return join_->Finalise(); });
    Each([this](uint32_t thread) { return Probe(thread); });
    Each([this](uint32_t /*thread*/) { return ReadUnmatched(); });
    return status_;
  }
  const Rows& rows() const { return rows_; }
  const std::shared_ptr<HashJoin>& join() const { return join_; }

 private:
  static constexpr size_t kBatchRows = 100;

  void Each(const std::function<absl::Status(uint32_t)>& run) {
    if (!status_.ok()) return;
    const auto run_one = [&](uint32_t thread) {
      const absl::Status status = run(thread);
      const std::lock_guard<std::mutex> lock(mutex_);
      status_.Update(status);
    };
    std::vector<std::thread> threads;
    for (uint32_t t = 1; t < num_threads_; ++t) threads.emplace_back(run_one, t);
    run_one(0);
    for (std::thread& thread : threads) thread.join();
  }

  absl::Status ForBatches(const TextSide& side, uint32_t thread, const std::function<absl::Status(BatchView)>& run) {
    for (size_t begin = thread * kBatchRows; begin < side.numbers.size(); begin += num_threads_ * kBatchRows) {
      const size_t n = std::min(kBatchRows, side.numbers.size() - begin);
      if (absl::Status status = run(side.Batch(begin, n)); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status Append(uint32_t thread) {
    Appender appender(join_);
    const absl::Status status =
        ForBatches(texts_.build, thread, [&](const BatchView& batch) { return appender.Append(batch); });
    return status.ok() ? appender.Finish() : status;
  }

  absl::Status Probe(uint32_t thread) {
    OutputBatch out(JoinOutputTypes(join_->descriptor().spec()), 64, budget_);
    JoinProber prober(join_);
    return ForBatches(texts_.probe, thread, [&](BatchView batch) {
      const absl::Status status = prober.SetInput(std::move(batch));
      return status.ok() ? ReadAll(&prober, &out) : status;
    });
  }

  absl::Status ReadUnmatched() {
    OutputBatch out(JoinOutputTypes(join_->descriptor().spec()), 64, budget_);
    JoinProber prober(join_);
    const absl::Status status = prober.SetUnmatched();
    return status.ok() ? ReadAll(&prober, &out) : status;
  }

  absl::Status ReadAll(JoinProber* prober, OutputBatch* out) {
    for (;;) {
      const absl::StatusOr<bool> more = prober->Next(out);
      if (!more.ok()) return more.status();
      const std::lock_guard<std::mutex> lock(mutex_);
      for (uint64_t i = 0; i < out->num_rows(); ++i) rows_.insert({NumberOf(*out, 0, i), NumberOf(*out, 2, i)});
      if (!*more) return absl::OkStatus();
    }
  }

  // The number of a side's row, whose text must be its own.
  int64_t NumberOf(const OutputBatch& out, size_t column, uint64_t row) const {
    const QuernOutColumn &numbers = out.column(column), &texts = out.column(column + 1);
    if (numbers.validity != nullptr && (numbers.validity[row / 8] >> row % 8 & 1) == 0) return -1;
    const int64_t number = static_cast<const int64_t*>(numbers.values)[row];
    const auto* const offsets = static_cast<const int32_t*>(texts.offsets);
    const std::string text(static_cast<const char*>(static_cast<const void*>(texts.bytes)) + offsets[row],
                           static_cast<size_t>(offsets[row + 1] - offsets[row]));
    EXPECT_EQ(text, TextSide::TextOf(number, texts_.longest));
    return number;
  }

  const Texts& texts_;
  const std::shared_ptr<MemoryBudget> budget_;
  const uint32_t num_threads_;
  const std::shared_ptr<HashJoin> join_;
  std::mutex mutex_;  // guards what follows
  Rows rows_;
  absl::Status status_;
};

struct Limits {
  uint64_t aside_bytes, bytes;
  uint32_t num_partitions, num_threads;
};

void ExpectAll(const Texts& texts, const Limits& limits) {
  SCOPED_TRACE(std::to_string(limits.bytes) + " bytes, " + std::to_string(limits.num_threads) + " threads");
  const auto budget = std::make_shared<MemoryBudget>(limits.aside_bytes + limits.bytes);
  {
    const SpillSettings settings = {limits.num_partitions, 4096, 1, limits.aside_bytes};
    TextJoin join(texts, budget, TestContext(budget, SystemFileCalls(), settings), limits.num_threads);
    EXPECT_EQ(join.Run(), absl::OkStatus());
    EXPECT_TRUE(join.rows() == texts.expected) << join.rows().size() << " rows, not " << texts.expected.size();
    EXPECT_TRUE(join.join()->has_spilled());
    EXPECT_LE(budget->peak_bytes(), budget->limit_bytes());
  }
  EXPECT_EQ(budget->used_bytes(), 0);
}

TEST(SpillingJoinLimits, ResultsOfStringsTakeMemoryOfTheSameLimit) {
  const Texts texts(6000, 200);
  for (const uint32_t num_threads : {1, 4})
    for (const uint64_t bytes : {300 * kKiB, 400 * kKiB, 500 * kKiB})
      ExpectAll(texts, {256 * kKiB, bytes, 4, num_threads});
}

}  // namespace
}  // namespace quern::test
