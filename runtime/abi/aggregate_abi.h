// SPDX-License-Identifier: Apache-2.0
// The interface between aggregation kernels and their callers. It adds to kernel_abi.h, whose rules hold here too.
//
// A group is a *tuple*: its key (one word, or a field for each key), the states of its accumulators, and single bits:
// one for each key field that may be null, and one for each accumulator that may end without a value, which is set once
// the accumulator has seen one. For keys=i64
// aggs=count_star,sum(i64:nullable),max(f64):
//
//     +--------+--------+--------+--------+--------+
//     | word   | count  | sum    | max    | bits.. |      key and states share one cache line, so a row costs one
//     +--------+--------+--------+--------+--------+
#ifndef QUERN_RUNTIME_ABI_AGGREGATE_ABI_H_
#define QUERN_RUNTIME_ABI_AGGREGATE_ABI_H_

#include "runtime/abi/kernel_abi.h"
#include "runtime/abi/map_abi.h"

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
  uint32_t column;  // of the batch's aggregate columns, or of those that are computed
  bool is_computed;
  Storage storage;        // of a value, floats normalised where they are ordered
  Storage index_storage;  // dictionary columns: of an index; else kNoStorage
  bool nullable;
  bool is_signed;
};

struct QuernAccumulator {
  Step step;
  uint8_t num_arguments;  // 0 to 2; out-of-line aggregates: 0
  bool filtered;
  bool negated;            // bool_and: computed as bool_or of the opposite
  uint8_t seen_mask;       // bit of byte seen_offset that a value sets; 0: none
  uint32_t filter_column;  // likewise
  bool is_filter_computed;
  uint32_t state_offset;  // in the tuple
  uint32_t state_bytes;
  uint32_t seen_offset;  // byte of the tuple
  QuernArgument arguments[2];
};

// What an aggregation kernel is specialised for. Built by AggregateDescriptor (aggregate_descriptor.h).
struct QuernAggregateDescriptor {
  // The tuples. They have keys and no fields; tuple_bytes and the null bits are those of the whole tuple.
  QuernRowLayout group;
  uint32_t num_accumulators;
  uint32_t num_columns;    // columns of a batch that aggregates read
  uint32_t states_offset;  // of the first state; states are adjacent
  uint32_t states_bytes;
  uint32_t bits_offset;  // of the bytes of bits, which include the keys' null bits
  uint32_t bits_bytes;
  const QuernAccumulator* accumulators;
  uint32_t batch_rows;  // tuning: 1 .. kMaxBatchRows
  // Computes arguments from the batch's aggregate columns; null where all arguments are such columns.
  const QuernMapDescriptor* computed;
  bool has_lanes;        // whether the kernel adds up rows of few groups eight at a time
  uint32_t lane_groups;  // so many groups in one pass over the rows: their totals fit the registers
};

// Rows of one batch and their groups. Row i is first + rows[i]; it is also selection ? selection[i] : first + i.
struct QuernUpdateArgs {
  const QuernAggregateDescriptor* descriptor;
  const QuernColumn* keys;  // of the batch; only prefetched
  const QuernColumn* columns;
  uint64_t first;
  const uint32_t* rows;       // never null
  const uint32_t* selection;  // the batch's, or null
  // The same rows in the order in which their values lie in the columns: what is prefetched. prefetch_rows is never
  // null.
  uint64_t prefetch_first;
  const uint32_t* prefetch_rows;
  uint64_t first_row_id;     // number of the batch's row 0
  uint8_t* const* tuples;    // of each row; update_runs: of each run
  const uint32_t* run_ends;  // update_runs: i after the run's last row
  // Results of descriptor->computed, whose row first_computed + i is that of row i; null where there are none.
  const QuernColumn* computed;
  uint32_t first_computed;
  uint32_t n;  // rows; update_runs: runs
  uint32_t num_rows;
  uint32_t prefetches_keys;  // whether to prefetch the keys too; 0: they have been prefetched
  uint8_t* overflowed;       // of each accumulator: set to 1 where a checked sum overflows
};

// Segments of adjacent rows whose groups are few, added up eight rows at a time. Row i is first + i. Segment s begins
// where the one before it ends; each has `num_groups` groups, which follow those of the segment before.
struct QuernLaneArgs {
  const QuernAggregateDescriptor* descriptor;
  const QuernColumn* columns;
  uint64_t first;
  const uint8_t* numbers;  // of each row: its group's number in its segment; kNoLaneGroup: it takes no part
  uint8_t* const* tuples;  // of each group
  const uint32_t* ends;    // of each segment; the first one has eight rows at least
  uint32_t num_segments;
  uint32_t num_groups;  // 1 .. kMaxLaneGroups
};
constexpr uint8_t kNoLaneGroup = 255;
constexpr uint32_t kMaxLaneGroups = 8;

struct QuernAggregateEntryPoints {
#define QUERN_AGGREGATE_ENTRY(field, result, parameters) result(*field) parameters;
#include "runtime/abi/aggregate_entry_points.def"
};

#endif  // QUERN_RUNTIME_ABI_AGGREGATE_ABI_H_
