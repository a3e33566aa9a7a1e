// SPDX-License-Identifier: Apache-2.0
// Budgets and large buffers.
#include "runtime/base/memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/aligned_block.h"
#include "runtime/base/bytes.h"
#include "runtime/base/kept_pages.h"
#include "runtime/base/thresholds.h"

namespace quern {
namespace {

constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;

std::string Message(const absl::Status& status) {
  return std::string(status.message().data(), status.message().size());
}

bool KeepsBlocks() {
#if defined(QUERN_SANITIZED)
  return false;
#else
  return true;
#endif
}

TEST(MemoryBudget, RefusesWhatPassesTheLimitAndSaysSo) {
  MemoryBudget budget(1000000);
  ASSERT_TRUE(budget.Reserve(1000).ok());
  const absl::Status status = budget.Reserve(123456789);
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_EQ(Message(status), "memory limit exceeded: 123456789 bytes requested, 1000 in use; limit 1000000");
  EXPECT_EQ(budget.used_bytes(), 1000u);
  EXPECT_TRUE(budget.Reserve(999000).ok());
  EXPECT_FALSE(budget.Reserve(1).ok());
  EXPECT_TRUE(budget.Reserve(0).ok());
}

TEST(MemoryBudget, RemembersThePeak) {
  MemoryBudget budget;
  ASSERT_TRUE(budget.Reserve(700).ok());
  budget.Release(500);
  ASSERT_TRUE(budget.Reserve(100).ok());
  EXPECT_EQ(budget.used_bytes(), 300u);
  EXPECT_EQ(budget.peak_bytes(), 700u);
}

TEST(MemoryBudget, WithoutLimitTheSumDoesNotWrap) {
  MemoryBudget budget;
  ASSERT_TRUE(budget.Reserve(10).ok());
  EXPECT_FALSE(budget.Reserve(UINT64_MAX).ok());
  EXPECT_EQ(budget.used_bytes(), 10u);
}

TEST(MemoryBudget, ThreadsTogetherStayWithinTheLimit) {
  MemoryBudget budget(100);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&budget] {
      for (int i = 0; i < 20000; ++i)
        if (budget.Reserve(40).ok()) budget.Release(40);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(budget.used_bytes(), 0u);
  EXPECT_LE(budget.peak_bytes(), 80u);
}

TEST(HugeBuffer, IsZeroedAlignedAndGivenBack) {
  auto budget = std::make_shared<MemoryBudget>();
  for (const uint64_t bytes : {uint64_t{1}, uint64_t{4097}, uint64_t{200000}, kHugePageBytes, kHugePageBytes * 3 + 5}) {
    auto buffer = HugeBuffer::Allocate(budget, bytes, true);
    ASSERT_TRUE(buffer.ok());
    EXPECT_EQ(buffer->bytes(), bytes);
    EXPECT_EQ(budget->used_bytes(), bytes);
    const uint64_t alignment = bytes >= kHugePageBytes ? kHugePageBytes : 64;
    EXPECT_EQ(reinterpret_cast<uint64_t>(buffer->data()) % alignment, 0u);
    for (uint64_t i = 0; i < bytes; i += 511) EXPECT_EQ(buffer->data()[i], 0);
    buffer->data()[0] = buffer->data()[bytes - 1] = 1;
    buffer->Free();
    EXPECT_EQ(budget->used_bytes(), 0u);
    EXPECT_EQ(buffer->data(), nullptr);
  }
}

TEST(HugeBuffer, MovesItsMemory) {
  auto budget = std::make_shared<MemoryBudget>();
  HugeBuffer a = HugeBuffer::Allocate(budget, 5000, false).value();
  uint8_t* data = a.data();
  HugeBuffer b = std::move(a);
  EXPECT_EQ(b.data(), data);
  HugeBuffer c = HugeBuffer::Allocate(budget, 100, false).value();
  c = std::move(b);
  EXPECT_EQ(c.data(), data);
  EXPECT_EQ(budget->used_bytes(), 5000u);
}

TEST(HugeBuffer, NothingIsNothing) {
  auto budget = std::make_shared<MemoryBudget>(10);
  EXPECT_EQ(HugeBuffer::Allocate(budget, 0, true).value().data(), nullptr);
}

TEST(HugeBuffer, PagesOfAnythingAreTakenAgain) {
  auto budget = std::make_shared<MemoryBudget>();
  KeptPages& kept = KeptPages::OfProcess();
  kept.Clear();
  HugeBuffer buffer = HugeBuffer::Allocate(budget, 2 * kHugePageBytes + 1, true, Contents::kAnything).value();
  uint8_t* const data = buffer.data();
  EXPECT_EQ(budget->used_bytes(), 2 * kHugePageBytes + 1);
  data[2 * kHugePageBytes] = 1;
  buffer.Free();
  EXPECT_EQ(budget->used_bytes(), 0u);
  EXPECT_EQ(kept.bytes(), 3 * kHugePageBytes);
  HugeBuffer zeros = HugeBuffer::Allocate(budget, 2 * kHugePageBytes, true).value();
  EXPECT_EQ(zeros.data(), data);
  for (uint64_t i = 0; i < 2 * kHugePageBytes; i += 509) ASSERT_EQ(data[i], 0) << i;
  data[7] = 1;
  zeros.Free();
  EXPECT_EQ(kept.bytes(), 3 * kHugePageBytes);
  // Large ones are new.
  EXPECT_EQ(HugeBuffer::Allocate(budget, 9 * kHugePageBytes, true).value().data()[0], 0);
  EXPECT_EQ(kept.bytes(), 3 * kHugePageBytes);
  buffer = HugeBuffer::Allocate(budget, 2 * kHugePageBytes, true, Contents::kAnything).value();
  EXPECT_EQ(buffer.data(), data);
  EXPECT_EQ(kept.bytes(), kHugePageBytes);
  HugeBuffer small = HugeBuffer::Allocate(budget, 5000, true, Contents::kAnything).value();
  small.data()[4999] = 1;
  small.Free();
  buffer.Free();
  EXPECT_EQ(kept.bytes(), 3 * kHugePageBytes);
  kept.Clear();
}

TEST(HugeBuffer, BlocksAreTakenAgain) {
  KeptPages& kept = KeptPages::OfProcess();
  kept.Clear();
  constexpr uint64_t kBytes = 3 * thresholds::kKeptBlockBytes;
  for (const Contents contents : {Contents::kAnything, Contents::kZeros}) {
    HugeBuffer buffer = HugeBuffer::Allocate(nullptr, kBytes - 1, true, contents).value();
    for (uint64_t i = 0; contents == Contents::kZeros && i < kBytes - 1; ++i) ASSERT_EQ(buffer.data()[i], 0) << i;
    std::memset(buffer.data(), 0x5a, kBytes - 1);
    buffer.Free();
  }
  EXPECT_EQ(kept.Clear(), KeepsBlocks() ? kBytes : 0);
  EXPECT_EQ(kept.Clear(), 0u);
}

// Of blocks, the last ones are kept: so many, of so many bytes in all.
TEST(KeptPages, BlocksReplaceTheOldest) {
  if (!KeepsBlocks()) GTEST_SKIP() << "a sanitizer sees no use of a block that is kept";
  KeptPages kept(100 * kHugePageBytes);
  constexpr uint64_t kBytes = thresholds::kKeptBlockBytes, kMost = thresholds::kKeptBlocks;
  const auto give = [&](uint64_t bytes) { kept.GiveBlock(AllocateAligned(bytes), bytes); };
  EXPECT_EQ(kept.TakeBlock(kBytes), nullptr);
  for (uint64_t i = 0; i < kMost + 2; ++i) give(kBytes + 64 * i);
  EXPECT_EQ(kept.TakeBlock(kBytes), nullptr);
  EXPECT_EQ(kept.TakeBlock(kBytes + 64), nullptr);
  uint8_t* const third = kept.TakeBlock(kBytes + 2 * 64);
  ASSERT_NE(third, nullptr);
  EXPECT_EQ(kept.TakeBlock(kBytes + 2 * 64), nullptr);
  kept.GiveBlock(third, kBytes + 2 * 64);
  EXPECT_EQ(kept.TakeBlock(kBytes + 2 * 64), third);
  FreeAligned(third);
  give(thresholds::kKeptBlocksBytes);  // all others go
  EXPECT_EQ(kept.Clear(), thresholds::kKeptBlocksBytes);
  give(thresholds::kKeptBlocksBytes + 64);
  EXPECT_EQ(kept.Clear(), 0u);
  give(2 * kBytes);
  give(kBytes);
  kept.SetMost(kBytes);
  EXPECT_EQ(kept.TakeBlock(2 * kBytes), nullptr);
  EXPECT_EQ(kept.Clear(), kBytes);
  kept.SetMost(0);
  give(kBytes);
  EXPECT_EQ(kept.Clear(), 0u);
}

uint8_t* MapPages(uint64_t pages) {
  void* const data = mmap(nullptr, pages * kHugePageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return data == MAP_FAILED ? nullptr : static_cast<uint8_t*>(data);
}

TEST(KeptPages, JoinsNeighboursAndCutsTheSmallestRangeThatSuffices) {
  KeptPages kept(100 * kHugePageBytes);
  EXPECT_EQ(kept.Take(kHugePageBytes), nullptr);
  uint8_t* const a = MapPages(8);
  uint8_t* const b = MapPages(4);
  kept.Give(a, 2 * kHugePageBytes);
  kept.Give(a + 5 * kHugePageBytes, 3 * kHugePageBytes);
  EXPECT_EQ(kept.Take(4 * kHugePageBytes), nullptr);
  EXPECT_EQ(kept.Take(3 * kHugePageBytes), a + 5 * kHugePageBytes);
  kept.Give(a + 5 * kHugePageBytes, 3 * kHugePageBytes);
  kept.Give(a + 2 * kHugePageBytes, 3 * kHugePageBytes);  // between the two
  EXPECT_EQ(kept.bytes(), 8 * kHugePageBytes);
  kept.Give(b, 4 * kHugePageBytes);
  const bool is_apart = a + 8 * kHugePageBytes != b && b + 4 * kHugePageBytes != a;
  if (is_apart) {
    EXPECT_EQ(kept.Take(3 * kHugePageBytes), b);
  }
  kept.Clear();
  EXPECT_EQ(kept.bytes(), 0u);
}

TEST(KeptPages, KeepsNoMoreThanItMay) {
  KeptPages kept(2 * kHugePageBytes);
  kept.Give(MapPages(2), 2 * kHugePageBytes);
  EXPECT_EQ(kept.bytes(), 2 * kHugePageBytes);
  kept.Give(MapPages(1), kHugePageBytes);
  EXPECT_EQ(kept.bytes(), 2 * kHugePageBytes);
  EXPECT_NE(kept.Take(kHugePageBytes), nullptr);
  EXPECT_EQ(kept.bytes(), kHugePageBytes);
}

TEST(KeptPages, MayBeToldToKeepLess) {
  KeptPages kept(4 * kHugePageBytes);
  kept.Give(MapPages(2), 2 * kHugePageBytes);
  kept.SetMost(2 * kHugePageBytes);
  EXPECT_EQ(kept.bytes(), 2 * kHugePageBytes);
  kept.SetMost(0);
  EXPECT_EQ(kept.bytes(), 0u);
  kept.Give(MapPages(1), kHugePageBytes);
  EXPECT_EQ(kept.bytes(), 0u);
}

TEST(KeptPages, MovesPagesOfSeveralMappings) {
  KeptPages kept(100 * kHugePageBytes);
  for (int i = 0; i < 3; ++i) {
    uint8_t* const pages = MapPages(1);
    pages[0] = 7;
    kept.Give(pages, kHugePageBytes);
  }
  uint8_t* const to = MapPages(5);
  EXPECT_EQ(kept.MoveTo(to, 2 * kHugePageBytes), 2 * kHugePageBytes);
  EXPECT_EQ(kept.bytes(), kHugePageBytes);
  EXPECT_EQ(kept.MoveTo(to + 2 * kHugePageBytes, 3 * kHugePageBytes), kHugePageBytes);
  EXPECT_EQ(kept.MoveTo(to, kHugePageBytes), 0u);
  for (uint64_t i = 0; i < 5; ++i) to[i * kHugePageBytes] = static_cast<uint8_t>(i);  // all can be written
  munmap(to, 5 * kHugePageBytes);
}

// Its pages come from the kept pages and from the system; all are zeros.
TEST(GrowingBuffer, IsZeroedWhereverItsPagesComeFrom) {
  auto budget = std::make_shared<MemoryBudget>();
  KeptPages& kept = KeptPages::OfProcess();
  kept.Clear();
  for (int round = 0; round < 3; ++round) {
    GrowingBuffer buffer = GrowingBuffer::Reserve(budget, 64 * kHugePageBytes, true).value();
    for (const uint64_t bytes : {uint64_t{1000}, kHugePageBytes + 5, 3 * kHugePageBytes + round * kHugePageBytes}) {
      const uint64_t before = buffer.bytes();
      ASSERT_TRUE(buffer.Grow(bytes).ok());
      for (uint64_t i = before; i < bytes; ++i) ASSERT_EQ(buffer.data()[i], 0) << i;
      std::memset(buffer.data(), 0x5a, bytes);
    }
    EXPECT_EQ(buffer.data()[0], 0x5a);
    buffer.Free();
    EXPECT_EQ(kept.bytes(), (3 + static_cast<uint64_t>(round)) * kHugePageBytes);
    EXPECT_EQ(budget->used_bytes(), 0u);
  }
  kept.Clear();
}

TEST(HugeBuffer, FailuresLeaveTheBudgetAlone) {
  auto budget = std::make_shared<MemoryBudget>(1000);
  EXPECT_EQ(Message(HugeBuffer::Allocate(budget, 1001, true).status()),
            "memory limit exceeded: 1001 bytes requested, 0 in use; limit 1000");
  auto unlimited = std::make_shared<MemoryBudget>();
  EXPECT_EQ(Message(HugeBuffer::Allocate(unlimited, uint64_t{1} << 60, true).status()),
            "out of memory: 1152921504606846976 bytes requested; accepted: what the system has free");
  EXPECT_EQ(unlimited->used_bytes(), 0u);
}

// ---- memory that takes the place of other memory ----

TEST(HugeBuffer, ABufferTakesOverTheBytesOfAnother) {
  auto budget = std::make_shared<MemoryBudget>(2 * kHugePageBytes);
  for (const uint64_t bytes : {uint64_t{5000}, kHugePageBytes + 5}) {
    HugeBuffer from = HugeBuffer::Allocate(budget, bytes, true).value();
    HugeBuffer to = HugeBuffer::Allocate(nullptr, bytes, true).value();
    EXPECT_EQ(from.Disown(/*releases_pages=*/true), bytes);
    EXPECT_EQ(from.Disown(/*releases_pages=*/true), 0u) << "once";
    to.Own(budget);
    EXPECT_EQ(budget->used_bytes(), bytes);
    from.Free();
    EXPECT_EQ(budget->used_bytes(), bytes) << "they are those of the other one now";
    to.Free();
    EXPECT_EQ(budget->used_bytes(), 0u);
    EXPECT_EQ(budget->peak_bytes(), bytes);
  }
}

TEST(HugeBuffer, WithoutABudgetThereIsNothingToDisown) {
  HugeBuffer buffer = HugeBuffer::Allocate(nullptr, 5000, true).value();
  EXPECT_EQ(buffer.Disown(/*releases_pages=*/true), 0u);
  EXPECT_EQ(buffer.bytes(), 5000u);
}

// Some of its pages may be gone.
TEST(HugeBuffer, PagesOfADisownedBufferAreNotTakenAgain) {
  auto budget = std::make_shared<MemoryBudget>();
  KeptPages& kept = KeptPages::OfProcess();
  kept.Clear();
  HugeBuffer buffer = HugeBuffer::Allocate(budget, 2 * kHugePageBytes, true, Contents::kAnything).value();
  budget->Release(buffer.Disown(/*releases_pages=*/true));
  buffer.Free();
  EXPECT_EQ(kept.bytes(), 0u);
  EXPECT_EQ(budget->used_bytes(), 0u);

  HugeBuffer whole = HugeBuffer::Allocate(budget, 2 * kHugePageBytes, true, Contents::kAnything).value();
  budget->Release(whole.Disown(/*releases_pages=*/false));
  whole.Free();
  EXPECT_EQ(kept.bytes(), 2 * kHugePageBytes);
  kept.Clear();
}

TEST(HugeBuffer, ADisownedBufferMovesWithoutItsBytes) {
  auto budget = std::make_shared<MemoryBudget>();
  HugeBuffer from = HugeBuffer::Allocate(budget, 5000, true).value();
  EXPECT_EQ(from.Disown(/*releases_pages=*/true), 5000u);
  from.data()[4999] = 7;
  HugeBuffer to = std::move(from);
  EXPECT_EQ(to.data()[4999], 7);
  to.Free();
  EXPECT_EQ(budget->used_bytes(), 5000u);
}

TEST(Arena, DisownedPiecesStayReserved) {
  auto budget = std::make_shared<MemoryBudget>();
  {
    Arena arena(budget, true, Contents::kAnything);
    std::vector<uint8_t*> pieces;
    for (uint8_t i = 0; i < 100; ++i) {
      pieces.push_back(arena.Allocate(100000).value());
      std::memset(pieces.back(), i, 100000);
    }
    const uint64_t bytes = arena.bytes();
    EXPECT_EQ(budget->used_bytes(), bytes);
    EXPECT_EQ(arena.Disown(/*releases_pages=*/true), bytes);
    EXPECT_EQ(arena.Disown(/*releases_pages=*/true), 0u) << "once";
    EXPECT_EQ(arena.bytes(), bytes);
    for (uint8_t i = 0; i < 100; ++i) EXPECT_EQ(pieces[i][99999], i);
    arena.Clear();
    EXPECT_EQ(budget->used_bytes(), bytes);
    budget->Release(bytes);
  }
  EXPECT_EQ(budget->used_bytes(), 0u);
}

// Whole pages between begin and end are exchanged, as many as are kept.
TEST(TakeKeptPages, LeavesNeighboursAlone) {
  constexpr uint64_t kBytes = 5 * kHugePageBytes;
  KeptPages& kept = KeptPages::OfProcess();
  for (const uint64_t num_kept : {0, 1, 2, 4}) {
    kept.Clear();
    HugeBuffer buffer = HugeBuffer::Allocate(nullptr, kBytes, true, Contents::kAnything).value();
    std::memset(buffer.data(), 1, kBytes);
    if (num_kept != 0) {
      HugeBuffer other = HugeBuffer::Allocate(nullptr, num_kept * kHugePageBytes, true, Contents::kAnything).value();
      std::memset(other.data(), 2, other.bytes());
    }
    ASSERT_EQ(kept.bytes(), num_kept * kHugePageBytes);
    ASSERT_TRUE(buffer.TakeKeptPages(kHugePageBytes - 1, 4 * kHugePageBytes + 100).ok());
    const uint64_t num_taken = std::min<uint64_t>(num_kept, 3);
    EXPECT_EQ(kept.bytes(), (num_kept - num_taken) * kHugePageBytes);
    for (uint64_t page = 0; page < 5; ++page) {
      const int expected = page >= 1 && page < 1 + num_taken ? 2 : 1;
      for (uint64_t i = 0; i < kHugePageBytes; ++i) ASSERT_EQ(buffer.data()[page * kHugePageBytes + i], expected);
    }
  }
  kept.Clear();
}

TEST(TakeKeptPages, OfSmallMemoryNothing) {
  HugeBuffer buffer = HugeBuffer::Allocate(nullptr, 100000, true, Contents::kAnything).value();
  EXPECT_TRUE(buffer.TakeKeptPages(0, 100000).ok());
}

TEST(FirstZero, IsBehindWhatEarlierBuffersHad) {
  KeptPages& kept = KeptPages::OfProcess();
  kept.Clear();
  for (const uint64_t num_kept : {0, 1, 3, 4}) {
    kept.Clear();
    if (num_kept != 0) {
      HugeBuffer other = HugeBuffer::Allocate(nullptr, num_kept * kHugePageBytes, true, Contents::kAnything).value();
      std::memset(other.data(), 2, other.bytes());
    }
    HugeBuffer buffer = HugeBuffer::Allocate(nullptr, 3 * kHugePageBytes, true, Contents::kAnything).value();
    for (uint64_t i = buffer.first_zero(); i < buffer.bytes(); ++i) ASSERT_EQ(buffer.data()[i], 0) << i;
#if defined(NDEBUG)
    EXPECT_EQ(buffer.first_zero(), std::min<uint64_t>(num_kept, 3) * kHugePageBytes);
#endif
    HugeBuffer moved = std::move(buffer);
    EXPECT_LE(moved.first_zero(), moved.bytes());
  }
  kept.Clear();
}

// Bytes of the first and the last page that belong to neighbours.
TEST(ReleasePages, LeavesNeighboursAlone) {
  constexpr uint64_t kBytes = 3 * kHugePageBytes;
  for (const bool huge_pages : {false, true}) {
    HugeBuffer buffer = HugeBuffer::Allocate(nullptr, kBytes, huge_pages, Contents::kAnything).value();
    for (const auto& [begin, end] : {std::pair<uint64_t, uint64_t>{70001, 400003},
                                     {kHugePageBytes - 1, kBytes},
                                     {0, kHugePageBytes},
                                     {4097, 8191},
                                     {5000, 5000}}) {
      std::memset(buffer.data(), 0x5a, kBytes);
      ReleasePages(buffer.data() + begin, end - begin);
      for (uint64_t i = 0; i < begin; ++i) ASSERT_EQ(buffer.data()[i], 0x5a) << i;
      for (uint64_t i = end; i < kBytes; ++i) ASSERT_EQ(buffer.data()[i], 0x5a) << i;
      std::memset(buffer.data() + begin, 1, end - begin);  // it can be written again
    }
  }
}

TEST(ReleasePages, GivesWholePagesBack) {
  HugeBuffer buffer = HugeBuffer::Allocate(nullptr, 2 * kHugePageBytes, true, Contents::kAnything).value();
  std::memset(buffer.data(), 0x5a, 2 * kHugePageBytes);
  ReleasePages(buffer.data() + 1, 2 * kHugePageBytes - 1);
  EXPECT_EQ(buffer.data()[kHugePageBytes], 0) << "a new page of the system";
}

TEST(ReleasePages, OfMemoryOfTheAllocatorToo) {
  std::vector<uint8_t> memory(1000000, 0x5a);
  ReleasePages(memory.data() + 100000, 800000);
  for (uint64_t i = 0; i < 1000000; i += i == 99999 ? 800001 : 1) ASSERT_EQ(memory[i], 0x5a) << i;
  EXPECT_EQ(memory[500000], 0);
}

}  // namespace
}  // namespace quern
