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

void RowTuples::Pack(const SortChunk& chunk, uint32_t begin, uint32_t n, uint8_t* tuples) const {
  uint8_t* to = tuples;
  for (uint32_t w = 0; w < num_words_; ++w, to += 8) {
    const uint64_t* const words = chunk.words + uint64_t{w} * chunk.capacity + begin;
    for (uint32_t i = 0; i < n; ++i) std::memcpy(to + uint64_t{i} * bytes_, words + i, 8);
  }
  if (has_row_ids_) {
    for (uint32_t i = 0; i < n; ++i) {
      const uint64_t id = chunk.RowId(begin + i);
      std::memcpy(to + uint64_t{i} * bytes_, &id, 8);
    }
    to += 8;
  }
  const uint8_t* const fields = chunk.tuples + uint64_t{begin} * field_bytes_;
  const auto copy = [&]<uint32_t kBytes>() {
    const uint64_t field_bytes = kBytes != 0 ? kBytes : field_bytes_;
    for (uint32_t i = 0; i < n; ++i) std::memcpy(to + uint64_t{i} * bytes_, fields + i * field_bytes, field_bytes);
  };
  if (field_bytes_ == 8) copy.operator()<8>();
  else if (field_bytes_ == 16) copy.operator()<16>();
  else if (field_bytes_ != 0) copy.operator()<0>();
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
  const uint8_t* from = tuples;
  for (uint32_t w = 0; w < num_words_; ++w, from += 8) {
    uint64_t* const words = chunk->words + uint64_t{w} * chunk->capacity + chunk->num_rows;
    WordBits64 of_word = bits[w];
    for (uint32_t i = 0; i < n; ++i) {
      uint64_t word;
      std::memcpy(&word, from + uint64_t{i} * bytes_, 8);
      words[i] = word;
      of_word.any |= word;
      of_word.all &= word;
    }
    bits[w] = of_word;
  }
  if (has_row_ids_) {
    for (uint32_t i = 0; i < n; ++i) std::memcpy(chunk->row_ids + chunk->num_rows + i, from + uint64_t{i} * bytes_, 8);
    from += 8;
  }
  uint8_t* const fields = chunk->tuples + uint64_t{chunk->num_rows} * field_bytes_;
  const auto copy = [&]<uint32_t kBytes>() {
    const uint64_t field_bytes = kBytes != 0 ? kBytes : field_bytes_;
    for (uint32_t i = 0; i < n; ++i) std::memcpy(fields + i * field_bytes, from + uint64_t{i} * bytes_, field_bytes);
  };
  if (field_bytes_ == 8) copy.operator()<8>();
  else if (field_bytes_ == 16) copy.operator()<16>();
  else if (field_bytes_ != 0) copy.operator()<0>();
  chunk->num_rows += n;
}

uint64_t RowTuples::WordOf(const uint8_t* tuple, uint32_t w) {
  uint64_t word;
  std::memcpy(&word, tuple + uint64_t{w} * 8, 8);
  return word;
}

}  // namespace quern
