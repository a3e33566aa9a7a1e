// SPDX-License-Identifier: Apache-2.0
// The key filter of a join's table: a bitmap of the keys that its rows have, which is small beside the table. A probe
// row whose bit is not set has no match, and is neither hashed nor looked up:
//
//     build rows 1,000 parts of one brand, keys in 1 .. 200,000     bitmap of 25 KB, 1 bit in 200 set
//     probe rows 6 M sales                                          1 ns each; 30,000 of them reach the table
//
// Packed keys are tested by their word. Of several keys that do not fit one, the first integer is tested alone, so that
// rows may pass whose other keys have no match. Engines push such filters into the scan (DuckDB, Umbra and others);
// here they stand in front of the probe, which has the keys in hand.
#ifndef QUERN_RUNTIME_JOIN_KEY_FILTER_H_
#define QUERN_RUNTIME_JOIN_KEY_FILTER_H_

#include <cstdint>

#include "runtime/abi/kernel_abi.h"
#include "runtime/join/join_table.h"
#include "runtime/join/tables/packed_key_table.h"
#include "runtime/rows/key_words.h"
#include "runtime/rows/tuple_store.h"

namespace quern {

// The key that a filter of such rows tests: of packed keys all, as 0; kNoFilterKey where none is an integer without
// nulls that match.
constexpr uint32_t kNoFilterKey = UINT32_MAX;
uint32_t FilterKeyOf(const QuernRowLayout& layout);
// The sign bit of its words (join_table.h).
uint64_t FilterSignBit(const QuernRowLayout& layout, uint32_t key);

// The range of an unpacked key over these tuples; stops early where it has become wider than `limit`.
PackedKeyRange RangeOfKey(const QuernRowLayout& layout, uint32_t key, const TupleList& spans, uint64_t limit);
// Sets the bits of an unpacked key of these tuples.
void FillKeyFilter(const JoinTable& table, const QuernRowLayout& layout, const TupleList& spans, uint64_t* bitmap);

// Loads an unpacked key of n rows of a batch.
void LoadFilterKeys(const QuernRowLayout& layout, uint32_t key, const QuernColumn* keys, const uint32_t* rows,
                    uint32_t n, uint64_t* words);
// Keeps those of up to kMaxBatchRows rows whose words the bitmap has, in their order, and returns their number.
// numbers: the rows' numbers, or null: first + i; kept: receives those of the rows that stay, has room for n, and may
// be the array `numbers`. kept_words: receives the words of these rows, and may be `words`; null: nobody wants them.
// *Cost*: about 0.5 ns a row with AVX-512, else 2 (AMD Zen 4), and no branch that depends on the data.
uint32_t KeepKeysOf(const JoinTable& table, const uint32_t* numbers, uint32_t first, uint32_t n, const KeyWords& words,
                    uint32_t* kept, uint64_t* kept_words);

}  // namespace quern

#endif  // QUERN_RUNTIME_JOIN_KEY_FILTER_H_
