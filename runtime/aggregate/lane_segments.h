// SPDX-License-Identifier: Apache-2.0
// Arranges the rows of a block for update_lanes (QuernLaneArgs), which reads adjacent rows of a batch.
#ifndef QUERN_RUNTIME_AGGREGATE_LANE_SEGMENTS_H_
#define QUERN_RUNTIME_AGGREGATE_LANE_SEGMENTS_H_

#include <cstdint>

#include "runtime/abi/aggregate_abi.h"
#include "runtime/aggregate/group_runs.h"
#include "runtime/aggregate/tables/group_table.h"
#include "runtime/base/bytes.h"

namespace quern {

// *Threads*: one.
class LaneSegments {
 public:
  // Both return whether lanes can add up the block: rows that a selection names must ascend, and lie close together.
  // The arguments are valid until the next call.
  //
  // Long runs, each of which is a segment. Run r is segment r.
  bool SetRuns(const KeyRows& rows, const GroupRuns& runs);
  // One segment of few groups: `most`, or as many as the splitter splits.
  bool SetGroups(const KeyRows& rows, uint8_t* const* tuples, uint32_t most, RunSplitter* splitter);

  // All but descriptor and columns.
  const QuernLaneArgs& args() const { return args_; }

 private:
  static constexpr uint32_t kMostRows = 2 * kMaxBatchRows;  // between the first selected row and the last

  bool IsDense(const KeyRows& rows) const;
  uint32_t Place(const KeyRows& rows, uint32_t i) const;
  void Spread(const KeyRows& rows, const uint8_t* numbers);

  QuernLaneArgs args_ = {};
  uint32_t ends_[kMaxBatchRows + 1];
  uint8_t numbers_[kMaxBatchRows + GroupRuns::kSpare];  // of the block's rows
  uint8_t spread_[kMostRows + blocks::kLanes];          // of adjacent rows, selected or not
};

}  // namespace quern

#endif  // QUERN_RUNTIME_AGGREGATE_LANE_SEGMENTS_H_
