// SPDX-License-Identifier: Apache-2.0
// Where a sort keeps rows until they are sorted, and after.
#ifndef QUERN_RUNTIME_SORT_SORT_CHUNK_H_
#define QUERN_RUNTIME_SORT_SORT_CHUNK_H_

#include <cstdint>
#include <vector>

namespace quern {

// Rows are kept in chunks of 2^kChunkShift of them, only the last one of a side being shorter, so that a row's number
// says where it lies: chunk number << kChunkShift | place in the chunk.
constexpr uint32_t kChunkShift = 17;
constexpr uint32_t kChunkRows = 1u << kChunkShift;

struct SortChunk {
  static constexpr uint32_t kIdShift = 10;

  uint32_t num_rows = 0;
  uint32_t capacity = 0;
  uint64_t* words = nullptr;    // word w of row i: words[w * capacity + i]
  uint8_t* tuples = nullptr;    // of tuple_bytes each; null where the descriptor has none, or words say all fields
  uint64_t* row_ids = nullptr;  // of each row; null where ids follow each other within each 1024 rows
  uint64_t block_ids[kChunkRows >> kIdShift];  // of the first of each 1024 rows, where row_ids is null

  uint64_t RowId(uint64_t i) const {
    return row_ids != nullptr ? row_ids[i] : block_ids[i >> kIdShift] + (i & ((uint64_t{1} << kIdShift) - 1));
  }
};

// The chunks of all sides, numbered.
class SortChunks {
 public:
  SortChunks() = default;
  SortChunks(std::vector<const SortChunk*> chunks, uint32_t tuple_bytes)
      : chunks_(std::move(chunks)), tuple_bytes_(tuple_bytes) {}

  uint64_t size() const { return chunks_.size(); }
  const SortChunk& operator[](uint64_t i) const { return *chunks_[i]; }

  uint64_t Word(uint32_t w, uint64_t row) const { return *WordAt(w, row); }
  const uint64_t* WordAt(uint32_t w, uint64_t row) const {
    const SortChunk& chunk = *chunks_[row >> kChunkShift];
    return chunk.words + uint64_t{w} * chunk.capacity + (row & (kChunkRows - 1));
  }
  const uint8_t* Tuple(uint64_t row) const {
    return chunks_[row >> kChunkShift]->tuples + (row & (kChunkRows - 1)) * tuple_bytes_;
  }
  uint64_t RowId(uint64_t row) const { return chunks_[row >> kChunkShift]->RowId(row & (kChunkRows - 1)); }
  // What is to be asked for before RowId; null where it is near by anyway.
  const uint64_t* RowIdAt(uint64_t row) const {
    const SortChunk& chunk = *chunks_[row >> kChunkShift];
    return chunk.row_ids == nullptr ? nullptr : chunk.row_ids + (row & (kChunkRows - 1));
  }

 private:
  std::vector<const SortChunk*> chunks_;
  uint32_t tuple_bytes_ = 0;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_SORT_SORT_CHUNK_H_
