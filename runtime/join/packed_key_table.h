// SPDX-License-Identifier: Apache-2.0
// Tables over packed keys (layouts: join_table.h): building them and looking words up. Nothing here depends on a spec
// but the sizes of a word and of a tuple, so none of it is compiled at run time.
#ifndef QUERN_RUNTIME_JOIN_PACKED_KEY_TABLE_H_
#define QUERN_RUNTIME_JOIN_PACKED_KEY_TABLE_H_

#include <cstdint>

#include "runtime/join/join_table.h"
#include "runtime/rows/tuple_store.h"

namespace quern {

// Smallest and largest word, as unsigned numbers in the keys' order: of signed keys the sign bit is turned over.
struct PackedKeyRange {
  uint64_t min = UINT64_MAX;
  uint64_t max = 0;

  bool is_empty() const { return min > max; }
  void Add(const PackedKeyRange& other);
  // *Cost*: about 0.5 ns a word.
  void Add(const uint64_t* words, uint32_t n, uint64_t sign_bit);
};

// What to do with a second tuple of a key.
enum class Duplicates : uint8_t { kStop, kDrop, kCount };

enum class Inserted : uint8_t { kAll, kDuplicate, kTooFar };

// Sets the bits of a list's keys. kStop: stops at the first that is set already.
Inserted FillBitmap(const JoinTable& table, const TupleFormat& format, const TupleSpan& span, Duplicates duplicates,
                    uint64_t* bitmap);
// Copies tuples to their keys' places. *Cost*: one random line each, prefetched.
void PlaceDense(const JoinTable& table, const TupleFormat& format, const TupleSpan& span);
// Runs in three passes over all spans, as an unchained table (unchained_table.h) without hashes: count, sum, place.
void CountRuns(const JoinTable& table, const TupleFormat& format, const TupleSpan& span, uint32_t* runs);
void SumRuns(uint64_t range, uint32_t* runs);
// tuples == nullptr: only the runs' ends are brought about.
void PlaceRuns(const JoinTable& table, const TupleFormat& format, const TupleSpan& span, uint32_t* runs,
               uint8_t* tuples);

// Inserts tuples into an open table. kTooFar: a walk was longer than a robust table allows; the caller takes another
// layout. Raises `max_walk` and `num_inserted`. *Cost*: one random line each, prefetched.
Inserted InsertOpen(const JoinTable& table, const TupleFormat& format, const TupleSpan& span, Duplicates duplicates,
                    uint32_t* max_walk, uint64_t* num_inserted);

// What looking a batch up took: rows that bit or slot sent on to a tuple, and what was looked at further: slots, and
// tuples of a run.
struct LookUpTally {
  uint64_t hits = 0;
  uint64_t steps = 0;
};

// Looks up all rows of the hash batch (scratch->words, hashes where the layout has any). Layouts of unique keys append
// to match_index and match_tuples, where there must be room for the whole batch; layouts with runs leave candidates,
// all of whose tuples match.
void LookUpPackedKeys(const JoinTable& table, QuernProbeScratch* scratch, LookUpTally* tally);
// How many pairs that gives.
uint64_t CountPackedKeys(const JoinTable& table, QuernProbeScratch* scratch, LookUpTally* tally);

// The same for the unchained layout, in the two steps of a kernel with keys of its own (ir-templates/join.cc): the
// directory's test of rows [begin, end), and one comparison of each candidate.
uint32_t TestPackedKeys(const JoinTable& table, const QuernProbeScratch& scratch, uint32_t begin, uint32_t end,
                        QuernCandidate* candidates);
void ComparePackedKeys(const JoinTable& table, const QuernJoinDescriptor& descriptor, uint32_t capacity,
                       QuernProbeScratch* scratch);

}  // namespace quern

#endif  // QUERN_RUNTIME_JOIN_PACKED_KEY_TABLE_H_
