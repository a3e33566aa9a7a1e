// SPDX-License-Identifier: Apache-2.0
// Packs short keys into parts of a word.
#ifndef QUERN_RUNTIME_AGGREGATE_TABLES_SHORT_KEY_PACKING_H_
#define QUERN_RUNTIME_AGGREGATE_TABLES_SHORT_KEY_PACKING_H_

#include <cstdint>

#include "runtime/aggregate/tables/group_table.h"

namespace quern {

// The position of a key in a word.
struct WordPart {
  uint32_t shift;               // bits
  bool uses_vectors;            // false only in tests: use no instructions that only some processors have
  uint32_t prefetch_bytes = 0;  // distance for offsets of four bytes, and as many letters, and for views; 0: none
};

// Adds each row's value to its word: for a string, one byte with its length plus one (modulo 256), then its first
// bytes, padded with zeros. The caller checks whether they fit: where the longest string has more than seven
// bytes, words hold anything. Returns its length; 0 for other keys.
// *Cost*: 0.1 ns a row for neighbouring strings of one or two letters, 0.5 for neighbouring views, 2 for others.
uint32_t AddShortKeys(Storage storage, const QuernColumn& column, const KeyRows& rows, const WordPart& part,
                      uint64_t* words);

}  // namespace quern

#endif  // QUERN_RUNTIME_AGGREGATE_TABLES_SHORT_KEY_PACKING_H_
