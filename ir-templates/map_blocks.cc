// SPDX-License-Identifier: Apache-2.0
// The blocks of maps as bitcode, with decimals of 64 bits. They are a module apart from blocks.cc, so that other
// kernels need not search it.
#include "runtime/blocks/lane_columns.h"

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
