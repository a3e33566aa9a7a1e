// SPDX-License-Identifier: Apache-2.0
// The chunks in which a sort keeps its rows, before and after sorting.
#ifndef QUERN_RUNTIME_SORT_SORT_CHUNK_H_
#define QUERN_RUNTIME_SORT_SORT_CHUNK_H_

#include <cstdint>
#include <vector>

namespace quern {

// A chunk has 2^kChunkShift rows; only the last chunk of a thread may be shorter. A row's number therefore locates it:
// chunk number << kChunkShift | position in the chunk.
constexpr uint32_t kChunkShift = 17;
constexpr uint32_t kChunkRows = 1u << kChunkShift;

struct SortChunk {
  static constexpr uint32_t kIdShift = 10;

  uint32_t num_rows = 0;
  uint32_t capacity = 0;
  uint64_t* words = nullptr;        // word w of row i: words[w * capacity + i]
  uint8_t* tuples = nullptr;        // of tuple_bytes each; null if the descriptor has none, or words hold all fields
  uint64_t* row_ids = nullptr;      // of each row; null where ids are consecutive within each 1024 rows
  std::vector<uint64_t> block_ids;  // of the first of each 1024 rows, where row_ids is null

  uint64_t RowId(uint64_t i) const {
    return row_ids != nullptr ? row_ids[i] : block_ids[i >> kIdShift] + (i & ((uint64_t{1} << kIdShift) - 1));
  }
};

// The chunks of all threads, numbered.
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
  // The address to prefetch before RowId; null where the id is nearby anyway.
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
