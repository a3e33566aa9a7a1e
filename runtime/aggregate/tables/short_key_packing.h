// SPDX-License-Identifier: Apache-2.0
// Keys of few bytes as parts of a word.
#ifndef QUERN_RUNTIME_AGGREGATE_TABLES_SHORT_KEY_PACKING_H_
#define QUERN_RUNTIME_AGGREGATE_TABLES_SHORT_KEY_PACKING_H_

#include <cstdint>

#include "runtime/aggregate/tables/group_table.h"

namespace quern {

// Where a key has its place in a word.
struct WordPart {
  uint32_t shift;               // bits
  bool uses_vectors;            // false, of tests: without what only some processors have
  uint32_t prefetch_bytes = 0;  // distance, for offsets of four bytes, and as many letters as offsets; 0: none
};

// Adds each row's value to its word: of a string a byte more than its length (modulo 256), then its first bytes, zero
// behind the last; whether they fit is the caller's to see. Answers the longest string's length; of other keys 0.
// *Cost*: 0.1 ns a row for neighbouring strings of one letter or two, 2 ns for others.
uint32_t AddShortKeys(Storage storage, const QuernColumn& column, const KeyRows& rows, const WordPart& part,
                      uint64_t* words);

}  // namespace quern

#endif  // QUERN_RUNTIME_AGGREGATE_TABLES_SHORT_KEY_PACKING_H_
