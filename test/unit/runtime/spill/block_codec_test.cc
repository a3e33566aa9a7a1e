// SPDX-License-Identifier: Apache-2.0
// Compressed blocks are the rows that were written, are smaller where there is something to gain, and damaged ones are
// refused.
#include "runtime/spill/block_codec.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "runtime/spill/spilled_rows.h"
#include "test/unit/runtime/spill/spill_test_rows.h"

namespace quern {
namespace {

std::vector<uint8_t> BytesOf(const BlockPieces& block) {
  std::vector<uint8_t> bytes;
  for (const iovec& piece : block.pieces()) {
    const auto* const begin = static_cast<const uint8_t*>(piece.iov_base);
    bytes.insert(bytes.end(), begin, begin + piece.iov_len);
  }
  return bytes;
}

// Numbers of `width_bytes` whose low three bytes vary and whose others are zero; all bytes, where is_random.
std::unique_ptr<OutputBatch> Numbers(uint32_t width_bytes, uint64_t num_rows, bool is_random) {
  const ColumnType type = TypeOf(TypeId::kFixedBinary, false, width_bytes);
  auto rows = std::make_unique<OutputBatch>(std::vector<ColumnType>{type}, num_rows, nullptr);
  EXPECT_TRUE(rows->Reset().ok());
  std::mt19937_64 random(width_bytes);
  auto* const bytes = static_cast<uint8_t*>(rows->columns()[0].values);
  for (uint64_t row = 0; row < num_rows; ++row)
    for (uint32_t b = 0; b < width_bytes; ++b)
      bytes[row * width_bytes + b] = is_random || b < 3 ? static_cast<uint8_t>(random()) : 0;
  rows->set_num_rows(num_rows);
  return rows;
}

TEST(BlockCodec, ValuesOfAnyWidthComeBack) {
  for (const uint32_t width : {1, 2, 3, 4, 7, 8, 12, 16, 24, 32, 40, 256, 264, 1000}) {
    for (const uint64_t num_rows : {1, 7, 64, 1000, 5001}) {
      const std::unique_ptr<OutputBatch> rows = Numbers(width, num_rows, false);
      const BlockPieces block(*rows);
      const std::vector<uint8_t> bytes = BytesOf(block);
      OutputBuffer compressed;
      const absl::StatusOr<uint64_t> compressed_bytes = CompressBlock(block, nullptr, &compressed);
      ASSERT_TRUE(compressed_bytes.ok());
      EXPECT_TRUE(width < 4 || num_rows < 1000 || *compressed_bytes != 0) << width;
      if (*compressed_bytes == 0) continue;
      EXPECT_LE(*compressed_bytes, bytes.size() / 8 * 7);
      std::vector<uint8_t> decompressed(bytes.size());
      ASSERT_TRUE(DecompressBlock(compressed.data(), *compressed_bytes, decompressed.data(), decompressed.size()).ok());
      EXPECT_EQ(decompressed, bytes) << width << " " << num_rows;
    }
  }
}

TEST(BlockCodec, KeysBecomeSmallerByTheBytesThatDoNotVary) {
  const std::unique_ptr<OutputBatch> rows = Numbers(8, 20'000, false);
  OutputBuffer compressed;
  const absl::StatusOr<uint64_t> compressed_bytes = CompressBlock(BlockPieces(*rows), nullptr, &compressed);
  ASSERT_TRUE(compressed_bytes.ok());
  EXPECT_GT(*compressed_bytes, 60'000u);
  EXPECT_LT(*compressed_bytes, 62'000u);
}

TEST(BlockCodec, RandomBytesAreStoredAsTheyAre) {
  OutputBuffer compressed;
  const absl::StatusOr<uint64_t> compressed_bytes =
      CompressBlock(BlockPieces(*Numbers(8, 20'000, true)), nullptr, &compressed);
  ASSERT_TRUE(compressed_bytes.ok());
  EXPECT_EQ(*compressed_bytes, 0u);
}

TEST(BlockCodec, DamagedBytesAreRefusedAndNothingIsWrittenBehind) {
  const std::unique_ptr<OutputBatch> rows = Numbers(16, 3000, false);
  const BlockPieces block(*rows);
  OutputBuffer compressed;
  const absl::StatusOr<uint64_t> compressed_bytes = CompressBlock(block, nullptr, &compressed);
  ASSERT_TRUE(compressed_bytes.ok() && *compressed_bytes != 0);
  const std::vector<uint8_t> whole(compressed.data(), compressed.data() + *compressed_bytes);
  std::mt19937_64 random(1);
  uint32_t num_refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::vector<uint8_t> damaged = whole;
    if (i % 4 == 0) damaged.resize(random() % damaged.size());
    else damaged[i < 1000 ? random() % 200 : random() % damaged.size()] ^= static_cast<uint8_t>(1 + random() % 255);
    std::vector<uint8_t> decompressed(block.num_bytes() + 64, 0xab);
    const absl::Status status = DecompressBlock(damaged.data(), damaged.size(), decompressed.data(), block.num_bytes());
    EXPECT_TRUE(status.ok() || absl::IsDataLoss(status)) << status;
    num_refused += status.ok() ? 0 : 1;
    for (size_t b = block.num_bytes(); b < decompressed.size(); ++b) ASSERT_EQ(decompressed[b], 0xab);
  }
  EXPECT_GT(num_refused, 500u);
  const std::vector<uint8_t> none;
  std::vector<uint8_t> one(1);
  EXPECT_TRUE(absl::IsDataLoss(DecompressBlock(none.data(), 0, one.data(), 1)));
}

TEST(BlockCodec, RowsOfAllTypesComeBack) {
  constexpr uint32_t kNumRows = 20'000;
  const TestRows rows(kNumRows);
  for (const bool uses_ring : {true, false}) {
    SpillSettings settings;
    settings.block_bytes = 32 << 10;
    settings.codec = BlockCodec::kLz4;
    settings.uses_ring = uses_ring;
    const auto budget = std::make_shared<MemoryBudget>(0);
    const auto context = TestContext(budget, SystemFileCalls(), settings);
    RowWriter writer(context, TestRows::Types());
    ASSERT_TRUE(writer.Append(rows.batch()).ok());
    absl::StatusOr<SpilledRows> written = writer.Finish();
    ASSERT_TRUE(written.ok());
    EXPECT_EQ(written->num_bytes(), context->stats().row_bytes);
    EXPECT_LT(2 * context->stats().written_bytes, context->stats().row_bytes);
    RowReader reader(context, TestRows::Types(), *std::move(written));
    uint32_t row = 0;
    for (BatchView batch;;) {
      const absl::StatusOr<bool> more = reader.Next(&batch);
      ASSERT_TRUE(more.ok()) << more.status();
      if (!*more) break;
      for (uint32_t r = 0; r < batch.num_rows; ++r, ++row)
        ASSERT_EQ(TestRows::RowText(batch, r), TestRows::ExpectedText(row));
    }
    EXPECT_EQ(row, kNumRows);
    EXPECT_EQ(context->stats().read_bytes, context->stats().written_bytes);
  }
}

TEST(BlockCodec, RowsThatDoNotBecomeSmallerAreTriedSeldom) {
  const auto budget = std::make_shared<MemoryBudget>(0);
  BlockBuffers buffers({TypeOf(TypeId::kI64)}, 8, budget);
  ASSERT_TRUE(buffers.TriesCompression());
  buffers.CountCompression(false);
  int skipped = 0;
  while (!buffers.TriesCompression()) ++skipped;
  EXPECT_EQ(skipped, 15);
  buffers.CountCompression(true);
  EXPECT_TRUE(buffers.TriesCompression());
}

}  // namespace
}  // namespace quern
