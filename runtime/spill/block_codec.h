// SPDX-License-Identifier: Apache-2.0
// Compresses the bytes of blocks, so that a device has fewer of them to write and to read.
#ifndef QUERN_RUNTIME_SPILL_BLOCK_CODEC_H_
#define QUERN_RUNTIME_SPILL_BLOCK_CODEC_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/output_buffer.h"
#include "runtime/spill/block_format.h"

namespace quern {

// How the bytes of a block are stored: as they are, or compressed by LZ4.
enum class BlockCodec : uint8_t { kNone, kLz4 };

// Compresses a block. compressed: receives the bytes; allocated where it has no room. Returns how many there are; 0
// where they would be hardly fewer (kCompressionShare), and the block is to be stored as it is. *Cost*: 2 to 4 GB of
// numbers a second, 0.5 to 1 of texts. *Errors*: ResourceExhausted.
absl::StatusOr<uint64_t> CompressBlock(const BlockPieces& block, const std::shared_ptr<MemoryBudget>& budget,
                                       OutputBuffer* compressed);

// Restores the num_bytes bytes of a block. *Errors*: DataLoss where `compressed` is not what CompressBlock has written;
// nothing is written beyond num_bytes. *Cost*: 5 GB of numbers a second, 2 of texts.
absl::Status DecompressBlock(const uint8_t* compressed, uint64_t compressed_bytes, uint8_t* bytes, uint64_t num_bytes);

}  // namespace quern

#endif  // QUERN_RUNTIME_SPILL_BLOCK_CODEC_H_
