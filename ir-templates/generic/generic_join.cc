// SPDX-License-Identifier: Apache-2.0
// The generic join kernel: the template ir-templates/join.cc, compiled natively, with holes that interpret the
// descriptor. It needs no compilation and its results agree with a compiled kernel's to the bit, because both use the
// same template and the same blocks.
//
// Batch holes dispatch once per batch and column, which costs little compared to the loops; row holes dispatch once per
// row and column. A compiled kernel saves that dispatch and the calls. Dispatch is a switch over the storage that
// selects an instantiation:
//
//     for (key of descriptor)
//       switch (key.storage) { case k64: HashColumn<k64>(..); case kVar32: HashColumn<kVar32>(..); .. }
#include "ir-templates/generic/generic_join.h"

#include "ir-templates/holes.h"
#include "runtime/blocks/blocks.h"
#include "runtime/blocks/storage_dispatch.h"

extern "C" {
#define QUERN_JOIN_ENTRY(field, result, parameters) result quern_join_##field parameters;
#include "runtime/abi/join_entry_points.def"
}

namespace quern {
namespace {

namespace b = blocks;

bool IsDictionary(const QuernField& field) { return field.index_storage != kNoStorage; }

// The column and row of a value, looked up in the dictionary if there is one.
struct Cell {
  const QuernColumn* column;
  uint32_t row;
};

Cell CellOf(const QuernField& field, const QuernColumn* column, uint32_t row) {
  if (!IsDictionary(field)) return {column, row};
  return {column->dictionary, TranslateRow(field.index_storage, column, row)};
}

bool EqualKey(const QuernField& key, const QuernColumn* column, uint32_t row, const uint8_t* tuple) {
  if (key.nullable && key.null_equal) {
    bool stored_null = (tuple[key.null_offset] & key.null_mask) != 0;
    bool is_null = !b::IsValid(column, row);
    if (stored_null || is_null) return stored_null && is_null;
  }
  Cell cell = CellOf(key, column, row);
  return DispatchStorage(key.storage, [&](auto tag) {
    return b::EqualField<decltype(tag)::value>(cell.column, cell.row, tuple + key.tuple_offset, key.rule,
                                               key.width_bytes);
  });
}

// Rows of one column, translated if it is a dictionary.
struct ColumnRows {
  const QuernColumn* column;
  const uint32_t* rows;
  uint32_t translated[kMaxBatchRows];

  ColumnRows(const QuernField& field, const QuernColumn* source, uint64_t first, const uint32_t* source_rows,
             uint32_t n)
      : column(source), rows(source_rows) {
    if (!IsDictionary(field)) return;
    TranslateRows(field.index_storage, source, first, source_rows, n, translated);
    column = source->dictionary;
    rows = translated;
  }
};

// The rows of one batch and the tuples to which they are stored.
struct StoreTarget {
  uint64_t first;
  const uint32_t* rows;
  uint32_t n;
  uint64_t first_row_id;
  uint8_t* tuples;
  uint32_t tuple_bytes;
};

void StoreField(const QuernField& field, const QuernColumn* column, const StoreTarget& to) {
  if (field.storage == kRowId) {
    return b::StoreRowIds(to.first, to.rows, to.n, to.tuples, to.first_row_id, to.tuple_bytes, field.tuple_offset);
  }
  ColumnRows source(field, column, to.first, to.rows, to.n);
  DispatchStorage(field.storage, [&](auto tag) {
    b::StoreColumn<decltype(tag)::value>(source.column, to.first, source.rows, to.n, to.tuples, to.tuple_bytes,
                                         field.tuple_offset, field.null_offset, field.null_mask, field.rule,
                                         field.width_bytes);
  });
}

template <class F>
void DispatchString(Storage storage, F&& f) {
  if (storage == kVar32) f(StorageTag<kVar32>{});
  if (storage == kVar64) f(StorageTag<kVar64>{});
  if (storage == kView) f(StorageTag<kView>{});
}

Storage OutputStorage(const QuernField& field) { return field.storage == kRowId ? k64 : field.storage; }

}  // namespace

QuernJoinEntryPoints GenericJoinKernel() {
  return {
#define QUERN_JOIN_ENTRY(field, result, parameters) quern_join_##field,
#include "runtime/abi/join_entry_points.def"
  };
}

}  // namespace quern

using namespace quern;  // NOLINT: the holes below are C symbols that use the code above

extern "C" {

uint32_t quern_hole_tuple_bytes(const QuernJoinDescriptor* descriptor) { return descriptor->tuple_bytes; }
bool quern_hole_prefetches(const QuernJoinDescriptor* descriptor) { return descriptor->prefetches; }
uint32_t quern_hole_matched_offset(const QuernJoinDescriptor* descriptor) { return descriptor->matched_offset; }
bool quern_hole_stops_at_first(const QuernJoinDescriptor* descriptor) { return descriptor->stops_at_first; }
bool quern_hole_stops_at_matched(const QuernJoinDescriptor* descriptor) { return descriptor->stops_at_matched; }

uint32_t quern_hole_filter_rows(const QuernJoinDescriptor* descriptor, const QuernColumn* keys, uint64_t first,
                                const uint32_t* rows, uint32_t n, uint32_t* out) {
  bool filtered = false;
  for (uint32_t k = 0; k < descriptor->num_keys; ++k) {
    if (!descriptor->keys[k].nullable || descriptor->keys[k].null_equal || keys[k].validity == nullptr) continue;
    n = b::FilterValid(&keys[k], first, rows, n, out);
    rows = out;
    filtered = true;
  }
  return filtered ? n : kAllRows;
}

void quern_hole_pack_rows(const QuernJoinDescriptor* descriptor, const QuernColumn* keys, uint64_t first,
                          const uint32_t* rows, uint32_t n, uint64_t* words) {
  for (uint32_t k = 0; k < descriptor->num_keys; ++k) {
    const QuernField& key = descriptor->keys[k];
    ColumnRows source(key, &keys[k], first, rows, n);
    DispatchStorage(key.storage, [&](auto tag) {
      constexpr Storage kStorage = decltype(tag)::value;
      if constexpr (b::HasLanes(kStorage) || kStorage == kBit) {  // no other storage fits a word: WordBits
        b::PackColumn<kStorage>(source.column, first, source.rows, n, words, k > 0, key.nullable && key.null_equal,
                                key.packed_shift, key.packed_null_bit);
      }
    });
  }
}

void quern_hole_hash_rows(const QuernJoinDescriptor* descriptor, const QuernColumn* keys, uint64_t first,
                          const uint32_t* rows, uint32_t n, uint64_t* hashes) {
  if (descriptor->zero_hashes) {
    __builtin_memset(hashes, 0, n * sizeof(uint64_t));
    return;
  }
  for (uint32_t k = 0; k < descriptor->num_keys; ++k) {
    const QuernField& key = descriptor->keys[k];
    ColumnRows source(key, &keys[k], first, rows, n);
    DispatchStorage(key.storage, [&](auto tag) {
      b::HashColumn<decltype(tag)::value>(
          source.column, first, source.rows, n, hashes, k > 0, key.nullable && key.null_equal, key.rule,
          b::IsVariableStorage(key.storage) ? descriptor->prefetch_string_bytes : key.width_bytes);
    });
  }
}

void quern_hole_store_rows(const QuernJoinDescriptor* descriptor, const QuernColumn* keys, const QuernColumn* payload,
                           uint64_t first, const uint32_t* rows, uint32_t n, uint64_t first_row_id, uint8_t* tuples) {
  const StoreTarget target = {first, rows, n, first_row_id, tuples, descriptor->tuple_bytes};
  b::ZeroNullBits(tuples, n, descriptor->tuple_bytes, descriptor->null_bits_offset, descriptor->null_bits_bytes);
  for (uint32_t k = 0; k < descriptor->num_keys && descriptor->packed_bytes == 0; ++k)
    StoreField(descriptor->keys[k], &keys[k], target);
  for (uint32_t c = 0; c < descriptor->num_build; ++c) StoreField(descriptor->build[c], &payload[c], target);
  for (uint32_t r = 0; r < descriptor->num_residual; ++r)
    StoreField(descriptor->build_residual[r], &payload[descriptor->num_build + r], target);
  if (descriptor->host_row != nullptr) StoreField(*descriptor->host_row, nullptr, target);
}

bool quern_hole_equal_row(const QuernJoinDescriptor* descriptor, const QuernColumn* keys, uint32_t row,
                          const uint8_t* tuple) {
  for (uint32_t k = 0; k < descriptor->num_keys; ++k)
    if (!EqualKey(descriptor->keys[k], &keys[k], row, tuple)) return false;
  return true;
}

void quern_hole_prefetch_keys(const QuernJoinDescriptor* descriptor, const uint8_t* tuple) {
  for (uint32_t k = 0; k < descriptor->num_keys; ++k) {
    const QuernField& key = descriptor->keys[k];
    if (b::IsVariableStorage(key.storage)) b::PrefetchString(tuple + key.tuple_offset, key.width_bytes);
  }
}

bool quern_hole_residual_row(const QuernJoinDescriptor* descriptor, const QuernColumn* payload, uint32_t row,
                             const uint8_t* tuple) {
  for (uint32_t r = 0; r < descriptor->num_residual; ++r) {
    const QuernField& field = descriptor->build_residual[r];
    const QuernColumn* column = &payload[descriptor->num_probe + r];
    if (field.nullable && (!b::IsValid(column, row) || (tuple[field.null_offset] & field.null_mask) != 0)) return false;
    const bool holds = DispatchStorage(field.storage, [&](auto tag) {
      constexpr Storage kStorage = decltype(tag)::value;
      if constexpr (b::IsVariableStorage(kStorage) || kStorage == kFixed) return false;  // ValidateSpec rejects them
      else return b::CompareField<kStorage>(column, row, tuple + field.tuple_offset, field.comparison, field.is_signed);
    });
    if (!holds) return false;
  }
  return true;
}

int64_t quern_hole_reserve_matches(QuernJoinProbeArgs* args, const uint32_t* rows, const uint64_t* tuples, uint32_t n) {
  const QuernJoinDescriptor* descriptor = args->descriptor;
  int64_t fit = n;
  for (uint32_t c = 0; c < descriptor->num_probe && fit > 0; ++c) {
    const QuernField& field = descriptor->probe[c];
    if (!b::IsVariableStorage(field.storage)) continue;
    ColumnRows source(field, &args->payload[c], 0, rows, static_cast<uint32_t>(fit));
    DispatchString(field.storage, [&](auto tag) {
      constexpr Storage kStorage = decltype(tag)::value;
      fit = b::FitStrings<kStorage>(b::ProbeSource<kStorage>{source.column, source.rows, field.nullable, 0},
                                    static_cast<uint32_t>(fit), &args->out_probe[c]);
    });
  }
  for (uint32_t c = 0; c < descriptor->num_build && fit > 0; ++c) {
    const QuernField& field = descriptor->build[c];
    if (!b::IsVariableStorage(field.storage)) continue;
    DispatchString(field.storage, [&](auto tag) {
      constexpr Storage kStorage = decltype(tag)::value;
      fit = b::FitStrings<kStorage>(
          b::BuildSource<kStorage>{args->tuples, tuples, field.tuple_offset, field.null_offset, field.null_mask, 0},
          static_cast<uint32_t>(fit), &args->out_build[c]);
    });
  }
  return fit;
}

void quern_hole_emit_matches(QuernJoinProbeArgs* args, const uint32_t* rows, const uint64_t* tuples, uint32_t n) {
  const QuernJoinDescriptor* descriptor = args->descriptor;
  for (uint32_t c = 0; c < descriptor->num_probe; ++c) {
    const QuernField& field = descriptor->probe[c];
    if (field.storage == kRowId) {
      b::EmitRowIds(rows, n, args->first_row_id, &args->out_probe[c], args->out_rows, field.nullable);
      continue;
    }
    ColumnRows source(field, &args->payload[c], 0, rows, n);
    DispatchStorage(field.storage, [&](auto tag) {
      constexpr Storage kStorage = decltype(tag)::value;
      b::EmitColumn<kStorage>(b::ProbeSource<kStorage>{source.column, source.rows, field.nullable, field.width_bytes},
                              n, &args->out_probe[c], args->out_rows, field.nullable);
    });
  }
  for (uint32_t c = 0; c < descriptor->num_build; ++c) {
    const QuernField& field = descriptor->build[c];
    DispatchStorage(OutputStorage(field), [&](auto tag) {
      constexpr Storage kStorage = decltype(tag)::value;
      b::EmitColumn<kStorage>(b::BuildSource<kStorage>{args->tuples, tuples, field.tuple_offset, field.null_offset,
                                                       field.null_mask, field.width_bytes},
                              n, &args->out_build[c], args->out_rows, field.null_mask != 0);
    });
  }
}

}  // extern "C"
