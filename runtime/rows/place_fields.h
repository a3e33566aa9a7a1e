// SPDX-License-Identifier: Apache-2.0
// Fields of tuples as columns whose row numbers are given, in place of rows one after the other.
#ifndef QUERN_RUNTIME_ROWS_PLACE_FIELDS_H_
#define QUERN_RUNTIME_ROWS_PLACE_FIELDS_H_

#include <cstdint>

#include "runtime/abi/kernel_abi.h"

namespace quern {

// Tuples, and the row of the columns that each becomes: rows differ, and are in any order.
struct PlacedTuples {
  const uint8_t* base;
  const uint64_t* tuples;  // byte offsets from base
  const uint32_t* rows;
  uint32_t n;
  uint32_t prefetch_distance;  // of the table's probe: 0 where its tuples are not prefetched
  bool copies_strings;         // else views point to the strings of the tuples: address_views.h
  bool prefetches_strings;     // somebody reads them soon
  uint64_t left_out = 0;       // bit f: field f, of the first 64, is not written
};

// The tuples from number `done` on, of which so few are taken at a time that they stay in the L1 cache from field to
// field.
PlacedTuples SomeOf(const PlacedTuples& placed, uint32_t done);
// All lines of the tuples: the probe has touched the first ones alone, which have the keys.
void PrefetchTuples(const QuernRowLayout& layout, const PlacedTuples& placed);

// Writes the output fields of the tuples, but those left out, to `columns`, whose other rows stay as they are. Storages
// of fields: all but strings with offsets, which would have to follow one another. Returns how many of the tuples were
// written, the first ones: fewer than n where copies of strings reach the limit of their offsets, or where memory was
// refused for more. Negative: a QuernCode. *Cost*: one pass for each field. *Threads*: any, with columns of their own.
int64_t PlaceFields(const QuernRowLayout& layout, const PlacedTuples& placed, QuernOutColumn* columns);

}  // namespace quern

#endif  // QUERN_RUNTIME_ROWS_PLACE_FIELDS_H_
