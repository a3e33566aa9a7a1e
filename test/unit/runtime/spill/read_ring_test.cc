// SPDX-License-Identifier: Apache-2.0
// Reads of a ring give what pread gives; a reader without a ring reads the same rows by threads.
#include "runtime/spill/read_ring.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/spill/spilled_rows.h"
#include "test/unit/runtime/spill/spill_test_rows.h"

namespace quern {
namespace {

// A nameless file of so many bytes, which follow from their place.
class SomeFile {
 public:
  explicit SomeFile(size_t num_bytes) : file_(FileCalls().Open("/tmp")) {
    std::vector<uint8_t> bytes(num_bytes);
    for (size_t i = 0; i < num_bytes; ++i) bytes[i] = At(i);
    EXPECT_EQ(pwrite(file_, bytes.data(), num_bytes, 0), static_cast<ssize_t>(num_bytes));
  }
  SomeFile(const SomeFile&) = delete;
  SomeFile& operator=(const SomeFile&) = delete;
  ~SomeFile() { close(file_); }
  int get() const { return file_; }
  static uint8_t At(size_t place) { return static_cast<uint8_t>(place * 7 + (place >> 8)); }

 private:
  const int file_;
};

class ReadRingTest : public testing::Test {
 protected:
  void SetUp() override {
    ring_ = ReadRing::Make(4);
    if (ring_ == nullptr) GTEST_SKIP() << "the kernel has no io_uring, or allows none";
  }
  std::unique_ptr<ReadRing> ring_;
};

TEST_F(ReadRingTest, GivesWhatIsInTheFile) {
  const SomeFile file(100'000);
  // Three times through both queues.
  for (size_t i = 0; i < 24; ++i) {
    std::vector<uint8_t> bytes(5000);
    RingRead read;
    ASSERT_TRUE(ring_->Ask(file.get(), bytes.data(), 5000, static_cast<off_t>(i * 3000), &read));
    ring_->Wait(read);
    ASSERT_EQ(read.result, 5000);
    for (size_t b = 0; b < 5000; ++b) ASSERT_EQ(bytes[b], SomeFile::At(i * 3000 + b));
  }
}

TEST_F(ReadRingTest, TakesAsManyAsItWasMadeForAndAnswersInAnyOrder) {
  const SomeFile file(100'000);
  std::vector<std::vector<uint8_t>> bytes(5, std::vector<uint8_t>(1000));
  std::vector<RingRead> reads(5);
  for (size_t i = 0; i < 4; ++i)
    ASSERT_TRUE(ring_->Ask(file.get(), bytes[i].data(), 1000, static_cast<off_t>(i * 1000), &reads[i]));
  ring_->Wait(reads[3]);
  ring_->Wait(reads[1]);
  // An answer that has come makes room for another read.
  ASSERT_TRUE(ring_->Ask(file.get(), bytes[4].data(), 1000, 4000, &reads[4]));
  for (size_t i = 0; i < 5; ++i) {
    ring_->Wait(reads[i]);
    EXPECT_EQ(reads[i].result, 1000);
    EXPECT_EQ(bytes[i][0], SomeFile::At(i * 1000));
  }
}

TEST_F(ReadRingTest, EndsOfFilesAndErrorsAreThoseOfPread) {
  const SomeFile file(1000);
  std::vector<uint8_t> bytes(5000);
  RingRead read;
  ASSERT_TRUE(ring_->Ask(file.get(), bytes.data(), 5000, 0, &read));
  ring_->Wait(read);
  EXPECT_EQ(read.result, 1000);
  ASSERT_TRUE(ring_->Ask(file.get(), bytes.data(), 5000, 2000, &read));
  ring_->Wait(read);
  EXPECT_EQ(read.result, 0);
  ASSERT_TRUE(ring_->Ask(-1, bytes.data(), 5000, 0, &read));
  ring_->Wait(read);
  EXPECT_EQ(read.result, -EBADF);
}

// Calls of a kernel that refuses rings, or counts them.
class RingCalls final : public FileCalls {
 public:
  explicit RingCalls(bool refuses) : refuses_(refuses) {}
  std::unique_ptr<ReadRing> NewRing(uint32_t num_reads) override {
    ++num_asked;
    return refuses_ ? nullptr : FileCalls::NewRing(num_reads);
  }
  int64_t HasRead(void* /*bytes*/, int64_t result) override {
    ++num_read;
    return result;
  }
  int num_asked = 0, num_read = 0;

 private:
  const bool refuses_;
};

std::vector<std::string> WriteAndRead(FileCalls* calls, const SpillSettings& settings, bool changes_threads = false) {
  const auto budget = std::make_shared<MemoryBudget>(0);
  std::vector<std::string> texts;
  {
    const TestRows rows(3000);
    const auto context = TestContext(budget, calls, settings);
    for (int time = 0; time < 2; ++time) {
      RowWriter writer(context, TestRows::Types());
      EXPECT_TRUE(writer.Append(rows.batch()).ok());
      RowReader reader(context, TestRows::Types(), *writer.Finish());
      const auto read = [&] {
        BatchView batch;
        const bool more = *reader.Next(&batch);
        for (uint32_t r = 0; r < batch.num_rows; ++r) texts.push_back(TestRows::RowText(batch, r));
        return more;
      };
      // A thread that ends takes what it has asked for with it.
      if (changes_threads) std::thread(read).join();
      while (read()) {
      }
    }
  }
  EXPECT_EQ(budget->used_bytes(), 0);
  return texts;
}

TEST(RingReader, ReadsTheSameRowsAsThreads) {
  std::vector<std::string> expected;
  for (uint32_t r = 0; r < 6000; ++r) expected.push_back(TestRows::ExpectedText(r % 3000));
  for (const bool changes_threads : {false, true}) {
    for (const uint32_t depth : {1u, 2u, 9u}) {
      SpillSettings settings = {4, 4096, depth, 1 << 20};
      EXPECT_EQ(WriteAndRead(SystemFileCalls(), settings, changes_threads), expected);
      settings.uses_ring = false;
      EXPECT_EQ(WriteAndRead(SystemFileCalls(), settings, changes_threads), expected);
    }
  }
}

TEST(RingReader, AKernelThatRefusesIsAskedOnceAndThreadsRead) {
  RingCalls calls(/*refuses=*/true);
  EXPECT_EQ(WriteAndRead(&calls, {4, 4096, 2, 1 << 20}).size(), 6000);
  EXPECT_EQ(calls.num_asked, 1);
  EXPECT_EQ(calls.num_read, 0);
}

TEST(RingReader, OneRingServesOneReaderAfterTheOther) {
  if (ReadRing::Make(2) == nullptr) GTEST_SKIP() << "the kernel has no io_uring, or allows none";
  RingCalls calls(/*refuses=*/false);
  EXPECT_EQ(WriteAndRead(&calls, {4, 4096, 2, 1 << 20}).size(), 6000);
  EXPECT_EQ(calls.num_asked, 1);
  EXPECT_GT(calls.num_read, 50);
}

}  // namespace
}  // namespace quern
