// SPDX-License-Identifier: Apache-2.0
// The order of a kernel's stages. Each call of one covers tens to thousands of rows, so that a call through a pointer costs nothing beside
// it; and since nothing here depends on the spec, nothing of it has to be compiled at run time.
//
// Every stage can stop and be resumed: a chunk or an output batch may be full anywhere, also between two tuples of one slot. What is
// under way lies in the scratch:
//
//     hashes [batch_next .. batch_rows)   ->  candidates [0 .. num_candidates)  ->  matches [match_next .. num_matches)
#include "runtime/join_loop.h"

#include <algorithm>

namespace quern {
namespace {

// The rows of one batch that can match: `rows ? rows[i] : first + i`, i < n.
struct BatchRows {
  const uint32_t* rows;
  uint64_t first;
  uint32_t n;
};

BatchRows SelectRows(const QuernJoinEntryPoints& kernel, const QuernJoinShape* shape, const QuernColumn* keys, const uint32_t* selection,
                     uint64_t next, uint32_t n, uint32_t* scratch) {
  const uint32_t* rows = selection ? selection + next : nullptr;
  const uint32_t kept = kernel.filter(shape, keys, next, rows, n, scratch);
  if (kept == kAllRows) return {rows, next, n};
  return {scratch, 0, kept};
}

uint32_t BatchSize(uint32_t batch_rows, uint64_t rows_left) { return static_cast<uint32_t>(std::min<uint64_t>(batch_rows, rows_left)); }

void HashStage(const QuernJoinEntryPoints& kernel, QuernJoinProbeArgs* a) {
  QuernProbeScratch* s = a->scratch;
  const uint32_t n = BatchSize(a->shape->batch_rows, a->num_rows - a->next_row);
  const BatchRows batch = SelectRows(kernel, a->shape, a->keys, a->selection, a->next_row, n, s->rows);
  kernel.hash(a->shape, a->keys, batch.first, batch.rows, batch.n, s->hashes);
  s->batch_numbers = batch.rows;
  s->batch_first = batch.first;
  s->batch_rows = batch.n;
  s->batch_next = 0;
  a->next_row += n;
}

void TestStage(const QuernJoinEntryPoints& kernel, QuernJoinProbeArgs* a) {
  QuernProbeScratch* s = a->scratch;
  const uint32_t end = std::min(s->batch_rows, s->batch_next + a->shape->group_rows);
  s->num_candidates = kernel.test(a, s->batch_next, end);
  s->batch_next = end;
}

int32_t EmitStage(const QuernJoinEntryPoints& kernel, QuernJoinProbeArgs* a) {
  QuernProbeScratch* s = a->scratch;
  const uint32_t* rows = s->match_rows + s->match_next;
  const uint64_t* tuples = s->match_tuples + s->match_next;
  const uint32_t room = BatchSize(s->num_matches - s->match_next, a->out_capacity - a->out_rows);
  const int64_t n = kernel.fit(a, rows, tuples, room);
  if (n < 0) return static_cast<int32_t>(n);
  kernel.emit(a, rows, tuples, static_cast<uint32_t>(n));
  a->out_rows += static_cast<uint64_t>(n);
  s->match_next += static_cast<uint32_t>(n);
  if (s->match_next < s->num_matches) return kQuernFull;
  s->match_next = s->num_matches = 0;
  return kQuernDone;
}

}  // namespace

int32_t AppendRows(const QuernJoinEntryPoints& kernel, QuernJoinAppendArgs* a) {
  while (a->next_row < a->num_rows) {
    const uint64_t rows_left = std::min(a->num_rows - a->next_row, a->capacity - a->num_tuples);
    if (rows_left == 0) return kQuernFull;
    const uint32_t n = BatchSize(a->shape->batch_rows, rows_left);
    const BatchRows batch = SelectRows(kernel, a->shape, a->keys, a->selection, a->next_row, n, a->rows);
    kernel.hash(a->shape, a->keys, batch.first, batch.rows, batch.n, a->hashes + a->num_tuples);
    kernel.store(a->shape, a->keys, a->payload, batch.first, batch.rows, batch.n, a->first_row_id,
                 a->tuples + a->num_tuples * a->shape->tuple_bytes);
    a->num_tuples += batch.n;
    a->next_row += n;
  }
  return kQuernDone;
}

int32_t ProbeRows(const QuernJoinEntryPoints& kernel, QuernJoinProbeArgs* a) {
  QuernProbeScratch* s = a->scratch;
  const uint32_t max_matches = a->shape->batch_rows;
  for (;;) {
    const bool more = s->num_candidates > 0 || s->batch_next < s->batch_rows || a->next_row < a->num_rows;
    if (s->num_matches == max_matches || !more) {
      if (s->num_matches != 0) {
        const int32_t code = EmitStage(kernel, a);
        if (code != kQuernDone) return code;
      }
      if (!more) return kQuernDone;
    }
    if (s->num_candidates == 0) {
      if (s->batch_next == s->batch_rows) HashStage(kernel, a);
      TestStage(kernel, a);
    }
    if (s->num_candidates > 0) kernel.compare(a, max_matches);
  }
}

}  // namespace quern
