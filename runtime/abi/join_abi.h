// SPDX-License-Identifier: Apache-2.0
// The interface between join kernels and their callers. It adds to kernel_abi.h, whose rules hold here too.
//
// A tuple is a row of the build side: its keys, its payload, and the columns of the build side that the residual
// predicate compares. A kind of join that lets unmatched build rows out has a *matched flag* in the tuple, a byte
// behind the null bits. For `join.right keys=i64 build=f64 residual=i64:lt`:
//
//     +--------+--------+----------+---------+
//     | word   | pay 0  | residual | flag .. |
//     +--------+--------+----------+---------+
//
// The tuples of one directory slot are adjacent ("unchained" table: Birler, Schmidt, Fent, Neumann, DaMoN 2024). The
// directory entry of slot s holds where they END (48 bits) and a 16-bit tag; they begin where those of slot s-1 end:
//
//     directory[s]:  | end of slot s's tuples, byte offset (48 bits) | tag (16 bits) |
//
// Tables of packed keys have further layouts (packed_key_table.h).
#ifndef QUERN_RUNTIME_ABI_JOIN_ABI_H_
#define QUERN_RUNTIME_ABI_JOIN_ABI_H_

#include "runtime/abi/kernel_abi.h"

// Sets a tuple's matched flag and returns whether it was set before. Probing threads may set it at the same time, all
// to the same value.
inline __attribute__((always_inline)) bool TestAndSetMatched(uint8_t* mark) {
  if (__atomic_load_n(mark, __ATOMIC_RELAXED) != 0) return true;
  __atomic_store_n(mark, static_cast<uint8_t>(1), __ATOMIC_RELAXED);
  return false;
}

// What a join kernel is specialised for. Built by JoinDescriptor (join_descriptor.h).
struct QuernJoinDescriptor {
  // The rows of the build side. The output fields are the payload; then come the columns of the residual predicate; and
  // last the row id, where the host decides about pairs and no output field has it.
  QuernRowLayout rows;
  uint32_t num_probe;
  uint32_t num_residual;
  uint32_t matched_offset;   // byte of a tuple that is its matched flag, one of the null bits' bytes; 0: there is none
  bool stops_at_first;       // a probe row needs no more than one match
  bool stops_at_matched;     // nor a tuple whose flag is set: then all tuples of its key have been matched
  bool asks_host;            // the host decides about pairs, too; a tuple then has its row id
  uint32_t host_row_offset;  // of this row id
  const QuernField* probe;   // payload of the probe side, copied from the batch
  // Tuning: affects speed, never results.
  uint32_t batch_rows;  // 1 .. kMaxBatchRows
  uint32_t group_rows;  // rows tested against the directory before their tuples are compared; 1 .. kMaxBatchRows
};

// The field of a column of the residual predicate.
inline __attribute__((always_inline)) const QuernField* ResidualFieldOf(const QuernJoinDescriptor* descriptor,
                                                                        uint32_t residual) {
  return &descriptor->rows.fields[descriptor->rows.num_output_fields + residual];
}

// A probe row whose tag was found in the directory, with the tuples that may match it.
struct QuernCandidate {
  uint64_t begin;  // byte offsets into the table's tuples
  uint64_t end;
  uint32_t index;  // of the row in the hash batch
};

// What a probe keeps between calls, one for each prober. The members before the arrays are zeroed once. The arrays
// carry one stage's output to the next.
struct QuernProbeScratch {
  const uint32_t* batch_numbers;  // batch's row of each row in `hashes`; nullptr: batch_first + i
  uint64_t batch_first;
  uint32_t batch_rows;      // rows in `hashes`
  uint32_t batch_next;      // first one not yet tested against the directory
  uint32_t num_candidates;  // those with tuples still to be compared
  uint32_t num_matches;
  uint32_t match_next;   // first one not yet emitted
  uint32_t num_dropped;  // rows of the batch that cannot match, in `dropped`
  bool batch_is_open;    // it still has unmatched rows to return
  uint32_t rows[kMaxBatchRows];
  uint32_t dropped[kMaxBatchRows];
  uint8_t found[kMaxBatchRows];     // of each row of the hash batch: whether it has a match
  uint8_t marks[kMaxBatchRows];     // mark joins, of each row to emit: 0 false, 1 true, 2 null
  uint32_t looking[kMaxBatchRows];  // open tables: rows still being probed
  uint64_t words[kMaxBatchRows];
  uint64_t hashes[kMaxBatchRows + kMaxPrefetchDistance];
  QuernCandidate candidates[kMaxBatchRows];
  uint32_t match_index[kMaxBatchRows];  // of the row in the hash batch
  uint32_t match_rows[kMaxBatchRows];   // of the batch; kNullRow: none, its columns are null
  // Byte offsets: numbers, so that the compiler need not assume that storing one changes a column's pointer.
  uint64_t match_tuples[kMaxBatchRows];
};

struct QuernJoinProbeArgs {
  const QuernJoinDescriptor* descriptor;
  const QuernColumn* keys;
  const QuernColumn* payload;  // then the columns of the residual predicate
  uint64_t first_row_id;       // number of the batch's row 0 on the probe side
  uint8_t* tuples;             // of the table; only matched flags are written
  const uint64_t* directory;   // directory[-1] exists and is 0
  const uint16_t* tags;        // kNumTags
  uint32_t shift;              // slot of hash h: h >> shift
  uint32_t prefetch_distance;  // rows
  QuernOutColumn* out_probe;
  QuernOutputArgs output;  // of the build side; its tuples are the table's, or rows that never entered it
  QuernProbeScratch* scratch;
  const uint32_t* selection;  // the batch's row of each row to probe; nullptr: rows 0 .. num_rows-1
  uint64_t num_rows;
  uint64_t next_row;  // in/out: how far this batch has been probed
};

// The entry points of one join kernel. Generic and compiled kernels fill the same struct; a compiled kernel has nullptr
// where its spec leaves nothing to do (no filter if no key may be null).
struct QuernJoinEntryPoints {
#define QUERN_JOIN_ENTRY(field, result, parameters) result(*field) parameters;
#include "runtime/abi/join_entry_points.def"
};

#endif  // QUERN_RUNTIME_ABI_JOIN_ABI_H_
