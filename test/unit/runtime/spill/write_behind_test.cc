// SPDX-License-Identifier: Apache-2.0
// Blocks that are written behind: the rows come back in their order, errors are reported by the writer, and nothing is
// lost, written twice or left in the store.
#include "runtime/spill/write_behind.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/spill/spilled_rows.h"
#include "test/unit/runtime/spill/spill_test_rows.h"

namespace quern {
namespace {

constexpr uint64_t kMiB = 1 << 20;

SpillSettings WithDepth(uint32_t write_depth, uint32_t num_threads = 2) {
  SpillSettings settings = {4, 4096, 2, kMiB};
  settings.write_depth = write_depth;
  settings.num_threads = num_threads;
  return settings;
}

// A gate in front of writes: those that come wait until it is open.
class GatedCalls final : public FileCalls {
 public:
  ssize_t Write(int file, const iovec* pieces, int num_pieces, off_t offset) override {
    std::unique_lock<std::mutex> lock(mutex_);
    ++num_waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return is_open_; });
    --num_waiting_;
    ++num_writes_;
    if (fails_) {
      errno = ENOSPC;
      return -1;
    }
    lock.unlock();
    return FileCalls::Write(file, pieces, num_pieces, offset);
  }
  void WaitFor(int num_waiting) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return num_waiting_ == num_waiting; });
  }
  void Open(bool fails) {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_open_ = true;
    fails_ = fails;
    changed_.notify_all();
  }
  using FileCalls::Open;
  int num_writes() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return num_writes_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int num_waiting_ = 0, num_writes_ = 0;
  bool is_open_ = false, fails_ = false;
};

std::vector<std::string> TextsOf(const std::shared_ptr<SpillContext>& context, SpilledRows rows) {
  std::vector<std::string> texts;
  RowReader reader(context, TestRows::Types(), std::move(rows));
  BatchView batch;
  while (*reader.Next(&batch))
    for (uint32_t r = 0; r < batch.num_rows; ++r) texts.push_back(TestRows::RowText(batch, r));
  return texts;
}

TEST(WriteBehind, RowsComeBackInTheirOrderAtAnyDepth) {
  const TestRows rows(3000);
  for (const uint32_t depth : {0u, 1u, 2u, 7u}) {
    for (const uint32_t threads : {1u, 3u}) {
      const auto budget = std::make_shared<MemoryBudget>(0);
      {
        const auto context = TestContext(budget, SystemFileCalls(), WithDepth(depth, threads));
        EXPECT_EQ(context->write_depth(), depth);
        RowWriter writer(context, TestRows::Types());
        for (int time = 0; time < 2; ++time) ASSERT_TRUE(writer.Append(rows.batch()).ok());
        absl::StatusOr<SpilledRows> written = writer.Finish();
        ASSERT_TRUE(written.ok());
        EXPECT_EQ(context->stats().written_blocks, written->blocks().size());
        const std::vector<std::string> texts = TextsOf(context, *std::move(written));
        ASSERT_EQ(texts.size(), 6000);
        for (uint32_t r = 0; r < 6000; ++r) ASSERT_EQ(texts[r], TestRows::ExpectedText(r % 3000));
      }
      EXPECT_EQ(budget->used_bytes(), 0);
    }
  }
}

// Two blocks wait in the device, and the writer goes on to fill a third.
TEST(WriteBehind, TheWriterFillsTheNextBlockMeanwhile) {
  GatedCalls calls;
  const auto budget = std::make_shared<MemoryBudget>(0);
  const auto context = TestContext(budget, &calls, WithDepth(2));
  RowWriter writer(context, {TypeOf(TypeId::kI64)});
  std::vector<int64_t> numbers(3 * 512 - 1);  // two blocks of 4096 bytes, and most of another
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int64_t>(i);
  BatchView batch;
  QuernColumn column = {};
  column.values = numbers.data();
  batch.keys = {column};
  batch.num_rows = numbers.size();
  ASSERT_TRUE(writer.Append(batch).ok());
  calls.WaitFor(2);
  EXPECT_EQ(calls.num_writes(), 0);
  calls.Open(/*fails=*/false);
  absl::StatusOr<SpilledRows> written = writer.Finish();
  ASSERT_TRUE(written.ok());
  EXPECT_EQ(written->num_rows(), numbers.size());
  EXPECT_EQ(written->blocks().size(), 3);
  EXPECT_EQ(calls.num_writes(), 3);
}

TEST(WriteBehind, AnErrorIsReportedByTheWriterFromThenOn) {
  GatedCalls calls;
  std::atomic<uint32_t> num_freed = 0;
  const TestRows rows(300);
  const auto budget = std::make_shared<MemoryBudget>(0);
  {
    const auto context =
        std::make_shared<SpillContext>(std::make_unique<CountedFrees>(&calls, &num_freed), budget, WithDepth(64));
    RowWriter writer(context, TestRows::Types());
    ASSERT_TRUE(writer.Append(rows.batch()).ok());  // all blocks wait in front of the gate
    calls.Open(/*fails=*/true);
    const absl::Status first = writer.Finish().status();
    EXPECT_TRUE(absl::IsUnavailable(first)) << first;
    const absl::Status later = writer.Finish().status();
    EXPECT_EQ(later, first);
    EXPECT_EQ(context->stats().written_rows, 0);
  }
  EXPECT_EQ(budget->used_bytes(), 0);
  EXPECT_EQ(num_freed, 0u);
}

TEST(WriteBehind, AWriterThatIsGivenUpFreesWhatItHasWritten) {
  GatedCalls calls;
  std::atomic<uint32_t> num_freed = 0;
  const TestRows rows(300);
  const auto budget = std::make_shared<MemoryBudget>(0);
  {
    const auto context =
        std::make_shared<SpillContext>(std::make_unique<CountedFrees>(&calls, &num_freed), budget, WithDepth(64));
    RowWriter writer(context, TestRows::Types());
    ASSERT_TRUE(writer.Append(rows.batch()).ok());
    calls.Open(/*fails=*/false);
  }
  EXPECT_GE(calls.num_writes(), 2);
  EXPECT_EQ(static_cast<int>(num_freed), calls.num_writes());
  EXPECT_EQ(budget->used_bytes(), 0);
}

TEST(WriteBehind, ShortMemoryMakesItWriteAtOnce) {
  const auto budget = std::make_shared<MemoryBudget>(0);
  SpillSettings settings = {4, 65536, 2, 256 << 10};
  settings.write_depth = 8;
  // An eighth of what is set aside has no room for a block.
  EXPECT_EQ(TestContext(budget, SystemFileCalls(), settings)->write_depth(), 0);
  settings.block_bytes = 4096;
  const auto context = TestContext(budget, SystemFileCalls(), settings);
  EXPECT_EQ(context->write_depth(), 8);
  EXPECT_TRUE(context->HasIoRoom());
  ASSERT_TRUE(context->io_budget()->Reserve(200 << 10).ok());
  EXPECT_FALSE(context->HasIoRoom());
  auto buffers = RowWriter::BuffersOf(*context, TestRows::Types());
  WriteBehind behind(context.get());
  absl::StatusOr<std::unique_ptr<OutputBatch>> rows = buffers->Take();
  ASSERT_TRUE(rows.ok());
  EXPECT_FALSE(behind.WriteLater(buffers, /*is_last=*/false, &*rows));
  EXPECT_NE(*rows, nullptr);
  rows->reset();
  buffers.reset();
  context->io_budget()->Release(200 << 10);
}

TEST(WriteBehind, SettingsAreBoundByTheMemorySetAside) {
  const auto budget = std::make_shared<MemoryBudget>(16 * kMiB);
  SpillSettings settings;
  settings.max_block_bytes = 4 * kMiB;
  settings.read_depth = 32;
  settings.write_depth = 32;
  settings.num_threads = 1000;
  const auto context = TestContext(budget, SystemFileCalls(), settings);
  EXPECT_EQ(context->io_bytes(), 2 * kMiB);
  EXPECT_EQ(context->block_bytes(), 32 << 10);
  EXPECT_EQ(context->read_depth(), 3);
  EXPECT_EQ(context->write_depth(), 8);
  EXPECT_GE(context->max_readers(), 16);
}

}  // namespace
}  // namespace quern
