// SPDX-License-Identifier: Apache-2.0
// Tuples that are added come out once each, in a block that stayed or in one that was written.
#include "runtime/spill/tuple_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/memory.h"

namespace quern {
namespace {

constexpr uint32_t kTupleBytes = 24, kParts = 8, kRows = 512;
constexpr uint32_t kShift = 61;  // of a hash to its partition
constexpr uint64_t kKiB = 1024, kWriteBytes = 64 * kKiB;

uint64_t HashOf(uint64_t number) { return number * 0x9e3779b97f4a7c15; }

// Keeps the numbers of tuples by partition.
class Written final : public BlockSink {
 public:
  explicit Written(bool has_threads = false, int64_t fails_at = -1) : has_threads_(has_threads), fails_at_(fails_at) {}
  ~Written() override {
    for (std::thread& thread : threads_) thread.join();
  }

  absl::Status WritePart(uint32_t part, const BlockPieces& block, uint64_t num_tuples) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (num_blocks++ == fails_at_) return absl::UnavailableError("a full disk");
    uint64_t bytes = 0;
    for (size_t p = 1; p < block.pieces().size(); ++p) {  // behind the header and its padding
      const iovec& piece = block.pieces()[p];
      if (block.value_bytes()[p] != kTupleBytes) continue;
      bytes += piece.iov_len;
      for (uint64_t at = 0; at < piece.iov_len; at += kTupleBytes)
        Add(part, static_cast<uint8_t*>(piece.iov_base) + at);
    }
    EXPECT_EQ(bytes, num_tuples * kTupleBytes);
    return absl::OkStatus();
  }
  absl::Status WriteTuples(uint8_t* const* tuples, uint32_t n) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    num_single += n;
    for (uint32_t i = 0; i < n; ++i) {
      uint64_t number;
      std::memcpy(&number, tuples[i], sizeof(number));
      Add(static_cast<uint32_t>(HashOf(number) >> 61), tuples[i]);
    }
    return absl::OkStatus();
  }
  bool CallBehind(const std::function<void()>& write) override {
    if (has_threads_) threads_.emplace_back(write);
    return has_threads_;
  }

  std::map<uint32_t, std::vector<uint64_t>> parts;
  int64_t num_blocks = 0;
  uint64_t num_single = 0;

 private:
  void Add(uint32_t part, const uint8_t* tuple) {
    uint64_t number, copy;
    std::memcpy(&number, tuple, sizeof(number));
    std::memcpy(&copy, tuple + kTupleBytes - sizeof(copy), sizeof(copy));
    EXPECT_EQ(copy, ~number);
    parts[part].push_back(number);
  }

  const bool has_threads_;
  const int64_t fails_at_;
  std::mutex mutex_;
  std::vector<std::thread> threads_;
};

absl::Status AddNumbers(uint64_t first, uint64_t n, TupleBlocks* blocks) {
  for (uint64_t done = 0; done < n;) {
    uint8_t bytes[kRows][kTupleBytes] = {};
    uint8_t* tuples[kRows];
    uint64_t hashes[kRows];
    const auto some = static_cast<uint32_t>(std::min<uint64_t>(kRows, n - done));
    for (uint32_t i = 0; i < some; ++i) {
      const uint64_t number = first + done + i, copy = ~number;
      std::memcpy(bytes[i], &number, sizeof(number));
      std::memcpy(bytes[i] + kTupleBytes - sizeof(copy), &copy, sizeof(copy));
      tuples[i] = bytes[i];
      hashes[i] = HashOf(number);
    }
    if (absl::Status status = blocks->Add(tuples, hashes, some); !status.ok()) return status;
    done += some;
  }
  return absl::OkStatus();
}

// The numbers of kept and written tuples: 0 to n - 1, each in its partition. Returns how many were kept.
uint64_t ExpectAll(uint64_t n, TupleBlocks* blocks, const Written& written) {
  absl::StatusOr<std::vector<PartBlocks>> kept = blocks->Take();
  EXPECT_TRUE(kept.ok()) << kept.status();
  auto parts = written.parts;  // all writes have ended
  uint64_t num_kept = 0;
  for (uint32_t p = 0; p < kParts; ++p) {
    num_kept += (*kept)[p].num_tuples();
    for (const TupleSpan& span : (*kept)[p].spans) {
      for (uint64_t t = 0; t < span.num_tuples; ++t) {
        uint64_t number;
        std::memcpy(&number, span.tuples + t * kTupleBytes, sizeof(number));
        parts[p].push_back(number);
      }
    }
  }
  std::vector<uint64_t> all;
  for (const auto& [part, numbers] : parts) {
    for (const uint64_t number : numbers) EXPECT_EQ(HashOf(number) >> 61, part);
    all.insert(all.end(), numbers.begin(), numbers.end());
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all.size(), n);
  for (uint64_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], i);
  return num_kept;
}

TEST(TupleBlocks, WhatFitsStays) {
  for (const bool has_threads : {false, true}) {
    for (const uint64_t limit : {uint64_t{1} << 30, 2000 * kKiB, 500 * kKiB, 60 * kKiB, uint64_t{1}}) {
      Written written(has_threads);
      const auto budget = std::make_shared<MemoryBudget>(limit);
      {
        TupleBlocks blocks(kTupleBytes, kParts, kShift, kWriteBytes, 0, budget, &written);
        constexpr uint64_t kNumbers = 100'000;
        ASSERT_EQ(AddNumbers(0, kNumbers, &blocks), absl::OkStatus());
        EXPECT_LE(budget->peak_bytes(), limit);
        const uint64_t num_kept = ExpectAll(kNumbers, &blocks, written);
        EXPECT_GE(num_kept * kTupleBytes + kParts * 2 * kWriteBytes, std::min(limit, kNumbers * kTupleBytes));
        EXPECT_EQ(written.num_blocks != 0 || written.num_single != 0, limit < (uint64_t{1} << 30));
      }
      EXPECT_EQ(budget->used_bytes(), 0);
    }
  }
}

TEST(TupleBlocks, TheLastPartitionsAreWritten) {
  Written written;
  const auto budget = std::make_shared<MemoryBudget>(1500 * kKiB);
  TupleBlocks blocks(kTupleBytes, kParts, kShift, kWriteBytes, 0, budget, &written);
  ASSERT_EQ(AddNumbers(0, 100'000, &blocks), absl::OkStatus());
  EXPECT_EQ(written.parts.count(0), 0);
  EXPECT_GT(written.parts[kParts - 1].size(), 100'000 / kParts / 2);
  ExpectAll(100'000, &blocks, written);
}

TEST(TupleBlocks, FreeGivesMemoryBack) {
  for (const bool has_threads : {false, true}) {
    Written written(has_threads);
    const auto budget = std::make_shared<MemoryBudget>(2000 * kKiB);
    TupleBlocks blocks(kTupleBytes, kParts, kShift, kWriteBytes, 0, budget, &written);
    ASSERT_EQ(AddNumbers(0, 70'000, &blocks), absl::OkStatus());
    for (uint64_t first = 70'000; budget->used_bytes() != 0;) {
      const uint64_t before = budget->used_bytes();
      EXPECT_EQ(before, blocks.bytes());
      ASSERT_EQ(blocks.Free(100 * kKiB), absl::OkStatus());
      EXPECT_LE(budget->used_bytes(), before - std::min(before, 100 * kKiB));
      if (first != 70'000) continue;
      ASSERT_EQ(AddNumbers(first, 30'000, &blocks), absl::OkStatus());
      first += 30'000;
      ASSERT_EQ(blocks.Free(uint64_t{1} << 40), absl::OkStatus());
    }
    EXPECT_EQ(blocks.num_tuples(), 0);
    EXPECT_EQ(ExpectAll(100'000, &blocks, written), 0);
  }
}

TEST(TupleBlocks, FurtherBitsOfAHashNumberPartitionsOfAPartition) {
  Written written;
  TupleBlocks blocks(kTupleBytes, kParts, kShift - 3, kWriteBytes, 0, std::make_shared<MemoryBudget>(), &written);
  uint8_t tuple[kTupleBytes] = {};
  uint8_t* tuples[] = {tuple, tuple};
  const uint64_t hashes[] = {uint64_t{0b101'110} << 58, uint64_t{0b111'001} << 58};
  ASSERT_EQ(blocks.Add(tuples, hashes, 2), absl::OkStatus());
  EXPECT_EQ(blocks.num_tuples_of(0b110), 1);
  EXPECT_EQ(blocks.num_tuples_of(0b001), 1);
}

TEST(TupleBlocks, AFailedWriteIsAnError) {
  for (const bool has_threads : {false, true}) {
    Written written(has_threads, /*fails_at=*/3);
    TupleBlocks blocks(kTupleBytes, kParts, kShift, kWriteBytes, 0, std::make_shared<MemoryBudget>(500 * kKiB),
                       &written);
    absl::Status status = AddNumbers(0, 100'000, &blocks);
    if (status.ok()) status = blocks.Take().status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  }
}

}  // namespace
}  // namespace quern
