// SPDX-License-Identifier: Apache-2.0
// The blocks as bitcode: each inline function of runtime/blocks.h under a name that emitters call. They are linked into a kernel only where
// called, always inlined, and none is left after the first pass. Arguments that are constants in a kernel (trims_spaces, width, offsets)
// come last.
#include "runtime/blocks.h"

namespace b = quern::blocks;

#define QUERN_BLOCK extern "C"

QUERN_BLOCK bool quern_block_valid(const QuernColumn* column, uint32_t row) { return b::IsValid(column, row); }

QUERN_BLOCK uint32_t quern_block_filter_valid(const QuernColumn* column, uint64_t first, const uint32_t* rows, uint32_t n, uint32_t* out) {
  return b::FilterValid(column, first, rows, n, out);
}

QUERN_BLOCK void quern_block_zero_null_bits(uint8_t* tuples, uint32_t n, uint32_t tuple_bytes, uint32_t offset, uint32_t bytes) {
  b::ZeroNullBits(tuples, n, tuple_bytes, offset, bytes);
}

QUERN_BLOCK void quern_block_store_rowid(uint64_t first, const uint32_t* rows, uint32_t n, uint8_t* tuples, uint64_t first_row_id,
                                         uint32_t tuple_bytes, uint32_t field_offset) {
  b::StoreRowIds(first, rows, n, tuples, first_row_id, tuple_bytes, field_offset);
}

QUERN_BLOCK void quern_block_emit_rowid(const uint32_t* rows, uint32_t n, QuernOutColumn* out, uint64_t out_row, uint64_t first_row_id) {
  b::EmitRowIds(rows, n, first_row_id, out, out_row);
}

#define QUERN_INDEX_BLOCKS(text, Index)                                                                                          \
  QUERN_BLOCK uint32_t quern_block_dictionary_row_##text(const QuernColumn* column, uint32_t row) {                              \
    return b::DictionaryRow<Index>(column, row);                                                                                 \
  }                                                                                                                              \
  QUERN_BLOCK void quern_block_dictionary_rows_##text(const QuernColumn* column, uint64_t first, const uint32_t* rows, uint32_t n, \
                                                      uint32_t* out) {                                                           \
    b::DictionaryRows<Index>(column, first, rows, n, out);                                                                       \
  }
QUERN_INDEX_BLOCKS(8, uint8_t)
QUERN_INDEX_BLOCKS(16, uint16_t)
QUERN_INDEX_BLOCKS(32, uint32_t)
QUERN_INDEX_BLOCKS(64, uint64_t)

#define QUERN_KEY_BLOCKS(text, kStorage)                                                                                          \
  QUERN_BLOCK void quern_block_hash_##text(const QuernColumn* column, uint64_t first, const uint32_t* rows, uint32_t n, uint64_t* hashes, \
                                           bool combine, bool nullable, bool trims_spaces, uint32_t width) {                      \
    b::HashColumn<kStorage>(column, first, rows, n, hashes, combine, nullable, trims_spaces, width);                              \
  }                                                                                                                               \
  QUERN_BLOCK bool quern_block_equal_##text(const QuernColumn* column, uint32_t row, const uint8_t* field, bool trims_spaces,     \
                                            uint32_t width) {                                                                     \
    return b::EqualField<kStorage>(column, row, field, trims_spaces, width);                                                      \
  }                                                                                                                               \
  QUERN_BLOCK void quern_block_store_##text(const QuernColumn* column, uint64_t first, const uint32_t* rows, uint32_t n,            \
                                            uint8_t* tuples, uint32_t tuple_bytes, uint32_t field_offset, uint32_t null_offset,     \
                                            uint8_t null_mask, bool trims_spaces, uint32_t width) {                                 \
    b::StoreColumn<kStorage>(column, first, rows, n, tuples, tuple_bytes, field_offset, null_offset, null_mask, trims_spaces, width); \
  }

#define QUERN_PAYLOAD_BLOCKS(text, kStorage)                                                                                      \
  QUERN_BLOCK void quern_block_emit_probe_##text(const QuernColumn* column, const uint32_t* rows, uint32_t n, QuernOutColumn* out, \
                                                 uint64_t out_row, bool nullable, uint32_t width) {                               \
    b::EmitColumn<kStorage>(b::ProbeSource<kStorage>{column, rows, nullable, width}, n, out, out_row, nullable);                  \
  }                                                                                                                               \
  QUERN_BLOCK void quern_block_emit_build_##text(const uint8_t* base, const uint64_t* tuples, uint32_t n, QuernOutColumn* out, uint64_t out_row, \
                                                 uint32_t field_offset, uint32_t null_offset, uint8_t null_mask, uint32_t width) { \
    b::EmitColumn<kStorage>(b::BuildSource<kStorage>{base, tuples, field_offset, null_offset, null_mask, width}, n, out, out_row,       \
                            null_mask != 0);                                                                                      \
  }

#define QUERN_FIT_BLOCKS(text, kStorage)                                                                                          \
  QUERN_BLOCK int64_t quern_block_fit_probe_##text(const QuernColumn* column, const uint32_t* rows, uint32_t n, QuernOutColumn* out, \
                                                   bool nullable) {                                                               \
    return b::FitStrings<kStorage>(b::ProbeSource<kStorage>{column, rows, nullable, 0}, n, out);                                  \
  }                                                                                                                               \
  QUERN_BLOCK int64_t quern_block_fit_build_##text(const uint8_t* base, const uint64_t* tuples, uint32_t n, QuernOutColumn* out, uint32_t field_offset, \
                                                   uint32_t null_offset, uint8_t null_mask) {                                     \
    return b::FitStrings<kStorage>(b::BuildSource<kStorage>{base, tuples, field_offset, null_offset, null_mask, 0}, n, out);            \
  }

QUERN_KEY_BLOCKS(f32, kF32)
QUERN_KEY_BLOCKS(f64, kF64)

#define QUERN_COLUMN_BLOCKS(text, kStorage) QUERN_KEY_BLOCKS(text, kStorage) QUERN_PAYLOAD_BLOCKS(text, kStorage)
QUERN_COLUMN_BLOCKS(bit, kBit)
QUERN_COLUMN_BLOCKS(8, k8)
QUERN_COLUMN_BLOCKS(16, k16)
QUERN_COLUMN_BLOCKS(32, k32)
QUERN_COLUMN_BLOCKS(64, k64)
QUERN_COLUMN_BLOCKS(128, k128)
QUERN_COLUMN_BLOCKS(fixed, kFixed)
QUERN_COLUMN_BLOCKS(var32, kVar32)
QUERN_COLUMN_BLOCKS(var64, kVar64)
QUERN_COLUMN_BLOCKS(view, kView)
QUERN_FIT_BLOCKS(var32, kVar32)
QUERN_FIT_BLOCKS(var64, kVar64)
QUERN_FIT_BLOCKS(view, kView)
