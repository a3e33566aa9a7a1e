// SPDX-License-Identifier: Apache-2.0
// The loops of a hash join over an unchained table (layout: runtime/abi/join_abi.h), one entry point per stage. A
// stage processes many rows before the next one starts, so that many cache misses overlap and none is followed by a
// branch that waits for it. Building:
//
//     filter            leave out rows that cannot match            only where a key may be null
//     hash              batch_rows rows                             vectorised; reads only the key columns
//     store             columns -> tuples in order of arrival       join/tables/unchained_table.cc then makes the
//                                                                   tuples of a slot adjacent
//
// Probing:
//
//     filter, hash           as above
//     check_tags             group_rows rows             reads directory entries, prefetched `prefetch_distance`
//                                                        rows ahead; tags decide, without a branch, which rows are
//                                                        candidates, and the first tuples of these are prefetched
//     prefetch_keys          the group's candidates      tuples have been loading for group_rows rows; prefetches long
//                                                        keys, which lie elsewhere
//     compare                the group's candidates
//     filter_residual        their matches               residual predicate
//     reserve_output, emit   up to batch_rows matches    payload, column by column
//
// Keys that fit one machine word are packed instead (pack), and packed-key tables (join/tables/packed_key_table.cc)
// replace hash, check_tags and compare: with packed keys those loops are the same for every spec, so they are not
// compiled at run time.
//
// Example: 10 M unique keys, directory of 32 M slots. Out of 100 probe rows with 10 hits, 67 fall on an empty slot and
// the tag rejects 23 (one in a thousand slips through), so 10 tuples are touched, not 33.
//
// The loop that drives the stages, batch after batch, depends on no spec and is not compiled at run time either:
// runtime/join/join_loop.cc.
#include "ir-templates/holes.h"
#include "runtime/base/prefetch_line.h"

#define QUERN_ENTRY extern "C" __attribute__((visibility("default")))

QUERN_ENTRY uint32_t quern_join_filter(const QuernRowLayout* layout, const QuernColumn* keys, uint64_t first,
                                       const uint32_t* rows, uint32_t n, uint32_t* out) {
  return quern_hole_filter_rows(layout, keys, first, rows, n, out);
}

QUERN_ENTRY void quern_join_pack(const QuernRowLayout* layout, const QuernColumn* keys, uint64_t first,
                                 const uint32_t* rows, uint32_t n, uint64_t* words) {
  quern_hole_pack_rows(layout, keys, first, rows, n, words);
}

QUERN_ENTRY void quern_join_hash(const QuernRowLayout* layout, const QuernColumn* keys, uint64_t first,
                                 const uint32_t* rows, uint32_t n, uint64_t* hashes) {
  quern_hole_hash_rows(layout, keys, first, rows, n, hashes);
}

QUERN_ENTRY void quern_join_store(const QuernRowLayout* layout, const QuernColumn* keys, const QuernColumn* payload,
                                  uint64_t first, const uint32_t* rows, uint32_t n, uint64_t first_row_id,
                                  uint8_t* tuples) {
  quern_hole_store_rows(layout, keys, payload, first, rows, n, first_row_id, tuples);
}

// Where the tuples of a slot begin is where those of the slot before it end, which one entry in eight has in the line
// before its own.
static inline __attribute__((always_inline)) void PrefetchEntry(uint64_t distance, const uint64_t* entry) {
  quern::PrefetchIf(distance, entry);
  quern::PrefetchIf(distance, entry - 1);
}

// Tests rows [begin, end) of the hash batch; returns how many candidates it wrote. Hashes beyond the batch are left
// over from an earlier batch, but they still give valid slot numbers, which is enough for prefetching.
QUERN_ENTRY uint32_t quern_join_check_tags(const QuernJoinProbeArgs* a, uint32_t begin, uint32_t end) {
  const uint64_t* directory = a->directory;
  const uint8_t* tuples = a->tuples;
  const uint64_t* hashes = a->scratch->hashes;
  const uint16_t* tags = a->tags;
  QuernCandidate* candidates = a->scratch->candidates;
  const uint32_t shift = a->shift, distance = a->prefetch_distance;
  // The distance is data; the kind of prefetch (into all caches) and what is prefetched are compiled in. For other
  // settings the runtime prefetches itself and calls this with distance 0 (runtime/join/join_loop.cc). A table that
  // fits the L2 cache is probed at distance 0, that is without prefetching: one branch that is always predicted instead
  // of a dozen instructions a row.
  const bool prefetches = quern_hole_prefetches(&a->descriptor->rows) && distance != 0;
  const bool is_wide = quern_hole_tuple_bytes(&a->descriptor->rows) > 64;
  if (prefetches && begin == 0)
    for (uint32_t i = 0; i < distance; ++i) PrefetchEntry(distance, &directory[hashes[i] >> shift]);
  uint32_t found = 0;
  for (uint32_t i = begin; i < end; ++i) {
    PrefetchEntry(prefetches, &directory[hashes[i + distance] >> shift]);
    const uint64_t hash = hashes[i], tag = TagOf(tags, hash);
    const uint64_t* entry = &directory[hash >> shift];
    const uint64_t tuples_end = entry[0] >> kTagBits, tuples_begin = entry[-1] >> kTagBits;
    const bool passes = (entry[0] & tag) == tag;
    candidates[found] = {tuples_begin, tuples_end, i};
    // First and last byte of the slot's tuples: one tuple of 24 bytes straddles two lines in one case of four. Two wide
    // ones have a line between these.
    quern::PrefetchIf(prefetches, passes ? static_cast<const void*>(tuples + tuples_begin) : entry);
    quern::PrefetchIf(prefetches, passes ? static_cast<const void*>(tuples + tuples_end - 1) : entry);
    if (is_wide) quern::PrefetchIf(prefetches, passes ? static_cast<const void*>(tuples + tuples_begin + 64) : entry);
    found += passes;
  }
  return found;
}

// Prefetches what the candidates' first tuples point to: keys too long to be held inside a tuple.
QUERN_ENTRY void quern_join_prefetch_keys(const QuernJoinProbeArgs* a) {
  const QuernProbeScratch* s = a->scratch;
  for (uint32_t c = 0; c < s->num_candidates; ++c)
    quern_hole_prefetch_keys(&a->descriptor->rows, a->tuples + s->candidates[c].begin);
}

// Compares each candidate (there is at least one) with its next tuple; those with more tuples stay for the next call.
// So no branch depends on how many tuples a slot has, which is unpredictable: a third of the probes of a sparse table
// meet two. Stops when there are `capacity` matches (there is room for at least one). Where matched flags stop a row
// (right_semi, right_anti), they are set here.
QUERN_ENTRY void quern_join_compare(const QuernJoinProbeArgs* a, uint32_t capacity) {
  QuernProbeScratch* s = a->scratch;
  const QuernJoinDescriptor* descriptor = a->descriptor;
  const QuernColumn* keys = a->keys;
  uint8_t* tuples = a->tuples;
  const uint32_t* rows = s->batch_numbers;
  const uint32_t first = static_cast<uint32_t>(s->batch_first);
  const uint32_t tuple_bytes = quern_hole_tuple_bytes(&descriptor->rows),
                 matched_offset = quern_hole_matched_offset(descriptor);
  const bool stops_at_first = quern_hole_stops_at_first(descriptor),
             stops_at_matched = quern_hole_stops_at_matched(descriptor);
  const uint32_t num_candidates = s->num_candidates, room = capacity - s->num_matches;
  const uint32_t num_compared = num_candidates < room ? num_candidates : room;
  uint32_t matches = s->num_matches, remaining = 0, c = 0;
  do {
    const QuernCandidate candidate = s->candidates[c];
    const uint32_t row = rows ? rows[candidate.index] : first + candidate.index;
    s->match_index[matches] = candidate.index;
    s->match_tuples[matches] = candidate.begin;
    const bool equal = quern_hole_equal_row(&descriptor->rows, keys, row, tuples + candidate.begin);
    bool stops = stops_at_first && equal;
    if (stops_at_matched && equal) stops = TestAndSetMatched(tuples + candidate.begin + matched_offset);
    matches += equal;
    const uint64_t next = candidate.begin + tuple_bytes;
    s->candidates[remaining] = {next, candidate.end, candidate.index};
    remaining += (next != candidate.end) & !stops;
  } while (++c != num_compared);
  for (; c != num_candidates; ++c, ++remaining) s->candidates[remaining] = s->candidates[c];
  s->num_candidates = remaining;
  s->num_matches = matches;
}

// Keeps those of the matches [begin, end), whose rows have been looked up, for which the residual predicate holds;
// returns their new end.
QUERN_ENTRY uint32_t quern_join_filter_residual(const QuernJoinProbeArgs* a, uint32_t begin, uint32_t end) {
  QuernProbeScratch* s = a->scratch;
  const QuernColumn* payload = a->payload;
  const uint8_t* tuples = a->tuples;
  uint32_t kept = begin;
  for (uint32_t i = begin; i < end; ++i) {
    const uint32_t row = s->match_rows[i];
    const uint64_t tuple = s->match_tuples[i];
    s->match_rows[kept] = row;
    s->match_tuples[kept] = tuple;
    s->match_index[kept] = s->match_index[i];
    kept += quern_hole_residual_row(a->descriptor, payload, row, tuples + tuple);
  }
  return kept;
}

QUERN_ENTRY int64_t quern_join_reserve_output(QuernJoinProbeArgs* a, const uint32_t* rows, const uint64_t* tuples,
                                              uint32_t n) {
  return quern_hole_reserve_matches(a, rows, tuples, n);
}

QUERN_ENTRY void quern_join_emit(QuernJoinProbeArgs* a, const uint32_t* rows, const uint64_t* tuples, uint32_t n) {
  quern_hole_emit_matches(a, rows, tuples, n);
}
