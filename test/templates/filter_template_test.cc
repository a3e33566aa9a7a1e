// SPDX-License-Identifier: Apache-2.0
// The filter template, compiled natively, with a hole written by hand: pieces, their masks and the count; and blocks at
// the ends of buffers.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ir-templates/holes.h"
#include "runtime/blocks/filter_strings.h"
#include "test/templates/guarded_buffer.h"

extern "C" void quern_filter_mask(QuernFilterArgs* args);

namespace quern::test {
namespace {

struct Piece {
  uint64_t first;
  uint32_t n;
};
std::vector<Piece>* pieces = nullptr;

TEST(FilterTemplate, PiecesOfBatch) {
  std::vector<Piece> seen;
  pieces = &seen;
  QuernFilterDescriptor descriptor = {};
  descriptor.batch_rows = 128;
  std::vector<uint64_t> mask(6, 0x5555);
  QuernFilterArgs args = {};
  args.descriptor = &descriptor;
  args.num_rows = 300;
  args.mask = mask.data();
  quern_filter_mask(&args);
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[1].first, 128u);
  EXPECT_EQ(seen[2].n, 44u);
  // The hole rejects the first row of each piece.
  EXPECT_EQ(args.num_true, 297u);
  EXPECT_EQ(mask, (std::vector<uint64_t>{~uint64_t{1}, ~uint64_t{0}, ~uint64_t{1}, ~uint64_t{0},
                                         (uint64_t{1} << 44) - 2, 0x5555}));
}

TEST(FilterTemplate, NoRows) {
  QuernFilterDescriptor descriptor = {};
  descriptor.batch_rows = 64;
  QuernFilterArgs args = {};
  args.descriptor = &descriptor;
  args.num_true = 7;
  quern_filter_mask(&args);
  EXPECT_EQ(args.num_true, 0u);
}

// Constants of every length are found at every position of a text that ends, or begins, at an inaccessible page.
TEST(FilterBlocks, PartsAtTheEndsOfBuffers) {
  for (const Guard guard : {Guard::kBehind, Guard::kInFront}) {
    for (uint32_t length = 1; length <= 40; ++length) {
      const std::string needle = std::string(length - 1, 'n') + "x";
      std::vector<uint8_t> constants(length * 2);
      std::copy(needle.begin(), needle.end(), constants.begin());
      for (uint32_t before = 0; before < 140; before += 3) {
        const std::string text = std::string(before, 'n') + needle + std::string(before % 5, 'n');
        const auto buffer = GuardedBuffer::Of(std::vector<char>(text.begin(), text.end()), guard);
        const blocks::Part part = {{constants.data(), length}, 0, length - 1};
        const uint8_t *begin = buffer.data(), *end = begin + text.size();
        EXPECT_EQ(blocks::FindPart(begin, end, part), begin + before) << length;
        EXPECT_TRUE(blocks::MayContain(begin, end, part.constant));
        EXPECT_EQ(blocks::FindPart(begin + before + 1, end, part), nullptr) << length;
        EXPECT_TRUE(blocks::IsPrintable(begin, end));
      }
    }
  }
}

}  // namespace
}  // namespace quern::test

extern "C" void quern_hole_filter_batch(const QuernFilterArgs*, uint64_t first, uint32_t n, uint64_t* mask) {
  quern::test::pieces->push_back({first, n});
  mask[0] &= ~uint64_t{1};
}
