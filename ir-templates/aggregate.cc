// SPDX-License-Identifier: Apache-2.0
// The loops of a hash aggregation that depend on its spec. A batch of the input passes through three stages:
//
//     pack | hash      batch_rows rows     the key as one word, or its hash; reads only the key columns
//     find             the same rows       the address of each row's group, which is created if it is new:
//                                          runtime/aggregate/tables/group_table.h
//     update           the same rows       all accumulators of a row, in one loop
//
// For packed keys, finding groups is the same for every spec and so is not compiled at run time. For all other keys it
// uses two of the stages below: `compare` for rows whose group probably exists, judging by the tag in the directory,
// and `store` for the keys of new groups, whose tuples are adjacent.
//
// update is one loop over the rows for all accumulators, because a group's key and states lie in one cache line or two:
// eight loops of one accumulator each would touch that line eight times, and load the group's address as often. For
// successive rows of one group (`update_runs`), the states stay in registers from the first row to the last. Where such
// runs are long, or groups are few (`update_lanes`), values are added up eight rows at a time, and the states take the
// totals.
#include "ir-templates/holes.h"
#include "runtime/abi/aggregate_abi.h"

#define QUERN_ENTRY extern "C" __attribute__((visibility("default")))

QUERN_ENTRY void quern_aggregate_pack(const QuernRowLayout* group, const QuernColumn* keys, uint64_t first,
                                      const uint32_t* rows, uint32_t n, uint64_t* words) {
  quern_hole_pack_rows(group, keys, first, rows, n, words);
}

QUERN_ENTRY void quern_aggregate_hash(const QuernRowLayout* group, const QuernColumn* keys, uint64_t first,
                                      const uint32_t* rows, uint32_t n, uint64_t* hashes) {
  quern_hole_hash_rows(group, keys, first, rows, n, hashes);
}

// Stores keys and bits of n new groups, whose states are already zero.
QUERN_ENTRY void quern_aggregate_store(const QuernRowLayout* group, const QuernColumn* keys, uint64_t first,
                                       const uint32_t* rows, uint32_t n, uint8_t* tuples) {
  quern_hole_store_rows(group, keys, nullptr, first, rows, n, 0, tuples);
}

// Compares n candidates, given as row numbers within the batch, with their tuples. Writes those whose keys differ to
// `unequal` and returns how many there are, without a branch that depends on the outcome.
QUERN_ENTRY uint32_t quern_aggregate_compare(const QuernRowLayout* group, const QuernColumn* keys, uint64_t first,
                                             const uint32_t* rows, uint32_t n, const uint32_t* candidates,
                                             uint8_t* const* tuples, uint32_t* unequal) {
  uint32_t num_unequal = 0;
  for (uint32_t c = 0; c < n; ++c) {
    const uint32_t i = candidates[c];
    const uint32_t row = rows ? rows[i] : static_cast<uint32_t>(first + i);
    unequal[num_unequal] = i;
    num_unequal += !quern_hole_equal_row(group, keys, row, tuples[i]);
  }
  return num_unequal;
}

// Arguments that are expressions, where update_lanes has not computed them.
QUERN_ENTRY int32_t quern_aggregate_compute(QuernMapArgs* args) { return quern_hole_map_batch(args); }

QUERN_ENTRY void quern_aggregate_update(const QuernUpdateArgs* args) { quern_hole_update_rows(args); }
QUERN_ENTRY void quern_aggregate_update_valid(const QuernUpdateArgs* args) { quern_hole_update_valid_rows(args); }
QUERN_ENTRY void quern_aggregate_update_runs(const QuernUpdateArgs* args) { quern_hole_update_run_rows(args); }
QUERN_ENTRY uint32_t quern_aggregate_update_lanes(const QuernLaneArgs* args) {
  return quern_hole_update_lane_rows(args);
}
