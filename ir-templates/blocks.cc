// SPDX-License-Identifier: Apache-2.0
// The blocks as bitcode: functions of runtime/blocks/blocks.h under the names that emitters call. Only those that a
// kernel calls are linked into it; they are always inlined, and none is left after the first pass. Out-of-line blocks
// (runtime/blocks/out_of_line_blocks.def) are inlined too, as a call of the runtime, so that emitters treat all blocks
// alike.
#include "runtime/blocks/blocks.h"
#include "runtime/blocks/accumulators.h"
#include "runtime/blocks/block_table.h"

namespace b = quern::blocks;
namespace block = quern::block;

#define QUERN_BLOCK extern "C"

QUERN_BLOCK bool quern_block_valid QUERN_VALID_PARAMETERS { return b::IsValid(column, row); }

QUERN_BLOCK uint32_t quern_block_filter_valid QUERN_FILTER_VALID_PARAMETERS {
  return b::FilterValid(column, first, rows, n, out);
}

QUERN_BLOCK void quern_block_zero_null_bits QUERN_ZERO_NULL_BITS_PARAMETERS {
  b::ZeroNullBits(tuples, n, tuple_bytes, offset, bytes);
}

QUERN_BLOCK void quern_block_store_rowid QUERN_STORE_ROWID_PARAMETERS {
  b::StoreRowIds(first, rows, n, tuples, first_row_id, tuple_bytes, field_offset);
}

QUERN_BLOCK void quern_block_emit_rowid QUERN_EMIT_ROWID_PARAMETERS {
  b::EmitRowIds(rows, n, first_row_id, out, out_row, nullable);
}

QUERN_BLOCK void quern_block_prefetch_string QUERN_PREFETCH_STRING_PARAMETERS { b::PrefetchString(field, width); }

#define QUERN_INDEX_BLOCKS(text, Index)                                                    \
  QUERN_BLOCK uint32_t quern_block_dictionary_row_##text QUERN_DICTIONARY_ROW_PARAMETERS { \
    return b::DictionaryRow<Index>(column, row);                                           \
  }                                                                                        \
  QUERN_BLOCK void quern_block_dictionary_rows_##text QUERN_DICTIONARY_ROWS_PARAMETERS {   \
    b::DictionaryRows<Index>(column, first, rows, n, out);                                 \
  }
QUERN_INDEX_BLOCKS(8, uint8_t)
QUERN_INDEX_BLOCKS(16, uint16_t)
QUERN_INDEX_BLOCKS(32, uint32_t)
QUERN_INDEX_BLOCKS(64, uint64_t)

#define QUERN_EQUAL_BLOCK(text, kStorage)                                               \
  QUERN_BLOCK bool quern_block_equal_##text QUERN_EQUAL_PARAMETERS {                    \
    return b::EqualField<kStorage>(column, row, field, rule & ~kWeighsEquality, width); \
  }
#define QUERN_LANES_HASH_BLOCK(text, kStorage)                                                         \
  QUERN_BLOCK void quern_block_hash_##text QUERN_HASH_PARAMETERS {                                     \
    const uint32_t done = b::HashLanes<kStorage>(column, first, rows, n, hashes, combine, nullable);   \
    if (done == n) return;                                                                             \
    quern_rt_hash_##text(column, first + done, rows, n - done, hashes + done, combine, nullable, rule, \
                         width_or_distance);                                                           \
  }
#define QUERN_CALLED_HASH_BLOCK(text, kStorage) \
  QUERN_BLOCK void quern_block_hash_##text QUERN_HASH_PARAMETERS { quern_rt_hash_##text QUERN_HASH_ARGUMENTS; }
#define QUERN_STORE_BLOCK(text, kStorage)                            \
  QUERN_BLOCK void quern_block_store_##text QUERN_STORE_PARAMETERS { \
    block::Store::Run<kStorage> QUERN_STORE_ARGUMENTS;               \
  }
#define QUERN_EMIT_BLOCKS(text, kStorage)                                      \
  QUERN_BLOCK void quern_block_emit_probe_##text QUERN_EMIT_PROBE_PARAMETERS { \
    block::EmitProbe::Run<kStorage> QUERN_EMIT_PROBE_ARGUMENTS;                \
  }                                                                            \
  QUERN_BLOCK void quern_block_emit_field_##text QUERN_EMIT_FIELD_PARAMETERS { \
    block::EmitField::Run<kStorage> QUERN_EMIT_FIELD_ARGUMENTS;                \
  }

#define QUERN_LANES_PACK_BLOCK(text, kStorage)                                                                    \
  QUERN_BLOCK void quern_block_pack_##text QUERN_PACK_PARAMETERS {                                                \
    const uint32_t done = b::PackLanes<kStorage>(column, first, rows, n, words, combine, nullable, shift);        \
    if (done == n) return;                                                                                        \
    const uint32_t* rest = rows != nullptr ? rows + done : nullptr;                                               \
    quern_rt_pack_##text(column, first + done, rest, n - done, words + done, combine, nullable, shift, null_bit); \
  }
QUERN_LANES_PACK_BLOCK(8, k8)
QUERN_LANES_PACK_BLOCK(16, k16)
QUERN_LANES_PACK_BLOCK(32, k32)
QUERN_LANES_PACK_BLOCK(64, k64)
QUERN_LANES_PACK_BLOCK(f32, kF32)
QUERN_LANES_PACK_BLOCK(f64, kF64)
QUERN_BLOCK void quern_block_pack_bit QUERN_PACK_PARAMETERS { quern_rt_pack_bit QUERN_PACK_ARGUMENTS; }

// Residual predicates.
#define QUERN_COMPARE_BLOCK(text, kStorage)                                      \
  QUERN_BLOCK bool quern_block_compare_##text QUERN_COMPARE_PARAMETERS {         \
    return b::CompareField<kStorage>(column, row, field, comparison, is_signed); \
  }
QUERN_COMPARE_BLOCK(bit, kBit)
QUERN_COMPARE_BLOCK(8, k8)
QUERN_COMPARE_BLOCK(16, k16)
QUERN_COMPARE_BLOCK(32, k32)
QUERN_COMPARE_BLOCK(64, k64)
QUERN_COMPARE_BLOCK(128, k128)
QUERN_COMPARE_BLOCK(f32, kF32)
QUERN_COMPARE_BLOCK(f64, kF64)

// Packed keys: inlined, and hashed eight lanes at a time.
#define QUERN_WORD_BLOCKS(text, kStorage) \
  QUERN_LANES_HASH_BLOCK(text, kStorage)  \
  QUERN_EQUAL_BLOCK(text, kStorage) QUERN_STORE_BLOCK(text, kStorage) QUERN_EMIT_BLOCKS(text, kStorage)
QUERN_WORD_BLOCKS(8, k8)
QUERN_WORD_BLOCKS(16, k16)
QUERN_WORD_BLOCKS(32, k32)
QUERN_WORD_BLOCKS(64, k64)
QUERN_LANES_HASH_BLOCK(f32, kF32)
QUERN_EQUAL_BLOCK(f32, kF32)
QUERN_STORE_BLOCK(f32, kF32)
QUERN_LANES_HASH_BLOCK(f64, kF64)
QUERN_EQUAL_BLOCK(f64, kF64)
QUERN_STORE_BLOCK(f64, kF64)
QUERN_CALLED_HASH_BLOCK(128, k128)
QUERN_EQUAL_BLOCK(128, k128)
QUERN_STORE_BLOCK(128, k128)
QUERN_EMIT_BLOCKS(128, k128)

// The others: only the comparison is inlined.
#define QUERN_CALLED_COLUMN(text, kStorage)                                                                         \
  QUERN_CALLED_HASH_BLOCK(text, kStorage)                                                                           \
  QUERN_EQUAL_BLOCK(text, kStorage)                                                                                 \
  QUERN_BLOCK void quern_block_store_##text QUERN_STORE_PARAMETERS { quern_rt_store_##text QUERN_STORE_ARGUMENTS; } \
  QUERN_BLOCK void quern_block_emit_probe_##text QUERN_EMIT_PROBE_PARAMETERS {                                      \
    quern_rt_emit_probe_##text QUERN_EMIT_PROBE_ARGUMENTS;                                                          \
  }                                                                                                                 \
  QUERN_BLOCK void quern_block_emit_field_##text QUERN_EMIT_FIELD_PARAMETERS {                                      \
    quern_rt_emit_field_##text QUERN_EMIT_FIELD_ARGUMENTS;                                                          \
  }
// Separate blocks, so that kernels with other keys do not load them.
#define QUERN_CALLED_STRING(text, kStorage)                                            \
  QUERN_BLOCK bool quern_block_equal_collated_##text QUERN_EQUAL_PARAMETERS {          \
    return b::EqualField<kStorage>(column, row, field, rule | kWeighsEquality, width); \
  }                                                                                    \
  QUERN_BLOCK int64_t quern_block_reserve_probe_##text QUERN_FIT_PROBE_PARAMETERS {    \
    return quern_rt_reserve_probe_##text QUERN_FIT_PROBE_ARGUMENTS;                    \
  }                                                                                    \
  QUERN_BLOCK int64_t quern_block_reserve_field_##text QUERN_FIT_FIELD_PARAMETERS {    \
    return quern_rt_reserve_field_##text QUERN_FIT_FIELD_ARGUMENTS;                    \
  }
#include "runtime/blocks/out_of_line_blocks.def"

// ---- accumulators: a value in 64 bits, whatever its type, and its update function ----

#define QUERN_INTEGER_BLOCK(text, kStorage)                                                                  \
  QUERN_BLOCK uint64_t quern_block_integer_##text(const QuernColumn* column, uint32_t row, bool is_signed) { \
    return static_cast<uint64_t>(b::ReadInteger<kStorage>(column, row, is_signed));                          \
  }
#define QUERN_NUMBER_BLOCK(text, kStorage)                                                                  \
  QUERN_BLOCK uint64_t quern_block_number_##text(const QuernColumn* column, uint32_t row, bool is_signed) { \
    return __builtin_bit_cast(uint64_t, b::ReadNumber<kStorage>(column, row, is_signed));                   \
  }
#define QUERN_ORDERED_BLOCK(text, kStorage)                                                                  \
  QUERN_BLOCK uint64_t quern_block_ordered_##text(const QuernColumn* column, uint32_t row, bool is_signed) { \
    return b::ReadOrdered<kStorage>(column, row, is_signed);                                                 \
  }
#define QUERN_BITS_BLOCK(text, kStorage)                                                        \
  QUERN_BLOCK uint64_t quern_block_bits_##text(const QuernColumn* column, uint32_t row, bool) { \
    return b::ReadBits<kStorage>(column, row);                                                  \
  }
#define QUERN_INTEGER_BLOCKS(text, kStorage) \
  QUERN_INTEGER_BLOCK(text, kStorage)        \
  QUERN_NUMBER_BLOCK(text, kStorage) QUERN_ORDERED_BLOCK(text, kStorage) QUERN_BITS_BLOCK(text, kStorage)
QUERN_INTEGER_BLOCKS(8, k8)
QUERN_INTEGER_BLOCKS(16, k16)
QUERN_INTEGER_BLOCKS(32, k32)
QUERN_INTEGER_BLOCKS(64, k64)
QUERN_NUMBER_BLOCK(f32, kF32)
QUERN_NUMBER_BLOCK(f64, kF64)
QUERN_ORDERED_BLOCK(f32, kF32)
QUERN_ORDERED_BLOCK(f64, kF64)
QUERN_ORDERED_BLOCK(bit, kBit)
QUERN_BITS_BLOCK(bit, kBit)

#define QUERN_STEP_64(Id, text)                                                                            \
  QUERN_BLOCK void quern_block_update_##text(uint64_t value, uint8_t* state, uint64_t one, bool is_signed, \
                                             uint64_t row_id, uint8_t* overflowed) {                       \
    b::Step64<Id>(value, state, one, is_signed, row_id, overflowed);                                       \
  }
#define QUERN_STEP_WIDE(Id, text)                                                                                      \
  QUERN_BLOCK void quern_block_update_##text(const QuernColumn* column, uint32_t row, uint8_t* state, uint64_t row_id, \
                                             uint8_t* overflowed) {                                                    \
    b::StepWide<Id>(column, row, state, row_id, overflowed);                                                           \
  }
#define QUERN_STEP_TWO(Id, text) \
  QUERN_BLOCK void quern_block_update_##text(uint64_t x, uint64_t y, uint8_t* state) { b::StepTwo<Id>(x, y, state); }
#define QUERN_STEP_kReadsNothing QUERN_STEP_64
#define QUERN_STEP_kReadsInteger QUERN_STEP_64
#define QUERN_STEP_kReadsNumber QUERN_STEP_64
#define QUERN_STEP_kReadsOrdered QUERN_STEP_64
#define QUERN_STEP_kReadsBits QUERN_STEP_64
#define QUERN_STEP_kReadsWide QUERN_STEP_WIDE
#define QUERN_STEP_kReadsNumbers QUERN_STEP_TWO
#define QUERN_UPDATE_FUNCTION(Id, text, reads, state_bytes) QUERN_STEP_##reads(Id, text)
#include "runtime/abi/update_functions.def"

// ---- sorting: keys to words, and the order of tuples' fields ----

QUERN_BLOCK void quern_block_encode_nulls QUERN_ENCODE_NULLS_PARAMETERS {
  const uint32_t done = b::EncodeNullLanes(column, first, rows, n, words, combine, shift, null_is_one);
  if (done == n) return;
  const uint32_t* rest = rows != nullptr ? rows + done : nullptr;
  quern_rt_encode_nulls(column, first + done, rest, n - done, words + done, combine, shift, null_is_one);
}

#define QUERN_ENCODE_BLOCK(text, kStorage, kPart)                                                               \
  QUERN_BLOCK void quern_block_encode_##text QUERN_ENCODE_PARAMETERS {                                          \
    const uint32_t done =                                                                                       \
        b::EncodeLanes<kStorage, kPart>(column, first, rows, n, words, combine, nullable, shift, flip);         \
    if (done == n) return;                                                                                      \
    const uint32_t* rest = rows != nullptr ? rows + done : nullptr;                                             \
    quern_rt_encode_##text(column, first + done, rest, n - done, words + done, combine, nullable, shift, flip); \
  }
QUERN_ENCODE_BLOCK(8, k8, kValuePart)
QUERN_ENCODE_BLOCK(16, k16, kValuePart)
QUERN_ENCODE_BLOCK(32, k32, kValuePart)
QUERN_ENCODE_BLOCK(64, k64, kValuePart)
QUERN_ENCODE_BLOCK(f32, kF32, kValuePart)
QUERN_ENCODE_BLOCK(f64, kF64, kValuePart)
QUERN_ENCODE_BLOCK(high, k128, kHighPart)
QUERN_ENCODE_BLOCK(low, k128, kValuePart)
QUERN_BLOCK void quern_block_encode_bit QUERN_ENCODE_PARAMETERS { quern_rt_encode_bit QUERN_ENCODE_ARGUMENTS; }

#define QUERN_CALLED_BYTES(text, kStorage)                                   \
  QUERN_BLOCK void quern_block_encode_##text QUERN_ENCODE_BYTES_PARAMETERS { \
    quern_rt_encode_##text QUERN_ENCODE_BYTES_ARGUMENTS;                     \
  }
#include "runtime/blocks/out_of_line_blocks.def"

#define QUERN_ORDER_BLOCK(text, kStorage)                                \
  QUERN_BLOCK int32_t quern_block_order_##text QUERN_ORDER_PARAMETERS {  \
    return b::OrderField<kStorage>(left, right, is_signed, rule, width); \
  }
QUERN_ORDER_BLOCK(bit, kBit)
QUERN_ORDER_BLOCK(8, k8)
QUERN_ORDER_BLOCK(16, k16)
QUERN_ORDER_BLOCK(32, k32)
QUERN_ORDER_BLOCK(64, k64)
QUERN_ORDER_BLOCK(128, k128)
QUERN_ORDER_BLOCK(f32, kF32)
QUERN_ORDER_BLOCK(f64, kF64)
QUERN_ORDER_BLOCK(fixed, kFixed)
QUERN_ORDER_BLOCK(var32, kVar32)
QUERN_ORDER_BLOCK(var64, kVar64)
QUERN_ORDER_BLOCK(view, kView)
