// SPDX-License-Identifier: Apache-2.0
// Looking packed keys up, in tables of each layout.
//
// Each loop takes a block of rows, computes where each row has to look, prefetches those lines, and then looks, without
// a branch that depends on what it finds: the number of matches grows by the 0 or 1 of a comparison, so that a row is
// appended if it found its key. In an open table, rows that met another key stay for the next round, one slot further:
//
//     keys 7 9 4     slots .. |9| |7|4| ..     round 0: 9 found at once, 7 and 4 both look at |7|: 7 found, 4 stays
//                                              round 1: 4 looks at |4|: found
//
// With 40 % of the slots taken, 1 row in 4 needs a second round and 1 in 15 a third. These rows are unpredictable: a
// mispredicted branch costs 15 cycles.
#include <algorithm>
#include <bit>

#include "runtime/base/cpu.h"
#include "runtime/base/thresholds.h"
#include "runtime/blocks/blocks.h"
#include "runtime/join/tables/packed_key_slots.h"
#include "runtime/join/tables/packed_key_table.h"
#include "runtime/join/tables/unchained_table.h"
#include "runtime/rows/bitmap_lanes.h"
#include "runtime/rows/prefetch_lines.h"

namespace quern {
namespace {

using blocks::Load;

// Matches of one batch, appended to those of the scratch, or only counted.
template <bool kCount>
struct Matches {
  QuernProbeScratch* scratch;
  uint32_t n;

  explicit Matches(QuernProbeScratch* s) : scratch(s), n(kCount ? 0 : s->num_matches) {}
  void Add(uint32_t index, uint64_t tuple, bool is_match) {
    if constexpr (!kCount) {
      scratch->match_index[n] = index;
      scratch->match_tuples[n] = tuple;
    }
    n += is_match;
  }
  uint64_t End() {
    if constexpr (!kCount) scratch->num_matches = n;
    return n;
  }
};

// kTupleLines: how many lines of a tuple are prefetched, at the place given by the key's number, so that they arrive
// before the match is emitted. A large bitmap is prefetched by a ring.
template <bool kCount, uint32_t kTupleLines, class Prefetch>
[[gnu::noinline]] uint64_t LookUpDense(const JoinTable& table, QuernProbeScratch* s, LookUpTally* tally) {
  Matches<kCount> matches(s);
  const uint32_t first_match = matches.n;
  const uint64_t base = table.base, sign_bit = table.sign_bit, range = table.range, bytes = table.tuple_bytes;
  const uint64_t* bitmap = table.bitmap;
  const uint8_t* tuples = table.tuples;
  const auto look = [&](uint32_t i) {
    const uint64_t number = (s->words[i] ^ sign_bit) - base;
    const bool inside = number < range;
    const uint64_t place = inside ? number : 0;
    const uint64_t bit = bitmap[place / 64] >> (place % 64);
    if constexpr (kTupleLines >= 1) Prefetch::For(tuples + place * bytes);
    if constexpr (kTupleLines >= 2) Prefetch::For(tuples + place * bytes + bytes - 1);
    matches.Add(i, place * bytes, (bit & inside) != 0);
  };
  const auto prefetch = [&](uint32_t i) {
    const uint64_t number = (s->words[i] ^ sign_bit) - base;
    Prefetch::For(&bitmap[(number < range ? number : 0) / 64]);
  };
  const uint32_t n = s->batch_rows;
  if (range > kPrefetchedBits) ForEachRow<Prefetch>(n, RowsAhead(table.probe, n), prefetch, look);
  else
    for (uint32_t i = 0; i < n; ++i) look(i);
  const uint64_t num_matches = matches.End();
  tally->hits += num_matches - first_match;
  return num_matches;
}

#if defined(__x86_64__)
bool FindsSixteen(const JoinTable& table) { return HasAvx512() && table.range <= kPrefetchedBits; }

// The same for bitmaps that are not prefetched, sixteen rows at a time. kPlaces: the tuples are where numbers say.
template <bool kCount, bool kPlaces, class Reader>
QUERN_AVX512 [[gnu::noinline]] uint64_t FindSixteen(const JoinTable& table, Reader words, QuernProbeScratch* s,
                                                    LookUpTally* tally) {
  const uint32_t first_match = kCount ? 0 : s->num_matches, n = s->batch_rows;
  const BitmapLanes bitmap(table.bitmap, table.base, table.sign_bit, table.range);
  const uint64_t tuple_bytes = table.tuple_bytes;  // a copy, which stores cannot change
  uint32_t matches = first_match;
  for (uint32_t i = 0; i < n; i += kBitmapLanes) {
    const BitmapLanes::Numbers numbers = words.NumbersOf(bitmap, i, n);
    const __mmask16 found = bitmap.Find(numbers);
    if constexpr (kPlaces) StoreKeptProducts(numbers.numbers, found, tuple_bytes, s->match_tuples + matches);
    if constexpr (kCount) matches += static_cast<uint32_t>(std::popcount(static_cast<unsigned>(found)));
    else matches += StoreKept(SixteenFrom(i), found, s->match_index + matches);
  }
  if constexpr (!kCount) s->num_matches = matches;
  tally->hits += matches - first_match;
  return matches;
}

#else
bool FindsSixteen(const JoinTable&) { return false; }
template <bool, bool>
uint64_t FindSixteen(const JoinTable&, const auto&, QuernProbeScratch*, LookUpTally*) {
  return 0;
}
#endif

template <bool kCount, bool kPlaces>
uint64_t FindSixteenOf(const JoinTable& table, const KeyWords& words, QuernProbeScratch* s, LookUpTally* tally) {
  return WithReader(words, [&](const auto& reader) { return FindSixteen<kCount, kPlaces>(table, reader, s, tally); });
}

// The words of the hash batch, where they are not there yet.
void FillWords(const KeyWords& words, QuernProbeScratch* s) {
  if (words.values == s->words) return;
  WithReader(words, [&](const auto& reader) {
    for (uint32_t i = 0; i < s->batch_rows; ++i) s->words[i] = reader.At(i);
  });
}

// Prefetches the tuples of the matches from first_match on: rows without a tuple prefetch nothing.
void PrefetchMatches(const JoinTable& table, uint32_t first_match, const QuernProbeScratch* s) {
  const uint32_t n = s->num_matches - first_match;
  const uint64_t* const tuples = s->match_tuples + first_match;
  if (table.tuples == nullptr || table.probe.stages < 2) return;
  WithPrefetch(table.probe, [&]<class Prefetch>() {
    for (uint32_t m = 0; m < n && Prefetch::kPrefetches; ++m) {
      Prefetch::For(table.tuples + tuples[m]);
      Prefetch::For(table.tuples + tuples[m] + table.tuple_bytes - 1);
    }
  });
}

void PlaceRankedMatches(const JoinTable& table, const KeyWords& words, uint32_t first_match, QuernProbeScratch* s) {
  const uint32_t n = s->num_matches - first_match;
  uint64_t* const tuples = s->match_tuples + first_match;
  const uint32_t* const index = s->match_index + first_match;
  WithReader(words, [&](const auto& reader) {
    for (uint32_t m = 0; m < n; ++m) tuples[m] = reader.At(index[m]);
  });
  ToRankedPlaces(table, table.tuple_bytes, n, tuples);
  PrefetchMatches(table, first_match, s);
}

template <bool kCount, class Prefetch>
[[gnu::noinline]] uint64_t LookUpRuns(const JoinTable& table, QuernProbeScratch* s, LookUpTally* tally) {
  const uint64_t base = table.base, sign_bit = table.sign_bit, range = table.range, bytes = table.tuple_bytes;
  const uint32_t n = s->batch_rows;
  const uint32_t* runs = table.runs;
  const uint8_t* tuples = table.tuples;
  const bool prefetches_tuples = !kCount && table.probe.stages >= 2;
  uint64_t total = 0;
  uint32_t found = 0;
  const auto place_of = [&](uint64_t word) {
    const uint64_t number = (word ^ sign_bit) - base;
    return number < range ? number : range;
  };
  const auto look = [&](uint32_t i) {
    const uint64_t place = place_of(s->words[i]);
    const bool inside = place < range;
    const uint64_t safe = inside ? place : 0;
    const uint64_t end = runs[safe], begin = inside ? runs[static_cast<int64_t>(safe) - 1] : end;
    if constexpr (kCount) {
      total += end - begin;
    } else {
      s->candidates[found] = {begin * bytes, end * bytes, i};
      if (prefetches_tuples) Prefetch::For(tuples + begin * bytes);
      if (prefetches_tuples) Prefetch::For(tuples + end * bytes - 1);
      found += begin != end;
    }
  };
  const auto prefetch = [&](uint32_t i) { PrefetchEntry<Prefetch>(&runs[place_of(s->words[i])]); };
  ForEachRow<Prefetch>(n, RowsAhead(table.probe, n), prefetch, look);
  if constexpr (!kCount) s->num_candidates = found;
  tally->hits += found;  // not for runs that are only counted: it would take a quarter longer
  return total;
}

template <class Word, uint32_t kBytes, bool kCount, bool kCounts, class Prefetch>
[[gnu::noinline]] uint64_t LookUpOpen(const JoinTable& table, QuernProbeScratch* s, LookUpTally* tally) {
  const uint64_t slot_bytes = kBytes != 0 ? kBytes : table.slot_bytes, num_slots = table.num_slots;
  const uint32_t n = s->batch_rows;
  const Word sentinel = static_cast<Word>(table.sentinel);
  const uint8_t* slots = table.tuples;
  const Walk walk = {table.line_mask, table.region_mask};
  uint64_t* where = s->hashes;     // the slot of each row, in place of its hash
  uint32_t* looking = s->looking;  // rows that have met only other keys so far
  uint32_t num_looking = 0;
  uint64_t total = 0;
  Matches<kCount> matches(s);
  const uint32_t first_match = matches.n;
  const auto look = [&](uint64_t slot, uint32_t row) {
    const Word key = static_cast<Word>(static_cast<Word>(s->words[row]) - sentinel);
    const uint8_t* at = slots + slot * slot_bytes;
    const Word found = Load<Word>(at);
    const bool equal = (found == key) & (key != 0);
    if constexpr (kCounts) {
      const uint64_t rows = Load<Word>(at + sizeof(Word));
      total += equal ? rows : 0;
      matches.Add(row, rows, equal);
    } else {
      matches.Add(row, slot * slot_bytes, equal);
    }
    looking[num_looking] = row;
    num_looking += (found != 0) & (found != key);
  };
  for (uint32_t i = 0; i < n; ++i) where[i] = SlotOf(where[i], num_slots);
  const auto prefetch = [&](uint32_t i) { Prefetch::For(slots + where[i] * slot_bytes); };
  ForEachRow<Prefetch>(n, RowsAhead(table.probe, n), prefetch, [&](uint32_t i) { look(where[i], i); });
  for (uint32_t round = 1; num_looking > 0 && round <= table.max_walk; ++round) {
    const uint32_t num_rows = num_looking;
    tally->steps += num_rows;
    num_looking = 0;
    for (uint32_t r = 0; r < num_rows; ++r) {
      const uint32_t row = looking[r];
      where[row] = walk.NextSlot(where[row], round);
      look(where[row], row);
    }
  }
  const uint64_t num_matches = matches.End();
  tally->hits += num_matches - first_match;
  if constexpr (kCount && kCounts) tally->steps += total - num_matches;
  return kCounts ? total : num_matches;
}

template <bool kCount>
uint64_t LookUpOpen(const JoinTable& table, QuernProbeScratch* s, LookUpTally* tally) {
  HashPackedKeys(s->words, s->batch_rows, table.zero_hashes, s->hashes);
  const auto look_up = [&]<class Word, class Prefetch>() -> uint64_t {
    if (table.layout == Layout::kCounting)
      return LookUpOpen<Word, 2 * sizeof(Word), kCount, true, Prefetch>(table, s, tally);
    if (table.slot_bytes == 4) return LookUpOpen<Word, 4, kCount, false, Prefetch>(table, s, tally);
    if (table.slot_bytes == 8) return LookUpOpen<Word, 8, kCount, false, Prefetch>(table, s, tally);
    if (table.slot_bytes == 16) return LookUpOpen<Word, 16, kCount, false, Prefetch>(table, s, tally);
    return LookUpOpen<Word, 0, kCount, false, Prefetch>(table, s, tally);
  };
  return WithPrefetch(table.probe, [&]<class Prefetch>() {
    return table.packed_bytes == 4 ? look_up.template operator()<uint32_t, Prefetch>()
                                   : look_up.template operator()<uint64_t, Prefetch>();
  });
}

template <bool kCount, bool kTuples>
uint64_t LookUpDense(const JoinTable& table, const KeyWords& words, QuernProbeScratch* s, LookUpTally* tally) {
  if (FindsSixteen(table)) {
    const uint32_t first_match = s->num_matches;
    const uint64_t num_matches = FindSixteenOf<kCount, !kCount>(table, words, s, tally);
    if constexpr (!kCount) PrefetchMatches(table, first_match, s);
    return num_matches;
  }
  FillWords(words, s);
  const bool straddles = kLineBytes % table.tuple_bytes != 0;
  return WithPrefetch(table.probe, [&]<class Prefetch>() {
    if constexpr (kTuples && Prefetch::kPrefetches) {
      if (table.probe.stages >= 2 && straddles) return LookUpDense<kCount, 2, Prefetch>(table, s, tally);
      if (table.probe.stages >= 2) return LookUpDense<kCount, 1, Prefetch>(table, s, tally);
    }
    return LookUpDense<kCount, 0, Prefetch>(table, s, tally);
  });
}

// Finds the rows by the bitmap, and then the places of those that match.
void LookUpRanked(const JoinTable& table, const KeyWords& words, QuernProbeScratch* s, LookUpTally* tally) {
  const uint32_t first_match = s->num_matches;
  if (FindsSixteen(table)) {
    FindSixteenOf<false, false>(table, words, s, tally);
  } else {
    FillWords(words, s);
    LookUpDense<false, 0, NoPrefetch>(table, s, tally);
  }
  PlaceRankedMatches(table, words, first_match, s);
}

template <bool kCount>
uint64_t LookUpRuns(const JoinTable& table, QuernProbeScratch* s, LookUpTally* tally) {
  return WithPrefetch(table.probe, [&]<class Prefetch>() { return LookUpRuns<kCount, Prefetch>(table, s, tally); });
}

// Turns numbers of rows into runs of as many tuples, none of which is ever read.
void MatchesToRuns(const JoinTable& table, uint32_t first_match, QuernProbeScratch* s) {
  for (uint32_t m = first_match; m < s->num_matches; ++m) {
    s->candidates[m - first_match] = {0, s->match_tuples[m] * table.tuple_bytes, s->match_index[m]};
  }
  s->num_candidates = s->num_matches - first_match;
  s->num_matches = first_match;
}

}  // namespace

void LookUpPackedKeys(const JoinTable& table, const KeyWords& words, QuernProbeScratch* s, LookUpTally* tally) {
  const uint32_t first_match = s->num_matches;
  switch (table.layout) {
    case Layout::kBitmap: LookUpDense<false, false>(table, words, s, tally); return;
    case Layout::kDense: LookUpDense<false, true>(table, words, s, tally); return;
    case Layout::kRanked: LookUpRanked(table, words, s, tally); return;
    case Layout::kCsr: LookUpRuns<false>(table, s, tally); return;
    case Layout::kOpen: LookUpOpen<false>(table, s, tally); return;
    case Layout::kCounting:
      LookUpOpen<false>(table, s, tally);
      MatchesToRuns(table, first_match, s);
      return;
    case Layout::kUnchained: return;
  }
}

uint64_t CountPackedKeys(const JoinTable& table, const KeyWords& words, QuernProbeScratch* s, LookUpTally* tally) {
  switch (table.layout) {
    case Layout::kBitmap:
    case Layout::kDense:
    case Layout::kRanked: return LookUpDense<true, false>(table, words, s, tally);
    case Layout::kCsr: return LookUpRuns<true>(table, s, tally);
    case Layout::kOpen:
    case Layout::kCounting: return LookUpOpen<true>(table, s, tally);
    case Layout::kUnchained: return 0;
  }
  return 0;
}

// ---- unchained ----------------------------------------------------------------------------------------------------

namespace {

// A ring continues beyond the batch's last row, where hashes of an earlier batch lie. They are valid slot numbers, so
// no branch is needed.
template <class Prefetch>
uint32_t Test(const JoinTable& table, const QuernProbeScratch& s, uint32_t begin, uint32_t end,
              QuernCandidate* candidates) {
  const uint64_t *directory = table.directory, *hashes = s.hashes;
  const uint8_t* tuples = table.tuples;
  const uint16_t* tags = DirectoryTags();
  const uint32_t shift = table.shift;
  const bool is_ring = table.probe.distance != kWholeBatch, prefetches_tuples = table.probe.stages >= 2;
  const uint32_t ahead = is_ring ? RingDistance(table.probe) : s.batch_rows;
  if constexpr (Prefetch::kPrefetches)
    for (uint32_t i = 0; i < ahead && begin == 0; ++i) PrefetchEntry<Prefetch>(&directory[hashes[i] >> shift]);
  uint32_t found = 0;
  for (uint32_t i = begin; i < end; ++i) {
    if constexpr (Prefetch::kPrefetches)
      if (is_ring) PrefetchEntry<Prefetch>(&directory[hashes[i + ahead] >> shift]);
    const uint64_t hash = hashes[i], tag = TagOf(tags, hash);
    const uint64_t* entry = &directory[hash >> shift];
    const uint64_t tuples_end = entry[0] >> kTagBits, tuples_begin = entry[-1] >> kTagBits;
    const bool passes = (entry[0] & tag) == tag;
    candidates[found] = {tuples_begin, tuples_end, i};
    if constexpr (Prefetch::kPrefetches) {
      if (prefetches_tuples) {
        Prefetch::For(passes ? static_cast<const void*>(tuples + tuples_begin) : entry);
        Prefetch::For(passes ? static_cast<const void*>(tuples + tuples_end - 1) : entry);
      }
    }
    found += passes;
  }
  return found;
}

}  // namespace

uint32_t TestPackedKeys(const JoinTable& table, const QuernProbeScratch& s, uint32_t begin, uint32_t end,
                        QuernCandidate* candidates) {
  return WithPrefetch(table.probe, [&]<class Prefetch>() { return Test<Prefetch>(table, s, begin, end, candidates); });
}

namespace {

template <class Word, bool kStopsAtMatched>
void Compare(const JoinTable& table, const QuernJoinDescriptor& descriptor, uint32_t capacity, QuernProbeScratch* s) {
  const uint32_t room = capacity - s->num_matches, num_compared = std::min(s->num_candidates, room);
  const bool stops_at_first = descriptor.stops_at_first;
  uint32_t matches = s->num_matches, remaining = 0, c = 0;
  for (; c < num_compared; ++c) {
    const QuernCandidate candidate = s->candidates[c];
    uint8_t* tuple = table.tuples + candidate.begin;
    const bool equal = Load<Word>(tuple) == static_cast<Word>(s->words[candidate.index]);
    s->match_index[matches] = candidate.index;
    s->match_tuples[matches] = candidate.begin;
    matches += equal;
    bool stops = stops_at_first && equal;
    if constexpr (kStopsAtMatched) {
      if (equal) stops = TestAndSetMatched(tuple + descriptor.matched_offset);
    }
    const uint64_t next = candidate.begin + table.tuple_bytes;
    s->candidates[remaining] = {next, candidate.end, candidate.index};
    remaining += (next != candidate.end) & !stops;
  }
  for (; c < s->num_candidates; ++c, ++remaining) s->candidates[remaining] = s->candidates[c];
  s->num_candidates = remaining;
  s->num_matches = matches;
}

}  // namespace

void ComparePackedKeys(const JoinTable& table, const QuernJoinDescriptor& descriptor, uint32_t capacity,
                       QuernProbeScratch* s) {
  if (table.packed_bytes == 4) {
    if (descriptor.stops_at_matched) return Compare<uint32_t, true>(table, descriptor, capacity, s);
    return Compare<uint32_t, false>(table, descriptor, capacity, s);
  }
  if (descriptor.stops_at_matched) return Compare<uint64_t, true>(table, descriptor, capacity, s);
  Compare<uint64_t, false>(table, descriptor, capacity, s);
}

}  // namespace quern
