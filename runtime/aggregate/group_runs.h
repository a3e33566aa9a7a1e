// SPDX-License-Identifier: Apache-2.0
// Divides the rows of a block into runs of one group each, for update_runs, or numbers its few groups, for
// update_lanes.
#ifndef QUERN_RUNTIME_AGGREGATE_GROUP_RUNS_H_
#define QUERN_RUNTIME_AGGREGATE_GROUP_RUNS_H_

#include <cstdint>
#include <utility>

#include "runtime/abi/aggregate_abi.h"
#include "runtime/aggregate/tables/group_table.h"
#include "runtime/base/adaptive_gate.h"

namespace quern {

// Run r belongs to the group tuples[r] and ends before row ends[r].
struct GroupRuns {
  static constexpr uint32_t kSpare = 16;  // rows that a split may write beyond the last

  uint32_t n;
  uint8_t* tuples[kMaxBatchRows + 1];
  uint32_t ends[kMaxBatchRows + 1];
  uint32_t rows[kMaxBatchRows + kSpare];  // written by a split: the block's rows in the order of the runs
};

// All n rows are of one group.
inline void SetRun(uint8_t* tuple, uint32_t n, GroupRuns* runs) {
  runs->tuples[0] = tuple;
  runs->ends[0] = n;
  runs->n = 1;
}

// Finds neighbouring rows of one group. Returns whether runs have four or more rows on average.
bool FindRuns(uint8_t* const* tuples, uint32_t n, GroupRuns* runs);

// Reorders rows of few groups so that the rows of each group are neighbours. *Ownership*: none; addresses are compared,
// never dereferenced. *Threads*: one.
class RunSplitter {
 public:
  // states_bytes: size of a group's states. Rows are split among at most as many groups as the states have words,
  // because scanning all rows once more for a group costs as much as one addition in memory.
  explicit RunSplitter(uint32_t states_bytes, bool adapts = true);

  // Returns whether the block has few groups. If so, the rows of each group form one run, in their original order.
  // *Cost*: 0.1 ns a row and group; after blocks with too many groups, only one block in sixteen is tried.
  bool Split(const KeyRows& rows, uint8_t* const* tuples, GroupRuns* runs);

  // Returns whether the block has few groups: `most`, or as many as Split takes. If so, numbers[i] is the number of
  // row i's group in groups(); room for kSpare more. *Cost*: as that of Split.
  bool Number(uint8_t* const* tuples, uint32_t n, uint32_t most, uint8_t* numbers);
  // Whether Number has refused the block for which it was called last, and Split would do so too. Says it once.
  bool TakeRefusal() { return std::exchange(has_refused_, false); }
  uint8_t* const* groups() const { return groups_; }
  uint32_t num_groups() const { return num_groups_; }

  // Whether the last block had few groups.
  bool knows_groups() const { return num_groups_ != 0; }

  // For tests: use no instructions that only some processors have.
  void UseNoVectors() { uses_vectors_ = false; }

 private:
  bool Learn(uint8_t* const* tuples, uint32_t n);
  bool Refuse();  // false

  static constexpr uint32_t kMostGroups = kMaxLaneGroups;

  const uint32_t most_groups_;
  uint8_t* groups_[kMostGroups] = {};
  uint32_t num_groups_ = 0;
  AdaptiveGate gate_;
  bool has_refused_ = false;
  bool uses_vectors_ = true;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_AGGREGATE_GROUP_RUNS_H_
