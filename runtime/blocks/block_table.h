// SPDX-License-Identifier: Apache-2.0
// The blocks that holes call (ir-templates/holes/): their names, their parameters and what they do. A row makes a type.
// For example
//
//     QUERN_STORAGE_BLOCK(Hash, "hash", "", void, QUERN_HASH_PARAMETERS, true, HashColumn<kStorage>(..))
//
// makes block::Hash, of which block::Hash{k64} is the block for 64-bit values. A compiled kernel calls
// quern_block_hash_64, which ir-templates/blocks.cc exports with the same parameters; the generic kernel calls
// block::Hash::Run<k64>. Both check the number and the types of the arguments when they are compiled.
//
// QUERN_BLOCK(Id, name, value, Result, PARAMETERS, call)                        quern_block_<name>
// QUERN_STORAGE_BLOCK(Id, name, value, Result, PARAMETERS, exists, call)        quern_block_<name>_<storage>
//   value    what the result is called in a compiled kernel; "" where there is none
//   exists   the storages that have the block, as a condition on kStorage
//   call     the function that does the work
#ifndef QUERN_RUNTIME_BLOCKS_BLOCK_TABLE_H_
#define QUERN_RUNTIME_BLOCKS_BLOCK_TABLE_H_

#include "runtime/blocks/block_signatures.h"
#include "runtime/blocks/blocks.h"
#include "runtime/blocks/encode.h"

namespace quern::block {

namespace b = blocks;

#define QUERN_BLOCK(Id, name, value, Result, PARAMETERS, call)  \
  struct Id {                                                   \
    static constexpr const char *kName = name, *kValue = value; \
    using Signature = Result PARAMETERS;                        \
    static QUERN_INLINE Result Run PARAMETERS { return call; }  \
  };
#define QUERN_STORAGE_BLOCK(Id, name, value, Result, PARAMETERS, exists, call) \
  struct Id {                                                                  \
    static constexpr const char *kName = name, *kValue = value;                \
    using Signature = Result PARAMETERS;                                       \
    template <Storage kStorage>                                                \
    static constexpr bool kExists = exists;                                    \
    template <Storage kStorage>                                                \
    static QUERN_INLINE Result Run PARAMETERS {                                \
      return call;                                                             \
    }                                                                          \
    Storage storage;                                                           \
  };

constexpr bool IsIndex(Storage s) { return s == k8 || s == k16 || s == k32 || s == k64; }
constexpr bool IsNumber(Storage s) { return b::HasLanes(s) || s == kBit || s == k128; }

// Rows.
QUERN_BLOCK(Valid, "valid", "valid", bool, QUERN_VALID_PARAMETERS, b::IsValid(column, row))
QUERN_BLOCK(FilterValid, "filter_valid", "kept", uint32_t, QUERN_FILTER_VALID_PARAMETERS,
            b::FilterValid(column, first, rows, n, out))
QUERN_STORAGE_BLOCK(DictionaryRow, "dictionary_row", "value_row", uint32_t, QUERN_DICTIONARY_ROW_PARAMETERS,
                    IsIndex(kStorage), (b::DictionaryRow<typename b::ReaderOf<kStorage>::Value>(column, row)))
QUERN_STORAGE_BLOCK(DictionaryRows, "dictionary_rows", "", void, QUERN_DICTIONARY_ROWS_PARAMETERS, IsIndex(kStorage),
                    (b::DictionaryRows<typename b::ReaderOf<kStorage>::Value>(column, first, rows, n, out)))

// Keys.
QUERN_STORAGE_BLOCK(Pack, "pack", "", void, QUERN_PACK_PARAMETERS, b::HasLanes(kStorage) || kStorage == kBit,
                    b::PackColumn<kStorage> QUERN_PACK_ARGUMENTS)
QUERN_STORAGE_BLOCK(Hash, "hash", "", void, QUERN_HASH_PARAMETERS, true, b::HashColumn<kStorage> QUERN_HASH_ARGUMENTS)
QUERN_STORAGE_BLOCK(Equal, "equal", "equal", bool, QUERN_EQUAL_PARAMETERS, true,
                    b::EqualField<kStorage>(column, row, field, rule & ~kWeighsEquality, width))
QUERN_STORAGE_BLOCK(EqualCollated, "equal_collated", "equal", bool, QUERN_EQUAL_PARAMETERS,
                    b::IsVariableStorage(kStorage),
                    b::EqualField<kStorage>(column, row, field, rule | kWeighsEquality, width))
QUERN_BLOCK(PrefetchString, "prefetch_string", "", void, QUERN_PREFETCH_STRING_PARAMETERS,
            b::PrefetchString(field, width))
QUERN_STORAGE_BLOCK(Compare, "compare", "holds", bool, QUERN_COMPARE_PARAMETERS, IsNumber(kStorage),
                    b::CompareField<kStorage>(column, row, field, comparison, is_signed))

// Tuples.
QUERN_BLOCK(ZeroNullBits, "zero_null_bits", "", void, QUERN_ZERO_NULL_BITS_PARAMETERS,
            b::ZeroNullBits(tuples, n, tuple_bytes, offset, bytes))
QUERN_BLOCK(StoreRowIds, "store_rowid", "", void, QUERN_STORE_ROWID_PARAMETERS,
            b::StoreRowIds(first, rows, n, tuples, first_row_id, tuple_bytes, field_offset))
QUERN_STORAGE_BLOCK(Store, "store", "", void, QUERN_STORE_PARAMETERS, true,
                    b::StoreColumn<kStorage> QUERN_STORE_ARGUMENTS)

// Output.
QUERN_STORAGE_BLOCK(ReserveProbe, "reserve_probe", "fit", int64_t, QUERN_FIT_PROBE_PARAMETERS,
                    b::IsVariableStorage(kStorage),
                    b::FitStrings<kStorage>(b::ProbeSource<kStorage>{column, rows, nullable, 0}, n, out))
QUERN_STORAGE_BLOCK(
    ReserveField, "reserve_field", "fit", int64_t, QUERN_FIT_FIELD_PARAMETERS, b::IsVariableStorage(kStorage),
    b::FitStrings<kStorage>(b::TupleSource<kStorage>{base, tuples, field_offset, null_offset, null_mask, 0}, n, out))
QUERN_BLOCK(EmitRowIds, "emit_rowid", "", void, QUERN_EMIT_ROWID_PARAMETERS,
            b::EmitRowIds(rows, n, first_row_id, out, out_row, nullable))
QUERN_STORAGE_BLOCK(EmitProbe, "emit_probe", "", void, QUERN_EMIT_PROBE_PARAMETERS, true,
                    b::EmitColumn<kStorage>(b::ProbeSource<kStorage>{column, rows, nullable, width}, n, out, out_row,
                                            nullable))
QUERN_STORAGE_BLOCK(EmitField, "emit_field", "", void, QUERN_EMIT_FIELD_PARAMETERS, true,
                    b::EmitColumn<kStorage>(b::TupleSource<kStorage>{base, tuples, field_offset, null_offset, null_mask,
                                                                     width},
                                            n, out, out_row, null_mask != 0))

// Words of sort keys, and their order.
QUERN_BLOCK(EncodeNulls, "encode_nulls", "", void, QUERN_ENCODE_NULLS_PARAMETERS,
            b::EncodeNulls(column, first, rows, n, words, combine, shift, null_is_one))
QUERN_STORAGE_BLOCK(Encode, "encode", "", void, QUERN_ENCODE_PARAMETERS, b::HasLanes(kStorage) || kStorage == kBit,
                    (b::EncodeColumn<kStorage, kValuePart> QUERN_ENCODE_ARGUMENTS))
QUERN_BLOCK(EncodeHigh, "encode_high", "", void, QUERN_ENCODE_PARAMETERS,
            (b::EncodeColumn<k128, kHighPart> QUERN_ENCODE_ARGUMENTS))
QUERN_BLOCK(EncodeLow, "encode_low", "", void, QUERN_ENCODE_PARAMETERS,
            (b::EncodeColumn<k128, kValuePart> QUERN_ENCODE_ARGUMENTS))
QUERN_STORAGE_BLOCK(EncodeBytes, "encode", "", void, QUERN_ENCODE_BYTES_PARAMETERS,
                    b::IsVariableStorage(kStorage) || kStorage == kFixed,
                    b::EncodeBytes<kStorage> QUERN_ENCODE_BYTES_ARGUMENTS)
QUERN_STORAGE_BLOCK(Order, "order", "order", int32_t, QUERN_ORDER_PARAMETERS, true,
                    b::OrderField<kStorage>(left, right, is_signed, rule, width))

#undef QUERN_BLOCK
#undef QUERN_STORAGE_BLOCK

}  // namespace quern::block

#endif  // QUERN_RUNTIME_BLOCKS_BLOCK_TABLE_H_
