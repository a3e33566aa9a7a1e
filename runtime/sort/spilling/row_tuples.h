// SPDX-License-Identifier: Apache-2.0
// A row of a sort as one tuple of a fixed size, which can be copied, written and read back.
#ifndef QUERN_RUNTIME_SORT_SPILLING_ROW_TUPLES_H_
#define QUERN_RUNTIME_SORT_SPILLING_ROW_TUPLES_H_

#include <cstdint>

#include "runtime/sort/sort_chunk.h"
#include "runtime/sort/sort_descriptor.h"
#include "runtime/sort/sort_prefixes.h"

namespace quern {

// The layout of such a tuple: the words of the keys, the row id where the sort has ids, the fields. *Threads*: any.
class RowTuples {
 public:
  // Whether rows are of a fixed size: no field is a string.
  static bool AreFixed(const SortDescriptor& descriptor);

  RowTuples(const SortDescriptor& descriptor, bool has_row_ids);

  uint32_t bytes() const { return bytes_; }
  // Of a row in a chunk.
  uint64_t chunk_bytes() const { return uint64_t{num_words_} * 8 + (has_row_ids_ ? 8 : 0) + field_bytes_; }

  // Makes tuples of the rows begin .. begin+n-1 of a chunk, which has fields where the descriptor has any.
  void Pack(const SortChunk& chunk, uint32_t begin, uint32_t n, uint8_t* tuples) const;
  // Lays a chunk out in memory of capacity * chunk_bytes().
  SortChunk ChunkIn(uint8_t* memory, uint32_t capacity) const;
  // Appends n tuples to a chunk of ChunkIn that has room for them; adds what their words have in common to `bits`.
  void Unpack(const uint8_t* tuples, uint32_t n, SortChunk* chunk, WordBits64* bits) const;
  // Word w of a tuple.
  static uint64_t WordOf(const uint8_t* tuple, uint32_t w);

 private:
  uint32_t num_words_;
  bool has_row_ids_;
  uint32_t field_bytes_;
  uint32_t bytes_;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_SORT_SPILLING_ROW_TUPLES_H_
