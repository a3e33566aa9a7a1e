// SPDX-License-Identifier: Apache-2.0
// Blocks at multiples of 64 bytes.
#include "runtime/base/aligned_block.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

namespace quern {
namespace {

bool IsAligned(const void* block) { return reinterpret_cast<uintptr_t>(block) % kBlockAlignment == 0; }

TEST(AlignedBlock, IsAlignedAndApartFromOthers) {
  std::vector<uint8_t*> blocks;
  for (uint64_t bytes = 1; bytes < 3000; bytes += 37) {
    uint8_t* const block = AllocateAligned(bytes);
    ASSERT_NE(block, nullptr);
    EXPECT_TRUE(IsAligned(block)) << bytes;
    std::memset(block, static_cast<int>(blocks.size()), bytes);
    blocks.push_back(block);
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    const uint64_t bytes = 1 + 37 * i;
    for (uint64_t at = 0; at < bytes; ++at) ASSERT_EQ(blocks[i][at], static_cast<uint8_t>(i)) << bytes;
    FreeAligned(blocks[i]);
  }
  FreeAligned(nullptr);
}

TEST(AlignedBlock, IsNullWhereTheSizeHasNoBytes) { EXPECT_EQ(AllocateAligned(UINT64_MAX), nullptr); }

struct Base : OnOwnLines {
  virtual ~Base() = default;
};
struct Lines final : Base {
  alignas(64) uint8_t line[64] = {};
};

TEST(AlignedBlock, ObjectsAreAlignedAlsoBehindABase) {
  std::vector<std::unique_ptr<Base>> objects;
  for (int i = 0; i < 20; ++i) {
    objects.push_back(std::make_unique<Lines>());
    EXPECT_TRUE(IsAligned(objects.back().get()));
  }
}

}  // namespace
}  // namespace quern
