// SPDX-License-Identifier: Apache-2.0
#include "runtime/spill/spilled_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include "test/unit/runtime/spill/spill_test_rows.h"

namespace quern {
namespace {

constexpr uint32_t kNumRows = 5000;
const SpillSettings kSmallBlocks = {4, 4096, 2, 256 << 10};

absl::Status ReadTexts(const std::shared_ptr<SpillContext>& context, SpilledRows rows,
                       std::vector<std::string>* texts) {
  RowReader reader(context, TestRows::Types(), std::move(rows));
  while (true) {
    BatchView batch;
    const absl::StatusOr<bool> more = reader.Next(&batch);
    if (!more.ok()) return more.status();
    if (!*more) return absl::OkStatus();
    for (uint32_t r = 0; r < batch.num_rows; ++r) texts->push_back(TestRows::RowText(batch, r));
  }
}

TEST(SpilledRows, ComeBackAsTheyWere) {
  const auto budget = std::make_shared<MemoryBudget>(0);
  const TestRows rows(kNumRows);
  for (const uint64_t block_bytes : {1000, 4096, 65536, 1 << 20}) {
    const auto context = TestContext(budget, SystemFileCalls(), {4, block_bytes, 2, 0});
    RowWriter writer(context, TestRows::Types());
    for (uint64_t first = 0; first < kNumRows; first += 777) {
      std::vector<uint32_t> selection;
      for (uint32_t r = static_cast<uint32_t>(first); r < std::min<uint64_t>(first + 777, kNumRows); ++r)
        selection.push_back(r);
      BatchView some = rows.batch();
      some.selection = selection.data();
      some.num_rows = selection.size();
      ASSERT_TRUE(writer.Append(some).ok());
    }
    absl::StatusOr<SpilledRows> written = writer.Finish();
    ASSERT_TRUE(written.ok());
    EXPECT_EQ(written->num_rows(), kNumRows);
    EXPECT_EQ(context->stats().written_rows, kNumRows);
    std::vector<std::string> texts;
    ASSERT_EQ(ReadTexts(context, *std::move(written), &texts), absl::OkStatus());
    ASSERT_EQ(texts.size(), kNumRows);
    for (uint32_t r = 0; r < kNumRows; ++r) ASSERT_EQ(texts[r], TestRows::ExpectedText(r));
    EXPECT_EQ(context->stats().read_bytes, context->stats().written_bytes);
  }
  EXPECT_EQ(budget->used_bytes(), 0);
}

TEST(SpilledRows, AreReadAgain) {
  const auto budget = std::make_shared<MemoryBudget>(0);
  const auto context = TestContext(budget, SystemFileCalls(), kSmallBlocks);
  const TestRows rows(kNumRows);
  RowWriter writer(context, TestRows::Types());
  ASSERT_TRUE(writer.Append(rows.batch()).ok());
  RowReader reader(context, TestRows::Types(), *writer.Finish(), RowReader::After::kKeep);
  for (int time = 0; time < 3; ++time) {
    uint32_t r = 0;
    BatchView batch;
    while (*reader.Next(&batch)) {
      for (uint32_t i = 0; i < batch.num_rows; ++i, ++r)
        ASSERT_EQ(TestRows::RowText(batch, i), TestRows::ExpectedText(r));
      if (time == 1 && r > kNumRows / 2) break;
    }
    if (time != 1) {
      EXPECT_EQ(r, kNumRows);
    }
    reader.Rewind();
  }
}

// Holes wait to be punched together, but not where blocks need their space; neighbours are one hole.
TEST(SpilledRows, SpaceOfFreedBlocksIsUsedAgain) {
  class CountedHoles final : public FileCalls {
   public:
    int PunchHole(int file, off_t offset, off_t num_bytes) override {
      ++num_holes;
      return FileCalls::PunchHole(file, offset, num_bytes);
    }
    int num_holes = 0;
  } calls;
  constexpr uint64_t kBytes = 64 << 10, kBlocks = 32;
  TemporaryFiles files("/tmp", kBlocks * kBytes, &calls);
  std::vector<uint8_t> bytes(kBytes, 7);
  const iovec piece = {bytes.data(), bytes.size()};
  for (int round = 0; round < 3; ++round) {
    std::vector<StoredBlock> blocks;
    for (uint64_t b = 0; b < kBlocks; ++b) {
      const absl::StatusOr<StoredBlock> block = files.Write({&piece, 1});
      ASSERT_TRUE(block.ok()) << block.status();
      blocks.push_back(*block);
    }
    EXPECT_FALSE(files.Write({&piece, 1}).ok());
    for (const StoredBlock& block : blocks) files.Free(block);
  }
  EXPECT_GE(calls.num_holes, 2);
  EXPECT_LE(calls.num_holes, 2 * 4);  // of four files each
}

TEST(SpilledRows, PartsAreReadByReadersOfTheirOwn) {
  const auto budget = std::make_shared<MemoryBudget>(0);
  std::atomic<uint32_t> num_freed = 0;
  const TestRows rows(kNumRows);
  const std::vector<uint64_t> bounds = {1, 1, 40, 1000, 1003, 3500, kNumRows};
  for (size_t left_out = 0; left_out <= bounds.size() + 1; ++left_out) {
    const auto context = std::make_shared<SpillContext>(std::make_unique<CountedFrees>(SystemFileCalls(), &num_freed),
                                                        budget, kSmallBlocks);
    RowWriter writer(context, TestRows::Types());
    ASSERT_TRUE(writer.Append(rows.batch()).ok());
    SpilledRows written = *writer.Finish();
    const uint32_t num_blocks = static_cast<uint32_t>(written.blocks().size());
    ASSERT_GT(num_blocks, 20u);
    num_freed = 0;
    auto shared = std::make_shared<SharedRows>(std::move(written), bounds);
    // A part that nobody reads keeps its blocks.
    for (size_t p = 0; p <= bounds.size(); ++p) {
      if (p == left_out) continue;
      const RowPart part = {p == 0 ? 0 : bounds[p - 1], p == bounds.size() ? kNumRows : bounds[p]};
      RowReader reader(context, TestRows::Types(), shared, part);
      uint64_t r = part.begin;
      ASSERT_EQ(reader.Begin(), absl::OkStatus());
      for (BatchView batch; *reader.Next(&batch);) {
        EXPECT_NE(batch.num_rows, 0u);
        for (uint32_t i = 0; i < batch.num_rows; ++i, ++r)
          ASSERT_EQ(TestRows::RowText(batch, i), TestRows::ExpectedText(static_cast<uint32_t>(r)));
      }
      EXPECT_EQ(r, part.end);
    }
    const bool is_empty = left_out == 1 || left_out >= bounds.size();  // or none is left out
    EXPECT_EQ(num_freed == num_blocks, is_empty) << left_out;
    shared.reset();
    EXPECT_EQ(num_freed, num_blocks);
  }
  EXPECT_EQ(budget->used_bytes(), 0u);
}

TEST(SpilledRows, APartOfRowsThatAreKeptIsRead) {
  const auto context = TestContext(std::make_shared<MemoryBudget>(0), SystemFileCalls(), kSmallBlocks);
  const TestRows rows(kNumRows);
  RowWriter writer(context, TestRows::Types());
  ASSERT_TRUE(writer.Append(rows.batch()).ok());
  const auto written = std::make_shared<SpilledRows>(*writer.Finish());
  for (const RowPart part : {RowPart{0, 0}, {0, 1}, {4999, 5000}, {1234, 4321}, {5000, 5000}}) {
    RowReader reader(context, TestRows::Types(), written, part);
    uint64_t r = part.begin;
    for (BatchView batch; *reader.Next(&batch);)
      for (uint32_t i = 0; i < batch.num_rows; ++i, ++r)
        ASSERT_EQ(TestRows::RowText(batch, i), TestRows::ExpectedText(static_cast<uint32_t>(r)));
    EXPECT_EQ(r, part.end);
  }
}

TEST(SpilledRows, ThreadsShareAPartitionedWriter) {
  const auto budget = std::make_shared<MemoryBudget>(0);
  const auto context = TestContext(budget, SystemFileCalls(), kSmallBlocks);
  const TestRows rows(kNumRows);
  PartitionedWriter writer(context, TestRows::Types(), 8);
  std::vector<uint32_t> partitions(kNumRows);
  for (uint32_t r = 0; r < kNumRows; ++r) partitions[r] = r * 7 % 8;
  std::vector<std::thread> threads;
  std::vector<absl::Status> statuses(3);
  for (absl::Status& status : statuses)
    threads.emplace_back([&] { status = writer.Append(rows.batch(), partitions.data()); });
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) EXPECT_EQ(status, absl::OkStatus());
  absl::StatusOr<std::vector<SpilledRows>> written = writer.Finish();
  ASSERT_TRUE(written.ok());
  ASSERT_EQ(written->size(), 8);
  for (uint32_t p = 0; p < 8; ++p) {
    std::vector<std::string> texts, expected;
    ASSERT_EQ(ReadTexts(context, std::move((*written)[p]), &texts), absl::OkStatus());
    for (uint32_t r = 0; r < kNumRows; ++r)
      if (partitions[r] == p) expected.insert(expected.end(), 3, TestRows::ExpectedText(r));
    std::sort(texts.begin(), texts.end());
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(texts, expected);
  }
}

TEST(SpilledRows, LongStringsMakeNoLongBlocks) {
  const auto budget = std::make_shared<MemoryBudget>(0);
  const auto context = TestContext(budget, SystemFileCalls(), {4, 16384, 2, 0});
  const std::string bytes(3000 * 1000, 'x');
  std::vector<int32_t> offsets;
  for (int32_t r = 0; r <= 1000; ++r) offsets.push_back(3000 * r);
  QuernColumn column = {};
  column.values = bytes.data();
  column.offsets = offsets.data();
  BatchView batch;
  batch.keys = {column};
  batch.num_rows = 1000;
  RowWriter writer(context, {TypeOf(TypeId::kUtf8)});
  ASSERT_TRUE(writer.Append(batch).ok());
  const absl::StatusOr<SpilledRows> written = writer.Finish();
  for (const SpilledBlock& block : written->blocks()) EXPECT_LE(block.stored.bytes, 16384 + 2 * 3000);
  EXPECT_EQ(written->num_rows(), 1000);
}

// One row is longer than all others together: its buffers are not kept.
TEST(SpilledRows, MemoryOfALongStringIsGivenBack) {
  const auto budget = std::make_shared<MemoryBudget>(0);
  const auto context = TestContext(budget, SystemFileCalls(), {4, 16384, 2, 0});
  constexpr int32_t kLong = 4 << 20;
  const std::string bytes(kLong + 8, 'x');
  const std::vector<int32_t> offsets = {0, 4, kLong + 4, kLong + 8};
  QuernColumn column = {};
  column.values = bytes.data();
  column.offsets = offsets.data();
  BatchView batch;
  batch.keys = {column};
  batch.num_rows = 3;
  RowWriter writer(context, {TypeOf(TypeId::kUtf8)});
  ASSERT_EQ(writer.Append(batch), absl::OkStatus());
  ASSERT_EQ(writer.End(), absl::OkStatus());
  const absl::StatusOr<SpilledRows> written = writer.Finish();
  EXPECT_EQ(written->num_rows(), 3);
  EXPECT_LT(budget->used_bytes(), kLong);
}

// Every call fails in turn, in every way: the rows come back whole, or there is an error.
std::map<Fault, int> ErrorsOfFaults(bool uses_ring) {
  const TestRows rows(1000);
  std::vector<std::string> expected;
  for (uint32_t r = 0; r < 1000; ++r) expected.push_back(TestRows::ExpectedText(r));
  std::map<Fault, int> num_errors;
  for (const Fault fault : {Fault::kError, Fault::kShort, Fault::kNothing, Fault::kOtherBytes}) {
    for (int64_t fails_at = 0;; ++fails_at) {
      FaultyCalls calls(fails_at, fault);
      const auto budget = std::make_shared<MemoryBudget>(0);
      {
        SpillSettings settings = kSmallBlocks;
        settings.uses_ring = uses_ring;
        const auto context = TestContext(budget, &calls, settings);
        RowWriter writer(context, TestRows::Types());
        absl::Status status = writer.Append(rows.batch());
        std::vector<std::string> texts;
        absl::StatusOr<SpilledRows> written = status.ok() ? writer.Finish() : absl::StatusOr<SpilledRows>(status);
        if (written.ok()) status = ReadTexts(context, *std::move(written), &texts);
        else status = written.status();
        if (status.ok()) {
          EXPECT_EQ(texts, expected);
        } else {
          EXPECT_TRUE(absl::IsUnavailable(status) || absl::IsDataLoss(status)) << status;
          ++num_errors[fault];
        }
      }
      EXPECT_EQ(budget->used_bytes(), 0);
      EXPECT_EQ(calls.num_open, 0);
      if (calls.num_calls <= fails_at) break;
    }
  }
  return num_errors;
}

TEST(SpilledRows, EveryFaultIsAnErrorOrChangesNothing) {
  std::map<Fault, int> num_errors = ErrorsOfFaults(/*uses_ring=*/false);
  EXPECT_GT(num_errors[Fault::kError], 10);
  EXPECT_EQ(num_errors[Fault::kShort], 0);  // the rest is asked for again
  EXPECT_GT(num_errors[Fault::kNothing], 10);
  EXPECT_GT(num_errors[Fault::kOtherBytes], 10);
}

// What a ring fails to read is read once more, by a call.
TEST(SpilledRows, EveryFaultOfARingIsAnErrorOrChangesNothing) {
  if (ReadRing::Make(2) == nullptr) GTEST_SKIP() << "the kernel has no io_uring, or allows none";
  std::map<Fault, int> num_errors = ErrorsOfFaults(/*uses_ring=*/true);
  EXPECT_GT(num_errors[Fault::kError], 5);  // of writes
  EXPECT_EQ(num_errors[Fault::kShort], 0);
  EXPECT_GT(num_errors[Fault::kOtherBytes], 10);
}

TEST(SpilledRows, ABlockOfOtherRowsIsRefused) {
  const auto budget = std::make_shared<MemoryBudget>(0);
  const auto context = TestContext(budget);
  RowWriter writer(context, TestRows::Types());
  ASSERT_TRUE(writer.Append(TestRows(100).batch()).ok());
  RowReader reader(context, {TypeOf(TypeId::kI64)}, *writer.Finish());
  BatchView batch;
  EXPECT_TRUE(absl::IsDataLoss(reader.Next(&batch).status()));
}

}  // namespace
}  // namespace quern
