// SPDX-License-Identifier: Apache-2.0
// What drives the stages of a join's probe, batch after batch, and makes of key matches what the kind of join wants.
#ifndef QUERN_RUNTIME_JOIN_JOIN_LOOP_H_
#define QUERN_RUNTIME_JOIN_JOIN_LOOP_H_

#include <atomic>
#include <cstdint>

#include "runtime/abi/kernel_abi.h"
#include "runtime/join/join_table.h"
#include "runtime/rows/entry_slot.h"
#include "runtime/rows/tuple_store.h"
#include "runtime/spec/spec.h"

namespace quern {

// The rows of one batch that can match: `rows ? rows[i] : first + i`, i < n.
struct BatchRows {
  const uint32_t* rows;
  uint64_t first;
  uint32_t n;
};

// Filters n rows of a batch, from its row `next` on; `scratch` holds n rows.
BatchRows SelectRows(const QuernJoinEntryPoints& kernel, const QuernJoinDescriptor* descriptor, const QuernColumn* keys,
                     const uint32_t* selection, uint64_t next, uint32_t n, uint32_t* scratch);
// Those of the same n rows that are not in `kept`; answers how many.
uint32_t DroppedRows(const uint32_t* selection, uint64_t next, uint32_t n, const BatchRows& kept, uint32_t* dropped);

// What a probe reads and never changes but for tuples' marks.
struct JoinProbe {
  const JoinEntrySource* entry_points = nullptr;
  const JoinKindRow* kind = nullptr;
  const JoinTable* table = nullptr;
  bool build_is_empty = true;
  bool build_has_null_key = false;
  bool counts = false;                 // there are no output columns
  QuernOutColumn* out_mark = nullptr;  // mark joins
  CounterBlock* counters = nullptr;
  uint32_t* num_new_candidates = nullptr;  // in/out: of those under way, that have not been compared yet
};

// Fills the output batch until the input ends (kQuernDone) or the output is full (kQuernFull: call again with an
// emptied one).
int32_t ProbeRows(const JoinProbe& probe, QuernJoinProbeArgs* args);

// The build rows that come out on their own, which probers share: tuples of the table in morsels, then those that never
// were in it.
struct ScanUnmatched {
  std::atomic<uint64_t>* next_morsel = nullptr;
  const TupleList* null_rows = nullptr;  // with a null key that matches nothing
  uint8_t* tuples = nullptr;             // of the morsel under way
  bool is_table = false;
  uint64_t position = 0;
  uint64_t end = 0;
};
int32_t ScanUnmatchedRows(const JoinProbe& probe, ScanUnmatched* drain, QuernJoinProbeArgs* args);

}  // namespace quern

#endif  // QUERN_RUNTIME_JOIN_JOIN_LOOP_H_
