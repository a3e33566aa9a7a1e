// SPDX-License-Identifier: Apache-2.0
// The loops of a hash join over an unchained table (layout: runtime/kernel_abi.h).
//
// Building is one loop here: columns become tuples in order of arrival, beside their hashes. What follows (counting, summing up, bringing the
// tuples of a slot side by side) depends on nothing of the spec and is not compiled: runtime/unchained_table.cc.
//
// A probe goes through stages, each over many rows, so that many cache misses are under way at once and none is followed by a branch
// that waits for it:
//
//     hash      batch_rows rows            vectorised, no memory but the key columns
//     test      group_rows rows            directory entry, prefetched `prefetch_distance` rows ahead; the tag decides without a branch
//                                          who is a candidate; the candidate's first tuple is prefetched
//     compare   the group's candidates     tuples are on their way since group_rows rows
//     emit      batch_rows matches         payload, column by column
//
// Example: 10 M unique keys, directory of 16 M slots: of 100 probe rows with 10 hits, 46 fall on an empty slot and 44 are turned away by the
// tag (one in 150 slips through); so about 11 tuples are touched, not 54.
//
// Every stage can stop and be resumed: a chunk or an output batch may be full anywhere, also between two tuples of one slot.
#include "ir-templates/holes.h"

namespace {

#define QUERN_ENTRY extern "C" __attribute__((visibility("default")))
#define QUERN_ALWAYS_INLINE inline __attribute__((always_inline))

QUERN_ALWAYS_INLINE uint64_t Min(uint64_t a, uint64_t b) { return a < b ? a : b; }

// The rows of one batch that can match, as the batch holes number them: `rows ? rows[i] : first + i`, i < n.
struct BatchRows {
  const uint32_t* rows;
  uint64_t first;
  uint32_t n;
};

QUERN_ALWAYS_INLINE BatchRows SelectRows(const QuernJoinShape* shape, const QuernColumn* keys, const uint32_t* selection, uint64_t next,
                                         uint32_t n, uint32_t* scratch) {
  const uint32_t* rows = selection ? selection + next : nullptr;
  uint32_t kept = quern_hole_filter_rows(shape, keys, next, rows, n, scratch);
  if (kept == kAllRows) return {rows, next, n};
  return {scratch, 0, kept};
}

QUERN_ALWAYS_INLINE uint32_t RowOf(const BatchRows& batch, uint32_t i) {
  return batch.rows ? batch.rows[i] : static_cast<uint32_t>(batch.first + i);
}

// ---- probe stages ----------------------------------------------------------------------------------------------------------------

QUERN_ALWAYS_INLINE void HashStage(QuernJoinProbeArgs* a) {
  QuernProbeScratch* s = a->scratch;
  uint32_t n = static_cast<uint32_t>(Min(quern_hole_batch_rows(a->shape), a->num_rows - a->next_row));
  BatchRows batch = SelectRows(a->shape, a->keys, a->selection, a->next_row, n, s->rows);
  quern_hole_hash_rows(a->shape, a->keys, batch.first, batch.rows, batch.n, s->hashes);
  s->batch_numbers = batch.rows;
  s->batch_first = batch.first;
  s->batch_rows = batch.n;
  s->batch_next = 0;
  a->next_row += n;
}

// Hashes beyond the batch are stale ones of an earlier batch: a slot number all the same, good enough to prefetch.
QUERN_ALWAYS_INLINE void TestStage(QuernJoinProbeArgs* a) {
  QuernProbeScratch* s = a->scratch;
  const uint64_t* directory = a->directory;
  const uint8_t* tuples = a->tuples;
  const uint32_t shift = a->shift, distance = a->prefetch_distance;
  const uint32_t end = static_cast<uint32_t>(Min(s->batch_rows, uint64_t{s->batch_next} + quern_hole_group_rows(a->shape)));
  const BatchRows batch = {s->batch_numbers, s->batch_first, s->batch_rows};
  const bool prefetches = quern_hole_prefetches(a->shape);
  if (prefetches && s->batch_next == 0)
    for (uint32_t i = 0; i < distance; ++i) __builtin_prefetch(&directory[s->hashes[i] >> shift]);
  uint32_t found = 0;
  for (uint32_t i = s->batch_next; i < end; ++i) {
    if (prefetches) __builtin_prefetch(&directory[s->hashes[i + distance] >> shift]);
    const uint64_t hash = s->hashes[i], tag = TagOf(hash);
    const uint64_t* entry = &directory[hash >> shift];
    const uint64_t tuples_end = entry[0] >> kTagBits, tuples_begin = entry[-1] >> kTagBits;
    const bool passes = (entry[0] & tag) == tag;
    s->candidates[found] = {tuples_begin, tuples_end, RowOf(batch, i)};
    if (prefetches) __builtin_prefetch(passes ? static_cast<const void*>(tuples + tuples_begin) : entry);
    found += passes;
  }
  s->batch_next = end;
  s->candidate_next = 0;
  s->num_candidates = found;
}

// Stops when `capacity` matches are there; the candidate then keeps the tuples that it has not seen.
QUERN_ALWAYS_INLINE void CompareStage(QuernJoinProbeArgs* a, uint32_t capacity) {
  QuernProbeScratch* s = a->scratch;
  const QuernJoinShape* shape = a->shape;
  const QuernColumn* keys = a->keys;
  const uint8_t* tuples = a->tuples;
  const uint32_t tuple_bytes = quern_hole_tuple_bytes(shape);
  uint32_t matches = s->num_matches;
  uint32_t c = s->candidate_next;
  for (; c < s->num_candidates; ++c) {
    const uint32_t row = s->candidates[c].row;
    const uint64_t end = s->candidates[c].end;
    for (uint64_t at = s->candidates[c].begin; at != end; at += tuple_bytes) {
      if (matches == capacity) {
        s->candidates[c].begin = at;
        goto full;
      }
      s->match_rows[matches] = row;
      s->match_tuples[matches] = at;
      matches += quern_hole_equal_row(shape, keys, row, tuples + at);
    }
  }
full:
  s->candidate_next = c;
  s->num_matches = matches;
}

QUERN_ALWAYS_INLINE int32_t EmitStage(QuernJoinProbeArgs* a) {
  QuernProbeScratch* s = a->scratch;
  const uint32_t pending = s->num_matches - s->match_next;
  const uint32_t* rows = s->match_rows + s->match_next;
  const uint64_t* tuples = s->match_tuples + s->match_next;
  int64_t n = quern_hole_fit_matches(a, rows, tuples, static_cast<uint32_t>(Min(pending, a->out_capacity - a->out_rows)));
  if (n < 0) return static_cast<int32_t>(n);
  quern_hole_emit_matches(a, rows, tuples, static_cast<uint32_t>(n));
  a->out_rows += static_cast<uint64_t>(n);
  s->match_next += static_cast<uint32_t>(n);
  if (s->match_next < s->num_matches) return kQuernFull;
  s->match_next = s->num_matches = 0;
  return kQuernDone;
}

}  // namespace

// Appends rows to the chunk until the batch or the chunk's space ends. A batch of rows is taken only where all of it fits.
QUERN_ENTRY int32_t quern_join_append_rows(QuernJoinAppendArgs* a) {
  const uint32_t tuple_bytes = quern_hole_tuple_bytes(a->shape);
  while (a->next_row < a->num_rows) {
    uint32_t n = static_cast<uint32_t>(Min(quern_hole_batch_rows(a->shape), a->num_rows - a->next_row));
    n = static_cast<uint32_t>(Min(n, a->capacity - a->num_tuples));
    if (n == 0) return kQuernFull;
    BatchRows batch = SelectRows(a->shape, a->keys, a->selection, a->next_row, n, a->rows);
    quern_hole_hash_rows(a->shape, a->keys, batch.first, batch.rows, batch.n, a->hashes + a->num_tuples);
    quern_hole_store_rows(a->shape, a->keys, a->payload, batch.first, batch.rows, batch.n, a->first_row_id,
                          a->tuples + a->num_tuples * tuple_bytes);
    a->num_tuples += batch.n;
    a->next_row += n;
  }
  return kQuernDone;
}

QUERN_ENTRY int32_t quern_join_probe_rows(QuernJoinProbeArgs* a) {
  QuernProbeScratch* s = a->scratch;
  const uint32_t batch_rows = quern_hole_batch_rows(a->shape);
  for (;;) {
    const bool more = s->candidate_next < s->num_candidates || s->batch_next < s->batch_rows || a->next_row < a->num_rows;
    if (s->num_matches == batch_rows || !more) {
      if (s->num_matches != 0) {
        int32_t code = EmitStage(a);
        if (code != kQuernDone) return code;
      }
      if (!more) return kQuernDone;
    }
    if (s->candidate_next == s->num_candidates) {
      if (s->batch_next == s->batch_rows) HashStage(a);
      TestStage(a);
    }
    CompareStage(a, batch_rows);
  }
}
