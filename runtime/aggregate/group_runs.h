// SPDX-License-Identifier: Apache-2.0
// Rows of a block as runs of one group each, which update_runs takes.
#ifndef QUERN_RUNTIME_AGGREGATE_GROUP_RUNS_H_
#define QUERN_RUNTIME_AGGREGATE_GROUP_RUNS_H_

#include <cstdint>

#include "runtime/aggregate/tables/group_table.h"
#include "runtime/base/adaptive_gate.h"

namespace quern {

// Run r is of the group tuples[r] and ends before row ends[r].
struct GroupRuns {
  static constexpr uint32_t kSpare = 16;  // rows that a split may write beyond the last

  uint32_t n;
  uint8_t* tuples[kMaxBatchRows + 1];
  uint32_t ends[kMaxBatchRows + 1];
  uint32_t rows[kMaxBatchRows + kSpare];  // written by a split: the block's rows in the order of its runs
};

// Rows of one group that lie side by side. Answers whether there are four or more a run.
bool FindRuns(uint8_t* const* tuples, uint32_t n, GroupRuns* runs);

// Brings rows of few groups side by side. *Ownership*: of nothing; addresses are compared and never read. *Threads*:
// one.
class RunSplitter {
 public:
  // What the states of a group take: rows are split among as many groups at most as there are words of them, since
  // looking at all rows once more for a group costs what one addition in memory does.
  explicit RunSplitter(uint32_t states_bytes, bool adapts = true);

  // Answers whether the block has few groups. If so the rows of each are one run, in the order in which they were.
  // *Cost*: 0.1 ns a row and group; of blocks that have too many groups, one in sixteen is looked at.
  bool Split(const KeyRows& rows, uint8_t* const* tuples, GroupRuns* runs);

  // Whether the last block had few groups.
  bool knows_groups() const { return num_groups_ != 0; }

  // To be called by tests: without what only some processors have.
  void UseNoVectors() { uses_vectors_ = false; }

 private:
  bool Learn(uint8_t* const* tuples, uint32_t n);

  static constexpr uint32_t kMostGroups = 8;

  const uint32_t most_groups_;
  uint8_t* groups_[kMostGroups] = {};
  uint32_t num_groups_ = 0;
  AdaptiveGate gate_;
  bool uses_vectors_ = true;
};

}  // namespace quern

#endif  // QUERN_RUNTIME_AGGREGATE_GROUP_RUNS_H_
