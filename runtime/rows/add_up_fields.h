// SPDX-License-Identifier: Apache-2.0
// Sums of fields of tuples, without a row for each.
#ifndef QUERN_RUNTIME_ROWS_ADD_UP_FIELDS_H_
#define QUERN_RUNTIME_ROWS_ADD_UP_FIELDS_H_

#include <cstdint>

#include "runtime/rows/place_fields.h"

namespace quern {

// The sizes of values that are added up: from -2^37 to 2^37 - 1. Sums of 2^25 of them fit 62 bits.
constexpr uint32_t kAddedBits = 37;
constexpr uint64_t kMostAddedRows = uint64_t{1} << 25;

// Adds up i64 fields without nulls, over up to kMostAddedRows tuples. fields: bit f: field f of the first 64. totals:
// by field; receives those of `fields`. Returns false where a value is of another size; the totals then mean nothing.
// *Cost*: one load of 32 bytes for four fields that follow one another. *Threads*: any, with totals of their own.
bool AddUpFields(const QuernRowLayout& layout, uint64_t fields, const PlacedTuples& placed, int64_t* totals);

}  // namespace quern

#endif  // QUERN_RUNTIME_ROWS_ADD_UP_FIELDS_H_
