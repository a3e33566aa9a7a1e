// SPDX-License-Identifier: Apache-2.0
// The parameters and arguments of blocks, written once: quern_block_* (bitcode) and quern_rt_* (out-of-line) have the
// same ones. Arguments that are constants in a kernel come last.
#ifndef QUERN_RUNTIME_BLOCKS_BLOCK_SIGNATURES_H_
#define QUERN_RUNTIME_BLOCKS_BLOCK_SIGNATURES_H_

#include "runtime/abi/kernel_abi.h"
#include "runtime/abi/sort_abi.h"

#define QUERN_VALID_PARAMETERS (const QuernColumn* column, uint32_t row)
#define QUERN_FILTER_VALID_PARAMETERS \
  (const QuernColumn* column, uint64_t first, const uint32_t* rows, uint32_t n, uint32_t* out)
#define QUERN_DICTIONARY_ROW_PARAMETERS (const QuernColumn* column, uint32_t row)
#define QUERN_DICTIONARY_ROWS_PARAMETERS \
  (const QuernColumn* column, uint64_t first, const uint32_t* rows, uint32_t n, uint32_t* out)
#define QUERN_EQUAL_PARAMETERS \
  (const QuernColumn* column, uint32_t row, const uint8_t* field, CollationRule rule, uint32_t width)
#define QUERN_PREFETCH_STRING_PARAMETERS (const uint8_t* field, uint32_t width)
#define QUERN_ZERO_NULL_BITS_PARAMETERS \
  (uint8_t* tuples, uint32_t n, uint32_t tuple_bytes, uint32_t offset, uint32_t bytes)
#define QUERN_STORE_ROWID_PARAMETERS                                                                               \
  (uint64_t first, const uint32_t* rows, uint32_t n, uint8_t* tuples, uint64_t first_row_id, uint32_t tuple_bytes, \
   uint32_t field_offset)
#define QUERN_EMIT_ROWID_PARAMETERS \
  (const uint32_t* rows, uint32_t n, QuernOutColumn* out, uint64_t out_row, uint64_t first_row_id, bool nullable)
// width_or_distance: of kFixed the bytes of a value; of strings the distance, in bytes, at which they are prefetched
// where they are read in order, 0: they are not.
#define QUERN_HASH_PARAMETERS                                                                                   \
  (const QuernColumn* column, uint64_t first, const uint32_t* rows, uint32_t n, uint64_t* hashes, bool combine, \
   bool nullable, CollationRule rule, uint32_t width_or_distance)
#define QUERN_HASH_ARGUMENTS (column, first, rows, n, hashes, combine, nullable, rule, width_or_distance)
#define QUERN_PACK_PARAMETERS                                                                                  \
  (const QuernColumn* column, uint64_t first, const uint32_t* rows, uint32_t n, uint64_t* words, bool combine, \
   bool nullable, uint32_t shift, uint32_t null_bit)
#define QUERN_PACK_ARGUMENTS (column, first, rows, n, words, combine, nullable, shift, null_bit)
#define QUERN_COMPARE_PARAMETERS \
  (const QuernColumn* column, uint32_t row, const uint8_t* field, uint8_t comparison, bool is_signed)
#define QUERN_STORE_PARAMETERS                                                                                         \
  (const QuernColumn* column, uint64_t first, const uint32_t* rows, uint32_t n, uint8_t* tuples, uint32_t tuple_bytes, \
   uint32_t field_offset, uint32_t null_offset, uint8_t null_mask, CollationRule rule, uint32_t width)
#define QUERN_STORE_ARGUMENTS \
  (column, first, rows, n, tuples, tuple_bytes, field_offset, null_offset, null_mask, rule, width)
#define QUERN_EMIT_PROBE_PARAMETERS                                                                                   \
  (const QuernColumn* column, const uint32_t* rows, uint32_t n, QuernOutColumn* out, uint64_t out_row, bool nullable, \
   uint32_t width)
#define QUERN_EMIT_PROBE_ARGUMENTS (column, rows, n, out, out_row, nullable, width)
#define QUERN_EMIT_FIELD_PARAMETERS                                                                \
  (const uint8_t* base, const uint64_t* tuples, uint32_t n, QuernOutColumn* out, uint64_t out_row, \
   uint32_t field_offset, uint32_t null_offset, uint8_t null_mask, uint32_t width)
#define QUERN_EMIT_FIELD_ARGUMENTS (base, tuples, n, out, out_row, field_offset, null_offset, null_mask, width)
#define QUERN_FIT_PROBE_PARAMETERS \
  (const QuernColumn* column, const uint32_t* rows, uint32_t n, QuernOutColumn* out, bool nullable)
#define QUERN_FIT_PROBE_ARGUMENTS (column, rows, n, out, nullable)
#define QUERN_FIT_FIELD_PARAMETERS                                                                      \
  (const uint8_t* base, const uint64_t* tuples, uint32_t n, QuernOutColumn* out, uint32_t field_offset, \
   uint32_t null_offset, uint8_t null_mask)
#define QUERN_FIT_FIELD_ARGUMENTS (base, tuples, n, out, field_offset, null_offset, null_mask)
#define QUERN_ENCODE_PARAMETERS                                                                                \
  (const QuernColumn* column, uint64_t first, const uint32_t* rows, uint32_t n, uint64_t* words, bool combine, \
   bool nullable, uint32_t shift, uint64_t flip)
#define QUERN_ENCODE_ARGUMENTS (column, first, rows, n, words, combine, nullable, shift, flip)
#define QUERN_ENCODE_NULLS_PARAMETERS                                                                          \
  (const QuernColumn* column, uint64_t first, const uint32_t* rows, uint32_t n, uint64_t* words, bool combine, \
   uint32_t shift, bool null_is_one)
#define QUERN_ENCODE_BYTES_PARAMETERS                                                              \
  (const QuernSortDescriptor* descriptor, uint32_t key, const QuernColumn* column, uint64_t first, \
   const uint32_t* rows, uint32_t n, uint64_t* const* words, uint32_t num_words, uint32_t* incomplete)
#define QUERN_ENCODE_BYTES_ARGUMENTS (descriptor, key, column, first, rows, n, words, num_words, incomplete)
#define QUERN_ORDER_PARAMETERS \
  (const uint8_t* left, const uint8_t* right, bool is_signed, CollationRule rule, uint32_t width)

extern "C" {
void quern_rt_encode_nulls QUERN_ENCODE_NULLS_PARAMETERS;
#define QUERN_CALLED_ENCODE(text, kStorage, kPart) void quern_rt_encode_##text QUERN_ENCODE_PARAMETERS;
#define QUERN_CALLED_BYTES(text, kStorage) void quern_rt_encode_##text QUERN_ENCODE_BYTES_PARAMETERS;
#define QUERN_CALLED_HASH(text, kStorage) void quern_rt_hash_##text QUERN_HASH_PARAMETERS;
#define QUERN_CALLED_PACK(text, kStorage) void quern_rt_pack_##text QUERN_PACK_PARAMETERS;
#define QUERN_CALLED_COLUMN(text, kStorage)                    \
  void quern_rt_store_##text QUERN_STORE_PARAMETERS;           \
  void quern_rt_emit_probe_##text QUERN_EMIT_PROBE_PARAMETERS; \
  void quern_rt_emit_field_##text QUERN_EMIT_FIELD_PARAMETERS;
#define QUERN_CALLED_STRING(text, kStorage)                         \
  int64_t quern_rt_reserve_probe_##text QUERN_FIT_PROBE_PARAMETERS; \
  int64_t quern_rt_reserve_field_##text QUERN_FIT_FIELD_PARAMETERS;
#include "runtime/blocks/out_of_line_blocks.def"
}

#endif  // QUERN_RUNTIME_BLOCKS_BLOCK_SIGNATURES_H_
