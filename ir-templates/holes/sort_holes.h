// SPDX-License-Identifier: Apache-2.0
// The holes of sorts that read keys; those of tuple_holes.h read and write tuples. backend.h explains the notation. For
// keys i32:nullable,i64:desc a compiled kernel gets
//
//     void quern_hole_encode_rows(descriptor, keys, first, rows, n, words, incomplete) {
//       quern_block_encode_nulls(&keys[0], first, rows, n, words[0], /*combine=*/false, /*shift=*/63,
//                                /*null_is_one=*/true);
//       quern_block_encode_32(&keys[0], first, rows, n, words[0], /*combine=*/true, /*nullable=*/true, /*shift=*/31,
//                             0x80000000);
//       quern_block_encode_64(&keys[1], first, rows, n, words[1], /*combine=*/false, /*nullable=*/false, 0,
//                             0x7fff'ffff'ffff'ffff);
//     }
//
// and inlining turns the last call into a loop of a load, a xor and a store. Two tuples are compared key by key in
// straight-line code:
//
//     int32_t quern_hole_compare_tuples(descriptor, a, b) {
//       int32_t order = quern_block_order_64(/*descending: swapped*/ b + 8, a + 8, /*is_signed=*/true, false, 0);
//       if (order != 0) return order;
//       ..
//       return 0;
//     }
#ifndef QUERN_IR_TEMPLATES_HOLES_SORT_HOLES_H_
#define QUERN_IR_TEMPLATES_HOLES_SORT_HOLES_H_

#include "ir-templates/holes/backend.h"

namespace quern::holes {

// The rows of a batch, and the arrays that receive the first num_words of their key words.
template <class B>
struct EncodedRows {
  ValueOf<B, const QuernSortDescriptor*> descriptor;
  ValueOf<B, const QuernColumn*> keys;
  ValueOf<B, uint64_t> first;
  ValueOf<B, const uint32_t*> rows;
  ValueOf<B, uint32_t> n;
  ValueOf<B, uint64_t* const*> words;
  uint32_t num_words;
  ValueOf<B, uint32_t*> incomplete;
};

// 128 bits take two words: the high half, then the low half.
template <class B>
void EncodeNumber(B& b, const EncodedRows<B>& r, const QuernSortKey& key, const QuernSortPart& part,
                  const Source<B>& source, auto words) {
  const auto encode = [&](auto block) {
    b.Call(block, source.column, r.first, source.rows, r.n, words, !part.begins_word, key.nullable, part.shift,
           SortFlip(&key, &part));
  };
  if (key.storage != k128) encode(block::Encode{key.storage});
  else if (part.kind == kHighPart) encode(block::EncodeHigh{});
  else encode(block::EncodeLow{});
}

template <class B>
void EncodeKey(B& b, const QuernSortDescriptor& d, const EncodedRows<B>& r, uint32_t k, typename B::RowBuffer& buffer) {
  const QuernSortKey& key = d.keys[k];
  const auto column = b.Element(r.keys, k, "key");
  const Source<B> source = Translate(b, key.index_storage, column, r.first, r.rows, r.n, buffer);
  for (uint32_t p = key.first_part; p < key.first_part + key.num_parts; ++p) {
    const QuernSortPart& part = d.parts[p];
    if (part.word >= r.num_words) return;
    if (part.kind == kBytesPart) {  // all byte parts at once
      return b.Call(block::EncodeBytes{key.storage}, r.descriptor, k, source.column, r.first, source.rows, r.n, r.words,
                    r.num_words, r.incomplete);
    }
    const auto words = b.LoadElement(r.words, part.word, "word");
    if (part.kind == kNullPart) {
      b.Call(block::EncodeNulls{}, column, r.first, r.rows, r.n, words, !part.begins_word, part.shift,
             !key.nulls_first);
    } else {
      EncodeNumber(b, r, key, part, source, words);
    }
  }
}

template <class B>
void EncodeKeys(B& b, const QuernSortDescriptor& d, const EncodedRows<B>& r) {
  typename B::RowBuffer buffer;
  for (uint32_t k = 0; k < d.num_keys; ++k)
    if (d.parts[d.keys[k].first_part].word < r.num_words) EncodeKey(b, d, r, k, buffer);
}

template <class B>
void EncodeRows(B& b, const QuernSortDescriptor& d, auto descriptor, auto keys, auto first, auto rows, auto n,
                auto words, auto incomplete) {
  EncodeKeys<B>(b, d, {descriptor, keys, first, rows, n, words, d.num_words, incomplete});
}

// If there is only one word, the entry point that encodes all words does the same.
template <class B>
void EncodeLeadingRows(B& b, const QuernSortDescriptor& d, auto descriptor, auto keys, auto first, auto rows, auto n,
                       auto lead) {
  typename B::template Variable<uint32_t> incomplete(b, "incomplete");
  typename B::template Variable<uint64_t*> words(b, "words");
  incomplete.Set(b, 0);
  words.Set(b, lead);
  if (d.num_words == 1 &&
      b.CallsEntryPoint("quern_sort_encode", descriptor, keys, first, rows, n, words.Address(), incomplete.Address()))
    return;
  EncodeKeys<B>(b, d, {descriptor, keys, first, rows, n, words.Address(), 1, incomplete.Address()});
}

template <class B>
auto CompareValues(B& b, const QuernSortKey& key, const QuernField& field, auto x, auto y) {
  const auto left = b.Offset(key.descending ? y : x, field.tuple_offset, "left");
  const auto right = b.Offset(key.descending ? x : y, field.tuple_offset, "right");
  const auto order = b.Call(block::Order{key.storage}, left, right, key.is_signed, key.rule, key.width_bytes);
  return Comparison{b.IsZero(order, "equal"), [=] { return order; }};
}

// At least one is null.
template <class B>
auto CompareNulls(B& b, const QuernSortKey& key, auto x_is_null, auto y_is_null) {
  const ValueOf<B, int32_t> null_is_x = key.nulls_first ? -1 : 1, null_is_y = key.nulls_first ? 1 : -1;
  const auto both = b.And(x_is_null, y_is_null, "both");
  return Comparison{both, [=, &b] { return b.Select(x_is_null, null_is_x, null_is_y, "order"); }};
}

// Whether the key decides; then *order says how. A compiled kernel returns it itself.
template <class B>
bool StopsAtKey(B& b, const QuernSortKey& key, const QuernField& field, auto x, auto y, ValueOf<B, int32_t>* order) {
  ValueOf<B, bool> x_is_null = false, y_is_null = false, any_is_null = false;
  if (field.null_mask != 0) {
    x_is_null = b.TestBits(x, field.null_offset, field.null_mask, "is_null");
    y_is_null = b.TestBits(y, field.null_offset, field.null_mask, "is_null");
    any_is_null = b.Or(x_is_null, y_is_null, "any");
  }
  const auto nulls = [&] { return CompareNulls(b, key, x_is_null, y_is_null); };
  const auto values = [&] { return CompareValues(b, key, field, x, y); };
  return b.StopsUnlessEqual(any_is_null, nulls, values, order);
}

template <class B>
ValueOf<B, int32_t> CompareTuples(B& b, const QuernSortDescriptor& d, auto /*descriptor*/, auto x, auto y) {
  for (uint32_t k = 0; k < d.num_keys; ++k) {
    const QuernSortKey& key = d.keys[k];
    if (key.field == kNoField) continue;
    ValueOf<B, int32_t> order = 0;
    if (StopsAtKey(b, key, *SortFieldOf(&d, &key), x, y, &order)) return order;
  }
  return 0;
}

}  // namespace quern::holes

#endif  // QUERN_IR_TEMPLATES_HOLES_SORT_HOLES_H_
