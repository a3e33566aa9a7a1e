// SPDX-License-Identifier: Apache-2.0
#include "runtime/spill/spill_context.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/base/output_buffer.h"
#include "runtime/spill/spilled_rows.h"
#include "test/unit/runtime/spill/spill_test_rows.h"

namespace quern {
namespace {

constexpr uint64_t kMiB = 1 << 20;

TEST(SpillContext, MemoryIsSetAsideOnceAndGivenBack) {
  const auto budget = std::make_shared<MemoryBudget>(32 * kMiB);
  {
    const auto context = TestContext(budget);
    EXPECT_EQ(budget->used_bytes(), 0);
    ASSERT_TRUE(context->SetMemoryAside().ok());
    ASSERT_TRUE(context->SetMemoryAside().ok());
    EXPECT_EQ(budget->used_bytes(), 4 * kMiB);
    // With all else taken, buffers of input and output still have their memory.
    ASSERT_TRUE(budget->Reserve(28 * kMiB).ok());
    EXPECT_FALSE(context->HasRoom(1));
    OutputBuffer buffer, more;
    ASSERT_TRUE(buffer.Allocate(context->io_budget(), 3 * kMiB).ok());
    EXPECT_EQ(budget->used_bytes(), 32 * kMiB);
    EXPECT_TRUE(absl::IsResourceExhausted(more.Allocate(context->io_budget(), 2 * kMiB)));
    budget->Release(8 * kMiB);
    ASSERT_TRUE(more.Allocate(context->io_budget(), 2 * kMiB).ok());
    more.Free();
    EXPECT_EQ(budget->used_bytes(), 24 * kMiB);
    budget->Release(20 * kMiB);
  }
  EXPECT_EQ(budget->used_bytes(), 0);
}

TEST(SpillContext, TakesWhatMayBeOverdrawnAndGivesItBack) {
  const auto budget = std::make_shared<MemoryBudget>(32 * kMiB);
  const auto context = TestContext(budget, SystemFileCalls(), {.overdraft_bytes = 3 * kMiB});
  ASSERT_TRUE(context->SetMemoryAside().ok());
  ASSERT_TRUE(budget->Reserve(28 * kMiB).ok());
  OutputBuffer buffer, more;
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(buffer.Allocate(context->io_budget(), 6 * kMiB).ok());
    EXPECT_GT(budget->used_bytes(), 34 * kMiB);
    EXPECT_TRUE(absl::IsResourceExhausted(more.Allocate(context->io_budget(), kMiB)));
    buffer.Free();
    EXPECT_EQ(budget->used_bytes(), 32 * kMiB);
  }
  // Not where another budget counts, too.
  const auto within = TestContext(BudgetWithin(budget, 0), SystemFileCalls(), {.overdraft_bytes = 3 * kMiB});
  EXPECT_TRUE(absl::IsResourceExhausted(more.Allocate(within->io_budget(), kMiB)));
}

TEST(SpillContext, BlocksMayOutliveIt) {
  const auto budget = std::make_shared<MemoryBudget>(32 * kMiB);
  BatchView batch;
  {
    const auto context = TestContext(budget);
    ASSERT_TRUE(context->SetMemoryAside().ok());
    RowWriter writer(context, TestRows::Types());
    ASSERT_TRUE(writer.Append(TestRows(10).batch()).ok());
    RowReader reader(context, TestRows::Types(), *writer.Finish());
    ASSERT_TRUE(*reader.Next(&batch));
  }
  EXPECT_NE(budget->used_bytes(), 0);
  EXPECT_EQ(TestRows::RowText(batch, 7), TestRows::ExpectedText(7));
  batch = {};
  EXPECT_EQ(budget->used_bytes(), 0);
}

TEST(SpillContext, ALimitOnFilesIsAnError) {
  const auto budget = std::make_shared<MemoryBudget>(0);
  const auto context = TestContext(budget, SystemFileCalls(), {4, 4096, 2, 0}, 64 << 10);
  RowWriter writer(context, TestRows::Types());
  const absl::Status status = writer.Append(TestRows(20000).batch());
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_NE(status.message().find("accepted: up to 65536"), std::string::npos) << status;
}

TEST(SpillContext, AFolderThatIsNotThereIsAnError) {
  const auto budget = std::make_shared<MemoryBudget>(0);
  const auto context =
      std::make_shared<SpillContext>(std::make_unique<TemporaryFiles>("/tmp/not-there/at-all", 0), budget);
  RowWriter writer(context, TestRows::Types());
  ASSERT_TRUE(writer.Append(TestRows(10).batch()).ok());
  const absl::Status status = writer.Finish().status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_NE(status.message().find("/tmp/not-there/at-all"), std::string::npos) << status;
}

// A host's store in memory.
struct Kept {
  std::mutex mutex;  // blocks are written by several threads at once
  std::map<uint64_t, std::vector<uint8_t>> blocks;
  uint64_t next = 0;
  bool fails = false;
};

TEST(SpillContext, AHostKeepsBlocksItself) {
  Kept kept;
  SpillHost host;
  host.host = &kept;
  host.write = [](void* to, const void* bytes, uint64_t num_bytes, uint64_t* block) {
    auto* const store = static_cast<Kept*>(to);
    const std::lock_guard<std::mutex> lock(store->mutex);
    if (store->fails) return 1;
    const auto* const begin = static_cast<const uint8_t*>(bytes);
    *block = store->next++;
    store->blocks[*block] = {begin, begin + num_bytes};
    return 0;
  };
  host.read = [](void* from, uint64_t block, void* bytes, uint64_t num_bytes) {
    auto* const store = static_cast<Kept*>(from);
    const std::lock_guard<std::mutex> lock(store->mutex);
    const std::vector<uint8_t>& found = store->blocks.at(block);
    if (found.size() != num_bytes) return 1;
    std::memcpy(bytes, found.data(), num_bytes);
    return 0;
  };
  host.free = [](void* of, uint64_t block, uint64_t /*num_bytes*/) {
    auto* const store = static_cast<Kept*>(of);
    const std::lock_guard<std::mutex> lock(store->mutex);
    store->blocks.erase(block);
  };
  const auto budget = std::make_shared<MemoryBudget>(0);
  const auto context = std::make_shared<SpillContext>(MakeHostStore(host), budget, SpillSettings{4, 4096, 1, 0});
  RowWriter writer(context, TestRows::Types());
  ASSERT_TRUE(writer.Append(TestRows(1000).batch()).ok());
  absl::StatusOr<SpilledRows> written = writer.Finish();
  ASSERT_TRUE(written.ok());
  EXPECT_EQ(kept.blocks.size(), written->blocks().size());
  {
    RowReader reader(context, TestRows::Types(), *std::move(written));
    BatchView batch;
    ASSERT_TRUE(*reader.Next(&batch));
    EXPECT_EQ(TestRows::RowText(batch, 3), TestRows::ExpectedText(3));
  }
  EXPECT_TRUE(kept.blocks.empty());
  kept.fails = true;
  RowWriter failing(context, TestRows::Types());
  EXPECT_TRUE(absl::IsUnavailable(failing.Append(TestRows(1000).batch())));
}

}  // namespace
}  // namespace quern
