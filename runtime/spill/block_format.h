// SPDX-License-Identifier: Apache-2.0
// The bytes of one block of rows. For this process alone: the format may change with any version.
#ifndef QUERN_RUNTIME_SPILL_BLOCK_FORMAT_H_
#define QUERN_RUNTIME_SPILL_BLOCK_FORMAT_H_

#include <sys/uio.h>

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "runtime/abi/kernel_abi.h"
#include "runtime/rows/output_batch.h"
#include "runtime/spec/column_type.h"

namespace quern {

// The pieces of a block, as they follow one another. They point into the rows and into this object.
class BlockPieces {
 public:
  explicit BlockPieces(const OutputBatch& rows);
  // A block of one column of `fixed_binary`, without nulls, whose values lie in pieces: num_rows of value_bytes each.
  BlockPieces(std::span<const iovec> values, uint32_t value_bytes, uint64_t num_rows);
  BlockPieces(const BlockPieces&) = delete;
  BlockPieces& operator=(const BlockPieces&) = delete;

  const std::vector<iovec>& pieces() const { return pieces_; }
  // Of each piece: the width of its values; 1 where it has none of a fixed width.
  const std::vector<uint32_t>& value_bytes() const { return value_bytes_; }
  uint64_t num_bytes() const { return num_bytes_; }
  // Of all bytes. *Cost*: a pass over them, of about 20 GB a second.
  uint64_t Checksum() const;

 private:
  void Add(const void* bytes, uint64_t num_bytes, uint32_t value_bytes);
  void Pad(uint64_t num_bytes);
  std::vector<uint64_t> header_;
  std::vector<iovec> pieces_;
  std::vector<uint32_t> value_bytes_;
  uint64_t num_bytes_ = 0;
};

uint64_t ChecksumOf(const uint8_t* bytes, uint64_t num_bytes);

// The columns of a block, which point into it. string_bytes: receives, by column, where its bytes begin, to which views
// point; must live as long as the columns, and not be moved. *Errors*: DataLoss for a block of other columns.
absl::Status ReadBlock(const uint8_t* bytes, uint64_t num_bytes, const std::vector<ColumnType>& types,
                       std::vector<QuernColumn>* columns, std::vector<const uint8_t*>* string_bytes,
                       uint64_t* num_rows);

}  // namespace quern

#endif  // QUERN_RUNTIME_SPILL_BLOCK_FORMAT_H_
