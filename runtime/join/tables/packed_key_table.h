// SPDX-License-Identifier: Apache-2.0
// Tables over packed keys (layouts: join_table.h): building them and looking words up. This code depends on a spec only
// through the sizes of a word and of a tuple, so none of it is compiled at run time.
#ifndef QUERN_RUNTIME_JOIN_TABLES_PACKED_KEY_TABLE_H_
#define QUERN_RUNTIME_JOIN_TABLES_PACKED_KEY_TABLE_H_

#include <cstdint>

#include "runtime/join/join_table.h"
#include "runtime/rows/key_words.h"
#include "runtime/rows/tuple_store.h"

namespace quern {

// Larger bitmaps (8 MB) are prefetched when they are filled and looked up; below, the L2 and L3 caches are fast enough.
constexpr uint64_t kPrefetchedBits = uint64_t{1} << 26;

// Smallest and largest word, as unsigned numbers in the keys' order: the sign bit of signed keys is flipped.
struct PackedKeyRange {
  uint64_t min = UINT64_MAX;
  uint64_t max = 0;
  bool ascends = true;  // each word that was added was larger than those before

  bool is_empty() const { return min > max; }
  void Add(const PackedKeyRange& other);
  // *Cost*: about 0.5 ns a word.
  void Add(const uint64_t* words, uint32_t n, uint64_t sign_bit);
};

// What to do with a second tuple of a key.
enum class Duplicates : uint8_t { kStop, kDrop, kCount };

enum class Inserted : uint8_t { kAll, kDuplicate, kTooFar };

// Sets the bits of a list's keys. kStop: stops at the first bit that is already set.
Inserted FillBitmap(const JoinTable& table, const TupleFormat& format, const TupleSpan& span, Duplicates duplicates,
                    uint64_t* bitmap);
// Copies tuples to the places of their keys. *Cost*: one random line each, prefetched.
void PlaceDense(const JoinTable& table, const TupleFormat& format, const TupleSpan& span);
// Of tuples in the order of their keys, which are unique: sets the keys' bits, and copies the tuples to `to` as they
// are. *Cost*: no random line.
void CopyInOrder(const JoinTable& table, const TupleFormat& format, const TupleSpan& span, uint64_t* bitmap,
                 uint8_t* to);
// Of a filled bitmap: how many of its bits are set before each of its words; returns how many there are.
uint64_t SumRanks(const uint64_t* bitmap, uint64_t num_words, uint32_t* ranks);
// Copies tuples to the places given by the ranks of their keys. *Cost*: one random line each, prefetched, and one of
// the bitmap and of the ranks, which lie in a cache.
void PlaceRanked(const JoinTable& table, const TupleFormat& format, const TupleSpan& span);
// Whether one thread counts and places all tuples of a table, or several do so at the same time, each its own ones.
enum class RunsOf : uint8_t { kThread, kThreads };

// Builds runs in three passes over all spans (count, sum, place), as for an unchained table (unchained_table.h) but
// without hashes. Each pass begins when the one before it is done.
void CountRuns(const JoinTable& table, const TupleFormat& format, const TupleSpan& span, RunsOf of, uint32_t* runs);
void SumRuns(uint64_t range, uint32_t* runs);
// tuples == nullptr: computes only the ends of the runs. The order of a run's tuples is that in which they are placed.
void PlaceRuns(const JoinTable& table, const TupleFormat& format, const TupleSpan& span, RunsOf of, uint32_t* runs,
               uint8_t* tuples);

// Inserts tuples into an open table. kTooFar: a walk was longer than a robust table allows, and the caller chooses
// another layout. Raises `max_walk` and `num_inserted`. *Cost*: one random line each, prefetched.
Inserted InsertOpen(const JoinTable& table, const TupleFormat& format, const TupleSpan& span, Duplicates duplicates,
                    uint32_t* max_walk, uint64_t* num_inserted);

// Counts of a batch's look-ups. hits: rows whose bit or slot led to a tuple. steps: further slots, and tuples of a run,
// that were visited.
struct LookUpTally {
  uint64_t hits = 0;
  uint64_t steps = 0;
};

// Looks up all rows of the hash batch. words: scratch->words or, for layouts with a bitmap, those of the key's column;
// hashes are the scratch's, where the layout uses them. Layouts with unique keys append to match_index and
// match_tuples, which must have room for the whole batch; layouts with runs produce candidates, all of whose tuples
// match.
void LookUpPackedKeys(const JoinTable& table, const KeyWords& words, QuernProbeScratch* scratch, LookUpTally* tally);
// Returns the number of pairs that LookUpPackedKeys would produce.
uint64_t CountPackedKeys(const JoinTable& table, const KeyWords& words, QuernProbeScratch* scratch, LookUpTally* tally);

// The same for the unchained layout, in two stages, as in a kernel whose keys are not packed (ir-templates/join.cc):
// the tag check of rows [begin, end), and one comparison of each candidate.
uint32_t TestPackedKeys(const JoinTable& table, const QuernProbeScratch& scratch, uint32_t begin, uint32_t end,
                        QuernCandidate* candidates);
void ComparePackedKeys(const JoinTable& table, const QuernJoinDescriptor& descriptor, uint32_t capacity,
                       QuernProbeScratch* scratch);

}  // namespace quern

#endif  // QUERN_RUNTIME_JOIN_TABLES_PACKED_KEY_TABLE_H_
