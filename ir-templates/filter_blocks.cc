// SPDX-License-Identifier: Apache-2.0
// The blocks of filters as bitcode. They are a module apart from blocks.cc, so that other kernels need not search it.
// Each tests whole words of a mask and leaves the other rows to the runtime; emitters need not distinguish them.
#include "runtime/blocks/filter_strings.h"

namespace b = quern::blocks;

#define QUERN_BLOCK extern "C"

// The parameters of every leaf: its column, the piece, and its mask.
#define QUERN_LEAF_PARAMETERS \
  const QuernFilterArgs *args, uint32_t leaf, const QuernColumn *column, uint64_t first, uint32_t n, uint64_t *mask

namespace {

QUERN_INLINE const uint32_t* PickedRows(const QuernFilterArgs* args, uint64_t first) {
  return args->selection != nullptr ? args->selection + first : nullptr;
}

QUERN_INLINE void LeaveRest(const QuernFilterArgs* args, uint32_t leaf, uint64_t first, uint32_t n, uint64_t* mask,
                            uint32_t done) {
  if (done < n) quern_rt_filter_leaf(args, leaf, first + done, n - done, mask + done / 64);
}

}  // namespace

QUERN_BLOCK void quern_block_filter_leaf(const QuernFilterArgs* args, uint32_t leaf, uint64_t first, uint32_t n,
                                         uint64_t* mask) {
  quern_rt_filter_leaf(args, leaf, first, n, mask);
}

QUERN_BLOCK void quern_block_filter_valid(const QuernFilterArgs* args, const QuernColumn* column, uint64_t first,
                                          uint32_t n, uint64_t* mask, bool negated) {
  b::TestValid(column, first, PickedRows(args, first), n, mask, negated);
}

QUERN_BLOCK void quern_block_filter_clear(uint64_t* to, uint32_t n) { __builtin_memset(to, 0, (n + 63) / 64 * 8); }
QUERN_BLOCK void quern_block_filter_split(uint64_t* to, uint64_t* todo, uint32_t n) {
  b::SplitMask(to, todo, (n + 63) / 64);
}
QUERN_BLOCK void quern_block_filter_copy(uint64_t* to, const uint64_t* from, uint32_t n) {
  __builtin_memcpy(to, from, (n + 63) / 64 * 8);
}
QUERN_BLOCK void quern_block_filter_keep(uint64_t* to, const uint64_t* from, uint64_t* todo, uint32_t n) {
  b::KeepMask(to, from, todo, (n + 63) / 64);
}
QUERN_BLOCK void quern_block_filter_merge(uint64_t* to, const uint64_t* from, uint32_t n) {
  b::MergeMask(to, from, (n + 63) / 64);
}

#define QUERN_RANGE_BLOCK(text, kStorage)                                                                        \
  QUERN_BLOCK void quern_block_filter_range_##text(QUERN_LEAF_PARAMETERS, uint64_t low, uint64_t, uint64_t span, \
                                                   uint64_t, bool negated) {                                     \
    LeaveRest(args, leaf, first, n, mask,                                                                        \
              b::TestRange<kStorage>(column, first, PickedRows(args, first), n, mask,                            \
                                     b::FilterRowsAhead(args, first, n), low, span, negated));                   \
  }
#define QUERN_COLUMNS_BLOCK(text, kStorage)                                                           \
  QUERN_BLOCK void quern_block_filter_columns_##text(QUERN_LEAF_PARAMETERS, const QuernColumn* other, \
                                                     uint8_t comparison, bool is_signed) {            \
    LeaveRest(args, leaf, first, n, mask,                                                             \
              b::TestColumns<kStorage>(column, other, first, PickedRows(args, first), n, mask,        \
                                       b::FilterRowsAhead(args, first, n), comparison, is_signed));   \
  }
#define QUERN_NUMBER_BLOCKS(text, kStorage) QUERN_RANGE_BLOCK(text, kStorage) QUERN_COLUMNS_BLOCK(text, kStorage)
QUERN_NUMBER_BLOCKS(8, k8)
QUERN_NUMBER_BLOCKS(16, k16)
QUERN_NUMBER_BLOCKS(32, k32)
QUERN_NUMBER_BLOCKS(64, k64)
QUERN_NUMBER_BLOCKS(f32, kF32)
QUERN_NUMBER_BLOCKS(f64, kF64)

QUERN_BLOCK void quern_block_filter_range_128(QUERN_LEAF_PARAMETERS, uint64_t low, uint64_t high_of_low, uint64_t span,
                                              uint64_t high_of_span, bool negated) {
  LeaveRest(args, leaf, first, n, mask,
            b::TestWideRange(column, first, PickedRows(args, first), n, mask, b::FilterRowsAhead(args, first, n), low,
                             high_of_low, span, high_of_span, negated));
}

QUERN_BLOCK void quern_block_filter_range_bit(QUERN_LEAF_PARAMETERS, uint64_t low, uint64_t, uint64_t, uint64_t,
                                              bool negated) {
  LeaveRest(args, leaf, first, n, mask,
            b::TestBits(column, first, PickedRows(args, first), n, mask, (low != 0) != negated));
}

#define QUERN_EQUAL_BLOCK(text, kStorage)                                                                              \
  QUERN_BLOCK void quern_block_filter_equal_##text(QUERN_LEAF_PARAMETERS, const uint8_t* constants, uint32_t length,   \
                                                   uint64_t low, uint64_t high, uint64_t low_mask, uint64_t high_mask, \
                                                   CollationRule rule, bool negated, bool prefetches) {                \
    LeaveRest(args, leaf, first, n, mask,                                                                              \
              b::TestEqual<kStorage>(column, first, PickedRows(args, first), n, mask, constants, length, low, high,    \
                                     low_mask, high_mask, rule, negated, prefetches));                                 \
  }
#define QUERN_ORDER_BLOCK(text, kStorage)                                                                            \
  QUERN_BLOCK void quern_block_filter_order_##text(QUERN_LEAF_PARAMETERS, const uint8_t* constants, uint32_t length, \
                                                   uint64_t lead, CollationRule rule, uint8_t comparison) {          \
    LeaveRest(args, leaf, first, n, mask,                                                                            \
              b::TestOrder<kStorage>(column, first, PickedRows(args, first), n, mask, lead, constants, length, rule, \
                                     comparison));                                                                   \
  }
#define QUERN_PARTS_BLOCK(text, kStorage)                                                                   \
  QUERN_BLOCK void quern_block_filter_parts_##text(QUERN_LEAF_PARAMETERS, const uint8_t* constants,         \
                                                   uint32_t num_parts, uint32_t min_length, bool is_whole,  \
                                                   bool has_affixes, CollationRule rule, bool negated) {    \
    LeaveRest(args, leaf, first, n, mask,                                                                   \
              b::TestParts<kStorage>(column, first, PickedRows(args, first), n, mask, constants, num_parts, \
                                     min_length, is_whole, has_affixes, rule, negated));                    \
  }
QUERN_EQUAL_BLOCK(var32, kVar32)
QUERN_EQUAL_BLOCK(var64, kVar64)
QUERN_EQUAL_BLOCK(view, kView)
QUERN_ORDER_BLOCK(var32, kVar32)
QUERN_ORDER_BLOCK(var64, kVar64)
QUERN_ORDER_BLOCK(view, kView)
QUERN_PARTS_BLOCK(var32, kVar32)
QUERN_PARTS_BLOCK(var64, kVar64)
QUERN_PARTS_BLOCK(view, kView)
