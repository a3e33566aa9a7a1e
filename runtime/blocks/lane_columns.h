// SPDX-License-Identifier: Apache-2.0
// Blocks of maps that read and write columns, eight rows at a time, and the table of all functions of lanes.
#ifndef QUERN_RUNTIME_BLOCKS_LANE_COLUMNS_H_
#define QUERN_RUNTIME_BLOCKS_LANE_COLUMNS_H_

#include "runtime/blocks/date_lanes.h"
#include "runtime/blocks/decimal_lanes.h"
#include "runtime/blocks/string_lanes.h"

extern "C" {
// The last rows of a batch, fewer than eight: behind the last one comes the last one again.
QUERN_OUTLINED void quern_outlined_last_rows(const uint32_t* selection, uint64_t first, uint32_t i, uint32_t n,
                                             uint32_t* rows) {
  for (uint32_t k = 0; k < quern::blocks::kLanes; ++k) {
    const uint32_t row = i + k < n ? i + k : n - 1;
    rows[k] = selection != nullptr ? selection[row] : static_cast<uint32_t>(first + row);
  }
}
}

namespace quern::blocks {

// Eight rows of a batch: those at `first` and behind it, or the eight that `rows` names.
struct EightRows {
  uint64_t first;
  const uint32_t* rows;
};

// The rows at i, i + 1, .. of the n that begin at `first`, or that `selection` names. `buffer` holds the last ones.
QUERN_INLINE EightRows RowsFrom(const uint32_t* selection, uint64_t first, uint32_t i, uint32_t n, uint32_t* buffer) {
  if (n - i >= kLanes) return {first + i, selection != nullptr ? selection + i : nullptr};
  quern_outlined_last_rows(selection, first, i, n, buffer);
  return {0, buffer};
}

QUERN_INLINE uint8_t EightBits(const uint8_t* bitmap, uint64_t bit_offset, const EightRows& r) {
  if (r.rows == nullptr) {
    const uint8_t* p = bitmap + (bit_offset + r.first) / 8;
    const uint32_t shift = (bit_offset + r.first) % 8;
    uint32_t bits = static_cast<uint32_t>(p[0]) >> shift;
    if (shift != 0) bits |= static_cast<uint32_t>(p[1]) << (8 - shift);
    return static_cast<uint8_t>(bits);
  }
  uint32_t bits = 0;
  for (uint32_t i = 0; i < kLanes; ++i) bits |= static_cast<uint32_t>(Bit(bitmap, bit_offset + r.rows[i])) << i;
  return static_cast<uint8_t>(bits);
}

// One bit a row: whether a column that may hold nulls has a value.
QUERN_INLINE uint8_t EightValid(const QuernColumn* column, const EightRows& r) {
  return column->validity != nullptr ? EightBits(column->validity, column->bit_offset, r) : uint8_t{255};
}

template <class T>
QUERN_INLINE auto EightValues(const void* values, const EightRows& r) {
  typedef T Lanes __attribute__((vector_size(sizeof(T) * kLanes)));
  if (r.rows == nullptr) return Load<Lanes>(static_cast<const uint8_t*>(values) + r.first * sizeof(T));
  Lanes lanes = {};
  for (uint32_t i = 0; i < kLanes; ++i) lanes[i] = LoadAt<T>(values, r.rows[i]);
  return lanes;
}

template <class T>
QUERN_INLINE U64x8 EightIntegers(const void* values, const EightRows& r, bool is_signed) {
  const auto lanes = EightValues<T>(values, r);
  if constexpr (sizeof(T) == 8) return lanes;
  else {
    typedef typename SignedOf<T>::Type S __attribute__((vector_size(sizeof(T) * kLanes)));
    return is_signed ? (U64x8) __builtin_convertvector((S)lanes, I64x8) : __builtin_convertvector(lanes, U64x8);
  }
}

// Pairs of words in four rows. Put together pair by pair, and then taken apart as pairs of neighbours are: half as many
// steps as word by word.
QUERN_INLINE U64x8 FourPairs(const void* values, const uint32_t* rows) {
  typedef uint64_t Pair __attribute__((vector_size(16)));
  const auto* p = static_cast<const uint8_t*>(values);
  const auto x = __builtin_shufflevector(Load<Pair>(p + uint64_t{rows[0]} * 16), Load<Pair>(p + uint64_t{rows[1]} * 16),
                                         0, 1, 2, 3);
  const auto y = __builtin_shufflevector(Load<Pair>(p + uint64_t{rows[2]} * 16), Load<Pair>(p + uint64_t{rows[3]} * 16),
                                         0, 1, 2, 3);
  return (U64x8)__builtin_shufflevector(x, y, 0, 1, 2, 3, 4, 5, 6, 7);
}

// Decimals: pairs of words, apart.
template <bool kWide>
QUERN_INLINE void LoadDecimals(const void* values, const EightRows& r, QuernLanes* out, uint8_t* escaped) {
  U64x8 low = {}, high = {};
  if (r.rows == nullptr) {
    const auto* p = static_cast<const uint8_t*>(values) + r.first * 16;
    const U64x8 a = Load<U64x8>(p), b = Load<U64x8>(p + sizeof(U64x8));
    low = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
    high = __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
  } else {
    const U64x8 a = FourPairs(values, r.rows), b = FourPairs(values, r.rows + 4);
    low = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
    high = __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
  }
  out->low = low;
  if constexpr (kWide) out->high = high;
  else *escaped = static_cast<uint8_t>(*escaped | (LaneBits((I64x8)(high != (U64x8)((I64x8)low >> 63))) & out->valid));
}

template <Storage kStorage, bool kWide>
QUERN_INLINE void LoadColumn(const QuernColumn* column, const EightRows& r, bool nullable, bool is_signed,
                             QuernLanes* out, uint8_t* escaped) {
  out->valid = nullable ? EightValid(column, r) : uint8_t{255};
  out->failed = 0;
  if constexpr (kStorage == kBit) {
    out->truth = EightBits(static_cast<const uint8_t*>(column->values), column->bit_offset, r);
  } else if constexpr (kStorage == k128) {
    LoadDecimals<kWide>(column->values, r, out, escaped);
  } else if constexpr (kStorage == kF32) {
    out->low = AsWords(__builtin_convertvector(EightValues<float>(column->values, r), F64x8));
  } else {
    using T = typename ReaderOf<kStorage>::Value;
    out->low = EightIntegers<T>(column->values, r, is_signed);
    if constexpr (kWide) out->high = is_signed ? (U64x8)((I64x8)out->low >> 63) : U64x8{};  // of a narrow decimal
  }
}

// The constant whose bytes are the column's values, and whose length is its bit offset.
QUERN_INLINE void LoadStringConstant(const QuernColumn* column, QuernLanes* out) {
  out->low = U64x8{} + reinterpret_cast<uint64_t>(column->values);
  out->high = U64x8{} + column->bit_offset;
  out->valid = 255;
  out->failed = 0;
}

template <class V>
QUERN_INLINE void StoreEight(void* values, uint64_t row, uint32_t n, V lanes) {
  constexpr uint32_t kBytes = sizeof(lanes[0]);
  auto* to = static_cast<uint8_t*>(values) + row * kBytes;
  if (n >= kLanes) return Store(to, lanes);
  for (uint32_t i = 0; i < n; ++i) Store(to + i * kBytes, lanes[i]);
}

// Where the rows of a result column go.
struct ResultColumn {
  void* values;
  uint8_t* validity;
  uint64_t* null_count;
};

// Writes up to eight rows, of which n are left, from `row` on, a multiple of 8. Values under nulls are 0. Returns the
// rows that have failed.
template <Storage kStorage, bool kWide>
QUERN_INLINE uint8_t StoreColumn(const QuernLanes& x, const ResultColumn& to, uint64_t row, uint32_t n, bool nullable) {
  const auto present = static_cast<uint8_t>(n >= kLanes ? 255 : (1u << n) - 1);
  const uint8_t valid = nullable ? static_cast<uint8_t>(x.valid & present) : present;
  if (nullable) {
    to.validity[row / 8] = valid;
    *to.null_count += static_cast<uint64_t>(__builtin_popcount(static_cast<uint8_t>(present & ~valid)));
  }
  const U64x8 mask = nullable ? LanesOf(valid) : ~U64x8{};
  if constexpr (kStorage == kBit) {
    static_cast<uint8_t*>(to.values)[row / 8] = static_cast<uint8_t>(x.truth & valid);
  } else if constexpr (kStorage == k128) {
    const U64x8 low = x.low & mask, high = (kWide ? x.high : (U64x8)((I64x8)x.low >> 63)) & mask;
    auto* at = static_cast<uint8_t*>(to.values) + row * 16;
    if (n >= kLanes) {
      Store(at, __builtin_shufflevector(low, high, 0, 8, 1, 9, 2, 10, 3, 11));
      Store(at + sizeof(U64x8), __builtin_shufflevector(low, high, 4, 12, 5, 13, 6, 14, 7, 15));
    } else {
      for (uint32_t i = 0; i < n; ++i) {
        Store(at + i * 16, low[i]);
        Store(at + i * 16 + 8, high[i]);
      }
    }
  } else if constexpr (kStorage == kF32) {
    StoreEight(to.values, row, n, __builtin_convertvector(AsFloats(x.low & mask), F32x8));
  } else {
    using T = typename ReaderOf<kStorage>::Value;
    typedef T Lanes __attribute__((vector_size(sizeof(T) * kLanes)));
    if constexpr (sizeof(T) == 8) StoreEight(to.values, row, n, x.low & mask);
    else StoreEight(to.values, row, n, __builtin_convertvector(x.low & mask, Lanes));
  }
  return static_cast<uint8_t>(x.failed & present);
}

// ---- all functions ----

template <bool kWide>
QUERN_INLINE void Constant(const LaneCall& call) {
  call.out->low = U64x8{} + call.p.low;
  call.out->high = U64x8{} + call.p.high;
  call.out->truth = static_cast<uint8_t>(0 - (call.p.low & 1));
  call.out->valid = call.p.errors == kErrorsAreNull ? uint8_t{0} : uint8_t{255};  // null
  call.out->failed = 0;
  const uint64_t sign = static_cast<uint64_t>(static_cast<int64_t>(call.p.low) >> 63);
  if (!kWide && call.p.bits == 128 && call.p.high != sign) *call.escaped = 255;
}

// Runs one function.
template <LaneFunction kFunction, bool kWide>
QUERN_INLINE void RunLanes(const LaneCall& call) {
#define QUERN_LANE_FUNCTION(Id, text, num_arguments, Function) \
  if constexpr (kFunction == Id) Function(call);
#include "runtime/abi/lane_functions.def"
}

}  // namespace quern::blocks

#endif  // QUERN_RUNTIME_BLOCKS_LANE_COLUMNS_H_
