// SPDX-License-Identifier: Apache-2.0
// Runs the stages of a join's probe, batch after batch, and turns key matches into the result of the join kind.
#ifndef QUERN_RUNTIME_JOIN_JOIN_LOOP_H_
#define QUERN_RUNTIME_JOIN_JOIN_LOOP_H_

#include <atomic>
#include <cstdint>

#include "runtime/abi/join_abi.h"
#include "runtime/base/adaptive_gate.h"
#include "runtime/base/stop_flag.h"
#include "runtime/join/host_residual.h"
#include "runtime/join/join_table.h"
#include "runtime/join/tables/short_key_cache.h"
#include "runtime/rows/entry_slot.h"
#include "runtime/rows/tuple_store.h"
#include "runtime/spec/join_spec.h"

namespace quern {

// The rows of one batch that can match: `rows ? rows[i] : first + i`, i < n.
struct BatchRows {
  const uint32_t* rows;
  uint64_t first;
  uint32_t n;
};

// Selects, from the n rows that begin at the batch's row `next`, those that can match; `scratch` has room for n rows.
BatchRows SelectRows(const QuernJoinEntryPoints& kernel, const QuernRowLayout* layout, const QuernColumn* keys,
                     const uint32_t* selection, uint64_t next, uint32_t n, uint32_t* scratch);
// Collects those of the same n rows that are not in `kept`; returns their number.
uint32_t DroppedRows(const uint32_t* selection, uint64_t next, uint32_t n, const BatchRows& kept, uint32_t* dropped);

// What else is known of a batch of probe rows that was read back (part_prober.h).
struct PartInput {
  const uint64_t* row_ids = nullptr;  // for the host's residual; null: they follow from the batch's first row
  // Where a batch meets the build rows in several chunks: a bit for each row, from bit first_row on, that is set where
  // an earlier chunk has a match; null where there is one chunk.
  uint8_t* found = nullptr;
  uint64_t first_row = 0;
  bool is_last = true;  // of the chunks: rows that come out on their own do so now
};

// The input of a probe. The probe changes nothing in it except the matched flags of tuples.
struct JoinProbe {
  const JoinEntrySource* entry_points = nullptr;
  const JoinKindRow* kind = nullptr;
  const JoinTable* table = nullptr;
  bool build_is_empty = true;
  bool build_has_null_key = false;
  bool counts = false;                 // there are no output columns
  QuernOutColumn* out_mark = nullptr;  // mark joins
  uint32_t* out_rows = nullptr;        // receives the numbers of the probe rows that come out, in place of columns
  uint64_t* out_tuples = nullptr;      // with out_rows: receives the tuple of each, the null tuple included
  CounterBlock* counters = nullptr;
  AdaptiveGate* key_filter = nullptr;      // null: the table has none that this probe may use
  uint64_t* num_filtered = nullptr;        // in/out, with it: rows that it has taken away
  ShortKeyCache* short_keys = nullptr;     // null: the table has none
  uint32_t* num_new_candidates = nullptr;  // in/out: candidates in progress that have not been compared yet
  const StopFlag* stop_flag = nullptr;     // may be null
  const HostResidual* host = nullptr;      // where the descriptor asks it
  void* host_context = nullptr;
  PartInput part;
  uint32_t input_rows = 0, sparse_rows = 0;  // PrefetchDistances
};

// Fills the output batch until the input ends (kQuernDone), or the output is full or the flag set (kQuernFull: empty it
// and call again).
int32_t ProbeRows(const JoinProbe& probe, QuernJoinProbeArgs* args);

// Adds the columns of pairs that out_rows and out_tuples have received, the first of n, to the output batch. Returns
// how many: fewer than n where strings reach the limit of their offsets, or where memory was refused for more.
// Negative: a QuernCode. n: at most what the batch has room for.
int64_t CopyPairs(const JoinProbe& probe, const uint32_t* rows, const uint64_t* tuples, uint64_t n,
                  QuernJoinProbeArgs* args);

// The scan of unmatched build rows, which probers share: first the tuples of the table, in morsels, then the rows that
// were never in the table.
struct ScanUnmatched {
  std::atomic<uint64_t>* next_morsel = nullptr;
  const TupleList* null_rows = nullptr;  // rows whose null key matches nothing
  uint8_t* tuples = nullptr;             // of the current morsel
  bool is_table = false;
  uint64_t position = 0;
  uint64_t end = 0;
};
int32_t ScanUnmatchedRows(const JoinProbe& probe, ScanUnmatched* scan, QuernJoinProbeArgs* args);

}  // namespace quern

#endif  // QUERN_RUNTIME_JOIN_JOIN_LOOP_H_
