// SPDX-License-Identifier: Apache-2.0
// The blocks of eight rows as bitcode, with decimals of 64 bits: those of maps, and of aggregations that add up eight
// rows at a time. They are a module apart from blocks.cc, so that other kernels need not search it.
#include "runtime/blocks/lane_columns.h"
#include "runtime/blocks/lane_totals.h"

namespace b = quern::blocks;

#define QUERN_BLOCK extern "C"

#define QUERN_LANE_FUNCTION(Id, text, num_arguments, Function)                                               \
  QUERN_BLOCK void quern_block_lanes_##text(const QuernLanes* x, const QuernLanes* y, const QuernLanes* z,   \
                                            QuernLanes* out, uint8_t bits, bool is_signed, bool from_signed, \
                                            uint8_t errors, uint64_t low, uint64_t high, uint8_t* escaped) { \
    const QuernLaneParameters parameters = {bits, is_signed, from_signed, errors, low, high};                \
    b::RunLanes<Id, false>({*x, *y, *z, out, parameters, escaped});                                          \
  }
#include "runtime/abi/lane_functions.def"

QUERN_BLOCK void quern_block_lanes_rows(const uint32_t* selection, uint64_t first, uint32_t i, uint32_t n,
                                        uint32_t* buffer, b::EightRows* rows) {
  *rows = b::RowsFrom(selection, first, i, n, buffer);
}

QUERN_BLOCK void quern_block_lanes_load_valid(const QuernColumn* column, const b::EightRows* rows, QuernLanes* out) {
  out->valid = b::EightValid(column, *rows);
}

#define QUERN_COLUMN_BLOCKS(text, kStorage)                                                                           \
  QUERN_BLOCK void quern_block_lanes_load_##text(const QuernColumn* column, const b::EightRows* rows, bool nullable,  \
                                                 bool is_signed, QuernLanes* out, uint8_t* escaped) {                 \
    b::LoadColumn<kStorage, false>(column, *rows, nullable, is_signed, out, escaped);                                 \
  }                                                                                                                   \
  QUERN_BLOCK uint8_t quern_block_lanes_store_##text(const QuernLanes* x, void* values, uint8_t* validity,            \
                                                     uint64_t* null_count, uint64_t row, uint32_t n, bool nullable) { \
    return b::StoreColumn<kStorage, false>(*x, {values, validity, null_count}, row, n, nullable);                     \
  }
QUERN_COLUMN_BLOCKS(bit, kBit)
QUERN_COLUMN_BLOCKS(8, k8)
QUERN_COLUMN_BLOCKS(16, k16)
QUERN_COLUMN_BLOCKS(32, k32)
QUERN_COLUMN_BLOCKS(64, k64)
QUERN_COLUMN_BLOCKS(128, k128)
QUERN_COLUMN_BLOCKS(f32, kF32)
QUERN_COLUMN_BLOCKS(f64, kF64)

QUERN_BLOCK void quern_block_lanes_load_strings(const QuernColumn* column, const b::EightRows* rows, uint8_t storage,
                                                uint8_t index, bool nullable, QuernLanes* out) {
  quern_rt_load_strings(column, rows->first, rows->rows, static_cast<Storage>(storage), static_cast<Storage>(index),
                        nullable, out);
}
QUERN_BLOCK void quern_block_lanes_empty_strings() { quern_rt_empty_strings(); }
QUERN_BLOCK void quern_block_lanes_string_constant(const QuernColumn* column, QuernLanes* out) {
  b::LoadStringConstant(column, out);
}
QUERN_BLOCK uint8_t quern_block_lanes_store_strings(const QuernLanes* x, QuernOutColumn* column, uint64_t* null_count,
                                                    uint64_t row, uint32_t n, uint8_t storage, bool nullable) {
  return quern_rt_store_strings(x, column, null_count, row, n, static_cast<Storage>(storage), nullable);
}

// ---- totals of aggregations ----

QUERN_BLOCK uint8_t quern_block_total_rows(uint32_t at, uint32_t begin) { return b::RowsToAdd(at, begin); }
QUERN_BLOCK uint8_t quern_block_total_group(const uint8_t* numbers, uint8_t group) {
  return b::RowsOfGroup(numbers, group);
}
QUERN_BLOCK uint8_t quern_block_total_valid(const QuernLanes* x) { return x->valid; }
QUERN_BLOCK uint8_t quern_block_total_true(const QuernLanes* x) { return x->truth; }
QUERN_BLOCK uint8_t quern_block_total_failed(const QuernLanes* x) { return x->failed; }
QUERN_BLOCK uint64_t quern_block_total_count(uint8_t takes) { return static_cast<uint64_t>(__builtin_popcount(takes)); }

QUERN_BLOCK void quern_block_total_reach(const QuernLanes* x, bool is_signed, b::U64x8* out) {
  *out = b::ReachOf(*x, is_signed);
}
QUERN_BLOCK bool quern_block_total_is_within_reach(const b::U64x8* reach) { return b::IsWithinReach(*reach); }

// turned: TurnedBits.
#define QUERN_ORDERED_LANES_BLOCK(text, kStorage)                                                         \
  QUERN_BLOCK void quern_block_total_ordered_##text(const QuernLanes* x, bool is_signed, uint64_t turned, \
                                                    b::U64x8* out) {                                      \
    *out = b::OrderedLanes<kStorage>(*x, is_signed) ^ turned;                                             \
  }
#define QUERN_BIT_LANES_BLOCK(text, kStorage)                                                                 \
  QUERN_BLOCK void quern_block_total_bits_##text(const QuernLanes* x, bool, uint64_t turned, b::U64x8* out) { \
    *out = b::BitLanes<kStorage>(*x) ^ turned;                                                                \
  }
QUERN_ORDERED_LANES_BLOCK(bit, kBit)
QUERN_ORDERED_LANES_BLOCK(8, k8)
QUERN_ORDERED_LANES_BLOCK(16, k16)
QUERN_ORDERED_LANES_BLOCK(32, k32)
QUERN_ORDERED_LANES_BLOCK(64, k64)
QUERN_ORDERED_LANES_BLOCK(128, k128)
QUERN_ORDERED_LANES_BLOCK(f32, kF32)
QUERN_ORDERED_LANES_BLOCK(f64, kF64)
QUERN_BIT_LANES_BLOCK(bit, kBit)
QUERN_BIT_LANES_BLOCK(8, k8)
QUERN_BIT_LANES_BLOCK(16, k16)
QUERN_BIT_LANES_BLOCK(32, k32)
QUERN_BIT_LANES_BLOCK(64, k64)

// Of all update functions; emitters call those that HasLaneTotal names.
#define QUERN_UPDATE_FUNCTION(Id, text, reads, state_bytes)                                                  \
  QUERN_BLOCK bool quern_block_total_fits_##text(const uint8_t* state, bool is_signed) {                     \
    return b::StateFits<Id>(state, is_signed);                                                               \
  }                                                                                                          \
  QUERN_BLOCK void quern_block_total_take_##text(const b::U64x8* total, uint64_t num_taking, bool is_signed, \
                                                 uint8_t* state) {                                           \
    b::TakeTotal<Id>(*total, num_taking, is_signed, state);                                                  \
  }
#include "runtime/abi/update_functions.def"
