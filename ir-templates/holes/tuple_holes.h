// SPDX-License-Identifier: Apache-2.0
// The holes of all operators that read keys and that read and write tuples (holes.def says what each is for): calls of
// blocks, key by key and field by field. backend.h explains the notation. For keys i64,utf8 a compiled kernel gets
//
//     void quern_hole_hash_rows(layout, keys, first, rows, n, hashes) {
//       quern_block_hash_64(&keys[0], first, rows, n, hashes, /*combine=*/false, /*nullable=*/false, /*rule=*/0, 0);
//       quern_block_hash_var32(&keys[1], first, rows, n, hashes, /*combine=*/true, /*nullable=*/false, /*rule=*/0, 0);
//     }
//
// and inlining folds the constants away. If the first key is a dictionary column, its call becomes
//
//       uint32_t translated[kMaxBatchRows];
//       quern_block_dictionary_rows_32(&keys[0], first, rows, n, translated);
//       quern_block_hash_64(keys[0].dictionary, first, translated, n, hashes, ..);
#ifndef QUERN_IR_TEMPLATES_HOLES_TUPLE_HOLES_H_
#define QUERN_IR_TEMPLATES_HOLES_TUPLE_HOLES_H_

#include "ir-templates/holes/backend.h"

namespace quern::holes {

inline bool IsDictionary(const QuernField& field) { return field.index_storage != kNoStorage; }
inline bool IsNullEqual(const QuernField& key) { return key.nullable && key.null_equal; }

// ---- keys of a batch ----

template <class B>
ValueOf<B, uint32_t> FilterRows(B& b, const QuernRowLayout& d, auto /*layout*/, auto keys, auto first, auto rows,
                                auto n, auto out) {
  ValueOf<B, bool> filtered = false;
  for (uint32_t k = 0; k < d.num_keys; ++k) {
    if (!d.keys[k].nullable || d.keys[k].null_equal) continue;
    const auto key = b.Element(keys, k, "key");
    const auto has_nulls = b.IsNotNull(b.Load(key, QUERN_MEMBER(QuernColumn, validity)), "has_nulls");
    b.If(
        has_nulls,
        [&] {
          n = b.Call(block::FilterValid{}, key, first, rows, n, out);
          rows = out;
          filtered = true;
        },
        Changing{rows, "rows"}, Changing{n, "n"}, Changing{filtered, "filtered"});
  }
  return b.Select(filtered, n, kAllRows, "answer");
}

template <class B>
void PackRows(B& b, const QuernRowLayout& d, auto /*layout*/, auto keys, auto first, auto rows, auto n, auto words) {
  typename B::RowBuffer buffer;
  for (uint32_t k = 0; k < d.num_keys; ++k) {
    const QuernField& key = d.keys[k];
    const Source<B> source = Translate(b, key.index_storage, b.Element(keys, k, "key"), first, rows, n, buffer);
    b.Call(block::Pack{key.storage}, source.column, first, source.rows, n, words, k > 0, IsNullEqual(key),
           key.packed_shift, key.packed_null_bit);
  }
}

template <class B>
void HashRows(B& b, const QuernRowLayout& d, auto layout, auto keys, auto first, auto rows, auto n, auto hashes) {
  if (d.zero_hashes) return b.ZeroWords(hashes, n);
  typename B::RowBuffer buffer;
  for (uint32_t k = 0; k < d.num_keys; ++k) {
    const QuernField& key = d.keys[k];
    const Source<B> source = Translate(b, key.index_storage, b.Element(keys, k, "key"), first, rows, n, buffer);
    ValueOf<B, uint32_t> width_or_distance = key.width_bytes;
    if (blocks::IsVariableStorage(key.storage))
      width_or_distance = b.Load(layout, QUERN_MEMBER(QuernRowLayout, prefetch_string_bytes));
    b.Call(block::Hash{key.storage}, source.column, first, source.rows, n, hashes, k > 0, IsNullEqual(key), key.rule,
           width_or_distance);
  }
}

// ---- tuples ----

template <class B>
void StoreRows(B& b, const QuernRowLayout& d, auto /*layout*/, auto keys, auto payload, auto first, auto rows, auto n,
               auto first_row_id, auto tuples) {
  typename B::RowBuffer buffer;
  const auto store = [&](const QuernField& field, auto column) {
    if (field.storage == kRowId)
      return b.Call(block::StoreRowIds{}, first, rows, n, tuples, first_row_id, d.tuple_bytes, field.tuple_offset);
    const Source<B> source = Translate(b, field.index_storage, column, first, rows, n, buffer);
    b.Call(block::Store{field.storage}, source.column, first, source.rows, n, tuples, d.tuple_bytes, field.tuple_offset,
           field.null_offset, field.null_mask, field.rule, field.width_bytes);
  };
  if (d.null_bits_bytes != 0)
    b.Call(block::ZeroNullBits{}, tuples, n, d.tuple_bytes, d.null_bits_offset, d.null_bits_bytes);
  for (uint32_t k = 0; k < d.num_keys && d.packed_bytes == 0; ++k) store(d.keys[k], b.Element(keys, k, "key"));
  for (uint32_t f = 0; f < d.num_fields; ++f) store(d.fields[f], b.Element(payload, f, "payload"));
}

template <class B>
void PrefetchKeys(B& b, const QuernRowLayout& d, auto /*layout*/, auto tuple) {
  for (uint32_t k = 0; k < d.num_keys; ++k) {
    const QuernField& key = d.keys[k];
    if (!blocks::IsVariableStorage(key.storage)) continue;
    b.Call(block::PrefetchString{}, b.Offset(tuple, key.tuple_offset, "field"), key.width_bytes);
  }
}

// Equal values, looked up in the dictionary if there is one. Weighing strings is a block of its own, so that kernels
// without it do not load it.
template <class B>
ValueOf<B, bool> EqualValue(B& b, const QuernField& key, ValueOf<B, const QuernColumn*> column,
                            ValueOf<B, uint32_t> row, auto tuple) {
  if (IsDictionary(key)) {
    row = b.Call(block::DictionaryRow{key.index_storage}, column, row);
    column = b.Load(column, QUERN_MEMBER(QuernColumn, dictionary));
  }
  const auto field = b.Offset(tuple, key.tuple_offset, "field");
  if ((key.rule & kWeighsEquality) != 0)
    return b.Call(block::EqualCollated{key.storage}, column, row, field, key.rule, key.width_bytes);
  return b.Call(block::Equal{key.storage}, column, row, field, key.rule, key.width_bytes);
}

// Null equals null and no value.
template <class B>
ValueOf<B, bool> EqualKey(B& b, const QuernField& key, auto column, auto row, auto tuple) {
  if (!IsNullEqual(key)) return EqualValue(b, key, column, row, tuple);
  const auto stored_null = b.TestBits(tuple, key.null_offset, key.null_mask, "stored_null");
  const auto is_null = b.Not(b.Call(block::Valid{}, column, row), "is_null");
  const auto both_null = b.And(stored_null, is_null, "both_null");
  const auto any_null = b.Or(stored_null, is_null, "any_null");
  return b.Choose(any_null, both_null, [&] { return EqualValue(b, key, column, row, tuple); }, "equal");
}

// Keys that are compared as one machine word each and have no nulls are cheap: a compiled kernel compares them first,
// without branches between them.
template <class B>
ValueOf<B, bool> EqualRow(B& b, const QuernRowLayout& d, auto /*layout*/, auto keys, auto row, auto tuple) {
  const auto is_word = [&](uint32_t k) {
    const QuernField& key = d.keys[k];
    return !IsNullEqual(key) && !IsDictionary(key) && !blocks::IsVariableStorage(key.storage) && key.storage != kFixed;
  };
  return b.All(d.num_keys, is_word,
               [&](uint32_t k) { return EqualKey(b, d.keys[k], b.Element(keys, k, "key"), row, tuple); });
}

// ---- output ----

// `fit`: n, as a number that may be negative.
template <class B>
ValueOf<B, int64_t> ReserveFieldsOf(B& b, const QuernRowLayout& d, auto args, auto tuples, auto n,
                                    ValueOf<B, int64_t> fit) {
  for (uint32_t f = 0; f < d.num_output_fields; ++f) {
    const QuernField& field = d.fields[f];
    if (!blocks::IsVariableStorage(field.storage)) continue;
    const auto base = b.Load(args, QUERN_MEMBER(QuernOutputArgs, tuples), "base");
    const auto out = b.Element(b.Load(args, QUERN_MEMBER(QuernOutputArgs, columns)), f, "out");
    fit = b.Call(block::ReserveField{field.storage}, base, tuples, n, out, field.tuple_offset, field.null_offset,
                 field.null_mask);
    if (b.StopsUnless(b.IsPositive(fit, "fits"), fit)) return fit;
    n = b.Narrow(fit, "n");
  }
  return fit;
}

template <class B>
ValueOf<B, int64_t> ReserveFields(B& b, const QuernRowLayout& d, auto args, auto tuples, auto n) {
  return ReserveFieldsOf(b, d, args, tuples, n, b.Widen(n, "fit"));
}

// `out_row`: args->num_rows.
template <class B>
void EmitFieldsTo(B& b, const QuernRowLayout& d, auto args, auto tuples, auto n, auto out_row) {
  for (uint32_t f = 0; f < d.num_output_fields; ++f) {
    const QuernField& field = d.fields[f];
    const auto base = b.Load(args, QUERN_MEMBER(QuernOutputArgs, tuples), "base");
    const auto out = b.Element(b.Load(args, QUERN_MEMBER(QuernOutputArgs, columns)), f, "out");
    b.Call(block::EmitField{field.storage == kRowId ? k64 : field.storage}, base, tuples, n, out, out_row,
           field.tuple_offset, field.null_offset, field.null_mask, field.width_bytes);
  }
}

template <class B>
void EmitFields(B& b, const QuernRowLayout& d, auto args, auto tuples, auto n) {
  EmitFieldsTo(b, d, args, tuples, n, b.Load(args, QUERN_MEMBER(QuernOutputArgs, num_rows), "out_row"));
}

}  // namespace quern::holes

#endif  // QUERN_IR_TEMPLATES_HOLES_TUPLE_HOLES_H_
