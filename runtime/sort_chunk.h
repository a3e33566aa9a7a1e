// SPDX-License-Identifier: Apache-2.0
// Where a sort keeps rows until they are sorted, and after.
#ifndef QUERN_RUNTIME_SORT_CHUNK_H_
#define QUERN_RUNTIME_SORT_CHUNK_H_

#include <cstdint>
#include <vector>

namespace quern {

// Rows are kept in chunks of 2^kChunkShift of them, only the last one of a side being shorter, so that a row's number says where it lies:
// chunk number << kChunkShift | place in the chunk.
constexpr uint32_t kChunkShift = 17;
constexpr uint32_t kChunkRows = 1u << kChunkShift;

struct SortChunk {
  uint32_t num_rows = 0;
  uint32_t capacity = 0;
  uint64_t* words = nullptr;    // word w of row i: words[w * capacity + i]
  uint8_t* tuples = nullptr;    // of tuple_bytes each; null where the shape has none
  uint64_t first_row_id = 0;    // of row 0, where the others follow it
  uint64_t* row_ids = nullptr;  // where they do not: of each row
};

// The chunks of all sides, numbered.
class SortChunks {
 public:
  SortChunks() = default;
  SortChunks(std::vector<const SortChunk*> chunks, uint32_t tuple_bytes) : chunks_(std::move(chunks)), tuple_bytes_(tuple_bytes) {}

  uint64_t size() const { return chunks_.size(); }
  const SortChunk& operator[](uint64_t i) const { return *chunks_[i]; }

  uint64_t Word(uint32_t w, uint64_t row) const { return *WordAt(w, row); }
  const uint64_t* WordAt(uint32_t w, uint64_t row) const {
    const SortChunk& chunk = *chunks_[row >> kChunkShift];
    return chunk.words + uint64_t{w} * chunk.capacity + (row & (kChunkRows - 1));
  }
  const uint8_t* Tuple(uint64_t row) const { return chunks_[row >> kChunkShift]->tuples + (row & (kChunkRows - 1)) * tuple_bytes_; }
  uint64_t RowId(uint64_t row) const {
    const SortChunk& chunk = *chunks_[row >> kChunkShift];
    const uint64_t i = row & (kChunkRows - 1);
    return chunk.row_ids != nullptr ? chunk.row_ids[i] : chunk.first_row_id + i;
  }

 private:
  std::vector<const SortChunk*> chunks_;
  uint32_t tuple_bytes_ = 0;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_SORT_CHUNK_H_
