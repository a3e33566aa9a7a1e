// SPDX-License-Identifier: Apache-2.0
// Strings in lanes (map_abi.h): `low` has the address of a string's bytes, `high` their number. Compiled and generic
// kernels call the same functions for eight rows at a time, so that both agree. A call for eight rows costs little
// beside the strings' bytes, and saves what inlining twenty loops would take to compile.
#ifndef QUERN_RUNTIME_BLOCKS_STRING_FUNCTIONS_H_
#define QUERN_RUNTIME_BLOCKS_STRING_FUNCTIONS_H_

#include "runtime/abi/map_abi.h"
#include "runtime/base/bytes.h"

enum : uint64_t { kTrimsStart = 1, kTrimsEnd = 2 };

namespace quern {

// The bytes of UTF-8 that begin a character.
inline bool BeginsCharacter(uint8_t byte) { return (byte & 0xC0) != 0x80; }
inline uint64_t NumCharacters(blocks::Bytes s) {
  uint64_t n = 0;
  for (uint32_t i = 0; i < s.length; ++i) n += BeginsCharacter(s.data[i]) ? 1 : 0;
  return n;
}

}  // namespace quern

extern "C" {
// Computes the rows whose bits are set in `rows`, all of whose arguments have a value; other rows of `out` are left.
// Returns the bits of those that have no result; their lanes are not to be used. a, b, c: as many as the function has.
// low, high: its constants. New bytes lie in the thread's StringScratch; others stay where the argument has them.
#define QUERN_STRING_FUNCTION(name)                                                                                  \
  uint8_t quern_rt_##name(const QuernLanes* a, const QuernLanes* b, const QuernLanes* c, uint8_t rows, uint64_t low, \
                          uint64_t high, QuernLanes* out);
#include "runtime/blocks/string_functions.def"

// The strings of eight rows of a column, rows first, first + 1, .. or those that `rows` names; index: of a dictionary,
// else kNoStorage. Null, in columns that may have nulls, where the row or the dictionary's value is.
void quern_rt_load_strings(const QuernColumn* column, uint64_t first, const uint32_t* rows, Storage storage,
                           Storage index, bool nullable, QuernLanes* out);

// Empties the thread's StringScratch: what a kernel calls before each few rows, if it has functions of strings.
void quern_rt_empty_strings();

// Appends up to eight strings to a result column of kVar32, kVar64 or kView, of which n are left, at `row` and behind
// it, a multiple of 8; the string of a null is empty. Returns the rows that have failed. Where memory is refused, or
// the column's offsets do not reach, some rows are left out, and RefusedCalls or the thread's StringScratch knows it.
uint8_t quern_rt_store_strings(const QuernLanes* x, QuernOutColumn* column, uint64_t* null_count, uint64_t row,
                               uint32_t n, Storage storage, bool nullable);
}

#endif  // QUERN_RUNTIME_BLOCKS_STRING_FUNCTIONS_H_
