// SPDX-License-Identifier: Apache-2.0
// What aggregation kernels and their callers speak, beside kernel_abi.h, whose rules hold here too.
//
// A group is a *tuple*: its key as in a join's build side (one word, or fields of their own), then the states of its
// accumulators, then single bits: nulls of key fields, and for each accumulator that may end without a value whether it
// has seen one. For keys=i64 aggs=count_star,sum(i64:nullable),max(f64):
//
//     +--------+--------+--------+--------+--------+
//     | word   | count  | sum    | max    | bits.. |      one cache line holds key and states, so that a row of the
//     input costs one
//     +--------+--------+--------+--------+--------+
#ifndef QUERN_RUNTIME_ABI_AGGREGATE_ABI_H_
#define QUERN_RUNTIME_ABI_AGGREGATE_ABI_H_

#include "runtime/abi/kernel_abi.h"

enum UpdateReads : uint8_t {
  kReadsNothing,
  kReadsInteger,
  kReadsNumber,
  kReadsOrdered,
  kReadsBits,
  kReadsWide,
  kReadsNumbers
};

enum Step : uint8_t {
#define QUERN_UPDATE_FUNCTION(Id, text, reads, state_bytes) Id,
#include "runtime/abi/update_functions.def"
};

// One argument column of an accumulator.
struct QuernArgument {
  uint32_t column;        // of the batch's aggregate columns
  Storage storage;        // of a value, floats normalised where they are ordered
  Storage index_storage;  // dictionary columns: of an index; else kNoStorage
  bool nullable;
  bool is_signed;
};

struct QuernAccumulator {
  Step step;
  uint8_t num_arguments;  // 0 to 2; out-of-line aggregates: 0
  bool filtered;
  bool negated;            // bool_and: kept as bool_or of the opposite
  uint8_t seen_mask;       // bit of the tuple's byte that a value sets; 0: there is none
  uint32_t filter_column;  // of the batch's aggregate columns
  uint32_t state_offset;   // in the tuple
  uint32_t state_bytes;
  uint32_t seen_offset;  // byte of the tuple
  QuernArgument arguments[2];
};

// What an aggregation kernel is specialised for. Built by MakeAggregateShape (aggregate_descriptor.h).
struct QuernAggregateDescriptor {
  QuernJoinDescriptor
      group;  // its keys as a join's build side has them; tuple_bytes and null bits are the whole tuple's
  uint32_t num_accumulators;
  uint32_t num_columns;    // that a batch brings for aggregates
  uint32_t states_offset;  // of the first state; all lie side by side
  uint32_t states_bytes;
  uint32_t bits_offset;  // of the bytes of bits, the keys' among them
  uint32_t bits_bytes;
  const QuernAccumulator* accumulators;
};

// Rows of one batch and the groups that they belong to. Row i is first + rows[i], and selection ? selection[i] : first
// + i as well.
struct QuernUpdateArgs {
  const QuernAggregateDescriptor* descriptor;
  const QuernColumn* keys;  // of the batch; only prefetched
  const QuernColumn* columns;
  uint64_t first;
  const uint32_t* rows;       // never null
  const uint32_t* selection;  // the batch's, or null
  uint64_t
      ask_first;  // likewise, of the rows in the order in which their values lie in the columns: what is prefetched
  const uint32_t* ask_rows;  // never null
  uint64_t first_row_id;     // number of the batch's row 0
  uint8_t* const* tuples;    // of each row; update_runs: of each run
  const uint32_t* run_ends;  // update_runs: i after the run's last row
  uint32_t n;                // rows; update_runs: runs
  uint32_t num_rows;
  uint32_t asks_keys;   // whether the keys are to be asked for as well; 0: they have been
  uint8_t* overflowed;  // of each accumulator: set to 1 where a checked sum did not fit
};

struct QuernAggregateEntryPoints {
#define QUERN_AGGREGATE_ENTRY(field, result, parameters) result(*field) parameters;
#include "runtime/abi/aggregate_entry_points.def"
};

#endif  // QUERN_RUNTIME_ABI_AGGREGATE_ABI_H_
