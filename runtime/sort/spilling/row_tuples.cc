// SPDX-License-Identifier: Apache-2.0
// A row of keys=i64,f64:out payload=u32 stable, of which f64 and u32 are fields:
//
//     chunk   words[0][i], words[1][i] | row_ids[i] | fields of row i      columns of words, as sorting reads them
//     tuple   word 0, word 1, row id, f64, u32, padding                    40 bytes, as one copy moves them
#include "runtime/sort/spilling/row_tuples.h"

#include <algorithm>
#include <cstring>

#include "runtime/abi/kernel_abi.h"

namespace quern {

bool RowTuples::AreFixed(const SortDescriptor& descriptor) {
  const QuernRowLayout& rows = descriptor.get()->rows;
  return std::none_of(rows.fields, rows.fields + rows.num_fields,
                      [](const QuernField& field) { return IsVariable(field.storage); });
}

RowTuples::RowTuples(const SortDescriptor& descriptor, bool has_row_ids)
    : num_words_(descriptor.get()->num_words),
      has_row_ids_(has_row_ids),
      field_bytes_(descriptor.has_tuples() ? descriptor.get()->rows.tuple_bytes : 0),
      bytes_(static_cast<uint32_t>((chunk_bytes() + 7) / 8 * 8)) {}

namespace {

// Copies n values of so many bytes, which lie so far apart.
template <uint32_t kBytes>
void CopyValues(const uint8_t* from, uint64_t from_step, uint8_t* to, uint64_t to_step, uint32_t n, uint64_t bytes) {
  for (uint32_t i = 0; i < n; ++i)
    std::memcpy(to + i * to_step, from + i * from_step, kBytes != 0 ? uint64_t{kBytes} : bytes);
}

void CopyFields(const uint8_t* from, uint64_t from_step, uint8_t* to, uint64_t to_step, uint32_t n, uint64_t bytes) {
  switch (bytes) {
    case 0: return;
    case 8: return CopyValues<8>(from, from_step, to, to_step, n, bytes);
    case 16: return CopyValues<16>(from, from_step, to, to_step, n, bytes);
    default: return CopyValues<0>(from, from_step, to, to_step, n, bytes);
  }
}

}  // namespace

void RowTuples::Pack(const SortChunk& chunk, uint32_t begin, uint32_t n, uint8_t* tuples) const {
  const uint64_t step = bytes_;  // a copy, so that the compiler need not assume that stores change it
  uint8_t* to = tuples;
  for (uint32_t w = 0; w < num_words_; ++w, to += 8) {
    const uint64_t* const words = chunk.words + uint64_t{w} * chunk.capacity + begin;
    CopyValues<8>(reinterpret_cast<const uint8_t*>(words), 8, to, step, n, 8);
  }
  if (has_row_ids_) {
    for (uint32_t i = 0; i < n; ++i) {
      const uint64_t id = chunk.RowId(begin + i);
      std::memcpy(to + i * step, &id, 8);
    }
    to += 8;
  }
  CopyFields(chunk.tuples + uint64_t{begin} * field_bytes_, field_bytes_, to, step, n, field_bytes_);
}

SortChunk RowTuples::ChunkIn(uint8_t* memory, uint32_t capacity) const {
  SortChunk chunk;
  chunk.capacity = capacity;
  chunk.words = reinterpret_cast<uint64_t*>(memory);
  memory += uint64_t{capacity} * num_words_ * 8;
  if (has_row_ids_) {
    chunk.row_ids = reinterpret_cast<uint64_t*>(memory);
    memory += uint64_t{capacity} * 8;
  }
  if (field_bytes_ != 0) chunk.tuples = memory;
  return chunk;
}

void RowTuples::Unpack(const uint8_t* tuples, uint32_t n, SortChunk* chunk, WordBits64* bits) const {
  const uint64_t step = bytes_;  // as in Pack
  const uint8_t* from = tuples;
  for (uint32_t w = 0; w < num_words_; ++w, from += 8) {
    uint64_t* const words = chunk->words + uint64_t{w} * chunk->capacity + chunk->num_rows;
    WordBits64 of_word = bits[w];
    for (uint32_t i = 0; i < n; ++i) {
      uint64_t word;
      std::memcpy(&word, from + i * step, 8);
      words[i] = word;
      of_word.any |= word;
      of_word.all &= word;
    }
    bits[w] = of_word;
  }
  if (has_row_ids_) {
    CopyValues<8>(from, step, reinterpret_cast<uint8_t*>(chunk->row_ids + chunk->num_rows), 8, n, 8);
    from += 8;
  }
  CopyFields(from, step, chunk->tuples + uint64_t{chunk->num_rows} * field_bytes_, field_bytes_, n, field_bytes_);
  chunk->num_rows += n;
}

uint64_t RowTuples::WordOf(const uint8_t* tuple, uint32_t w) {
  uint64_t word;
  std::memcpy(&word, tuple + uint64_t{w} * 8, 8);
  return word;
}

}  // namespace quern
